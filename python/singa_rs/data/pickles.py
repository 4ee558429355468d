"""Pickles of plain values and arrays, read without running anything that they name.

A pickle is a program for a stack machine, which may call any function. This one has the
instructions that dictionaries, lists, text, numbers and NumPy arrays need; a call is data until it
turns out to describe an array. Memory stays in proportion to the file: nothing is allocated by a
size that the file states.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np

_MARK = object()
_ARRAY = ("numpy.ndarray",)
_RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
_DTYPE = ("numpy.dtype",)
_ENCODE = ("_codecs.encode",)
_BYTES = ("__builtin__.bytes", "builtins.bytes")
_FROM_BUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
_KNOWN = (*_ARRAY, *_RECONSTRUCT, *_DTYPE, *_ENCODE, *_BYTES, *_FROM_BUFFER)
_KINDS = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"b1", "f4", "f8"}


class _Name(str):
    """A function or class that the pickle names."""

    __slots__ = ()


class _Type:
    """A dtype: its name, and its byte order once that is told."""

    def __init__(self, name: str) -> None:
        self.name, self.order = name, "<"

    def build(self, state: Any) -> None:
        """Takes the byte order from the state that NumPy writes."""
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "|"):
            raise ValueError("has a dtype of unknown state")
        self.order = state[1]


class _Array:
    """An array: empty until its state is told."""

    value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Takes shape, dtype and bytes from the state that NumPy writes."""
        if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[2], _Type):
            raise ValueError("has an array of unknown state")
        _, shape, kind, is_columns, raw = state
        self.fill(raw, kind, shape, "F" if is_columns else "C")

    def fill(self, raw: Any, kind: _Type, shape: Any, order: str) -> None:
        """Takes its elements in row-major ("C") or column-major ("F") order."""
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("has an array of unknown shape")
        if not isinstance(raw, bytes):
            raise ValueError("has an array that is not of numbers")
        dtype = np.dtype(kind.order + kind.name)
        self.value = np.frombuffer(raw, dtype).reshape(shape, order=order)


def loads(raw: bytes) -> Any:
    """The value in a pickle. Text of Python 2 is bytes.

    Raises:
        ValueError: it is damaged, or has anything but plain values and arrays of numbers.
    """
    machine = _Machine()
    try:
        for instruction, argument, _place in pickletools.genops(raw):
            if instruction.name == "STOP":
                return _plain(machine.pop())
            machine.run(instruction.name, argument)
    except (IndexError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"is a damaged pickle: {error!r}") from error
    raise ValueError("is a damaged pickle: it does not end")


class _Arguments(tuple[Any, ...]):
    """A tuple that has more in it than plain values and arrays: what describes an array."""

    __slots__ = ()


def _plain(value: Any) -> Any:
    """A value, or the array that it describes."""
    if isinstance(value, (_Name, _Type, _Arguments)):
        raise ValueError("has more than plain values and arrays")
    if not isinstance(value, _Array):
        return value
    if value.value is None:
        raise ValueError("has an array without a value")
    return value.value


def _grouped(items: list[Any]) -> tuple[Any, ...]:
    if any(isinstance(one, (_Name, _Type, _Arguments)) for one in items):
        return _Arguments(items)
    return tuple(map(_plain, items))


class _Machine:
    """A stack, and the values that the pickle names by number."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, name: str, argument: Any) -> None:
        """One instruction."""
        if name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            self._stack.append(_VALUES[name](argument))
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"has {name}, which plain values and arrays do not need")

    def pop(self) -> Any:
        """The value on top."""
        value = self._stack.pop()
        if value is _MARK:
            raise ValueError("is a damaged pickle: a value is missing")
        return value

    def above_mark(self) -> list[Any]:
        """The values above the last mark, which are taken away together with it."""
        found: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            found.append(value)
        return found[::-1]

    def keep(self, argument: int | None) -> None:
        """Names the value on top by a number, the next one by default."""
        self._memo[len(self._memo) if argument is None else argument] = self._stack[-1]

    def recall(self, argument: int) -> None:
        """The value of a number."""
        self._stack.append(self._memo[argument])

    def name(self, argument: str) -> None:
        """A function or class, given as "module name"."""
        self._stack.append(_known(argument.replace(" ", ".")))

    def name_from_stack(self, _argument: None) -> None:
        """A function or class, whose module and name are on the stack."""
        name, module = self.pop(), self.pop()
        self._stack.append(_known(f"{module}.{name}"))

    def group(self, count: int) -> None:
        """A tuple of the values on top."""
        self._stack.append(_grouped([self.pop() for _ in range(count)][::-1]))

    def extend(self, items: list[Any]) -> None:
        """Adds items to the list on top."""
        if type(self._stack[-1]) is not list:
            raise ValueError("is a damaged pickle: items of what is no list")
        self._stack[-1].extend(map(_plain, items))

    def fill(self, items: list[Any]) -> None:
        """Adds keys and values to the dictionary on top."""
        if type(self._stack[-1]) is not dict or len(items) % 2:
            raise ValueError("is a damaged pickle: items of what is no dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, bytes):  # hashing nested tuples may take forever
                raise ValueError("has a dictionary whose keys are not text")
            self._stack[-1][key] = _plain(value)

    def dictionary(self, _argument: None) -> None:
        """A dictionary of the keys and values above the mark."""
        items = self.above_mark()
        self._stack.append({})
        self.fill(items)

    def call(self, _argument: None) -> None:
        """Calls one of the functions that arrays are made by."""
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise ValueError("has a call of what is no function")
        self._stack.append(_called(function, arguments))

    def build(self, _argument: None) -> None:
        """Gives the array or dtype on top its state."""
        state = self.pop()
        if not isinstance(self._stack[-1], (_Array, _Type)):
            raise ValueError("has state of what is no array")
        self._stack[-1].build(state)


def _known(name: str) -> _Name:
    if name not in _KNOWN:
        raise ValueError(f"names {name}, want plain values and arrays")
    return _Name(name)


def _called(function: _Name, arguments: tuple[Any, ...]) -> Any:
    if function in _RECONSTRUCT and arguments[0] in _ARRAY:
        return _Array()
    if function in _DTYPE and arguments[0] in _KINDS:
        return _Type(arguments[0])
    if function in _ENCODE and arguments[1] == "latin1" and isinstance(arguments[0], str):
        return arguments[0].encode("latin1")
    if function in _BYTES and not arguments:
        return b""
    if function in _FROM_BUFFER and isinstance(arguments[1], _Type) and arguments[3] in ("C", "F"):
        made = _Array()
        made.fill(arguments[0], *arguments[1:])
        return made
    raise ValueError(f"calls {function}, want plain values and arrays of numbers")


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "MARK": _MARK}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple,
}  # fmt: skip
_SAME = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8"
).split()
_VALUES: dict[str, Callable[[Any], Any]] = {
    **{name: lambda value: value for name in _SAME},
    **{name: lambda text: text.encode("latin1") for name in ("BINSTRING", "SHORT_BINSTRING")},
    "STRING": lambda text: text.encode("latin1"),
    "BYTEARRAY8": bytes,
}
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PUT": _Machine.keep,
    "BINPUT": _Machine.keep,
    "LONG_BINPUT": _Machine.keep,
    "MEMOIZE": _Machine.keep,
    "GET": _Machine.recall,
    "BINGET": _Machine.recall,
    "LONG_BINGET": _Machine.recall,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name_from_stack,
    "TUPLE": lambda machine, _: machine._stack.append(_grouped(machine.above_mark())),
    "DICT": _Machine.dictionary,
    "LIST": lambda machine, _: machine._stack.append([*map(_plain, machine.above_mark())]),
    "TUPLE1": lambda machine, _: machine.group(1),
    "TUPLE2": lambda machine, _: machine.group(2),
    "TUPLE3": lambda machine, _: machine.group(3),
    "APPEND": lambda machine, _: machine.extend([machine.pop()]),
    "APPENDS": lambda machine, _: machine.extend(machine.above_mark()),
    "SETITEM": lambda machine, _: machine.fill([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.fill(machine.above_mark()),
    "REDUCE": _Machine.call,
    "BUILD": _Machine.build,
}
