"""Optimizers that scale each element's step by its gradients' history."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from .. import autograd
from ..autograd.ops import op
from ..layer.check import flag
from ..tensor import Tensor
from .base import DEFAULT_LR, Optimizer, Options
from .composed import average, compose, decayed, number
from .hyperparameters import FRACTION, OPTIONAL, holders, moments_by_name
from .schedule import DecayScheduler

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Adaptive(Optimizer):
    """An optimizer whose update is one operation on the parameter, the gradient, the learning rate,
    moments, further tensors, and, where it is used, the weight decay."""

    is_elementwise = True
    #: The rule and its attributes, and whether it reads the step counter.
    _op: ClassVar[str]
    _attributes: ClassVar[dict[str, bool]] = {}
    _counts: ClassVar[bool] = False
    #: Hyperparameters that the operation does not read.
    _apart: ClassVar[tuple[str, ...]] = ()
    #: The kinds of moments that it reads.
    _read: ClassVar[tuple[str, ...]]
    #: The operation without weight decay, and with it.
    _updates: ClassVar[list[Any]]
    #: Gets the step counter and the tensors that the operation reads after the moments.
    _more: ClassVar[Callable[[Any], tuple[Tensor, ...]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._updates = [
            op("update", f=cls._op, weight_decay=d, **cls._attributes) for d in (False, True)
        ]
        if "moment_kinds" in vars(cls) and "_read" not in vars(cls):
            cls._read = cls.moment_kinds
        if "_op" in vars(cls):  # a user's subclass may declare others, which the operation lacks
            known = cls.hyperparameters.items()
            others = ("lr", "weight_decay", *OPTIONAL, *cls._apart)
            names = [holder for name, (holder, _) in known if name not in others]
            cls._more = attrgetter("step_counter", *names)

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its moments in place."""
        owner = self._ready(param_name, param_value, param_grad)
        read = [param_value, param_grad, owner.lr_value]
        read += [self._moments.of(param_value, param_name, kind) for kind in self._read]
        step, *more = self._more(owner)
        read += [*more, step] if self._counts else more
        if decays := owner._uses("weight_decay"):
            read.append(owner.decay_value)
        self._updates[decays](*read)


class RMSProp(_Adaptive):
    """`average = rho * average + (1 - rho) * g**2; p -= lr * g / sqrt(average + epsilon)`, with
    weight decay added to g. Epsilon is inside the root, as in SINGA (Tieleman and Hinton, 2012).

    With momentum, `velocity = momentum * velocity + g / sqrt(...)` takes the place of the quotient.
    If `centered`, the square of the average of g is subtracted from the average of squares before
    the root is taken (Graves, 2013; PyTorch RMSprop). Both are composed of tensor operations.
    """

    hyperparameters = holders(lr={}, rho=FRACTION, epsilon={}, weight_decay={}, momentum={})
    moment_kinds, _op = ("running_average", "mean", "velocity"), "rmsprop"
    _read, _apart = ("running_average",), ("momentum",)

    def __init__(
        self,
        lr: float | DecayScheduler = DEFAULT_LR,
        rho: float | DecayScheduler = 0.9,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
        momentum: float | DecayScheduler = 0,
        centered: bool = False,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0 (rho below 1), or schedules.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr, **options)
        self.rho, self.epsilon, self.weight_decay = rho, epsilon, weight_decay
        self.momentum, self.centered = momentum, flag(centered, "RMSProp: centered")

    running_average = moments_by_name(
        "running_average", "The averages of squared gradients by parameter name."
    )

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates the parameter and its moments in place."""
        owner = self.member(param_name, param_value)
        kinds = ["running_average"]
        kinds += ["mean"] if owner.centered else []
        kinds += ["velocity"] if owner._uses("momentum") else []
        if len(kinds) > 1:
            compose(owner, param_name, param_value, param_grad, kinds)
        else:
            super().apply(param_name, param_value, param_grad)

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments."""
        g, rho, squares = decayed(self, p, g), number(self, "rho", p), moments[0]
        made = [average(squares, g * g, rho)]
        variance = made[0]
        if self.centered:
            made.append(average(moments[1], g, rho))
            variance = autograd.maximum(variance - made[1] * made[1], 0.0)
        step = g / autograd.sqrt(variance + number(self, "epsilon", p))
        if self._uses("momentum"):
            step = moments[-1] * number(self, "momentum", p) + step
            made.append(step)
        return p - step * number(self, "lr", p), *made


class AdaGrad(_Adaptive):
    """`history += g**2; p -= lr * g / sqrt(history + epsilon)`, with weight decay added to g.
    Epsilon is inside the root, as in SINGA (Duchi et al., 2011)."""

    hyperparameters = holders(lr={}, epsilon={}, weight_decay={})
    moment_kinds, _op = ("history",), "adagrad"

    def __init__(
        self,
        lr: float | DecayScheduler = DEFAULT_LR,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0, or schedules.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr, **options)
        self.epsilon, self.weight_decay = epsilon, weight_decay

    history = moments_by_name("history", "The sums of squared gradients by parameter name.")


class Adam(_Adaptive):
    """Bias-corrected first and second moments (Kingma and Ba, 2015), epsilon outside the root,
    the step counted by `step_counter` + 1; weight decay is added to the gradient."""

    _usual_lr = 0.001
    hyperparameters = holders(lr={}, beta_1=FRACTION, beta_2=FRACTION, epsilon={}, weight_decay={})
    moment_kinds, _op, _attributes, _counts = ("m", "v"), "adam", {"decoupled": False}, True

    def __init__(
        self,
        lr: float | DecayScheduler = DEFAULT_LR,
        beta_1: float | DecayScheduler = 0.9,
        beta_2: float | DecayScheduler = 0.999,
        epsilon: float | DecayScheduler = 1e-8,
        weight_decay: float | DecayScheduler = 0,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0 (betas below 1), or schedules. The default `lr` is SINGA's; 0.001 is
        what the paper recommends.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr, **options)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.weight_decay = weight_decay

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
        **options: Unpack[Options],
    ) -> None:
        """As `Adam`, with the paper's defaults."""
        super().__init__(lr, beta_1, beta_2, epsilon, weight_decay, **options)


class Lion(_Adaptive):
    """`p -= lr * (sign(beta_1 * m + (1 - beta_1) * g) + weight_decay * p); m = beta_2 * m +
    (1 - beta_2) * g`: one moment, and steps of one size (Chen et al., 2023)."""

    hyperparameters = holders(lr={}, beta_1=FRACTION, beta_2=FRACTION, weight_decay={})
    moment_kinds, _op = ("m",), "lion"

    def __init__(
        self,
        lr: float | DecayScheduler = 1e-4,
        beta_1: float | DecayScheduler = 0.9,
        beta_2: float | DecayScheduler = 0.99,
        weight_decay: float | DecayScheduler = 0,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0 (betas below 1), or schedules; the defaults are the paper's.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr, **options)
        self.beta_1, self.beta_2, self.weight_decay = beta_1, beta_2, weight_decay

    m = moments_by_name("m", "The averages of gradients by parameter name.")
