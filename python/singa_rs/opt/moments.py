"""What an optimizer remembers of each parameter: moments, by the parameter's identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import tensor
from ..errors import ShapeError
from ..record import making_state
from ..tensor import Tensor


class _Slot:
    def __init__(self, param: Tensor, given: str, name: str) -> None:
        self.param = param
        self.given = given
        self.name = name
        self.tensors: dict[str, Tensor] = {}


class Moments:
    """The moments of all parameters. A parameter is the tensor object that was passed, so two of
    the same name never share moments (the second is reported as `name#2`); another object is the
    same parameter only with the same name, shape and block. Values that were set before their
    parameter was first seen wait for it."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds
        self._slots: dict[int, _Slot] = {}
        self._waiting: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in kinds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's parameters are other objects."""
        self.__dict__.update(state)
        self._slots = {id(slot.param): slot for slot in self._slots.values()}

    def of(self, param: Tensor, name: str, kind: str) -> Tensor:
        """The moment of a parameter: zeros where there was none."""
        slot = self._slots.get(id(param)) or self._find(param, name)
        if kind not in slot.tensors:
            with making_state():
                slot.tensors[kind] = self._make(slot.name, param, kind)
        return slot.tensors[kind]

    def _find(self, param: Tensor, name: str) -> _Slot:
        for slot in self._slots.values():
            known = slot.param
            if slot.given == name and known.shares_block(param) and known.shape == param.shape:
                del self._slots[id(known)]
                slot.param = param
                return self._slots.setdefault(id(param), slot)
        slot = _Slot(param, name, self._fresh_name(name))
        return self._slots.setdefault(id(param), slot)

    def _fresh_name(self, name: str) -> str:
        taken, fresh, count = {slot.name for slot in self._slots.values()}, name, 1
        while fresh in taken:
            count += 1
            fresh = f"{name}#{count}"
        return fresh

    def _make(self, name: str, param: Tensor, kind: str) -> Tensor:
        double = param.dtype == tensor.float64
        made = Tensor(
            param.shape,
            param.device,
            tensor.float64 if double else tensor.float32,
            requires_grad=False,
            name=f"{name}.{kind}",
        )
        made.set_account("states")
        value = self._waiting[kind].pop(name, None)
        if value is not None:
            _check_shape(kind, name, value, param.shape)
            made.copy_from(value)
        return made

    def remember(self) -> Callable[[], None]:
        """A function that forgets the moments made since, and gives back what they took."""
        slots = {key: (slot, slot.param, dict(slot.tensors)) for key, slot in self._slots.items()}
        waiting = {kind: dict(values) for kind, values in self._waiting.items()}

        def restore() -> None:
            self._slots = {key: slot for key, (slot, _, _) in slots.items()}
            for slot, param, tensors in slots.values():
                slot.param, slot.tensors = param, tensors
            self._waiting = waiting

        return restore

    def named(self, kind: str) -> dict[str, Tensor]:
        """The moments of one kind by their parameters' names."""
        return {s.name: s.tensors[kind] for s in self._slots.values() if kind in s.tensors}

    def check(self, kind: str, values: Mapping[str, Any]) -> None:
        """Refuses values that do not fit the moments that exist."""
        for name, moment in self.named(kind).items():
            if name in values:
                _check_shape(kind, name, values[name], moment.shape)

    def set(self, kind: str, values: Mapping[str, Any]) -> None:
        """Copies values into the moments; those of parameters not yet seen are kept for them."""
        known = self.named(kind)
        for name, value in values.items():
            if name in known:
                known[name].copy_from(value)
            else:
                array = value.to_numpy() if isinstance(value, Tensor) else np.array(value)
                self._waiting[kind][name] = array


def _check_shape(kind: str, name: str, value: Any, want: tuple[int, ...]) -> None:
    if not isinstance(value, (Tensor, np.ndarray)):
        raise TypeError(f"{kind} of {name!r}: got {type(value).__name__}, want an array")
    if tuple(value.shape) != want:
        raise ShapeError(f"{kind} of {name!r}: got shape {tuple(value.shape)}, want {want}")
