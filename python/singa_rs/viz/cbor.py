"""CBOR (RFC 8949) as it is in files of steps: numbers, text, bytes, lists and dictionaries."""

from __future__ import annotations

import struct
from typing import Any

_SIMPLE = {20: False, 21: True, 22: None, 23: None}
_FLOATS = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}
_BREAK, _OPEN = 0xFF, 31
#: How deep lists may be in each other.
_DEEPEST = 64


class Reader:
    """Reads items one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._depth = data, 0, 0

    def read(self) -> Any:
        """The next item.

        Raises:
            ValueError: the bytes end within it, or are no such item.
        """
        head = self._take(1)[0]
        major, info = head >> 5, head & 31
        if major == 7:
            return self._simple(info)
        if info == _OPEN and major in (4, 5):
            return self._items(major, None)
        size = self._number(info)
        if major < 2:
            return size if major == 0 else -1 - size
        if major < 4:
            taken = self._take(size)
            return taken if major == 2 else taken.decode()
        if major == 6:  # a tag, which says nothing here
            return self.read()
        return self._items(major, size)

    def _items(self, major: int, count: int | None) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("CBOR: got lists nested too deep")
        found = []
        while len(found) != (count if count is None else count * (major - 3)):
            if count is None and self._data[self._at : self._at + 1] == bytes([_BREAK]):
                self._at += 1
                break
            found.append(self.read())
        self._depth -= 1
        return found if major == 4 else dict(zip(found[::2], found[1::2], strict=True))

    def _simple(self, info: int) -> Any:
        if info in _SIMPLE:
            return _SIMPLE[info]
        if info not in _FLOATS:
            raise ValueError(f"CBOR: got a simple value {info}")
        form, size = _FLOATS[info]
        return struct.unpack(form, self._take(size))[0]

    def _number(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise ValueError(f"CBOR: got a length of kind {info}")
        return int.from_bytes(self._take(1 << (info - 24)), "big")

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError("CBOR: got too few bytes")
        self._at += size
        return taken
