"""Attention and the positions of its tokens."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _core
from .._core import DTypeError, GraphError, ShapeError, bool_, float32, float64, int64
from ..shown import kind_of, wanting
from ..tensor import Tensor
from ..tensor.numbers import real, whole
from ..tensor.takers import tensors_only
from . import ops
from .casting import cast, floating, promoted
from .mode import mode
from .ops import Grads, Tensors
from .order import is_traced
from .rule import Rule
from .shape import cat, reshape, split, stack
from .table import public
from .views import broadcasts

_NAME = "scaled_dot_product_attention"


class Attention(Rule):
    """Softmax of the scaled products of queries and keys, weighing values, computed in blocks that
    store no scores (Dao et al., 2022).

    Inputs are q, k and v, then what is given of a mask, numbers of keys, and positions."""

    keeps = ("xs", "ys", "lse", "drawn")

    def __init__(
        self,
        scale: float,
        is_causal: bool = False,
        dropout: float = 0.0,
        mask: bool = False,
        lengths: bool = False,
        start: bool = False,
    ) -> None:
        self.attrs = {
            "scale": real(scale, f"{_NAME}: scale"),
            "causal": is_causal,
            "dropout": dropout,
            "mask": mask,
            "lengths": lengths,
            "start": start,
        }

    def forward(self, *xs: Tensor) -> Tensor:
        y, self.lse, *drawn = ops.op("attention", **self.attrs)(*xs)
        self.drawn = tuple(drawn)
        return y

    def origins(self) -> list[str]:
        """Inputs, the result, and what only the gradient needs."""
        count = len(self.edges)
        return [*(f"x{i}" for i in range(count)), "y0", *[""] * (len(self.saved) - count - 1)]

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """Those of q, k and v, and of a mask of floats."""
        count = len(wanted)
        xs = [self.load(i) for i in range(count)]
        kept = [self.load(i) for i in range(count, len(self.saved))]
        to_mask = bool(self.attrs["mask"] and wanted[3])
        run = ops.op("attention_grad", scores=to_mask, **self.attrs)
        made = run(dys[0], *xs[:3], *kept[:2], *xs[3:], *kept[2:])
        grads = [grad if want else None for grad, want in zip(made[:3], wanted, strict=False)]
        if to_mask:
            grads.append(ops.cast(ops.reduce_to(made[3], xs[3].shape), xs[3].dtype))
        return (*grads, *[None] * (count - len(grads)))


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = f"{_NAME}: got shapes {q.shape}, {k.shape}, {v.shape}"
    if min(q.rank, k.rank, v.rank) < 2 or not q.rank == k.rank == v.rank:
        raise ShapeError(f"{shapes}, want (..., heads, length, width) each")
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1] or q.shape[:-3] != k.shape[:-3]:
        raise ShapeError(f"{shapes}, want as many values as keys, and keys as wide as queries")
    if q.rank == 2:
        return
    heads, shared = q.shape[-3], k.shape[-3]
    if heads != shared and (shared == 0 or heads % shared):
        raise ShapeError(f"{shapes}, want a multiple of {shared} query heads")


def _spread(x: Any, name: str, shape: tuple[int, ...]) -> Tensor:
    """A tensor that broadcasts to a shape."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{_NAME}: got {kind_of(x)} for {name}, {wanting(x, 'a Tensor')}")
    if not broadcasts(x.shape, shape):
        raise ShapeError(f"{_NAME}: got a {name} {x.shape}, want one for {shape}")
    return x


def _mask(mask: Any, q: Tensor, keys: int) -> Tensor:
    """A mask in a type that the engine takes."""
    shape = q.shape[:-1] if q.rank > 2 else (1, q.shape[0])
    mask = _spread(mask, "mask", (*shape, keys))
    if mask.dtype in (bool_, q.dtype):
        return mask
    if not mask.dtype.is_float:
        raise DTypeError(f"{_NAME}: got a mask of {mask.dtype.name}, want bools or floats")
    return cast(mask, q.dtype if q.dtype.name == "float64" else float32)


def _counts(x: Any, name: str, batch: tuple[int, ...]) -> Tensor:
    """Numbers of keys, or positions, as int64."""
    x = _spread(x, name, batch)
    if not x.dtype.is_int:
        raise DTypeError(f"{_NAME}: got {name} of {x.dtype.name}, want integers")
    return cast(x, int64)


@public(Attention, precision="short")
def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    lengths: Tensor | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """`softmax(scale * q @ k.T + mask) @ v` (Vaswani et al., 2017; ONNX Attention; the name is
    PyTorch's).

    Computed in blocks, with memory linear in the lengths (Dao et al., 2022), unless a mask takes a
    gradient. A query that may attend to no key gets zeros, where PyTorch gives NaN.

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
        lengths: integers broadcast to the leading axes: how many of the first keys count.
        start: integers broadcast to the leading axes: the position of the first query, so that with
            `is_causal` query i attends to keys 0 to start + i.

    Returns:
        (..., heads, L, Ev), in the memory order of q.

    Raises:
        ShapeError, DTypeError: tensors or a mask that do not fit.
        ValueError: a dropout outside [0, 1); lengths or positions out of range.
    """
    q, k, v = map(floating, promoted((q, k, v)))
    _check(q, k, v)
    if scale is None:
        scale = 1 / math.sqrt(max(q.shape[-1], 1))
    dropout = real(dropout, f"{_NAME}: dropout")
    if not 0 <= dropout < 1:
        raise ValueError(f"{_NAME}: got dropout {dropout}, want 0 <= dropout < 1")
    batch = q.shape[:-3]
    extra = {
        "mask": None if mask is None else _mask(mask, q, k.shape[-2]),
        "lengths": None if lengths is None else _counts(lengths, "lengths", batch),
        "start": None if start is None else _counts(start, "start", batch),
    }
    given = {name: x is not None for name, x in extra.items()}
    rule = Attention(scale, bool(is_causal), dropout if mode.training else 0.0, **given)
    return rule(q, k, v, *(x for x in extra.values() if x is not None))[0]


@public()
@tensors_only("past")
def tensor_scatter(past: Tensor, update: Tensor, start: Tensor, axis: int = -2) -> Tensor:
    """Writes an update into `past` itself, from a position along an axis on (ONNX TensorScatter,
    linear, in place): a cache of keys or values for generation.

    Args:
        past: (N, ..., capacity, ...).
        update: (N, ..., L, ...), in the dtype of `past`.
        start: integers (1,), or (N,): the position for each; a recording reads it at each step.
        axis: the axis of the positions, not the first.

    Returns:
        `past`.

    Raises:
        ShapeError, DTypeError: tensors that do not fit.
        ValueError: a position that does not leave room for L.
        GraphError: tensors whose gradient is recorded, since there is none through the update.
    """
    name = "tensor_scatter"
    if mode.tape and any(map(is_traced, (past, update))):
        have = "a tensor whose gradient is recorded"
        raise GraphError(f"{name}: got {have}, want no_grad or evaluation: it has no gradient")
    if not start.dtype.is_int:
        raise DTypeError(f"{name}: got start of {start.dtype.name}, want integers")
    ops.op(name, axis=whole(axis, f"{name}: axis"))(past, update, cast(start, int64))
    return past


@functools.lru_cache(maxsize=64)
def _frequencies(width: int, base: float) -> np.ndarray:
    """What positions are multiplied by, (width / 2,), float64: from 1 down to about 1 / base."""
    return base ** -(np.arange(0, width, 2, dtype=np.float64) / width)


def _base(value: Any, name: str) -> float:
    base = real(value, f"{name}: base")
    if not 0 < base < math.inf:
        raise ValueError(f"{name}: base: got {value}, want a positive number")
    return base


@public()
def sinusoidal_positions(x: Tensor, offset: int | Tensor = 0, base: float = 10000.0) -> Tensor:
    """`x` plus sines at even and cosines at odd places of the last axis, of the position times
    `base ** (-place / width)` (Vaswani et al., 2017).

    Args:
        x: (..., L, E); integers become float32.
        offset: the position of the first row: an int, or a tensor (1,) of integers, which a
            recording reads again at each step, where it would keep an int.
        base: the ratio of the greatest to the smallest wavelength.

    Raises:
        ShapeError: fewer than 2 axes.
        ValueError, TypeError: an offset that is not an int from 0, a base that is not positive.
    """
    x, name = floating(x), "sinusoidal_positions"
    if x.rank < 2:
        raise ShapeError(f"{name}: got shape {x.shape}, want (..., length, width)")
    length, width = x.shape[-2:]
    base = _base(base, name)
    angles = _angles_at(_positions(offset, length, x, name), width, base)
    table = reshape(stack([angles.sin(), angles.cos()], -1), (length, -1))
    return x + cast(table[:, :width], x.dtype)


def _positions(first: int | Tensor, count: int, like: Tensor, name: str) -> Tensor:
    """The positions from a first one on, (count,), int64, on the device of `like`."""
    if isinstance(first, Tensor):
        return _following(first, count, name)
    return ops.arange(count, like, start=_first(first, name))


def _following(first: Tensor, count: int, name: str) -> Tensor:
    """As `_positions`, from one that a recording reads again at each step."""
    if first.shape != (1,) or not first.dtype.is_int:
        have = f"a first position of shape {first.shape} and {first.dtype.name}"
        raise ShapeError(f"{name}: got {have}, want one integer of shape (1,)")
    return ops.add(cast(first, int64), _positions(0, count, first, name))


def _angles_at(positions: Tensor, width: int, base: float) -> Tensor:
    """Positions (..., L) times frequencies, (..., L, width / 2), in float64."""
    at = cast(positions, float64)
    frequencies = _core.from_numpy(_frequencies(width, base), at.device)
    frequencies.requires_grad = False
    return reshape(at, (*at.shape, 1)) * frequencies


def _first(offset: Any, name: str) -> int:
    first = whole(offset, f"{name}: offset")
    if not 0 <= first < 2**31:
        raise ValueError(f"{name}: offset: got {offset}, want an int from 0 to 2**31 - 1")
    return first


def _turns(x: Tensor, positions: Any, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles of positions, (..., L, E / 2)."""
    (length, width), name = x.shape[-2:], "rotary_embedding"
    is_first = not isinstance(positions, Tensor)
    if is_first or (positions.shape == (1,) and length != 1 and positions.dtype.is_int):
        positions = _positions(positions, length, x, name)
    if not positions.rank or positions.shape[-1] != length:
        have = f"positions of shape {positions.shape} beside {x.shape}"
        raise ShapeError(f"{name}: got {have}, want (..., {length})")
    angles = _angles_at(positions, width, base)
    return cast(angles.cos(), x.dtype), cast(angles.sin(), x.dtype)


@public()
def rotary_embedding(
    x: Tensor, positions: int | Tensor = 0, base: float = 10000.0, interleaved: bool = False
) -> Tensor:
    """Pairs of elements of the last axis turned by the position times `base ** (-2 i / E)` for
    pair i (Su et al., 2021; ONNX RotaryEmbedding).

    Args:
        x: (..., L, E) with an even E; integers become float32.
        positions: that of the first row, an int or a tensor (1,) of integers, or a tensor
            (..., L) of all; a recording reads tensors again at each step, where it would keep an
            int.
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
