"""SINGA's TensorProto: a tensor as a message of protocol buffers, written and read in place.

Field numbers are those of SINGA's src/proto/core.proto. Elements are in the order of memory, which
strides relate to the shape: a transposed tensor is written as it lies there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import tensor
from ..errors import DTypeError, ShapeError
from ..module.checkpoint.stored import AXES
from ..module.checkpoint.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Walker,
    encoded,
    field,
    number,
    packed,
)
from ..tensor.placing import row_major

_SHAPE, _TYPE, _STRIDE = 1, 2, 3
_INT32 = np.iinfo(np.int32)
#: The bytes of the longest varint, and how far each of them is shifted.
_SHIFTS = 7 * np.arange(10, dtype=np.uint64)
#: The bytes, or the numbers, that are decoded or encoded at a time.
_PIECE = 1 << 16


class _Kind(NamedTuple):
    """How elements of a dtype are stored."""

    number: int
    """SINGA's DataType."""
    field: int
    array: str
    wire: int
    """The wire type of one element that is a field of its own."""


_KINDS = {
    tensor.float32: _Kind(0, 4, "<f4", FIXED32),
    tensor.int32: _Kind(2, 6, "<i4", VARINT),
    tensor.float64: _Kind(4, 5, "<f8", FIXED64),
}
_WIRES = {kind.field: kind.wire for kind in _KINDS.values()}
_BY_NUMBER = {kind.number: kind for kind in _KINDS.values()}
_NAMES = "float32, float64 and int32"


def type_number(dtype: Any) -> int:
    """SINGA's DataType for a dtype that its snapshots hold."""
    return _KINDS[dtype].number


# ---- writing -------------------------------------------------------------------------------------


def parts(name: str, value: tensor.Tensor) -> list[Any]:
    """The pieces of a tensor's message, all of them bytes.

    Raises:
        DTypeError: a dtype that SINGA does not write.
        ShapeError: no axes, which SINGA would read as no elements.
    """
    kind = _KINDS.get(value.dtype)
    if kind is None:
        raise DTypeError(
            f"Snapshot.write: {name!r:.80}: got {value.dtype.name}, want one of {_NAMES}"
        )
    if not value.shape:
        raise ShapeError(
            f"Snapshot.write: {name!r:.80}: got shape (), which SINGA reads as no elements; "
            "want (1,)"
        )
    head = b"".join(number(_SHAPE, extent) for extent in value.shape)
    head += number(_TYPE, kind.number)
    head += b"".join(number(_STRIDE, one) for one in row_major(value.shape))
    array = value.to_numpy().reshape(-1).astype(kind.array, copy=False)
    elements = (
        [_varints(one) for one in _pieces(array)] if kind.wire == VARINT else [array.view("u1")]
    )
    return [head + field(kind.field, sum(map(len, elements))), *elements]


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    return (array[at : at + _PIECE] for at in range(0, len(array), _PIECE))


def _varints(values: np.ndarray) -> bytes:
    """Integers of 32 bits as varints; negative ones take ten bytes, as protocol buffers want."""
    bits = values.astype(np.int64).view(np.uint64)[:, None]
    groups = ((bits >> _SHIFTS) & np.uint64(0x7F)).astype(np.uint8)
    follows = (bits >> _SHIFTS) > np.uint64(0x7F)
    is_used = np.concatenate([np.ones_like(follows[:, :1]), follows[:, :-1]], axis=1)
    return (groups | follows.astype(np.uint8) << 7)[is_used].tobytes()


# ---- reading -------------------------------------------------------------------------------------


def array(message: memoryview, walker: Walker) -> np.ndarray:
    """The tensor of a message: floats on the message's memory.

    Raises:
        ValueError: it is damaged, or its elements are not those of its shape and strides.
    """
    shape, strides, data_type, pieces = _fields(message, walker)
    if data_type not in _BY_NUMBER:
        raise ValueError(f"got data_type {data_type}, want 0, 4 or 2 ({_NAMES})")
    kind = _BY_NUMBER[data_type]
    if pieces.keys() - {kind.field}:
        raise ValueError(f"its elements are in the fields {sorted(pieces)}, want {kind.field}")
    if len(shape) > AXES:
        raise ValueError(f"got {len(shape)} axes, want up to {AXES}")
    count, raw = math.prod(shape), _joined(pieces.get(kind.field, []))
    flat = _integers(raw, count) if kind.wire == VARINT else _floats(raw, kind.array)
    if len(flat) != count:
        raise ValueError(f"shape {tuple(shape)} has {count} elements, but the file has {len(flat)}")
    return _strided(flat, tuple(shape), strides)


def _fields(
    message: memoryview, walker: Walker
) -> tuple[list[int], list[int], int, dict[int, list[memoryview]]]:
    """Extents, strides, DataType, and the elements by their field."""
    numbers: dict[int, list[int]] = {_SHAPE: [], _TYPE: [0], _STRIDE: []}
    pieces: dict[int, list[memoryview]] = {}
    for tag, kind, value, content in walker.fields(message):
        if tag in numbers and kind in (VARINT, BYTES):
            numbers[tag] += [value] if kind == VARINT else packed(content)
        elif tag in _WIRES and kind in (BYTES, _WIRES[tag]):
            one = memoryview(encoded(value)) if kind == VARINT else content
            pieces.setdefault(tag, []).append(one)
    return numbers[_SHAPE], numbers[_STRIDE], numbers[_TYPE][-1], pieces


def _joined(pieces: list[memoryview]) -> memoryview:
    return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))


def _floats(raw: memoryview, kind: str) -> np.ndarray:
    if len(raw) % np.dtype(kind).itemsize:
        raise ValueError(f"{len(raw)} bytes of elements are no whole number of them")
    return np.frombuffer(raw, kind)


def _integers(raw: memoryview, count: int) -> np.ndarray:
    """The numbers of 32 bits that varints stand for, which must be `count`."""
    data = np.frombuffer(raw, np.uint8)
    have = sum(int(np.count_nonzero(one < 0x80)) for one in _pieces(data))
    if have != count:
        raise ValueError(f"its shape has {count} elements, but the file has {have}")
    made, filled, at = np.empty(count, np.int32), 0, 0
    while at < len(data):
        values, length = _decoded(data[at : at + _PIECE])
        made[filled : filled + len(values)] = values
        filled, at = filled + len(values), at + length
    return made


def _decoded(data: np.ndarray) -> tuple[np.ndarray, int]:
    """The numbers that end in a piece, and the bytes that they take."""
    ends = np.flatnonzero(data < 0x80)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if not len(ends) or np.any(ends - starts >= len(_SHIFTS)):
        raise ValueError(f"an integer takes more than {len(_SHIFTS)} bytes, or does not end")
    values = np.zeros(len(ends), np.uint64)
    for place, shift in enumerate(_SHIFTS):
        is_in = starts + place <= ends
        groups = data[starts[is_in] + place].astype(np.uint64) & np.uint64(0x7F)
        values[is_in] |= groups << shift
    found = values.view(np.int64)
    if np.any(found < _INT32.min) or np.any(found > _INT32.max):
        raise ValueError("an integer does not fit into 32 bits")
    return found, int(ends[-1]) + 1


def _strided(flat: np.ndarray, shape: tuple[int, ...], strides: list[int]) -> np.ndarray:
    """The elements in the order of the shape."""
    if not flat.size or strides == row_major(shape) or _is_untransposed(strides, len(shape)):
        return flat.reshape(shape)
    if strides == [1] and len(shape) == 2:  # SINGA 1.0's flag of a transposed matrix
        return flat.reshape(shape[::-1]).T
    if len(strides) != len(shape):
        raise ValueError(f"got {len(strides)} strides for {len(shape)} axes")
    steps = [0 if n == 1 else step for n, step in zip(shape, strides, strict=True)]
    last = sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if last >= flat.size:
        raise ValueError(f"strides {str(strides):.80} exceed the {flat.size} elements")
    places = [step * flat.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat, shape, places, writeable=False)


def _is_untransposed(strides: list[int], axes: int) -> bool:
    """Whether there are no strides, or in their place what SINGA 1.0 wrote: a flag that is not set.
    A tensor of no axes has a single stride."""
    return strides in ([], [0]) or axes == 0


__all__ = ["array", "parts", "type_number"]
