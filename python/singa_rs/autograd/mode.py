"""What a thread notes for the way back: `training`, `no_grad`, the scope of a module's call, and
the nodes that are made while a step is recorded."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .. import _core


class _Mode(threading.local):
    """What a thread does. Class attributes hold for every thread that is in no scope."""

    training = False
    paused = 0
    #: The nodes made since this thread began to record a step; None where it does not.
    nodes: Nodes | None = None
    #: Whether operations are noted for backward, and all that a function looks at: False (not
    #: `training`, or paused), True, or the `nodes` of the step that is being recorded.
    tape: Nodes | bool = False


class Nodes:
    """The nodes that were made while a step was recorded, with what each of them made, and how
    others were that backward went through meanwhile."""

    __slots__ = ("made", "_before", "_cut")

    def __init__(self) -> None:
        self._cut: list[weakref.ref[Any]] = []
        self.made: list[tuple[Any, tuple[Any, ...]]] = []
        self._before: list[tuple[Any, dict[str, Any]]] = []

    def note(self, node: Any, ys: tuple[Any, ...]) -> None:
        """Notes a node and the line of the user's program that its operation stands in."""
        node.origin = _core.origin()
        self.made.append((node, ys))

    def keep(self, node: Any) -> None:
        """Notes how a node is that backward is about to go through, if it was there before."""
        if not node.origin and all(made is not node for made, _ in self.made):
            self._before.append((node, dict(node.__dict__)))

    def cut_off(self, tensor: Any) -> None:
        """Notes that a tensor outlives the node that made it."""
        if not tensor._is_cut:
            tensor._is_cut = True
            self._cut.append(weakref.ref(tensor))

    def undo(self) -> None:
        """Puts nodes that were there before back to what they were."""
        for one in self._cut:
            if (tensor := one()) is not None:
                tensor._is_cut = False
        for node, attributes in reversed(self._before):
            node.__dict__.clear()
            node.__dict__.update(attributes)
        self.forget()

    def forget(self) -> None:
        """What backward has done stays."""
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
    """The calling thread begins to note the nodes that it makes, or ends."""
    mode.nodes = nodes
    _refresh()


def set_training(value: bool) -> None:
    """Sets `training` for this thread's scope, or for every thread outside of scopes."""
    value = bool(value)
    if "training" in mode.__dict__:
        mode.training = value
    elif _Mode.training is not value:
        _core.note_change()
        _Mode.training = _Mode.tape = value
    _refresh()


class training_scope:  # noqa: N801 - used like a function
    """Within it, `training` is `value` for the calling thread, whatever the global says."""

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


class no_grad:  # noqa: N801 - used like a function
    """Context or decorator: the calling thread records nothing for backward."""

    def __enter__(self) -> None:
        mode.paused += 1
        mode.tape = False

    def __exit__(self, *_: object) -> None:
        mode.paused -= 1
        _refresh()

    def __call__(self, function: Any) -> Any:
        """`function`, run without recording."""

        def paused(*args: Any, **kwargs: Any) -> Any:
            with no_grad():
                return function(*args, **kwargs)

        paused.__name__ = getattr(function, "__name__", "paused")
        paused.__doc__ = function.__doc__
        paused.__wrapped__ = function
        return paused
