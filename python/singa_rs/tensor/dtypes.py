"""Element types: promotion of mixed operands, and conversion of incoming NumPy data."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from .. import _core
from .._core import DType, DTypeError
from .numbers import as_array

float32 = _core.float32
float64 = _core.float64
float16 = _core.float16
bfloat16 = _core.bfloat16
int32 = _core.int32
int64 = _core.int64
int8 = _core.int8
uint8 = _core.uint8
bool_ = _core.bool_
int16 = _core.int16
uint16 = _core.uint16
uint32 = _core.uint32
uint64 = _core.uint64

_RANGES = {f"int{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)}
_RANGES.update({f"uint{n}": (0, 2**n - 1) for n in (8, 16, 32, 64)})
_RANGES["bool"] = (0, 1)
#: The precision of the float types in bits.
_DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
#: The smallest magnitude that rounds to infinity.
_TOO_LARGE = {
    "float64": math.inf,
    "float32": (2 - 2**-24) * 2.0**127,
    "float16": 65520.0,
    "bfloat16": (2 - 2**-8) * 2.0**127,
}
#: What NumPy's dtypes become unless a dtype is requested.
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
    bfloat16 gives float32); integers promote as in NumPy, except that int8 with uint8 gives int32;
    bool with bool gives int32, so that masks can be counted and multiplied.

    Raises:
        DTypeError: int16, uint16, uint32 or uint64 with another integer type or bool, as they are
            not computed with.
    """
    if a == b:
        return int32 if a == bool_ else a
    if (a.is_storage or b.is_storage) and not (a.is_float or b.is_float):
        names = f"{a.name} and {b.name}"
        raise DTypeError(f"got {names}, want dtypes that are computed with: convert first")
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


@cache
def name_of(dtype: np.dtype) -> str:
    """The name of NumPy's dtype, which NumPy puts together in Python at each look."""
    return dtype.name


def incoming(array: np.ndarray) -> DType:
    """The dtype for NumPy data: floats wider than 32 bits become float32, integers wider than 8
    bits int32; other dtypes are kept.

    Raises:
        DTypeError: complex numbers, strings, objects and other types that tensors do not support.
    """
    return _incoming(array.dtype)


@cache
def _incoming(dtype: np.dtype) -> DType:
    found = _INCOMING.get(dtype.name)
    return found if found is not None else _core.dtype(dtype)


def to_storage(op: str, array: np.ndarray, dtype: DType) -> np.ndarray:
    """`array` with the NumPy type that stores `dtype` (float32 or float64 for bfloat16).

    Conversions between floats round; those to or from integers and bool must keep every value.

    Raises:
        DTypeError: a value that would not be kept, a finite one that would become infinite, or
            values that are not numbers.
    """
    array = as_array(array, op)
    want = _storage(array, dtype)
    # NumPy counts int64 to float64 as a safe cast, although it rounds.
    is_wide = array.dtype.kind in "iu" and array.dtype.itemsize == 8
    is_safe = dtype != bfloat16 and np.can_cast(array.dtype, want, "safe")
    with np.errstate(all="ignore"):  # the program's settings are for its own arithmetic
        if not (is_safe and not is_wide) and not _survive(array, dtype):
            raise DTypeError(f"{op}: got values of {array.dtype} that {dtype.name} cannot hold")
        return array.astype(want, copy=False)


def _storage(array: np.ndarray, dtype: DType) -> np.dtype:
    if dtype != bfloat16:
        return np.dtype(dtype.name)
    return np.dtype(np.float32 if np.can_cast(array.dtype, np.float32, "safe") else np.float64)


def _survive(array: np.ndarray, dtype: DType) -> bool:
    is_float = array.dtype.kind not in "biu"
    if array.size == 0:
        return True
    if dtype.is_float:
        return _stay_finite(array, dtype) if is_float else _are_exact(array, dtype)
    if is_float and not (np.isfinite(array).all() and (array == np.trunc(array)).all()):
        return False
    low, high = _RANGES[dtype.name]
    return low <= int(array.min()) and int(array.max()) <= high


def _stay_finite(array: np.ndarray, dtype: DType) -> bool:
    # Neither NaN nor an infinity is less, and nothing far below the limit is rounded up to it.
    if float(np.abs(array).max()) < _TOO_LARGE[dtype.name] / 2:
        return True
    made = array.astype(_storage(array, dtype))
    lost = np.isinf(made) if dtype != bfloat16 else np.abs(made) >= _TOO_LARGE["bfloat16"]
    return not np.any(lost & np.isfinite(array))


def _are_exact(array: np.ndarray, dtype: DType) -> bool:
    """Whether a float type holds all of these integers."""
    digits, most = _DIGITS[dtype.name], max(-int(array.min()), int(array.max()))
    if most < 2**digits:
        return True
    if most >= _TOO_LARGE[dtype.name]:
        return False
    array = array if array.dtype.kind == "u" else array.astype(np.int64)
    size = np.where(array < 0, -array, array).astype(np.uint64)  # the smallest int64 is 2**63
    last = size & (~size + np.uint64(1))
    return bool(np.all(size // np.maximum(last, np.uint64(1)) < 2**digits))


def sizeof(dtype: DType | int) -> int:
    """Bytes of one element of `dtype` (SINGA sizeof)."""
    return _core.dtype(dtype).itemsize
