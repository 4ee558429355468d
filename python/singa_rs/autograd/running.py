"""Running extremes and sums of exponentials, differences and integrals of samples, convolution and
interpolation of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import ShapeError, float64, int64
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import real, whole
from . import ops
from .along import take_along_axis
from .arrange import flip
from .blocks import BLOCK
from .casting import cast, floating, promoted
from .convolution import conv
from .finite import isfinite, isnan
from .index import as_indices, gather, getitem, where
from .matmul import matmul
from .pairs import logaddexp
from .precision import rounded_once
from .quantiles import between
from .reduce import as_axes, reduce_sum
from .repeat import pad
from .results import ValuesIndices
from .scan import of_scalars
from .searching import searchsorted
from .shape import apart, cat, plain_reshape
from .table import public
from .terms import wide


def _doubling(x: Tensor, along: int, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """All elements up to each one joined: with 1, 2, 4, ... neighbours in turn."""
    before, step = (slice(None),) * along, 1
    while step < x.shape[along]:
        later = getitem(x, (*before, slice(step, None)))
        earlier = getitem(x, (*before, slice(None, -step)))
        x = cat([getitem(x, (*before, slice(step))), join(earlier, later)], along)
        step *= 2
    return x


def _keys(x: Tensor, is_min: bool) -> Tensor:
    """Numbers whose greatest are the greatest elements, or the least."""
    keys = x if x.dtype.is_float else cast(x, int64)
    if is_min:  # -n - 1 exists of every integer
        keys = ops.op("unary", f="neg")(keys)
        keys = keys if x.dtype.is_float else ops.scalar_op("sub", 1)(keys)
    return keys


def _extreme(op: str, x: Tensor, axis: Any, is_min: bool) -> ValuesIndices:
    """The running maxima, or minima, found at the last place that no element before exceeds."""
    (along,) = as_axes(whole(axis, f"{op}: axis"), x.rank, op)
    keys = _keys(x.detach(), is_min)
    greatest = ops.greatest_so_far(along)
    leads = ops.op("binary", f="ge")(keys, greatest(keys))
    if x.dtype.is_float:  # NaN beats all, and stays
        leads = ops.op("binary", f="or")(leads, ops.op("binary", f="ne")(keys, keys))
    places = ops.arange(x.shape[along], x)
    places = ops.reshape(places, (x.shape[along],) + (1,) * (x.rank - along - 1))
    places = greatest(ops.where(leads, places.view_expand(x.shape), ops.full((), 0, places)))
    places.requires_grad = False
    return ValuesIndices(take_along_axis(x, places, along), places)


@public(methods="cummax")
@of_scalars
def cummax(x: Tensor, axis: int = -1) -> ValuesIndices:
    """The largest of all elements up to each one along an axis, and their indices, int64, of the
    last of equal ones (PyTorch cummax). NaN counts as greater than all numbers.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return _extreme("cummax", x, axis, False)


@public(methods="cummin")
@of_scalars
def cummin(x: Tensor, axis: int = -1) -> ValuesIndices:
    """The smallest of all elements up to each one along an axis, and their indices, int64, of the
    last of equal ones (PyTorch cummin). NaN counts as less than all numbers.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return _extreme("cummin", x, axis, True)


@public(methods="logcumsumexp")
@rounded_once
@of_scalars
def logcumsumexp(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of the running sum of exponentials along an axis, without overflow (PyTorch
    logcumsumexp); integers become float32.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    (along,) = as_axes(whole(axis, "logcumsumexp: axis"), x.rank, "logcumsumexp")
    return apart(_doubling(floating(x), along, logaddexp), x)


@public()
@rounded_once
def trapezoid(y: Tensor, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral of samples by trapezoids (NumPy trapezoid).

    Args:
        y: any shape but (); integers become float32.
        x: where the samples are: a vector along the axis, or of a shape that broadcasts to `y`.
        dx: how far apart they are, without `x`.
        axis: the axis of the samples.

    Raises:
        ShapeError: places that do not fit.
        ValueError: an axis that `y` does not have.
    """
    y = floating(y)
    (along,) = as_axes(whole(axis, "trapezoid: axis"), y.rank, "trapezoid")
    before, step = (slice(None),) * along, real(dx, "trapezoid: dx")
    sums = getitem(y, (*before, slice(1, None))) + getitem(y, (*before, slice(-1)))
    if x is None:
        return reduce_sum(sums, along, False) * (step / 2)
    at = cast(as_tensor(x, y.device, y.dtype), y.dtype)
    if at.rank == 1:
        at = plain_reshape(at, (at.numel, *(1,) * (y.rank - along - 1)))
    place = along - y.rank + at.rank
    if place < 0 or at.shape[place] != y.shape[along]:
        raise ShapeError(f"trapezoid: got {y.shape}, places {at.shape}, want one for each sample")
    before = (slice(None),) * place
    steps = getitem(at, (*before, slice(1, None))) - getitem(at, (*before, slice(-1)))
    return reduce_sum(sums * steps, along - y.rank, False) / 2


@public()
def gradient(x: Tensor, spacing: float = 1.0, *, axis: Any = None) -> Any:
    """The derivative of samples by central differences, at both ends by one-sided ones (NumPy
    gradient): one tensor for one axis, else a tuple of one for each. (`gradients` differentiates
    what was computed.)

    Args:
        x: any shape but (); integers become float32.
        spacing: how far apart the samples are.
        axis: one axis or several, all by default.

    Raises:
        ShapeError: fewer than two samples.
        ValueError: axes that `x` does not have.
    """
    x, step = floating(x), real(spacing, "gradient: spacing")
    over = as_axes(axis, x.rank, "gradient")
    made = []
    for along in over:
        if x.shape[along] < 2:
            raise ShapeError(f"gradient: got shape {x.shape}, want two samples along axis {along}")
        before = (slice(None),) * along

        def part(*ends: int | None, before: Any = before) -> Tensor:
            return getitem(x, (*before, slice(*ends)))

        ends = part(1, 2) - part(0, 1), part(-1, None) - part(-2, -1)
        inner = (part(2, None) - part(None, -2)) / 2
        made.append(cat([ends[0], inner, ends[1]], along) / step)
    return made[0] if len(made) == 1 else tuple(made)


def vectors(op: str, a: Tensor, v: Any, mode: Any) -> tuple[Tensor, ...]:
    """Two vectors in one dtype, whose shifts are joined in a mode."""
    a, v = promoted((a, v))
    if a.rank != 1 or v.rank != 1 or not a.numel or not v.numel:
        raise ShapeError(f"{op}: got shapes {a.shape}, {v.shape}, want vectors with elements")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{op}: got mode {mode!r}, want 'full', 'same' or 'valid'")
    return a, v


@public()
def convolve(a: Tensor, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors (NumPy convolve).

    Args:
        a, v: (n,) and (m,), not empty.
        mode: "full", n + m - 1 elements; "same", as many as the longer one has; "valid", those
            where both overlap wholly.

    Raises:
        ShapeError: other shapes.
        ValueError: another mode.
    """
    a, v = vectors("convolve", a, v, mode)
    a, v = (a, v) if a.numel >= v.numel else (v, a)
    n, m, made = a.numel, v.numel, _all_shifts(a, v)
    if mode == "full":
        return made
    start, count = ((m - 1) // 2, n) if mode == "same" else (m - 1, n - m + 1)
    return getitem(made, slice(start, start + count))


#: Least elements of a vector's pieces, and how many pieces there are of a long one.
_PIECE, _PIECES = 32, 64


def _all_shifts(a: Tensor, v: Tensor) -> Tensor:
    """The convolution wherever two vectors of one dtype overlap."""
    if a.dtype.is_float:
        return cast(_of_floats(wide(a), wide(v)), a.dtype)
    if a.dtype.itemsize > 1:
        return _of_integers(a, v)
    # float64 holds all sums of such products; the integers between wrap.
    return cast(cast(_of_floats(cast(a, float64), cast(v, float64)), int64), a.dtype)


def _of_floats(a: Tensor, v: Tensor) -> Tensor:
    """The convolution by equal pieces of `v`, and what is left: zeros behind it would make NaN of
    infinities in `a`."""
    size = max(_PIECE, -(-v.numel // _PIECES))
    rest = v.numel % size
    equal = v.numel - rest
    if not rest or not equal:
        return _of_pieces(a, v, size if equal else rest)
    made = _of_pieces(a, getitem(v, slice(equal)), size)
    last = _of_pieces(a, getitem(v, slice(equal, None)), rest)
    return pad(made, "constant", (0, rest)) + pad(last, "constant", (equal, 0))


def _of_pieces(a: Tensor, v: Tensor, size: int) -> Tensor:
    """The convolution by all pieces at once, each a channel, and the sum of what they make."""
    count, length = v.numel // size, a.numel + v.numel - 1
    filters = flip(plain_reshape(v, (count, 1, size)), 2)
    made = conv(plain_reshape(a, (1, 1, a.numel)), filters, padding=size - 1)
    rows = plain_reshape(made, made.shape[1:])
    if count == 1:
        return plain_reshape(rows, (length,))
    # In rows that are shorter by one piece each begins one piece further right.
    rows = pad(rows, "constant", (0, 0, 0, length + size - rows.shape[1]))
    flat = getitem(plain_reshape(rows, (rows.numel,)), slice(count * length))
    return reduce_sum(plain_reshape(flat, (count, length)), 0, False)


def _of_integers(a: Tensor, v: Tensor) -> Tensor:
    """The convolution as products of matrices, each of so many shifts that it is a block."""
    m, length = v.numel, a.numel + v.numel - 1
    rows = min(length, max(1, BLOCK // m))
    count = -(-length // rows)
    edged = pad(a, "constant", (m - 1, m - 1 + count * rows - length))
    places = as_indices(np.arange(rows)[:, None] + np.arange(m), "convolve", a.device)
    turned, made = flip(v, 0), []
    for start in range(0, count * rows, rows):
        part = getitem(edged, slice(start, start + rows + m - 1))
        made.append(matmul(gather(part, 0, places), turned))
    return getitem(cat(made, 0), slice(length))


@public()
def interp(x: Tensor, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """Linear interpolation between points of a function (NumPy interp). Places outside get the
    value of the outermost point; `x` and `fp` get gradients.

    Args:
        x: any shape; integers become float32.
        xp: (n,), where the points are, ascending, which is not checked.
        fp: (n,), their values.
        left, right: the values before the first point and after the last one.

    Raises:
        ShapeError: points of other shapes, or none.
    """
    x = floating(x)
    at, values = (floating(as_tensor(t, x.device, x.dtype)) for t in (xp, fp))
    if at.rank != 1 or at.shape != values.shape or not at.numel:
        raise ShapeError(f"interp: got points {at.shape}, {values.shape}, want two equal vectors")
    x, at, values = promoted((x, at.detach(), values))
    place = searchsorted(at, x, "right")
    high = ops.scalar_op("minimum", at.numel - 1)(place)
    low = ops.scalar_op("maximum", 0)(ops.scalar_op("sub", 1)(place))
    for one in (high, low):
        one.requires_grad = False
    start, f = gather(at, 0, low), gather(values, 0, low)
    width = gather(at, 0, high) - start
    inside = (width > 0) & (x.detach() >= start)
    share = where(inside, (x - start) / where(inside, width, 1.0), 0.0)
    end = gather(values, 0, high)
    # At a point itself its neighbour does not count; it does for the slope, unless it is infinite.
    end = where((share.detach() == 0) & ~isfinite(end.detach()), f, end)
    made = where(isnan(end.detach()), end, between(f, end, share))
    made = made if left is None else where(x.detach() < at[0], left, made)
    made = made if right is None else where(x.detach() > at[-1], right, made)
    return where(x.detach() == x.detach(), made, x)


@public()
def vander(x: Tensor, n: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as columns, the highest first unless `increasing` (NumPy
    vander).

    Args:
        x: (m,).
        n: the number of columns, m by default.
        increasing: whether the columns begin with power 0.

    Raises:
        ShapeError: more than one dimension.
        ValueError: fewer than one column.
    """
    if x.rank != 1:
        raise ShapeError(f"vander: got shape {x.shape}, want a vector")
    count = x.numel if n is None else whole(n, "vander: n")
    if count < 1:
        raise ValueError(f"vander: got {count} columns, want at least 1")
    start, step = (0, 1) if increasing else (count - 1, -1)
    power = ops.arange(count, x, start=start, step=step)
    power.requires_grad = False
    return x.unsqueeze(1) ** cast(power, x.dtype)
