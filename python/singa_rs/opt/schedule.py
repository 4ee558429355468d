"""Schedules: hyperparameters as functions of the step, computed by operations on tensors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from .. import tensor
from ..layer.check import flag, tensors
from ..record import filled_slots, note_change
from ..refusals import Hinted, is_real
from ..tensor import Tensor
from ..tensor.numbers import plain_real
from .arithmetic import AsNumber
from .noted import Noted, NotesDeletion, restoring


def number(value: Any, argument: str, low: float = 0.0, below: float = math.inf) -> float:
    """A finite number in [low, below), else a TypeError or ValueError that names the argument."""
    made = plain_real(value, argument)
    if not low <= made < below:
        want = f"a number from {low:g}" + (f" to below {below:g}" if below < math.inf else "")
        raise ValueError(f"{argument}: got {value!r}, want {want}")
    return made


def arguments(kind: type) -> list[str]:
    """The names of a constructor's own arguments."""
    given = inspect.signature(kind).parameters.values()
    return [one.name for one in given if one.kind is not one.VAR_KEYWORD]


#: A finite number, and one above 0.
real, positive = partial(number, low=-math.inf), partial(number, low=math.ulp(0.0))
#: What an attribute becomes, or a refusal, of a value and the text that names it in errors.
Checks = Mapping[str, Callable[[Any, str], Any]]


def _check_step(step: Any, schedule: DecayScheduler) -> None:
    tensors((step,), type(schedule).__name__)


def _double(step: Any, schedule: DecayScheduler) -> Tensor:
    """The step in float64, which is checked."""
    _check_step(step, schedule)
    return step.as_type(tensor.float64)


class DecayScheduler(AsNumber, NotesDeletion, Hinted):
    """A hyperparameter over time. Subclasses override `call`, which gets the step (a tensor of
    shape (1,), counted from 0) and returns a tensor of shape (1,)."""

    #: What changes between steps, by `observe`; None if nothing does.
    state: Tensor | None = None
    init_value: float
    #: Whether an argument has been assigned since construction.
    _is_changed = False
    #: By attribute, what checks and converts a value that is assigned to it.
    _checks: ClassVar[Checks] = {"init_value": real}

    def __init__(self, init_value: float) -> None:
        """`init_value`: a finite number.

        Raises:
            TypeError, ValueError: not a finite number.
        """
        self.init_value = init_value

    def call(self, step: Tensor) -> Tensor:
        """The value at a step."""
        raise NotImplementedError(f"{type(self).__name__} has no call")

    def _observe(self, metric: Any) -> None:
        """Shows a number, such as a validation loss, to a schedule that has a `state`."""
        raise NotImplementedError(f"{type(self).__name__} has no observe")

    def __call__(self, step: Tensor) -> Tensor:
        """Calls `call`."""
        _check_step(step, self)
        return self.call(step)

    def __repr__(self) -> str:
        """The class with the arguments that are its attributes, too."""
        held = {name: self.__dict__.get(name) for name in arguments(type(self))}
        shown = (f"{name}={one!r}" for name, one in held.items() if one is not None)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises what the constructor does for a value that an argument cannot be."""
        if name in self._checks:
            value = self._checks[name](value, f"{type(self).__name__}: {name}")
        if self.__dict__ or type(self) is not Constant:  # else it is being made; nothing reads it
            note_change()
        if name in self.__dict__ and name in arguments(type(self)):
            self.__dict__["_is_changed"] = True
        object.__setattr__(self, name, value)

    def _watched(self) -> Iterable[tuple[str, Any]]:
        """What a recorded step may read."""
        yield from (pair for pair in self.__dict__.items() if pair[0] != "_is_changed")
        yield from filled_slots(self)

    def _remember(self) -> Callable[[bool], None]:
        """Returns a function that restores the attributes."""
        return restoring(self)


class Constant(DecayScheduler):
    """The same value at each step, until another `init_value` is assigned: optimizers that have it
    as a hyperparameter then use that, as if it had been assigned to them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "init_value" and type(self) is Constant:
            value = real(value, "Constant: init_value")
            places = self._places()
            for owner, at in places:  # before anything changes
                owner._check_value(at, value)
            for owner, at in places:
                setattr(owner, at, Constant(value))
                object.__setattr__(owner, at, self)
        super().__setattr__(name, value)

    def _places(self) -> list[tuple[Any, str]]:
        """The optimizers and groups that have it, each with the hyperparameter's name."""
        noted = OWNERS.get(self, Noted()).items()
        return [(owner, name) for owner, name in noted if owner.__dict__.get(name) is self]

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,), whatever the step."""
        _check_step(step, self)
        return Tensor((1,), step.device, tensor.float64).set_value(self.init_value)

    def __float__(self) -> float:
        return self.init_value

    def __bool__(self) -> bool:
        return float(self) != 0

    def __eq__(self, other: Any) -> bool:
        if other is self or not (is_real(other) or isinstance(other, Constant)):
            return other is self or NotImplemented
        return float(self) == float(other)

    __hash__ = object.__hash__  # as its value changes

    def _of(self, value: float) -> Constant:
        return Constant(value)

    def __repr__(self) -> str:
        return f"Constant({self.init_value:g})"


#: By constant, the hyperparameters of optimizers and groups that it is, or was.
OWNERS: WeakKeyDictionary[Constant, Noted] = WeakKeyDictionary()


class ExponentialDecay(DecayScheduler):
    """`init_value * decay_rate ** (step / decay_steps)`; with `staircase` the exponent is rounded
    down to an integer."""

    _checks = {
        **DecayScheduler._checks,
        "decay_steps": positive,
        "decay_rate": positive,
        "staircase": flag,
    }

    def __init__(
        self, init_value: float, decay_steps: float, decay_rate: float, staircase: bool = False
    ) -> None:
        """`decay_steps` and `decay_rate` are above 0.

        Raises:
            TypeError, ValueError: an argument that is not a number, or out of its range.
        """
        super().__init__(init_value)
        self.decay_steps, self.decay_rate = decay_steps, decay_rate
        self.staircase = staircase

    def call(self, step: Tensor) -> Tensor:
        """A float64 tensor of shape (1,)."""
        step = _double(step, self)
        exponent = step // self.decay_steps if self.staircase else step / self.decay_steps
        return self.init_value * tensor.exp(exponent * math.log(self.decay_rate))
