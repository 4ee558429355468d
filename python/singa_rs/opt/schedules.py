"""Schedules that decay, rise and follow a metric. All compute in float64 from the step's tensor, so
that a recorded step follows them without another recording."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import autograd, device, tensor
from ..layer.check import count, number, one_of
from ..record import making_state
from ..tensor import Tensor
from .schedule import Constant, DecayScheduler, _check_step


def _double(step: Tensor) -> Tensor:
    return step.as_type(tensor.float64)


def _part(step: Tensor, start: float, end: float) -> Tensor:
    """How much of the way from `start` to `end` has been made, from 0 to 1."""
    return ((step - start) * (1 / (end - start))).clip(0.0, 1.0)


def _cosine(part: Tensor, start: float, end: float) -> Tensor:
    """From `start` to `end` by half a cosine."""
    return (autograd.cos(part * math.pi) + 1) * ((start - end) / 2) + end


class StepDecay(DecayScheduler):
    """`init_value * gamma ** (step // step_size)` (PyTorch StepLR)."""

    def __init__(self, init_value: float, step_size: int, gamma: float = 0.1) -> None:
        """`step_size` is a whole number from 1, `gamma` at least 0.

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        self.step_size = count(step_size, "StepDecay: step_size")
        self.gamma = number(gamma, "StepDecay: gamma", 0)

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        _check_step(step, self)
        return self.init_value * self.gamma ** (_double(step) // self.step_size)


class LinearDecay(DecayScheduler):
    """From `init_value` to `final_value` in equal steps, which is the value from `decay_steps` on
    (PyTorch LinearLR)."""

    def __init__(self, init_value: float, decay_steps: int, final_value: float = 0.0) -> None:
        """`decay_steps` is a whole number from 1.

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        name = type(self).__name__
        self.decay_steps = count(decay_steps, f"{name}: decay_steps")
        self.final_value = number(final_value, f"{name}: final_value")

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        _check_step(step, self)
        part = _part(_double(step), 0, self.decay_steps)
        return (1 - part) * self.init_value + part * self.final_value


class CosineDecay(LinearDecay):
    """From `init_value` to `final_value` by half a cosine, which is the value from `decay_steps` on
    (Loshchilov and Hutter, 2017; PyTorch CosineAnnealingLR up to its `T_max`)."""

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        _check_step(step, self)
        part = _part(_double(step), 0, self.decay_steps)
        return _cosine(part, self.init_value, self.final_value)


class OneCycle(DecayScheduler):
    """Up to `max_value` and down again, each by half a cosine (Smith and Topin, 2018; PyTorch
    OneCycleLR).

    It starts at `max_value / div_factor`, is at `max_value` in step `rise * total_steps - 1`, and
    in step `total_steps - 1` and from then on at the start divided by `final_div_factor`.
    """

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
        least = math.ulp(0.0)
        self.max_value = number(max_value, "OneCycle: max_value")
        self.total_steps = count(total_steps, "OneCycle: total_steps", 3)
        self.rise = number(rise, "OneCycle: rise", 0, 1)
        self.div_factor = number(div_factor, "OneCycle: div_factor", least)
        super().__init__(self.max_value / self.div_factor)
        self.final_div_factor = number(final_div_factor, "OneCycle: final_div_factor", least)
        self.final_value = self.init_value / self.final_div_factor
        self.peak = self.rise * self.total_steps - 1
        if not 0 < self.peak < self.total_steps - 1:
            raise ValueError(
                f"OneCycle: rise: got {rise} of {total_steps} steps, want more than 1 step and "
                "fewer than all"
            )

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        _check_step(step, self)
        step = _double(step)
        up = _cosine(_part(step, 0, self.peak), self.init_value, self.max_value)
        down = _part(step, self.peak, self.total_steps - 1)
        return up + _cosine(down, 0.0, self.final_value - self.max_value)


class Warmup(DecayScheduler):
    """Rises to the first value of another schedule in `steps` equal steps, then follows it from its
    step 0: `then(0) * (step + 1) / steps`, then `then(step - steps)`."""

    def __init__(self, steps: int, then: float | DecayScheduler) -> None:
        """`steps` is a whole number from 1; `then` a number or a schedule.

        Raises:
            TypeError, ValueError: anything else.
        """
        self.steps = count(steps, "Warmup: steps")
        self.then = then if isinstance(then, DecayScheduler) else Constant(then)
        super().__init__(self.then.init_value / self.steps)

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
        _check_step(step, self)
        part = _part(_double(step), -1, self.steps - 1)
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
            threshold: how much better than the best a metric must be, relative to the best.
            cooldown: how many observations after a reduction do not count.
            min_value: below which the value is not reduced.
            mode: whether the metric should be small, "min", or large, "max".

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        self.factor = number(factor, "OnPlateau: factor", 0, 1)
        self.patience = count(patience, "OnPlateau: patience", 0)
        self.threshold = number(threshold, "OnPlateau: threshold", 0)
        self.cooldown = count(cooldown, "OnPlateau: cooldown", 0)
        self.min_value = number(min_value, "OnPlateau: min_value")
        if not isinstance(mode, str):
            raise TypeError(f"OnPlateau: mode: got {mode!r}, want 'min' or 'max'")
        self.mode = one_of(mode, "OnPlateau: mode", ("min", "max"))
        with making_state():
            made = Tensor((4,), device.get_default_device(), tensor.float64, requires_grad=False)
            made.copy_from(np.array([self.init_value, math.nan, 0, 0]))
        made.set_account("states")
        self.state = made

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
