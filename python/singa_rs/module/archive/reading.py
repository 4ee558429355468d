"""Reading a state file, whose zip files must match their directories."""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Collection, Mapping
from typing import IO, Any

import numpy as np

from ... import device
from ...errors import CheckpointError
from ...tensor import Tensor
from ..checkpoint import bounded_json
from ..checkpoint.stored import damage
from .format import ARRAYS, ATTRIBUTES, MODEL, Declared, member, parse

#: The most bytes that deflate unpacks one byte to.
RATIO = 1032
#: The same for arrays whose sizes are not the model's, unless they are small.
_UNKNOWN_RATIO, _LEAST_UNKNOWN = 32, 16 << 20
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


class Archive:
    """An open state file: what it declares of the model's states, which may be compared with the
    model before anything of their size is unpacked."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path, self._size = path, os.fstat(file.fileno()).st_size
        with damage("load_states", path, "the zip file"):
            self._outer = Members(file, self._size, _OUTER)
        if missing := {ARRAYS, ATTRIBUTES} - set(self._outer.infos):
            raise _error(path, f"has no {' and no '.join(sorted(missing))}")
        self._declared = _attributes(path, self._outer)
        self.shapes = {n: one.shape for n, one in self._declared.items() if one.kind == MODEL}

    def read(self, known: Collection[str]) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
        """The model's states as arrays, and the auxiliary ones as tensors. `known` are the names
        of those whose shapes have been compared with the model's.

        Raises:
            CheckpointError: the file is damaged, or holds more than the available memory.
        """
        declared, path = self._declared, self._path
        unknown = sum(one.nbytes for name, one in declared.items() if name not in known)
        _check_sizes(path, self._size, self._outer.infos[ARRAYS].file_size, declared)
        check_unknown(path, self._size, unknown)
        arrays = _arrays(path, self._outer, declared)
        return {name: arrays[name] for name in self.shapes}, {
            name: _tensor(path, name, arrays[name], one)
            for name, one in declared.items()
            if one.kind != MODEL
        }


def check_unknown(path: str, size: int, unknown: int) -> None:
    """Rejects arrays that nothing but the file tells the sizes of, `unknown` bytes of them, if they
    are compressed as no weights can be."""
    if unknown > max(_LEAST_UNKNOWN, _UNKNOWN_RATIO * size):
        raise _error(
            path, f"{size} bytes unpack to {unknown} bytes of states that are not the model's"
        )


def check_memory(path: str, needed: int) -> None:
    """Rejects arrays that take more than the available memory."""
    available = device.get_default_device().available()
    if needed > available:
        raise _error(path, f"needs {needed} bytes of memory, but {available} are available")


def _error(path: str, reason: str) -> CheckpointError:
    return CheckpointError(f"load_states: {path}: {reason}")


def _attributes(path: str, outer: Members) -> dict[str, Declared]:
    stated = outer.infos[ATTRIBUTES].file_size
    if stated > bounded_json.LENGTH:
        raise _error(path, f"{ATTRIBUTES} takes {stated} bytes, want at most {bounded_json.LENGTH}")
    with damage("load_states", path, ATTRIBUTES), outer.open(ATTRIBUTES) as stream:
        return parse(whole(stream, bytearray(stated)))


def whole(stream: IO[bytes], into: Any) -> Any:
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
    widest = 8 * sum(_count(one) for one in declared.values())  # of the widest type
    if packed > widest + beside + _BESIDE:
        raise _error(path, f"{ARRAYS} takes {packed} bytes, more than its arrays need")
    twice = sum(one.nbytes for one in declared.values() if one.kind != MODEL)
    check_memory(path, total + twice)


def _count(one: Declared) -> int:
    return one.nbytes // max(1, np.dtype(one.stored).itemsize)


def _arrays(path: str, outer: Members, declared: Mapping[str, Declared]) -> dict[str, np.ndarray]:
    names = {member(name): name for name in declared}
    found: dict[str, np.ndarray] = {}
    with damage("load_states", path, ARRAYS), outer.open(ARRAYS) as stream:
        inner = Members(stream, outer.infos[ARRAYS].file_size, names_room([*names, ""]))
        if lost := sorted(set(names) ^ set(inner.infos)):
            raise _error(path, f"{lost[0]!r} is only in one of {ARRAYS} and {ATTRIBUTES}")
        for entry, info in inner.infos.items():  # in file order
            name = names[entry]
            with damage("load_states", path, f"{name!r:.80}"), inner.open(entry) as array:
                found[name] = _array(path, name, array, info, declared[name])
    return found


def _array(
    path: str, name: str, stream: IO[bytes], info: zipfile.ZipInfo, declared: Declared
) -> np.ndarray:
    """One array, whose header must agree with the declaration and with the member's length."""
    shape, is_fortran, dtype = header(stream)
    if shape != declared.shape:
        raise _error(
            path, f"{name!r} has shape {shape} in {ARRAYS}, {declared.shape} in {ATTRIBUTES}"
        )
    check_elements(shape, dtype, info.file_size - stream.tell())
    return elements(stream, shape, is_fortran, dtype)


def check_elements(shape: tuple[int, ...], dtype: np.dtype, have: int) -> None:
    """Rejects arrays of anything but numbers, or that do not take the bytes that they have."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"it has the type {dtype}, want numbers")
    if have != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"it has {have} bytes of elements, want {math.prod(shape)} of {dtype}")


def elements(
    stream: IO[bytes], shape: tuple[int, ...], is_fortran: bool, dtype: np.dtype
) -> np.ndarray:
    """The array of which a stream has the elements, and nothing behind them."""
    made = np.empty(shape, dtype, "F" if is_fortran else "C")
    raw = made.reshape(-1, order="F" if is_fortran else "C").view("u1")
    whole(stream, raw if raw.size else bytearray())
    if dtype == np.bool_ and np.any(raw > 1):
        raise ValueError("it has bytes other than 0 and 1, want bools")
    return made.astype(dtype.newbyteorder("="), copy=False)


def header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The header of an array in NumPy's format: shape, whether it is column-major, type.

    Raises:
        ValueError: it has none, or one of another version.
    """
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
