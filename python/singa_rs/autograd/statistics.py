"""Variances, norms, and sums of exponentials, over axes."""

from __future__ import annotations

import math
from typing import Any

from ..refusals import strict_flag
from ..tensor import Tensor
from ..tensor.numbers import real
from . import ops, reduce, unary
from .casting import cast, floating
from .factors import svdvals
from .finite import GREATEST
from .index import where
from .precision import rounded_once
from .reduce import Axes, Reduction, as_axes, reduced_axes
from .shape import plain_reshape, transpose
from .table import as_method, public
from .terms import wide


def narrowed(made: Tensor, x: Tensor) -> Tensor:
    """A result in the dtype of `x`, if that is of floats."""
    return cast(made, x.dtype) if x.dtype.is_float else made


def root(x: Tensor) -> Tensor:
    """Square roots; the gradient at 0 is 0."""
    is_zero = x.detach() == 0
    return where(is_zero, 0.0, unary.FUNCTIONS["sqrt"](where(is_zero, 1.0, x)))


def _deviation(op: str, x: Tensor, axis: Axes, keepdims: bool, ddof: float) -> Tensor:
    over, ddof = reduced_axes(axis, x.rank, op), real(ddof, f"{op}: ddof")
    x_wide, keeps = wide(x), strict_flag(keepdims, f"{op}: keepdims")
    if not over:
        x_wide, over, keeps = x_wide.unsqueeze(-1), (x.rank,), False
    from_mean = x_wide - reduce.reduce_mean(x_wide, over, True)
    count = math.prod(x_wide.shape[i] for i in over)
    total = reduce.reduce_sum(from_mean * from_mean, over, keeps)
    return total / max(count - ddof, 0.0)


@public(methods="var", precision="wide")
def var(x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
    """The variance over `axis`, all by default (NumPy var): the sum of the squared distances from
    the mean, divided by `n - ddof`. PyTorch's default is `ddof=1`.

    Integers become float32; sums of float16 and bfloat16 are in float32. Where `n` is `ddof` or
    less it is infinite, and NaN if all elements are equal or there are none.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return narrowed(_deviation("var", x, axis, keepdims, ddof), x)


@public(methods="std", precision="wide")
def std(x: Tensor, axis: Axes = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
    """The standard deviation over `axis`, all by default (NumPy std): the square root of `var`,
    with the same arguments. Where it is 0 the gradient is 0."""
    return narrowed(root(_deviation("std", x, axis, keepdims, ddof)), x)


def _order(ord: Any) -> Any:
    known = (None, "fro", "nuc")
    return ord if isinstance(ord, str | None) and ord in known else real(ord, "norm: ord")


@public(methods="norm", precision="wide")
def norm(x: Tensor, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices (NumPy linalg.norm).

    Integers become float32; sums of float16 and bfloat16 are in float32. The gradient of a norm of
    0 is 0.

    Args:
        x: any shape.
        ord: of vectors, any number `p` from 1, the root `p` of the sum of `|x| ** p`, 0, how many
            elements are not 0, which has no gradient, and plus or minus infinity, the greatest or
            least absolute value. Of matrices 1 (infinity), the greatest sum of the absolute values
            of a column (row), 2, the greatest singular value, those with a minus sign for the
            least, "nuc", the sum of the singular values, and "fro". By default the square root of
            the sum of squares.
        axis: one axis, of vectors, or two, of the rows and columns of matrices. None is the only
            axis of a vector and the two of a matrix, or, without `ord`, all axes.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        ValueError: an order that is not among these; axes that `x` does not have.
    """
    ord = _order(ord)
    if not x.rank and axis is not None and not reduced_axes(axis, 0, "norm"):
        x, axis, keepdims = plain_reshape(x, (1,)), 0, False
    over = as_axes(axis, x.rank, "norm")
    size, sides = wide(x), len(over)
    if ord is None or (ord == "fro" and sides == 2) or (ord == 2 and sides == 1):
        return narrowed(root(reduce.reduce_sum(size * size, over, keepdims)), x)
    if sides == 1 and not isinstance(ord, str) and (ord >= 1 or ord in (0, -math.inf)):
        return narrowed(_of_vectors(abs(size), ord, over, keepdims), x)
    if sides == 2 and ord in ("nuc", 1, 2, math.inf, -1, -2, -math.inf):
        keeps = strict_flag(keepdims, "norm: keepdims")
        return narrowed(_of_matrices(size, ord, over, keeps), x)
    raise ValueError(
        f"norm: got ord {ord!r} over {sides} axes, want 0, a number from 1, inf or -inf over one "
        "axis, or 1, 2, inf, -1, -2, -inf, 'fro' or 'nuc' over two"
    )


def _of_matrices(x: Tensor, ord: Any, over: tuple[int, ...], keepdims: bool) -> Tensor:
    if ord in ("nuc", 2, -2):
        rest = [i for i in range(x.rank) if i not in over]
        values = svdvals(transpose(x, [*rest, *over]))
        made = _extreme(values, ord, -1) if ord != "nuc" else reduce.reduce_sum(values, -1, False)
        return made.unsqueeze(over) if keepdims else made
    rows, columns = over if abs(ord) == 1 else over[::-1]
    made = _extreme(reduce.reduce_sum(abs(x), rows, True), ord, columns, True)
    return made if keepdims else made.squeeze(over)


def _extreme(x: Tensor, ord: float, axis: Axes, keepdims: bool = False) -> Tensor:
    """The greatest, of nothing 0, or for an order below 0 the least."""
    if ord > 0 and not x.numel:
        return reduce.reduce_sum(x, axis, keepdims)
    return (reduce.reduce_max if ord > 0 else reduce.reduce_min)(x, axis, keepdims)


def _of_vectors(size: Tensor, ord: float, over: tuple[int, ...], keepdims: bool) -> Tensor:
    if ord == 0:
        found = reduce.reduce_sum(size.detach() != 0, over, keepdims)
        return cast(found, size.dtype)
    if math.isinf(ord):
        return _extreme(size, ord, over, keepdims)
    if ord == 1:
        return reduce.reduce_sum(size, over, keepdims)
    return nth_root(reduce.reduce_sum(size**ord, over, keepdims), ord)


def nth_root(total: Tensor, n: float) -> Tensor:
    """Roots of any degree from 1; the gradient at 0 is 0."""
    if n in (1, 2):
        return total if n == 1 else root(total)
    is_zero = total.detach() == 0
    return where(is_zero, 0.0, where(is_zero, 1.0, total) ** (1 / n))


class LogSumExp(Reduction):
    """The logarithm of the sum of exponentials over `axes`, all by default (ONNX ReduceLogSumExp),
    without overflow; integers become float32."""

    f = "logsumexp"
    keeps = ("xs", "ys")

    def forward(self, x: Tensor) -> Tensor:
        self.shape = x.shape
        self.over = reduced_axes(self.axes, len(self.shape), "logsumexp")
        if not self.over:
            return ops.copy(x)
        if not x.numel:  # the logarithm of sums of nothing
            return ops.op("unary", f="log")(ops.reduce_op("sum", self.over, self.keepdims)(x))
        most = ops.reduce_op("max", self.over, True)(x)
        is_finite = ops.scalar_op("lt", math.inf)(ops.op("unary", f="abs")(most))
        shift = ops.where(is_finite, most, ops.full((), 0, x))
        powers = ops.op("unary", f="exp")(ops.sub(x, shift))
        total = ops.reduce_op("sum", self.over, True)(powers)
        made = ops.add(ops.op("unary", f="log")(total), shift)
        return made if self.keepdims else ops.reshape(made, self._short())

    def _short(self) -> tuple[int, ...]:
        return tuple(n for i, n in enumerate(self.shape) if i not in self.over)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy * exp(x - y)`, which is softmax; 0 where `y` is minus infinity."""
        y = ops.scalar_op("maximum", -GREATEST[self.load(1).dtype.name])(self.load(1))
        share = ops.op("unary", f="exp")(ops.sub(self.load(0), self.spread(y)))
        return (ops.mul(self.spread(dys[0]), share),)


@public(LogSumExp, methods="logsumexp", precision="wide")
@rounded_once
def logsumexp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over `axis`, all by default, without overflow
    (PyTorch logsumexp, ONNX ReduceLogSumExp). Integers become float32; of no elements it is minus
    infinity, and there the gradient is 0, also of elements that are all minus infinity.

    Raises:
        ValueError: an axis that `x` does not have.
    """
    return LogSumExp(axis, keepdims)(floating(x))[0]


@as_method("log_softmax", precision="wide")
def _log_softmax(self: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax over one axis, without overflow."""
    return reduce.log_softmax(self, axis)
