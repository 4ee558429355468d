"""Hyperparameters that the program has assigned, as values that files hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..notices import once
from ..tensor import Tensor
from .schedule import Constant, DecayScheduler, ExponentialDecay, arguments
from .schedules import CosineDecay, LinearDecay, OneCycle, OnPlateau, StepDecay, Warmup

#: The state of `get_states` that has them.
ASSIGNED = "hyperparameters"
_CLASSES = (
    Constant, ExponentialDecay, StepDecay, LinearDecay, CosineDecay, OneCycle, Warmup, OnPlateau,
)  # fmt: skip
#: The schedules that can be made again from their arguments, which are their attributes.
_KINDS: dict[str, type[DecayScheduler]] = {kind.__name__: kind for kind in _CLASSES}


class Place(NamedTuple):
    """A hyperparameter of an optimizer or of one of its groups, and its key in states."""

    key: str
    owner: Any
    name: str

    @property
    def schedule(self) -> DecayScheduler | None:
        """What it has now; None where a group has nothing of its own."""
        return self.owner.__dict__.get(self.name)

    def assign(self, schedule: DecayScheduler) -> None:
        """Assigns what a checkpoint had."""
        setattr(self.owner, self.name, schedule)


def assigned(places: Iterator[Place]) -> dict[str, float | str]:
    """By key, what the program has assigned, also to attributes of schedules, or written into a
    hyperparameter's tensor: a number, or the text of a schedule."""
    found = {place.key: _told(place) for place in places if place.schedule is not None}
    return {key: value for key, value in found.items() if value is not None}


def _told(place: Place) -> float | str | None:
    schedule, is_assigned = place.schedule, place.name in place.owner._assigned
    if type(schedule) is not Constant:
        return text(schedule) if is_assigned or _is_changed(schedule) else None
    holder, limits = place.owner.hyperparameters[place.name]
    value, now = schedule.init_value, getattr(place.owner, holder).item()
    is_written = now != value and now != np.float32(value)
    if is_written and limits.get("low", 0.0) <= now < limits.get("below", np.inf):
        return now
    return value if is_assigned else None


def _is_changed(schedule: DecayScheduler | None) -> bool:
    """Whether an argument of a schedule, or of one that it has, has been assigned."""
    if schedule is None:
        return False
    held = [one for one in schedule.__dict__.values() if isinstance(one, DecayScheduler)]
    return schedule._is_changed or any(map(_is_changed, held))


def text(schedule: DecayScheduler | None) -> str:
    """A schedule's class and arguments, in JSON: of what is neither a number, a text, a bool, None
    nor a schedule the class alone, as what else tells of it may differ from run to run."""
    return json.dumps(schedule, default=_plain)


def _plain(schedule: DecayScheduler) -> Any:
    kind, held = type(schedule), schedule.__dict__
    is_known = _KINDS.get(kind.__name__) is kind
    name = kind.__name__ if is_known else f"{kind.__module__}.{kind.__qualname__}"
    return [name, {one: _argument(held.get(one)) for one in arguments(kind)}]


def _argument(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    is_plain = value is None or isinstance(value, (bool, int, float, str, DecayScheduler))
    return value if is_plain else type(value).__name__


def staged_places(
    op: str, places: Iterator[Place], given: Mapping[str, Any]
) -> list[tuple[Place, DecayScheduler]]:
    """Pairs of a place and the schedule that states have for it. What cannot be made again is left
    out with a warning.

    Raises:
        TypeError, ValueError: a value that the hyperparameter cannot have.
    """
    known = {place.key: place for place in places}
    for key in given.keys() - known.keys():
        once((op, key), f"{op}: leaves out {ASSIGNED}/{key}, which it does not have")
    found = [(known[key], _schedule(op, known[key], given[key])) for key in given if key in known]
    return [(place, schedule) for place, schedule in found if schedule is not None]


def _schedule(op: str, place: Place, given: Any) -> DecayScheduler | None:
    argument, value = f"{op}: {ASSIGNED}: {place.key}", _value(given)
    if not isinstance(value, str):
        limits = place.owner.hyperparameters[place.name][1]
        return Constant(place.owner._held(value, argument, **limits))
    if place.schedule is not None and text(place.schedule) == value:
        return place.schedule
    made = _read(value, argument)
    if made is None:
        want = f"assign the {value:.200} that it had before states are loaded"
        once((op, place.key, value), f"{argument}: stays {place.schedule!r}; {want}")
    return made


def _value(given: Any) -> Any:
    """A number or a text, which may be in a tensor."""
    array = given.to_numpy() if isinstance(given, Tensor) else given
    if not isinstance(array, (np.ndarray, np.generic)):
        return given
    if array.dtype == np.uint8:
        return array.tobytes().decode(errors="replace")
    return array.item() if array.size == 1 else given


def tensor_of(value: float | str) -> Tensor:
    """What `get_states` has of a hyperparameter, as a tensor."""
    if isinstance(value, str):
        array = np.array(list(value.encode()), np.uint8)
    else:
        array = np.array([value], np.float64)
    return Tensor(data=array, dtype=array.dtype, requires_grad=False)


def _read(value: str, argument: str) -> DecayScheduler | None:
    """The schedule of a text; None if it is of a class of the program's."""
    try:
        return _made(json.loads(value))
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        want = "want a schedule as get_states tells it"
        raise ValueError(f"{argument}: got {value!r:.80}, {want}") from error


def _made(told: Any) -> DecayScheduler | None:
    name, given = told
    inner = {key: _made(one) for key, one in given.items() if isinstance(one, list)}
    if name not in _KINDS or None in inner.values():
        return None
    return _KINDS[name](**{**given, **inner})
