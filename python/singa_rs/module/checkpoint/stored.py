"""Tensors in a file that is mapped into memory, and how bfloat16 is stored."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ... import files, tensor
from ...errors import CheckpointError

#: The most axes that NumPy's oldest supported version has.
AXES = 32


class Stored(NamedTuple):
    """A tensor in a file: its elements are row-major, with the least significant byte first."""

    shape: tuple[int, ...]
    dtype: Any
    raw: memoryview

    def array(self) -> np.ndarray:
        """Its elements, on the file's memory where NumPy has the dtype; bfloat16 as float32.

        Raises:
            ValueError: a bool that is neither 0 nor 1.
        """
        if self.dtype == tensor.bfloat16:
            return widened(np.frombuffer(self.raw, "<u2")).reshape(self.shape)
        found = np.frombuffer(self.raw, np.dtype(self.dtype.name).newbyteorder("<"))
        if found.dtype == np.bool_ and np.any(found.view("u1") > 1):
            raise ValueError("it has bytes other than 0 and 1, want bools")
        return found.reshape(self.shape)


def stored(shape: list[Any], dtype: Any, raw: memoryview) -> Stored:
    """A tensor in a file, whose declaration must agree with its bytes.

    Raises:
        ValueError: the shape is not one, or its elements do not take these bytes.
    """
    if len(shape) > AXES or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise ValueError(f"got shape {str(shape):.80}, want up to {AXES} sizes")
    want = math.prod(shape) * dtype.itemsize
    if want != len(raw):
        got = f"shape {tuple(shape)} of {dtype.name}"
        raise ValueError(f"{got} takes {want} bytes, but the file has {len(raw)} of them")
    return Stored(tuple(shape), dtype, raw)


def widened(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16's bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrowed(values: np.ndarray) -> np.ndarray:
    """The bits of float32 values that bfloat16 has."""
    return np.asarray(values.view(np.uint32) >> np.uint32(16), np.uint16)


def elements(value: tensor.Tensor) -> np.ndarray:
    """A copy of a tensor's elements, of bfloat16 their bits."""
    array = value.to_numpy()
    return narrowed(array) if value.dtype == tensor.bfloat16 else array


def mapped(op: str, path: str) -> memoryview:
    """The bytes of a file, mapped into memory for as long as something holds them.

    Raises:
        Missing, Unusable: both CheckpointError and OSError.
    """
    with files.reading(op, path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@contextmanager
def damage(op: str, path: str, what: str) -> Iterator[None]:
    """Turns errors into CheckpointError. All are caught, since `zipfile`, `zlib`, `json`, `onnx`
    and NumPy may raise nearly anything on damaged bytes."""
    try:
        yield
    except CheckpointError:
        raise
    except MemoryError as error:
        message = f"{op}: {path}: {what} does not fit into the available memory"
        raise CheckpointError(message) from error
    except Exception as error:
        message = f"{op}: {path}: {what} is damaged: {error or type(error).__name__}"
        raise CheckpointError(message) from error
