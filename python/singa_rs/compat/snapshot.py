"""SINGA's snapshots: named tensors in a binary file, and a text that describes them.

`<prefix>.bin` (`<prefix>.model` before SINGA 1.0.1) is a sequence of records, each of a magic word,
a key and a TensorProto, and both behind their lengths of eight bytes; `<prefix>.desc` has a line
for each (SINGA src/io/snapshot.cc, binfile_writer.cc).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from os import PathLike
from typing import Any

import numpy as np

from .. import errors, files
from ..errors import GraphError
from ..module.checkpoint.stored import damage, mapped
from ..module.checkpoint.wire import Walker
from ..refusals import flag, is_integral
from ..shown import shown
from ..tensor import Tensor, from_numpy
from . import tensor_proto
from .singa_wrap import SINGA_VERSION

__all__ = [
    "Snapshot",
    "save",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_MAGIC = b"sg\1\0"
_LENGTH = struct.Struct("<Q")
#: The most tensors, and the most fields of all together, which take less than a second.
_TENSORS, _FIELDS = 1 << 15, 5 << 15
#: The longest key, in bytes.
_KEY = 1 << 16
#: The most megabytes of a record, since SINGA counts bytes in 32 bits.
_MEGABYTES = 2047


class Snapshot:
    """A snapshot to write tensors to, or to read them from (SINGA snapshot.Snapshot).

        writer = Snapshot("net", True)
        writer.write("conv/weight", weight)
        tensors = Snapshot("net", False).read()

    Each record is in the files as soon as `write` returns, and a write that fails leaves the files
    as they were. `save` replaces whole snapshots.
    """

    def __init__(self, f: str | PathLike[str], mode: bool, buffer_size: int = 10) -> None:
        """Opens `<f>.bin` and `<f>.desc` for writing, where they are emptied, or reads `<f>.bin`,
        or `<f>.model` if there is none.

        Args:
            mode: True to write, False to read.
            buffer_size: the most megabytes of a written record; SINGA has to be given as many to
                read it. Reading is not bound by it.

        Raises:
            CheckpointError: to be read, it is missing, truncated, damaged, or has a tensor twice,
                or one of a dtype other than float32, float64 and int32.
            OSError: it cannot be written.
            TypeError, ValueError: not a path; neither True nor False; not a number of megabytes.
        """
        self._prefix, self._mode = files.path_of("Snapshot", f), _is_to_write(mode)
        self._room = _room(buffer_size)
        self._arrays: dict[str, np.ndarray] = {}
        self._names: set[str] = set()
        if self._mode:
            for path, head in zip(_paths(self._prefix), (b"", _version()), strict=True):
                _begin(path, head)
        else:
            self._arrays = _read(self._prefix)

    def write(self, param_name: str, param_val: Tensor) -> None:
        """Appends a tensor under a name.

        Raises:
            DTypeError: another dtype than float32, float64 and int32.
            GraphError: a snapshot that is read.
            ShapeError: no axes.
            ValueError: an empty name, or one that was written; more than `buffer_size` megabytes.
            OSError: it cannot be written.
        """
        if not self._mode:
            raise GraphError("Snapshot.write: it was opened to be read")
        record = _record(param_name, param_val, self._room, self._names)
        _append(_paths(self._prefix), record)
        self._names.add(param_name)

    def read(self) -> dict[str, Tensor]:
        """New tensors by their names, in the order of the file.

        Raises:
            GraphError: a snapshot that is written.
        """
        if self._mode:
            raise GraphError("Snapshot.read: it was opened to be written")
        return {name: _tensor(name, array) for name, array in self._arrays.items()}


def save(f: str | PathLike[str], tensors: Mapping[str, Tensor], buffer_size: int = 10) -> None:
    """Writes a snapshot of all tensors at once. Existing files are replaced only when it is whole.

    Raises:
        As `Snapshot` and `Snapshot.write`.
    """
    prefix, room = files.path_of("Snapshot", f), _room(buffer_size)
    if not isinstance(tensors, Mapping):
        raise TypeError(f"snapshot.save: tensors: got {shown(tensors)}, want tensors by name")
    names: set[str] = set()
    binary, text = _paths(prefix)
    with files.replacing("Snapshot", text) as lines, files.replacing("Snapshot", binary) as file:
        lines.write(_version())
        for name, value in tensors.items():
            for to, pieces in zip((file, lines), _record(name, value, room, names), strict=True):
                to.writelines(pieces)
            names.add(name)


def _is_to_write(mode: Any) -> bool:
    """Whether a mode is that of writing, which empties files."""
    if flag(mode, "Snapshot: mode") != mode:
        raise TypeError(f"Snapshot: mode: got {mode!r:.80}, want True to write or False to read")
    return bool(mode)


def _room(buffer_size: int) -> int:
    """The bytes of so many megabytes."""
    if not is_integral(buffer_size):
        raise TypeError(f"Snapshot: buffer_size: got {shown(buffer_size)}, want an int")
    if not 0 < buffer_size <= _MEGABYTES:
        raise ValueError(
            f"Snapshot: got buffer_size {buffer_size}, want 1 to {_MEGABYTES} megabytes"
        )
    return int(buffer_size) << 20


def _paths(prefix: str) -> tuple[str, str]:
    return f"{prefix}.bin", f"{prefix}.desc"


# ---- writing -------------------------------------------------------------------------------------


def _version() -> bytes:
    return f"SINGA VERSION: {SINGA_VERSION}\n".encode()


def _record(
    name: str, value: Tensor, room: int, taken: Collection[str]
) -> tuple[list[Any], list[Any]]:
    """A tensor's pieces in the binary file, and in the text."""
    key = _encoded(name)
    if name in taken:
        raise ValueError(f"Snapshot.write: {name!r:.80} was written before")
    if not isinstance(value, Tensor):
        raise TypeError(f"Snapshot.write: {name!r:.80}: got {type(value).__name__}, want a Tensor")
    parts = tensor_proto.parts(name, value)
    length = sum(map(len, parts))
    head = _MAGIC + _LENGTH.pack(len(key)) + key + _LENGTH.pack(length)
    if len(head) + length > room:
        raise ValueError(
            f"Snapshot.write: {name!r:.80} takes {len(head) + length} bytes, more than "
            f"{room >> 20} megabytes; pass a larger buffer_size"
        )
    extents = " ".join(map(str, value.shape))
    line = (
        f"parameter name: {name}\tdata type: {tensor_proto.type_number(value.dtype)}"
        f"\tdim: {len(value.shape)}\tshape: {extents}\n"
    )
    return [head, *parts], [line.encode()]


def _encoded(name: str) -> bytes:
    """A name as the bytes of a key."""
    if not isinstance(name, str):
        raise TypeError(f"Snapshot.write: got {type(name).__name__} for a name, want a str")
    key = name.encode()
    if not 0 < len(key) <= _KEY or "\n" in name:
        raise ValueError(
            f"Snapshot.write: got the name {name!r:.80}, want one line of 1 to {_KEY} bytes"
        )
    return key


def _begin(path: str, head: bytes) -> None:
    """Empties a file, except for its head."""
    files.check_regular("Snapshot", path)
    with open(path, "wb") as file:
        file.write(head)


def _append(paths: Iterable[str], record: Iterable[list[Any]]) -> None:
    """Appends pieces to each of the files, or leaves all of them as they were."""
    with ExitStack() as opened, ExitStack() as undone:
        for path, pieces in zip(paths, record, strict=True):
            file = opened.enter_context(open(path, "r+b", buffering=0))
            undone.callback(file.truncate, file.seek(0, os.SEEK_END))
            for piece in pieces:
                _write_all(file, memoryview(piece))
        undone.pop_all()


def _write_all(file: Any, piece: memoryview) -> None:
    while len(piece):
        piece = piece[file.write(piece) :]


# ---- reading -------------------------------------------------------------------------------------


def _read(prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a snapshot by their names, floats on the file's mapped memory."""
    path, older = f"{prefix}.bin", f"{prefix}.model"
    if not os.path.exists(path) and os.path.exists(older):
        path = older
    view, walker = mapped("Snapshot", path), Walker(_FIELDS)
    found: dict[str, np.ndarray] = {}
    with damage("Snapshot", path, "the snapshot"):
        for name, message in _records(view):
            if len(found) == _TENSORS:
                raise ValueError(f"it has more than {_TENSORS} tensors")
            if name in found:
                raise ValueError(f"{name!r:.80} occurs twice")
            try:
                found[name] = tensor_proto.array(message, walker)
            except ValueError as error:
                raise ValueError(f"{name!r:.80}: {error}") from error
    return found


def _records(view: memoryview) -> Iterator[tuple[str, memoryview]]:
    """The keys and values of a file."""
    at = 0
    while at < len(view):
        begin, magic = at, bytes(view[at : at + len(_MAGIC)])
        if magic[:3] != _MAGIC[:3]:  # without the third one, a record has no key
            raise ValueError(f"no record with a name begins at byte {begin}")
        key, at = _field(view, at + len(_MAGIC), "name")
        value, at = _field(view, at, "tensor")
        if not 0 < len(key) <= _KEY or not len(value):
            raise ValueError(f"the record at byte {begin} has no name, no tensor, or a long name")
        yield str(key, "utf-8"), value


def _field(view: memoryview, at: int, what: str) -> tuple[memoryview, int]:
    """The bytes behind a length, and the place behind them."""
    begin = at + _LENGTH.size
    if begin > len(view):
        raise ValueError(f"it ends at byte {len(view)}, before the length of a {what}")
    (length,) = _LENGTH.unpack(view[at:begin])
    if length > len(view) - begin:
        raise ValueError(f"a {what} of {length} bytes begins at byte {begin} of {len(view)}")
    return view[begin : begin + length], begin + length


def _tensor(name: str, array: np.ndarray) -> Tensor:
    kind = array.dtype.name  # without its order of bytes
    made = from_numpy(np.ascontiguousarray(array, kind), dtype=kind)
    made.name = name
    return made


errors.name_methods(Snapshot)
