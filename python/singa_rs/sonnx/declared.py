"""Inputs of a graph in the element types that it declares for them."""

from __future__ import annotations

import contextlib
from typing import Any

import ml_dtypes
import numpy as np

from ..autograd.casting import convert
from ..errors import DTypeError
from ..tensor import Tensor
from . import codes
from .arrays import BFLOAT16, CODED, dtype_of, is_whole, name_of
from .codes import Coded
from .values import NAMES, Value


def as_array(name: str, x: Any, element: int) -> Any:
    """A list of numbers for an input that is declared a tensor, as an array.

    Raises:
        TypeError: what is no tensor, and cannot be one.
    """
    if not element or not (x is None or isinstance(x, (list, tuple, dict, set))):
        return x
    is_list = isinstance(x, (list, tuple)) and not any(isinstance(one, Tensor) for one in x)
    with contextlib.suppress(ValueError):  # of lists of different lengths
        made = np.asarray(x if is_list else None)
        if made.dtype.kind != "O":
            return made
    kind = type(x).__name__
    raise TypeError(f"sonnx: input {name!r}: got {kind}, want a tensor, an array or numbers")


def elements(x: Any, element: int) -> Any:
    """An array as the elements of a declared type that NumPy lacks: one of its bits as unsigned
    integers, as users of NumPy keep bfloat16 and float8, or one of small integers.

    Raises:
        DTypeError: integers beyond the range of a type of 4 or 2 bits.
    """
    is_plain = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu"
    if not (is_plain and x.dtype.names is None and (element == BFLOAT16 or element in CODED)):
        return x
    dtype = dtype_of(element) if element in CODED else np.dtype(ml_dtypes.bfloat16)
    if is_whole(dtype):
        return _small(x, dtype)
    is_bits = x.dtype == f"u{dtype.itemsize}" and dtype != ml_dtypes.float4_e2m1fn
    return x.view(dtype) if is_bits else x


def _small(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    info = ml_dtypes.iinfo(dtype)
    beyond = x[(x < int(info.min)) | (x > int(info.max))]
    if beyond.size:
        raise DTypeError(
            f"sonnx: got {beyond.flat[0]}, want {dtype.name}: {info.min} to {info.max}"
        )
    return x.astype(dtype)


def as_declared(name: str, x: Value, element: int) -> Value:
    """A tensor for an input in the type that the graph declares; what is no tensor, or for what
    declares none, as it is.

    Raises:
        DTypeError: a value that the type cannot hold, floats may round; a type of another kind,
            where one of the two is stored as codes.
    """
    if isinstance(x, Tensor) and x.dtype.name == NAMES.get(element):
        return x
    dtype = CODED.get(element)
    got = getattr(x, "dtype", None)
    if isinstance(x, Coded) and element and x.dtype != dtype:
        raise _differ(name, x, element)
    if not isinstance(x, Tensor) or element not in NAMES and dtype is None:
        return x
    if dtype is None:
        return convert(x, NAMES[element])
    if not got.is_float or is_whole(dtype):
        raise _differ(name, x, element)
    return codes.encoded(x, dtype)


def _differ(name: str, x: Tensor | Coded, element: int) -> DTypeError:
    return DTypeError(f"sonnx: input {name!r}: got {x.dtype.name}, want {name_of(element)}")
