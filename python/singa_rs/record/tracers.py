"""Tracers: what a recorded function gets in place of the tensors that it was called with.

They distinguish what it reaches through its arguments, which differ from call to call, from what it
reaches in another way, such as a global or a closure, even if both are the same tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .. import _core
from .._core import signature
from ..tensor import Placeholder, Tensor
from ..tensor.keys import EXACT
from .places import NOTHING
from .snapshot import Snapshot
from .trees import containers, copied, flatten, leaves

_VIEWS = ("_base", "_views")
_TAPE = ("_creator", *_VIEWS)


class Tracers:
    """The arguments of a call, with a tracer in place of each tensor. The function may be called
    within the context.

    Parameters, which `backward` and optimizers know by identity, are not replaced; nor are `known`
    tensors, which the program may compare by identity, and tensors that share memory with either.
    """

    def __init__(self, given: Any, known: frozenset[int]) -> None:
        tensors = [leaf for leaf in leaves(given) if isinstance(leaf, Tensor)]
        blocks = {x.block_id for x in tensors if is_itself(x, known)}
        distinct = {id(x): x for x in tensors if x.block_id not in blocks}
        self._real = list(distinct.values())
        self._made: list[Tensor] = _core.stand_ins(self._real)
        self._views = [made.alias() for made in self._made]
        for made, real in zip(self._made, self._real, strict=True):
            made.__class__ = type(real)
            made.__dict__.update(_attributes(real, but=_VIEWS))
        self._before = [dict(made.__dict__) for made in self._made]
        swaps = dict(zip(distinct, self._made, strict=True))
        #: What the function is called with, copies of lists and dictionaries, the tensors in them.
        copies: dict[int, Any] = {}
        self.given = copied(given, lambda leaf: swaps.get(id(leaf), leaf), copies)
        self._originals = list(containers(given))
        self.containers = [copies[id(one)] for one in self._originals]
        self.tensors: list[Tensor] = []
        self._tree = flatten(self.given, self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        """Points tracers that were kept, and views of them, to the real tensors."""
        _core.show(self._views, self._real)

    def restore(self, look: Callable[[], Snapshot], root: Any) -> Snapshot:
        """Gives the real tensors the flags and names that their tracers got, and puts them where
        the program keeps their tracers; returns what `look` sees afterwards."""
        real = {}
        for made, one in zip(self._made, self._real, strict=True):
            one.__dict__.update(_attributes(made, but=_TAPE))
            real[id(made)] = one
        after = look()
        found = [path for path, tensor in after.tensors.items() if id(tensor) in real]
        for path in found:
            place = after.items[path].place
            if place.key is not None and not isinstance(place.owner(root), (tuple, set, frozenset)):
                place.write(root, real[id(after.tensors[path])])
        return look() if found else after

    def marks(self, arguments: Sequence[Tensor]) -> list[tuple[int, dict[str, Any]]]:
        """The attributes that the function has set on the arguments, by index of the argument."""
        numbers = {id(x): i for i, x in enumerate(arguments)}
        looks = zip(self._real, self._made, self._before, strict=True)
        found = ((numbers[id(x)], _set(made.__dict__, before)) for x, made, before in looks)
        return [(number, marks) for number, marks in found if marks]

    def alias(self, before: Snapshot, after: Snapshot) -> str | None:
        """Why copies cannot stand for the lists and dictionaries among the arguments, as text: the
        function also reaches these in another way, or keeps them."""
        if any(map(before.has_seen, self._originals)):
            return "the step also reaches a list or dictionary among its arguments in another way"
        if any(map(after.has_seen, self.containers)):
            return "the step keeps a list or dictionary among its arguments"
        return None

    def difference(self) -> str | None:
        """What the function did to its arguments that no graph can repeat, as text, or None."""
        tensors: list[Tensor] = []
        tree = flatten(self.given, tensors)
        is_other = list(map(id, containers(self.given))) != list(map(id, self.containers))
        is_other = is_other or list(map(_own, self.containers)) != list(map(_own, self._originals))
        if is_other or tree != self._tree or list(map(id, tensors)) != list(map(id, self.tensors)):
            return "the step changes a list or dictionary among its arguments"
        if signature(self._views + self._made) != signature(self._views + self._views):
            return "the step rebinds an argument to other memory"
        for made, before in zip(self._made, self._before, strict=True):
            if before.get("_creator") is not None and made._creator is not before["_creator"]:
                return "the step writes an argument that is the result of recorded operations"
            if any(type(value) not in EXACT for value in _set(made.__dict__, before).values()):
                return "the step sets or deletes attributes of an argument"
        return None


def _own(container: Any) -> list[tuple[str, int]]:
    """The attributes of a list or dictionary of a program's class."""
    return [(name, id(value)) for name, value in getattr(container, "__dict__", {}).items()]


def is_itself(tensor: Tensor, known: frozenset[int]) -> bool:
    """Whether a tensor gets no tracer: its gradient is stored, as a parameter's is, or it is
    known."""
    is_named = tensor._stores_grad or id(tensor) in known
    return is_named and not isinstance(tensor, Placeholder)


def twin(tensor: Tensor) -> Tensor:
    """Another tensor object with the memory that a tensor has now, its flags and its names."""
    made = tensor.alias()
    made.__class__ = type(tensor)
    made.__dict__.update(_attributes(tensor, but=_TAPE))
    return made


def _set(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a tensor that were set or deleted, except those of the tape."""
    names = (after.keys() | before.keys()) - {*_TAPE, "_default_name"}
    known = ((name, after.get(name, NOTHING), before.get(name, NOTHING)) for name in names)
    return {name: now for name, now, old in known if now is not old}


def _attributes(tensor: Tensor, but: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in tensor.__dict__.items() if name not in but}
