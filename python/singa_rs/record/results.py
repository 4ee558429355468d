"""The results of a recorded function, which each run of its graph makes anew."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..notices import is_ours
from ..tensor import Tensor
from ..tensor.keys import key_of
from .places import slots
from .taps import Tapped
from .trees import KNOWN, is_named, leaves, named


class Leaf(NamedTuple):
    """A part of a result, and where it comes from. What is made of other parts is a pair of its
    class and these instead."""

    #: "made": by the run. "argument", "held": a tensor among the arguments, in an attribute.
    #: "list": a list or dictionary among the arguments. "again": one that the result has already.
    #: "=": a `Constant`.
    source: str
    #: Which of these: an index, a path, or the constant.
    which: Any


class Results:
    """The tree that a recorded function returned, to be rebuilt from what each run makes.

    A result that is an argument, or a tensor that the model held before, is that tensor itself; so
    is a list or dictionary among the arguments.
    """

    def __init__(
        self,
        value: Any,
        arguments: Sequence[Tensor],
        held: Mapping[str, Tensor],
        lists: Sequence[Any] = (),
    ) -> None:
        """`lists`: the lists and dictionaries among the arguments."""
        #: The tensors that the function made; see `let_go`.
        self.tensors: list[Tensor] = []
        self._index: dict[int, int] = {}
        self._lists = {id(one): i for i, one in reversed(list(enumerate(lists)))}
        #: Lists and dictionaries by the order in which `build` makes them.
        self._containers: dict[int, int] = {}
        self._given = {id(t): i for i, t in enumerate(arguments)}
        self._held = {id(t): path for path, t in reversed(held.items())}
        #: The paths at which the model holds tensors that are results.
        self.paths: set[str] = set()
        #: Why no graph can return it, as text, if none can.
        self.obstacle: str | None = None
        self.spec = self._flatten(value)
        #: Indices of the tensors through which no gradient flows back; see `note_cut`.
        self.cut: list[int] = []
        #: For each tensor: requires_grad, the given name, the class.
        self.flags = [(t.requires_grad, t._name, type(t)) for t in self.tensors]
        # Excludes what only taps see: they drop the last step's values before the next step.
        own = leaves(value.result if type(value) is Tapped else value)
        returned = [t for t in own if isinstance(t, Tensor) and id(t) in self._index]
        #: Bytes of the results that each run makes.
        self.nbytes = sum({t.block_id: t.nbytes for t in returned}.values())
        #: Whether all tensors are ordinary.
        self.is_plain = all(flags == (True, None, Tensor) for flags in self.flags)

    def _flatten(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if kind is tuple or is_named(value):
            if getattr(value, "__dict__", None):
                self.obstacle = f"the step returns a {kind.__name__} with attributes of its own"
            return (kind, tuple(map(self._flatten, value)))
        if kind is list or isinstance(value, dict):
            if id(value) in self._lists:
                return Leaf("list", self._lists[id(value)])
            if id(value) in self._containers:
                return Leaf("again", self._containers[id(value)])
            spec = (kind, self._items(value))
            self._containers[id(value)] = len(self._containers)
            return spec
        if self.obstacle is None and not is_ours(kind.__module__) and _holds_tensor(value):
            self.obstacle = f"the step returns a {kind.__name__} that holds tensors"
        return Leaf("=", Constant(value))

    def _items(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return tuple(map(self._flatten, value))
        kind = type(value)
        if self.obstacle is None and not _is_plain_dict(kind):
            self.obstacle = f"the step returns a {kind.__name__}, which may hold other state"
        return tuple((key, self._flatten(item)) for key, item in value.items())

    def take_first(self) -> None:
        """Lets runs return the first item of the tuple that was returned."""
        self.spec = self.spec[1][0]

    def note_cut(self) -> None:
        """Notes which tensors the end of the recording has cut off from their history."""
        self.cut = [i for i, tensor in enumerate(self.tensors) if tensor._is_cut]

    def cut_off(self, made: Sequence[Tensor]) -> None:
        """Marks these tensors among those that a run made."""
        for i in self.cut:
            made[i]._is_cut = True

    def _tensor(self, value: Tensor) -> Any:
        if id(value) in self._given:
            return Leaf("argument", self._given[id(value)])
        if id(value) in self._held:
            self.paths.add(self._held[id(value)])
            return Leaf("held", self._held[id(value)])
        if not KNOWN.issuperset(value.__dict__):
            self.obstacle = "the step returns a tensor with attributes of its own"
        if value._stores_grad or value.grad is not None:
            self.obstacle = "the step returns a tensor that stores its gradient"
        index = self._index.setdefault(id(value), len(self.tensors))
        if index == len(self.tensors):
            self.tensors.append(value)
        return Leaf("made", index)

    def let_go(self) -> None:
        """Drops the references to the tensors, so as not to keep them alive."""
        self.tensors.clear()
        self._index.clear()
        self._containers.clear()
        self._lists.clear()
        self._given.clear()
        self._held.clear()

    def build(
        self,
        arguments: Sequence[Tensor],
        made: Sequence[Tensor],
        held: Mapping[str, Tensor],
        lists: Sequence[Any] = (),
    ) -> Any:
        """The results of a run; `held` are the attributes as the call found them, `lists` the lists
        and dictionaries among its arguments."""
        self.cut_off(made)
        if not self.is_plain:
            for tensor, flags in zip(made, self.flags, strict=True):
                _restore(tensor, *flags)
        return _Build(arguments, made, held, lists)(self.spec)

    def outline(
        self, arguments: Sequence[Tensor], held: Mapping[str, Tensor], lists: Sequence[Any]
    ) -> Any:
        """The results, with a Leaf in the place of each tensor that a run makes."""
        made = [Leaf("made", index) for index in range(len(self.flags))]
        return _Build(arguments, made, held, lists)(self.spec)

    def difference(self, other: Results) -> str | None:
        """What differs, apart from the tensors' values; None if nothing does."""
        if self.spec != other.spec:
            return f"the results: {_text(self.spec)}, then {_text(other.spec)}"
        if self.flags != other.flags:
            return "the results' requires_grad or names"
        return None


def _is_plain_dict(kind: type) -> bool:
    """Whether a dictionary of this class is made of its items alone."""
    return kind in (dict, OrderedDict) or is_ours(kind.__module__)


def _holds_tensor(value: Any, depth: int = 3) -> bool:
    """Whether an object of a kind that is not rebuilt holds tensors."""
    if isinstance(value, Tensor):
        return True
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return any(_holds_tensor(part, depth - 1) for part in value.flat)
    if depth == 0 or isinstance(value, (str, bytes, int, float, complex, np.ndarray, type)):
        return False
    if isinstance(value, (set, frozenset, deque, list, tuple, ValuesView, ItemsView)):
        parts: Iterable[Any] = value
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, partial):
        parts = (*value.args, *value.keywords.values())
    elif isinstance(value, BaseException):
        parts = (*value.args, *value.__dict__.values())
    else:
        parts = [*getattr(value, "__dict__", {}).values()]
        parts += [getattr(value, name, None) for name in slots(type(value))]
    return any(_holds_tensor(part, depth - 1) for part in parts)


class Constant:
    """A part of a result that is not a tensor. Equal if the program sees no difference."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value.copy() if isinstance(value, np.ndarray) else value

    def get(self) -> Any:
        """The value; if it is an array, a copy."""
        return self.value.copy() if isinstance(self.value, np.ndarray) else self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        mine, its = self.value, other.value
        if isinstance(mine, np.ndarray) and isinstance(its, np.ndarray):
            alike = mine.dtype == its.dtype and mine.shape == its.shape
            return alike and mine.tobytes() == its.tobytes()
        return key_of(mine) == key_of(its)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.value)


def _restore(tensor: Tensor, requires_grad: bool, name: str | None, kind: type) -> None:
    if kind is not Tensor:
        tensor.__class__ = kind
    if not requires_grad:
        tensor.requires_grad = False
    if name is not None:
        tensor._name = name


class _Build:
    """Makes the results of a run."""

    def __init__(
        self,
        arguments: Sequence[Tensor],
        made: Sequence[Any],
        held: Mapping[str, Tensor],
        lists: Sequence[Any],
    ) -> None:
        #: The lists and dictionaries that were made.
        self._containers: list[Any] = []
        self._known: dict[str, Any] = {
            "made": made,
            "argument": arguments,
            "held": held,
            "list": lists,
            "again": self._containers,
        }

    def __call__(self, spec: Any) -> Any:
        if isinstance(spec, Leaf):
            constant = spec.source == "="
            return spec.which.get() if constant else self._known[spec.source][spec.which]
        kind, what = spec
        if issubclass(kind, dict):
            made: Any = _refilled(kind, ((key, self(item)) for key, item in what))
        else:
            items = [self(item) for item in what]
            made = items if kind is list else tuple(items) if kind is tuple else named(kind, items)
        if not issubclass(kind, tuple):
            self._containers.append(made)
        return made


def _refilled(kind: type[dict], items: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
    made = kind.__new__(kind)
    made.update(items)
    return made


def _text(spec: Any) -> str:
    if isinstance(spec, Leaf):
        known = {"list": "an argument", "again": "the same again", "=": repr(spec.which)}
        return known.get(spec.source, "a tensor")
    kind, what = spec
    items = [_text(item[1] if issubclass(kind, dict) else item) for item in what]
    return f"{kind.__name__}({', '.join(items)})"
