"""Which values of Python and NumPy count as numbers or arrays of numbers.

Complex numbers, dates and times, text, objects and arrays with masked elements are rejected: each
would turn into a float with another meaning.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import DTypeError, GraphError, Handle, ShapeError
from ..refusals import is_real
from ..shown import is_foreign, shown


def as_number(value: Any) -> float | int | None:
    """`value` as a Python int or float if it is a Python or NumPy number, else None."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        kind = value.dtype.kind
        if kind in "biu":
            return None if _is_masked(value) else int(value)
        return _as_float(value) if kind == "f" or _is_extension(value.dtype) else None
    return None


def _as_float(value: Any) -> float | None:
    """A NumPy float as a Python float; None if it is masked or out of a Python float's range."""
    number = None if _is_masked(value) else float(value)
    return None if number is None or math.isinf(number) and np.isfinite(value) else number


def _is_extension(dtype: np.dtype) -> bool:
    """Whether it is a number type that another library adds to NumPy, such as bfloat16."""
    return dtype.kind == "V" and not issubclass(dtype.type, np.void)


def _is_masked(value: Any) -> bool:
    """Whether an array has masked elements. Does not import `numpy.ma`, which few programs use."""
    is_masked = getattr(sys.modules.get("numpy.ma"), "is_masked", None)  # None while it loads
    return is_masked is not None and is_masked(value)


def as_array(value: Any, op: str) -> np.ndarray:
    """`value` as an array of bools, integers or floats.

    Raises:
        DTypeError: anything else, and masked elements.
        GraphError: a list with tensors that are only recorded.
        ShapeError: lists of different lengths.
    """
    if _is_masked(value):
        raise DTypeError(f"{op}: got an array with masked elements, want a value for each")
    array = _read(value, op)
    if array.dtype == object and any(map(_is_long, array.flat)):
        raise DTypeError(f"{op}: got {shown(value)} with an int that 64 bits do not hold")
    if array.dtype.kind not in "biuf" and not _is_extension(array.dtype):
        raise DTypeError(f"{op}: got values of {array.dtype}, want bools, integers or floats")
    return array


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**64


def _read(value: Any, op: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except GraphError as error:
        if not isinstance(value, (list, tuple)):
            raise
        got = f"a {type(value).__name__} of tensors that are only recorded"
        raise GraphError(f"{op}: got {got}, want one tensor: autograd.stack makes it") from error
    except ValueError as error:
        if not isinstance(value, (list, tuple)):
            raise
        raise ShapeError(f"{op}: got {value!r:.60}, want lists of equal lengths") from error


def lent(value: Any, op: str) -> Any:
    """NumPy's array on the memory of another library's; anything else as it is.

    Raises:
        TypeError: NumPy cannot share its memory, such as that of a GPU or of values of bfloat16.
    """
    if not is_foreign(value):
        return value
    try:
        return np.from_dlpack(value)
    except Exception as error:  # whatever the other library raises
        text = f"got {shown(value)}, which NumPy cannot share: {error}"
        raise TypeError(f"{op}: {text}; tensor.from_dlpack(x) may") from error


def number(value: Any, what: str) -> float | int:
    """A Python or NumPy number (or a one-element tensor) as a Python int or float.

    Raises:
        TypeError: anything else.
        ValueError: an integer that neither int64 nor float64 holds.
    """
    found = as_number(value.item() if isinstance(value, Handle) else value)
    if found is None:
        raise TypeError(f"{what}: got {shown(value)}, want a number")
    if isinstance(found, int) and not -(2**63) <= found < 2**63 and not _is_exact(found):
        raise ValueError(f"{what}: got {value!r}, want a number that float64 holds")
    return found


def _is_exact(value: int) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False


def real(value: Any, what: str) -> float:
    """`number`, as a float.

    Raises:
        TypeError: anything but a number.
        ValueError: an integer that no float holds.
    """
    is_plain = is_real(value) and not isinstance(value, np.generic)
    try:
        return float(value) if is_plain else float(number(value, what))
    except OverflowError:
        raise ValueError(f"{what}: got {value!r}, want a number that float64 holds") from None


def plain_real(value: Any, what: str) -> float:
    """`real`, where bools, times, arrays and tensors are no numbers.

    Raises:
        TypeError, ValueError: as `real`.
    """
    if not is_real(value):
        raise TypeError(f"{what}: got {shown(value)}, want a number")
    return real(value, what)


def within(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number in [low, high], of those that `plain_real` takes.

    Raises:
        TypeError, ValueError: anything else.
    """
    made = plain_real(value, what)
    if not low <= made <= high or not math.isfinite(made):
        bounds = f" from {low:g}" * (low > -math.inf) + f" to {high:g}" * (high < math.inf)
        raise ValueError(f"{what}: got {value!r}, want a finite number{bounds}")
    return made


def whole(value: Any, what: str) -> int:
    """A Python or NumPy integer, or a float (or a one-element tensor) with an integral value.

    Raises:
        TypeError: anything that is not a number.
        ValueError: a number with a fraction, NaN or an infinity.
    """
    try:
        return operator.index(value)
    except TypeError:
        found = real(value, what)
    if not found.is_integer():
        raise ValueError(f"{what}: got {value!r}, want an integer")
    return int(found)


_NO_SEQUENCES = (bytes, bytearray, str, dict, set, frozenset)


def wholes(values: Any, what: str) -> tuple[int, ...]:
    """`whole` of each number of a sequence, or of a single number.

    Raises:
        TypeError, ValueError: as `whole`.
    """
    if isinstance(values, _NO_SEQUENCES):  # empty ones, and those of numbers, would be taken
        raise TypeError(f"{what}: got {values!r}, want integers")
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        if not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
            return (whole(values, what),)
        return tuple(whole(value, what) for value in values)
