"""Tensors of random numbers, from the stream that initial values come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Device
from .creation import Shape, as_shape, extents_of, filled
from .dtypes import float32, float64, int32
from .numbers import number, whole
from .placing import placed

if TYPE_CHECKING:
    from . import Tensor

#: float64 has as many distinct fractions.
_MOST = 2**53


def rand(*shape: Any, device: Device | None = None, dtype: Any = float32) -> Tensor:
    """Numbers drawn uniformly from [0, 1) (NumPy random.rand, PyTorch rand); the shape is given as
    several numbers or as one sequence. A float dtype."""
    placed("rand", device)
    return filled("rand", extents_of(shape), 0, dtype, device).uniform(0.0, 1.0)


def randn(*shape: Any, device: Device | None = None, dtype: Any = float32) -> Tensor:
    """Numbers drawn from the standard normal distribution (NumPy random.randn, PyTorch randn); the
    shape is given as several numbers or as one sequence. A float dtype."""
    placed("randn", device)
    return filled("randn", extents_of(shape), 0, dtype, device).gaussian(0.0, 1.0)


def randn_like(t: Tensor) -> Tensor:
    """Numbers drawn from the standard normal distribution, of the shape and dtype of `t`, which is
    of floats (PyTorch randn_like)."""
    return filled("randn_like", t.shape, 0, t.dtype, t.device).gaussian(0.0, 1.0)


def rand_like(t: Tensor) -> Tensor:
    """Numbers drawn uniformly from [0, 1), of the shape and dtype of `t`, which is of floats
    (PyTorch rand_like)."""
    return filled("rand_like", t.shape, 0, t.dtype, t.device).uniform(0.0, 1.0)


def normal(
    mean: float = 0.0,
    std: float = 1.0,
    size: Shape | None = None,
    device: Device | None = None,
    dtype: Any = float32,
) -> Tensor:
    """Numbers drawn from a normal distribution (NumPy random.normal, PyTorch normal). A float
    dtype.

    Args:
        mean, std: numbers; `std` from 0.
        size: the shape; () by default.
        device: the CPU by default.
        dtype: of the result.
    """
    placed("normal", device)
    extents = as_shape(() if size is None else size)
    return filled("normal", extents, 0, dtype, device).gaussian(mean, std)


def randint(
    low: int,
    high: int | Sequence[int] | None = None,
    size: Shape | None = None,
    device: Device | None = None,
    dtype: Any = int32,
) -> Tensor:
    """Integers drawn uniformly from `low` to `high - 1`, or from 0 to `low - 1` without `high`
    (NumPy random.randint, PyTorch randint).

    Args:
        low, high: the bounds; `randint(high, size)` with a sequence second is PyTorch's.
        size: the shape; () by default.
        device: the CPU by default.
        dtype: one that holds the bounds.

    Raises:
        ValueError: no integer between the bounds, or more than 2**53; bounds that the dtype cannot
            hold.
    """
    placed("randint", device, "a shape is one argument: randint(0, 5, (2, 3))")
    if size is None and isinstance(high, Sequence):
        high, size = None, high
    first = 0 if high is None else whole(low, "randint: low")
    last = whole(low if high is None else high, "randint: high") - 1
    if not 0 <= last - first < _MOST:
        raise ValueError(f"randint: got {first} to {last + 1}, want 1 to 2**53 integers between")
    name, extents = _core.dtype(dtype).name, as_shape(() if size is None else size)
    for bound in (first, last):
        _core.Op("fill", value=number(bound, "randint"), shape=(), dtype=name)()
    made = filled("randint", extents, 0, float64, device).uniform(0.0, 1.0)
    scaled = _core.Op("binary_scalar", f="mul", scalar=float(last - first + 1), reverse=False)(made)
    steps = _core.Op("cast", dtype="int64")(_core.Op("unary", f="floor")(scaled))
    moved = _core.Op("binary_scalar", f="add", scalar=first, reverse=False)(steps)
    return _core.Op("cast", dtype=name)(moved)


def randperm(n: int, device: Device | None = None) -> Tensor:
    """The integers from 0 to `n - 1` in random order, int64 (PyTorch randperm)."""
    placed("randperm", device)
    made = filled("randperm", (whole(n, "randperm: n"),), 0, float64, device).uniform(0.0, 1.0)
    return _core.Op("sort", axis=0, descending=False, count=None)(made)[1]


def randint_like(t: Tensor, low: int, high: int | None = None) -> Tensor:
    """`randint` of the shape and dtype of `t` (PyTorch randint_like)."""
    return randint(low, high, t.shape, t.device, t.dtype)
