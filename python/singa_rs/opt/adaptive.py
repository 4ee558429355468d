"""Optimizers that scale each element's step by its gradients' history."""

from __future__ import annotations

from typing import ClassVar

from ..tensor import Tensor, updates
from .base import Optimizer
from .schedule import DecayScheduler

_Limits = dict[str, tuple[str, dict[str, float]]]
_FRACTION = {"low": 0.0, "below": 1.0}


class RMSProp(Optimizer):
    """`average = rho * average + (1 - rho) * g**2; p -= lr * g / sqrt(average + epsilon)`, with
    weight decay added to g. Epsilon is inside the root, as in SINGA (Tieleman and Hinton, 2012).
    """

    hyperparameters: ClassVar[_Limits] = {
        "lr": ("lr_value", {}),
        "rho": ("rho_value", _FRACTION),
        "epsilon": ("epsilon_value", {}),
        "weight_decay": ("decay_value", {}),
    }
    moment_kinds: ClassVar[tuple[str, ...]] = ("running_average",)

    def __init__(
        self,
        lr: float | DecayScheduler = 0.1,
        rho: float | DecayScheduler = 0.9,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
    ) -> None:
        """Numbers from 0 (rho below 1), or schedules.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr)
        self.rho = rho
        self.epsilon = epsilon
        self.weight_decay = weight_decay

    @property
    def running_average(self) -> dict[str, Tensor]:
        """The averages of squared gradients by parameter name."""
        return self._moments.named("running_average")

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its average in place."""
        self.device_check(param_value, param_grad, *self._own_tensors())
        average = self._moments.of(param_value, param_name, "running_average")
        decay = self.decay_value if self._uses("weight_decay") else None
        updates.rmsprop(
            param_value,
            param_grad,
            self.lr_value,
            average,
            self.rho_value,
            self.epsilon_value,
            decay,
        )


class AdaGrad(Optimizer):
    """`history += g**2; p -= lr * g / sqrt(history + epsilon)`, with weight decay added to g.
    Epsilon is inside the root, as in SINGA (Duchi et al., 2011)."""

    hyperparameters: ClassVar[_Limits] = {
        "lr": ("lr_value", {}),
        "epsilon": ("epsilon_value", {}),
        "weight_decay": ("decay_value", {}),
    }
    moment_kinds: ClassVar[tuple[str, ...]] = ("history",)

    def __init__(
        self,
        lr: float | DecayScheduler = 0.1,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
    ) -> None:
        """Numbers from 0, or schedules.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr)
        self.epsilon = epsilon
        self.weight_decay = weight_decay

    @property
    def history(self) -> dict[str, Tensor]:
        """The sums of squared gradients by parameter name."""
        return self._moments.named("history")

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its history in place."""
        self.device_check(param_value, param_grad, *self._own_tensors())
        history = self._moments.of(param_value, param_name, "history")
        decay = self.decay_value if self._uses("weight_decay") else None
        updates.adagrad(param_value, param_grad, self.lr_value, history, self.epsilon_value, decay)


class Adam(Optimizer):
    """Bias-corrected first and second moments (Kingma and Ba, 2015), epsilon outside the root,
    the step counted by `step_counter` + 1; weight decay is added to the gradient."""

    hyperparameters: ClassVar[_Limits] = {
        "lr": ("lr_value", {}),
        "beta_1": ("beta_1_value", _FRACTION),
        "beta_2": ("beta_2_value", _FRACTION),
        "epsilon": ("epsilon_value", {}),
        "weight_decay": ("decay_value", {}),
    }
    moment_kinds: ClassVar[tuple[str, ...]] = ("m", "v")
    _decoupled: ClassVar[bool] = False

    def __init__(
        self,
        lr: float | DecayScheduler = 0.1,
        beta_1: float | DecayScheduler = 0.9,
        beta_2: float | DecayScheduler = 0.999,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
    ) -> None:
        """Numbers from 0 (betas below 1), or schedules. The default `lr` is SINGA's; 0.001 is
        what the paper recommends.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.weight_decay = weight_decay

    @property
    def m(self) -> dict[str, Tensor]:
        """The first moments by parameter name."""
        return self._moments.named("m")

    @property
    def v(self) -> dict[str, Tensor]:
        """The second moments by parameter name."""
        return self._moments.named("v")

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its moments in place."""
        self.device_check(param_value, param_grad, *self._own_tensors())
        first = self._moments.of(param_value, param_name, "m")
        second = self._moments.of(param_value, param_name, "v")
        updates.adam(
            param_value,
            param_grad,
            self.lr_value,
            (first, second),
            (self.beta_1_value, self.beta_2_value),
            self.epsilon_value,
            self.step_counter,
            self.decay_value if self._uses("weight_decay") else None,
            self._decoupled,
        )


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself by `lr * weight_decay` instead of
    being added to the gradient (Loshchilov and Hutter, 2019)."""

    _decoupled: ClassVar[bool] = True

    def __init__(
        self,
        lr: float | DecayScheduler = 0.001,
        beta_1: float | DecayScheduler = 0.9,
        beta_2: float | DecayScheduler = 0.999,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0.01,
    ) -> None:
        """As `Adam`, with the paper's defaults."""
        super().__init__(lr, beta_1, beta_2, epsilon, weight_decay)
