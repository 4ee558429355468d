"""SINGA's functions on tensors, which call methods and operators of their arguments.

`autograd`, which gives tensors these methods, documents what they compute and their gradients.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._core import Handle, ShapeError
from ..errors import called

if TYPE_CHECKING:
    from . import Tensor


def _method(name: str, doc: str) -> Callable[[Tensor], Tensor]:
    """The function that calls a method of its argument."""

    def function(t: Tensor) -> Tensor:
        return getattr(t, name)()

    return called(function, name, doc)


abs = _method("abs", "Absolute values.")
exp = _method("exp", "Exponentials.")
ceil = _method("ceil", "Rounds up.")
log = _method("log", "Natural logarithms.")
sigmoid = _method("sigmoid", "`1 / (1 + exp(-t))`.")
sign = _method("sign", "-1, 0 or 1.")
sqrt = _method("sqrt", "Square roots.")
square = _method("square", "Squares.")
tanh = _method("tanh", "Hyperbolic tangents.")


def _into(made: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return made
    out.copy_from(made)
    return out


def sum(t: Tensor, axis: Any = None, out: Tensor | None = None) -> Tensor:
    """The sum over `axis` (int, tuple or None for all), written into `out` if given.

    Integers and bool give int64, as in NumPy (where uint8 gives uint64, which tensors lack).
    """
    return _into(t.sum(axis), out)


def average(t: Tensor, axis: int | None = None) -> Any:
    """The mean: a float over everything, a tensor over one axis."""
    return float(t.mean()) if axis is None else t.mean(axis)


def pow(t: Tensor, x: Any, out: Tensor | None = None) -> Tensor:
    """`t ** x` for a number or a tensor `x`."""
    if not is_tensor(t):
        raise TypeError(f"pow: got {type(t).__name__}, want a Tensor")
    return _into(t**x, out)


def softmax(t: Tensor, out: Tensor | None = None) -> Tensor:
    """Softmax over the last axis."""
    return _into(t.softmax(-1), out)


def _comparison(name: str, sign: str) -> Callable[[Tensor, Any], Tensor]:
    compare = getattr(operator, name)

    def function(t: Tensor, x: Any) -> Tensor:
        return compare(t, x)

    return called(function, name, f"`t {sign} x`, bool.")


lt = _comparison("lt", "<")
le = _comparison("le", "<=")
gt = _comparison("gt", ">")
ge = _comparison("ge", ">=")
eq = _comparison("eq", "==")


def _arithmetic(name: str, sign: str, compute: Any) -> Callable[..., Tensor]:
    def function(lhs: Any, rhs: Any, ret: Tensor | None = None) -> Tensor:
        return _into(compute(lhs, rhs), ret)

    return called(function, name, f"`lhs {sign} rhs`, written into `ret` if given.")


add = _arithmetic("add", "+", operator.add)
sub = _arithmetic("sub", "-", operator.sub)
eltwise_mult = _arithmetic("eltwise_mult", "*", operator.mul)
div = _arithmetic("div", "/", operator.truediv)


def mult(
    A: Tensor, B: Tensor, C: Tensor | None = None, alpha: float = 1.0, beta: float = 0.0
) -> Tensor:
    """`A @ B`; with `C`, `C = alpha * A @ B + beta * C` in place (BLAS gemm, gemv)."""
    if C is None:
        return A @ B
    made = (A @ B) * alpha
    return _into(made + C * beta if beta else made, C)


def sum_columns(M: Tensor) -> Tensor:
    """The sum of all columns: shape (rows,)."""
    return M.sum(1)


def sum_rows(M: Tensor) -> Tensor:
    """The sum of all rows: shape (columns,)."""
    return M.sum(0)


def product(shape: Sequence[int]) -> int:
    """The product of the extents."""
    return math.prod(shape)


def contiguous(tensor: Tensor) -> Tensor:
    """The tensor itself if it is row-major, else a row-major copy."""
    return tensor.contiguous()


def reshape(tensor: Tensor, shape: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    return tensor.reshape(shape)


def transpose(t: Tensor, axes: Any = None) -> Tensor:
    """A view with the axes in another order, reversed by default."""
    return t.transpose(axes)


def repeat(t: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element `repeats` times, as NumPy's repeat."""
    return t.repeat(repeats, axis)


def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors concatenated along an axis."""
    if not tensors:
        raise ShapeError("concatenate: got no tensors, want at least one")
    first, *rest = tensors
    return first._concatenated([first, *rest], axis)


def einsum(ops: str, *args: Tensor) -> Tensor:
    """Einstein summation, as NumPy's einsum."""
    if not args:
        raise ShapeError("einsum: got no tensors, want at least one")
    return args[0]._einsum(ops, args)


def tensordot(A: Tensor, B: Tensor, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes, as NumPy's tensordot."""
    return A._tensordot(B, axes)


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Handle)
