"""Taps: values inside a step that can be read after it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..autograd.tape import watch, watch_leaf
from ..tensor import Tensor
from .state import note_change


class Tap:
    """The value at one place in a step, as of the last step that reached it.

    After each step `value` is a tensor of its own, as a result is, or None if the value was not
    requested or never made; likewise `grad` for the gradient with respect to it.
    """

    def __init__(self, probe: Probe, close: Callable[[], None]) -> None:
        self.name, self.wants = probe.name, probe.wants
        self.value: Tensor | None = None
        self.grad: Tensor | None = None
        #: The parameter whose gradient is tapped, if any.
        self.parameter: Tensor | None = None
        self.probe, self._close = probe, close
        probe.tap = self

    def remove(self) -> None:
        """Removes the tap: later steps are as they were without it."""
        if self.probe.tap is self:
            self.probe.tap = None
            self._close()
            note_change()
        self.value = self.grad = None

    def __reduce__(self) -> Any:
        """A copy taps nothing."""
        return _removed, (self.name, *self.wants)

    def __enter__(self) -> Tap:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"Tap({self.name!r}, value={self.value!r}, grad={self.grad!r})"


class Probe:
    """The place of a tap in steps. Graphs refer to the probe, and so serve all the taps that are
    set under its name in the course of time."""

    def __init__(self, name: str, value: bool, grad: bool, taps: Taps) -> None:
        self.name, self.wants = name, (value, grad)
        self.tap: Tap | None = None
        #: Reopens the tap of a tensor inside a step if it was removed.
        self._taps = weakref.ref(taps)
        self.is_inside = False

    def see(self, tensor: Any) -> None:
        """Takes the tensor at the place."""
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"tap {self.name!r}: got {type(tensor).__name__}, want a Tensor; tap one of its "
                "tensors inside the step, where it is made"
            )
        _reached(self)
        wants_value, wants_grad = self.wants
        self.take(tensor.detach() if wants_value else None, None)
        if wants_grad:
            watch(tensor, self.tell)

    def tell(self, grad: Tensor) -> None:
        """Takes the gradient."""
        _reached(self)
        if self.tap is not None:
            self.tap.grad = grad.detach()

    def take(self, value: Tensor | None, grad: Tensor | None) -> None:
        """Takes the value and the gradient that a step made."""
        taps = self._taps()
        if self.is_inside and taps is not None and not taps.has(self):
            taps.open(self)
        if self.tap is not None:
            self.tap.value, self.tap.grad = value, grad

    def seen(self) -> tuple[Tensor | None, Tensor | None]:
        """The value and the gradient that the last step made."""
        return (None, None) if self.tap is None else (self.tap.value, self.tap.grad)

    def let_go(self) -> None:
        """Drops what the last step made."""
        if self.tap is not None:
            self.tap.value = self.tap.grad = None


def _removed(name: str, value: bool, grad: bool) -> Tap:
    tap = Tap(Probe(name, value, grad, Taps()), lambda: None)
    tap.remove()
    return tap


class _Now(threading.local):
    """The probes that this thread's recorded step has reached, each with what its tap held
    before."""

    probes: dict[Probe, tuple[Tensor | None, Tensor | None]] | None = None


_now = _Now()


def _reached(probe: Probe) -> None:
    if _now.probes is not None and probe not in _now.probes:
        _now.probes[probe] = probe.seen()


class Tapped(NamedTuple):
    """What a step returns, and what its taps saw: for each the value and the gradient."""

    result: Any
    seen: tuple[tuple[Tensor | None, Tensor | None], ...]


class Tapping:
    """The taps of a recording."""

    def __init__(self) -> None:
        self.probes: list[Probe] = []
        self._before: dict[Probe, tuple[Tensor | None, Tensor | None]] = {}

    def around(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """A step that also returns what its taps saw, if there are any."""

        def step() -> Any:
            outer, _now.probes = _now.probes, self._before
            try:
                result = run()
                self.probes += self._before
                seen = tuple(probe.seen() for probe in self.probes)
            finally:
                _now.probes = outer
                for probe in self._before:
                    probe.let_go()  # tensors of a recording have no values
            return Tapped(result, seen) if seen else result

        return step

    def let_go(self) -> None:
        """Drops what the last step made, so that the next one may use its memory."""
        for probe in self.probes:
            probe.let_go()

    def restore(self) -> None:
        """Restores what the taps held before the recording."""
        for probe, (value, grad) in self._before.items():
            if probe.tap is not None:
                probe.tap.value, probe.tap.grad = value, grad
        self._before.clear()

    def forget(self) -> None:
        """Drops what the taps held before the recording."""
        self._before.clear()

    def deliver(self, made: Any) -> Any:
        """Hands the taps what a run made for them; returns the step's own result."""
        if not self.probes:
            return made
        for probe, seen in zip(self.probes, made.seen, strict=True):
            probe.take(*seen)
        return made.result


class Taps:
    """The taps of a module, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Tap] = {}
        self._probes: WeakValueDictionary[tuple[str, bool, bool], Probe] = WeakValueDictionary()

    def __reduce__(self) -> Any:
        """A copy of a module has no taps."""
        return Taps, ()

    def at(self, tensor: Tensor, name: str, value: bool, grad: bool) -> Tap:
        """The tap of a tensor that the running step has made."""
        probe = self._probe(name, value, grad)
        if not self.has(probe):
            probe.is_inside = True
            self.open(probe)
        probe.see(tensor)
        return self.by_name[name]

    def has(self, probe: Probe) -> bool:
        """Whether the tap with the probe's name belongs to the probe."""
        tap = self.by_name.get(probe.name)
        return tap is not None and tap.probe is probe

    def open(self, probe: Probe, also: Callable[[], None] = lambda: None) -> Tap:
        """A new tap; `also` is called when it is removed."""

        def close() -> None:
            also()
            if self.by_name.get(probe.name) is tap:
                del self.by_name[probe.name]

        tap = self.by_name[probe.name] = Tap(probe, close)
        return tap

    def of_layer(self, node: Any, name: str, value: bool, grad: bool) -> Tap:
        """The tap of a layer's result; `node` is the layer's."""
        probe = self._opened(name, value, grad)
        node.taps.append(probe)
        return self.open(probe, lambda: node.taps.remove(probe))

    def of_parameter(self, parameter: Tensor, name: str) -> Tap:
        """The tap of a parameter's gradient."""
        probe = self._opened(name, False, True)
        tap = self.open(probe, watch_leaf(parameter, probe.tell))
        tap.parameter = parameter
        return tap

    def _opened(self, name: str, value: bool, grad: bool) -> Probe:
        """The probe of a tap that is set outside of a step, replacing one of that name."""
        if name in self.by_name:
            self.by_name[name].remove()
        note_change()
        probe = self._probe(name, value, grad)
        probe.is_inside = False
        return probe

    def _probe(self, name: str, value: bool, grad: bool) -> Probe:
        key = (name, value, grad)
        return self._probes.get(key) or self._probes.setdefault(key, Probe(*key, self))
