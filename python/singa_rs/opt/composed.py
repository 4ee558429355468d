"""Updates that are composed of tensor operations, which a recorded step fuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import autograd
from ..errors import DTypeError, ShapeError
from ..tensor import Tensor, float64
from .base import Optimizer


def compose(optimizer: Any, name: str, param: Tensor, grad: Tensor, kinds: Sequence[str]) -> None:
    """Updates a parameter and its moments of some kinds in place, to what `optimizer.updated`
    returns for them, and for the gradient in the moments' dtype.

    Raises:
        ShapeError, DTypeError: a gradient that does not fit the parameter.
    """
    optimizer = optimizer._ready(name, param, grad)
    op = type(optimizer).__name__
    if param.shape != grad.shape:
        raise ShapeError(f"{op}: got shapes {param.shape}, {grad.shape}, want equal")
    if not param.dtype.is_float or param.dtype != grad.dtype:
        dtypes = f"{param.dtype.name}, {grad.dtype.name}"
        raise DTypeError(f"{op}: got dtypes {dtypes}, want one of floats")
    moments = [optimizer._moments.of(param, name, kind) for kind in kinds]
    wide = moments[0].dtype
    with autograd.no_grad():
        old, slope = param.detach().as_type(wide), grad.detach().as_type(wide)
        made, *kept = optimizer.updated(old, slope, *moments)
        for moment, value in zip(moments, kept, strict=True):
            moment.copy_from(value)
        param.copy_from(made.as_type(param.dtype))


class Composed(Optimizer):
    """An optimizer whose updates are written in tensor operations, by `updated`. Arithmetic is in
    float32, and float64 for parameters of float64."""

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its moments in place.

        Raises:
            ShapeError, DTypeError: a gradient that does not fit the parameter.
        """
        compose(self, param_name, param_value, param_grad, self.moment_kinds)

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments."""
        raise NotImplementedError(f"{type(self).__name__} has no updated")

    def number(self, name: str, like: Tensor) -> Tensor:
        """A hyperparameter's value, without axes, in the dtype of `like`."""
        return number(self, name, like)

    def decayed(self, p: Tensor, g: Tensor) -> Tensor:
        """The gradient with the weight decay, if there is one."""
        return decayed(self, p, g)

    def bias(self, name: str, like: Tensor) -> Tensor:
        """`1 - beta ** t` in step t, counted from 1, which is the sum of the weights in a moving
        average that began with zero."""
        return (1 - number(self, name, None) ** self.count()).as_type(like.dtype)

    def count(self) -> Tensor:
        """The step, counted from 1, in float64."""
        return self.step_counter.reshape(()).as_type(float64) + 1.0


def number(optimizer: Any, name: str, like: Tensor | None) -> Tensor:
    """A hyperparameter's value, without axes, in the dtype of `like`, or float64."""
    holder = getattr(optimizer, optimizer.hyperparameters[name][0])
    return holder.reshape(()).as_type(float64 if like is None else like.dtype)


def decayed(optimizer: Any, p: Tensor, g: Tensor) -> Tensor:
    """The gradient with the weight decay, if there is one."""
    if not optimizer._uses("weight_decay"):
        return g
    return g + p * number(optimizer, "weight_decay", g)


def average(old: Tensor, new: Tensor, share: Tensor) -> Tensor:
    """`share * old + (1 - share) * new`."""
    return old * share + new * (1 - share)
