"""SINGA 1.x's optimizers, which update one parameter at a time: `apply(epoch, grad, value, name)`.

Formulas are those of SINGA 1.x: the momentum buffer of `SGD` holds gradients times the learning
rate that they came with. Gradients are not changed, unlike in SINGA, where regularizers add to them
in place; `apply` of a regularizer or a constraint itself still does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from .. import autograd
from ..autograd.ops import op
from ..layer.check import number, tensors
from ..opt.hyperparameters import Scheduled, moments_by_name
from ..tensor import Tensor
from .layer.specs import ParamSpec

__all__ = [
    "AdaGrad",
    "Adam",
    "Constraint",
    "L2Constraint",
    "L2Regularizer",
    "Nesterov",
    "Optimizer",
    "ParamSpec",
    "RMSProp",
    "Regularizer",
    "SGD",
]


def __dir__() -> list[str]:
    return sorted(__all__)


#: `p -= lr * g` in place.
_descend = op("update", f="sgd", momentum=False, nesterov=False, weight_decay=False)


class Regularizer:
    """Adds to gradients what keeps parameters small."""

    def apply(self, epoch: int, value: Tensor, grad: Tensor, step: int = -1) -> Tensor:
        """Changes the gradient of a parameter in place; returns it."""
        raise NotImplementedError(f"{type(self).__name__} has no apply")


class L2Regularizer(Regularizer):
    """`grad += coefficient * value`."""

    def __init__(self, coefficient: float) -> None:
        self.coefficient = number(coefficient, "L2Regularizer: coefficient")

    def apply(self, epoch: int, value: Tensor, grad: Tensor, step: int = -1) -> Tensor:
        """Changes the gradient in place; returns it."""
        if self.coefficient:
            with autograd.no_grad():
                grad += value * self.coefficient
        return grad


class Constraint:
    """Limits gradients."""

    def apply(self, epoch: int, value: Tensor, grad: Tensor, step: int = -1) -> Tensor:
        """Changes the gradient of a parameter in place; returns it."""
        return grad


class L2Constraint(Constraint):
    """Scales a gradient down to the norm `threshold` where it is above: the Euclidean norm divided
    by the number of elements, as `Tensor.l2`. SINGA scales smaller ones up, too."""

    def __init__(self, threshold: float) -> None:
        self.threshold = number(threshold, "L2Constraint: threshold", 0.0)

    def apply(self, epoch: int, value: Tensor, grad: Tensor, step: int = -1) -> Tensor:
        """Changes the gradient in place; returns it."""
        with autograd.no_grad():
            norm = autograd.sqrt((grad * grad).sum()) * (1.0 / max(1, grad.numel))
            grad *= (norm**-1.0 * self.threshold).clip(None, 1.0)
        return grad


class Optimizer(Scheduled):
    """What all optimizers share.

    A parameter's state belongs to its name and tensor. Its specification (`register`) may multiply
    the learning rate and the weight decay, and bring a regularizer and a constraint of its own,
    which take the place of the optimizer's. Subclasses define `_move`.
    """

    hyperparameters: ClassVar[dict[str, tuple[str, dict[str, float]]]] = {
        "rate": ("rate_value", {"low": -math.inf})
    }

    def __init__(
        self,
        lr: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        regularizer: Regularizer | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        """`lr`: the learning rate of `apply`.

        Args:
            momentum: a number from 0.
            weight_decay: the coefficient of an `L2Regularizer`, instead of a `regularizer`.
            regularizer, constraint: of all parameters.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = type(self).__name__
        if weight_decay is not None and regularizer is not None:
            raise ValueError(f"{name}: got weight_decay and regularizer, want at most one of them")
        self.rate = 0.0
        self.lr = lr
        self.momentum = None if momentum is None else number(momentum, f"{name}: momentum", 0.0)
        decays = weight_decay is not None
        self.regularizer = L2Regularizer(weight_decay) if decays else regularizer
        self.constraint = constraint
        self.regularizers: dict[str, Regularizer] = {}
        self.constraints: dict[str, Constraint] = {}
        self.learning_rate_multiplier: dict[str, float] = {}

    def register(self, name: str, specs: ParamSpec) -> None:
        """Notes the specification of a parameter.

        Raises:
            TypeError: not a name, or not a `ParamSpec`.
            ValueError: a multiple of the decay of a regularizer that is no `L2Regularizer`.
        """
        if not isinstance(name, str) or not isinstance(specs, ParamSpec):
            kinds = f"{type(name).__name__} and {type(specs).__name__}"
            raise TypeError(f"register: got {kinds}, want a name and a ParamSpec")
        if specs.regularizer is not None:
            self.regularizers[name] = L2Regularizer(specs.regularizer.coefficient)
        elif specs.decay_mult != 1 and self.regularizer is not None:
            if not isinstance(self.regularizer, L2Regularizer):
                kind = type(self.regularizer).__name__
                raise ValueError(f"register: {name}: decay_mult multiplies no {kind}")
            decay = specs.decay_mult * self.regularizer.coefficient
            self.regularizers[name] = L2Regularizer(decay)
        if specs.constraint is not None:
            self.constraints[name] = L2Constraint(specs.constraint.threshold)
        if specs.lr_mult != 1:
            self.learning_rate_multiplier[name] = specs.lr_mult

    def _limits(self, name: str | None) -> Iterator[Regularizer | Constraint]:
        """The constraint and the regularizer of a parameter, in the order in which they apply."""
        for own, shared in (
            (self.constraints, self.constraint),
            (self.regularizers, self.regularizer),
        ):
            found = own.get(name, shared) if name is not None else shared
            if found is not None:
                yield found

    def apply_regularizer_constraint(
        self, epoch: int, value: Tensor, grad: Tensor, name: str | None = None, step: int = -1
    ) -> Tensor:
        """The gradient with the constraint and the regularizer of the parameter applied: another
        tensor if there are any."""
        for count, limit in enumerate(self._limits(name)):
            grad = limit.apply(epoch, value, grad if count else grad.clone(), step)
        return grad

    @property
    def depends_on_time(self) -> bool:
        """Whether an update may depend on the epoch and the step besides the rate: there is a
        regularizer or a constraint of the program."""
        own = (*self.regularizers.values(), *self.constraints.values())
        known = (type(None), L2Regularizer, L2Constraint, Constraint)
        return any(type(one) not in known for one in (self.regularizer, self.constraint, *own))

    def begin(self, epoch: int, lr: float, step: int = -1) -> None:
        """Sets the rate of the updates that follow, which are at this step."""
        rate = self._rate(epoch, float(lr), step)
        if float(vars(self)["rate"].init_value) != rate:
            self.rate = rate

    def _rate(self, epoch: int, lr: float, step: int) -> float:
        return lr

    def _uses(self, name: str) -> bool:
        """Updates read the rate, also where it is 0."""
        return True

    def update(
        self, epoch: int, grad: Tensor, value: Tensor, name: str | None = None, step: int = -1
    ) -> None:
        """Updates a parameter in place at the rate that `begin` set, by operations alone."""
        tensors((grad, value), f"{type(self).__name__}.update")
        if grad.is_empty():
            return
        with autograd.no_grad():
            grad = self.apply_regularizer_constraint(epoch, value, grad, name, step)
            self._fit(value)
            times = self.learning_rate_multiplier.get(name, 1.0) if name is not None else 1.0
            rate = self.rate_value if times == 1 else self.rate_value * times
            self._move(value.name if name is None else name, value, grad, rate)

    def _move(self, name: str, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        """Updates a parameter in place; `rate` is of shape (1,)."""
        raise NotImplementedError(f"{type(self).__name__} has no _move")

    def _history(self, value: Tensor, name: str, kind: str = "history") -> Tensor:
        """A moment of a parameter, zeros at first."""
        return self._moments.of(value, name, kind)

    def apply_with_lr(
        self,
        epoch: int,
        lr: float,
        grad: Tensor,
        value: Tensor,
        name: str | None = None,
        step: int = -1,
    ) -> Tensor:
        """Updates a parameter in place and returns it; a gradient without elements changes nothing.

        Args:
            epoch: the number of the epoch.
            lr: the learning rate.
            grad, value: the gradient and the parameter, of one shape.
            name: tells parameters apart.
            step: the number of the step.
        """
        tensors((grad, value), f"{type(self).__name__}.apply_with_lr")
        if not grad.is_empty():
            self.begin(epoch, lr, step)
            self.update(epoch, grad, value, name, step)
        return value

    def apply(
        self, epoch: int, grad: Tensor, value: Tensor, name: str | None = None, step: int = -1
    ) -> Tensor:
        """As `apply_with_lr` at the rate `lr` of the constructor.

        Raises:
            ValueError: there is none.
        """
        if self.lr is None:
            raise ValueError(f"{type(self).__name__}.apply: got no lr, want one at construction")
        return self.apply_with_lr(epoch, self.lr, grad, value, name, step)


class SGD(Optimizer):
    """`history = momentum * history + lr * grad; value -= history`; without momentum,
    `value -= lr * grad`."""

    moment_kinds = ("history",)
    history = moments_by_name("history", "The momentum buffers by parameter name.")

    def _move(self, name: str, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        if not self.momentum:
            _descend(value, grad, rate)
            return
        history = self._history(value, name)
        history *= self.momentum
        history += grad * rate
        value -= history


class Nesterov(Optimizer):
    """SGD with Nesterov's momentum: `before = history; history = momentum * history + lr * grad;
    value -= (1 + momentum) * history - momentum * before`."""

    moment_kinds = ("history",)
    history = moments_by_name("history", "The momentum buffers by parameter name.")

    def __init__(
        self,
        lr: float | None = None,
        momentum: float = 0.9,
        weight_decay: float | None = None,
        regularizer: Regularizer | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        """As `Optimizer`."""
        super().__init__(lr, momentum, weight_decay, regularizer, constraint)

    def _move(self, name: str, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        history, momentum = self._history(value, name), self.momentum or 0.0
        before = history * momentum
        history *= momentum
        history += grad * rate
        value -= history * (1 + momentum) - before


class RMSProp(Optimizer):
    """`history = rho * history + (1 - rho) * grad ** 2; value -= lr * grad / sqrt(history +
    epsilon)`."""

    moment_kinds = ("history",)
    history = moments_by_name("history", "The mean squares by parameter name.")

    def __init__(
        self, rho: float = 0.9, epsilon: float = 1e-8, lr: float | None = None, **kwargs: Any
    ) -> None:
        """`rho`: from 0 to 1. `epsilon`: from 0. The rest as `Optimizer`, without momentum."""
        super().__init__(lr, **_without_momentum("RMSProp", kwargs))
        self.rho = number(rho, "RMSProp: rho", 0.0, 1.0)
        self.epsilon = number(epsilon, "RMSProp: epsilon", 0.0)

    def _move(self, name: str, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        history = self._history(value, name)
        history *= self.rho
        history += grad * grad * (1 - self.rho)
        value -= grad / autograd.sqrt(history + self.epsilon) * rate


class AdaGrad(Optimizer):
    """`history += grad ** 2; value -= lr * grad / sqrt(history + epsilon)`."""

    moment_kinds = ("history",)
    history = moments_by_name("history", "The sums of squares by parameter name.")

    def __init__(self, epsilon: float = 1e-8, lr: float | None = None, **kwargs: Any) -> None:
        """`epsilon`: from 0. The rest as `Optimizer`, without momentum."""
        super().__init__(lr, **_without_momentum("AdaGrad", kwargs))
        self.epsilon = number(epsilon, "AdaGrad: epsilon", 0.0)

    def _move(self, name: str, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        history = self._history(value, name)
        history += grad * grad
        value -= grad / autograd.sqrt(history + self.epsilon) * rate


class Adam(Optimizer):
    """`m = beta_1 * m + (1 - beta_1) * grad; v = beta_2 * v + (1 - beta_2) * grad ** 2;
    value -= alpha * m / (sqrt(v) + epsilon)` with
    `alpha = lr * sqrt(1 - beta_2 ** t) / (1 - beta_1 ** t)` (Kingma and Ba, 2015)."""

    moment_kinds = ("m", "v")
    m = moments_by_name("m", "The means of gradients by parameter name.")
    v = moments_by_name("v", "The means of their squares by parameter name.")

    def __init__(
        self,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        lr: float | None = None,
        **kwargs: Any,
    ) -> None:
        """`beta_1`, `beta_2`, from 0 to 1; `epsilon`, from 0. The rest as `Optimizer`, without
        momentum."""
        super().__init__(lr, **_without_momentum("Adam", kwargs))
        self.beta_1 = number(beta_1, "Adam: beta_1", 0.0, 1.0)
        self.beta_2 = number(beta_2, "Adam: beta_2", 0.0, 1.0)
        self.epsilon = number(epsilon, "Adam: epsilon", 0.0)
        self._time, self._last = 0, (-1, -1)

    def _rate(self, epoch: int, lr: float, step: int) -> float:
        """The rate with the correction of the moments' bias; each new step counts once.

        Raises:
            ValueError: no number of the step.
        """
        if step < 0:
            raise ValueError(f"Adam: got step {step}, want the number of the step, from 0")
        if (epoch, step) != self._last:
            self._time, self._last = self._time + 1, (epoch, step)
        corrected = math.sqrt(1 - self.beta_2**self._time) / (1 - self.beta_1**self._time)
        return lr * corrected

    def _watched(self) -> Iterator[tuple[str, Any]]:
        """The count of steps acts through the rate alone."""
        return (pair for pair in super()._watched() if pair[0] not in ("_time", "_last"))

    def _move(self, name: str, value: Tensor, grad: Tensor, rate: Tensor) -> None:
        m, v = self._history(value, name, "m"), self._history(value, name, "v")
        m *= self.beta_1
        m += grad * (1 - self.beta_1)
        v *= self.beta_2
        v += grad * grad * (1 - self.beta_2)
        value -= m * rate / (autograd.sqrt(v) + self.epsilon)


def _without_momentum(name: str, options: dict[str, Any]) -> dict[str, Any]:
    known = ("weight_decay", "regularizer", "constraint")
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"{name}: got an unknown argument {unknown[0]!r}")
    return options
