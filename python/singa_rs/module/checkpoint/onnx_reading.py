"""The tensors that an ONNX model keeps, its initialisers, read without copying them.

Field numbers are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ... import files, tensor
from .stored import Stored, damage, mapped, stored
from .wire import BYTES, FIXED32, FIXED64, VARINT, Walker, packed

#: The most fields of the model, its graph and its tensors together: about 50,000 tensors. They take
#: less than a second.
_FIELDS = 1 << 18
MODEL_GRAPH, _MODEL_METADATA = 7, 14
GRAPH_INITIALIZER = 5
TENSOR_RAW = 9
_DIMS, _TYPE, _FLOATS, _NAME, _DOUBLES, _EXTERNAL, _LOCATION = 1, 2, 4, 8, 10, 13, 14
#: int32_data, int64_data and uint64_data, whose numbers have to be decoded.
_ENCODED = {5, 7, 11}
_KEY, _VALUE = 1, 2
#: The longest name of a tensor, and the longest property that is read, in bytes.
_TEXT = 1 << 16
#: The property that names the initialisers that are no states, one a line.
CONSTANTS = "singa_rs.constants"

#: TensorProto.DataType.
DTYPES = {
    1: tensor.float32, 2: tensor.uint8, 3: tensor.int8, 4: tensor.uint16, 5: tensor.int16,
    6: tensor.int32, 7: tensor.int64, 9: tensor.bool_, 10: tensor.float16, 11: tensor.float64,
    12: tensor.uint32, 13: tensor.uint64, 16: tensor.bfloat16,
}  # fmt: skip


class Initialisers(NamedTuple):
    """What a model keeps: its properties, and its tensors without the constants among them."""

    metadata: dict[str, str]
    tensors: dict[str, Stored]


class _Tensor:
    """The fields of a TensorProto."""

    def __init__(self) -> None:
        self.name = ""
        self.dims: list[int] = []
        self.type = self.location = 0
        self.parts: dict[int, list[memoryview]] = {}
        self.external: dict[str, str] = {}
        self.is_encoded = False


def read(op: str, path: str) -> Initialisers:
    """The initialisers of the model in a file, on its mapped memory.

    Raises:
        CheckpointError: it is missing, truncated or damaged; two tensors have one name; a dtype
            that tensors do not have; data outside of the file's folder.
    """
    view = mapped(op, path)
    with damage(op, path, "the ONNX file"):
        return _Reader(op, os.path.dirname(os.path.realpath(path))).model(view)


class _Reader:
    def __init__(self, op: str, folder: str) -> None:
        self._op, self._folder = op, folder
        self._walker = Walker(_FIELDS)
        self._files: dict[str, memoryview] = {}

    def model(self, message: memoryview) -> Initialisers:
        metadata, graph = {}, None
        for number, kind, _, content in self._walker.fields(message):
            if number == _MODEL_METADATA and kind == BYTES and len(content) <= _TEXT:
                metadata.update([self._pair(content)])
            elif number == MODEL_GRAPH and kind == BYTES:
                if graph is not None:
                    raise ValueError("it has two graphs")
                graph = content
        if graph is None:
            raise ValueError("it has no graph")
        constants = set(metadata.get(CONSTANTS, "").split("\n")) - {""}
        tensors = {n: one for n, one in self._graph(graph).items() if n not in constants}
        return Initialisers(metadata, tensors)

    def _graph(self, message: memoryview) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        for number, kind, _, content in self._walker.fields(message):
            if number == GRAPH_INITIALIZER and kind == BYTES:
                one = self._fields(content)
                if one.name in found:
                    raise ValueError(f"{one.name!r:.80} occurs twice")
                try:
                    found[one.name] = self._stored(one, content)
                except ValueError as error:
                    raise ValueError(f"{one.name!r:.80}: {error}") from error
        return found

    def _fields(self, message: memoryview) -> _Tensor:
        made = _Tensor()
        for number, kind, value, content in self._walker.fields(message):
            if number == _DIMS and kind in (VARINT, BYTES):
                made.dims += [value] if kind == VARINT else packed(content)
            elif number == _TYPE and kind == VARINT:
                made.type = value
            elif number == _LOCATION and kind == VARINT:
                made.location = value
            elif number == _NAME and kind == BYTES:
                made.name = _text(content)
            elif number == _EXTERNAL and kind == BYTES:
                made.external.update([self._pair(content)])
            elif number in (_FLOATS, _DOUBLES, TENSOR_RAW) and kind in (BYTES, FIXED32, FIXED64):
                made.parts.setdefault(number, []).append(content)
            elif number in _ENCODED:
                made.is_encoded = True
        return made

    def _pair(self, message: memoryview) -> tuple[str, str]:
        """A StringStringEntryProto."""
        texts = {_KEY: "", _VALUE: ""}
        for number, kind, _, content in self._walker.fields(message):
            if number in texts and kind == BYTES:
                texts[number] = _text(content)
        return texts[_KEY], texts[_VALUE]

    def _stored(self, one: _Tensor, message: memoryview) -> Stored:
        if one.type not in DTYPES:
            raise ValueError(f"got data_type {one.type}, which tensors do not have")
        dtype = DTYPES[one.type]
        raw = _decoded(message) if one.is_encoded else self._raw(one, dtype)
        return stored(one.dims, dtype, raw)

    def _raw(self, one: _Tensor, dtype: Any) -> memoryview:
        if one.location == 1:
            return self._outside(one.external)
        if one.location or len(one.parts) > 1:
            raise ValueError(f"its elements are in the fields {sorted(one.parts)}, want one")
        want = {tensor.float32: _FLOATS, tensor.float64: _DOUBLES}.get(dtype, TENSOR_RAW)
        for number, parts in one.parts.items():
            if number not in (want, TENSOR_RAW):
                raise ValueError(f"its elements of {dtype.name} are in the field {number}")
            if number == TENSOR_RAW and len(parts) > 1:
                raise ValueError("it has two fields of elements")
            return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
        return memoryview(b"")

    def _outside(self, external: dict[str, str]) -> memoryview:
        """Elements in another file of the folder."""
        place = external.get("location", "")
        path = _inside(self._folder, place)
        if path not in self._files:
            try:
                self._files[path] = mapped(self._op, path)
            except files.Missing as error:
                raise ValueError(f"its elements are in {place!r:.80}, which is missing") from error
        data = self._files[path]
        begin = _number(external.get("offset", "0"))
        length = _number(external.get("length", str(max(0, len(data) - begin))))
        if begin + length > len(data):
            raise ValueError(
                f"its bytes {begin} to {begin + length} are not in {place!r:.80}, of {len(data)}"
            )
        return data[begin : begin + length]


def _decoded(message: memoryview) -> memoryview:
    """The elements of a TensorProto that are numbers of variable length."""
    from onnx import TensorProto, numpy_helper

    array = numpy_helper.to_array(TensorProto.FromString(bytes(message)))
    return memoryview(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def _inside(folder: str, place: str) -> str:
    """The path of a file of a folder.

    Raises:
        ValueError: it is not in the folder, or a link.
    """
    path = os.path.join(folder, place)
    is_name = (
        place not in ("", ".", "..") and os.path.basename(place) == place and "\\" not in place
    )
    if not is_name or "\0" in place or os.path.islink(path):
        raise ValueError(f"its elements are in {place!r:.80}, want a file in the model's folder")
    return path


def _text(content: memoryview) -> str:
    if len(content) > _TEXT:
        raise ValueError(f"a text takes {len(content)} bytes, want at most {_TEXT}")
    return str(content, "utf-8")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"got {text!r:.80} for a place in a file, want a number")
    return int(text)
