"""Values written at indices, where a mask holds, or joined with what stands there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import DTypeError, ShapeError, bool_, int64
from ..refusals import is_real, strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.indexing import parse
from ..tensor.numbers import number, whole
from . import binary, ops
from .casting import cast, convert
from .index import as_indices, checked, gather, is_mask, where
from .inplace import put
from .reduce import as_axes
from .scan import flattened
from .scattering import scatter_nd, scattered
from .segments import check_reduction, hits
from .shape import cat, clone, expand, plain_reshape, stack
from .table import public
from .views import broadcast, broadcasts

#: By PyTorch's names of reductions: ONNX's.
_SCATTER = {"add": "add", "multiply": "mul"}
_REDUCE = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _of_shape(op: str, values: Any, x: Tensor, shape: tuple[int, ...]) -> Any:
    """Values in the dtype of `x`; a number, or a tensor that broadcasts, as a view of a shape."""
    if is_real(values) or isinstance(values, (bool, np.bool_)):
        made = ops.full((), number(values, f"{op}: values"), x)
        made.requires_grad = False
    else:
        made = convert(as_tensor(values, x.device, x.dtype), x.dtype)
    if made.shape == shape:
        return made
    if not broadcasts(made.shape, shape):
        raise ShapeError(f"{op}: got values of shape {made.shape}, want one that fits {shape}")
    return expand(made, shape)


@public(methods="scatter")
def scatter(x: Tensor, axis: int, indices: Any, updates: Any, reduce: str | None = None) -> Tensor:
    """A copy of `x` with updates at indices along an axis (PyTorch scatter, ONNX ScatterElements):
    the last one where an index repeats, or all of them added or multiplied. Both get gradients.

    Args:
        x: any shape but (), any dtype.
        axis: the axis that the indices refer to.
        indices: as many axes as `x`; along `axis` any extent, along the others at most that of
            `x`. Negative ones count from the end.
        updates: a number, or the shape of the indices, or a larger one, of which the first are
            used.
        reduce: None, "add" or "multiply".

    Raises:
        ShapeError: indices or updates of a shape that does not fit.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have;
            another reduction.
        DTypeError: an update that the dtype of `x` cannot hold.
    """
    (along,) = as_axes(whole(axis, "scatter: axis"), x.rank, "scatter")
    if reduce is not None and (not isinstance(reduce, str) or reduce not in _SCATTER):
        raise ValueError(f"scatter: got reduce {reduce!r}, want 'add' or 'multiply'")
    places = as_indices(indices, "scatter", x.device)
    if is_real(updates):
        updates = _of_shape("scatter", updates, x, places.shape)
    return scattered("scatter", x, along, places, updates, _SCATTER.get(reduce or "", "none"))


@public(methods="scatter_reduce")
def scatter_reduce(
    x: Tensor,
    axis: int,
    indices: Any,
    updates: Any,
    reduce: str,
    include_self: bool = True,
) -> Tensor:
    """A copy of `x` with updates joined at indices along an axis (PyTorch scatter_reduce). Both get
    gradients; equal extremes share it evenly.

    Args:
        x: any shape but (), of numbers.
        axis, indices: as in `scatter`.
        updates: the shape of the indices, or a larger one, of which the first are used.
        reduce: "sum", "prod", "mean", "amax" or "amin"; the mean of integers is rounded down.
        include_self: whether what stands in `x` is joined, too, or is replaced.

    Raises:
        ShapeError: indices or updates of a shape that does not fit.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have;
            another reduction.
        DTypeError: an update that the dtype of `x` cannot hold.
    """
    name = "scatter_reduce"
    (along,) = as_axes(whole(axis, f"{name}: axis"), x.rank, name)
    if not isinstance(reduce, str) or reduce not in _REDUCE:
        raise ValueError(f"{name}: got reduce {reduce!r}, want one of {', '.join(_REDUCE)}")
    keeps, how = strict_flag(include_self, f"{name}: include_self"), _REDUCE[reduce]
    check_reduction(name, x, how)
    places = as_indices(indices, name, x.device)
    if keeps and reduce != "mean":
        return scattered(name, x, along, places, updates, how)
    found = _hits(name, x, along, places)
    start = x if keeps else where(ops.scalar_op("gt", 0)(found), _neutral(reduce, x), x)
    made = scattered(name, start, along, places, updates, how)
    if reduce != "mean":
        return made
    count = ops.scalar_op("maximum", 1)(ops.scalar_op("add", int(keeps))(found))
    count.requires_grad = False
    divide = "div" if x.dtype.is_float else "floor_divide"
    return cast(binary.FUNCTIONS[divide](made, cast(count, x.dtype)), x.dtype)


def _neutral(reduce: str, x: Tensor) -> Tensor:
    """What a reduction with it leaves as it is."""
    if reduce in ("amax", "amin"):
        is_max = reduce == "amax"
        value: Any = -math.inf if is_max else math.inf
        if not x.dtype.is_float:
            limits = np.iinfo(x.dtype.name) if x.dtype != bool_ else None
            value = int(not is_max) if limits is None else limits.min if is_max else limits.max
            value = int(value)
    else:
        value = int(reduce == "prod")
    made = ops.full((), value, x)
    made.requires_grad = False
    return made


def _hits(op: str, x: Tensor, along: int, indices: Tensor) -> Tensor:
    """How often each element of `x` is indexed, int64."""
    if indices.rank != x.rank:
        raise ShapeError(f"{op}: got indices of shape {indices.shape} for {x.shape}")
    return hits(checked(op, indices, x.shape[along]), x.shape, along)


@public()
def put_along_axis(x: Tensor, indices: Any, values: Any, axis: int | None = -1) -> Tensor:
    """A copy of `x` with values at the indices of each row along an axis, the last one where an
    index repeats (NumPy put_along_axis, which writes into `x`). Both get gradients.

    Args:
        x: any shape but (), any dtype.
        indices: as many axes as `x`, of its extents, or 1, but for `axis`. Negative ones count from
            the end.
        values: a number, or a shape that broadcasts to that of the indices.
        axis: the flattened tensor if None.

    Raises:
        ShapeError: indices or values of a shape that does not fit.
        ValueError: an index out of range or with a fraction; an axis that `x` does not have.
        DTypeError: a value that the dtype of `x` cannot hold.
    """
    name, have = "put_along_axis", x.shape
    flat, axis = flattened(x, axis)
    (along,) = as_axes(whole(axis, f"{name}: axis"), flat.rank, name)
    places = as_indices(indices, name, x.device)
    wide = tuple(places.shape[i : i + 1] if i == along else (n,) for i, n in enumerate(flat.shape))
    shape = tuple(n for one in wide for n in one)
    if places.rank != flat.rank or not broadcasts(places.shape, shape):
        raise ShapeError(f"{name}: got indices of shape {places.shape} for axis {axis} of {have}")
    places = places.view_expand(shape)
    places.requires_grad = False
    given = _of_shape(name, values, x, shape)
    return plain_reshape(scattered(name, flat, along, places, given, "none"), have)


@public(methods="index_put")
def index_put(x: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """A copy of `x` with values at tuples of indices, one tensor for each of the first axes, which
    broadcast (PyTorch index_put): the last one where a tuple repeats, or all of them added. Both
    get gradients. A mask of bools, for one or more axes, stands for the places where it holds, as
    in `x[mask] = values`.

    Args:
        x: any shape but (), any dtype.
        indices: one to as many tensors as there are axes; negative ones count from the end.
        values: a number, or a shape that broadcasts to that of `x[indices]`.
        accumulate: whether values are added.

    Raises:
        ShapeError: indices or values of a shape that does not fit.
        ValueError: an index out of range or with a fraction; a mask that does not fit.
        DTypeError: a bool as an index; a value that the dtype of `x` cannot hold.
        GraphError: a mask that is only recorded, and values that are added, or one for each place.
    """
    name = "index_put"
    if isinstance(indices, (Tensor, np.ndarray)) or not isinstance(indices, Sequence):
        got = type(indices).__name__
        raise TypeError(f"{name}: got {got} for indices, want a tuple with one for each axis")
    adds = strict_flag(accumulate, f"{name}: accumulate")
    masks = [is_mask(one, name) and _has_axes(one) for one in indices]
    if any(masks) and not adds:
        made = clone(x)
        put(made, tuple(indices), values, name)
        return made
    given = [as_indices(one, name, x.device) for one in _unmasked(x, indices, masks)]
    if not 1 <= len(given) <= x.rank:
        raise ShapeError(f"{name}: got {len(given)} indices for shape {x.shape}, want 1 at least")
    shape: tuple[int, ...] = ()
    for one in given:
        shape = broadcast(shape, one.shape)
    tuples = stack([cast(one, given[0].dtype).expand(shape) for one in given], len(shape))
    tuples.requires_grad = False
    updates = _of_shape(name, values, x, (*shape, *x.shape[len(given) :]))
    return scatter_nd(x, tuples, updates, "add" if adds else "none")


def _has_axes(index: Any) -> bool:
    """Whether an index has an axis: a single bool has none that it could be a mask for."""
    return not isinstance(index, bool) and getattr(index, "shape", None) != ()


def _unmasked(x: Tensor, indices: Sequence[Any], masks: Sequence[bool]) -> list[Any]:
    """Indices with the places where masks hold instead of these."""
    made: list[Any] = []
    for one, is_one in zip(indices, masks, strict=True):
        made += parse((one,), x.shape[len(made) :]).indices if is_one else [one]
    return made


@public(methods="masked_scatter")
def masked_scatter(x: Tensor, mask: Any, source: Any) -> Tensor:
    """A copy of `x` in which the places where the mask holds get the elements of `source` in order
    (PyTorch masked_scatter). Both get gradients.

    Args:
        x: any shape and dtype.
        mask: bool; it broadcasts to `x`.
        source: as many elements as the mask holds at least, which is checked when they are used.

    Raises:
        DTypeError: a mask of another dtype; an element that the dtype of `x` cannot hold.
        ShapeError: a mask that does not broadcast to `x`.
        ValueError: too few elements.
    """
    name, flags = "masked_scatter", as_tensor(mask, x.device)
    if flags.dtype != bool_:
        raise DTypeError(f"{name}: got a mask of {flags.dtype.name}, want bool")
    if not broadcasts(flags.shape, x.shape):
        raise ShapeError(f"{name}: got a mask of shape {flags.shape} for {x.shape}")
    given = convert(as_tensor(source, x.device, x.dtype), x.dtype)
    flags = flags.view_expand(x.shape)
    flat = ops.reshape(flags, (x.numel,))
    order = ops.op("scan", f="sum", axis=0, exclusive=False, reverse=False)
    order = order(ops.cast(flat, int64))
    # The first of them belongs to all places where the mask does not hold.
    places = ops.where(flat, order, ops.full((), 0, order))
    places = ops.op("places", of="masked_scatter", size=given.numel + 1)(places)
    places.requires_grad = flags.requires_grad = False
    first = ops.full((1,), 0, x)
    first.requires_grad = False
    values = cat([first, plain_reshape(given, (given.numel,))], 0)
    return where(flags, plain_reshape(gather(values, 0, places), x.shape), x)
