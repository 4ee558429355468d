"""Writing a state file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ... import files
from ...errors import CheckpointError, GraphError
from ...tensor import Placeholder, Tensor
from .format import ARRAYS, ATTRIBUTES, declare, member, unusable


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
        raise CheckpointError(f"save_states: {path}: auxiliary names are the model's: {both}")
    if reason := unusable([*model, *auxiliary]):
        raise CheckpointError(f"save_states: {path}: {reason}")
    for name, value in {**model, **auxiliary}.items():
        if isinstance(value, Placeholder):
            raise GraphError(f"save_states: {name!r} is an unfilled {value!r}")


def _write(file: IO[bytes], tensors: Mapping[str, Tensor], attributes: str) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(ARRAYS, "w", force_zip64=True) as stream:
            with zipfile.ZipFile(stream, "w") as arrays:
                for name, one in tensors.items():
                    with arrays.open(member(name), "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, one.to_numpy(), allow_pickle=False)
        archive.writestr(ATTRIBUTES, attributes)
