"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor
from ..table import reads

#: Functions of one tensor without attributes: ONNX's name, and `autograd`'s.
_ONE = """
    Abs=abs Acos=acos Acosh=acosh Asin=asin Asinh=asinh Atan=atan Atanh=atanh Ceil=ceil Cos=cos
    Cosh=cosh Erf=erf Exp=exp Floor=floor HardSwish=hardswish Log=log Mish=mish Neg=negative
    Not=_not Reciprocal=reciprocal Relu=relu Round=rounde Sigmoid=sigmoid Sign=sign Sin=sin
    Sinh=sinh Softplus=softplus Softsign=softsign Sqrt=sqrt Tan=tan Tanh=tanh IsNaN=isnan
    BitwiseNot=bitwise_not
"""
#: Of two.
_TWO = """
    Add=add Sub=sub Mul=mul And=_and Or=_or Xor=_xor Equal=equal Greater=greater Less=less
    GreaterOrEqual=greater_equal LessOrEqual=less_equal BitwiseAnd=bitwise_and
    BitwiseOr=bitwise_or BitwiseXor=bitwise_xor
"""


def _pairs(text: str) -> list[tuple[str, str]]:
    return [tuple(one.split("=")) for one in text.split()]  # type: ignore[misc]


def _of_one(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    # Attributes of old opsets, such as consumed_inputs, asked for memory to be shared.
    return lambda x, **_: cast(function(x), x.dtype) if function not in _TO_BOOL else function(x)


_TO_BOOL = (autograd._not, autograd.isnan)


def _of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(a: Tensor, b: Tensor, **old: Any) -> Tensor:
        return function(a, aligned(a, b, old.get("axis")) if old.get("broadcast") else b)

    return run


def aligned(a: Tensor, b: Tensor, axis: int | None) -> Tensor:
    """The second operand of opsets below 7, whose axes begin at `axis` of the first."""
    if axis is None:
        return b
    at = axis % a.rank
    return b.reshape((*b.shape, *(1,) * (a.rank - at - b.rank)))


for _name, _function in _pairs(_ONE):
    reads(_name, calculates=True)(_of_one(getattr(autograd, _function)))
for _name, _function in _pairs(_TWO):
    reads(_name, calculates=True)(_of_two(getattr(autograd, _function)))
