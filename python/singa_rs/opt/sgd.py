"""Stochastic gradient descent."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from .. import tensor
from ..autograd.ops import op
from ..layer.check import flag
from ..tensor import Tensor
from .base import DEFAULT_LR, Optimizer, Options
from .hyperparameters import holders, moments_by_name
from .schedule import DecayScheduler

if TYPE_CHECKING:
    from typing_extensions import Unpack


@cache
def _update(momentum: bool, nesterov: bool, weight_decay: bool) -> Any:
    return op("update", f="sgd", momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)


class SGD(Optimizer):
    """With weight decay, momentum, dampening and Nesterov's look-ahead, each optional:

        g = g + weight_decay * p
        buffer = momentum * buffer + (1 - dampening) * g        (from 0)
        g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g

    SINGA's `SGD`. PyTorch starts the buffer with g undampened instead.
    """

    hyperparameters = holders(lr={}, momentum={}, dampening={"low": -math.inf}, weight_decay={})
    moment_kinds: ClassVar[tuple[str, ...]] = ("moments",)
    is_elementwise = True
    mom_value: Tensor
    dam_value: Tensor
    _usual_lr = 0.001
    moments = moments_by_name("moments", "The momentum buffers by parameter name.")

    def __init__(
        self,
        lr: float | DecayScheduler = DEFAULT_LR,
        momentum: float | DecayScheduler = 0,
        dampening: float | DecayScheduler = 0,
        weight_decay: float | DecayScheduler = 0,
        nesterov: bool = False,
        dtype: Any = tensor.float32,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0 (dampening: any), or schedules.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
            ValueError: `nesterov` without momentum, or with dampening.
        """
        super().__init__(lr, dtype, **options)
        self.momentum = momentum
        self.dampening = dampening
        self.weight_decay = weight_decay
        self.nesterov = flag(nesterov, "SGD: nesterov")
        if self.nesterov and (not self._uses("momentum") or self._uses("dampening")):
            raise ValueError("SGD: nesterov needs momentum, and no dampening")

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its buffer in place."""
        owner: Any = self._ready(param_name, param_value, param_grad)
        decay = (owner.decay_value,) if owner._uses("weight_decay") else ()
        momentum: tuple[Tensor, ...] = ()
        if owner._uses("momentum"):
            buffer = self._moments.of(param_value, param_name, "moments")
            momentum = (buffer, owner.mom_value, owner.dam_value)
        update = _update(momentum != (), self.nesterov, decay != ())
        update(param_value, param_grad, owner.lr_value, *decay, *momentum)
