"""SINGA's file of states: a zip of `tensor_dict.npz` and `states_attr.json`.

Entry by entry: an array for each tensor under its name, and its kind (0 the model's, 1 auxiliary),
shape and dtype. SINGA's dtypes are the numbers 0 float32, 1 float16, 2 int32; others, which it does
not have, are written by name (bfloat16 as float32 values).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np

from . import tensor
from .errors import CheckpointError
from .tensor import Tensor

ARRAYS = "tensor_dict.npz"
ATTRIBUTES = "states_attr.json"
MODEL, AUXILIARY = 0, 1
_NUMBERS = {"float32": 0, "float16": 1, "int32": 2}
_NAMES = {number: name for name, number in _NUMBERS.items()}


class _Missing(CheckpointError, FileNotFoundError):
    """No such file."""


def write(path: str, model: Mapping[str, Tensor], auxiliary: Mapping[str, Tensor]) -> None:
    """Writes a file of states, whole or not at all; one of that name is replaced.

    Raises:
        CheckpointError: a name that is both a model's and auxiliary.
        TypeError: an auxiliary value that is no Tensor.
        OSError: the file cannot be written.
    """
    if both := sorted(set(model) & set(auxiliary)):
        raise CheckpointError(f"save_states: {path}: auxiliary names are the model's: {both}")
    for name, value in auxiliary.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"save_states: got {type(value).__name__} for {name!r}, want a Tensor")
    with _replacing(path) as file:
        _write(file, {**model, **auxiliary}, set(auxiliary))


@contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once it is complete."""
    folder, name = os.path.split(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _permissions(path))
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _permissions(path: str) -> int:
    """Those of the file that is replaced, else those of a new file."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _write(file: IO[bytes], tensors: Mapping[str, Tensor], auxiliary: set[str]) -> None:
    import zipfile

    attributes = {
        name: {
            "state_type": AUXILIARY if name in auxiliary else MODEL,
            "shape": list(one.shape),
            "dtype": _NUMBERS.get(one.dtype.name, one.dtype.name),
        }
        for name, one in tensors.items()
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(ARRAYS, "w", force_zip64=True) as stream:
            with zipfile.ZipFile(stream, "w") as arrays:
                for name, one in tensors.items():
                    with arrays.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, one.to_numpy(), allow_pickle=False)
        archive.writestr(ATTRIBUTES, json.dumps(attributes))


def read(path: str) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
    """The model's states as arrays, and the auxiliary ones as tensors.

    Raises:
        CheckpointError: the file is missing, truncated, damaged or no file of states; the message
            names it and the entry.
    """
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except FileNotFoundError as error:
        raise _Missing(f"load_states: {path}: no such file") from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"load_states: {path}: not a complete zip file: {error}") from error


def _read(path: str, archive: Any) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
    if missing := {ARRAYS, ATTRIBUTES} - set(archive.namelist()):
        raise CheckpointError(f"load_states: {path}: has no {' and no '.join(sorted(missing))}")
    attributes = _attributes(path, archive.read(ATTRIBUTES))
    model: dict[str, np.ndarray] = {}
    auxiliary: dict[str, Tensor] = {}
    with archive.open(ARRAYS) as stream, _arrays(path, stream) as arrays:
        for name, attribute in attributes.items():
            array = _array(path, arrays, name)
            if list(array.shape) != list(attribute["shape"]):
                raise CheckpointError(
                    f"load_states: {path}: {name!r} has shape {array.shape} in {ARRAYS}, "
                    f"{tuple(attribute['shape'])} in {ATTRIBUTES}"
                )
            if attribute["state_type"] == MODEL:
                model[name] = array
            else:
                dtype = _NAMES.get(attribute["dtype"], attribute["dtype"])
                auxiliary[name] = _tensor(path, name, array, dtype)
    return model, auxiliary


def _attributes(path: str, text: bytes) -> dict[str, Any]:
    try:
        attributes = json.loads(text)
        for one in attributes.values():
            _ = one["state_type"], list(one["shape"]), hash(one["dtype"])
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(f"load_states: {path}: {ATTRIBUTES} is damaged: {error}") from error
    return attributes


def _arrays(path: str, stream: IO[bytes]) -> Any:
    try:
        return np.load(stream, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise CheckpointError(f"load_states: {path}: {ARRAYS} is damaged: {error}") from error


def _array(path: str, arrays: Any, name: str) -> np.ndarray:
    try:
        return arrays[name]
    except (KeyError, ValueError, OSError, EOFError) as error:
        raise CheckpointError(f"load_states: {path}: {name!r} is damaged: {error}") from error


def _tensor(path: str, name: str, array: np.ndarray, dtype: Any) -> Tensor:
    try:
        return Tensor(data=array, dtype=getattr(tensor, dtype), requires_grad=False, name=name)
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"load_states: {path}: {name!r} has the unknown dtype {dtype!r}"
        ) from error
