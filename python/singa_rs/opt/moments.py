"""An optimizer's state for each parameter: moments, by the parameter's identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import getrefcount
from typing import Any, ClassVar

import numpy as np

from .. import tensor
from ..autograd.leaves import is_member
from ..errors import DTypeError
from ..layer.check import mapping
from ..layer.collect import staged
from ..record import filled_slots, making_state, note_change
from ..tensor import Tensor
from .names import COUNTER
from .noted import NotesDeletion


def _nothing() -> None:
    """No model."""


class _Slot:
    def __init__(self, param: Tensor, given: str, name: str) -> None:
        self.param = param
        self.given = given
        self.name = name
        #: Whether it goes by the parameter's own name, also when that changes.
        self.follows = given == param.name
        self.tensors: dict[str, Tensor] = {}
        #: Whether it was copied and has not been used since, so that it is still unknown whether
        #: the parameter was copied with it.
        self.is_copy = False

    def fits(self, param: Tensor, name: str) -> bool:
        """Whether this slot may be that of a parameter: of its name, shape and dtype."""
        own = self.param
        return self.given == name and (own.shape, own.dtype) == (param.shape, param.dtype)

    @property
    def goes_by(self) -> str:
        """The name that the parameter has now, if it is known by its own."""
        return self.param.name if self.follows else self.given

    @property
    def is_gone(self) -> bool:
        """Whether nothing else has the parameter any longer."""
        return not self.is_copy and getrefcount(self.param) <= 2

    def called(self, name: str) -> None:
        """Gives it, and its moments, another name."""
        self.name = name
        for kind, one in self.tensors.items():
            one.name = f"{name}.{kind}"


def is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same elements of one block, in the same order."""
    if not a.shares_block(b) or a.shape != b.shape:
        return False
    return (a.offset, a.strides) == (b.offset, b.strides)


class Watched(NotesDeletion):
    """An object whose attributes a recorded step may read, except the hidden ones, on which none of
    its operations depend."""

    _hidden: ClassVar[frozenset[str]]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        note_change()

    def _watched(self) -> Iterator[tuple[str, Any]]:
        yield from (pair for pair in self.__dict__.items() if pair[0] not in self._hidden)
        yield from filled_slots(self)


def are_whole(states: Mapping[str, Any]) -> bool:
    """Whether states are all that an optimizer had: those with a step counter, unless they are one
    above 0 and nothing else, which just sets it."""
    if states.keys() != {COUNTER}:
        return COUNTER in states
    return not np.any(np.asarray(states[COUNTER], np.float64))


class Moments:
    """The moments of all parameters. A parameter is the tensor object that was passed, so two of
    the same name never share moments (the second is reported as `name#2`); another object is the
    same parameter only with the same name and the same elements of one block, or if the optimizer
    was copied and the parameter was not: then the only unused copy of that name, shape and dtype.
    Values that were set before their parameter was first seen wait for it. Moments are reported
    by the names that parameters have then; those of one that is gone are dropped when another takes
    its name."""

    #: Whether gradients have been added up (`Optimizer.accumulate`) since the last update.
    has_added = False

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds
        self._slots: dict[int, _Slot] = {}
        self._waiting: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in kinds}
        #: The model whose parameters values may wait for, if it is known.
        self._model: Callable[[], Any] = _nothing

    def __getstate__(self) -> dict[str, Any]:
        """A copy's model is another one."""
        return {**self.__dict__, "_model": _nothing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's parameters are other objects."""
        self.__dict__.update(state)
        self._slots = {id(slot.param): slot for slot in self._slots.values()}
        for slot in self._slots.values():
            slot.is_copy = True

    def of(self, param: Tensor, name: str, kind: str) -> Tensor:
        """The moment of a parameter: zeros if there was none."""
        slot = self._slots.get(id(param)) or self._find(param, name)
        slot.is_copy = False
        if kind not in slot.tensors:
            with making_state():
                slot.tensors[kind] = self._make(slot.name, param, kind)
        return slot.tensors[kind]

    def _find(self, param: Tensor, name: str) -> _Slot:
        if not isinstance(name, str):
            raise TypeError(f"apply: got {name!r:.80} for the name, want a str")
        for slot in self._slots.values():
            if is_same(slot.param, param) and slot.goes_by == name:
                return self._pass_on(slot, param)
        copies = [one for one in self._slots.values() if one.is_copy and one.fits(param, name)]
        if len(copies) > 1:
            raise ValueError(
                f"apply: the copied optimizer knows {len(copies)} parameters named {name!r}; copy "
                "the model together with it, or use set_states"
            )
        if copies:
            return self._pass_on(copies[0], param)
        is_taken = any(slot.name == name for slot in self._slots.values())
        slot = self._slots[id(param)] = _Slot(param, name, name)
        if is_taken:
            self._settle()
        return slot

    def _pass_on(self, slot: _Slot, param: Tensor) -> _Slot:
        """Makes another object a slot's parameter."""
        del self._slots[id(slot.param)]
        slot.param = param
        return self._slots.setdefault(id(param), slot)

    def _settle(self) -> None:
        """Drops what is left of parameters that are gone, once no other can be the same parameter,
        and gives the others the names that their parameters have now."""
        slots = list(self._slots.values())
        for slot in slots:
            slot.given = slot.goes_by
        last = {slot.given: slot for slot in slots}
        for key, slot in list(self._slots.items()):
            # The next tensor without a name gets another number. Apart from members of layers,
            # objects may be made anew for each step.
            is_replaced = last[slot.given] is not slot and is_member(slot.param)
            is_done = slot.param._name is None or is_replaced
            if slot.follows and is_done and slot.is_gone:
                del self._slots[key]
        del slots, last
        taken: set[str] = set()
        for slot in self._slots.values():
            name, count = slot.given, 1
            while name in taken:
                count += 1
                name = f"{slot.given}#{count}"
            taken.add(name)
            if name != slot.name:
                slot.called(name)

    def _shape(self, param: Tensor, kind: str) -> tuple[int, ...]:
        """The shape of a moment of a parameter."""
        return param.shape

    def _make(self, name: str, param: Tensor, kind: str) -> Tensor:
        double = param.dtype == tensor.float64
        made = Tensor(
            self._shape(param, kind),
            param.device,
            tensor.float64 if double else tensor.float32,
            requires_grad=False,
            name=f"{name}.{kind}",
        )
        made.set_account("states")
        waiting = self._waiting[kind]
        if name in waiting and waiting[name].shape != made.shape and self._skips_misfits():
            del waiting[name]
            self._start(made, param)
        if name in waiting:
            staged(kind, {name: (made, waiting[name])})  # a value that does not fit keeps waiting
            made.copy_from(waiting.pop(name))
        return made

    def _skips_misfits(self) -> bool:
        """Whether the model left out what did not fit when it was loaded with these values."""
        model = self._model()
        return model is not None and model._layer_node.skips_misfits

    def _start(self, made: Tensor, param: Tensor) -> None:
        """Gives a moment, zeros, the value with which it starts where others exist already."""

    def name_of(self, param: Tensor) -> str:
        """What the moments of a parameter are reported as."""
        slot = self._slots.get(id(param)) or self._find(param, param.name)
        if slot.given != slot.goes_by:
            self._settle()
        return slot.name

    def params(self) -> list[Tensor]:
        """The parameters that are known, in the order in which they first were."""
        return [slot.param for slot in self._slots.values()]

    def waiting_value(self, kind: str, name: str) -> np.ndarray | None:
        """The value that waits for a parameter of this name, if there is one."""
        return self._waiting[kind].get(name)

    def look_in(self, model: Any) -> None:
        """Tells whose parameters the values that wait are of; None where that is not known."""
        self._model = _nothing if model is None else weakref.ref(model)

    def _sought(self, kind: str) -> tuple[dict[str, Tensor], list[str]]:
        """The parameters for which a value other than zeros waits, by name, and the names of those
        that are not known."""
        names = [name for name, value in self._waiting[kind].items() if np.any(value)]
        model = self._model() if names else None
        params = () if model is None else model.get_params().values()
        known = {param.name: param for param in params}
        return known, [name for name in names if name not in known]

    def are_lost(self, kind: str) -> bool:
        """Whether a value other than zeros waits for a parameter that is not known."""
        return bool(self._waiting[kind]) and bool(self._sought(kind)[1])

    def check_waiting(self, kind: str, names: Sequence[str]) -> None:
        """Rejects an update, of these parameters, that leaves out a value other than zeros."""
        lost = [name for name in self._sought(kind)[1] if name not in names]
        if lost:
            raise ValueError(
                f"the state {kind!r} waits for {', '.join(lost):.200}, which has no gradient of "
                "this loss; want states that are loaded together with their model, by "
                "Module.load(path, state={...}), or optimizer.accumulate(0 * loss) before, of a "
                "loss with such gradients"
            )

    def awaited(self, kind: str) -> list[Tensor]:
        """The parameters of the model for which a value other than zeros waits."""
        if not self._waiting[kind]:
            return []
        known, _ = self._sought(kind)
        values = self._waiting[kind].items()
        return [known[name] for name, one in values if name in known and np.any(one)]

    def let_wait(self, kind: str, name: str, value: np.ndarray | None) -> None:
        """Keeps a value for a parameter whose moment does not exist yet; None drops it."""
        if value is None:
            self._waiting[kind].pop(name, None)
        else:
            self._waiting[kind][name] = value

    def remember(self) -> Callable[[], None]:
        """Returns a function that drops the moments made since, and restores the waiting values
        that they took."""
        self._settle()
        slots = {
            key: (slot, {**vars(slot), "tensors": dict(slot.tensors)})
            for key, slot in self._slots.items()
        }
        waiting = {kind: dict(values) for kind, values in self._waiting.items()}

        def restore() -> None:
            self._slots = {key: slot for key, (slot, _) in slots.items()}
            for slot, before in slots.values():
                vars(slot).update(before)
            self._waiting = waiting

        return restore

    def replace(self, by: Callable[[Tensor], Tensor]) -> None:
        """Puts what a function makes of each moment in its place."""
        for slot in self._slots.values():
            made = {kind: by(one) for kind, one in slot.tensors.items()}
            for kind, one in made.items():
                one.name = slot.tensors[kind].name
            slot.tensors = made

    def made(self, param: Tensor, kinds: Sequence[str], name: str | None = None) -> list[Tensor]:
        """The moments of a parameter, of these kinds, that exist; those that wait do from now."""
        name = param.name if name is None else name
        slot = self._slots.get(id(param)) or self._find(param, name)
        known = [k for k in kinds if k in slot.tensors or slot.name in self._waiting[k]]
        return [self.of(param, name, kind) for kind in known]

    def named(self, kind: str) -> dict[str, Tensor]:
        """The moments of one kind by their parameters' names, those that wait for them first."""
        waiting = {
            name: Tensor(data=value, dtype=value.dtype, requires_grad=False)
            for name, value in self._waiting[kind].items()
        }
        return {**waiting, **self._existing(kind)}

    def _existing(self, kind: str) -> dict[str, Tensor]:
        self._settle()
        return {s.name: s.tensors[kind] for s in self._slots.values() if kind in s.tensors}

    def kept(self, kind: str) -> dict[int, tuple[Tensor, Tensor]]:
        """The parameters and their moments of one kind, by `id(parameter)`."""
        found = [slot for slot in self._slots.values() if kind in slot.tensors]
        return {id(slot.param): (slot.param, slot.tensors[kind]) for slot in found}

    def staged_kinds(
        self, op: str, kinds: Sequence[str], states: Mapping[str, Any], is_whole: bool
    ) -> list[Callable[[], None]]:
        """`staged` of several kinds."""
        return [
            self.staged(op, kind, mapping(states.get(kind, {}), f"{op}: {kind}"), is_whole)
            for kind in kinds
            if is_whole or kind in states
        ]

    def _begin(self, made: Tensor, kind: str) -> None:
        """Gives a moment the value with which it starts."""
        made.set_value(0)

    def staged(
        self, op: str, kind: str, values: Mapping[str, Any], is_whole: bool = False
    ) -> Callable[[], None]:
        """Checks values, and returns a function that copies them into the moments; those of
        parameters not yet seen are kept for them. If they are whole, others start afresh.

        Raises:
            ShapeError, TypeError: a value that does not fit, or a name that is not a str.
        """
        known = self._existing(kind)
        what = f"{op}: {kind}"
        pairs = {name: (known[name], values[name]) for name in values if name in known}
        fits = staged(what, pairs, [t for one in self.kinds for t in self._existing(one).values()])
        waits = {name: _waiting(what, name, values[name]) for name in values if name not in known}

        def write() -> None:
            for name in known.keys() - fits.keys() if is_whole else ():
                self._begin(known[name], kind)
            for name, value in fits.items():
                known[name].copy_from(value)
            self._waiting[kind] = waits if is_whole else {**self._waiting[kind], **waits}

        return write


def _waiting(what: str, name: Any, value: Any) -> np.ndarray:
    """A value that waits for its parameter: a copy, as precise as a moment may be."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: got the name {name!r}, want a str")
    if not isinstance(value, (Tensor, np.ndarray)):
        raise TypeError(f"{what}: got {type(value).__name__} for {name!r}, want an array")
    array = value.to_numpy() if isinstance(value, Tensor) else value
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{what}: got values of {array.dtype} for {name!r}, want real numbers")
    return np.array(array, np.float64 if array.dtype.itemsize > 4 else np.float32)
