"""What ONNX, the engine and `autograd` call functions element by element: the table from which the
functions are read and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Name(NamedTuple):
    """What a function is called."""

    onnx: str
    engine: str
    #: That of `autograd`.
    function: str


def _names(text: str) -> tuple[Name, ...]:
    """Names from `Onnx`, `Onnx=engine` and `Onnx=engine/function`. Left out, the engine's is ONNX's
    in small letters, and the function's the engine's."""
    found = []
    for one in text.split():
        onnx, _, others = one.partition("=")
        engine, _, function = (others or onnx.lower()).partition("/")
        found.append(Name(onnx, engine, function or engine))
    return tuple(found)


#: Of one tensor, with a result of its dtype.
OF_ONE = _names("""
    Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg=neg/negative Reciprocal
    Round=rounde Sigmoid Sin Sinh Softplus Softsign Sqrt Tan Tanh
""")
#: The same by the sign, which unsigned integers do not have.
BY_SIGN = _names("Abs Relu Sign")
#: Of two tensors.
OF_TWO = _names("""
    Add Sub Mul And=and/_and Or=or/_or Xor=xor/_xor Equal=eq/equal BitwiseAnd=bitwise_and
    BitwiseOr=bitwise_or BitwiseXor=bitwise_xor
""")
COMPARISONS = _names("""
    Greater=gt/greater Less=lt/less GreaterOrEqual=ge/greater_equal LessOrEqual=le/less_equal
""")
#: Of two tensors, which are read otherwise for integers.
OF_NUMBERS = _names("Div Pow Max=maximum Min=minimum")


def by_engine(*tables: Iterable[Name]) -> dict[str, str]:
    """ONNX's names by the engine's."""
    return {one.engine: one.onnx for table in tables for one in table}
