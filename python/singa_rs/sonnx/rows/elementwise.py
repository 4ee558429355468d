"""Functions of one tensor, element by element, and activations with attributes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import autograd
from ...autograd.casting import cast
from ...errors import ShapeError
from ...tensor import Tensor, bool_
from ..names import BY_SIGN, OF_ONE
from ..table import reads
from . import integers

#: ONNX's name, and `autograd`'s, of what is written otherwise, if at all.
_READ = {"HardSwish": "hardswish", "Mish": "mish", "BitwiseNot": "bitwise_not"}
#: The same for results of bools.
_TESTS = {"Not": "_not", "IsNaN": "isnan"}


def _of_one(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda x: cast(integers.in_int64(function, x), x.dtype)


def _of_sign(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor) -> Tensor:
        if not x.dtype.name.startswith("uint"):
            return integers.in_int64(function, x)
        return cast(cast(x, bool_), x.dtype) if function is autograd.sign else x

    return run


for _name, _, _function in OF_ONE:
    reads(_name)(_of_one(getattr(autograd, _function)))
for _name, _function in _READ.items():
    reads(_name)(_of_one(getattr(autograd, _function)))
for _name, _function in _TESTS.items():
    reads(_name)(getattr(autograd, _function))
for _name, _, _function in BY_SIGN:
    reads(_name)(_of_sign(getattr(autograd, _function)))


@reads("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`x`, or `alpha (exp(x) - 1)` where it is negative."""
    return autograd.elu(x, alpha)


@reads("Celu", since=12)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`max(0, x) + min(0, alpha (exp(x / alpha) - 1))`."""
    return autograd.celu(x, alpha)


def _selu(alpha: float, gamma: float) -> Callable[..., Tensor]:
    defaults = (alpha, gamma)

    def run(x: Tensor, *, alpha: float = defaults[0], gamma: float = defaults[1]) -> Tensor:
        return autograd.selu(x, alpha, gamma)

    return run


reads("Selu")(_selu(1.6732, 1.0507))
reads("Selu", since=6)(_selu(1.6732631921768188, 1.0507010221481323))


@reads("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    """`x`, or `alpha x` where it is negative."""
    return autograd.leakyrelu(x, alpha)


@reads("PRelu")
def prelu_of_channels(x: Tensor, slope: Tensor) -> Tensor:
    """`x`, or `slope x` where it is negative, with a slope for each channel or one for all."""
    is_of_channels = slope.rank == 1 and slope.shape[0] > 1 and x.rank > 1
    return prelu(x, slope.reshape((-1, *(1,) * (x.rank - 2))) if is_of_channels else slope)


@reads("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """`x`, or `slope x` where it is negative."""
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        want = "a slope that broadcasts to x"
        raise ShapeError(f"PRelu: got shapes {x.shape}, {slope.shape}, want {want}")
    if x.dtype.is_float:
        return autograd.prelu(x, slope)
    if x.dtype.name.startswith("uint"):
        return x
    return integers.in_int64(autograd.prelu, x, slope)


@reads("ThresholdedRelu", since=10)
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`x` where it is above `alpha`, else 0, also for NaN, which `autograd.threshold` keeps."""
    return autograd.where(x.detach() > alpha, x, 0.0)


@reads("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """`max(0, min(1, alpha x + beta))`."""
    return autograd.hardsigmoid(x, alpha, beta)


@reads("Shrink", since=9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """`x`, moved by `bias` towards 0, where its size is above `lambd`, else 0."""
    wide = x if x.dtype.is_float else cast(x, "float64")
    low = autograd.where(wide.detach() < -lambd, wide + bias, 0.0)
    return cast(autograd.where(wide.detach() > lambd, wide - bias, low), x.dtype)


@reads("Gelu", since=20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """`x` times the normal distribution function, "none", or an approximation of it by "tanh"."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"Gelu: got approximate {approximate!r}, want 'none' or 'tanh'")
    return autograd.gelu(x) if approximate == "none" else autograd.gelu_tanh(x)


@reads("Swish", since=24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`x sigmoid(alpha x)`."""
    return autograd.silu(x) if alpha == 1 else x * autograd.sigmoid(x * alpha)


@reads("SwiGLU", since=28)
def swiglu(a: Tensor, b: Tensor, *, alpha: float = 1.0) -> Tensor:
    """`swish(a) b` (Shazeer, 2020)."""
    return swish(a, alpha=alpha) * b
