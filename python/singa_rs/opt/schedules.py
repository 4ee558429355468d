"""Schedules that decay, rise and follow a metric. All compute in float64 from the step's tensor, so
that a recorded step follows them without another recording."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .. import autograd, device, tensor
from ..layer.check import count, number, one_of
from ..record import making_state
from ..tensor import Tensor
from .schedule import Checks, Constant, DecayScheduler, _check_step, _double, positive


def _part(step: Tensor, start: float, end: float) -> Tensor:
    """How much of the way from `start` to `end` has been made, from 0 to 1."""
    return ((step - start) * (1 / (end - start))).clip(0.0, 1.0)


def _cosine(part: Tensor, start: float, end: float) -> Tensor:
    """From `start` to `end` by half a cosine."""
    return (autograd.cos(part * math.pi) + 1) * ((start - end) / 2) + end


#: A number from 0, one up to 1, and a whole number from 0.
_FROM_0, _SHARE = partial(number, low=0), partial(number, low=0, high=1)
_COUNT_FROM_0 = partial(count, least=0)


def _following(others: str) -> Callable[[Any, str], Any]:
    """Refuses an assignment to what follows from other attributes."""

    def refuse(value: Any, argument: str) -> None:
        raise ValueError(f"{argument}: got {value!r:.80}, but it follows from {others}")

    return refuse


def _scheduled(value: Any, argument: str) -> DecayScheduler:
    return value if isinstance(value, DecayScheduler) else Constant(value)


def _mode(value: Any, argument: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{argument}: got {value!r:.80}, want 'min' or 'max'")
    return one_of(value, argument, ("min", "max"))


class StepDecay(DecayScheduler):
    """`init_value * gamma ** (step // step_size)` (PyTorch StepLR)."""

    _checks = {**DecayScheduler._checks, "step_size": count, "gamma": _FROM_0}

    def __init__(self, init_value: float, step_size: int, gamma: float = 0.1) -> None:
        """`step_size` is a whole number from 1, `gamma` at least 0.

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        self.step_size, self.gamma = step_size, gamma

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        return self.init_value * self.gamma ** (_double(step, self) // self.step_size)


class LinearDecay(DecayScheduler):
    """From `init_value` to `final_value` in equal steps, which is the value from `decay_steps` on
    (PyTorch LinearLR)."""

    _checks = {**DecayScheduler._checks, "decay_steps": count, "final_value": number}

    def __init__(self, init_value: float, decay_steps: int, final_value: float = 0.0) -> None:
        """`decay_steps` is a whole number from 1.

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        self.decay_steps, self.final_value = decay_steps, final_value

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        part = _part(_double(step, self), 0, self.decay_steps)
        return (1 - part) * self.init_value + part * self.final_value


class CosineDecay(LinearDecay):
    """From `init_value` to `final_value` by half a cosine, which is the value from `decay_steps` on
    (Loshchilov and Hutter, 2017; PyTorch CosineAnnealingLR up to its `T_max`)."""

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        part = _part(_double(step, self), 0, self.decay_steps)
        return _cosine(part, self.init_value, self.final_value)


class OneCycle(DecayScheduler):
    """Up to `max_value` and down again, each by half a cosine (Smith and Topin, 2018; PyTorch
    OneCycleLR).

    It starts at `max_value / div_factor`, is at `max_value` in step `rise * total_steps - 1`, and
    in step `total_steps - 1` and from then on at the start divided by `final_div_factor`.
    """

    _checks: ClassVar[Checks] = {
        "init_value": _following("max_value and div_factor"),
        "final_value": _following("max_value, div_factor and final_div_factor"),
        "peak": _following("rise and total_steps"),
        "max_value": number,
        "total_steps": partial(count, least=3),
        "rise": _SHARE,
        "div_factor": positive,
        "final_div_factor": positive,
    }

    def __init__(
        self,
        max_value: float,
        total_steps: int,
        rise: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        """`rise` is between 0 and 1, and takes at least two of the steps and leaves at least one;
        the factors are above 0.

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        self.max_value, self.total_steps, self.rise = max_value, total_steps, rise
        self.div_factor, self.final_div_factor = div_factor, final_div_factor

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises what the constructor does, also where `rise` and `total_steps` do not fit."""
        before = dict(self.__dict__)
        super().__setattr__(name, value)
        if name in ("rise", "total_steps") and {"rise", "total_steps"} <= self.__dict__.keys():
            if not 0 < self.peak < self.total_steps - 1:
                rise, steps = self.rise, self.total_steps
                self.__dict__.clear()
                self.__dict__.update(before)
                raise ValueError(
                    f"OneCycle: rise: got {rise} of {steps} steps, want more than 1 step and fewer "
                    "than all"
                )

    @property
    def init_value(self) -> float:  # type: ignore[override]
        """The value at step 0."""
        return self.max_value / self.div_factor

    @property
    def final_value(self) -> float:
        """The value at the end."""
        return self.init_value / self.final_div_factor

    @property
    def peak(self) -> float:
        """The step that has `max_value`."""
        return self.rise * self.total_steps - 1

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        step = _double(step, self)
        up = _cosine(_part(step, 0, self.peak), self.init_value, self.max_value)
        down = _part(step, self.peak, self.total_steps - 1)
        return up + _cosine(down, 0.0, self.final_value - self.max_value)


class Warmup(DecayScheduler):
    """Rises to the first value of another schedule in `steps` equal steps, then follows it from its
    step 0: `then(0) * (step + 1) / steps`, then `then(step - steps)`."""

    _checks = {"init_value": _following("then and steps"), "steps": count, "then": _scheduled}

    def __init__(self, steps: int, then: float | DecayScheduler) -> None:
        """`steps` is a whole number from 1; `then` a number or a schedule.

        Raises:
            TypeError, ValueError: anything else.
        """
        self.steps, self.then = steps, then

    @property
    def init_value(self) -> float:  # type: ignore[override]
        """The value at step 0."""
        return self.then.init_value / self.steps

    @property
    def state(self) -> Tensor | None:  # type: ignore[override]
        """That of the schedule that follows."""
        return self.then.state

    @state.setter
    def state(self, value: Tensor | None) -> None:
        self.then.state = value

    def _observe(self, metric: Any) -> None:
        """Shows a number to the schedule that follows."""
        self.then._observe(metric)

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        part = _part(_double(step, self), -1, self.steps - 1)
        after = (step - self.steps).clip(0, None)
        return self.then(after).as_type(tensor.float64) * part


def warmup(steps: int, then: float | DecayScheduler) -> Warmup:
    """A number or a schedule after a rise to its first value in `steps` equal steps."""
    return Warmup(steps, then)


class OnPlateau(DecayScheduler):
    """`init_value`, multiplied by `factor` whenever a metric has not improved for more than
    `patience` observations (PyTorch ReduceLROnPlateau).

    The program shows the metric to the optimizer between steps, by `Optimizer.observe`. That
    writes the value into a tensor, which recorded steps read. `state` is a float64 tensor of what
    there is to remember: the value, the best metric, the observations since then, and those left
    to wait.
    """

    _checks = {
        **DecayScheduler._checks,
        "factor": _SHARE,
        "patience": _COUNT_FROM_0,
        "threshold": _FROM_0,
        "cooldown": _COUNT_FROM_0,
        "min_value": number,
        "mode": _mode,
    }

    def __init__(
        self,
        init_value: float,
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_value: float = 0.0,
        mode: str = "min",
    ) -> None:
        """Whole numbers from 0, `factor` from 0 to 1.

        Args:
            threshold: how much better than the best a metric must be, relative to the best: below
                `best * (1 - threshold)`, or, if it should be large, above
                `best * (1 + threshold)`. As in PyTorch, that is also so of negative metrics, with
                which a slightly worse one counts as better; 0 suits these.
            cooldown: how many observations after a reduction do not count.
            min_value: below which the value is not reduced.
            mode: whether the metric should be small, "min", or large, "max".

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        self.factor, self.patience, self.threshold = factor, patience, threshold
        self.cooldown, self.min_value, self.mode = cooldown, min_value, mode
        with making_state():
            made = Tensor((4,), device.get_default_device(), tensor.float64, requires_grad=False)
            made.copy_from(np.array([self.init_value, math.nan, 0, 0]))
        made.set_account("states")
        self.state = made

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises what the constructor does, and a ValueError for another `init_value`, from which
        `state` has begun."""
        if name == "init_value" and self.state is not None:
            want = f"another schedule assigned, such as optimizer.lr = opt.OnPlateau({value!r:.20})"
            raise ValueError(f"OnPlateau: init_value: got {value!r:.80}, want {want}")
        super().__setattr__(name, value)

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,), whatever the step."""
        _check_step(step, self)
        return self.state[:1]

    def _observe(self, metric: Any) -> None:
        """Counts an observation, and reduces the value if it is one too many without improvement.

        Raises:
            TypeError, ValueError: anything but a finite number.
        """
        metric = metric.item() if isinstance(metric, Tensor) else metric
        metric = number(metric, "OnPlateau.observe: metric")
        value, best, bad, wait = self.state.tolist()
        is_better = math.isnan(best) or self._beats(metric, best)
        best, bad = (metric, 0.0) if is_better else (best, bad + 1)
        if wait > 0:
            wait, bad = wait - 1, 0.0
        if bad > self.patience:
            value = max(value * self.factor, min(self.min_value, value))
            wait, bad = float(self.cooldown), 0.0
        self.state.copy_from(np.array([value, best, bad, wait]))

    def _beats(self, metric: float, best: float) -> bool:
        if self.mode == "min":
            return metric < best * (1 - self.threshold)
        return metric > best * (1 + self.threshold)
