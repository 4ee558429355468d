"""Reading a state file, whose zip files must match their directories."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from ... import device, files
from ...errors import CheckpointError
from ...tensor import Tensor
from .format import ARRAYS, ATTRIBUTES, ATTRIBUTES_LIMIT, MODEL, Declared, member, parse

#: The most bytes that deflate unpacks one byte to.
RATIO = 1032
#: Bytes that a member may take in the directory besides its name.
_ENTRY = 512
_END, _LOCATOR, _RECORD = 22, 20, 56
_TAIL = _END + _LOCATOR + _RECORD


class Members:
    """The members of a zip file by their names."""

    def __init__(self, stream: IO[bytes], size: int, names: int) -> None:
        """`size` is that of the whole file; `names` the bytes that its directory may take, as
        `names_room` computes them.

        Raises:
            BadZipFile, and whatever else `zipfile` raises on damaged bytes.
        """
        directory = _directory(stream, size, names)
        self._archive = zipfile.ZipFile(stream)
        infos = sorted(self._archive.infolist(), key=lambda info: info.header_offset)
        self.infos = {info.filename: info for info in infos}
        if len(self.infos) != len(infos):
            raise zipfile.BadZipFile("a member occurs twice")
        end = 0
        for info in infos:
            _check(info, end)
            end = info.header_offset + info.compress_size
        if end > directory:
            raise zipfile.BadZipFile("a member overlaps the directory")
        if infos and infos[0].header_offset != 0:
            raise zipfile.BadZipFile("there is data before the first member")

    def open(self, name: str) -> IO[bytes]:
        """Opens a member for reading."""
        return self._archive.open(self.infos[name])


def names_room(names: list[str]) -> int:
    """Bytes that a directory of these names may take."""
    return sum(len(name.encode(errors="replace")) + _ENTRY for name in names)


def _directory(stream: IO[bytes], size: int, room: int) -> int:
    """The offset of the directory, which must be at the file's end and no larger than `room`."""
    stream.seek(max(0, size - _TAIL))
    tail = stream.read(_TAIL + 1)
    end = tail[-_END:]
    if len(tail) != min(size, _TAIL) or end[:4] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise zipfile.BadZipFile("it does not end with a zip file's directory")
    (length,), behind = struct.unpack("<L", end[12:16]), _END
    if tail[-_END - _LOCATOR :][:4] == b"PK\6\7":
        (length,), behind = struct.unpack("<Q", tail[:_RECORD][40:48]), _TAIL
    if length > room:
        raise zipfile.BadZipFile(f"its directory takes {length} bytes, want at most {room}")
    stream.seek(0)
    return size - behind - length


def _check(info: zipfile.ZipInfo, end: int) -> None:
    """Rejects a member that is encrypted, has another compression method than stored or deflated,
    begins before `end`, or declares an impossible size."""
    name = info.filename
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile(f"{name!r} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name!r} has compression method {info.compress_type}")
    if info.header_offset < end:
        raise zipfile.BadZipFile(f"{name!r} overlaps another member")
    packed = info.compress_size
    if info.file_size > RATIO * packed or (
        info.compress_type == zipfile.ZIP_STORED and info.file_size != packed
    ):
        raise zipfile.BadZipFile(
            f"{name!r} declares {info.file_size} bytes, compressed to {packed}"
        )


#: Bytes that an array may take in the file besides its elements and three times its name.
_BESIDE = 1024
#: Bytes that the directory of the outer file may take.
_OUTER = 1 << 16
_PIECE = 1 << 20


def read(
    path: str, admit: Callable[[Mapping[str, Declared]], None]
) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
    """The model's states as arrays, and the auxiliary ones as tensors. `admit` gets what the file
    declares about the model's, and may raise, before anything of their size is unpacked.

    Raises:
        CheckpointError: the file is missing, truncated, damaged or not a state file, or holds more
            than the available memory; the message names the file and the entry.
    """
    with files.reading("load_states", path) as file:
        size = os.fstat(file.fileno()).st_size
        with _damage(path, "the zip file"):
            outer = Members(file, size, _OUTER)
        if missing := {ARRAYS, ATTRIBUTES} - set(outer.infos):
            raise _error(path, f"has no {' and no '.join(sorted(missing))}")
        declared = _attributes(path, outer)
        admit({name: one for name, one in declared.items() if one.kind == MODEL})
        _check_sizes(path, size, outer.infos[ARRAYS].file_size, declared)
        arrays = _arrays(path, outer, declared)
    model = {name: arrays[name] for name, one in declared.items() if one.kind == MODEL}
    return model, {
        name: _tensor(path, name, arrays[name], one)
        for name, one in declared.items()
        if one.kind != MODEL
    }


def _error(path: str, reason: str) -> CheckpointError:
    return CheckpointError(f"load_states: {path}: {reason}")


@contextmanager
def _damage(path: str, what: str) -> Iterator[None]:
    """Turns errors into CheckpointError. All are caught, since `zipfile`, `zlib`, `json` and NumPy
    may raise nearly anything on damaged bytes."""
    try:
        yield
    except CheckpointError:
        raise
    except MemoryError as error:
        raise _error(path, f"{what} does not fit into the available memory") from error
    except Exception as error:
        raise _error(path, f"{what} is damaged: {error or type(error).__name__}") from error


def _attributes(path: str, outer: Members) -> dict[str, Declared]:
    stated = outer.infos[ATTRIBUTES].file_size
    if stated > ATTRIBUTES_LIMIT:
        raise _error(path, f"{ATTRIBUTES} takes {stated} bytes, want at most {ATTRIBUTES_LIMIT}")
    with _damage(path, ATTRIBUTES), outer.open(ATTRIBUTES) as stream:
        return parse(_whole(stream, bytearray(stated)))


def _whole(stream: IO[bytes], into: Any) -> Any:
    """Fills a buffer from a stream that must end there; reaching the end verifies the checksum."""
    view, at = memoryview(into).cast("B"), 0
    while at < len(view):
        piece = stream.read(min(_PIECE, len(view) - at))
        if not piece:
            raise EOFError(f"it ends after {at} bytes, want {len(view)}")
        view[at : at + len(piece)] = piece
        at += len(piece)
    if stream.read(1):
        raise ValueError(f"it continues after {at} bytes, its declared size")
    return into


def _check_sizes(path: str, size: int, packed: int, declared: Mapping[str, Declared]) -> None:
    """Rejects arrays that exceed what the file can hold, or the available memory."""
    total = sum(one.nbytes for one in declared.values())
    if total > RATIO * size:
        raise _error(path, f"declares {total} bytes of arrays, more than {size} bytes can hold")
    beside = sum(_BESIDE + 3 * len(name.encode(errors="replace")) for name in declared)
    elements = 8 * sum(_count(one) for one in declared.values())  # of the widest type
    if packed > elements + beside + _BESIDE:
        raise _error(path, f"{ARRAYS} takes {packed} bytes, more than its arrays need")
    twice = sum(one.nbytes for one in declared.values() if one.kind != MODEL)
    available = device.get_default_device().available()
    if total + twice > available:
        raise _error(path, f"needs {total + twice} bytes of memory, but {available} are available")


def _count(one: Declared) -> int:
    return one.nbytes // max(1, np.dtype(one.stored).itemsize)


def _arrays(path: str, outer: Members, declared: Mapping[str, Declared]) -> dict[str, np.ndarray]:
    names = {member(name): name for name in declared}
    found: dict[str, np.ndarray] = {}
    with _damage(path, ARRAYS), outer.open(ARRAYS) as stream:
        inner = Members(stream, outer.infos[ARRAYS].file_size, names_room([*names, ""]))
        if lost := sorted(set(names) ^ set(inner.infos)):
            raise _error(path, f"{lost[0]!r} is only in one of {ARRAYS} and {ATTRIBUTES}")
        for entry, info in inner.infos.items():  # in file order
            name = names[entry]
            with _damage(path, repr(name)), inner.open(entry) as array:
                found[name] = _array(path, name, array, info, declared[name])
    return found


def _array(
    path: str, name: str, stream: IO[bytes], info: zipfile.ZipInfo, declared: Declared
) -> np.ndarray:
    """One array, whose header must agree with the declaration and with the member's length."""
    shape, is_fortran, dtype = _head(stream)
    if shape != declared.shape:
        raise _error(
            path, f"{name!r} has shape {shape} in {ARRAYS}, {declared.shape} in {ATTRIBUTES}"
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"it has the type {dtype}, want numbers")
    have = info.file_size - stream.tell()
    if have != _count(declared) * dtype.itemsize:
        raise ValueError(f"it has {have} bytes of elements, want {_count(declared)} of {dtype}")
    made = np.empty(shape, dtype, "F" if is_fortran else "C")
    raw = made.reshape(-1, order="F" if is_fortran else "C").view("u1")
    _whole(stream, raw if raw.size else bytearray())
    if dtype == np.bool_ and np.any(raw > 1):
        raise ValueError("it has bytes other than 0 and 1, want bools")
    return made.astype(dtype.newbyteorder("="), copy=False)


def _head(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(stream)
    raise ValueError(f"it has version {version} of NumPy's format, want (1, 0) or (2, 0)")


def _tensor(path: str, name: str, array: np.ndarray, declared: Declared) -> Tensor:
    try:
        return Tensor(data=array, dtype=declared.dtype, requires_grad=False, name=name)
    except (TypeError, ValueError) as error:
        raise _error(path, f"{name!r}: {error}") from error
