"""The optimizers' update operations, kept apart from the other tensor operations because only
optimizers use them. None of them is ever recorded for gradients."""

from __future__ import annotations

from functools import cache

from .. import _core
from . import Tensor


@cache
def _op(name: str, **attributes: bool) -> _core.Op:
    return _core.Op(name, **attributes)


@cache
def _sgd_op(momentum: bool, nesterov: bool, weight_decay: bool) -> _core.Op:
    return _core.Op("sgd", momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)


def sgd(
    param: Tensor,
    grad: Tensor,
    lr: Tensor,
    weight_decay: Tensor | None = None,
    momentum: tuple[Tensor, Tensor, Tensor] | None = None,
    nesterov: bool = False,
) -> None:
    """Gradient descent in place. `momentum`: the buffer, the momentum and the dampening;
    hyperparameters are float32 of shape (1,)."""
    op = _sgd_op(momentum is not None, nesterov, weight_decay is not None)
    op(param, grad, lr, *_optional(weight_decay), *(momentum or ()))


def rmsprop(
    param: Tensor,
    grad: Tensor,
    lr: Tensor,
    average: Tensor,
    rho: Tensor,
    epsilon: Tensor,
    weight_decay: Tensor | None = None,
) -> None:
    """RMSProp in place, epsilon inside the root."""
    op = _op("rmsprop", weight_decay=weight_decay is not None)
    op(param, grad, lr, average, rho, epsilon, *_optional(weight_decay))


def adagrad(
    param: Tensor,
    grad: Tensor,
    lr: Tensor,
    history: Tensor,
    epsilon: Tensor,
    weight_decay: Tensor | None = None,
) -> None:
    """AdaGrad in place, epsilon inside the root."""
    op = _op("adagrad", weight_decay=weight_decay is not None)
    op(param, grad, lr, history, epsilon, *_optional(weight_decay))


def adam(
    param: Tensor,
    grad: Tensor,
    lr: Tensor,
    moments: tuple[Tensor, Tensor],
    betas: tuple[Tensor, Tensor],
    epsilon: Tensor,
    step: Tensor,
    weight_decay: Tensor | None = None,
    decoupled: bool = False,
) -> None:
    """Adam in place, or AdamW where `decoupled`; `step` (int32) counts from 0."""
    op = _op("adam", decoupled=decoupled, weight_decay=weight_decay is not None)
    op(param, grad, lr, *moments, *betas, epsilon, step, *_optional(weight_decay))


def _optional(tensor: Tensor | None) -> tuple[Tensor, ...]:
    return () if tensor is None else (tensor,)
