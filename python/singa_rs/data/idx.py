"""IDX files, the format of MNIST, Fashion-MNIST and the like."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import files
from ..errors import CheckpointError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
#: The most bytes that deflate unpacks one byte to.
_DEFLATE_RATIO = 1032
_PIECE = 1 << 20
_PARTS = ("train-images", "train-labels", "t10k-images", "t10k-labels")


def read_idx(path: str | PathLike[str]) -> np.ndarray:
    """The array in an IDX file (MNIST's format), compressed by gzip or not. The size that its
    header declares is compared with the file's before anything of that size is read.

    Raises:
        CheckpointError: the file is damaged, not an IDX file, or not of the size in its header.
        TypeError: `path` is not a path.
        OSError: the file cannot be read; the error is also a CheckpointError.
    """
    name = files.path_of("read_idx", path)
    with files.reading("read_idx", name) as file:
        size = os.fstat(file.fileno()).st_size
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            stream: Any = gzip.GzipFile(fileobj=file) if is_packed else file
            return _array(stream, size * _DEFLATE_RATIO if is_packed else size, not is_packed)
        except (ValueError, EOFError, OSError, MemoryError, zlib.error) as error:
            raise CheckpointError(f"read_idx: {name}: {error or 'too large'}") from error


def _array(stream: Any, room: int, is_exact: bool) -> np.ndarray:
    """The array in a stream that holds at most `room` bytes; if `is_exact`, exactly so many."""
    start = stream.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES:
        raise ValueError(f"starts with {start!r}, not an IDX file")
    dtype, rank = np.dtype(_TYPES[start[2]]), start[3]
    head = stream.read(4 * rank)
    if len(head) < 4 * rank:
        raise ValueError(f"ends within the header, which declares {rank} dimensions")
    shape = tuple(int.from_bytes(head[i : i + 4], "big") for i in range(0, 4 * rank, 4))
    want = 4 + 4 * rank + dtype.itemsize * math.prod(shape)
    if want > room or (is_exact and want < room):
        most = "" if is_exact else "at most "
        raise ValueError(f"has {most}{room} bytes, its header declares {want}")
    made = np.empty(shape, dtype)
    _fill(stream, memoryview(made.reshape(-1).view("u1")), want)
    return made.astype(dtype.newbyteorder("="), copy=False)


def _fill(stream: Any, into: memoryview, want: int) -> None:
    """Fills a buffer from a stream, which must end there."""
    at = 0
    while at < len(into):
        count = stream.readinto(into[at : at + _PIECE])
        if not count:
            raise EOFError(f"has {want - len(into) + at} bytes, its header declares {want}")
        at += count
    if stream.read(1):
        raise ValueError(f"has more than the {want} bytes that its header declares")


def load_mnist(
    folder: str | PathLike[str],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """MNIST, Fashion-MNIST or the like from a directory of four IDX files: training images
    (N, 1, H, W) in [0, 1] and labels (N,), then the same for testing.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged (CheckpointError), images are not bytes, labels are not
            integers, or their numbers differ.
    """
    root = Path(files.path_of("load_mnist", folder))
    arrays = [read_idx(_find(root, part)) for part in _PARTS]
    for i in (0, 2):
        images, labels = arrays[i], arrays[i + 1]
        if images.dtype != np.uint8 or labels.dtype.kind not in "iu":
            raise ValueError(
                f"load_mnist: {root}: {_PARTS[i]} of {images.dtype} and {_PARTS[i + 1]} of "
                f"{labels.dtype}, want bytes and integers"
            )
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"load_mnist: {root}: {_PARTS[i]} {images.shape} and {_PARTS[i + 1]} "
                f"{labels.shape}, want (N, height, width) and (N,)"
            )
    x, y, test_x, test_y = arrays
    return _images(x), y.astype(np.int32), _images(test_x), test_y.astype(np.int32)


def _images(pixels: np.ndarray) -> np.ndarray:
    return pixels[:, None].astype(np.float32) / 255


def _find(folder: Path, part: str) -> Path:
    rank = 3 if part.endswith("images") else 1
    for stem in (f"{part}-idx{rank}-ubyte", f"{part}.idx{rank}-ubyte"):
        for name in (stem, f"{stem}.gz"):
            if (folder / name).is_file():
                return folder / name
    name = f"{part}-idx{rank}-ubyte"
    raise FileNotFoundError(f"load_mnist: {folder}: contains neither {name} nor {name}.gz")
