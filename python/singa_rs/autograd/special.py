"""Special functions that have an order or several operands."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .casting import floating
from .pairs import float_operands, of_logarithm
from .parametrised import Polygamma
from .precision import rounded_once
from .table import as_method, public
from .unary import FUNCTIONS as UNARY


@public(Polygamma)
def polygamma(n: int, x: Tensor) -> Tensor:
    """Derivative `n` of `digamma` (PyTorch polygamma); infinite at 0 and at the negative integers.

    Args:
        n: the order, from 1 to 100.
        x: floats of any shape; integers become float32.

    Raises:
        ValueError: another order.
    """
    return Polygamma(n)(floating(x))[0]


@as_method("polygamma")
def _polygamma(self: Tensor, n: int) -> Tensor:
    """Derivative `n`, from 1 to 100, of `digamma` (PyTorch polygamma); infinite at 0 and at the
    negative integers.

    Raises:
        ValueError: another order.
    """
    return polygamma(n, self)


@public(methods="xlog1py")
@rounded_once
def xlog1py(a: Tensor, b: Any) -> Tensor:
    """`a * log(1 + b)`, accurate where `b` is small, and 0 where `a` is 0, unless `b` is NaN
    (PyTorch special.xlog1py); integers become float32.

    Args:
        a, b: tensors, numbers or arrays that broadcast.

    Raises:
        ShapeError: shapes that do not broadcast.
    """
    return of_logarithm(*float_operands("xlog1py", a, b), UNARY["log1p"], -1)
