"""The functions of `tensor`: SINGA's names and arguments of functions and operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from .._core import Handle, ShapeError
from ..shown import misgiven
from ..tensor import Tensor, as_tensor
from ..tensor.takers import tensors_only
from . import contract, shape
from .binary import ARITHMETIC, COMPARISONS, ROWS
from .table import of_tensor


def _into(made: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return made
    out.copy_from(made)
    return out


@of_tensor
@tensors_only("out")
def sum(t: Tensor, axis: Any = None, out: Tensor | None = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (int, tuple or None for all), written into `out` if given.

    Integers and bool give int64, as in NumPy (where uint8 gives uint64, which tensors only store).
    """
    return _into(t.sum(axis, keepdims), out)


@of_tensor
def average(t: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """The mean: a float over everything, a tensor over one axis, or with `keepdims`."""
    return float(t.mean()) if axis is None and not keepdims else t.mean(axis, keepdims)


@of_tensor
@tensors_only("out")
def pow(t: Tensor, x: Any, out: Tensor | None = None) -> Tensor:
    """`t ** x` for a number or a tensor `x`."""
    if not isinstance(t, Handle):
        raise TypeError(f"pow: {misgiven(t)}")
    return _into(t**x, out)


@of_tensor
@tensors_only("out")
def softmax(t: Tensor, out: Tensor | None = None, axis: int = -1) -> Tensor:
    """Softmax over an axis, written into `out` if given."""
    return _into(t.softmax(axis), out)


def _comparison(sign: str, name: str) -> None:
    compare = getattr(operator, COMPARISONS[sign])

    def function(t: Tensor, x: Any) -> Tensor:
        if not isinstance(t, Handle) and not isinstance(x, Handle):
            t = as_tensor(t)  # Python would compare lists
        return compare(t, x)

    of_tensor(function, name, f"`t {sign} x`, bool.")


def _arithmetic(sign: str, name: str) -> None:
    compute = getattr(operator, ARITHMETIC[sign])

    @tensors_only("ret")
    def function(lhs: Any, rhs: Any, ret: Tensor | None = None) -> Tensor:
        if not isinstance(lhs, Handle) and not isinstance(rhs, Handle):
            lhs = as_tensor(lhs)  # Python would join lists
        return _into(compute(lhs, rhs), ret)

    of_tensor(function, name, f"`lhs {sign} rhs`, written into `ret` if given.")


for _row in ROWS.values():
    if _row.tensor:
        (_comparison if _row.operator in COMPARISONS else _arithmetic)(_row.operator, _row.tensor)


@of_tensor
@tensors_only("C")
def mult(
    A: Tensor, B: Tensor, C: Tensor | None = None, alpha: float = 1.0, beta: float = 0.0
) -> Tensor:
    """`alpha * A @ B`; with `C`, `C = alpha * A @ B + beta * C` in place (BLAS gemm, gemv)."""
    if C is None:
        is_whole = isinstance(alpha, (int, float)) and alpha == 1
        return A @ B if is_whole else (A @ B) * alpha
    made = (A @ B) * alpha
    return _into(made + C * beta if beta else made, C)


@of_tensor
def sum_columns(M: Tensor) -> Tensor:
    """The sum of all columns of a matrix: shape (rows, 1)."""
    return _matrix(M, "sum_columns").sum(1, True)


@of_tensor
def sum_rows(M: Tensor) -> Tensor:
    """The sum of all rows of a matrix: shape (1, columns)."""
    return _matrix(M, "sum_rows").sum(0, True)


def _matrix(M: Tensor, op: str) -> Tensor:
    if M.rank != 2:
        raise ShapeError(f"{op}: got shape {M.shape}, want a matrix")
    return M


@of_tensor
def product(shape: Sequence[int]) -> int:
    """The product of the extents."""
    return math.prod(shape)


@of_tensor
def contiguous(tensor: Tensor) -> Tensor:
    """The tensor itself if it is row-major, else a row-major copy."""
    return tensor.contiguous()


@of_tensor
def reshape(tensor: Tensor, shape: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    return tensor.reshape(shape)


@of_tensor
def transpose(t: Tensor, axes: Any = None) -> Tensor:
    """A view with the axes in another order, reversed by default."""
    return Tensor.transpose(t, axes)


@of_tensor
def repeat(t: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element `repeats` times, as NumPy's repeat."""
    return t.repeat(repeats, axis)


@of_tensor
def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors concatenated along an axis."""
    if not tensors:
        raise ShapeError("concatenate: got no tensors, want at least one")
    return shape.cat(tensors, axis)


@of_tensor
def einsum(ops: str, *args: Tensor) -> Tensor:
    """Einstein summation, as NumPy's einsum."""
    if not args:
        raise ShapeError("einsum: got no tensors, want at least one")
    return contract.einsum(ops, args)


@of_tensor
def tensordot(A: Tensor, B: Tensor, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes, as NumPy's tensordot."""
    return contract.tensordot(A, B, axes)


@of_tensor
def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Handle)
