"""Functions of shape: reshaping, permuting, slicing, splitting, expanding, joining."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from .._core import GraphError, ShapeError
from ..tensor import Tensor
from ..tensor.creation import as_operand, as_shape, device_of
from ..tensor.numbers import whole, wholes
from . import ops
from .casting import promoted
from .ops import Grads, Tensors
from .reduce import as_axes, reduce_sum
from .rule import Rule, function
from .table import as_method, public
from .tape import remake
from .views import (
    Clone,
    Expand,
    Flatten,
    Identity,
    Ints,
    PlainReshape,
    Reshape,
    Select,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
    is_followed,
    note_view,
    resolve,
)

reshape = function(Reshape, "reshape")
flatten = function(Flatten, "flatten")
squeeze = function(Squeeze, "squeeze")
slice = function(Slice, "slice")
expand = function(Expand, "expand")


def plain_reshape(x: Tensor, shape: Ints) -> Tensor:
    """Another shape as in NumPy: one extent may be -1."""
    return PlainReshape(shape)(x)[0]


@as_method("reshape")
def _reshape(self: Tensor, *extents: Any, shape: Any = None) -> Tensor:
    """Another shape as in NumPy: one extent may be -1.

    Raises:
        TypeError: extents, and `shape` too.
    """
    if shape is None:
        return PlainReshape(extents[0] if len(extents) == 1 else extents)(self)[0]
    if extents:
        raise TypeError("reshape: got both extents and shape, want one of them")
    return PlainReshape(shape)(self)[0]


@as_method("squeeze")
def _squeeze(self: Tensor, axis: Ints | None = None) -> Tensor:
    """Without these axes of extent 1, without all of them by default; no axes, as in
    `t.squeeze(())`, leave the shape as it is (NumPy squeeze, PyTorch squeeze)."""
    if axis is None:
        return squeeze(self, ())
    axes = as_shape(axis)
    return squeeze(self, axes) if axes else plain_reshape(self, self.shape)


@public(Unsqueeze, methods="unsqueeze")
def unsqueeze(x: Tensor, axis: Ints = -1) -> Tensor:
    """With axes of extent 1 at these positions of the result (ONNX Unsqueeze)."""
    return Unsqueeze(axis)(x)[0]


@public(Transpose)
def transpose(x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
    """The axes in the order `shape`, reversed by default (ONNX Transpose)."""
    return Transpose(shape)(x)[0]


@public(Identity)
def identity(x: Tensor) -> Tensor:
    """The same tensor as the output of an operation (ONNX Identity)."""
    return Identity()(x)[0]


@public(methods="clone __pos__")
def clone(x: Tensor) -> Tensor:
    """A copy with its own memory (PyTorch clone)."""
    return Clone()(x)[0]


def apart(y: Tensor, x: Tensor) -> Tensor:
    """`y`, cloned if it shares the memory of `x`, which writes into `y` must not reach."""
    return clone(y) if y.shares_block(x) else y


def _parts(shape: Sequence[int], axis: int, sizes: Sequence[int]) -> list[list[Any]]:
    """The ranges of consecutive parts of these sizes along an axis."""
    ends = itertools.accumulate(sizes)
    whole = [(0, n, 1) for n in shape]
    along = [(end - size if size else 0, size, 1) for size, end in zip(sizes, ends, strict=True)]
    return [[*whole[:axis], part, *whole[axis + 1 :]] for part in along]


class Split(Rule):
    """Parts of these sizes along an axis (ONNX Split)."""

    is_view = True

    def __init__(
        self, axis: int, parts: Sequence[int] | None, num_output: int | None = None
    ) -> None:
        self.axis, self.parts, self.num_output = axis, parts, num_output

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        have = x.shape
        (self.along,) = as_axes(self.axis, len(have), "split")
        if self.parts is None and (self.num_output or 2) > max(2, have[self.along]):
            got = f"num_output {self.num_output} for an axis of {have[self.along]}"
            raise ShapeError(f"split: got {got}, want no more parts than elements")
        self.ranges = _parts(have, self.along, self._sizes(have[self.along]))
        return tuple(map(x.view_slice, self.ranges))

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        (x,) = xs
        if is_followed(x):
            for y, ranges in zip(ys, self.ranges, strict=True):
                part = Select(ranges, y.shape)
                part.shape = x.shape
                note_view(x, y, part)

    def _sizes(self, extent: int) -> list[int]:
        if self.parts is None:
            count = 2 if self.num_output is None else whole(self.num_output, "split: num_output")
            if count < 1:
                raise ValueError(f"split: got num_output {count}, want at least 1")
            size = -(-extent // count)
            return [max(0, min(size, extent - i * size)) for i in range(count)]
        if isinstance(self.parts, Integral):
            raise TypeError(f"split: got {self.parts} for parts, want a list of ints or None")
        sizes = list(wholes(self.parts, "split: parts"))
        if sum(sizes) != extent or min(sizes, default=0) < 0:
            raise ShapeError(f"split: got parts {sizes} of an axis of {extent}")
        return sizes

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The parts' gradients, joined."""
        return (ops.op("concat", axis=self.along)(*dys),)


@public(Split, methods="split")
def split(
    x: Tensor, axis: int, parts: Sequence[int] | None = None, num_output: int | None = None
) -> tuple[Tensor, ...]:
    """Views of parts of these sizes along an axis, else of `num_output` equal ones (ONNX Split).

    Raises:
        TypeError: neither sizes nor a number of parts, as NumPy and PyTorch call functions of this
            name, which take them first; several axes.
        ShapeError: sizes that do not add up to the axis.
    """
    if parts is None and num_output is None or isinstance(axis, (list, tuple)):
        raise TypeError(
            f"split: got {axis!r} for axis and no parts, want split(x, axis, [sizes]) or "
            "split(x, axis, num_output=n); NumPy's split is array_split(x, sections, axis)"
        )
    return Split(axis, parts, num_output)(x)


class Concat(Rule):
    """Tensors concatenated along an axis (ONNX Concat)."""

    def __init__(self, axis: int = 0) -> None:
        self.axis = axis

    def forward(self, *xs: Tensor) -> Tensor:
        if not xs:
            raise ShapeError("concat: got no tensors, want at least one")
        (self.along,) = as_axes(self.axis, xs[0].rank, "concat")
        return ops.op("concat", axis=self.along)(*xs)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.sizes = tuple(x.shape[self.along] for x in xs)

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """Each tensor's part of `dy`."""
        (dy,) = dys
        parts = zip(_parts(dy.shape, self.along, self.sizes), wanted, strict=True)
        return tuple(dy.view_slice(ranges) if want else None for ranges, want in parts)


@public(Concat)
def cat(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors concatenated along an axis (ONNX Concat); dtypes are promoted."""
    xs = tuple(xs)
    if not all(isinstance(x, Tensor) and x.dtype == xs[0].dtype for x in xs):
        xs = promoted(xs, counts=False)
    return Concat(axis)(*xs)[0]


@public()
def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors of one shape along a new axis (NumPy stack)."""
    xs = tuple(xs)
    dtypes = [x.dtype for x in xs if isinstance(x, Tensor)]
    to = device_of(xs)
    return cat([unsqueeze(as_operand(x, dtypes, to), axis) for x in xs], axis)


def set_shape(x: Tensor, shape: Ints) -> None:
    """Reshapes a tensor in place, in its own memory; one extent may be -1. `t.shape = ...`, for
    which the engine calls this.

    The creator of the tensor still gets its gradient.

    Raises:
        ShapeError: a different number of elements, or strides that would require a copy.
        GraphError: a recorded tensor that is a view of another, or that has views.
    """
    to = resolve(as_shape(shape), x.numel, "shape")
    if math.prod(to) != x.numel:
        raise ShapeError(f"shape: got {to} for {x.numel} elements, want one that fits")
    view = x.view_reshape(to)
    if view is None:
        raise ShapeError(f"shape: got {to} for strides {x.strides}; use reshape, which copies")
    if x._creator is not None:
        if x._base is not None or any(live() is not None for live in x._views):
            raise GraphError("shape: got a recorded tensor with views; use reshape")
        node = PlainReshape(to)
        node.shape, node.edges = x.shape, (x._creator,)
        remake(x, node)
    x.rebind(view)


@public()
def back_broadcast(y_shape: tuple[int, ...], x_shape: tuple[int, ...], x: Tensor) -> Tensor:
    """Sums `x`, of `y_shape`, over what `x_shape` was broadcast along (SINGA back_broadcast).

    Raises:
        ShapeError: `x` is not of `y_shape`, or `x_shape` does not broadcast to it.
    """
    want, own = as_shape(y_shape), as_shape(x_shape)
    if x.shape != want:
        raise ShapeError(f"back_broadcast: got x of shape {x.shape}, want {want}")
    pairs = zip(own[::-1], want[::-1], strict=False)
    if len(own) > len(want) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(f"back_broadcast: got x_shape {own}, which does not broadcast to {want}")
    axes = ops.axis_helper(want, own)
    return plain_reshape(reduce_sum(x, axes, keepdims=1) if axes else x, own)
