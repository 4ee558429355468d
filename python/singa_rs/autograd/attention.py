"""Attention and the positions of its tokens, as compositions."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _core
from .._core import DTypeError, ShapeError, bool_, float32
from ..tensor import Tensor
from ..tensor.numbers import real, whole
from . import ops
from .casting import cast, floating, promoted
from .index import where
from .matmul import matmul
from .nn import dropout as drop
from .reduce import softmax
from .shape import cat, reshape, split, stack, transpose
from .table import public

_NAME = "scaled_dot_product_attention"


def _constant(array: np.ndarray, like: Tensor) -> Tensor:
    """Host data in the dtype of a tensor, on its device, without a gradient."""
    made = ops.cast(_core.from_numpy(array, like.device), like.dtype)
    made.requires_grad = False
    return made


def _check(q: Tensor, k: Tensor, v: Tensor) -> int:
    """The number of query heads that share one head of keys."""
    shapes = f"{_NAME}: got shapes {q.shape}, {k.shape}, {v.shape}"
    if min(q.rank, k.rank, v.rank) < 2 or not q.rank == k.rank == v.rank:
        raise ShapeError(f"{shapes}, want (..., heads, length, width) each")
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1] or q.shape[:-3] != k.shape[:-3]:
        raise ShapeError(f"{shapes}, want as many values as keys, and keys as wide as queries")
    if q.rank == 2:
        return 1
    heads, shared = q.shape[-3], k.shape[-3]
    if heads != shared and (shared == 0 or heads % shared):
        raise ShapeError(f"{shapes}, want a multiple of {shared} query heads")
    return heads // shared if shared else 1


def _allowed(mask: Any, is_causal: bool, scores: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Which keys each query may attend to (None: all), and what is added to the scores."""
    allowed = bias = None
    if mask is not None:
        if not isinstance(mask, Tensor):
            raise TypeError(f"{_NAME}: got {type(mask).__name__} for mask, want a Tensor")
        try:
            fits = np.broadcast_shapes(mask.shape, scores.shape) == scores.shape
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(f"{_NAME}: got a mask {mask.shape}, want one for {scores.shape}")
        if mask.dtype == bool_:
            allowed = mask
        elif mask.dtype.is_float:
            allowed = mask > -math.inf
            bias = where(allowed, cast(mask, scores.dtype), 0.0)
        else:
            raise DTypeError(f"{_NAME}: got a mask of {mask.dtype.name}, want bools or floats")
    if is_causal:
        rows, columns = (
            ops.op("arange", start=0, step=1, count=n, dtype="int32")() for n in scores.shape[-2:]
        )
        causal = ops.reshape(rows, (rows.numel, 1)) >= columns
        allowed = causal if allowed is None else allowed & causal
    return allowed, bias


def _weights(scores: Tensor, mask: Any, is_causal: bool) -> Tensor:
    """Softmax over the keys that are allowed; 0 for all others."""
    allowed, bias = _allowed(mask, is_causal, scores)
    if allowed is None:
        return softmax(scores, -1)
    if bias is not None:
        scores = scores + bias
    if mask is None:  # no row is masked whole
        return softmax(where(allowed, scores, -math.inf), -1)
    # A row of -inf would be NaN: one that is masked whole gets zeros, and is masked afterwards.
    seen = ops.reduce_op("any", (allowed.rank - 1,), True)(allowed)
    ends = (ops.full((), value, scores) for value in (-math.inf, 0.0))
    weights = softmax(where(allowed, scores, ops.where(seen, *ends)), -1)
    return where(allowed, weights, 0.0)


@public(precision="short")
def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """`softmax(scale * q @ k.T + mask) @ v` (Vaswani et al., 2017; ONNX Attention; the name is
    PyTorch's).

    A query that may attend to no key gets zeros, where PyTorch gives NaN.

    Args:
        q: (..., heads, L, E), in the dtype of k and v, or promoted.
        k: (..., shared, S, E): each head of keys and values serves heads / shared successive
            heads of queries (Ainslie et al., 2023).
        v: (..., shared, S, Ev).
        mask: broadcast to (..., heads, L, S): bools, True where a query may attend to a key, or
            floats that are added to the scores, -inf for never.
        is_causal: query i attends to keys 0 to i at most, besides what the mask says.
        dropout: the share of weights that are dropped in training.
        scale: 1 / sqrt(E) if None.

    Returns:
        (..., heads, L, Ev).

    Raises:
        ShapeError, DTypeError: tensors or a mask that do not fit.
        ValueError: a dropout outside [0, 1).
    """
    q, k, v = map(floating, promoted((q, k, v)))
    group = _check(q, k, v)
    if scale is None:
        scale = 1 / math.sqrt(max(q.shape[-1], 1))
    shape, rank = q.shape, q.rank
    if group > 1:  # the queries of all heads that share keys, one below the other
        q = reshape(q, (*k.shape[:-2], group * shape[-2], shape[-1]))
    order = (*range(rank - 2), rank - 1, rank - 2)
    scores = matmul(q * real(scale, f"{_NAME}: scale"), transpose(k, order))
    weights = _weights(reshape(scores, (*shape[:-1], k.shape[-2])), mask, bool(is_causal))
    weights = drop(weights, real(dropout, f"{_NAME}: dropout"))
    y = matmul(reshape(weights, scores.shape), v)
    return reshape(y, (*shape[:-1], v.shape[-1]))


@functools.lru_cache(maxsize=64)
def _angles(length: int, offset: int, width: int, base: float) -> np.ndarray:
    """Position times frequency, (length, width / 2): the frequencies fall from 1 to 1 / base."""
    frequencies = base ** -(np.arange(0, width, 2, dtype=np.float64) / width)
    return np.outer(np.arange(offset, offset + length), frequencies)


def _base(value: Any, name: str) -> float:
    base = real(value, f"{name}: base")
    if not 0 < base < math.inf:
        raise ValueError(f"{name}: base: got {value}, want a positive number")
    return base


@public()
def sinusoidal_positions(x: Tensor, offset: int = 0, base: float = 10000.0) -> Tensor:
    """`x` plus sines at even and cosines at odd places of the last axis, of the position times
    `base ** (-place / width)` (Vaswani et al., 2017).

    Args:
        x: (..., L, E); integers become float32.
        offset: the position of the first row.
        base: the ratio of the greatest to the smallest wavelength.

    Raises:
        ShapeError: fewer than 2 axes.
        ValueError, TypeError: an offset that is not an int from 0, a base that is not positive.
    """
    x, name = floating(x), "sinusoidal_positions"
    if x.rank < 2:
        raise ShapeError(f"{name}: got shape {x.shape}, want (..., length, width)")
    length, width = x.shape[-2:]
    angles = _angles(length, _first(offset, name), width, _base(base, name))
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)[:, :width]
    return x + _constant(np.ascontiguousarray(table), x)


def _first(offset: Any, name: str) -> int:
    first = whole(offset, f"{name}: offset")
    if not 0 <= first < 2**31:
        raise ValueError(f"{name}: offset: got {offset}, want an int from 0 to 2**31 - 1")
    return first


def _turns(x: Tensor, positions: Any, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles of positions, (..., L, E / 2)."""
    length, width = x.shape[-2:]
    if isinstance(positions, Tensor):
        if not positions.rank or positions.shape[-1] != length:
            have = f"positions of shape {positions.shape} beside {x.shape}"
            raise ShapeError(f"rotary_embedding: got {have}, want (..., {length})")
        wide = x.dtype if x.dtype.name == "float64" else float32
        at = cast(positions, wide)
        frequencies = _constant(_angles(1, 1, width, base), at)
        angles = reshape(at, (*at.shape, 1)) * frequencies
        return cast(angles.cos(), x.dtype), cast(angles.sin(), x.dtype)
    angles = _angles(length, _first(positions, "rotary_embedding"), width, base)
    return _constant(np.cos(angles), x), _constant(np.sin(angles), x)


@public()
def rotary_embedding(
    x: Tensor, positions: int | Tensor = 0, base: float = 10000.0, interleaved: bool = False
) -> Tensor:
    """Pairs of elements of the last axis turned by the position times `base ** (-2 i / E)` for
    pair i (Su et al., 2021; ONNX RotaryEmbedding).

    Args:
        x: (..., L, E) with an even E; integers become float32.
        positions: that of the first row, an int, or a tensor (..., L), which a recording reads
            again at each step, where it would keep an int.
        base: the ratio of the slowest to the fastest turn.
        interleaved: whether pairs are elements 2 i and 2 i + 1, else i and i + E / 2.

    Raises:
        ShapeError: an odd width, fewer than 2 axes, positions that do not fit.
        ValueError, TypeError: an offset that is not an int from 0, a base that is not positive.
    """
    x = floating(x)
    if x.rank < 2 or x.shape[-1] % 2:
        raise ShapeError(f"rotary_embedding: got shape {x.shape}, want (..., length, even width)")
    cos, sin = _turns(x, positions, _base(base, "rotary_embedding"))
    half = x.shape[-1] // 2
    if interleaved:
        pairs = reshape(x, (*x.shape[:-1], half, 2))
        a, b = (reshape(part, (*x.shape[:-1], half)) for part in split(pairs, -1, [1, 1]))
        return reshape(stack([a * cos - b * sin, a * sin + b * cos], -1), x.shape)
    a, b = split(x, -1, [half, half])
    return cat([a * cos - b * sin, a * sin + b * cos], -1)
