"""The bits of integers: what the table of binary functions does not have."""

from __future__ import annotations

from .._core import DTypeError, bool_
from ..tensor import Tensor
from . import binary, unary
from .table import public


@public()
def bitwise_not(x: Tensor) -> Tensor:
    """The bits that an integer does not have; of bools, whether they do not hold (ONNX BitwiseNot,
    NumPy invert).

    Raises:
        DTypeError: neither integers nor bools.
    """
    if x.dtype == bool_:
        return unary.FUNCTIONS["_not"](x)
    if not x.dtype.is_int or x.dtype.is_storage:
        raise DTypeError(f"bitwise_not: got dtype {x.dtype.name}, want integers or bool")
    return binary.FUNCTIONS["bitwise_xor"](x, 255 if x.dtype.name == "uint8" else -1)
