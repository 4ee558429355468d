"""Hyperparameters in tensors, a step counter, and state for each parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from .. import autograd, device, elsewhere, tensor
from ..autograd.mode import mode
from ..layer.check import mapping
from ..layer.collect import staged
from ..notices import once
from ..record import filled_slots, making_state, note_change
from ..shown import shown
from ..tensor import Tensor
from . import constants, names
from .assigned import ASSIGNED, Place, assigned, staged_places
from .holding import keep_written, on, scalar, value_at
from .moments import Moments, are_whole
from .names import COUNTER, SCHEDULES
from .noted import READ, Noting, restoring
from .observing import observe
from .schedule import Constant, DecayScheduler, number


def moments_by_name(kind: str, doc: str) -> Any:
    """A property of an optimizer: its moments of one kind."""
    return property(lambda optimizer: optimizer._moments.named(kind), doc=doc)


#: The limits of what is from 0 to below 1.
FRACTION = {"low": 0.0, "below": 1.0}
#: Names of tensors that are not the hyperparameter's with `_value`.
_HOLDERS = {"momentum": "mom_value", "dampening": "dam_value", "weight_decay": "decay_value"}


def holders(**limits: dict[str, float]) -> dict[str, tuple[str, dict[str, float]]]:
    """`hyperparameters` with these limits, each with SINGA's name of its tensor."""
    return {name: (_HOLDERS.get(name, f"{name}_value"), one) for name, one in limits.items()}


#: Hyperparameters that every optimizer has; None turns them off.
OPTIONAL = ("clip_norm", "clip_value")
#: The state in which gradients add up over several losses.
SUMS = "accumulated"


class Scheduled(constants.Follows):
    """Hyperparameters that may change from step to step.

    Each is an attribute (`lr`), a `DecayScheduler` that may be assigned a number or another
    schedule at any time, as may the `init_value` of a `Constant`; and a tensor of shape (1,) with
    its current value (`lr_value`), which operations read; so a new value takes effect at the next
    step. These tensors are float32, and float64 from the first update of a float64 parameter on.
    `step_counter` is an int32 tensor of shape (1,).
    """

    #: Attribute of each hyperparameter -> (attribute of its tensor, the values it may have).
    hyperparameters: ClassVar[dict[str, tuple[str, dict[str, float]]]] = {}
    _moments: Moments
    #: The optimizer whose group this is.
    _parent: Any = None
    #: Whether the tensors of the hyperparameters are float64.
    _is_double = False
    #: The hyperparameters that were assigned since construction.
    _assigned: frozenset[str] = frozenset()
    #: By the text that names a hyperparameter in errors, the version of its tensor when a constant
    #: was written into it.
    _versions: Mapping[str, int] = MappingProxyType({})
    #: Whether the constructor, with those of subclasses, has returned.
    _is_made = False
    #: Kinds of moments, as `get_states` names them.
    moment_kinds: ClassVar[tuple[str, ...]] = ()

    def __init__(self, dtype: Any = tensor.float32) -> None:
        """`dtype` is that of the hyperparameters' tensors: float64, or else float32."""
        self.dtype = dtype
        self._is_double = Tensor((0,), dtype=dtype).dtype == tensor.float64
        self.step_counter = scalar(tensor.int32)
        self._moments = Moments(*self.moment_kinds, SUMS)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.hyperparameters:
            before = self._structure(name)
            value = self._set_hyperparameter(name, value)
            if self._is_made:
                object.__setattr__(self, "_assigned", self._assigned | {name})
            object.__setattr__(self, name, value)
            constants.own(self, name, value)
            if before is not None and before is self._structure(name):
                if name not in READ.get(self):
                    return  # the new value is in a tensor
        elif self.__dict__.get(name, self) is value:
            return  # `+=` assigns the same object again
        elif name == "learning_rate":  # which nothing would read
            raise elsewhere.lacking(self, name, elsewhere.of_optimizer(name))
        else:
            object.__setattr__(self, name, value)
        note_change()

    def _structure(self, name: str) -> bool | DecayScheduler | None:
        """What decides which operations an update has for a hyperparameter: whether a constant is
        used at all, or the schedule."""
        schedule = self.__dict__.get(name)
        return self._uses(name) if type(schedule) is Constant else schedule

    def _watched(self) -> Iterator[tuple[str, Any]]:
        """What a recorded step may read."""
        for name, value in self.__dict__.items():
            if name in self.hyperparameters:
                yield name, self._structure(name)
            elif name not in ("_moments", "_assigned", "_versions"):
                yield name, value
        yield from filled_slots(self)
        for name in READ.get(self):
            if type(schedule := self.__dict__.get(name)) is Constant:
                yield f"({name})", repr(schedule.init_value)

    def _remember(self) -> Callable[[bool], None]:
        """Returns a function that restores the attributes; given True, it keeps later moments."""
        return constants.restoring(self, restoring(self, self._moments))

    def _set_hyperparameter(self, name: str, value: Any) -> DecayScheduler:
        holder, limits = self.hyperparameters[name]
        argument = f"{type(self).__name__}: {name}"
        schedule = value
        if value is None and name in OPTIONAL:
            schedule = Constant(0.0)
        elif not isinstance(value, DecayScheduler):
            schedule = Constant(self._held(value, argument, **limits))
        elif isinstance(value, Constant):
            self._check_value(name, value.init_value)
        if holder in self.__dict__:
            self._evaluate(argument, schedule, getattr(self, holder))
            return schedule
        with making_state():
            made = self._made(argument, schedule)
        object.__setattr__(self, holder, made)
        return schedule

    def _made(self, argument: str, schedule: DecayScheduler) -> Tensor:
        """A tensor for a hyperparameter, with its value."""
        dtype = tensor.float64 if self._is_double else tensor.float32
        made = scalar(dtype, self.step_counter.device)
        self._evaluate(argument, schedule, made)
        return made

    def _fit(self, param: Tensor) -> None:
        """Makes the hyperparameters as precise as an update of this parameter, on its device."""
        mode.has_left_gradients = False  # as the update follows
        self._follow(param)
        if self._is_double or getattr(param, "dtype", None) != tensor.float64:
            return
        self._is_double = True
        for name, (holder, _) in self.hyperparameters.items():
            if holder in self.__dict__:
                self._widen(name, holder)
        note_change()

    def _follow(self, like: Any) -> None:
        """Moves the step counter, the hyperparameters, the moments and what schedules hold to a
        tensor's device."""
        if isinstance(like, Tensor) and not device.on_one_device(self.step_counter, like):
            self._move_to(like.device)
            note_change()

    def _move_to(self, to: device.Device) -> None:
        own = (holder for holder, _ in self.hyperparameters.values())
        for name in ("step_counter", *own):
            if name in self.__dict__:
                object.__setattr__(self, name, on(getattr(self, name), to))
        for _, schedule, _ in self._schedules():
            if schedule.state is not None:
                schedule.state = on(schedule.state, to)
        self._moments.replace(lambda one: one if one.device == to else on(one, to))

    def _widen(self, name: str, holder: str) -> None:
        argument = f"{type(self).__name__}: {name}"
        schedule, before = vars(self)[name], getattr(self, holder)
        is_as_assigned = self._versions.get(argument) == before.version
        with making_state():
            made = self._made(argument, schedule)
        if type(schedule) is Constant and not is_as_assigned:
            keep_written(made, before, schedule.init_value)
        object.__setattr__(self, holder, made)

    def _held(self, value: Any, argument: str, low: float = 0.0, below: float = math.inf) -> float:
        """A number in [low, below) that stays in this range in the dtype in which it is stored."""
        made = number(value, argument, low, below)
        if self._is_double:
            return made
        with np.errstate(over="ignore"):
            held = float(np.float32(made))
        if not low <= held < below or held == 0 != made:
            raise ValueError(f"{argument}: got {value!r}, which becomes {held:g} in float32")
        return made

    def _check_value(self, name: str, value: Any) -> None:
        """Rejects what a hyperparameter cannot be."""
        self._held(value, f"{type(self).__name__}: {name}", **self.hyperparameters[name][1])

    def _evaluate(self, argument: str, schedule: DecayScheduler, holder: Tensor) -> None:
        if type(schedule) is Constant:
            holder.set_value(schedule.init_value)
            noted = {**self._versions, argument: holder.version}
            object.__setattr__(self, "_versions", noted)
            return
        with autograd.no_grad():
            holder.copy_from(value_at(argument, schedule, self.step_counter))

    def _uses(self, name: str) -> bool:
        """Whether a hyperparameter is anything but the constant 0."""
        schedule = vars(self if name in vars(self) else self._parent)[name]
        return type(schedule) is not Constant or schedule.init_value != 0

    def _schedules(self) -> Iterator[tuple[str, DecayScheduler, Tensor]]:
        """The hyperparameters that are no constants: names, schedules and tensors."""
        for name, (holder, _) in self.hyperparameters.items():
            schedule = self.__dict__.get(name)
            if schedule is not None and type(schedule) is not Constant:
                yield name, schedule, getattr(self, holder)

    def _places(self) -> Iterator[Place]:
        """All hyperparameters."""
        return (Place(name, self, name) for name in self.hyperparameters)

    def step(self) -> None:
        """Advances the step counter and the schedules, by operations. No parameter is updated."""
        with autograd.no_grad():
            self.step_counter += 1
        for name, schedule, holder in self._schedules():
            self._evaluate(f"{type(self).__name__}: {name}", schedule, holder)

    def observe(self, metric: Any) -> None:
        """Shows a number, such as a validation loss, to the schedules that follow one
        (`OnPlateau`). The values that they choose are those of the next update.

        Raises:
            TypeError, ValueError: anything but a finite number.
            ValueError: no schedule follows one.
        """
        if not any(schedule.state is not None for _, schedule, _ in self._schedules()):
            raise ValueError(f"{type(self).__name__}.observe: no hyperparameter is an OnPlateau")
        observe([self], metric)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        maker = next(one for one in cls.__mro__ if "__init__" in vars(one))
        if maker is cls or not issubclass(maker, Scheduled):
            cls.__init__ = _ending(cls)  # type: ignore[method-assign]
        own = (holder for holder, _ in cls.hyperparameters.values())
        cls._own = attrgetter("step_counter", *own)
        for name in cls.hyperparameters:
            if not any(name in vars(one) for one in cls.__mro__):
                setattr(cls, name, Noting(name))

    #: Reads the step counter and the tensors of the hyperparameters.
    _own: ClassVar[Callable[[Any], tuple[Tensor, ...]]] = attrgetter("step_counter", "lr_value")

    def _own_tensors(self) -> tuple[Tensor, ...]:
        return self._own(self)

    @property
    def _state_kinds(self) -> tuple[str, ...]:
        """What `get_states` may have besides the step counter."""
        return (*self.moment_kinds, SUMS, SCHEDULES, ASSIGNED)

    def get_states(self) -> dict[str, Any]:
        """`step_counter`, an int, and the moments that exist: kind -> {parameter's name: the tensor
        itself}; "schedules", those of schedules that have a state; "hyperparameters", those that
        were assigned since construction: numbers, and texts that tell of schedules."""
        states: dict[str, Any] = {COUNTER: int(self.step_counter.item())}
        kept = {name: one.state for name, one, _ in self._schedules() if one.state is not None}
        if kept:
            states[SCHEDULES] = kept
        if changed := assigned(self._places()):
            states[ASSIGNED] = changed
        for kind in (*self.moment_kinds, SUMS):
            if named := self._moments.named(kind):
                states[kind] = named
        return states

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Copies what `get_states` returned into the tensors in place; moments of parameters not
        yet seen are kept for them. States with a step counter, unless they are one above 0 and
        nothing else, are whole: moments that they do not have start afresh. What this optimizer
        does not have is left out, of which the first such call warns, as are states of
        hyperparameters whose schedule has none.

        Hyperparameters that were assigned become what they were; the others stay what they are.
        Schedules of the package are made again. One of the program's own class has to be assigned
        before, of which a warning tells.

        Raises:
            TypeError, ValueError, ShapeError: before anything is written.
        """
        self._staged_states(states)()

    def _staged_states(self, states: Mapping[str, Any]) -> Callable[[], None]:
        """Checks states, and returns a function that copies them into the tensors."""
        name = f"{type(self).__name__}.set_states"
        states = mapping(states, name)
        others = states.keys() - {COUNTER, *self._state_kinds}
        if others:
            left = ", ".join(sorted(map(str, others)))
            once((name, left), f"{name}: leaves out {left}, which it does not have")
        step = []
        if COUNTER in states:
            step = self._staged_step(f"{name}: {COUNTER}", states[COUNTER])
        kinds = (*self.moment_kinds, SUMS)
        moments = self._moments.staged_kinds(name, kinds, states, are_whole(states))
        given = mapping(states.get(ASSIGNED, {}), f"{name}: {ASSIGNED}")
        changed = staged_places(name, self._places(), given)
        own = self._states_of(changed)
        given = mapping(states.get(SCHEDULES, {}), f"{name}: {SCHEDULES}")
        kept = staged(f"{name}: {SCHEDULES}", {k: (own[k], given[k]) for k in given if k in own})

        def write() -> None:
            for place, schedule in changed:
                place.assign(schedule)
            for key, value in kept.items():
                own[key].copy_from(value)
            if step:
                self.step_counter.copy_from(step[0])
            for holder, value in self._values(self.step_counter) if step or kept or changed else ():
                holder.copy_from(value)
            for moment in moments:
                moment()

        return write

    def _states_of(self, changed: list[tuple[Place, DecayScheduler]]) -> dict[str, Tensor]:
        """The states of schedules, as they are after changes."""
        found = {place.key: place.schedule for place in self._places()}
        found |= {place.key: schedule for place, schedule in changed}
        own = {key: one.state for key, one in found.items() if one is not None}
        return {key: state for key, state in own.items() if state is not None}

    def get_named_states(self, prefix: str = "") -> dict[str, Tensor]:
        """`get_states` as tensors by name, as `Module.save_states` takes them: "step_counter",
        "m/fc.W" for the moment "m" of the parameter "fc.W", "schedules/lr", "hyperparameters/lr";
        `prefix` and a slash before each, to tell optimizers apart.

        Raises:
            TypeError: a prefix that is not a str.
        """
        start = names.inside(prefix, f"{type(self).__name__}.get_named_states")
        return names.flat(self.get_states(), self.step_counter, start)

    def set_named_states(self, found: Mapping[str, Any], prefix: str = "") -> None:
        """Copies what `get_named_states` returned, as `set_states` does; names that do not begin
        with the prefix are left out, so `found` may be all that `Module.load_states` returned.

        Raises:
            TypeError: `found` is not a mapping, the prefix not a str.
            ValueError, ShapeError: no step counter, a state of a kind that the optimizer does not
                have, or a value that does not fit. Nothing has been written.
        """
        op = f"{type(self).__name__}.set_named_states"
        start = names.inside(prefix, op)
        self.set_states(names.nested(mapping(found, op), start, self._state_kinds, op))

    def _staged_step(self, argument: str, value: Any) -> list[Tensor]:
        """A step counter at which all schedules have values."""
        array = value.to_numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "iuf":
            raise TypeError(f"{argument}: got {shown(value)}, want a number")
        step = number(array.reshape(()).item(), argument, 0, 2**31)
        if step != int(step):
            raise ValueError(f"{argument}: got {value!r}, want a whole number")
        counter = Tensor((1,), self.step_counter.device, tensor.int32).set_value(int(step))
        self._values(counter)
        return [counter]

    def _values(self, step: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The tensors of the hyperparameters that depend on the step, each with its value then."""
        with autograd.no_grad():
            return [(holder, value_at(name, one, step)) for name, one, holder in self._schedules()]


def _ending(cls: Any) -> Callable[..., None]:
    """A class's constructor, or the next one, which notes its end unless a subclass's calls it."""
    construct, is_own = cls.__init__, "__init__" in vars(cls)

    @wraps(construct)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        make = partial(construct, self) if is_own else super(cls, self).__init__
        make(*args, **kwargs)
        if type(self).__init__ is call:
            self.__dict__["_is_made"] = True

    return call
