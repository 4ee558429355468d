"""Optimizers that scale each element's step by its gradients' history."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar

from ..autograd.ops import op
from ..tensor import Tensor
from .base import Optimizer, moments_by_name
from .schedule import DecayScheduler

_Limits = dict[str, tuple[str, dict[str, float]]]
_FRACTION = {"low": 0.0, "below": 1.0}


class _Adaptive(Optimizer):
    """An optimizer whose update is one operation on the parameter, the gradient, the learning rate,
    moments, further tensors, and, where it is used, the weight decay."""

    #: The rule and its attributes, and which moments it reads.
    _op: ClassVar[str]
    _attributes: ClassVar[dict[str, bool]] = {}
    _kinds: ClassVar[tuple[str, ...]]
    #: Gets the further tensors.
    _more: ClassVar[Callable[[Any], tuple[Tensor, ...]]]
    #: The operation without weight decay, and with it.
    _updates: ClassVar[list[Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._updates = [op("update", f=cls._op, weight_decay=d, **cls._attributes) for d in (False, True)]

    def __init__(
        self, lr: float | DecayScheduler, **hyperparameters: float | DecayScheduler
    ) -> None:
        super().__init__(lr)
        for name, value in hyperparameters.items():
            setattr(self, name, value)

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its moments in place."""
        self._fit(param_value)
        self.device_check(param_value, param_grad, *self._own_tensors())
        read = [param_value, param_grad, self.lr_value]
        for kind in self._kinds:
            read.append(self._moments.of(param_value, param_name, kind))
        read += self._more(self)
        decays = self._uses("weight_decay")
        if decays:
            read.append(self.decay_value)
        self._updates[decays](*read)


class RMSProp(_Adaptive):
    """`average = rho * average + (1 - rho) * g**2; p -= lr * g / sqrt(average + epsilon)`, with
    weight decay added to g. Epsilon is inside the root, as in SINGA (Tieleman and Hinton, 2012).
    """

    hyperparameters: ClassVar[_Limits] = {
        "lr": ("lr_value", {}),
        "rho": ("rho_value", _FRACTION),
        "epsilon": ("epsilon_value", {}),
        "weight_decay": ("decay_value", {}),
    }
    moment_kinds = _kinds = ("running_average",)
    _op, _more = "rmsprop", attrgetter("rho_value", "epsilon_value")

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
        super().__init__(lr, rho=rho, epsilon=epsilon, weight_decay=weight_decay)

    running_average = moments_by_name(
        "running_average", "The averages of squared gradients by parameter name."
    )


class AdaGrad(_Adaptive):
    """`history += g**2; p -= lr * g / sqrt(history + epsilon)`, with weight decay added to g.
    Epsilon is inside the root, as in SINGA (Duchi et al., 2011)."""

    hyperparameters: ClassVar[_Limits] = {
        "lr": ("lr_value", {}),
        "epsilon": ("epsilon_value", {}),
        "weight_decay": ("decay_value", {}),
    }
    moment_kinds = _kinds = ("history",)
    _op = "adagrad"
    _more = staticmethod(lambda optimizer: (optimizer.epsilon_value,))

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
        super().__init__(lr, epsilon=epsilon, weight_decay=weight_decay)

    history = moments_by_name("history", "The sums of squared gradients by parameter name.")


class Adam(_Adaptive):
    """Bias-corrected first and second moments (Kingma and Ba, 2015), epsilon outside the root,
    the step counted by `step_counter` + 1; weight decay is added to the gradient."""

    hyperparameters: ClassVar[_Limits] = {
        "lr": ("lr_value", {}),
        "beta_1": ("beta_1_value", _FRACTION),
        "beta_2": ("beta_2_value", _FRACTION),
        "epsilon": ("epsilon_value", {}),
        "weight_decay": ("decay_value", {}),
    }
    moment_kinds = _kinds = ("m", "v")
    _op, _attributes = "adam", {"decoupled": False}
    _more = attrgetter("beta_1_value", "beta_2_value", "epsilon_value", "step_counter")

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
        super().__init__(
            lr, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, weight_decay=weight_decay
        )

    m = moments_by_name("m", "The first moments by parameter name.")
    v = moments_by_name("v", "The second moments by parameter name.")


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself by `lr * weight_decay` instead of
    being added to the gradient (Loshchilov and Hutter, 2019)."""

    _attributes = {"decoupled": True}

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
