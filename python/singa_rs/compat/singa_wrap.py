"""The names that programs use from SINGA's C++ bindings, for tensors of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import errors, tensor
from ..autograd import BatchNormHandle
from ..tensor import float16, float32, int32
from .raw import RawTensor, raw

__all__ = [
    "Axpy",
    "BatchNormHandle",
    "Ceil",
    "ConcatOn",
    "Erf",
    "Floor",
    "Gaussian",
    "Mult",
    "Pow",
    "RawTensor",
    "Reshape",
    "Round",
    "RoundE",
    "SINGA_VERSION",
    "SoftMax",
    "SumAll",
    "Tensor",
    "USE_CUDA",
    "USE_DIST",
    "VecTensor",
    "kFloat16",
    "kFloat32",
    "kInt",
]

USE_CUDA = False
USE_DIST = False
SINGA_VERSION = 5100

kFloat32 = float32
kFloat16 = float16
kInt = int32
Tensor = RawTensor
VecTensor = list


def _raw_of(made: tensor.Tensor) -> RawTensor:
    return raw(made.detach())


def __add__(a: Any, b: Any) -> RawTensor:
    """`a + b`."""
    return _raw_of(a + b)


def __sub__(a: Any, b: Any) -> RawTensor:
    """`a - b`."""
    return _raw_of(a - b)


def __mul__(a: Any, b: Any) -> RawTensor:
    """`a * b`, element by element."""
    return _raw_of(a * b)


def __div__(a: Any, b: Any) -> RawTensor:
    """`a / b`."""
    return _raw_of(a / b)


def Pow(a: Any, b: Any) -> RawTensor:
    """`a ** b`."""
    return _raw_of(tensor.pow(a, b))


def Mult(a: tensor.Tensor, b: tensor.Tensor) -> RawTensor:
    """The matrix product."""
    return _raw_of(a @ b)


def Reshape(x: tensor.Tensor, shape: Sequence[int]) -> RawTensor:
    """The same elements in another shape."""
    return _raw_of(x.reshape(shape))


def SoftMax(x: tensor.Tensor, axis: int = -1) -> RawTensor:
    """Softmax over one axis."""
    return _raw_of(x.softmax(axis))


def ConcatOn(tensors: Sequence[tensor.Tensor], axis: int) -> RawTensor:
    """The tensors concatenated along an axis."""
    return _raw_of(tensor.concatenate(tensors, axis))


def Ceil(x: tensor.Tensor) -> RawTensor:
    """Rounds up."""
    return _raw_of(x.ceil())


def Floor(x: tensor.Tensor) -> RawTensor:
    """Rounds down."""
    return _raw_of(x.floor())


def Round(x: tensor.Tensor) -> RawTensor:
    """Rounds half away from zero."""
    return _raw_of(x.round())


def RoundE(x: tensor.Tensor) -> RawTensor:
    """Rounds half to even."""
    return _raw_of(x.rounde())


def Erf(x: tensor.Tensor) -> RawTensor:
    """The error function."""
    return _raw_of(x.erf())


def SumAll(x: tensor.Tensor) -> RawTensor:
    """The sum of all elements, of shape (1,)."""
    return _raw_of(x.sum().reshape((1,)))


def Axpy(alpha: Any, x: tensor.Tensor, y: tensor.Tensor) -> None:
    """`y += alpha * x`; alpha a number or a tensor of one element."""
    y += x * alpha


def Gaussian(mean: float, std: float, x: tensor.Tensor) -> None:
    """Fills `x` with normally distributed numbers."""
    x.gaussian(mean, std)


errors.name_functions(globals(), {"raw"})
