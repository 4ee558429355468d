"""A layer's place in its model, and what each thread is in the middle of."""

from __future__ import annotations

import itertools
import threading
import weakref
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..record.taps import Probe
    from .base import Layer
    from .tree import Collection


class Threads(threading.local):
    """What each thread is in the middle of."""

    def __init__(self) -> None:
        self.constructing: list[Layer] = []
        self.running: list[Layer] = []
        self.collection: Collection | None = None
        #: Whether names that are set, and that a model lacks, are told already.
        self.has_told_names = False


now = Threads()


class apart:  # used like a function
    """A context in which the thread's calls of layers belong to no call around them."""

    __slots__ = ("_outer",)

    def __enter__(self) -> None:
        self._outer, now.running = now.running, []

    def __exit__(self, *_: object) -> None:
        now.running = self._outer


class Node:
    """A layer's place in its model. Keeps only layers alive that were given to `register_layers`;
    all other layers are found where the user keeps them."""

    tokens = itertools.count()

    def __init__(self) -> None:
        self.token = next(self.tokens)
        self.roots: set[int] = set()
        self.path = ""
        self.owner: weakref.ref[Layer] | None = None
        self.registered: dict[str, Layer] = {}
        self.unnamed: list[weakref.ref[Layer]] = []
        self.given: weakref.WeakValueDictionary[str, Layer] = weakref.WeakValueDictionary()
        self.states: set[str] = set()
        self.initializing = 0
        #: Values that were loaded before their tensors were made, by name.
        self.pending: dict[str, Any] = {}
        #: Whether those of them are left out whose shapes differ from the tensors'.
        self.skips_misfits = False
        self.output_shape: Any = None
        #: Those of the constructor, as text.
        self.arguments = ""
        #: The probes that see the result of each call of the layer.
        self.taps: list[Probe] = []
        #: The layer's attributes as the last `initialize` left them.
        self.made: dict[str, Any] | None = None

    def remembered(self) -> dict[str, Any]:
        """A copy of what `initialize` changes in the node."""
        return {
            "registered": dict(self.registered),
            "unnamed": list(self.unnamed),
            "states": set(self.states),
            "pending": dict(self.pending),
            "initializing": self.initializing,
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        new = Node()
        new.registered = deepcopy(self.registered, memo)
        new.states, new.output_shape = set(self.states), self.output_shape
        new.arguments = self.arguments
        new.pending, new.skips_misfits = dict(self.pending), self.skips_misfits
        copies = [deepcopy(child, memo) for ref in self.unnamed if (child := ref()) is not None]
        new.unnamed = [weakref.ref(child) for child in copies]
        new.given.update({name: deepcopy(child, memo) for name, child in self.given.items()})
        return new

    def __copy__(self) -> Node:
        new = Node()
        new.__setstate__({name: copy(value) for name, value in self.__getstate__().items()})
        return new

    def __getstate__(self) -> dict[str, Any]:
        kept = ("registered", "states", "pending", "skips_misfits", "output_shape", "arguments")
        unnamed = [child for ref in self.unnamed if (child := ref()) is not None]
        held = {"unnamed": unnamed, "given": dict(self.given)}
        return {**{name: self.__dict__[name] for name in kept}, **held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        unnamed, given = state.pop("unnamed", ()), state.pop("given", {})
        self.__dict__.update(state)
        self.unnamed = [weakref.ref(child) for child in unnamed]
        self.given.update(given)
