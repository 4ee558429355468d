"""The operations for which SINGA's rule differs from NumPy's: `compat.singa` has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd
from ..autograd import ops
from ..autograd.casting import floating, promoted
from ..autograd.precision import in_precision
from ..autograd.reduce import as_axes
from ..autograd.rule import Rule
from ..errors import called, name_functions
from ..tensor import Tensor, bool_
from .raw import raw_if


class SoftMax(autograd.SoftMax):
    """Softmax over all axes from `axis` on together (SINGA SoftMax, ONNX Softmax before opset 13);
    integers become float32."""

    def forward(self, x: Tensor) -> Tensor:
        """The result, of the shape of `x`."""
        made = ops.op("softmax", axis=-1, log=False)(self._rows(x))
        return ops.reshape(made, x.shape)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """Computed from `dy` and the output."""
        return (self.of_result(dys[0], self.load(0)),)

    def of_result(self, dy: Tensor, y: Tensor) -> Tensor:
        """The gradient, given that of the output, and the output."""
        made = ops.op("softmax_grad", axis=-1, log=False)(self._rows(dy), self._rows(y))
        return ops.reshape(made, y.shape)

    def _rows(self, x: Tensor) -> Tensor:
        """The tensor as a matrix, over whose columns softmax goes."""
        (first,) = as_axes(self.axis, x.rank, "softmax")
        return ops.reshape(x, (math.prod(x.shape[:first]), math.prod(x.shape[first:])))


class Tile(autograd.Tile):
    """The tensor `repeats` times along its axes, from the first on (SINGA Tile): NumPy takes fewer
    repeats than axes for the last ones. More repeats than axes add axes in front."""

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """How often each axis is repeated."""
        return self.repeats + (1,) * (len(shape) - len(self.repeats))


def softmax(x: Tensor, axis: int = 1) -> Tensor:
    """Softmax over all axes from `axis` on together (SINGA softmax); integers become float32.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return SoftMax(axis)(floating(x))[0]


def tile(x: Tensor, repeats: int | Sequence[int]) -> Tensor:
    """The tensor `repeats` times along its axes, from the first on (SINGA tile).

    Raises:
        ValueError: negative repeats.
    """
    return Tile(repeats)(x)[0]


def where(x: Any, y: Any, condition: Any) -> Tensor:
    """`x` where `condition` holds, which is where it is not zero, else `y`; broadcasts (SINGA
    where). The condition may be of any dtype; a bool tensor first is one in NumPy's order.

    Raises:
        TypeError: what cannot be a tensor.
    """
    if isinstance(x, Tensor) and x.dtype == bool_:
        return autograd.where(x, y, condition)
    return autograd.where(x=x, y=y, condition=condition)


def back_broadcast(y_shape: tuple[int, ...], x_shape: tuple[int, ...], x: Tensor) -> Tensor:
    """Sums `x`, of `y_shape`, over what `x_shape` was broadcast along; raw if `x` is (SINGA
    back_broadcast).

    Raises:
        ShapeError: `x` is not of `y_shape`, or `x_shape` does not broadcast to it.
    """
    (made,) = raw_if([autograd.back_broadcast(y_shape, x_shape, x)], [x])
    return made


def _element_by_element(rule: type[Rule], name: str, convert: Callable[..., Any]) -> Any:
    def function(*l: Tensor) -> Tensor:  # noqa: E741 - SINGA's name
        return rule()(*convert(l))[0]

    doc = (
        f"The element-wise {name} of tensors that broadcast; of one tensor, itself (SINGA {name})."
    )
    return called(function, name, doc, __name__)


def _floats(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [floating(t) for t in promoted(tensors)]


max = _element_by_element(autograd.Max, "max", promoted)
mean = in_precision(_element_by_element(autograd.Mean, "mean", _floats), "wide")
min = _element_by_element(autograd.Min, "min", promoted)
sum = in_precision(_element_by_element(autograd.Sum, "sum", promoted), "wide")
softmax = in_precision(softmax, "wide")
#: Functions of other files.
_LENT = {"as_axes", "called", "floating", "in_precision", "name_functions", "promoted", "raw_if"}
name_functions(globals(), _LENT)
