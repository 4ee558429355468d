"""Nested states as JSON and arrays, and back. Nothing in them is code.

Dictionaries, lists, strings, numbers, booleans and None are themselves in JSON; anything else is an
object with one name that begins with a dollar sign. A name of the user's that begins so gets
another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...device import Device
from ...dist.seeds import own_rng_state, shared_rng_state
from ...errors import GraphError
from ...tensor import Placeholder, Tensor, bfloat16, uint16
from .stored import Stored, elements

#: How objects tell their states and take them, in the order in which they are looked for.
_PROTOCOLS = (
    ("get_states", "set_states"),
    ("state_dict", "load_state_dict"),
    ("get_rng_state", "set_rng_state"),
    ("get_state", "set_state"),
    ("getstate", "setstate"),
)
_DEPTH = 64
_TENSOR, _ARRAY, _SCALAR, _TUPLE, _OBJECT = "$tensor", "$array", "$scalar", "$tuple", "$object"
_INT = "$int"
_MARKS = (_TENSOR, _ARRAY, _SCALAR, _TUPLE, _OBJECT, _INT)
#: The bits of longer integers stand in hexadecimal: Python limits the decimal digits that it reads
#: and writes, by default to 4300, and never to less than 640.
_BITS = 2048
_DTYPE, _STATE = "dtype", "state"


class Encoder:
    """Makes JSON values of states; their elements are in `arrays`, by name."""

    def __init__(self, op: str) -> None:
        self._op = op
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """The JSON value of a state at a place.

        Raises:
            TypeError: a value that cannot be stored, or a name that is not a str.
            ValueError: values nested too deeply.
            GraphError: a tensor without a value.
        """
        if len(path) > _DEPTH:
            raise ValueError(f"{self._op}: {'.'.join(path):.80}...: nested too deeply")
        if value is None or isinstance(value, (bool, int, float, str)):
            return {_INT: hex(value)} if _is_long(value) else _plain(value)
        if isinstance(value, (Tensor, np.ndarray, np.generic)):
            return self._array(value, path)
        if isinstance(value, Mapping):
            return {self._key(k, path): self.encode(v, (*path, k)) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            items = [self.encode(one, (*path, str(i))) for i, one in enumerate(value)]
            return {_TUPLE: items} if isinstance(value, tuple) else items
        get, _ = accessors(value) or self._refuse(value, path)
        return {_OBJECT: type(value).__name__, _STATE: self.encode(get(), path)}

    def _key(self, key: Any, path: tuple[str, ...]) -> str:
        if not isinstance(key, str):
            raise TypeError(f"{self._op}: {'.'.join(path)}: got the name {key!r:.80}, want a str")
        return f"${key}" if key.startswith("$") else str(key)

    def _refuse(self, value: Any, path: tuple[str, ...]) -> Any:
        raise TypeError(
            f"{self._op}: {'.'.join(path)}: got {type(value).__name__}, want numbers, strings, "
            "arrays, tensors, lists and dictionaries of them, or an object with "
            + " or ".join(f"{get} and {put}" for get, put in _PROTOCOLS[:3])
        )

    def _array(self, value: Any, path: tuple[str, ...]) -> dict[str, str]:
        if isinstance(value, Placeholder):
            raise GraphError(f"{self._op}: {'.'.join(path)} is an unfilled {value!r}")
        name = "/".join(path).encode(errors="replace").decode()
        while name in self.arrays:
            name += "'"
        if isinstance(value, Tensor):
            self.arrays[name] = elements(value)
            return {_TENSOR: name, _DTYPE: value.dtype.name}
        if isinstance(value, np.ma.MaskedArray) or value.dtype.kind not in "biuf":
            self._refuse(value, path)
        if value.dtype.itemsize > 8:
            raise TypeError(f"{self._op}: {'.'.join(path)}: got {value.dtype}, want up to 64 bits")
        self.arrays[name] = np.array(value, value.dtype.newbyteorder("="), order="C")
        return {_ARRAY if isinstance(value, np.ndarray) else _SCALAR: name}


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() > _BITS


def _plain(value: Any) -> Any:
    """A value of Python's own type: subclasses have other forms of text."""
    if value is None or isinstance(value, bool):
        return value
    return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))


def accessors(value: Any) -> tuple[Callable[[], Any], Callable[[Any], None]] | None:
    """The functions that tell an object's states, and take them; None if it has none."""
    if isinstance(value, np.random.Generator):
        return lambda: value.bit_generator.state, lambda state: _set_bits(value, state)
    if isinstance(value, Device):
        return _random_of(value)
    if isinstance(value, type):
        return None
    for names in _PROTOCOLS:
        if all(callable(getattr(value, name, None)) for name in names):
            return getattr(value, names[0]), getattr(value, names[1])
    return None


def _random_of(device: Device) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Those of a device's generators, for any number of processes that work together."""

    def put(state: Any) -> None:
        device.set_rng_state(own_rng_state(state))

    return lambda: shared_rng_state(device.get_rng_state()), put


def _set_bits(generator: np.random.Generator, state: Any) -> None:
    generator.bit_generator.state = state


class Decoder:
    """Makes states of JSON values and the tensors that are stored beside them."""

    def __init__(self, tensors: Mapping[str, Stored]) -> None:
        #: Those that no value has named yet: one that is named often would be copied as often.
        self._left = dict(tensors)
        #: What objects told, by the identity of their JSON values.
        self._told: dict[int, Any] = {}

    def decode(self, found: Any) -> Any:
        """The states of a JSON value; in the place of an object, what it told.

        Raises:
            ValueError, KeyError: not what `Encoder` makes.
        """
        if isinstance(found, list):
            return [self.decode(one) for one in found]
        if not isinstance(found, dict):
            return found
        mark = next((mark for mark in _MARKS if mark in found), None)
        if mark is None:
            return {_unescaped(key): self.decode(one) for key, one in found.items()}
        if mark == _OBJECT:
            if id(found) not in self._told:
                self._told[id(found)] = self.decode(found[_STATE])
            return self._told[id(found)]
        if mark == _TUPLE:
            return tuple(self.decode(found[_TUPLE]))
        if mark == _INT:
            return int(found[_INT], 16)
        return self._array(mark, found)

    def _array(self, mark: str, found: dict[str, Any]) -> Any:
        if found[mark] not in self._left:
            raise ValueError(f"there is no tensor {found[mark]!r:.80}, or it is named twice")
        stored = self._left.pop(found[mark])
        if mark == _TENSOR:
            if found[_DTYPE] == bfloat16.name and stored.dtype == uint16:
                stored = stored._replace(dtype=bfloat16)
            return Tensor(data=stored.array(), dtype=stored.dtype, requires_grad=False)
        array = stored.array().copy()
        return array[()] if mark == _SCALAR else array


def _unescaped(key: str) -> str:
    if key.startswith("$") and not key.startswith("$$"):
        raise ValueError(f"got the unknown form {key!r:.80}")
    return key[1:] if key.startswith("$$") else key


def pairs(objects: Any, found: Any, path: tuple[str, ...] = ()) -> Iterator[Pair]:
    """The objects in nested dictionaries and lists that take states, with those that are in their
    places in a JSON value. Anything else among the objects is left out.

    Raises:
        ValueError: there are no states in such a place, or those of an object of another class.
    """
    if isinstance(objects, (Mapping, list, tuple)):
        found = found.get(_TUPLE, found) if isinstance(found, dict) else found
        for key, one in objects.items() if isinstance(objects, Mapping) else enumerate(objects):
            yield from pairs(one, _child(found, key), (*path, str(key)))
    elif (access := _access(objects)) is not None:
        place, kind = ".".join(path), type(objects).__name__
        if not isinstance(found, dict) or _OBJECT not in found:
            raise ValueError(f"{place}: it has no states of an object there, want those of {kind}")
        if found[_OBJECT] != kind:
            raise ValueError(f"{place}: it has the states of {found[_OBJECT]!s:.80}, want {kind}'s")
        yield Pair(place, access[1], found)


class Pair(NamedTuple):
    """What takes an object's states, its place among others, and the object's JSON value."""

    place: str
    put: Callable[[Any], None]
    found: Any


def _access(value: Any) -> Any:
    is_value = value is None or isinstance(value, (bool, int, float, str, np.ndarray, Tensor))
    return None if is_value else accessors(value)


def _child(found: Any, key: Any) -> Any:
    if isinstance(found, dict) and isinstance(key, str):
        return found.get(f"${key}" if key.startswith("$") else key)
    if isinstance(found, list) and isinstance(key, int) and key < len(found):
        return found[key]
    return None
