"""The names that programs use from SINGA's C++ bindings, for tensors of this package."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors, tensor
from ..autograd import BatchNormHandle
from ..autograd import RNNHandle as CudnnRNNHandle
from ..tensor import float16, float32, int32
from .raw import RawTensor, raw

__all__ = [
    "Axpy",
    "BatchNormHandle",
    "Ceil",
    "ConcatOn",
    "CudnnRNNHandle",
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


def _of_two(name: str, doc: str, compute: Callable[[Any, Any], tensor.Tensor]) -> Any:
    def function(a: Any, b: Any) -> RawTensor:
        return _raw_of(compute(a, b))

    return errors.called(function, name, doc)


def _of_one(name: str, doc: str) -> Any:
    """The function that calls the method of this name in lower case."""

    def function(x: tensor.Tensor) -> RawTensor:
        return _raw_of(getattr(x, name.lower())())

    return errors.called(function, name, doc)


__add__ = _of_two("__add__", "`a + b`.", operator.add)
__sub__ = _of_two("__sub__", "`a - b`.", operator.sub)
__mul__ = _of_two("__mul__", "`a * b`, element by element.", operator.mul)
__div__ = _of_two("__div__", "`a / b`.", operator.truediv)
Pow = _of_two("Pow", "`a ** b`.", tensor.pow)
Mult = _of_two("Mult", "The matrix product.", operator.matmul)
Ceil = _of_one("Ceil", "Rounds up.")
Floor = _of_one("Floor", "Rounds down.")
Round = _of_one("Round", "Rounds half away from zero.")
RoundE = _of_one("RoundE", "Rounds half to even.")
Erf = _of_one("Erf", "The error function.")


def Reshape(x: tensor.Tensor, shape: Sequence[int]) -> RawTensor:
    """The same elements in another shape."""
    return _raw_of(x.reshape(shape))


def SoftMax(x: tensor.Tensor, axis: int = -1) -> RawTensor:
    """Softmax over one axis."""
    return _raw_of(x.softmax(axis))


def ConcatOn(tensors: Sequence[tensor.Tensor], axis: int) -> RawTensor:
    """The tensors concatenated along an axis."""
    return _raw_of(tensor.concatenate(tensors, axis))


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
