"""onnxruntime's attention whose queries share heads of keys and values, as language models have."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import autograd
from ...tensor import Tensor, arange, int64
from ..table import reads
from .attention import _after, _attended, _by_heads, _side_by_side
from .microsoft_attention import turned_at
from .microsoft_domain import DOMAIN, refuse

_OP = "GroupQueryAttention"
#: Attributes that have to have these values, if they are there.
_USUAL = {
    "local_window_size": -1,
    "smooth_softmax": (-1, 0),
    "softcap": 0.0,
    "qk_output": 0,
    "sliding_window_cache": 0,
    "k_quant_type": "NONE",
    "v_quant_type": "NONE",
    "kv_cache_bit_width": 0,
    "qk_norm_epsilon": 1e-6,
}


@reads(_OP, domain=DOMAIN, host="lengths total")
def group_query_attention(
    query: Tensor, key: Tensor | None, value: Tensor | None, past_key: Tensor | None,
    past_value: Tensor | None, lengths: Any, total: Any, *rest: Tensor | None, num_heads: int,
    kv_num_heads: int, scale: float = 0.0, causal: int = 1, do_rotary: int = 0,
    rotary_interleaved: int = 0, outputs: int, **rare: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention to a past and to what follows it, in rows of one length, which are not padded: the
    result, and the keys and the values of all positions."""
    for name, got in rare.items():
        usual = _USUAL.get(name)
        if got not in (usual if isinstance(usual, tuple) else (usual,)):
            raise NotImplementedError(f"{_OP}: got {name} {got}, want {usual}")
    names = "position_ids attention_bias head_sink k_scale v_scale q_norm k_norm query_seqlens"
    refuse(_OP, **dict(zip(names.split(), rest[2:], strict=False)))
    refuse(_OP, output_qk="as an output" if outputs > 3 else None)
    q, k, v = _split(query, key, value, num_heads, kv_num_heads)
    past = 0 if past_key is None else past_key.shape[2]
    _check(past + q.shape[2], lengths, total)
    if do_rotary:
        if len(rest) < 2 or rest[0] is None or rest[1] is None:
            raise ValueError(f"{_OP}: got do_rotary without tables, want cos_cache and sin_cache")
        places = arange(q.shape[2], device=q.device, dtype=int64) + past
        q, k = (turned_at(places, x, rest[0], rest[1], rotary_interleaved) for x in (q, k))
    k, v = _after(_OP, past_key, past_value, k, v)
    y = _attended(q, k, v, None, past, causal, scale or None)
    return (_side_by_side(y), k, v)[:outputs]


def _check(count: int, lengths: Any, total: Any) -> None:
    """Refuses rows that do not end with the last of their keys."""
    got = np.ravel(lengths).tolist(), int(np.reshape(total, ()))
    if any(one != count - 1 for one in got[0]) or got[1] != count:
        have = f"seqlens_k {got[0]} and total_sequence_length {got[1]}"
        raise NotImplementedError(f"{_OP}: got {have} for {count} keys, want rows without padding")


def _split(
    query: Tensor, key: Tensor | None, value: Tensor | None, heads: int, shared: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by heads, which may stand next to each other in one tensor."""
    if key is None or value is None:
        every = _by_heads(query, heads + 2 * shared)
        return autograd.split(every, 1, (heads, shared, shared))
    return _by_heads(query, heads), _by_heads(key, shared), _by_heads(value, shared)
