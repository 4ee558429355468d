"""Element types: promotion of mixed operands, and the rules by which NumPy data come in."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._core import DType, DTypeError

float32 = _core.float32
float64 = _core.float64
float16 = _core.float16
bfloat16 = _core.bfloat16
int32 = _core.int32
int64 = _core.int64
int8 = _core.int8
uint8 = _core.uint8
bool_ = _core.bool_

_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}
_RANGES["int64"] = (-(2**63), 2**63 - 1)
#: The largest float64 that still rounds to a finite bfloat16.
_BFLOAT16_MAX = (2 - 2**-8) * 2.0**127
#: The types that NumPy data become unless a dtype is asked for.
_INCOMING = {
    "float64": float32,
    "longdouble": float32,
    "float128": float32,
    "int64": int32,
    "int16": int32,
    "uint16": int32,
    "uint32": int32,
    "uint64": int32,
}


def promote(a: DType, b: DType) -> DType:
    """The dtype that arithmetic on tensors of dtypes `a` and `b` computes in.

    A float with an integer or bool stays that float; of two floats the wider wins (float16 with
    bfloat16 gives float32); integers as in NumPy, but int8 with uint8 gives int32; bool with
    bool gives int32, so that masks can be counted and multiplied.
    """
    if a == b:
        return int32 if a == bool_ else a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a == bool_ or b == bool_:
        return b if a == bool_ else a
    if a.itemsize != b.itemsize:
        return a if a.itemsize > b.itemsize else b
    return float32 if a.is_float else int32


def with_scalar(op: str, dtype: DType, scalar: float) -> DType:
    """The dtype that arithmetic of a tensor of `dtype` with a Python number computes in.

    A number never widens a float tensor. A float with an integer or bool tensor gives float32,
    an int with a bool tensor int32.

    Raises:
        ValueError: an int that the tensor's integer type cannot hold.
    """
    if dtype.is_float:
        return dtype
    if isinstance(scalar, float):
        return float32
    dtype = int32 if dtype == bool_ else dtype
    if not fits(scalar, dtype):
        raise ValueError(f"{op}: the number {scalar} does not fit {dtype.name}")
    return dtype


def fits(scalar: float, dtype: DType) -> bool:
    """Whether an integer type holds the int `scalar`."""
    low, high = _RANGES[dtype.name]
    return low <= scalar <= high


def incoming(array: np.ndarray) -> DType:
    """The dtype that NumPy data get: float64 becomes float32, int64 int32, the rest is kept.

    Raises:
        DTypeError: complex numbers, strings, objects and other types that no tensor has.
    """
    found = _INCOMING.get(array.dtype.name)
    return found if found is not None else _core.dtype(array.dtype)


def to_storage(op: str, array: np.ndarray, dtype: DType) -> np.ndarray:
    """`array` with the NumPy type that stores `dtype` (float32 for bfloat16).

    Floats round to floats; into integers and bool every value must survive.

    Raises:
        DTypeError: a value that does not survive, or a finite one that would become infinite.
    """
    if array.dtype.kind not in "biufV" or array.dtype.names is not None:
        raise DTypeError(f"{op}: got values of {array.dtype}, want real numbers")
    if dtype == bfloat16:
        _check_bfloat16(op, array)
        return array.astype(np.float32)
    want = np.dtype(dtype.name)
    if np.can_cast(array.dtype, want, "safe"):
        return array.astype(want, copy=False)
    with np.errstate(all="ignore"):
        made = array.astype(want)
    survive = _stays_finite(array, made) if dtype.is_float else _equal(array, made)
    if not survive:
        raise DTypeError(f"{op}: got values of {array.dtype} that {dtype.name} cannot hold")
    return made


def _stays_finite(before: np.ndarray, after: np.ndarray) -> bool:
    return not np.any(np.isinf(after) & np.isfinite(before))


def _equal(before: np.ndarray, after: np.ndarray) -> bool:
    return bool(np.all(after == before)) and not (
        before.dtype.kind == "u" and after.dtype.kind == "i" and bool(np.any(after < 0))
    )


def _check_bfloat16(op: str, array: np.ndarray) -> None:
    size = np.abs(array.astype(np.float64))
    if np.any(np.isfinite(size) & (size >= _BFLOAT16_MAX)):
        raise DTypeError(f"{op}: got values of {array.dtype} that bfloat16 cannot hold")


def as_number(value: Any) -> float | int | None:
    """`value` as a Python int or float if it is a number of Python or NumPy, else None."""
    if isinstance(value, (bool, int, float)):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        kind = value.dtype.kind
        return int(value) if kind in "biu" else float(value) if kind in "fV" else None
    return None


def sizeof(dtype: DType | int) -> int:
    """Bytes of one element of `dtype` (SINGA sizeof)."""
    return _core.dtype(dtype).itemsize
