"""Saving and loading the parameters of a net: SINGA's snapshots, pickles that are read without
running what they name, and archives of arrays."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from ... import files
from ...data.pickles import loads
from ...errors import CheckpointError, ShapeError
from ...tensor import Tensor
from ..singa_wrap import SINGA_VERSION
from ..snapshot import Snapshot
from ..snapshot import save as save_snapshot
from .structure import Structure

#: The name under which pickles and archives tell SINGA's version, and the first one whose names of
#: parameters have a slash: 1.1.1.
VERSION, SLASHED = "SINGA_VERSION", 1101


class Saved(Structure):
    """The part of a net that saves its parameters."""

    def save(self, f: str | PathLike[str], buffer_size: int = 10, use_pickle: bool = False) -> None:
        """Writes all parameters, averages included, by name. Existing files are replaced once the
        new ones are whole.

        Args:
            f: a snapshot's path, to which ".bin" and ".desc" are added; with `use_pickle` that of a
                pickle, to which ".pickle" is added if it is missing. A path that ends in ".npz" is
                that of an archive of arrays (`numpy.load`).
            buffer_size: the most megabytes that a parameter may take in a snapshot.
            use_pickle: whether to write a pickle of a dictionary of arrays.

        Raises:
            ValueError: a parameter larger than `buffer_size`.
            ShapeError: two parameters have one name.
            OSError: a file cannot be written.
            TypeError: `f` is not a path.
        """
        path, states = files.path_of("save", f), self.get_states()
        if not use_pickle and not path.endswith(".npz"):
            return save_snapshot(path.removesuffix(".bin"), states, buffer_size)
        found: dict[str, Any] = {name: value.to_numpy() for name, value in states.items()}
        if use_pickle:
            path = path if path.endswith(".pickle") else f"{path}.pickle"
            with files.replacing("save", path) as file:
                pickle.dump({VERSION: SINGA_VERSION, **found}, file, protocol=2)
            return None
        with files.replacing("save", path) as file:
            np.savez(file, **{VERSION: np.int64(SINGA_VERSION), **found})
        return None

    def load(self, f: str | PathLike[str], buffer_size: int = 10, use_pickle: bool = False) -> None:
        """Reads parameters by name. Names that only the file or only the net has are told in one
        warning. In files older than SINGA 1.1.1 the last slash of a name is an underscore.

        Nothing in a file is run: a pickle may have plain values and arrays of numbers alone.

        Args:
            f, use_pickle: as in `save`; the ending of a snapshot's or a pickle's path may be
                missing.
            buffer_size: of no effect.

        Raises:
            CheckpointError: a file that is missing or damaged, or has more than arrays. Nothing has
                been written.
            ShapeError: a parameter of another size. Nothing has been written.
            TypeError: `f` is not a path.
        """
        path = files.path_of("load", f)
        version, found = _read(path, bool(use_pickle))
        self._take(path, version, found)

    def _take(self, path: str, version: int | None, found: Mapping[str, Any]) -> None:
        """Copies what was read into the parameters."""
        staged, missing, used = [], [], set()
        for name, value in self.get_states().items():
            key = _key(name, version, found)
            if key is None:
                missing.append(name)
                continue
            used.add(key)
            staged.append((value, _fitted(path, name, value, found[key])))
        for value, array in staged:
            value.copy_from(array)
        if missing or len(used) < len(found):
            _warn(path, missing, sorted(set(found) - used))


def _warn(path: str, missing: list[str], unused: list[str]) -> None:
    parts = [("the file lacks", missing), ("the net lacks", unused)]
    told = "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names)
    warnings.warn(f"load: {path}: {told}", stacklevel=4)


def _key(name: str, version: int | None, found: Mapping[str, Any]) -> str | None:
    """The name of a parameter in the file."""
    head, slash, tail = name.rpartition("/")
    older = f"{head}_{tail}" if slash else name
    if version is None:
        names = [name, older]
    else:
        names = [name] if version >= SLASHED else [older]
    return next((one for one in names if one in found), None)


def _fitted(path: str, name: str, value: Tensor, array: np.ndarray) -> np.ndarray:
    """An array in a parameter's shape."""
    if array.size != value.numel:
        got = f"{name} has shape {tuple(array.shape)} in the file"
        raise ShapeError(f"load: {path}: {got}, want {value.shape}")
    return array.reshape(value.shape)


def _read(path: str, use_pickle: bool) -> tuple[int | None, dict[str, np.ndarray]]:
    """SINGA's version, if the file tells it, and the arrays by name."""
    if use_pickle:
        return _read_pickle(path)
    if path.endswith(".npz"):
        return _read_archive(path)
    prefix = path.removesuffix(".bin")
    tensors = Snapshot(prefix, False).read()
    return _described(prefix), {name: one.to_numpy() for name, one in tensors.items()}


def _described(prefix: str) -> int | None:
    """The version in a snapshot's description, if there is one."""
    try:
        with open(f"{prefix}.desc", encoding="utf-8", errors="replace") as file:
            head, _, version = file.readline(1 << 16).partition(":")
    except OSError:
        return None
    return int(version) if head == "SINGA VERSION" and version.strip().isdecimal() else None


def _read_pickle(path: str) -> tuple[int | None, dict[str, np.ndarray]]:
    if not os.path.exists(path):
        other = path.removesuffix(".pickle")
        path = other if other != path else f"{path}.pickle"
    with files.reading("load", path) as file:
        raw = file.read()
    try:
        value = loads(raw)
    except ValueError as error:
        raise CheckpointError(f"load: {path}: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"load: {path}: is a {type(value).__name__}, want a dictionary")
    # Python 2 writes text as bytes.
    named = {k.decode("latin1") if isinstance(k, bytes) else k: v for k, v in value.items()}
    return _checked(path, named)


def _read_archive(path: str) -> tuple[int | None, dict[str, np.ndarray]]:
    with files.reading("load", path) as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                return _checked(path, dict(archive))
        except CheckpointError:
            raise
        except Exception as error:  # zipfile and NumPy raise many kinds for damaged files
            raise CheckpointError(f"load: {path}: is a damaged archive: {error}") from error


def _checked(path: str, found: dict[str, Any]) -> tuple[int | None, dict[str, np.ndarray]]:
    version = found.pop(VERSION, None)
    if version is not None:
        number = np.asarray(version)
        if number.dtype.kind not in "iu" or number.size != 1:
            raise CheckpointError(f"load: {path}: {VERSION}: got {version!r:.40}, want an int")
        version = int(number.reshape(()))
    for name, value in found.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise CheckpointError(f"load: {path}: {name!r:.80} is no array of numbers")
    return version, found
