"""Layers that join the branches of a net: Dummy, Split, Merge, Slice and Concat."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from ... import autograd
from ...errors import GraphError
from ...layer.check import count
from ...tensor import Tensor
from .base import Layer, Shape, sample_shape, sample_shapes


class _Joint(Layer):
    """A layer without parameters whose gradient is computed without a tape."""

    def __init__(self, name: str, input_sample_shape: Any = None) -> None:
        super().__init__(name)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _gradients(self, dy: Any, many: int) -> list[Tensor]:
        """The checked gradients of `many` outputs."""
        found = list(dy) if isinstance(dy, (list, tuple)) else [dy]
        if len(found) != many:
            what = f"{many} gradients" if many > 1 else "one gradient"
            raise GraphError(self._where(f"backward: got {len(found)}, want {what}"))
        return [self._only(one) for one in found]

    def forward(self, flag: Any, x: Any) -> Any:
        """The output, or a list of several, for a batch; `flag` is of no effect.

        Raises:
            ShapeError: a batch of other samples than the layer was set up for.
        """
        self._check_setup("forward")
        xs = self._inputs(x)
        with autograd.no_grad():
            return self._join(xs)

    def _join(self, xs: list[Tensor]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")


class Dummy(_Joint):
    """Passes its input on; stands for an input or an output of a net that another layer has."""

    def _join(self, xs: list[Tensor]) -> Tensor:
        return xs[0]

    def backward(self, flag: Any, dy: Any) -> tuple[Tensor, list[Tensor]]:
        """`dy`, and no gradients of parameters."""
        return self._gradients(dy, 1)[0], []


class Split(_Joint):
    """Gives its input to several layers; the gradients that they return add up."""

    def __init__(self, name: str, num_output: int, input_sample_shape: Any = None) -> None:
        """`num_output`: the number of these layers.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self.num_output = count(num_output, f"Split {name!r}: num_output")
        super().__init__(name, input_sample_shape)

    def _setup(self, shape: Shape) -> list[Shape]:  # type: ignore[override]
        return [shape] * self.num_output

    def _join(self, xs: list[Tensor]) -> list[Tensor]:
        return xs * self.num_output

    def backward(self, flag: Any, dy: Any) -> tuple[Tensor, list[Tensor]]:
        """The sum of the gradients, one for each output, and no gradients of parameters."""
        with autograd.no_grad():
            return reduce(add, self._gradients(dy, self.num_output)), []


class _Joining(_Joint):
    """A layer of several inputs."""

    def _shapes_of(self, in_shapes: Any) -> tuple[list[Shape], Shape]:
        shapes = sample_shapes(in_shapes, self._where("input_sample_shape"))
        return shapes, self._setup_all(shapes)

    def _setup_all(self, shapes: list[Shape]) -> Shape:
        raise NotImplementedError

    def _inputs(self, x: Any) -> list[Tensor]:
        if not isinstance(x, (list, tuple)) or len(x) < 2:
            got = f"{len(x)}" if isinstance(x, (list, tuple)) else type(x).__name__
            raise GraphError(self._where(f"forward: got {got}, want several tensors in a list"))
        # One shape, given to the constructor, stands for that of every input.
        shapes = self._in * len(x) if len(self._in) == 1 else self._in
        if len(x) != len(shapes):
            raise GraphError(self._where(f"forward: got {len(x)} inputs, want {len(shapes)}"))
        return [self._checked(one, shape) for one, shape in zip(x, shapes, strict=True)]


class Merge(_Joining):
    """The sum of its inputs."""

    #: The number of inputs of the last `forward`.
    num_input = 1

    def _setup_all(self, shapes: list[Shape]) -> Shape:
        if len(set(shapes)) > 1:
            raise self._refuse(f"samples of {', '.join(map(str, shapes))}", "one shape")
        return shapes[0]

    def _join(self, xs: list[Tensor]) -> Tensor:
        self.num_input = len(xs)
        return reduce(add, xs)

    def backward(self, flag: Any, dy: Any) -> tuple[list[Tensor], list[Tensor]]:
        """`dy` for each input, and no gradients of parameters."""
        return self._gradients(dy, 1) * self.num_input, []


class Concat(_Joining):
    """Its inputs side by side: along the batch (`axis` 0) or an axis of the samples (from 1)."""

    def __init__(self, name: str, axis: int, input_sample_shapes: Any = None) -> None:
        """`axis`: an axis of the batch.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self.axis = count(axis, f"Concat {name!r}: axis", 0)
        super().__init__(name, input_sample_shapes)

    def _setup_all(self, shapes: list[Shape]) -> Shape:
        at = self.axis - 1
        fit = all(len(shape) > at for shape in shapes)
        if not fit or len({_without(shape, at) for shape in shapes}) > 1:
            got = f"samples of {', '.join(map(str, shapes))}"
            raise self._refuse(got, f"shapes that differ on axis {self.axis} of the batch alone")
        if at < 0:
            return shapes[0]
        return (*shapes[0][:at], sum(shape[at] for shape in shapes), *shapes[0][at + 1 :])

    def _join(self, xs: list[Tensor]) -> Tensor:
        self._widths = [x.shape[self.axis] for x in xs]
        return autograd.cat(xs, self.axis)

    def backward(self, flag: Any, dy: Any) -> tuple[list[Tensor], list[Tensor]]:
        """The part of `dy` for each input, and no gradients of parameters.

        Raises:
            GraphError: there was no `forward` before.
        """
        if not hasattr(self, "_widths"):
            raise GraphError(self._where("backward: call forward first"))
        return _parts(self._gradients(dy, 1)[0], self.axis, self._widths), []


class Slice(_Joint):
    """Its input in parts: along the batch (`axis` 0) or an axis of the samples (from 1)."""

    def __init__(
        self, name: str, axis: int, slice_point: Sequence[int], input_sample_shape: Any = None
    ) -> None:
        """`slice_point`: where each part but the first begins, in ascending order.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        self.axis = count(axis, f"Slice {name!r}: axis", 0)
        self.slice_point = list(sample_shape(slice_point, f"Slice {name!r}: slice_point"))
        if not self.slice_point or self.slice_point != sorted(set(self.slice_point)):
            raise ValueError(f"Slice {name!r}: slice_point: got {slice_point}, want ascending ints")
        super().__init__(name, input_sample_shape)

    def _setup(self, shape: Shape) -> list[Shape]:  # type: ignore[override]
        at, parts = self.axis - 1, len(self.slice_point) + 1
        if at < 0:
            return [shape] * parts
        if len(shape) <= at or shape[at] <= self.slice_point[-1]:
            want = f"more than {self.slice_point[-1]} elements on axis {self.axis} of the batch"
            raise self._refuse(f"a sample of {shape}", want)
        return [(*shape[:at], width, *shape[at + 1 :]) for width in self._split(shape[at])]

    def _split(self, extent: int) -> list[int]:
        """The widths of the parts of an axis."""
        points = [0, *self.slice_point, extent]
        return [high - low for low, high in zip(points, points[1:], strict=False)]

    def _join(self, xs: list[Tensor]) -> list[Tensor]:
        extent = xs[0].shape[self.axis]
        if extent <= self.slice_point[-1]:
            want = f"more than {self.slice_point[-1]} elements on axis {self.axis}"
            raise self._refuse(f"a batch of shape {xs[0].shape}", want)
        return _parts(xs[0], self.axis, self._split(extent))

    def backward(self, flag: Any, dy: Any) -> tuple[Tensor, list[Tensor]]:
        """The gradients of the parts side by side, and no gradients of parameters."""
        with autograd.no_grad():
            return autograd.cat(self._gradients(dy, len(self.slice_point) + 1), self.axis), []


def _without(shape: Shape, at: int) -> Shape:
    return shape if at < 0 else (*shape[:at], *shape[at + 1 :])


def _parts(x: Tensor, axis: int, widths: Sequence[int]) -> list[Tensor]:
    """The parts of a tensor side by side along an axis."""
    made, start = [], 0
    with autograd.no_grad():
        for width in widths:
            made.append(x[(slice(None),) * axis + (slice(start, start + width),)])
            start += width
    return made
