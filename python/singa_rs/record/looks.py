"""What is compared of arrays and context variables."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np

from ..tensor.keys import key_of
from .places import NOTHING

#: Of a longer list, tuple or dictionary only the length is compared, of a larger array only the
#: identity and layout. No more user-defined objects than this are inspected.
LONGEST = 1000


def is_plain(array: np.ndarray) -> bool:
    """Whether `looks` copies all elements of an array, and no mask hides some."""
    return _is_small(array) and not hasattr(type(array), "mask")


def _is_small(array: np.ndarray) -> bool:
    """Whether all elements are compared."""
    return array.size <= LONGEST and not array.dtype.hasobject


def looks(value: np.ndarray | ContextVar[Any]) -> tuple[Any, ...]:
    """What is compared of an array, or of a context variable."""
    if isinstance(value, ContextVar):
        return (key_of(value.get(NOTHING)),)
    elements = value.tobytes() if _is_small(value) else None
    return value.shape, value.dtype.str, value.strides, elements
