"""A zip file that matches its directory: one member per name, and no overlaps."""

from __future__ import annotations

import struct
import zipfile
from typing import IO

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
            raise zipfile.BadZipFile("a member stands there twice")
        end = 0
        for info in infos:
            _check(info, end)
            end = info.header_offset + info.compress_size
        if end > directory:
            raise zipfile.BadZipFile("a member lies over the directory")
        if infos and infos[0].header_offset != 0:
            raise zipfile.BadZipFile("something stands before the first member")

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
        raise zipfile.BadZipFile("it does not end as a zip file does")
    (length,), behind = struct.unpack("<L", end[12:16]), _END
    if tail[-_END - _LOCATOR :][:4] == b"PK\6\7":
        (length,), behind = struct.unpack("<Q", tail[:_RECORD][40:48]), _TAIL
    if length > room:
        raise zipfile.BadZipFile(f"its directory takes {length} bytes, want at most {room}")
    stream.seek(0)
    return size - behind - length


def _check(info: zipfile.ZipInfo, end: int) -> None:
    """Rejects a member that is encrypted, packed in another way, begins before `end`, or declares
    an impossible size."""
    name = info.filename
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile(f"{name!r} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name!r} is packed in way {info.compress_type}")
    if info.header_offset < end:
        raise zipfile.BadZipFile(f"{name!r} lies over another member")
    packed = info.compress_size
    if info.file_size > RATIO * packed or (
        info.compress_type == zipfile.ZIP_STORED and info.file_size != packed
    ):
        raise zipfile.BadZipFile(f"{name!r} cannot be {info.file_size} bytes packed in {packed}")
