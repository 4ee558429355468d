# ruff: noqa: F405 - the names of the other files
"""The names that programs use from SINGA's C++ bindings, for tensors of this package.

Functions take tensors, raw or not, and return raw ones; results of comparisons are 0 and 1 in the
dtype of the operand, as in SINGA.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd, errors, tensor
from ..autograd import RNNHandle as CudnnRNNHandle
from ..autograd import ops
from ..dist.communicator import Communicator
from ..dist.meeting import NcclIdHolder
from ..tensor import float16, float32, int32
from . import handles, probabilities, rules, written
from .handles import *  # noqa: F403
from .probabilities import *  # noqa: F403
from .raw import RawTensor, raw
from .written import *  # noqa: F403

__all__ = [
    *handles.__all__,
    *probabilities.__all__,
    *written.__all__,
    "__add__",
    "__div__",
    "__eq__",
    "__ge__",
    "__gt__",
    "__le__",
    "__lt__",
    "__mul__",
    "__sub__",
    "Abs",
    "Acos",
    "Acosh",
    "AddFloat",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Average",
    "Bernoulli",
    "Ceil",
    "Communicator",
    "ConcatOn",
    "Contiguous",
    "CopyDataToFrom",
    "Cos",
    "Cosh",
    "CudnnRNNHandle",
    "DefaultTranspose",
    "DivFloat",
    "EQFloat",
    "Erf",
    "Exp",
    "Floor",
    "Gaussian",
    "GEFloat",
    "GTFloat",
    "kFloat16",
    "kFloat32",
    "kInt",
    "LEFloat",
    "Log",
    "LTFloat",
    "Mult",
    "MultFloat",
    "NcclIdHolder",
    "Pow",
    "PowFloat",
    "Product",
    "RawTensor",
    "ReLU",
    "ReLUBackward",
    "Reshape",
    "Round",
    "RoundE",
    "Sigmoid",
    "Sign",
    "Sin",
    "SINGA_VERSION",
    "Sinh",
    "SizeOf",
    "SliceOn",
    "SoftMax",
    "Sqrt",
    "Square",
    "SubFloat",
    "Sum",
    "SumAll",
    "SumAsFloat",
    "Tan",
    "Tanh",
    "Tensor",
    "Transpose",
    "Uniform",
    "USE_CUDA",
    "USE_DIST",
    "VecTensor",
]


def __dir__() -> list[str]:
    return sorted(__all__)


USE_CUDA = False
USE_DIST = True
SINGA_VERSION = 5100

kFloat32 = float32
kFloat16 = float16
kInt = int32
Tensor = RawTensor


class VecTensor(list):
    """A list with the methods of C++'s vector."""

    push_back = list.append
    size = list.__len__


def _raw_of(made: tensor.Tensor) -> RawTensor:
    return raw(made.detach())


def _of_two(name: str, doc: str, compute: Callable[[Any, Any], tensor.Tensor]) -> Any:
    def function(a: Any, b: Any) -> RawTensor:
        return _raw_of(compute(a, b))

    return errors.called(function, name, doc)


def _compared(compare: Callable[[Any, Any], tensor.Tensor]) -> Any:
    return lambda a, b: compare(a, b).as_type(a.dtype)


def _of_one(name: str, doc: str, compute: Callable[[Any], Any] | None = None) -> Any:
    """A function of a tensor; by default it calls the method of this name in lower case."""
    compute = compute or operator.methodcaller(name.lower())

    def function(x: tensor.Tensor) -> RawTensor:
        return _raw_of(compute(x))

    return errors.called(function, name, doc)


__add__ = _of_two("__add__", "`a + b`.", operator.add)
__sub__ = _of_two("__sub__", "`a - b`.", operator.sub)
__mul__ = _of_two("__mul__", "`a * b`, element by element.", operator.mul)
__div__ = _of_two("__div__", "`a / b`.", operator.truediv)
__lt__ = _of_two("__lt__", "`a < b`.", _compared(operator.lt))
__le__ = _of_two("__le__", "`a <= b`.", _compared(operator.le))
__gt__ = _of_two("__gt__", "`a > b`.", _compared(operator.gt))
__ge__ = _of_two("__ge__", "`a >= b`.", _compared(operator.ge))
__eq__ = _of_two("__eq__", "`a == b`.", _compared(operator.eq))
AddFloat = _of_two("AddFloat", "`a + b` for a number b.", operator.add)
SubFloat = _of_two("SubFloat", "`a - b` for a number b.", operator.sub)
MultFloat = _of_two("MultFloat", "`a * b` for a number b.", operator.mul)
DivFloat = _of_two("DivFloat", "`a / b` for a number b.", operator.truediv)
PowFloat = _of_two("PowFloat", "`a ** b` for a number b.", tensor.pow)
LTFloat = _of_two("LTFloat", "`a < b` for a number b.", _compared(operator.lt))
LEFloat = _of_two("LEFloat", "`a <= b` for a number b.", _compared(operator.le))
GTFloat = _of_two("GTFloat", "`a > b` for a number b.", _compared(operator.gt))
GEFloat = _of_two("GEFloat", "`a >= b` for a number b.", _compared(operator.ge))
EQFloat = _of_two("EQFloat", "`a == b` for a number b.", _compared(operator.eq))
Pow = _of_two("Pow", "`a ** b`.", tensor.pow)
Mult = _of_two("Mult", "The matrix product.", operator.matmul)

Abs = _of_one("Abs", "The absolute values.")
Acos = _of_one("Acos", "The arc cosine.")
Acosh = _of_one("Acosh", "The inverse hyperbolic cosine.")
Asin = _of_one("Asin", "The arc sine.")
Asinh = _of_one("Asinh", "The inverse hyperbolic sine.")
Atan = _of_one("Atan", "The arc tangent.")
Atanh = _of_one("Atanh", "The inverse hyperbolic tangent.")
Ceil = _of_one("Ceil", "Rounds up.")
Contiguous = _of_one("Contiguous", "The tensor in row-major order.")
Cos = _of_one("Cos", "The cosine.")
Cosh = _of_one("Cosh", "The hyperbolic cosine.")
Erf = _of_one("Erf", "The error function.")
Exp = _of_one("Exp", "The exponential function.")
Floor = _of_one("Floor", "Rounds down.")
Log = _of_one("Log", "The natural logarithm.")
ReLU = _of_one("ReLU", "The positive part.")
Round = _of_one("Round", "Rounds half away from zero.", autograd.round)
RoundE = _of_one("RoundE", "Rounds half to even.")
Sigmoid = _of_one("Sigmoid", "1 / (1 + e^-x).")
Sign = _of_one("Sign", "-1, 0 or 1.")
Sin = _of_one("Sin", "The sine.")
Sinh = _of_one("Sinh", "The hyperbolic sine.")
Sqrt = _of_one("Sqrt", "The square root.")
Square = _of_one("Square", "The square.")
Tan = _of_one("Tan", "The tangent.")
Tanh = _of_one("Tanh", "The hyperbolic tangent.")


def ReLUBackward(dy: tensor.Tensor, x: tensor.Tensor) -> RawTensor:
    """`dy` where `x` is positive, else 0."""
    return _raw_of(ops.where(x > 0, dy, ops.full((), 0, dy)))


def Reshape(x: tensor.Tensor, shape: Sequence[int]) -> RawTensor:
    """The same elements in another shape."""
    return _raw_of(x.reshape(shape))


def Transpose(x: tensor.Tensor, axes: Sequence[int]) -> RawTensor:
    """A view with the axes in another order."""
    return _raw_of(x.transpose(axes))


def DefaultTranspose(x: tensor.Tensor) -> RawTensor:
    """A view with the axes in reverse order."""
    return _raw_of(tensor.Tensor.transpose(x))


def SoftMax(x: tensor.Tensor, axis: int = -1) -> RawTensor:
    """Softmax over all axes from `axis` on together: the rows of a matrix by default."""
    return _raw_of(rules.softmax(x, axis))


def ConcatOn(tensors: Sequence[tensor.Tensor], axis: int) -> RawTensor:
    """The tensors concatenated along an axis."""
    return _raw_of(tensor.concatenate(tensors, axis))


def SliceOn(x: tensor.Tensor, start: int, end: int, axis: int) -> RawTensor:
    """A copy of the part from `start` to `end` along an axis.

    Raises:
        ValueError: a part that the axis does not have.
    """
    extent = x.shape[axis]
    if not 0 <= start < end <= extent:
        raise ValueError(f"SliceOn: got {start} to {end} on an axis of {extent}, want a part of it")
    before = (slice(None),) * (axis % x.rank)
    return _raw_of(x[(*before, slice(start, end))].clone())


def Sum(x: tensor.Tensor, axis: int) -> RawTensor:
    """The sum over an axis."""
    return _raw_of(tensor.sum(x, axis))


def SumAll(x: tensor.Tensor) -> RawTensor:
    """The sum of all elements, of shape (1,)."""
    return _raw_of(x.sum().reshape((1,)))


def SumAsFloat(x: tensor.Tensor) -> float:
    """The sum of all elements."""
    return float(x.sum())


def Average(x: tensor.Tensor, axis: int) -> RawTensor:
    """The mean over an axis."""
    return _raw_of(tensor.average(x, axis))


def CopyDataToFrom(
    dst: tensor.Tensor, src: tensor.Tensor, num: int, src_offset: int = 0, dst_offset: int = 0
) -> None:
    """Copies `num` elements; offsets are in elements, that of the source first."""
    tensor.copy_data_to_from(dst, src, num, dst_offset, src_offset)


def Bernoulli(p: float, x: tensor.Tensor) -> None:
    """Fills `x` with ones with probability `p`, else zeros."""
    x.bernoulli(p)


def Gaussian(mean: float, std: float, x: tensor.Tensor) -> None:
    """Fills `x` with normally distributed numbers."""
    x.gaussian(mean, std)


def Uniform(low: float, high: float, x: tensor.Tensor) -> None:
    """Fills `x` with numbers drawn uniformly from [low, high)."""
    x.uniform(low, high)


def Product(shape: Sequence[int]) -> int:
    """The product of extents."""
    return tensor.product(shape)


def SizeOf(dtype: Any) -> int:
    """Bytes of one element."""
    return tensor.sizeof(dtype)


errors.name_functions(globals(), {"raw"})
