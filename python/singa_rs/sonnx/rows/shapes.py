"""Shapes: what they are, and other ones for the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import autograd
from ...tensor import Tensor
from ..table import reads


@reads("Identity", raw=True)
def identity(x: Any) -> Any:
    """The value itself."""
    return x


@reads("Constant")
def constant(
    *, value: Any = None, value_float: float | None = None, value_int: int | None = None,
    value_floats: Any = None, value_ints: Any = None, value_string: str | None = None,
    value_strings: Any = None, sparse_value: Any = None,
) -> Any:  # fmt: skip
    """A constant, on the host until a node wants it elsewhere."""
    for one, dtype in (
        (value, None), (sparse_value, None), (value_float, np.float32), (value_int, np.int64),
        (value_floats, np.float32), (value_ints, np.int64), (value_string, object),
        (value_strings, object),
    ):  # fmt: skip
        if one is not None:
            return np.array(one, dtype)
    raise ValueError("Constant: got no value")


@reads("Shape", raw=True)
def shape(x: Any, *, start: int = 0, end: int | None = None) -> np.ndarray:
    """The extents of the axes from `start` to `end`."""
    return np.array(np.shape(x) if not isinstance(x, Tensor) else x.shape, np.int64)[start:end]


@reads("Reshape", since=5, host="shape")
def reshape(x: Tensor, shape: np.ndarray, *, allowzero: int = 0) -> Tensor:
    """Another shape: -1 takes what is left, 0 keeps the extent unless `allowzero`."""
    to = tuple(int(n) for n in np.ravel(shape))
    if not allowzero:
        to = tuple(x.shape[i] if n == 0 else n for i, n in enumerate(to))
    return autograd.reshape(x, to) if 0 not in to else x.reshape(_resolved(to, x))


def _resolved(to: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    return tuple(0 if n == -1 else n for n in to)
