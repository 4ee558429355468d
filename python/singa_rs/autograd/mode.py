"""What a thread notes for backward: `training`, `no_grad`, the scope of a module's call, and the
nodes that are made while a step is recorded."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from .. import _core
from ..refusals import flag


class _Mode(threading.local):
    """The mode of a thread. Class attributes apply to every thread outside of scopes."""

    training = False
    paused = 0
    #: The nodes made since this thread began to record a step; None if it is not recording.
    nodes: Nodes | None = None
    #: The types that functions compute in, if these are not those of their tensors.
    precision: Any = None
    #: Whether operations are noted for backward, the only attribute that functions check: False
    #: (not `training`, or paused), True, or the `nodes` of the step that is being recorded.
    tape: Nodes | bool = False
    #: What notes functions as one operation each; see `as_one`.
    noted: Callable[..., Any] | None = None
    #: Whether `Tensor.backward` has left gradients that no update followed.
    has_left_gradients = False


class Nodes:
    """The nodes that were made while a step was recorded, with what each of them made, and the
    prior attributes of older nodes that backward went through meanwhile."""

    __slots__ = ("made", "gathering", "later", "_before", "_cut")

    def __init__(self) -> None:
        #: What of divided tensors the recording has gathered, which ends before it does.
        self.gathering: Any = None
        #: What is done once the recording has run; None if it is not known when it runs.
        self.later: list[Callable[[], None]] | None = []
        self._cut: list[weakref.ref[Any]] = []
        self.made: list[tuple[Any, tuple[Any, ...]]] = []
        self._before: list[tuple[Any, dict[str, Any]]] = []

    def note(self, node: Any, ys: tuple[Any, ...]) -> None:
        """Notes a node and the line of the user's program that its operation comes from."""
        node.origin = _core.origin()
        self.made.append((node, ys))

    def keep(self, node: Any) -> None:
        """Saves the attributes of a node before backward goes through it, if it is older than the
        recording."""
        if not node.origin and all(made is not node for made, _ in self.made):
            self._before.append((node, dict(node.__dict__)))

    def cut_off(self, tensor: Any) -> None:
        """Notes that a tensor outlives the node that made it."""
        if not tensor._is_cut:
            tensor._is_cut = True
            self._cut.append(weakref.ref(tensor))

    def undo(self) -> None:
        """Restores older nodes, and unmarks the tensors that `cut_off` marked."""
        for one in self._cut:
            if (tensor := one()) is not None:
                tensor._is_cut = False
        for node, attributes in reversed(self._before):
            node.__dict__.clear()
            node.__dict__.update(attributes)
        self.forget()

    def ran(self) -> None:
        """Does what follows the first run."""
        if self.gathering is not None:
            self.gathering.keep()
        for then in self.later or ():
            then()

    def settle(self) -> None:
        """Ends what the recording has begun, as its last operations."""
        if self.gathering is not None:
            self.gathering.end()

    def forget(self) -> None:
        """Keeps what backward has done: it cannot be undone afterwards."""
        self._before.clear()
        self._cut.clear()


mode = _Mode()


def _refresh() -> None:
    own = mode.__dict__
    if "training" in own or mode.paused or mode.nodes is not None:
        noted = mode.training and not mode.paused
        mode.tape = (mode.nodes or True) if noted else False
    else:
        own.pop("tape", None)


def set_nodes(nodes: Nodes | None) -> None:
    """Starts noting the nodes that the calling thread makes; None stops it."""
    mode.nodes = nodes
    _refresh()


def set_training(value: bool) -> None:
    """Sets `training` for this thread's scope, or for every thread outside of scopes."""
    value = flag(value, "training")
    if "training" in mode.__dict__:
        mode.training = value
    elif _Mode.training is not value:
        _core.note_change()
        _Mode.training = _Mode.tape = value
    _refresh()


class training_scope:  # used like a function
    """A context in which `training` is `value` for the calling thread, whatever the global is."""

    def __init__(self, value: bool) -> None:
        self._value = bool(value)

    def __enter__(self) -> None:
        self._before = mode.__dict__.get("training")
        mode.training = self._value
        _refresh()

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            del mode.training
        else:
            mode.training = self._before
        _refresh()


class no_grad:  # used like a function
    """Context or decorator: the calling thread records nothing for backward."""

    def __enter__(self) -> None:
        mode.paused += 1
        mode.tape = False

    def __exit__(self, *_: object) -> None:
        mode.paused -= 1
        _refresh()

    def __call__(self, function: Any) -> Any:
        """`function`, run without recording."""

        @wraps(function)
        def paused(*args: Any, **kwargs: Any) -> Any:
            with no_grad():
                return function(*args, **kwargs)

        return paused


@contextmanager
def handled_by(
    handler: Callable[..., Any] | None, noted: Callable[..., Any] | None = None
) -> Iterator[Any]:
    """A context in which a function gets this thread's operations and views instead of the engine,
    which with None runs them; see `_core.set_handler`. Another may get what `as_one` is told. What
    it gives is the function that had them before."""
    before, (mode.noted, noted) = _core.set_handler(handler), (noted, mode.noted)
    try:
        yield before
    finally:
        _core.set_handler(before)
        mode.noted = noted


def as_one(name: str, attrs: dict[str, Any], x: Any, run: Callable[[Any], Any]) -> Any:
    """`run(x)`, which traces may note as one operation: what it asks of the engine, with constants,
    does not tell what it does for other sizes."""
    if mode.noted is None:
        return run(x)
    return mode.noted(name, attrs, (x,), lambda x: (run(x),))[0]
