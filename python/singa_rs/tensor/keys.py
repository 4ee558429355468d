"""Representations of values in keys: equal where a program cannot tell two values apart."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .._core import DType

#: Types whose values compare as Python compares them.
EXACT = frozenset({int, bool, str, bytes, type(None), DType})


class Settings:
    """Immutable named values: two objects of one class with equal values are equal, and recordings
    treat them as the same."""

    #: Its representation in a key.
    key: Hashable

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values, key=(type(self), tuple(map(key_of, values.values()))))

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self).__name__
        raise AttributeError(f"{kind}.{name}: cannot be set to {value!r}; make another {kind}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


class Same:
    """An object that equals only itself, as long as it lives and is of its class; held by a weak
    reference where that is possible."""

    __slots__ = ("_get", "_hash", "_kind")

    def __init__(self, value: Any) -> None:
        self._kind = type(value)  # which the program may change
        self._hash = id(value)
        try:
            self._get: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._get = lambda: value

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self._kind.__name__

    def get(self) -> Any:
        """The object, or None if it is gone."""
        return self._get()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return NotImplemented
        own = self._get()
        return own is not None and own is other._get() and self._kind is other._kind

    def __repr__(self) -> str:
        return f"a {self.kind}"


def key_of(value: Any) -> Hashable:
    """The key of a value: by identity for objects other than numbers, text and the like."""
    kind = type(value)
    if kind in EXACT:
        return kind, value
    if kind in (float, complex):
        # 0.0 is not -0.0, and NaN equals NaN of the same bits.
        bits = "" if value == value else f" {np.asarray(value).tobytes().hex()}"
        return kind, repr(value) + bits
    if kind is range:  # which equals others of the same numbers
        return kind, (value.start, value.stop, value.step)
    if isinstance(value, np.generic):
        return kind, _bits(value)
    if kind in (tuple, frozenset):
        return kind, tuple(map(key_of, value))
    return value.key if isinstance(value, Settings) else Same(value)


def _bits(value: np.generic) -> Hashable:
    """What tells a scalar from others of its class: that of dates, durations and records does not
    tell what its bits mean."""
    if value.dtype.kind not in "mMV":
        return value.tobytes()
    return repr(value.dtype), key_of(value.item()) if value.dtype.hasobject else value.tobytes()


def is_scalar(key: Any) -> bool:
    """Whether a key is that of a number, text or the like."""
    kind = key[0] if type(key) is tuple and key else None
    if not isinstance(kind, type):
        return False
    return kind in EXACT or kind in (float, complex, range) or issubclass(kind, np.generic)


def show(key: Any) -> str:
    """A key as text."""
    if isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], type):
        return key[1] if key[0] in (float, complex) else repr(key[1])
    return str(key)
