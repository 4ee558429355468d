"""Arithmetic of tensors: the functions of two operands, and sums and extremes of several."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core import ShapeError, bool_
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import is_integral
from . import ops, reduce
from .binary import (
    Add,
    Binary,
    Comparison,
    Div,
    FloorDivide,
    Maximum,
    Minimum,
    Mul,
    Pow,
    Remainder,
    Sub,
    compute,
)
from .casting import floating, promoted
from .mode import mode
from .reduce import Axes
from .tape import Rule, edge

# Comparisons: the class, the function, the engine's name, and the docstring.
_COMPARISONS = """
Less          less           lt   `a < b`, bool (ONNX Less).
LessEqual     less_equal     le   `a <= b`, bool (ONNX LessOrEqual).
Greater       greater        gt   `a > b`, bool (ONNX Greater).
GreaterEqual  greater_equal  ge   `a >= b`, bool (ONNX GreaterOrEqual).
Equal         equal          eq   `a == b`, bool (ONNX Equal).
NotEqual      not_equal      ne   `a != b`, bool (NumPy not_equal).
And           _and           and  Whether both are non-zero, bool (ONNX And).
Or            _or            or   Whether one is non-zero, bool (ONNX Or).
Xor           _xor           xor  Whether exactly one is non-zero, bool (ONNX Xor).
"""

Function = Callable[[Any, Any], Tensor]


def _make_function(cls: type[Binary]) -> Function:
    """The fast path of `cls()(a, b)[0]` for two tensors that the engine takes as they are."""
    op, new, saves = cls.op, object.__new__, cls.saves
    counts = cls.f in ("add", "mul")  # of bools, for which the engine would return bools

    def function(a: Any, b: Any) -> Tensor:
        if type(a) is not Tensor or type(b) is not Tensor:
            return compute(cls, a, b)
        try:
            y = op(a, b)
        except TypeError:
            return compute(cls, a, b)
        if counts and y.dtype is bool_:
            return compute(cls, a, b)
        tape = mode.tape
        if tape:
            if not a.requires_grad and not b.requires_grad:
                y.requires_grad = False
                return y
            node = new(cls)
            shapes = (a.shape, b.shape)
            if shapes[0] != shapes[1]:
                node.shapes = shapes
            if saves is not None:
                node.saved = saves(a, b, y)
            node.edges = (edge(a), edge(b))
            y._creator = node
            if tape is not True:
                tape.note(node, (y,))
        return y

    return function


def _make_flat(cls: type[Binary]) -> Function:
    """The fast path of a function that has no gradient."""
    op = cls.op

    def function(a: Any, b: Any) -> Tensor:
        if type(a) is not Tensor or type(b) is not Tensor:
            return compute(cls, a, b)
        try:
            y = op(a, b)
        except TypeError:
            return compute(cls, a, b)
        y.requires_grad = False
        return y

    return function


FUNCTIONS: dict[str, Function] = {}
CLASSES: dict[str, type[Binary]] = {}


def _add(cls: type[Binary], name: str) -> None:
    """Makes the function of a class."""
    cls.op = ops.op("binary", f=cls.f)
    function = _make_function(cls) if cls.differentiable else _make_flat(cls)
    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__
    function.__doc__ = f"{cls.__doc__}\n\n    Numbers, arrays and other dtypes are converted first."
    CLASSES[cls.__name__], FUNCTIONS[name] = cls, function


for _cls in (Add, Sub, Mul, Div, Pow, Maximum, Minimum, Remainder, FloorDivide):
    _add(_cls, _cls.f)
for _row in _COMPARISONS.strip().splitlines():
    _class, _name, _f, _doc = _row.split(maxsplit=3)
    _body = {"f": _f, "__doc__": _doc, "__module__": __package__}
    _add(type(_class, (Comparison,), _body), _name)
#: The names of the functions in the table.
TABLE = frozenset(FUNCTIONS)


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
    if isinstance(second, tuple) or (is_integral(second) and (len(xs) > 2 or axis is not None)):
        raise TypeError(f"{op}: got {second!r} among {len(xs)} operands, want tensors or one axis")
    if is_integral(second):
        xs, axis = xs[:1], int(second)
    if len(xs) == 1:
        return reduction(as_tensor(xs[0]), axis, keepdims)
    if axis is not None or keepdims:
        raise TypeError(f"{op}: got an axis for {len(xs)} tensors, want one tensor")
    return None


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
    return Sum()(*promoted(l))[0] if one is None else one


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

    def forward(self, *xs: Tensor) -> Tensor:
        if not xs:
            raise ShapeError(f"{self.f}: got no tensors, want at least one")
        larger = ops.op("binary", f=self.f)
        return functools.reduce(larger, xs[1:], xs[0]) if len(xs) > 1 else ops.copy(*xs)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*ys, *xs)

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


def max(*l: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: E741 - SINGA's name
    """The largest of one tensor's elements, or the element-wise largest of several (ONNX Max).

    Arguments and errors are as in `sum`.
    """
    one = _reduced("max", reduce.reduce_max, l, axis, keepdims)
    return Max()(*promoted(l))[0] if one is None else one


def min(*l: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: E741 - SINGA's name
    """The smallest of one tensor's elements, or the element-wise smallest of several (ONNX Min).

    Arguments and errors are as in `sum`.
    """
    one = _reduced("min", reduce.reduce_min, l, axis, keepdims)
    return Min()(*promoted(l))[0] if one is None else one


def add_all(*xs: Tensor) -> Tensor:
    """The element-wise sum of tensors that broadcast; a copy of a single one."""
    return Sum()(*promoted(xs))[0]


class CosSim(Rule):
    """The cosine of the angle between rows (SINGA CosSim): (N, D), (N, D) to (N,)."""

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

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*xs, *ys)

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


def cossim(a: Tensor, b: Tensor) -> Tensor:
    """The cosine of the angle between the rows of `a` and `b`, both (N, D); (N,)."""
    return CosSim()(*map(floating, promoted((a, b))))[0]


class PRelu(Rule):
    """`x` where it is positive, else `slope * x`; the slope broadcasts to x (ONNX PRelu)."""

    def forward(self, x: Tensor, slope: Tensor) -> Tensor:
        y = ops.where(ops.scalar_op("lt", 0)(x), ops.mul(x, slope), x)
        if y.shape != x.shape:
            raise ShapeError(f"prelu: got shapes {x.shape}, {slope.shape}, want a slope that fits")
        return y

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*xs)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, Tensor]:
        """`dy`, times the slope where x is negative; there `dy * x` for the slope."""
        (dy,), (x, slope) = dys, (self.load(0), self.load(1))
        negative = ops.scalar_op("lt", 0)(x)
        dx = ops.where(negative, ops.mul(dy, slope), dy)
        to_slope = ops.where(negative, ops.mul(dy, x), ops.full((), 0, dy))
        return dx, ops.reduce_to(to_slope, slope.shape)


def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """`x` where it is positive, else `slope * x` (ONNX PRelu)."""
    return PRelu()(*promoted((x, slope)))[0]


CLASSES.update((c.__name__, c) for c in (Sum, Mean, Max, Min, CosSim, PRelu))
FUNCTIONS.update((f.__name__, f) for f in (sum, mean, max, min, add_all, cossim, prelu))
