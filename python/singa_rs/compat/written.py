"""The functions of SINGA's bindings that write their result into a tensor, raw or not."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .. import errors, tensor

__all__ = [
    "Add",
    "AddColumn",
    "AddColumnWithScale",
    "AddFloatWithRet",
    "AddRow",
    "AddRowWithScale",
    "Axpy",
    "Div",
    "DivColumn",
    "DivFloatWithRet",
    "DivRow",
    "EltwiseMult",
    "EltwiseMultFloatWithRet",
    "MultColumn",
    "MultRow",
    "MultWithRet",
    "MultWithScale",
    "PowFloatWithRet",
    "PowWithRet",
    "Sub",
    "SubColumn",
    "SubFloatWithRet",
    "SubRow",
    "SumColumns",
    "SumRows",
]


def _into(name: str, doc: str, compute: Callable[[Any, Any], tensor.Tensor]) -> Any:
    def function(a: Any, b: Any, ret: tensor.Tensor) -> None:
        ret.copy_from(compute(a, b))

    return errors.called(function, name, f"{doc}, written into `ret`.")


def _by_vector(name: str, doc: str, method: str) -> Any:
    """The function that calls a method of a matrix with a vector, in place."""

    def function(v: tensor.Tensor, M: tensor.Tensor) -> None:
        getattr(M, method)(v)

    return errors.called(function, name, doc)


Add = _into("Add", "`a + b`", operator.add)
Sub = _into("Sub", "`a - b`", operator.sub)
EltwiseMult = _into("EltwiseMult", "`a * b`, element by element", operator.mul)
Div = _into("Div", "`a / b`", operator.truediv)
AddFloatWithRet = _into("AddFloatWithRet", "`a + b` for a number b", operator.add)
SubFloatWithRet = _into("SubFloatWithRet", "`a - b` for a number b", operator.sub)
EltwiseMultFloatWithRet = _into("EltwiseMultFloatWithRet", "`a * b` for a number b", operator.mul)
DivFloatWithRet = _into("DivFloatWithRet", "`a / b` for a number b", operator.truediv)
PowWithRet = _into("PowWithRet", "`a ** b`", tensor.pow)
PowFloatWithRet = _into("PowFloatWithRet", "`a ** b` for a number b", tensor.pow)
MultWithRet = _into("MultWithRet", "The matrix product", operator.matmul)

AddColumn = _by_vector("AddColumn", "Adds `v` to every column of M, in place.", "add_column")
AddRow = _by_vector("AddRow", "Adds `v` to every row of M, in place.", "add_row")
DivColumn = _by_vector("DivColumn", "Divides every column of M by `v`, in place.", "div_column")
DivRow = _by_vector("DivRow", "Divides every row of M by `v`, in place.", "div_row")
MultColumn = _by_vector("MultColumn", "Multiplies columns of M by `v`, in place.", "mult_column")
MultRow = _by_vector("MultRow", "Multiplies every row of M by `v`, in place.", "mult_row")


def SubColumn(v: tensor.Tensor, M: tensor.Tensor) -> None:
    """Subtracts `v` from every column of M, in place."""
    tensor.add_column(-1, v, 1, M)


def SubRow(v: tensor.Tensor, M: tensor.Tensor) -> None:
    """Subtracts `v` from every row of M, in place."""
    tensor.add_row(-1, v, 1, M)


def AddColumnWithScale(alpha: float, beta: float, v: tensor.Tensor, M: tensor.Tensor) -> None:
    """`M = alpha * v + beta * M` with `v` added to every column, in place."""
    tensor.add_column(alpha, v, beta, M)


def AddRowWithScale(alpha: float, beta: float, v: tensor.Tensor, M: tensor.Tensor) -> None:
    """`M = alpha * v + beta * M` with `v` added to every row, in place."""
    tensor.add_row(alpha, v, beta, M)


def SumColumns(M: tensor.Tensor, v: tensor.Tensor) -> None:
    """Writes the sum of all columns into `v`."""
    v.copy_from(tensor.sum_columns(M))


def SumRows(M: tensor.Tensor, v: tensor.Tensor) -> None:
    """Writes the sum of all rows into `v`."""
    v.copy_from(tensor.sum_rows(M))


def Axpy(alpha: Any, x: tensor.Tensor, y: tensor.Tensor) -> None:
    """`y += alpha * x`; alpha a number or a tensor of one element."""
    y += x * alpha


def MultWithScale(
    alpha: float, A: tensor.Tensor, B: tensor.Tensor, beta: float, C: tensor.Tensor
) -> None:
    """`C = alpha * A @ B + beta * C`, in place."""
    tensor.mult(A, B, C, alpha, beta)


errors.name_functions(globals())
