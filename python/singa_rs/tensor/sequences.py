"""Tensors of sequences on logarithmic scales, of triangles and of their places; empty ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Device, ShapeError
from .creation import Shape, compared, filled, from_numpy, matrix_extents
from .dtypes import float32, int64
from .numbers import real, whole
from .placing import More, arranged, placed

if TYPE_CHECKING:
    from . import Tensor


def _count(op: str, num: Any, dtype: Any, device: Device | None) -> int:
    count = whole(num, f"{op}: num")
    if count < 0:
        raise ValueError(f"{op}: got num {count}, want at least 0")
    filled(op, (count,), 0, dtype, device)  # refuses what is too large
    return count


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    device: Device | None = None,
    dtype: Any = float32,
) -> Tensor:
    """`base` to the power of `num` evenly spaced numbers from `start` to `stop`, which is the last
    one if `endpoint` (NumPy logspace).

    Raises:
        ValueError: a negative `num`; bounds that are not finite; a base that is not above 0.
        DTypeError: a number that the dtype cannot hold.
    """
    placed("logspace", device)
    ends = real(start, "logspace: start"), real(stop, "logspace: stop")
    given = (*ends, real(base, "logspace: base"))
    count = _count("logspace", num, dtype, device)
    if not all(map(math.isfinite, given)) or given[2] <= 0:
        raise ValueError(f"logspace: got {given}, want finite numbers, and a base above 0")
    with np.errstate(all="ignore"):
        made = np.logspace(*ends, count, endpoint=bool(endpoint), base=given[2])
    return from_numpy(made, device, dtype)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    device: Device | None = None,
    dtype: Any = float32,
) -> Tensor:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before it (NumPy
    geomspace).

    Raises:
        ValueError: a negative `num`; bounds that are 0, not finite, or of different signs.
        DTypeError: a number that the dtype cannot hold.
    """
    placed("geomspace", device)
    ends = real(start, "geomspace: start"), real(stop, "geomspace: stop")
    count = _count("geomspace", num, dtype, device)
    if not all(map(math.isfinite, ends)) or not ends[0] * ends[1] > 0:
        raise ValueError(f"geomspace: got {ends}, want finite numbers other than 0 of one sign")
    return from_numpy(np.geomspace(*ends, count, endpoint=bool(endpoint)), device, dtype)


def tri(
    n: int, m: int | None = None, k: int = 0, device: Device | None = None, dtype: Any = float32
) -> Tensor:
    """A matrix of `n` rows and `m` columns, `n` by default, with ones up to diagonal `k` and zeros
    above it (NumPy tri)."""
    return compared("tri", "le", (n, m), k, device, dtype)


def _places(op: str, n: int, m: int | None, k: int, device: Device | None, upper: bool) -> Tensor:
    """The rows and the columns of a triangle's elements, (2, elements)."""
    height, width = matrix_extents(op, n, m, int64, device)
    if height * width > 2**31:
        raise ShapeError(f"{op}: got {height} by {width}, want a matrix of at most 2**31 elements")
    below = np.tri(height, width, whole(k, f"{op}: k") - int(upper), dtype=bool)
    return from_numpy(np.stack(np.nonzero(~below if upper else below)), device, int64)


def tril_indices(
    n: int, *, m: int | None = None, k: int = 0, device: Device | None = None
) -> Tensor:
    """The rows and the columns of the elements up to diagonal `k` of a matrix of `n` rows and `m`
    columns, `n` by default, row by row: (2, elements), int64 (PyTorch tril_indices, NumPy
    tril_indices)."""
    return _places("tril_indices", n, m, k, device, False)


def triu_indices(
    n: int, *, m: int | None = None, k: int = 0, device: Device | None = None
) -> Tensor:
    """The rows and the columns of the elements from diagonal `k` on; as `tril_indices` (PyTorch
    triu_indices, NumPy triu_indices)."""
    return _places("triu_indices", n, m, k, device, True)


def empty(shape: Shape, *more: More, device: Device | None = None, dtype: Any = None) -> Tensor:
    """A tensor of a shape, to be written; until then it reads as zeros (NumPy empty). Arguments
    are those of `zeros`."""
    extents, device, dtype = arranged("empty", shape, more, device, dtype)
    return filled("empty", extents, 0, dtype, device)


def empty_like(t: Tensor) -> Tensor:
    """`empty` of the shape, device and dtype of `t` (NumPy empty_like)."""
    return filled("empty_like", t.shape, 0, t.dtype, t.device)
