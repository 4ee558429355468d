"""Sorted boundaries, counts, and results whose size depends on values, which recordings refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core import DTypeError, GraphError, ShapeError, float32, float64, int64
from ..device import Device
from ..refusals import strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_operand, from_numpy
from ..tensor.dtypes import promote
from ..tensor.numbers import as_array, real, whole
from . import ops
from .casting import cast, floating
from .classification import checked
from .finite import isnan
from .index import as_indices, gather
from .positions import onehot
from .reduce import as_axes, reduce_sum, reduced_axes
from .segments import Total, counts
from .shape import expand, plain_reshape
from .table import public


def read(op: str, x: Tensor, instead: str) -> np.ndarray:
    """A tensor's values, on which the size of the result depends.

    Raises:
        GraphError: a tensor that is only recorded.
    """
    try:
        return x.to_numpy()
    except GraphError as error:
        text = f"{op}: the size of the result depends on values, which a recording lacks; {instead}"
        raise GraphError(f"{text} ({error})") from None


@public(methods="masked_select")
def masked_select(x: Tensor, mask: Any) -> Tensor:
    """The elements of `x` where the mask holds, (count,), in row-major order (PyTorch
    masked_select, ONNX Compress). Reads the mask; `x` gets gradients.

    Args:
        x: any shape and dtype.
        mask: bool; `x` and it broadcast.

    Raises:
        DTypeError: a mask of another dtype.
        ShapeError: a mask that does not broadcast.
        GraphError: a mask that is only recorded, as the size depends on it; `where` and
            `masked_fill` keep the shape.
    """
    advice = "where and masked_fill keep the shape"
    is_tensor = isinstance(mask, Tensor)
    flags = read("masked_select", mask, advice) if is_tensor else as_array(mask, "masked_select")
    if flags.dtype.kind != "b":
        raise DTypeError(f"masked_select: got a mask of {flags.dtype}, want bool")
    try:
        shape = np.broadcast_shapes(x.shape, flags.shape)
    except ValueError:
        shapes = f"{x.shape} and a mask of {flags.shape}"
        raise ShapeError(f"masked_select: got {shapes}, want shapes that broadcast") from None
    places = np.flatnonzero(np.broadcast_to(flags, shape))
    wide = x if x.shape == shape else expand(x, shape)
    return gather(plain_reshape(wide, (wide.numel,)), 0, places)


@public(methods="argwhere")
def argwhere(x: Tensor) -> Tensor:
    """The positions of the non-zero elements, (count, rank), int64 (NumPy argwhere). Reads values.

    Raises:
        GraphError: a tensor that is only recorded.
    """
    found = np.argwhere(read("argwhere", x, "where keeps the shape"))
    return _constant(found, x.device)


@public(methods="count_nonzero")
def count_nonzero(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero, over `axis`, all by default; int64 (NumPy count_nonzero).

    Raises:
        ValueError: an axis that `x` does not have.
    """
    over = reduced_axes(axis, x.rank, "count_nonzero")
    made = reduce_sum(ops.scalar_op("ne", 0)(x.detach()), over, keepdims)
    made.requires_grad = False
    return made


def _constant(array: np.ndarray, dev: Device) -> Tensor:
    made = from_numpy(array.astype(np.int64), dev, int64)
    made.requires_grad = False
    return made


@public(methods="unique")
def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along an axis (NumPy
    unique, ONNX Unique). Reads values; `x` gets gradients, which go to where each stood first.

    NaN is one value, the greatest.

    Args:
        x: any shape and dtype.
        return_index: whether to return where each stood first.
        return_inverse: whether to return which of them each element is, of the shape of `x`, or
            (n,) for an axis of n.
        return_counts: whether to return how often each stands there.
        axis: the flattened tensor if None.

    Returns:
        The values, or a tuple of them and of what else is asked for, int64.

    Raises:
        ValueError: an axis that `x` does not have.
        GraphError: a tensor that is only recorded, as the size depends on it.
    """
    asked = [
        strict_flag(value, f"unique: {name}")
        for name, value in (
            ("return_index", return_index),
            ("return_inverse", return_inverse),
            ("return_counts", return_counts),
        )
    ]
    along = None if axis is None else as_axes(whole(axis, "unique: axis"), x.rank, "unique")[0]
    array = read("unique", x, "sort keeps the shape")
    _, first, inverse, count = np.unique(array, True, True, True, axis=along)
    flat = plain_reshape(x, (x.numel,)) if along is None else x
    values = gather(flat, along or 0, first)
    back = (x.shape[along],) if along is not None else x.shape
    others = (first, inverse.reshape(back), count)
    extra = tuple(_constant(one, x.device) for one, want in zip(others, asked, strict=True) if want)
    return (values, *extra) if extra else values


@public(methods="bincount")
def bincount(
    x: Tensor, weights: Any = None, minlength: int = 0, *, length: int | None = None
) -> Tensor:
    """How often each integer from 0 on occurs, int64, or the sums of their weights, which get
    gradients (NumPy bincount).

    Args:
        x: integers from 0 on, (n,), of an int or float dtype.
        weights: (n,), of a float dtype, which the result has, too; others become float32.
        minlength: the least length; otherwise the greatest integer decides, and values are read.
        length: the length, so that the size does not depend on values (JAX bincount), as in a
            recording.

    Raises:
        ShapeError: more than one dimension, or weights of another shape.
        ValueError: an integer below 0, or not below `length`, when it is used; a fraction.
        GraphError: a tensor that is only recorded, without `length`.
    """
    places = as_indices(x, "bincount")
    if places.rank != 1:
        raise ShapeError(f"bincount: got shape {places.shape}, want one dimension")
    if length is None:
        array, least = read("bincount", places, "give length"), whole(minlength, "bincount: min")
        if least < 0:
            raise ValueError(f"bincount: got minlength {least}, want at least 0")
        is_plain = array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64)
        if weights is None and is_plain and array.min(initial=0) >= 0:
            return _constant(np.bincount(array, minlength=least), x.device)
        size = max(int(array.max()) + 1 if array.size else 0, least)
    else:
        size = whole(length, "bincount: length")
        if size < 0:
            raise ValueError(f"bincount: got length {size}, want at least 0")
    found = checked("bincount", places, size)
    found.requires_grad = False
    if weights is None:
        return counts(found, size)
    given = floating(as_tensor(weights, x.device))
    if given.shape != places.shape:
        shapes = f"weights of shape {given.shape} for {places.shape}"
        raise ShapeError(f"bincount: got {shapes}, want equal shapes")
    return Total(found, size)(given)[0]


def comparable(a: Tensor, v: Any) -> tuple[Tensor, Tensor]:
    """Both in a dtype in which comparing them is exact."""
    a, v = a.detach(), as_operand(v, (a.dtype,), a.device).detach()
    mixed = a.dtype.is_float != v.dtype.is_float
    want = float64 if mixed else promote(a.dtype, v.dtype)
    return ops.cast(a, want), ops.cast(v, want)


def _is_less(a: Tensor, b: Tensor) -> Tensor:
    """`a < b` in the order of sorting, where NaN is the greatest."""
    made = ops.op("binary", f="lt")(a, b)
    if not a.dtype.is_float:
        return made
    alone = ops.op("binary", f="gt")(isnan(b), isnan(a))
    return ops.op("binary", f="or")(made, alone)


@public(methods="searchsorted")
def searchsorted(a: Tensor, v: Any, side: str = "left") -> Tensor:
    """Where values belong in a sorted vector, int64 (NumPy searchsorted): by "left" the first place
    before which all elements are less, by "right" the last one after elements that are equal, too.

    Args:
        a: (n,), ascending, which is not checked; NaN is the greatest.
        v: any shape, which the result has, too.
        side: "left" or "right".

    Raises:
        ShapeError: more than one dimension.
        ValueError: another side.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: got side {side!r}, want 'left' or 'right'")
    a, v = comparable(a, v)
    if a.rank != 1:
        raise ShapeError(f"searchsorted: got shape {a.shape}, want one dimension")
    low = ops.op("fill", device=v.device, value=0, shape=v.shape, dtype="int64")()
    step = 1 << max(a.numel.bit_length() - 1, 0)
    while a.numel and step:
        # The place of the answer's binary digits, from the highest on.
        ahead = ops.scalar_op("add", step)(low)
        fits = ops.scalar_op("le", a.numel)(ahead)
        at = ops.where(fits, ops.scalar_op("sub", 1)(ahead), ops.full((), 0, low))
        before = ops.op("gather", axis=0)(a, at)
        passes = _is_less(before, v)
        if side == "right":
            passes = ops.op("unary", f="not")(_is_less(v, before))
        passes = ops.op("binary", f="and")(passes, fits)
        low = ops.where(passes, ahead, low)
        step >>= 1
    low.requires_grad = False
    return low


@public(methods="bucketize")
def bucketize(x: Tensor, boundaries: Any, right: bool = False) -> Tensor:
    """Which interval between sorted boundaries each element is in, int64 (PyTorch bucketize): i
    where `boundaries[i - 1] < x <= boundaries[i]`, or `boundaries[i - 1] <= x < boundaries[i]` if
    `right`. Arguments and errors are as in `searchsorted`."""
    side = "right" if strict_flag(right, "bucketize: right") else "left"
    return searchsorted(as_tensor(boundaries, x.device), x, side)


@public(methods="histc")
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of `bins` equal intervals from `min` to `max`, float32 (PyTorch
    histc): those outside do not count, NaN neither. For two equal bounds they are the least and
    the greatest element, which are read.

    Raises:
        ValueError: fewer than one interval; bounds that are not finite, or in the wrong order.
        GraphError: a tensor that is only recorded, without bounds.
    """
    count, low, high = whole(bins, "histc: bins"), real(min, "histc: min"), real(max, "histc: max")
    if low == high and x.numel:
        array = read("histc", x, "give min and max").astype(np.float64)
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if count < 1 or not low < high or not math.isfinite(high - low):
        got = f"bins {count}, from {low} to {high}"
        raise ValueError(f"histc: got {got}, want 1 at least, and finite bounds in order")
    kind = float32 if x.dtype.is_float and x.dtype.itemsize <= 4 else float64
    flat = cast(plain_reshape(x.detach(), (x.numel,)), kind)
    at = ops.op("unary", f="floor")((flat - low) * count / (high - low))
    at = ops.scalar_op("minimum", count - 1)(at)
    inside = ops.op("binary", f="and")(
        ops.scalar_op("ge", low)(flat), ops.scalar_op("le", high)(flat)
    )
    places = ops.cast(ops.where(inside, at, ops.full((), count, at)), int64)
    places.requires_grad = False
    made = ops.cast(counts(places, count + 1), float32).view_slice(((0, count, 1),))
    made.requires_grad = False
    return made


@public()
def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = int64) -> Tensor:
    """1 at the class of each element along a new axis, 0 elsewhere (PyTorch one_hot, JAX
    nn.one_hot). `onehot` has SINGA's arguments.

    Args:
        x: integers from 0 on, of an int or float dtype.
        num_classes: the extent of the new axis.
        axis: its place in the result.
        dtype: of the result.

    Raises:
        ValueError: an integer below 0, or not below `num_classes`, when it is used.
    """
    depth = whole(num_classes, "one_hot: num_classes")
    if depth < 0:
        raise ValueError(f"one_hot: got num_classes {depth}, want at least 0")
    places = checked("one_hot", as_indices(x, "one_hot"), depth)
    places.requires_grad = False
    return cast(onehot(whole(axis, "one_hot: axis"), places, depth, (0, 1)), dtype)
