"""Moving, adding and joining axes; turning matrices; parts of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import ShapeError
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_shape, device_of
from ..tensor.numbers import whole, wholes
from .arrange import flip
from .index import getitem
from .reduce import as_axes
from .repeat import tile
from .shape import cat, clone, expand, plain_reshape, split, transpose
from .table import as_method, public
from .views import broadcast


@public(methods="moveaxis")
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with axes moved to other places, the others in their order (NumPy moveaxis).

    Raises:
        ValueError: axes that `x` does not have, or different numbers of them.
    """
    from_ = as_axes(wholes(source, "moveaxis: source"), x.rank, "moveaxis")
    to = as_axes(wholes(destination, "moveaxis: destination"), x.rank, "moveaxis")
    if len(from_) != len(to):
        raise ValueError(f"moveaxis: got {len(from_)} sources, {len(to)} destinations, want equal")
    order = [i for i in range(x.rank) if i not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


@public(methods="swapaxes")
def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """A view with two axes exchanged (NumPy swapaxes).

    Raises:
        ValueError: axes that `x` does not have.
    """
    (a,) = as_axes(whole(axis1, "swapaxes: axis1"), x.rank, "swapaxes")
    (b,) = as_axes(whole(axis2, "swapaxes: axis2"), x.rank, "swapaxes")
    order = list(range(x.rank))
    order[a], order[b] = b, a
    return transpose(x, order)


@public(methods="broadcast_to")
def broadcast_to(x: Tensor, shape: int | Sequence[int]) -> Tensor:
    """A view in a shape that `x` broadcasts to (NumPy broadcast_to).

    Raises:
        ShapeError: a shape that it does not broadcast to.
    """
    to = as_shape(shape)
    try:
        fits = np.broadcast_shapes(x.shape, to) == to
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"broadcast_to: got shape {x.shape} for {to}, want one that broadcasts")
    return expand(x, to)


@public()
def broadcast_tensors(*xs: Tensor) -> tuple[Tensor, ...]:
    """Views of tensors in the shape that all broadcast to (PyTorch broadcast_tensors).

    Raises:
        ShapeError: there is none.
    """
    to: tuple[int, ...] = ()
    for x in xs:
        to = broadcast(to, x.shape)
    return tuple(expand(x, to) for x in xs)


@public(methods="rot90")
def rot90(x: Tensor, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """A view turned by 90 degrees `k` times, from the first axis towards the second (NumPy rot90).

    Raises:
        ValueError: axes that `x` does not have, or not two of them.
    """
    over = as_axes(wholes(axes, "rot90: axes"), x.rank, "rot90")
    if len(over) != 2:
        raise ValueError(f"rot90: got axes {over}, want two")
    first, second = over
    turns = whole(k, "rot90: k") % 4
    x = flip(x, second) if turns == 1 else flip(x, first) if turns == 3 else x
    return flip(x, over) if turns == 2 else swapaxes(x, first, second) if turns else clone(x)


@public(methods="fliplr")
def fliplr(x: Tensor) -> Tensor:
    """A view with the columns in the opposite order (NumPy fliplr).

    Raises:
        ValueError: fewer than two dimensions.
    """
    return _flipped("fliplr", x, 1)


@public(methods="flipud")
def flipud(x: Tensor) -> Tensor:
    """A view with the rows in the opposite order (NumPy flipud).

    Raises:
        ValueError: no dimension.
    """
    return _flipped("flipud", x, 0)


def _flipped(op: str, x: Tensor, axis: int) -> Tensor:
    if x.rank <= axis:
        raise ShapeError(f"{op}: got shape {x.shape}, want {axis + 1} dimensions at least")
    return flip(x, axis)


def _raised(x: Tensor, rank: int) -> Tensor:
    """A view of `rank` dimensions at least; a vector is a row of matrices."""
    have = x.shape
    if len(have) >= rank:
        return x
    if rank == 3:
        return plain_reshape(x, (1, *have, 1) if len(have) == 1 else (*((1, 1) + have)[-2:], 1))
    return plain_reshape(x, (1,) * (rank - len(have)) + have)


@public(methods="atleast_1d")
def atleast_1d(x: Tensor) -> Tensor:
    """A view of one dimension at least (NumPy atleast_1d)."""
    return _raised(x, 1)


@public(methods="atleast_2d")
def atleast_2d(x: Tensor) -> Tensor:
    """A view of two dimensions at least; a vector is a row (NumPy atleast_2d)."""
    return _raised(x, 2)


@public(methods="atleast_3d")
def atleast_3d(x: Tensor) -> Tensor:
    """A view of three dimensions at least: (n,) is (1, n, 1) and (n, m) is (n, m, 1) (NumPy
    atleast_3d)."""
    return _raised(x, 3)


def _tensors(op: str, xs: Any) -> list[Tensor]:
    made = [as_tensor(x, device_of(xs)) for x in xs]
    if not made:
        raise ShapeError(f"{op}: got no tensors, want at least one")
    return made


@public()
def hstack(xs: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along the second axis, vectors along the first (NumPy hstack).

    Raises:
        ShapeError: no tensors, or shapes that do not fit.
    """
    made = [_raised(x, 1) for x in _tensors("hstack", xs)]
    return cat(made, 0 if made[0].rank == 1 else 1)


@public()
def vstack(xs: Sequence[Tensor]) -> Tensor:
    """Tensors below each other: along the first axis; vectors are rows (NumPy vstack).

    Raises:
        ShapeError: no tensors, or shapes that do not fit.
    """
    return cat([_raised(x, 2) for x in _tensors("vstack", xs)], 0)


@public()
def dstack(xs: Sequence[Tensor]) -> Tensor:
    """Tensors behind each other: along the third axis, which is new for matrices (NumPy dstack).

    Raises:
        ShapeError: no tensors, or shapes that do not fit.
    """
    return cat([_raised(x, 3) for x in _tensors("dstack", xs)], 2)


@public()
def column_stack(xs: Sequence[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix; matrices side by side (NumPy column_stack).

    Raises:
        ShapeError: no tensors, or shapes that do not fit.
    """
    given = _tensors("column_stack", xs)
    return cat([plain_reshape(x, (x.numel, 1)) if x.rank < 2 else x for x in given], 1)


@public(methods="chunk")
def chunk(x: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of at most `chunks` parts along an axis, all of one size but the last (PyTorch chunk).

    Raises:
        ValueError: fewer than one part; an axis that `x` does not have.
    """
    count = whole(chunks, "chunk: chunks")
    (along,) = as_axes(whole(axis, "chunk: axis"), x.rank, "chunk")
    if count < 1:
        raise ValueError(f"chunk: got {count} chunks, want at least 1")
    extent = x.shape[along]
    size = max(-(-extent // count), 1)
    sizes = [min(size, extent - start) for start in range(0, extent, size)]
    return split(x, along, sizes or [0])


@public(methods="unbind")
def unbind(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of all slices along an axis, without it (PyTorch unbind).

    Raises:
        ValueError: an axis that `x` does not have.
    """
    (along,) = as_axes(whole(axis, "unbind: axis"), x.rank, "unbind")
    before = (slice(None),) * along
    return tuple(getitem(x, (*before, i)) for i in range(x.shape[along]))


@public(methods="narrow")
def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """A view of `length` slices along an axis from `start` on (PyTorch narrow).

    Raises:
        ValueError: slices or an axis that `x` does not have.
    """
    (along,) = as_axes(whole(axis, "narrow: axis"), x.rank, "narrow")
    first, count, extent = whole(start, "narrow: start"), whole(length, "narrow: length"), x.shape
    first += extent[along] if first < 0 else 0
    if count < 0 or not 0 <= first <= extent[along] - count:
        got = f"start {start}, length {length} for an axis of {extent[along]}"
        raise ValueError(f"narrow: got {got}, want slices that there are")
    return getitem(x, ((slice(None),) * along) + (slice(first, first + count),))


@public(methods="unflatten")
def unflatten(x: Tensor, axis: int, sizes: Sequence[int]) -> Tensor:
    """A view with one axis as several of these extents, one of which may be -1 (PyTorch
    unflatten).

    Raises:
        ShapeError: extents that do not fit.
        ValueError: an axis that `x` does not have.
    """
    (along,) = as_axes(whole(axis, "unflatten: axis"), x.rank, "unflatten")
    to, have = wholes(sizes, "unflatten: sizes"), x.shape
    rest = [n for n in to if n != -1]
    inner = int(np.prod(rest, dtype=object)) if rest else 1
    missing = have[along] // inner if inner > 0 else 0
    found = tuple(missing if n == -1 else n for n in to)
    total = int(np.prod(found, dtype=object)) if found else 1
    if to.count(-1) > 1 or any(n < -1 for n in to) or total != have[along] or not to:
        raise ShapeError(f"unflatten: got {to} for an axis of {have[along]}, want its extent")
    return plain_reshape(x, (*have[:along], *found, *have[along + 1 :]))


@as_method("tile")
def _tile(self: Tensor, *repeats: Any) -> Tensor:
    """The tensor `repeats` times along each axis; more repeats than axes add axes (NumPy tile,
    ONNX Tile)."""
    return tile(self, repeats[0] if len(repeats) == 1 else repeats)


@as_method("permute")
def _permute(self: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """A view with the axes in another order (PyTorch permute, ONNX Transpose).

    Raises:
        TypeError: `axes`, and `dims` too.
    """
    if axes and dims is not None:
        raise TypeError("permute: got both axes and dims, want one of them")
    axes = axes if dims is None else (dims,)
    many = len(axes) == 1 and not isinstance(axes[0], int)
    return transpose(self, axes[0] if many else axes)
