"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), in their Python and binary versions."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import files
from ..errors import CheckpointError
from ..refusals import strict_flag
from . import pickles

_PIXELS = 3 * 32 * 32
#: The labels of a record in the binary version: how many of each, and the name of each in the
#: Python version.
_LABELS = {10: ((10, b"labels"),), 100: ((20, b"coarse_labels"), (100, b"fine_labels"))}
#: The most bytes that a file may have: all of CIFAR-100 has 155 MB.
_MOST = 1 << 28
_PARTS = {
    10: ([f"data_batch_{i}" for i in range(1, 6)], ["test_batch"]),
    100: (["train"], ["test"]),
}

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def read_cifar(
    path: str | PathLike[str], classes: int = 10, coarse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 3, 32, 32) of bytes and labels (N,) of int32 in one file of CIFAR-10 or CIFAR-100
    (`classes`), in the Python version (a pickle, of which nothing is run) or the binary one.

    Args:
        path: the file.
        classes: 10 or 100.
        coarse: of CIFAR-100, the 20 coarse labels in place of the 100 fine ones.

    Raises:
        CheckpointError: the file is damaged, not of CIFAR, too large, or missing (then also an
            OSError).
        TypeError: `path` is not a path, `coarse` is not a bool.
        ValueError: other `classes`, or coarse labels of CIFAR-10.
    """
    name = files.path_of("read_cifar", path)
    _check("read_cifar", classes, coarse)
    with files.reading("read_cifar", name) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            if size > _MOST:
                raise ValueError(f"has {size} bytes, want at most {_MOST}")
            raw = file.read(_MOST + 1)
            is_binary = len(raw) % (len(_LABELS[classes]) + _PIXELS) == 0 and raw[:1] < b"\x14"
            return (_records if is_binary else _unpickled)(raw, classes, coarse)
        except (ValueError, OSError, MemoryError) as error:
            raise CheckpointError(f"read_cifar: {name}: {error or 'too large'}") from error


def _check(op: str, classes: Any, coarse: Any) -> None:
    if isinstance(classes, bool) or classes not in (10, 100):
        raise ValueError(f"{op}: got classes {classes!r:.80}, want 10 or 100")
    if strict_flag(coarse, f"{op}: coarse") and classes == 10:
        raise ValueError(f"{op}: got coarse=True, but CIFAR-10 has no coarse labels")


def _records(raw: bytes, classes: int, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    """The binary version: records of one or two labels and the pixels."""
    if not raw:
        raise ValueError("is empty")
    columns = _LABELS[classes]
    records = np.frombuffer(raw, np.uint8).reshape(-1, len(columns) + _PIXELS)
    found = {
        name: _labels(records[:, i], count, len(records)) for i, (count, name) in enumerate(columns)
    }
    return records[:, len(columns) :].reshape(-1, 3, 32, 32).copy(), found[_key(classes, coarse)]


def _unpickled(raw: bytes, classes: int, coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    """The Python version: a dictionary with an array of pixels and lists of labels."""
    held = pickles.loads(raw)
    if not isinstance(held, dict):
        raise ValueError(f"holds a {type(held).__name__}, want a dictionary")
    held = {k.encode() if isinstance(k, str) else k: value for k, value in held.items()}
    pixels, key = held.get(b"data"), _key(classes, coarse)
    is_right = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8
    if not is_right or pixels.shape[1:] != (_PIXELS,):
        raise ValueError(f"holds no array (N, {_PIXELS}) of bytes as 'data'")
    if key not in held:
        raise ValueError(f"holds no {key.decode()!r}, want a file of CIFAR-{classes}")
    count = dict((name, count) for count, name in _LABELS[classes])[key]
    labels = _labels(held[key], count, len(pixels))
    return np.ascontiguousarray(pixels).reshape(-1, 3, 32, 32).copy(), labels


def _key(classes: int, coarse: bool) -> bytes:
    return _LABELS[classes][0 if coarse else -1][1]


def _labels(found: Any, classes: int, rows: int) -> np.ndarray:
    """Labels as an array, each below the number of classes."""
    is_list = isinstance(found, list) and all(type(one) is int for one in found)
    if not is_list and not isinstance(found, np.ndarray):
        raise ValueError("holds labels that are not a list of integers")
    if is_list and not all(0 <= one < classes for one in found):
        raise ValueError(f"holds labels outside of 0 to {classes - 1}")
    labels = np.asarray(found)
    if labels.shape != (rows,) or (rows and labels.dtype.kind not in "iu"):
        raise ValueError(f"holds labels of shape {labels.shape}, want ({rows},) of integers")
    if rows and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(
            f"holds labels from {labels.min()} to {labels.max()}, of {classes} classes"
        )
    return labels.astype(np.int32)


def load_cifar10(folder: str | PathLike[str]) -> Arrays:
    """CIFAR-10 from the directory that its archive unpacks to, in the Python or the binary version:
    training images (N, 3, 32, 32) in [0, 1] and labels (N,), then the same for testing.

    Raises:
        CheckpointError: a file is damaged, or missing (then also a FileNotFoundError).
        TypeError: `folder` is not a path.
    """
    return _load("load_cifar10", folder, 10, False)


def load_cifar100(folder: str | PathLike[str], coarse: bool = False) -> Arrays:
    """CIFAR-100 as `load_cifar10` gives CIFAR-10, with its 100 fine labels or, if `coarse`, its 20
    coarse ones.

    Raises:
        CheckpointError: a file is damaged, or missing (then also a FileNotFoundError).
        TypeError: `folder` is not a path, `coarse` is not a bool.
    """
    return _load("load_cifar100", folder, 100, coarse)


def _load(op: str, folder: Any, classes: int, coarse: bool) -> Arrays:
    root = Path(files.path_of(op, folder))
    _check(op, classes, coarse)
    parts = []
    for names in _PARTS[classes]:
        read = [read_cifar(_find(op, root, name), classes, coarse) for name in names]
        images, labels = (np.concatenate(one) for one in zip(*read, strict=True))
        parts += [images.astype(np.float32) / 255, labels]
    return parts[0], parts[1], parts[2], parts[3]


def _find(op: str, folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.bin"):
        if path.is_file():
            return path
    raise files.Missing(f"{op}: {folder}: contains neither {name} nor {name}.bin")
