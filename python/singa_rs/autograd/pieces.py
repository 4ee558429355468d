"""Slices replaced, places in flattened tensors, partial orders, polynomials, rounding to decimals,
bounds on one side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_shape, device_of
from ..tensor.numbers import whole
from ..tensor.placing import row_major
from . import ops
from .angles import clamp
from .casting import convert, promoted
from .classification import checked
from .index import as_indices, getitem
from .precision import rounded_once
from .reduce import as_axes
from .scattering import index_copy
from .shape import back_broadcast, cat, clone, expand
from .sorting import argsort, sort
from .table import as_method, public
from .unary import FUNCTIONS as UNARY
from .views import broadcasts


def _part(op: str, x: Tensor, source: Any, shape: tuple[int, ...]) -> Tensor:
    """A source in the dtype of `x`, broadcast to the shape of a part of it."""
    made = convert(as_tensor(source, x.device, x.dtype), x.dtype)
    if not broadcasts(made.shape, shape):
        raise ShapeError(f"{op}: got a source of shape {made.shape} for a part of {shape}")
    return made if made.shape == shape else expand(made, shape)


@public(methods="slice_scatter")
def slice_scatter(
    x: Tensor,
    source: Any,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy of `x` with a source in the place of `x[start:end:step]` along an axis (PyTorch
    slice_scatter). Both get gradients.

    Args:
        x: any shape but (), any dtype.
        source: a shape that broadcasts to that of the slices.
        axis: the axis.
        start, end, step: as in Python's slices; a step from 1.

    Raises:
        ShapeError: a source that does not fit.
        ValueError: an axis that `x` does not have; a step below 1.
    """
    (along,) = as_axes(whole(axis, "slice_scatter: axis"), x.rank, "slice_scatter")
    by = whole(step, "slice_scatter: step")
    if by < 1:
        raise ValueError(f"slice_scatter: got step {by}, want at least 1")
    first, last = (n if n is None else whole(n, "slice_scatter: start, end") for n in (start, end))
    places = range(*slice(first, last, by).indices(x.shape[along]))
    shape = (*x.shape[:along], len(places), *x.shape[along + 1 :])
    given = _part("slice_scatter", x, source, shape)
    if not len(places):
        return clone(x)
    if by > 1:
        return index_copy(x, along, list(places), given)
    before = (slice(None),) * along
    outside = [slice(places.start), slice(places.stop, None)]
    kept = [getitem(x, (*before, cut)) for cut in outside]
    return cat([kept[0], given, kept[1]], along)


@public(methods="select_scatter")
def select_scatter(x: Tensor, source: Any, axis: int, index: int) -> Tensor:
    """A copy of `x` with a source in the place of one slice along an axis (PyTorch select_scatter).
    Both get gradients.

    Raises:
        ShapeError: a source that does not fit.
        ValueError: an axis or a slice that `x` does not have.
    """
    (along,) = as_axes(whole(axis, "select_scatter: axis"), x.rank, "select_scatter")
    at, extent = whole(index, "select_scatter: index"), x.shape[along]
    if not -extent <= at < extent:
        raise ValueError(f"select_scatter: got index {at} for an axis of {extent}")
    given = _part("select_scatter", x, source, (*x.shape[:along], *x.shape[along + 1 :]))
    return slice_scatter(x, given.unsqueeze(along), along, at % extent, at % extent + 1)


# ---- places --------------------------------------------------------------------------------------


@public()
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """The places along each axis of a shape, int64, of indices into the flattened tensor (NumPy
    unravel_index, PyTorch unravel_index).

    Raises:
        ValueError: an index out of range or with a fraction, when it is used.
    """
    to = as_shape(shape)
    places = checked("unravel_index", as_indices(indices, "unravel_index"), math.prod(to))
    made = []
    for step, extent in zip(row_major(to), to, strict=True):
        one = ops.scalar_op("floor_divide", step)(places) if step != 1 else places
        made.append(ops.scalar_op("remainder", extent)(one))
    for one in made:
        one.requires_grad = False
    return tuple(made)


@public()
def ravel_multi_index(indices: Sequence[Any], shape: Any) -> Tensor:
    """Indices into the flattened tensor, int64, of places along each axis of a shape (NumPy
    ravel_multi_index).

    Raises:
        ShapeError: not one tensor of places for each axis, or shapes that do not broadcast.
        ValueError: a place out of range or with a fraction, when it is used.
    """
    to = as_shape(shape)
    if isinstance(indices, (str, Tensor)) or len(indices) != len(to) or not to:
        raise ShapeError(f"ravel_multi_index: got {indices!r} for {to}, want places for each axis")
    made, device = None, device_of(indices)
    for one, step, extent in zip(indices, row_major(to), to, strict=True):
        given = as_indices(one, "ravel_multi_index", device)
        places = checked("ravel_multi_index", given, extent)
        places = ops.scalar_op("mul", step)(places)
        made = places if made is None else ops.add(made, places)
    made.requires_grad = False
    return made


@public()
def partition(x: Tensor, kth: int, axis: int | None = -1) -> Tensor:
    """The elements along an axis so that the one at `kth` is where sorting puts it, smaller ones
    before it, greater ones behind it (NumPy partition): all are sorted.

    Raises:
        ValueError: an axis or a place that `x` does not have.
    """
    return sort(x, _kept("partition", x, kth, axis))[0]


@public()
def argpartition(x: Tensor, kth: int, axis: int | None = -1) -> Tensor:
    """The indices of `partition`, int64 (NumPy argpartition).

    Raises:
        ValueError: an axis or a place that `x` does not have.
    """
    return argsort(x, _kept("argpartition", x, kth, axis))


def _kept(op: str, x: Tensor, kth: int, axis: int | None) -> int | None:
    at, extent = whole(kth, f"{op}: kth"), x.numel
    if axis is not None:
        (axis,) = as_axes(whole(axis, f"{op}: axis"), x.rank, op)
        extent = x.shape[axis]
    if not -extent <= at < extent:
        raise ValueError(f"{op}: got kth {at} for an axis of {extent}, want one in it")
    return axis


# ---- values --------------------------------------------------------------------------------------


@public()
@rounded_once
def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with the coefficients `p`, (n,), the highest power first, at `x` (NumPy
    polyval): n - 1 products and sums (Horner).

    Raises:
        ShapeError: coefficients of another number of dimensions.
    """
    p, x = promoted((p, x))
    if p.rank != 1:
        raise ShapeError(f"polyval: got coefficients of shape {p.shape}, want a vector")
    if not p.numel:
        return x * 0
    made = expand(p[0], x.shape)
    for i in range(1, p.numel):
        made = made * x + p[i]
    return clone(made) if p.numel == 1 else made


@public(methods="around")
@rounded_once
def around(x: Tensor, decimals: int = 0) -> Tensor:
    """Rounded half to even at a number of decimals (NumPy around); the gradient is 0. Integers stay
    for decimals from 0.

    Raises:
        ValueError: more than 22 decimals either way, beyond which powers of 10 are not exact.
    """
    places = whole(decimals, "around: decimals")
    if abs(places) > 22:
        raise ValueError(f"around: got decimals {places}, want -22 to 22")
    if not x.dtype.is_float:
        if places < 0:
            raise ValueError(f"around: got decimals {places} for {x.dtype.name}, want at least 0")
        return clone(x)
    if not places:
        return UNARY["rounde"](x)
    factor = 10.0 ** abs(places)
    if places > 0:
        return UNARY["rounde"](x * factor) / factor
    return UNARY["rounde"](x / factor) * factor


@public(methods="clamp_min")
def clamp_min(x: Tensor, min: Any) -> Tensor:
    """`x`, and a bound where it is less (PyTorch clamp_min); see `clamp`."""
    return clamp(x, min, None)


@public(methods="clamp_max")
def clamp_max(x: Tensor, max: Any) -> Tensor:
    """`x`, and a bound where it is greater (PyTorch clamp_max); see `clamp`."""
    return clamp(x, None, max)


@as_method("sum_to_size")
def _sum_to_size(self: Tensor, *shape: Any) -> Tensor:
    """The sum over what broadcasting a shape to that of the tensor repeats (PyTorch sum_to_size).

    Raises:
        ShapeError: a shape that does not broadcast to that of the tensor.
    """
    to = as_shape(shape[0] if len(shape) == 1 else shape)
    return back_broadcast(self.shape, to, self)


@as_method("round")
def _round(self: Tensor, decimals: int = 0) -> Tensor:
    """Rounded half to even at a number of decimals (NumPy round, PyTorch round); the gradient is 0.
    (`autograd.round` is SINGA's, half away from zero.)"""
    return around(self, decimals)
