"""Reading data sets from files, and going through them in batches. Plain NumPy."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path

import numpy as np

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PARTS = ("train-images", "train-labels", "t10k-images", "t10k-labels")


def read_idx(path: str | PathLike[str]) -> np.ndarray:
    """The array in an IDX file (MNIST's format), compressed by gzip or not.

    Raises:
        ValueError: no IDX file, or more or fewer bytes than its head says.
        OSError: the file cannot be read.
    """
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = _unpack(path, raw)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES:
        raise ValueError(f"read_idx: {fspath(path)}: starts with {raw[:4]!r}, not an IDX file")
    dtype, rank = np.dtype(_TYPES[raw[2]]), raw[3]
    head = 4 + 4 * rank
    shape = tuple(int.from_bytes(raw[i : i + 4], "big") for i in range(4, head, 4))
    want = head + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(raw) != want:
        raise ValueError(f"read_idx: {fspath(path)}: has {len(raw)} bytes, its head says {want}")
    return np.frombuffer(raw, dtype, offset=head).reshape(shape).astype(dtype.newbyteorder("="))


def _unpack(path: str | PathLike[str], raw: bytes) -> bytes:
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError) as error:
        raise ValueError(f"read_idx: {fspath(path)}: damaged gzip file: {error}") from error


def load_mnist(
    folder: str | PathLike[str],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """MNIST, Fashion-MNIST or the like from a folder of four IDX files: training images
    (N, 1, H, W) in [0, 1] and labels (N,), then the same for testing.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or images and labels are not equally many.
    """
    arrays = [read_idx(_find(Path(folder), part)) for part in _PARTS]
    for i in (0, 2):
        images, labels = arrays[i], arrays[i + 1]
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"load_mnist: {fspath(folder)}: {_PARTS[i]} {images.shape} and {_PARTS[i + 1]} "
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
    raise FileNotFoundError(f"load_mnist: {folder}: has no {part}-idx{rank}-ubyte, gzipped or not")


def batches(
    *arrays: np.ndarray, size: int, rng: np.random.Generator | None = None, partial: bool = True
) -> Iterator[tuple[np.ndarray, ...]]:
    """The rows of equally long arrays in batches of `size`, shuffled by `rng` if it is given; a
    last smaller batch comes only with `partial`.

    Raises:
        ValueError: no array, arrays of other lengths, or a size below 1.
    """
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"batches: got lengths {sorted(lengths)}, want one length")
    if size < 1:
        raise ValueError(f"batches: got size {size}, want at least 1")
    (count,) = lengths
    order = np.arange(count) if rng is None else rng.permutation(count)
    return _batches(arrays, order, size, count if partial else count - count % size)


def _batches(
    arrays: tuple[np.ndarray, ...], order: np.ndarray, size: int, end: int
) -> Iterator[tuple[np.ndarray, ...]]:
    for start in range(0, end, size):
        rows = order[start : start + size]
        yield tuple(array[rows] for array in arrays)
