"""Trees of arguments and results: the tensors in them, and their structure."""

from __future__ import annotations

import copy
from collections import OrderedDict, deque
from collections.abc import (
    Callable,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    ValuesView,
)
from functools import partial
from typing import Any

import numpy as np

from ..tensor import Placeholder, Tensor
from ..tensor.keys import key_of
from .places import slots
from .taps import Tapped

#: The attributes that this package, not the program, gives tensors.
OF_TENSORS = frozenset(
    "requires_grad grad _stores_grad _creator _base _views _name _default_name _path_name".split()
)
_KNOWN = OF_TENSORS | {"_is_cut"}
#: The attributes that an argument may have on the fast path of a call.
ORDINARY = _KNOWN - {"grad", "_name"}


def given_name(tensor: Tensor) -> str | None:
    """The name that the program has given to a tensor, not that of its place in a model."""
    name = tensor._name
    return None if name == tensor.__dict__.get("_path_name") else name


def has_attributes(tensor: Tensor) -> bool:
    """Whether the program has given a tensor attributes, or a gradient."""
    return not _KNOWN.issuperset(tensor.__dict__) or tensor.grad is not None


def is_marked(tensor: Tensor) -> bool:
    """Whether the program has given a tensor attributes, a gradient or a name."""
    return has_attributes(tensor) or given_name(tensor) is not None


def flatten(value: Any, tensors: list[Tensor]) -> Hashable:
    """Appends the tensors of an argument to `tensors`; returns a key for the rest of it."""
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        return Tensor if kind is Placeholder else kind
    if kind in (list, tuple) or is_named(value):
        return (kind, *[flatten(item, tensors) for item in value])
    if isinstance(value, dict):
        names = tuple(map(key_of, value))
        return (kind, names, *[flatten(item, tensors) for item in value.values()])
    return ("=", key_of(value))


def is_named(value: Any) -> bool:
    """Whether it is a named tuple."""
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def first_ones(objects: Sequence[Any]) -> tuple[int, ...]:
    """For each object, the index of the first one that is identical to it."""
    numbers: dict[int, int] = {}
    return tuple([numbers.setdefault(id(one), n) for n, one in enumerate(objects)])


def is_row(tree: Hashable, count: int) -> bool:
    """Whether `flatten` returned this tree for a call with `count` ordinary tensors in order, and
    nothing else."""
    return tree == (tuple, (tuple, *[Tensor] * count), (dict, ()))


def leaves(value: Any) -> Iterator[Any]:
    """The parts of an argument that hold no others."""
    if not (isinstance(value, dict) or type(value) in (list, tuple) or is_named(value)):
        yield value
        return
    for part in value.values() if isinstance(value, dict) else value:
        yield from leaves(part)


def attributes(value: Any) -> Iterator[dict[str, Any]]:
    """The attributes of an argument's containers, which those of the program's classes have."""
    if isinstance(value, (list, tuple, dict)):
        if type(held := getattr(value, "__dict__", None)) is dict:
            yield held
        for part in value.values() if isinstance(value, dict) else value:
            yield from attributes(part)


def replace(value: Any, swap: Callable[[Any], Any]) -> Any:
    """A copy of an argument with `swap(leaf)` for each leaf."""
    kind = type(value)
    if kind in (list, tuple):
        return kind([replace(item, swap) for item in value])
    if is_named(value):
        return kind(*[replace(item, swap) for item in value])
    if not isinstance(value, dict):
        return swap(value)
    made = copy.copy(value)
    for key, item in value.items():
        made[key] = replace(item, swap)
    return made


class Results:
    """The tree that a recorded function returned, to be rebuilt from what each run makes.

    A result that is an argument, or a tensor that the model held before, is that tensor itself.
    """

    def __init__(self, value: Any, arguments: Sequence[Tensor], held: Mapping[str, Tensor]) -> None:
        #: The tensors that the function made; see `let_go`.
        self.tensors: list[Tensor] = []
        self._index: dict[int, int] = {}
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
        #: Bytes of the results that each run makes.
        # Excludes what only taps see: they drop the last step's values before the next step.
        own = leaves(value.result if type(value) is Tapped else value)
        returned = [t for t in own if isinstance(t, Tensor) and id(t) in self._index]
        self.nbytes = sum({t.block_id: t.nbytes for t in returned}.values())
        #: Whether all tensors are ordinary.
        self.is_plain = all(flags == (True, None, Tensor) for flags in self.flags)

    def _flatten(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if kind in (list, tuple) or is_named(value):
            return (kind, tuple(map(self._flatten, value)))
        if isinstance(value, dict):
            if self.obstacle is None and not _is_plain_dict(kind):
                self.obstacle = f"the step returns a {kind.__name__}, which may hold other state"
            return (kind, tuple((key, self._flatten(item)) for key, item in value.items()))
        is_own = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
        if self.obstacle is None and not is_own and _holds_tensor(value):
            self.obstacle = f"the step returns a {kind.__name__} that holds tensors"
        return ("=", Constant(value))

    def note_cut(self) -> None:
        """Notes which tensors the end of the recording has cut off from their history."""
        self.cut = [i for i, tensor in enumerate(self.tensors) if tensor._is_cut]

    def cut_off(self, made: Sequence[Tensor]) -> None:
        """Marks these tensors among those that a run made."""
        for i in self.cut:
            made[i]._is_cut = True

    def _tensor(self, value: Tensor) -> Any:
        if id(value) in self._given:
            return ("argument", self._given[id(value)])
        if id(value) in self._held:
            self.paths.add(self._held[id(value)])
            return ("held", self._held[id(value)])
        if not _KNOWN.issuperset(value.__dict__):
            self.obstacle = "the step returns a tensor with attributes of its own"
        if value._stores_grad or value.grad is not None:
            self.obstacle = "the step returns a tensor that stores its gradient"
        index = self._index.setdefault(id(value), len(self.tensors))
        if index == len(self.tensors):
            self.tensors.append(value)
        return ("made", index)

    def let_go(self) -> None:
        """Drops the references to the tensors, so as not to keep them alive."""
        self.tensors.clear()
        self._index.clear()
        self._given.clear()
        self._held.clear()

    def build(
        self, arguments: Sequence[Tensor], made: Sequence[Tensor], held: Mapping[str, Tensor]
    ) -> Any:
        """The results of a run; `held` are the attributes as the call found them."""
        self.cut_off(made)
        if not self.is_plain:
            for tensor, flags in zip(made, self.flags, strict=True):
                _restore(tensor, *flags)
        return _build(self.spec, arguments, made, held)

    def difference(self, other: Results) -> str | None:
        """What differs, apart from the tensors' values; None if nothing does."""
        if self.spec != other.spec:
            return f"the results: {_text(self.spec)}, then {_text(other.spec)}"
        if self.flags != other.flags:
            return "the results' requires_grad or names"
        return None


def _is_plain_dict(kind: type) -> bool:
    """Whether a dictionary of this class is made of its items alone."""
    return kind in (dict, OrderedDict) or kind.__module__.startswith("singa_rs.")


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


def _build(
    spec: Any, arguments: Sequence[Tensor], made: Sequence[Tensor], held: Mapping[str, Tensor]
) -> Any:
    kind, what = spec
    if kind == "made":
        return made[what]
    if kind is tuple:
        return tuple([_build(item, arguments, made, held) for item in what])
    if kind == "argument":
        return arguments[what]
    if kind == "held":
        return held[what]
    if kind == "=":
        return what.get()
    if issubclass(kind, dict):
        return _refilled(kind, ((key, _build(item, arguments, made, held)) for key, item in what))
    items = [_build(item, arguments, made, held) for item in what]
    return items if kind is list else kind(*items)


def _refilled(kind: type[dict], items: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
    made = kind.__new__(kind)
    made.update(items)
    return made


def _text(spec: Any) -> str:
    kind, what = spec
    if kind in ("made", "argument", "held"):
        return "a tensor"
    if kind == "=":
        return repr(what)
    items = [_text(item[1] if issubclass(kind, dict) else item) for item in what]
    return f"{kind.__name__}({', '.join(items)})"
