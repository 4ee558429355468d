"""Sums and extremes of several tensors, and other functions of two."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core import ShapeError
from ..refusals import is_integral
from ..tensor import Tensor, as_tensor
from . import ops, reduce
from .casting import floating, promoted, with_numbers
from .extremes import with_indices
from .precision import rounded_once
from .reduce import Axes
from .rule import Rule
from .table import public


class Sum(Rule):
    """The element-wise sum of tensors that broadcast (ONNX Sum)."""

    def forward(self, *xs: Tensor) -> Tensor:
        if not xs:
            raise ShapeError("sum: got no tensors, want at least one")
        return functools.reduce(ops.add, xs[1:], xs[0]) if len(xs) > 1 else ops.copy(*xs)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.shapes = ops.shapes_if_broadcast(xs, ys[0]) or (None,) * len(xs)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy` for each."""
        return tuple(ops.reduce_to(dys[0], shape) for shape in self.shapes)


class Mean(Sum):
    """The element-wise mean of tensors that broadcast (ONNX Mean)."""

    def forward(self, *xs: Tensor) -> Tensor:
        return ops.scale(super().forward(*xs), 1 / len(xs))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy / n` for each."""
        return super().gradients((ops.scale(dys[0], 1 / len(self.shapes)),), wanted)


def _reduced(
    op: str, reduction: Callable[..., Tensor], xs: tuple[Any, ...], axis: Axes, keepdims: bool
) -> Tensor | None:
    """The reduction of one tensor; None if there are several, or none."""
    second = xs[1] if len(xs) > 1 else None
    if isinstance(second, (tuple, list)) and len(xs) == 2 and all(map(is_integral, second)):
        if axis is None and second:
            return reduction(as_tensor(xs[0]), tuple(map(int, second)), keepdims)
    if isinstance(second, tuple) or (is_integral(second) and (len(xs) > 2 or axis is not None)):
        raise TypeError(f"{op}: got {second!r} among {len(xs)} operands, want tensors or one axis")
    if is_integral(second):
        xs, axis = xs[:1], int(second)
    if len(xs) == 1:
        return reduction(as_tensor(xs[0]), axis, keepdims)
    if axis is not None or keepdims:
        raise TypeError(f"{op}: got an axis and {len(xs)} tensors, want one tensor")
    return None


def _only(op: str, xs: tuple[Any, ...]) -> Tensor:
    if len(xs) != 1:
        raise TypeError(f"{op}: got a dim and {len(xs)} operands, want one tensor")
    return as_tensor(xs[0])


@public(Sum, precision="wide")
def sum(*l: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: E741 - SINGA's name
    """The sum of one tensor's elements, or the element-wise sum of several (ONNX Sum).

    `sum(t)`, `sum(t, 1)` and `sum(t, axis=(0, 1))` reduce, as NumPy's; `sum(a, b, ...)` adds
    tensors that broadcast, as SINGA's. Integers reduce to int64; element by element they stay in
    their dtype, and wrap, as in NumPy's addition.

    Raises:
        TypeError: an axis besides several tensors.
        ValueError: an axis that the tensor does not have.
    """
    one = _reduced("sum", reduce.reduce_sum, l, axis, keepdims)
    return Sum()(*promoted(with_numbers("sum", l)))[0] if one is None else one


@public(Mean, precision="wide")
def mean(*l: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: E741 - SINGA's name
    """The mean of one tensor's elements, or the element-wise mean of several (ONNX Mean).

    Arguments and errors are as in `sum`. Integers become float32.
    """
    one = _reduced("mean", reduce.reduce_mean, l, axis, keepdims)
    if one is not None:
        return one
    return Mean()(*map(floating, promoted(l)))[0]


class Max(Rule):
    """The element-wise largest of tensors that broadcast (ONNX Max); NaN wins.

    Where several are largest they share the gradient.
    """

    f = "maximum"
    keeps = ("ys", "xs")

    def forward(self, *xs: Tensor) -> Tensor:
        if not xs:
            raise ShapeError(f"{self.f}: got no tensors, want at least one")
        larger = ops.op("binary", f=self.f)
        return functools.reduce(larger, xs[1:], xs[0]) if len(xs) > 1 else ops.copy(*xs)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy` where each is largest, divided by how many are."""
        (dy,), y, equal = dys, self.load(0), ops.op("binary", f="eq")
        xs = [self.load(i + 1) for i in range(len(wanted))]
        won = [equal(x, y) for x in xs]
        share = ops.div(dy, functools.reduce(ops.add, (ops.cast(w, dy.dtype) for w in won)))
        none = ops.full((), 0, dy)
        pairs = zip(won, xs, strict=True)
        return tuple(ops.reduce_to(ops.where(w, share, none), x.shape) for w, x in pairs)


class Min(Max):
    """The element-wise smallest of tensors that broadcast (ONNX Min); NaN wins.

    Where several are smallest they share the gradient.
    """

    f = "minimum"


def _in_one_dtype(op: str, xs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Operands in one dtype, in which bools alone stay bools."""
    return promoted(with_numbers(op, xs), counts=False)


@public(Max)
def max(
    *l: Any,  # noqa: E741 - SINGA's name
    axis: Axes = None,
    keepdims: bool = False,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """The largest of one tensor's elements, or the element-wise largest of several (ONNX Max).

    Arguments and errors are as in `sum`; with `dim` it gives what the method does.
    """
    if dim is not None or keepdim:
        return with_indices("max", _only("max", l), axis, keepdims, dim, keepdim)
    one = _reduced("max", reduce.reduce_max, l, axis, keepdims)
    return Max()(*_in_one_dtype("max", l))[0] if one is None else one


@public(Min)
def min(
    *l: Any,  # noqa: E741 - SINGA's name
    axis: Axes = None,
    keepdims: bool = False,
    dim: int | None = None,
    keepdim: bool = False,
) -> Any:
    """The smallest of one tensor's elements, or the element-wise smallest of several (ONNX Min).

    Arguments and errors are as in `sum`; with `dim` it gives what the method does.
    """
    if dim is not None or keepdim:
        return with_indices("min", _only("min", l), axis, keepdims, dim, keepdim)
    one = _reduced("min", reduce.reduce_min, l, axis, keepdims)
    return Min()(*_in_one_dtype("min", l))[0] if one is None else one


@public()
def add_all(*xs: Tensor) -> Tensor:
    """The element-wise sum of tensors that broadcast; a copy of a single one
    (SINGA add_all)."""
    return Sum()(*promoted(with_numbers("add_all", xs)))[0]


class CosSim(Rule):
    """The cosine of the angle between rows (SINGA CosSim): (N, D), (N, D) to (N,)."""

    keeps = ("xs", "ys")

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        if a.rank != 2 or a.shape != b.shape:
            raise ShapeError(f"cossim: got shapes {a.shape}, {b.shape}, want equal matrices")
        product = ops.mul(self._length(a), self._length(b))
        return ops.div(self._total(ops.mul(a, b)), product)

    @staticmethod
    def _total(x: Tensor) -> Tensor:
        return ops.op("reduce", f="sum", axes=(1,), keepdims=False)(x)

    def _length(self, x: Tensor) -> Tensor:
        return ops.op("unary", f="sqrt")(self._total(ops.mul(x, x)))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy * (b / |b| - y a / |a|) / |a|`, and the same with the roles exchanged."""
        a, b, y = (self.load(i) for i in range(3))
        column = (y.shape[0], 1)
        dy, y = ops.reshape(dys[0], column), ops.reshape(y, column)
        lengths = [ops.reshape(self._length(x), column) for x in (a, b)]
        units = [ops.div(x, n) for x, n in zip((a, b), lengths, strict=True)]
        made = []
        for mine, other, length in ((0, 1, lengths[0]), (1, 0, lengths[1])):
            turn = ops.sub(units[other], ops.mul(y, units[mine]))
            made.append(ops.mul(turn, ops.div(dy, length)))
        return tuple(made)


@public(CosSim, precision="wide")
@rounded_once
def cossim(a: Tensor, b: Tensor) -> Tensor:
    """The cosine of the angle between the rows of `a` and `b`, both (N, D); (N,) (SINGA
    cossim)."""
    return CosSim()(*map(floating, promoted((a, b))))[0]


class PRelu(Rule):
    """`x` where it is positive, else `slope * x`; both broadcast (ONNX PRelu, SINGA PRelu)."""

    keeps = ("xs",)

    def forward(self, x: Tensor, slope: Tensor) -> Tensor:
        return ops.where(ops.scalar_op("le", 0)(x), ops.mul(x, slope), x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, Tensor]:
        """`dy`, times the slope where x is not positive; there `dy * x` for the slope."""
        (dy,), (x, slope) = dys, (self.load(0), self.load(1))
        below = ops.scalar_op("le", 0)(x)
        dx = ops.where(below, ops.mul(dy, slope), dy)
        to_slope = ops.where(below, ops.mul(dy, x), ops.full((), 0, dy))
        return ops.reduce_to(dx, x.shape), ops.reduce_to(to_slope, slope.shape)


@public(PRelu)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """`x` where it is positive, else `slope * x` (ONNX PRelu); both broadcast, as in SINGA."""
    return PRelu()(*promoted(with_numbers("prelu", (x, slope))))[0]
