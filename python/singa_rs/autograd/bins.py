"""Membership, intervals and counts in intervals; integrals up to each sample; correlation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core import ShapeError, float64
from ..refusals import is_integral, strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.creation import from_numpy
from ..tensor.numbers import as_array, real, whole
from . import ops
from .arrange import flip
from .casting import cast, floating
from .finite import isnan
from .index import getitem, where
from .precision import rounded_once
from .reduce import as_axes
from .running import convolve, vectors
from .scan import cumsum
from .searching import comparable, read, searchsorted
from .segments import Total, counts
from .shape import plain_reshape
from .sorting import sort
from .table import public

#: Up to how many values each element is compared with all of them.
_FEW = 16


@public(methods="isin")
def isin(x: Tensor, values: Any, *, invert: bool = False) -> Tensor:
    """Whether each element is among values, bool (NumPy isin, PyTorch isin); NaN never is.

    Args:
        x: any shape and dtype.
        values: a tensor, an array or a list, of any shape.
        invert: whether it is not.
    """
    opposite = strict_flag(invert, "isin: invert")
    x, among = comparable(x, values)
    among = ops.reshape(among, (among.numel,))
    equal = ops.op("binary", f="eq")
    if not among.numel:
        made = ops.op("fill", device=x.device, value=0, shape=x.shape, dtype="bool")()
    elif among.numel <= _FEW:
        each = equal(ops.reshape(x, (*x.shape, 1)), among)
        made = ops.reduce_op("any", (x.rank,), False)(each)
    else:
        ordered = sort(among, 0)[0]
        places = ops.scalar_op("minimum", among.numel - 1)(searchsorted(ordered, x))
        made = equal(ops.op("gather", axis=0)(ordered, places), x)
    made = ops.op("unary", f="not")(made) if opposite else made
    made.requires_grad = False
    return made


@public(methods="digitize")
def digitize(x: Tensor, bins: Any, right: bool = False) -> Tensor:
    """Which interval between sorted bounds each element is in, int64 (NumPy digitize): i where
    `bins[i - 1] <= x < bins[i]`, with the bound on the other side if `right`; for descending bounds
    the other way round.

    Args:
        x: any shape.
        bins: (n,), ascending or descending, which is not checked for a tensor.
        right: which bound belongs to an interval.

    Raises:
        ShapeError: more than one dimension.
        ValueError: an array that is not sorted.
    """
    side = "left" if strict_flag(right, "digitize: right") else "right"
    if not isinstance(bins, Tensor):
        array = as_array(bins, "digitize: bins")
        steps = np.diff(array) if array.ndim == 1 else np.zeros(0)
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ValueError(f"digitize: got bins {bins}, want them sorted")
    bounds = as_tensor(bins, x.device).detach()
    if bounds.rank != 1:
        raise ShapeError(f"digitize: got bins of shape {bounds.shape}, want one dimension")
    if bounds.numel < 2:
        return searchsorted(bounds, x, side)
    back = flip(bounds, 0)
    falls = bounds[0] > bounds[-1]
    found = searchsorted(where(falls, back, bounds), x, side)
    made = where(falls, bounds.numel - found, found)
    made.requires_grad = False
    return made


def _edges(x: Tensor, bins: Any, bounds: Any) -> Tensor:
    """The bounds of intervals, float64."""
    if not is_integral(bins):
        made = cast(as_tensor(bins, x.device, float64), float64).detach()
        if made.rank != 1 or made.numel < 2:
            raise ShapeError(f"histogram: got bins of shape {made.shape}, want two bounds at least")
        return made
    count = whole(bins, "histogram: bins")
    if count < 1:
        raise ValueError(f"histogram: got {count} bins, want at least 1")
    if bounds is None:
        array = read("histogram", x, "give bounds").astype(np.float64)
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 1.0)
    else:
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise ValueError(f"histogram: got range {bounds!r}, want two numbers")
        low, high = (real(one, "histogram: range") for one in bounds)
    if not (low <= high and math.isfinite(high - low)):
        raise ValueError(f"histogram: got range {low} to {high}, want finite numbers in order")
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    edges = from_numpy(np.linspace(low, high, count + 1), x.device, float64)
    # Rounded as the elements are.
    return cast(cast(edges, x.dtype), float64) if x.dtype.is_float else edges


@public(methods="histogram")
def histogram(
    x: Tensor,
    bins: Any = 10,
    range: Any = None,  # NumPy's name
    density: bool = False,
    weights: Any = None,
) -> tuple[Tensor, Tensor]:
    """How many elements are in each interval, int64, and the bounds of the intervals, float64
    (NumPy histogram). The last interval has both of its bounds; what is outside of all, and NaN,
    does not count.

    Args:
        x: any shape; it gets no gradient.
        bins: how many equal intervals, or their ascending bounds, (n,), which is not checked.
        range: the outer bounds of equal intervals; by default the least and the greatest element,
            which are read.
        density: whether counts are divided by their sum and the extents of the intervals: float64.
        weights: what each element counts, of the shape of `x`; floats, which get gradients.

    Raises:
        ShapeError: bounds or weights of another shape.
        ValueError: fewer than one interval; bounds that are not finite, or in the wrong order.
        GraphError: a tensor that is only recorded, without bounds.
    """
    is_density, edges = strict_flag(density, "histogram: density"), _edges(x, bins, range)
    edges.requires_grad = False
    size = edges.numel - 1
    flat = cast(plain_reshape(x.detach(), (x.numel,)), float64)
    found = ops.scalar_op("sub", 1)(searchsorted(edges, flat, "right"))
    is_last = ops.op("binary", f="eq")(flat, edges[-1])
    found = ops.where(is_last, ops.full((), size - 1, found), found)
    inside = ops.op("binary", f="and")(
        ops.scalar_op("ge", 0)(found), ops.scalar_op("lt", size)(found)
    )
    inside = ops.op("binary", f="and")(inside, ops.op("unary", f="not")(isnan(flat)))
    places = ops.where(inside, found, ops.full((), size, found))
    places.requires_grad = False
    made = getitem(_counted(x, places, size + 1, weights), slice(size))
    if is_density:
        made = cast(made, float64)
        made = made / (edges[1:] - edges[:-1]) / made.sum()
    return made, edges


def _counted(x: Tensor, places: Tensor, size: int, weights: Any) -> Tensor:
    if weights is None:
        made = counts(places, size)
        made.requires_grad = False
        return made
    given = floating(as_tensor(weights, x.device))
    if given.shape != x.shape:
        shapes = f"weights of shape {given.shape} for {x.shape}"
        raise ShapeError(f"histogram: got {shapes}, want equal shapes")
    return Total(places, size)(plain_reshape(given, (x.numel,)))[0]


@public()
@rounded_once
def cumulative_trapezoid(y: Tensor, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral of samples by trapezoids up to each one but the first (PyTorch
    cumulative_trapezoid).

    Args:
        y: any shape but (); integers become float32.
        x: where the samples are: a vector along the axis.
        dx: how far apart they are, without `x`.
        axis: the axis of the samples.

    Raises:
        ShapeError: places that do not fit.
        ValueError: an axis that `y` does not have.
    """
    name, y = "cumulative_trapezoid", floating(y)
    (along,) = as_axes(whole(axis, f"{name}: axis"), y.rank, name)
    before, step = (slice(None),) * along, real(dx, f"{name}: dx")
    sums = getitem(y, (*before, slice(1, None))) + getitem(y, (*before, slice(-1)))
    if x is None:
        return cumsum(sums * (step / 2), along)
    at = cast(as_tensor(x, y.device, y.dtype), y.dtype)
    if at.shape != (y.shape[along],):
        raise ShapeError(f"{name}: got {y.shape}, places {at.shape}, want one for each sample")
    steps = plain_reshape(at[1:] - at[:-1], (max(at.numel - 1, 0), *(1,) * (y.rank - along - 1)))
    return cumsum(sums * steps / 2, along)


@public(precision="short")
def correlate(a: Tensor, v: Any, mode: str = "valid") -> Tensor:
    """The sums of products of a vector with another one at each shift (NumPy correlate).

    Args:
        a, v: (n,) and (m,), not empty.
        mode: "full", n + m - 1 elements; "same", as many as the longer one has; "valid", those
            where both overlap wholly.

    Raises:
        ShapeError: other shapes.
        ValueError: another mode.
    """
    a, v = vectors("correlate", a, v, mode)
    if a.numel >= v.numel:
        return convolve(a, flip(v, 0), mode)
    return flip(convolve(v, flip(a, 0), mode), 0)
