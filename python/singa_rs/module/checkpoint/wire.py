"""Protocol buffers' wire format: the fields of a message, found in place, and what precedes one.

Parsing a model with the `onnx` package copies its weights several times; this walks over a mapped
file, and copies nothing (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
#: The largest number of a field.
_NUMBERS = (1 << 29) - 1
#: The most bytes of a varint.
_VARINT = 10

#: A field: its number, its wire type, and its value, or its bytes where it is no varint.
Field = tuple[int, int, int, memoryview]


class Walker:
    """Walks over messages, over at most `limit` fields of all of them together."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        #: Where in its message the bytes of the field begin that was found last.
        self.at = 0

    def fields(self, message: memoryview) -> Iterator[Field]:
        """The fields of a message, in the order of their bytes.

        Raises:
            ValueError: a field that exceeds the message or has an unknown wire type; too many.
        """
        at, end = 0, len(message)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise ValueError("it has too many fields")
            key, at = varint(message, at)
            number, kind = key >> 3, key & 7
            if not 0 < number <= _NUMBERS:
                raise ValueError(f"a field has the number {number}")
            value, length = 0, _WIDTHS.get(kind)
            if kind == VARINT:
                value, at = varint(message, at)
                self.at = at
                yield number, kind, value, message[:0]
                continue
            if kind == BYTES:
                length, at = varint(message, at)
            elif length is None:
                raise ValueError(f"field {number} has wire type {kind}")
            if length > end - at:
                raise ValueError(f"field {number} has {length} bytes, but {end - at} are left")
            self.at = at
            yield number, kind, value, message[at : at + length]
            at += length


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """The unsigned number at a place, and the place behind it.

    Raises:
        ValueError: it exceeds the message, or 64 bits.
    """
    if at < len(message) and (value := message[at]) < 0x80:  # nearly all of them
        return value, at + 1
    value = shift = 0
    for place in range(at, min(at + _VARINT, len(message))):
        byte = message[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, place + 1
        shift += 7
    raise ValueError(f"the number at byte {at} of a message does not end, or exceeds 64 bits")


def packed(content: memoryview) -> list[int]:
    """The numbers of a short packed field, such as a shape.

    Raises:
        ValueError: they take more bytes than 64 numbers can; one does not end.
    """
    if len(content) > _VARINT * 64:
        raise ValueError(f"its shape takes {len(content)} bytes")
    found, at = [], 0
    while at < len(content):
        value, at = varint(content, at)
        found.append(value)
    return found


def encoded(value: int) -> bytes:
    """A varint."""
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def number(tag: int, value: int) -> bytes:
    """A field that is an unsigned number."""
    return encoded(tag << 3 | VARINT) + encoded(value)


def field(number: int, length: int) -> bytes:
    """What stands before the bytes of a field."""
    return encoded(number << 3 | BYTES) + encoded(length)
