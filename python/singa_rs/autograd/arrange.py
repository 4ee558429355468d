"""Rearranging elements: flipping, rolling, diagonals, triangles, grids, differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import ShapeError, bool_
from ..refusals import flag
from ..tensor import Tensor, as_tensor
from ..tensor.creation import device_of
from ..tensor.numbers import whole, wholes
from . import ops
from .casting import promoted
from .index import getitem
from .reduce import Axes, as_axes, reduce_sum
from .rule import Rule
from .shape import cat, clone, expand, plain_reshape, transpose
from .table import public


@public(methods="flip")
def flip(x: Tensor, axis: Axes = None) -> Tensor:
    """A view with the elements in the opposite order along `axis`, one or several, all by default
    (NumPy flip).

    Raises:
        ValueError: an axis that `x` does not have.
    """
    over = as_axes(axis, x.rank, "flip")
    turned = tuple(slice(None, None, -1 if i in over else None) for i in range(x.rank))
    return getitem(x, turned)


@public(methods="roll")
def roll(x: Tensor, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements moved by `shift` places along `axis`; what leaves an axis at its end comes in at
    its beginning (NumPy roll).

    Args:
        x: any shape.
        shift: a number, or one for each axis; negative ones move towards the beginning.
        axis: one or several; None rolls the flattened tensor, and restores its shape.

    Raises:
        ValueError: an axis that `x` does not have; shifts and axes of different numbers.
    """
    if axis is None:
        flat = roll(plain_reshape(x, (x.numel,)), sum(wholes(shift, "roll: shift")), 0)
        return plain_reshape(flat, x.shape)
    shifts, axes = wholes(shift, "roll: shift"), wholes(axis, "roll: axis")
    if len(shifts) != len(axes) and len(shifts) > 1:
        raise ValueError(f"roll: got {len(shifts)} shifts for {len(axes)} axes, want as many")
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    for by, along in zip(shifts, axes, strict=True):
        (along,) = as_axes(along, x.rank, "roll")
        cut = -by % x.shape[along] if x.shape[along] else 0
        before = (slice(None),) * along
        parts = [getitem(x, (*before, slice(cut, None))), getitem(x, (*before, slice(cut)))]
        x = cat(parts, along)
    return x if axes else clone(x)


@public(methods="outer")
def outer(a: Tensor, b: Any) -> Tensor:
    """The products of all elements of `a` with all of `b`, (n, m); both are flattened (NumPy
    outer)."""
    a, b = promoted((a, b))
    return plain_reshape(a, (a.numel, 1)) * plain_reshape(b, (1, b.numel))


@public(methods="diagonal")
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of two axes, as the last axis of the result (NumPy diagonal): a view where all
    rows of the two axes, or all columns, follow one another in memory, as those of a row-major
    matrix and of its transpose do, else a copy.

    Args:
        x: two dimensions or more.
        offset: above the main diagonal if positive, else below.
        axis1, axis2: the axes of the rows and of the columns.

    Raises:
        ValueError: axes that `x` does not have, or that are the same.
    """
    first, second = (whole(axis, "diagonal: axis") for axis in (axis1, axis2))
    pair = as_axes((first, second), x.rank, "diagonal")
    rest = [i for i in range(x.rank) if i not in pair]
    offset = whole(offset, "diagonal: offset")
    if abs(x.strides[pair[0]]) < abs(x.strides[pair[1]]):
        pair, offset = pair[::-1], -offset
    x = transpose(x, [*rest, *pair])
    *outside, n, m = x.shape
    start, count = (offset, m - offset) if offset >= 0 else (-offset * m, n + offset)
    count = max(0, min(count, n, m))
    stop = start + (count - 1) * (m + 1) + 1
    flat = plain_reshape(x, (*outside, n * m))
    return getitem(flat, (..., slice(start, stop, m + 1) if count else slice(0, 0)))


@public(methods="trace")
def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal (NumPy trace); integers give int64. Arguments and errors are as in
    `diagonal`."""
    return reduce_sum(diagonal(x, offset, axis1, axis2), -1, False)


class Triangle(Rule):
    """One triangle of matrices, zeros in the other (ONNX Trilu)."""

    def __init__(self, upper: bool, k: int) -> None:
        self.upper = flag(upper, "triu: upper")
        self.k = whole(k, "triu: k" if upper else "tril: k")

    def forward(self, x: Tensor) -> Tensor:
        name, shape = "triu" if self.upper else "tril", x.shape
        if len(shape) < 2:
            raise ShapeError(f"{name}: got shape {shape}, want two dimensions or more")
        return self._part(x, *shape[-2:])

    def _part(self, x: Tensor, rows: int, columns: int) -> Tensor:
        across = ops.arange(columns, x)
        k = max(-rows, min(self.k, columns))
        down = ops.arange(rows, x, start=k)
        compare = ops.op("binary", f="ge" if self.upper else "le")
        return ops.where(compare(across, ops.reshape(down, (rows, 1))), x, ops.full((), 0, x))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """That triangle of `dy`."""
        return (self._part(dys[0], *dys[0].shape[-2:]),)


@public(Triangle, methods="tril")
def tril(x: Tensor, k: int = 0) -> Tensor:
    """The lower triangles of matrices, the last two axes, with zeros above diagonal `k` (NumPy
    tril, ONNX Trilu); of any dtype.

    Raises:
        ShapeError: fewer than two dimensions.
    """
    return Triangle(False, k)(x)[0]


@public(methods="triu")
def triu(x: Tensor, k: int = 0) -> Tensor:
    """The upper triangles of matrices, the last two axes, with zeros below diagonal `k` (NumPy
    triu, ONNX Trilu); of any dtype.

    Raises:
        ShapeError: fewer than two dimensions.
    """
    return Triangle(True, k)(x)[0]


@public()
def meshgrid(*xs: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor for each vector (NumPy meshgrid).

    Args:
        xs: vectors, or single numbers.
        indexing: "ij": axis `i` of the results is that of vector `i`; "xy": the first two axes are
            exchanged.

    Raises:
        ShapeError: a tensor of more than one dimension.
        ValueError: another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: got indexing {indexing!r}, want 'xy' or 'ij'")
    given = [as_tensor(x, device_of(xs)) for x in xs]
    for x in given:
        if x.rank > 1:
            raise ShapeError(f"meshgrid: got shape {x.shape}, want vectors")
    order = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        order[:2] = 1, 0
    shape = [given[i].numel for i in order]
    made = []
    for i, x in enumerate(given):
        place = order.index(i)
        column = (1,) * place + (x.numel,) + (1,) * (len(given) - place - 1)
        made.append(clone(expand(plain_reshape(x, column), shape)))
    return tuple(made)


@public(methods="diff")
def diff(x: Tensor, n: int = 1, axis: int = -1) -> Tensor:
    """The differences of neighbours along an axis, taken `n` times (NumPy diff). Of bools it is
    whether they differ.

    Raises:
        ValueError: an axis that `x` does not have; a negative `n`.
    """
    (along,) = as_axes(whole(axis, "diff: axis"), x.rank, "diff")
    times = whole(n, "diff: n")
    if times < 0:
        raise ValueError(f"diff: got n {times}, want at least 0")
    before = (slice(None),) * along
    for _ in range(min(times, x.shape[along])):
        a, b = getitem(x, (*before, slice(1, None))), getitem(x, (*before, slice(-1)))
        x = a != b if x.dtype == bool_ else a - b
    return x
