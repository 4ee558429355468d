"""What is compared of arrays, sets, context variables, and what else keeps its state in C."""

from __future__ import annotations

import ctypes
from array import array
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..tensor.keys import key_of
from .places import NOTHING

#: Of a longer list, tuple or dictionary only the length is compared, of a larger array only the
#: identity and layout. No more user-defined objects than this are inspected.
LONGEST = 1000
_ARRAYS = (np.ndarray, np.void)
_KINDS = (*_ARRAYS, ContextVar, array, ctypes.Structure.__base__)


def is_looked_at(value: Any) -> bool:
    """Whether `looks` shows more of an object than its attributes do; PyTorch's tensors have
    `data_ptr`."""
    return isinstance(value, _KINDS) or hasattr(type(value), "data_ptr")


def looks(value: Any) -> tuple[Any, ...]:
    """What is compared of such an object, or of a set; last, as bytes, what can be restored."""
    if isinstance(value, _ARRAYS):
        return value.shape, value.dtype.str, value.strides, _elements(value)
    if isinstance(value, ContextVar):
        return (key_of(value.get(NOTHING)),)
    if isinstance(value, set):
        return (tuple(map(id, value)),)
    try:
        if not isinstance(value, _KINDS):
            return value._version, value.data_ptr()
        with memoryview(value) as held:
            return (held.tobytes() if held.nbytes <= 8 * LONGEST else held.nbytes,)
    except Exception:  # tensors without a version, or without memory
        return (None,)


def _elements(value: Any) -> Any:
    if value.size > LONGEST or value.dtype.hasobject:
        return None
    if not hasattr(type(value), "mask"):
        return value.tobytes()
    return [one.tobytes() for one in (value, np.asarray(value), np.asarray(value.mask))]


def restore(value: Any, before: bytes) -> None:
    """Gives an object the bytes that it had, unless an array's size has changed."""
    if isinstance(value, array):
        array.__setitem__(value, slice(None), array(value.typecode, before))
        return
    held = np.asarray(value) if isinstance(value, _ARRAYS) else np.frombuffer(value, np.uint8)
    if held.flags.writeable and held.nbytes == len(before):
        held[...] = np.frombuffer(before, held.dtype).reshape(held.shape)
