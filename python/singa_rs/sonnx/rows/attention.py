"""Attention."""

from __future__ import annotations

import math
from typing import Any

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor, bool_, full
from ..body import Node
from ..functions import expanded
from ..running import Frame
from ..table import reads


@reads("Attention", since=23)
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, lengths: Tensor | None = None, *, is_causal: int = 0,
    kv_num_heads: int | None = None, q_num_heads: int | None = None, scale: float | None = None,
    outputs: int, frame: Frame, node: Node, **rare: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention in blocks that store no scores. Windows, bounds of scores, scores as a result, and
    causal masks that depend on numbers of keys are computed by ONNX's definition."""
    mask = _numbers(mask, q)
    plain = all(rare.get(name, usual) == usual for name, usual in _USUAL.items())
    if (
        not plain
        or "softmax_precision" in rare
        or outputs > 3
        or (is_causal and lengths is not None)
    ):
        inputs = [q, k, v, mask, past_key, past_value, lengths][: len(node.inputs)]
        y, *others = frame.call(expanded(node, inputs), inputs)
        return autograd.cast(y, q.dtype), *others
    is_flat, dtype = q.rank == 3, q.dtype
    q, k, v = (_by_heads(x, n) for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))
    past = 0 if past_key is None else past_key.shape[2]
    k, v = _after("Attention", past_key, past_value, k, v)
    y = _attended(q, k, v, _whole(mask, k.shape[2]), past, is_causal, scale, lengths)
    y = autograd.cast(y, dtype)
    return (_side_by_side(y) if is_flat else y, k, v)[:outputs]


#: Attributes that have to have these values, if they are there, for attention in blocks.
_USUAL = {"softcap": 0.0, "left_window_size": -1, "right_window_size": -1}


def _by_heads(x: Tensor, heads: int | None) -> Tensor:
    """(N, L, heads * width) as (N, heads, L, width)."""
    if x.rank == 4:
        return x
    if x.rank != 3 or not heads or x.shape[2] % heads:
        raise ShapeError(f"Attention: got shape {x.shape} for {heads} heads, want one for each")
    n, length, width = x.shape
    return autograd.transpose(x.reshape((n, length, heads, width // heads)), (0, 2, 1, 3))


def _side_by_side(x: Tensor) -> Tensor:
    """(N, heads, L, width) as (N, L, heads * width)."""
    return autograd.transpose(x, (0, 2, 1, 3)).reshape((x.shape[0], x.shape[2], -1))


def _after(
    op: str, past_key: Tensor | None, past_value: Tensor | None, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """Keys and values by heads, after those of the past."""
    if past_key is None and past_value is None:
        return k, v
    if past_key is None or past_value is None:
        raise ValueError(f"{op}: got one of past_key and past_value, want both or none")
    return autograd.cat([past_key, k], 2), autograd.cat([past_value, v], 2)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, past: int, is_causal: int,
    scale: float | None, lengths: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Attention by heads, of queries before which as many keys stand as the past has."""
    start = full((1,), past, q.device, "int64") if past and is_causal else None
    return autograd.scaled_dot_product_attention(
        q, k, v, mask, bool(is_causal), 0.0, scale, lengths, start
    )


def _numbers(mask: Tensor | None, q: Tensor) -> Tensor | None:
    """A mask of integers, which are added to the scores, in the dtype of the queries: unsigned ones
    have no -inf, by which ONNX's definition masks."""
    is_integral = mask is not None and not (mask.dtype.is_float or mask.dtype == bool_)
    return autograd.cast(mask, q.dtype) if is_integral else mask


def _whole(mask: Tensor | None, keys: int) -> Tensor | None:
    """A mask for all keys: those that it lacks are masked."""
    if mask is None or not mask.rank or mask.shape[-1] in (1, keys):
        return mask
    pads = [0] * (2 * mask.rank - 1) + [keys - mask.shape[-1]]
    return autograd.pad(mask, "constant", pads, -math.inf if mask.dtype.is_float else 0)
