"""Writing a state file: what it declares about each state, and which names it can hold."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from typing import IO, Any, NamedTuple

import numpy as np

from ... import files, tensor
from ...errors import CheckpointError, GraphError
from ...tensor import Placeholder, Tensor
from ..checkpoint import bounded_json

ARRAYS = "tensor_dict.npz"
ATTRIBUTES = "states_attr.json"
#: How the name of an array's file ends.
SUFFIX = ".npy"
MODEL, AUXILIARY = 0, 1
#: The most bytes of a name in a zip file.
_NAME_LIMIT = 0xFFFF

_NUMBERS = {"float32": 0, "float16": 1, "int32": 2}
_DTYPES = {
    one.name: one
    for one in (
        tensor.float32, tensor.float64, tensor.float16, tensor.bfloat16, tensor.int32,
        tensor.int64, tensor.int16, tensor.int8, tensor.uint64, tensor.uint32, tensor.uint16,
        tensor.uint8, tensor.bool_,
    )
}  # fmt: skip
_BY_KEY: dict[Any, Any] = {
    **_DTYPES,
    **{number: _DTYPES[name] for name, number in _NUMBERS.items()},
}


class Declared(NamedTuple):
    """What the file declares about a state."""

    kind: int
    shape: tuple[int, ...]
    dtype: Any

    @property
    def stored(self) -> str:
        """The NumPy type in which the file stores it."""
        return "float32" if self.dtype == tensor.bfloat16 else self.dtype.name

    @property
    def nbytes(self) -> int:
        """Bytes of its elements in the file."""
        itemsize = 4 if self.dtype == tensor.bfloat16 else self.dtype.itemsize
        return math.prod(self.shape) * itemsize


def member(name: str) -> str:
    """The array's name in the archive of arrays."""
    return name + SUFFIX


def declare(tensors: Mapping[str, Tensor], auxiliary: Iterable[str]) -> str:
    """The text of the attributes.

    Raises:
        ValueError: they take more than the limit for reading.
    """
    attributes = {
        name: {
            "state_type": AUXILIARY if name in auxiliary else MODEL,
            "shape": list(one.shape),
            "dtype": _NUMBERS.get(one.dtype.name, one.dtype.name),
        }
        for name, one in tensors.items()
    }
    text = json.dumps(attributes)
    if len(text) > bounded_json.LENGTH:
        raise ValueError(f"{len(tensors)} names and shapes take {len(text)} bytes")
    return text


def parse(text: bytes) -> dict[str, Declared]:
    """The declarations in the text of the attributes.

    Raises:
        ValueError: not JSON, or not of the expected form.
    """
    found = bounded_json.parse(text)
    if not isinstance(found, dict):
        raise ValueError(f"got {type(found).__name__}, want an object")
    return {name: _declared(name, one) for name, one in found.items()}


def _declared(name: str, one: Any) -> Declared:
    if not isinstance(one, dict):
        raise ValueError(f"{name!r}: got {one!r}, want an object")
    kind, shape, dtype = (one.get(key) for key in ("state_type", "shape", "dtype"))
    if type(kind) is not int or kind not in (MODEL, AUXILIARY):
        raise ValueError(f"{name!r}: got state_type {kind!r}, want {MODEL} or {AUXILIARY}")
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise ValueError(f"{name!r}: got shape {shape!r}, want a list of sizes")
    if type(dtype) not in (int, str) or dtype not in _BY_KEY:
        raise ValueError(f"{name!r}: got the unknown dtype {dtype!r}")
    return Declared(kind, tuple(shape), _BY_KEY[dtype])


def unusable(names: Iterable[Any]) -> str | None:
    """Why a file cannot hold these names; None if it can."""
    known = set(names)
    for name in known:
        if not isinstance(name, str):
            return f"got the name {name!r}, want a str"
        if not _survives(member(name)):
            return f"got the name {name!r}, which a zip file cannot store"
        if member(name) in known:
            return f"got {name!r} and {member(name)!r}, which have the same name in the file"
    return None


def _survives(name: str) -> bool:
    try:
        is_short = len(name.encode()) <= _NAME_LIMIT
    except UnicodeEncodeError:
        return False
    return is_short and zipfile.ZipInfo(name).filename == name


def write(path: str, model: Mapping[str, Tensor], auxiliary: Mapping[str, Any]) -> None:
    """Writes a state file atomically, replacing an existing one.

    Raises:
        CheckpointError: a name that is both the model's and auxiliary, or that the file cannot
            hold; the path exists and is not a regular file.
        GraphError: a tensor without a value.
        TypeError: an auxiliary name that is not a str, or a value that is not a Tensor.
        OSError: the file cannot be written.
    """
    _check(path, model, auxiliary)
    tensors = {**model, **auxiliary}
    try:
        attributes = declare(tensors, auxiliary)
    except ValueError as error:
        raise CheckpointError(f"save_states: {path}: {error}") from error
    with files.replacing("save_states", path) as file:
        _write(file, tensors, attributes)


def _check(path: str, model: Mapping[str, Tensor], auxiliary: Mapping[str, Any]) -> None:
    for name, value in auxiliary.items():
        if not isinstance(name, str):
            raise TypeError(f"save_states: got the name {name!r}, want a str")
        if not isinstance(value, Tensor):
            raise TypeError(f"save_states: got {type(value).__name__} for {name!r}, want a Tensor")
    if both := sorted(set(model) & set(auxiliary)):
        raise CheckpointError(f"save_states: {path}: also names of the model's states: {both}")
    if reason := unusable([*model, *auxiliary]):
        raise CheckpointError(f"save_states: {path}: {reason}")
    for name, value in {**model, **auxiliary}.items():
        if isinstance(value, Placeholder):
            raise GraphError(f"save_states: {name!r} is an unfilled {value!r}")


def _write(file: IO[bytes], tensors: Mapping[str, Tensor], attributes: str) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open(ARRAYS, "w", force_zip64=True) as stream:
            with zipfile.ZipFile(stream, "w") as arrays:
                for name, one in tensors.items():
                    with arrays.open(member(name), "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, one.to_numpy(), allow_pickle=False)
        archive.writestr(ATTRIBUTES, attributes)
