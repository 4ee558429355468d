"""Taps: values inside a step that can be read after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..autograd.tape import watch, watch_leaf
from ..tensor import Tensor
from .state import note_change


class Tap:
    """What a step made at one place, as of the last step that came by.

    After each step `value` is a tensor of its own, as a result is, or None where the value was not
    asked for or never made; `grad` the same for the gradient with respect to it.
    """

    def __init__(self, name: str, value: bool, grad: bool, close: Callable[[Tap], None]) -> None:
        self.name, self.wants = name, (value, grad)
        self.value: Tensor | None = None
        self.grad: Tensor | None = None
        #: The parameter whose gradient it is, if it is one's.
        self.parameter: Tensor | None = None
        self._close = close
        self._is_open = True

    def see(self, tensor: Any) -> None:
        """Takes what lies at the place."""
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"tap {self.name!r}: got {type(tensor).__name__}, want a Tensor; tap one of its "
                "tensors where the step makes it"
            )
        wants_value, wants_grad = self.wants
        self.value, self.grad = tensor.detach() if wants_value else None, None
        if wants_grad:
            watch(tensor, self.tell)
        _come_by(self)

    def tell(self, grad: Tensor) -> None:
        """Takes the gradient."""
        self.grad = grad.detach()
        _come_by(self)

    def let_go(self) -> None:
        """Forgets what the last step made."""
        self.value = self.grad = None

    def remove(self) -> None:
        """Ends the tap: steps from now on are as they were without it."""
        if self._is_open:
            self._is_open = False
            self._close(self)
            note_change()
        self.let_go()

    def __reduce__(self) -> Any:
        """A copy taps nothing."""
        return _removed, (self.name, *self.wants)

    def __enter__(self) -> Tap:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"Tap({self.name!r}, value={self.value!r}, grad={self.grad!r})"


def _removed(name: str, value: bool, grad: bool) -> Tap:
    tap = Tap(name, value, grad, lambda _: None)
    tap._is_open = False
    return tap


class _Now(threading.local):
    """The taps that the step which this thread records has come by."""

    taps: list[Tap] | None = None


_now = _Now()


def _come_by(tap: Tap) -> None:
    if _now.taps is not None and tap not in _now.taps:
        _now.taps.append(tap)


class Tapped(NamedTuple):
    """What a step answers, and what its taps saw: for each the value and the gradient."""

    result: Any
    seen: tuple[tuple[Tensor | None, Tensor | None], ...]


class Tapping:
    """The taps of a recording."""

    def __init__(self) -> None:
        self.taps: list[Tap] = []

    def around(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """A step that also answers what taps saw in it, if any did."""

        def step() -> Any:
            before, _now.taps = _now.taps, self.taps
            try:
                result = run()
                seen = tuple((tap.value, tap.grad) for tap in self.taps)
            finally:
                _now.taps = before
                self.let_go()  # nothing of a recording has a value
            return Tapped(result, seen) if seen else result

        return step

    def let_go(self) -> None:
        """Forgets what the last step made, so that the next one may use its memory."""
        for tap in self.taps:
            tap.let_go()

    def deliver(self, made: Any) -> Any:
        """Hands the taps what a run made for them; what the step itself answers."""
        if not self.taps:
            return made
        for tap, seen in zip(self.taps, made.seen, strict=True):
            tap.value, tap.grad = seen
        return made.result


class Taps:
    """The taps of a module, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Tap] = {}
        #: Those set from outside of a step, which steps then come by.
        self.outside: set[str] = set()

    def __reduce__(self) -> Any:
        """A copy of a module has no taps."""
        return Taps, ()

    def at(self, tensor: Tensor, name: str, value: bool, grad: bool) -> Tap:
        """The tap of a tensor that the step makes just now."""
        tap = self.by_name.get(name)
        if tap is None or tap.wants != (value, grad):
            tap = self.by_name[name] = Tap(name, value, grad, self._forget)
        tap.see(tensor)
        return tap

    def of_layer(self, node: Any, name: str, value: bool, grad: bool) -> Tap:
        """The tap of what a layer answers; `node` is the layer's."""

        def close(tap: Tap) -> None:
            node.taps.remove(tap)
            self._forget(tap)

        tap = self._open(Tap(name, value, grad, close))
        node.taps.append(tap)
        return tap

    def of_parameter(self, parameter: Tensor, name: str) -> Tap:
        """The tap of a parameter's gradient."""

        def close(tap: Tap) -> None:
            end()
            self._forget(tap)

        tap = self._open(Tap(name, False, True, close))
        tap.parameter = parameter
        end = watch_leaf(parameter, tap.tell)
        return tap

    def _open(self, tap: Tap) -> Tap:
        if tap.name in self.by_name:
            self.by_name[tap.name].remove()
        self.by_name[tap.name] = tap
        self.outside.add(tap.name)
        note_change()
        return tap

    def _forget(self, tap: Tap) -> None:
        if self.by_name.get(tap.name) is tap:
            del self.by_name[tap.name]
            self.outside.discard(tap.name)

    def key(self) -> Sequence[tuple[str, bool, bool]]:
        """What recordings depend on."""
        return sorted((name, *self.by_name[name].wants) for name in self.outside)
