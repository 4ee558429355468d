"""Models in files: checked and parsed without their long tensors, which are read one at a time.

The `onnx` package parses all of a file to check it, parses it again to give its messages to Python,
and copies what a tensor holds whenever it is asked for it: several times the weights at once. Here
both see an outline, the model's messages with short stand-ins for what is long.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
import onnx
from onnx import TensorProto

from ..module.checkpoint.onnx_reading import GRAPH_INITIALIZER, MODEL_GRAPH, TENSOR_RAW
from ..module.checkpoint.stored import mapped
from ..module.checkpoint.wire import BYTES, Walker, field
from .arrays import CODED, dtype_of, from_bytes, to_array
from .order import Disordered, sort

#: The fewest bytes of a message that is looked into for elements to leave out.
_LONG = 4096
#: The most fields that are looked at, those of messages with long tensors in them.
_FIELDS = 1 << 20
#: The most parts in which a file is mapped, and the fewest bytes of one that is not its end.
_PARTS, _PART = 128, 16 << 20
#: By message, which of its fields are messages that tensors may be in (onnx.proto).
_WITHIN = {
    "Model": {MODEL_GRAPH: "Graph"},
    "Graph": {1: "Node", GRAPH_INITIALIZER: "Tensor"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 11: "Graph"},
}
#: Makes a tensor without elements stand for one whose `raw_data` begins at a place and has a
#: length; returns whether it can.
StandIn = Callable[[TensorProto, int, int], bool]


class Outline:
    """A model in which other tensors stand for long ones."""

    def __init__(self, model: memoryview, stand_in: StandIn) -> None:
        self._model, self._stand_in, self._walker = model, stand_in, Walker(_FIELDS)

    def message(self) -> bytes:
        """The model's message.

        Raises:
            ValueError: it is none, or of too many fields.
            google.protobuf.message.DecodeError: a tensor is none.
        """
        return self._message("Model", 0, len(self._model))

    def _message(self, kind: str, begin: int, end: int) -> bytes:
        made, last = bytearray(), begin
        for number, wire, start, stop in self._fields(begin, end):
            is_long = wire == BYTES and stop - start >= _LONG
            inner = _WITHIN[kind].get(number) if is_long else None
            if inner is None:
                made += self._model[last:stop]
            else:
                is_tensor = inner == "Tensor"
                short = (
                    self._tensor(start, stop) if is_tensor else self._message(inner, start, stop)
                )
                made += field(number, len(short)) + short
            last = stop
        return bytes(made)

    def _fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Numbers and wire types of a message's fields, and the places of their bytes."""
        for number, wire, _, content in self._walker.fields(self._model[begin:end]):
            start = begin + self._walker.at
            yield number, wire, start, start + len(content)

    def _tensor(self, begin: int, end: int) -> bytes:
        """What stands for a tensor: itself, where its elements are not in one field of bytes."""
        rest, last, places = bytearray(), begin, []
        for number, wire, start, stop in self._fields(begin, end):
            if number == TENSOR_RAW and wire == BYTES:
                places.append((start, stop - start))
            else:
                rest += self._model[last:stop]
            last = stop
        made = TensorProto.FromString(bytes(rest))
        is_plain = len(places) == 1 and not made.HasField("data_location")
        if is_plain and self._stand_in(made, *places[0]):
            return made.SerializeToString()
        return bytes(self._model[begin:end])


def _empty(proto: TensorProto, _: int, length: int) -> bool:
    """Makes a tensor of no elements stand for one that has as many bytes as its shape takes."""
    dtype, dims = dtype_of(proto.data_type), tuple(proto.dims)
    if dtype.hasobject or proto.data_type in CODED or min(dims, default=0) < 0:
        return False
    proto.dims[:] = [0]
    return math.prod(dims) * dtype.itemsize == length


class Source:
    """Where the elements of a model's tensors are: in their messages, in files of its folder, or in
    the file of the model itself, where an outline has left them."""

    def __init__(self, folder: str = "", file: IO[bytes] | None = None) -> None:
        self._folder, self._file = folder, file
        #: What the outline names the model's file, which no file can know.
        self._name = os.urandom(16).hex()
        self._size = 0 if file is None else os.fstat(file.fileno()).st_size
        #: Where the part of the file begins that was mapped last, its bytes, and how many parts may
        #: still be mapped, as each takes a file descriptor.
        self._begin, self._part, self._left = 0, memoryview(b""), _PARTS

    def array(self, proto: TensorProto, is_mapped: bool = False) -> np.ndarray:
        """The elements of a tensor; those in the model's file on its mapped memory, if wanted.

        Raises:
            OSError: the file that they are in cannot be read.
            ValueError: they are not those of its shape.
        """
        place = {one.key: one.value for one in proto.external_data}
        if self._file is None or place.get("location") != self._name:
            return to_array(proto, self._folder)
        raw = self._mapped(self._file, int(place["offset"]), int(place["length"]))
        found = from_bytes(proto, raw)
        return found if is_mapped else constant(found)

    def _mapped(self, file: IO[bytes], offset: int, length: int) -> memoryview:
        """Bytes of the model's file, on memory that is mapped in parts: each ends with the last
        array on it, so that not all of a large file is in memory beside what is made of it."""
        if not self._begin <= offset <= offset + length <= self._begin + len(self._part):
            if not self._left:  # tensors that are read in quite another order
                file.seek(offset)
                return memoryview(file.read(length))
            self._left -= 1
            self._map_part(file, offset, length)
        return self._part[offset - self._begin :][:length]

    def _map_part(self, file: IO[bytes], offset: int, length: int) -> None:
        """Maps the part of the file that begins with these bytes."""
        self._begin = offset - offset % mmap.ALLOCATIONGRANULARITY
        size = max(offset + length - self._begin, _PART, self._size // _PARTS * 2)
        size = min(size, self._size - self._begin)
        access, begin = mmap.ACCESS_READ, self._begin
        self._part = memoryview(mmap.mmap(file.fileno(), size, access=access, offset=begin))

    def stand_in(self, proto: TensorProto, offset: int, length: int) -> bool:
        """Makes a tensor say that its elements are in the model's file."""
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._name), ("offset", offset), ("length", length)):
            proto.external_data.add(key=key, value=str(value))
        return True


#: The source of the tensors of messages that are of no file.
MESSAGES = Source()


def constant(array: np.ndarray) -> np.ndarray:
    """A copy that nobody may write."""
    made = np.array(array)
    made.setflags(write=False)
    return made


def format_of(path: str) -> str:
    """What a file is written in, as its name says: "protobuf", or one of onnx's formats of text."""
    end = os.path.splitext(path)[1]
    return onnx.serialization.registry.get_format_from_file_extension(end) or "protobuf"


@contextmanager
def opened(path: str) -> Iterator[tuple[onnx.ModelProto, Source]]:
    """The model in a file, which ONNX checks, and the source of its tensors, while it is open.

    Raises:
        onnx.checker.ValidationError: it is no model of ONNX; data of other files leave its folder.
        order.Disordered: there is no order for its nodes.
        OSError: the file cannot be opened.
        google.protobuf.message.DecodeError: its bytes are no messages.
    """
    os.stat(path)  # whose error says better what is missing
    if (kind := format_of(path)) != "protobuf":
        yield _of_text(path, kind), Source(os.path.dirname(path))
        return
    _check(path)
    with open(path, "rb") as file:
        source = Source(os.path.dirname(path), file)
        yield _parsed(path, source), source


def _of_text(path: str, kind: str) -> onnx.ModelProto:
    """The model in a file of text, which ONNX checks."""
    made = onnx.load(path, kind, load_external_data=False)
    _check_model(made)
    return made


def _check(path: str) -> None:
    """Has ONNX check a file: its outline, or all of it where that is refused, as only then errors
    name the file, or where elements may be in other files, which are looked for next to it."""
    try:
        short = Outline(mapped("sonnx", path), _empty).message()
        _check_model(short)
        is_checked = b"location" not in short
    except Disordered:
        raise
    except Exception:  # whatever it is, the whole file has it, too
        is_checked = False
    if not is_checked:
        _check_file(path)


def _check_model(model: bytes | onnx.ModelProto) -> None:
    """Has ONNX check a model, or else what it is with its nodes in order.

    Raises:
        order.Disordered: there is no order for them.
    """
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        made = onnx.ModelProto.FromString(model) if isinstance(model, bytes) else model
        if not sort(made):
            raise
        onnx.checker.check_model(made)


def _check_file(path: str) -> None:
    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        if "topologically sorted" not in str(error):
            raise
        # ONNX checks files of which other files are part only where they are, and as they are.
        more = "Give what onnx.load makes of the file, whose nodes are sorted when it is read"
        raise onnx.checker.ValidationError(f"{str(error).strip()} {more}") from error


def _parsed(path: str, source: Source) -> onnx.ModelProto:
    """A file's messages, without long tensors' elements if its bytes can be walked over."""
    try:
        short = Outline(mapped("sonnx", path), source.stand_in).message()
    except Exception:  # valid messages may be encoded in ways of which the outline knows nothing
        return onnx.load(path, load_external_data=False)
    return onnx.ModelProto.FromString(short)
