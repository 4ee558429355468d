"""onnxruntime's attention, as its optimizer writes it: with the projections of queries, keys and
values, masks of integers and rotary positions."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...errors import ShapeError
from ...tensor import Tensor, arange, int64
from ..table import reads
from .attention import _after, _attended, _by_heads, _side_by_side
from .microsoft_domain import DOMAIN, refuse

#: What is added to the scores of keys that are masked.
FILTER = -10000.0


def _mask(op: str, mask: Tensor | None, rows: int, keys: int, fill: float) -> Tensor | None:
    """What is added to scores (rows, heads, queries, keys) for a mask of integers: of keys, of
    queries and keys, or of the ends of rows, which the starts may follow."""
    if mask is None:
        return None
    if mask.rank == 1:
        allowed = _between(op, mask, rows, keys)
    elif mask.rank in (2, 3):
        allowed = mask > 0
    else:
        raise NotImplementedError(f"{op}: got a mask {mask.shape}, want at most 3 axes")
    if allowed.shape[0] not in (1, rows) or allowed.shape[-1] != keys:
        raise ShapeError(f"{op}: got a mask {mask.shape} for {rows} rows and {keys} keys")
    queries = 1 if allowed.rank == 2 else allowed.shape[1]
    return autograd.where(allowed.reshape((-1, 1, queries, keys)), 0.0, fill)


def _between(op: str, ends: Tensor, rows: int, keys: int) -> Tensor:
    """Which keys stand before the ends of their rows, and from their starts on."""
    if ends.shape[0] not in (rows, 2 * rows):
        got = f"a mask {ends.shape} for {rows} rows"
        raise NotImplementedError(f"{op}: got {got}, want ends, or ends and starts")
    places = arange(keys, device=ends.device, dtype=int64)
    ends = cast(ends, int64).reshape((-1, rows, 1))
    allowed = places < ends[0]
    return allowed if ends.shape[0] == 1 else autograd.logical_and(allowed, places >= ends[1])


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return a if b is None else b if a is None else a + b


def _self_attention(
    op: str, projected: Tensor, mask: Tensor | None, past: Tensor | None, added: Tensor | None, *,
    num_heads: int, widths: tuple[int, ...] = (), unidirectional: int = 0, scale: float = 0.0,
    fill: float = FILTER, outputs: int,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention of queries, keys and values that stand next to each other, and the keys and the
    values of all positions, if wanted."""
    each = widths or (projected.shape[2] // 3,) * 3
    q, k, v = (_by_heads(x, num_heads) for x in autograd.split(projected, 2, each))
    before, held = (0, (None, None)) if past is None else (past.shape[3], (past[0], past[1]))
    k, v = _after(op, *held, k, v)
    bias = _sum(_mask(op, mask, q.shape[0], k.shape[2], fill), added)
    y = _side_by_side(_attended(q, k, v, bias, before, unidirectional, scale or None))
    return (y,) if outputs == 1 else (y, autograd.stack([k, v], 0))


@reads("Attention", domain=DOMAIN)
def attention(
    x: Tensor, weights: Tensor, bias: Tensor | None = None, mask_index: Tensor | None = None,
    past: Tensor | None = None, attention_bias: Tensor | None = None,
    past_sequence_length: Tensor | None = None, *, num_heads: int, scale: float = 0.0,
    unidirectional: int = 0, mask_filter_value: float = FILTER,
    qkv_hidden_sizes: tuple[int, ...] = (), do_rotary: int = 0, rotary_embedding_dim: int = 0,
    past_present_share_buffer: int = 0, outputs: int,
) -> tuple[Any, ...]:  # fmt: skip
    """Self-attention with its projections, and the keys and the values of all positions."""
    refuse(
        "Attention",
        past_sequence_length=past_sequence_length,
        do_rotary=do_rotary,
        rotary_embedding_dim=rotary_embedding_dim,
        past_present_share_buffer=past_present_share_buffer,
    )
    projected = autograd.matmul(x, weights)
    projected = projected if bias is None else projected + bias
    return _self_attention(
        "Attention", projected, mask_index, past, attention_bias, num_heads=num_heads,
        widths=tuple(qkv_hidden_sizes), unidirectional=unidirectional, scale=scale,
        fill=mask_filter_value, outputs=outputs,
    )  # fmt: skip


@reads("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(
    query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
    bias: Tensor | None = None, key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, past_sequence_length: Tensor | None = None,
    cache_indirection: Tensor | None = None, *, num_heads: int, scale: float = 0.0,
    unidirectional: int = 0, mask_filter_value: float = FILTER, outputs: int,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention of projected queries, keys and values, to which their bias is added, and the keys
    and the values of all positions."""
    op = "MultiHeadAttention"
    refuse(
        op, past_sequence_length=past_sequence_length, cache_indirection=cache_indirection,
        qk="as an output" if outputs > 3 else None,
    )  # fmt: skip
    if key is None or value is None or query.rank != 3:
        raise NotImplementedError(f"{op}: got a packed query {query.shape}, want key and value")
    q, k, v = (_by_heads(x, num_heads) for x in _biased(query, key, value, bias))
    past = 0 if past_key is None else past_key.shape[2]
    k, v = _after(op, past_key, past_value, k, v)
    mask = _mask(op, key_padding_mask, q.shape[0], k.shape[2], mask_filter_value)
    y = _attended(q, k, v, _sum(mask, attention_bias), past, unidirectional, scale or None)
    return (_side_by_side(y), k, v)[:outputs]


def _biased(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three with their parts of a bias; keys and values by heads (rank 4) have theirs."""
    if bias is None:
        return query, key, value
    width = query.shape[2]
    if key.rank == 4:
        return query + bias[:width], key, value
    return query + bias[:width], key + bias[width : 2 * width], value + bias[2 * width :]


# ---- rotary positions ----------------------------------------------------------------------------


@reads("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(
    x: Tensor, position_ids: Tensor, cosines: Tensor, sines: Tensor, *, interleaved: int = 0,
    num_heads: int = 0, rotary_embedding_dim: int = 0, is_packed_batching: int = 0,
    scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """Pairs of elements turned by the angles of their positions (Su et al., 2021), in the first
    places of each head."""
    refuse("RotaryEmbedding", is_packed_batching=is_packed_batching)
    if scale != 1:
        raise NotImplementedError(f"RotaryEmbedding: got scale {scale}, want 1")
    width = 2 * cosines.shape[1]
    if rotary_embedding_dim not in (0, width):
        got = f"rotary_embedding_dim {rotary_embedding_dim}"
        raise ShapeError(f"RotaryEmbedding: got {got} and tables {cosines.shape}, want half of it")
    heads = x
    if x.rank == 3:
        heads = _by_heads(x, num_heads if rotary_embedding_dim else x.shape[2] // width)
    places = cast(position_ids, int64)
    if places.shape == (1,):
        places = places + arange(heads.shape[2], device=x.device, dtype=int64)
    y = turned_at(places, heads, cosines, sines, interleaved)
    return y if x.rank == 4 else _side_by_side(y)


def turned_at(
    places: Tensor, heads: Tensor, cosines: Tensor, sines: Tensor, interleaved: int
) -> Tensor:
    """Heads (rows, heads, length, width), turned at the places (rows or 1, length), or (length,),
    of tables."""
    width = 2 * cosines.shape[1]
    tables = [autograd.gather(t, 0, places) for t in (cosines, sines)]
    cos, sin = (t.reshape((-1, 1, *t.shape[-2:])) for t in tables)
    turned = _rotated(heads[:, :, :, :width], cos, sin, bool(interleaved))
    is_part = width < heads.shape[3]
    return autograd.cat([turned, heads[:, :, :, width:]], 3) if is_part else turned


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, is_interleaved: bool) -> Tensor:
    """The pairs of the last axis turned: neighbours, or elements of its halves."""
    half = x.shape[-1] // 2
    form = (*x.shape[:-1], half, 2) if is_interleaved else (*x.shape[:-1], 2, half)
    axis = -1 if is_interleaved else -2
    a, b = autograd.unbind(x.reshape(form), axis)
    return autograd.stack([a * cos - b * sin, a * sin + b * cos], axis).reshape(x.shape)
