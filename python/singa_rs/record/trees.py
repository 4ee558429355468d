"""Trees of arguments and results: the tensors in them, and their structure."""

from __future__ import annotations

import copy
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from operator import is_
from typing import Any

import numpy as np

from ..tensor import Placeholder, Tensor
from ..tensor.keys import key_of

#: The attributes that this package, not the program, gives tensors.
OF_TENSORS = frozenset(
    """
    requires_grad grad _stores_grad _creator _source _base _views _name _default_name _path_name
    _is_member _is_tied
    """.split()
)
KNOWN = OF_TENSORS | {"_is_cut"}
#: The attributes that an argument may have on the fast path of a call.
ORDINARY = KNOWN - {"grad", "_name"}


def given_name(tensor: Tensor) -> str | None:
    """The name that the program has given to a tensor, not that of its place in a model."""
    name = tensor._name
    return None if name == tensor.__dict__.get("_path_name") else name


def has_attributes(tensor: Tensor) -> bool:
    """Whether the program has given a tensor attributes, or a gradient."""
    return not KNOWN.issuperset(tensor.__dict__) or tensor.grad is not None


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


def is_numeric(value: Any) -> bool:
    """Whether a value is an array for a device: not one of strings, which imported graphs take."""
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OUS"


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


def is_leaf(value: Any) -> bool:
    """Whether a part of an argument holds no others."""
    return not (isinstance(value, dict) or type(value) in (list, tuple) or is_named(value))


def inside(value: Any) -> Iterable[Any]:
    """What a container of an argument holds."""
    return value.values() if isinstance(value, dict) else value


def leaves(value: Any) -> Iterator[Any]:
    """The parts of an argument that hold no others."""
    if is_leaf(value):
        yield value
        return
    for part in inside(value):
        yield from leaves(part)


def containers(value: Any) -> Iterator[Any]:
    """The lists and dictionaries of an argument or result."""
    if not is_leaf(value):
        if not isinstance(value, tuple):
            yield value
        for part in inside(value):
            yield from containers(part)


def attributes(value: Any) -> Iterator[dict[str, Any]]:
    """The attributes of an argument's containers, which those of the program's classes have."""
    if isinstance(value, (list, tuple, dict)):
        if type(held := getattr(value, "__dict__", None)) is dict:
            yield held
        for part in inside(value):
            yield from attributes(part)


def replace(value: Any, swap: Callable[[Any], Any]) -> Any:
    """An argument with `swap(leaf)` for each leaf. Containers of which nothing is swapped stay
    themselves."""
    if is_leaf(value):
        return swap(value)
    parts = list(inside(value))
    made = [replace(part, swap) for part in parts]
    return value if all(map(is_, parts, made)) else _refilled_like(value, made)


def copied(value: Any, swap: Callable[[Any], Any], copies: dict[int, Any]) -> Any:
    """A copy of an argument with `swap(leaf)` for each leaf; `copies` gets the containers' by the
    `id` of the originals."""
    if is_leaf(value):
        return swap(value)
    if id(value) not in copies:
        parts = [copied(part, swap, copies) for part in inside(value)]
        copies[id(value)] = _refilled_like(value, parts)
    return copies[id(value)]


def _refilled_like(value: Any, parts: list[Any]) -> Any:
    """A container like another one, which has as many parts."""
    if isinstance(value, dict):
        made = copy.copy(value)
        for key, part in zip(value, parts, strict=True):
            made[key] = part
        return made
    if type(value) in (list, tuple):
        return type(value)(parts)
    made = named(type(value), parts)
    getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
    return made


def named(kind: type, parts: Iterable[Any]) -> Any:
    """A named tuple, also of a class whose own constructor takes something else."""
    return tuple.__new__(kind, parts)
