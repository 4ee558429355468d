"""Random numbers. They come from the device's stream, which its seed determines: `seed`, by which
ONNX asks for a stream of its own for a node, is not followed."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, full, int32, int64
from ..running import Frame
from ..table import reads
from ..values import NAMES, dtype_name, element_of

_FLOAT = 1


def _drawn(shape: Any, dtype: int, frame: Frame) -> Tensor:
    """Memory for numbers of a float type."""
    name = dtype_name(dtype)
    if "float" not in name:
        raise ValueError(f"random numbers: got dtype {name}, want a float type")
    return full(tuple(shape), 0, frame.device, name)


@reads("RandomNormal", varies=True)
def random_normal(
    *, shape: Any, dtype: int = _FLOAT, mean: float = 0.0, scale: float = 1.0,
    seed: float | None = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers."""
    return _drawn(shape, dtype, frame).gaussian(mean, scale)


@reads("RandomUniform", varies=True)
def random_uniform(
    *, shape: Any, dtype: int = _FLOAT, low: float = 0.0, high: float = 1.0,
    seed: float | None = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Numbers distributed uniformly from `low` to `high`."""
    return _drawn(shape, dtype, frame).uniform(low, high)


@reads("RandomNormalLike", varies=True)
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
    seed: float | None = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers, as many as `x` has."""
    return _drawn(x.shape, dtype or element_of(x), frame).gaussian(mean, scale)


@reads("RandomUniformLike", varies=True)
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0,
    seed: float | None = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Numbers distributed uniformly, as many as `x` has."""
    return _drawn(x.shape, dtype or element_of(x), frame).uniform(low, high)


@reads("Bernoulli", since=15, varies=True)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    """1 with the probabilities `x`, else 0."""
    return cast(autograd.bernoulli(x), x.dtype if dtype is None else dtype_name(dtype))


@reads("Multinomial", since=7, varies=True)
def multinomial(
    x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Tensor:
    """Classes that are drawn with the logarithms `x` of their weights, int32 or int64."""
    if NAMES.get(dtype) not in ("int32", "int64"):
        raise ValueError(f"Multinomial: got dtype {dtype}, want int32 (6) or int64 (7)")
    drawn = autograd.multinomial(autograd.softmax(x, 1), sample_size, True)
    return cast(drawn, int32 if NAMES[dtype] == "int32" else int64)
