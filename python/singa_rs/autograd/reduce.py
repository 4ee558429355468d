"""Reductions over axes: sums, means, extremes and their positions, products; softmax."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .._core import int64
from ..errors import called
from ..refusals import flag, is_integral
from ..tensor import Tensor
from ..tensor.numbers import whole, wholes
from . import ops
from .casting import floating
from .precision import in_precision
from .rule import Rule, function
from .table import as_method, public

Axes = int | Sequence[int] | None


def as_axes(axes: Axes, rank: int, op: str) -> tuple[int, ...]:
    """The axes as non-negative ints; all of them for None.

    Raises:
        ValueError: one that does not exist or occurs twice.
    """
    if axes is None:
        return tuple(range(rank))
    given = wholes(axes, f"{op}: axis")
    found = tuple(a + rank if a < 0 else a for a in given)
    if len(set(found)) != len(found) or not set(found) <= set(range(rank)):
        raise ValueError(f"{op}: got axes {given}, want distinct axes of {rank} dimensions")
    return found


def is_first(axis: Any) -> bool:
    """Whether it is 0 or -1, which a tensor of shape () has, too, as in NumPy and PyTorch."""
    return is_integral(axis) and axis in (0, -1)


def reduced_axes(axes: Axes, rank: int, op: str) -> tuple[int, ...]:
    """`as_axes` for a reduction: of a tensor of shape (), axes 0 and -1 are none at all."""
    if not rank and axes is not None and wholes(axes, f"{op}: axis") in ((0,), (-1,)):
        return ()
    return as_axes(axes, rank, op)


class Reduction(Rule):
    """One value for all elements along some axes. `f` is the engine's name for it."""

    f: str

    def __init__(self, axes: Axes = None, keepdims: int = 1) -> None:
        self.axes, self.keepdims = axes, flag(keepdims, f"reduce_{self.f}: keepdims")

    def forward(self, x: Tensor) -> Tensor:
        self.shape = x.shape
        self.over = reduced_axes(self.axes, len(self.shape), f"reduce_{self.f}")
        if not self.over:  # to the engine, no axes means all of them
            return ops.cast(x, int64) if self.widens(x) else ops.copy(x)
        return ops.reduce_op(self.f, self.over, self.keepdims)(x)

    def widens(self, x: Tensor) -> bool:
        """Whether the results are int64, wider than the elements' dtype."""
        return self.f in ("sum", "prod") and not x.dtype.is_float and x.dtype != int64

    def kept_shape(self) -> tuple[int, ...]:
        """The output's shape if `keepdims` were set."""
        return tuple(1 if i in self.over else n for i, n in enumerate(self.shape))

    def spread(self, t: Tensor) -> Tensor:
        """Values of the output's shape, broadcast as a view to the input's shape."""
        return ops.reshape(t, self.kept_shape()).view_expand(self.shape)


class ReduceSum(Reduction):
    """The sum over `axes`, all by default (ONNX ReduceSum).

    Integers and bool give int64, as in NumPy (where uint8 gives uint64, which tensors only store).
    """

    f = "sum"

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` at every element."""
        return (self.spread(dys[0]),)


class ReduceMean(Reduction):
    """The mean over `axes`, all by default (ONNX ReduceMean). Integers become float32."""

    f = "mean"

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy / n` at every element."""
        count = math.prod(self.shape[i] for i in self.over)
        return (self.spread(ops.scale(dys[0], 1 / count) if count else dys[0]),)


class ReduceMax(Reduction):
    """The largest over `axes`, all by default (ONNX ReduceMax).

    NaN wins; equal ones share the gradient.
    """

    f = "max"
    keeps = ("xs", "ys")

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` divided by the number of largest elements, at each of them, or of those of NaN."""
        (dy,), x = dys, self.load(0)
        best = ops.op("binary", f="eq")(x, self.spread(self.load(1)))
        best = ops.op("binary", f="or")(best, ops.op("binary", f="ne")(x, x))
        ones = ops.cast(best, dy.dtype)
        count = ops.reduce_op("sum", self.over, True)(ones) if self.over else ones
        share = ops.div(ops.reshape(dy, self.kept_shape()), count)
        return (ops.where(best, share, ops.full((), 0, dy)),)


class ReduceMin(ReduceMax):
    """The smallest over `axes`, all by default (ONNX ReduceMin).

    NaN wins; equal ones share the gradient.
    """

    f = "min"


class ReduceProd(Reduction):
    """The product over `axes`, all by default (ONNX ReduceProd).

    Integers and bool give int64, as in NumPy (where uint8 gives uint64, which tensors only store).
    """

    f = "prod"
    keeps = ("xs",)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy` times the product of all the other elements, even if some are zero."""
        x = self.load(0)
        zero = ops.scalar_op("eq", 0)(x)
        rest = ops.where(zero, ops.full((), 1, x), x)
        product, zeros = self._over("prod", rest), self._over("sum", ops.cast(zero, x.dtype))
        none = self._nothing(x)
        others = ops.where(ops.scalar_op("eq", 0)(zeros), ops.div(product, rest), none)
        alone = ops.where(ops.scalar_op("eq", 1)(zeros), product, none)
        return (ops.mul(self.spread(dys[0]), ops.where(zero, alone, others)),)

    def gradients_again(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """By the products of the elements before and after each: which of them are zero is nothing
        that could be differentiated."""
        if not self.over:
            return dys
        x, kept = self.load(0), [i for i in range(len(self.shape)) if i not in self.over]
        order = (*kept, *self.over)
        moved = x.view_permute(order)
        rows = ops.reshape(moved, (*moved.shape[: len(kept)], math.prod(moved.shape[len(kept) :])))
        scan = functools.partial(ops.op, "scan", f="prod", axis=len(kept), exclusive=True)
        others = ops.mul(scan(reverse=False)(rows), scan(reverse=True)(rows))
        back = sorted(range(len(order)), key=order.__getitem__)
        others = ops.reshape(others, moved.shape).view_permute(back)
        return (ops.mul(self.spread(dys[0]), others),)

    def _nothing(self, x: Tensor) -> Tensor:
        """0 for each element, NaN where another one is infinite or NaN: their product with 0."""
        lost = ops.cast(ops.scalar_op("ne", 0)(ops.sub(x, x)), x.dtype)
        others = ops.sub(self._over("sum", lost), lost)
        nan = ops.full((), math.nan, x)
        return ops.where(ops.scalar_op("gt", 0)(others), nan, ops.full((), 0, x))

    def _over(self, f: str, x: Tensor) -> Tensor:
        return ops.reduce_op(f, self.over, True)(x) if self.over else x


def _as_numpy(name: str, over: Callable[..., Tensor]) -> None:
    """Enters the method of a reduction: `axis` and `keepdims`, which is False by default."""

    def reduced(self: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return over(self, axis, keepdims)

    as_method(name)(called(reduced, name, over.__doc__))


def _reduction(
    rule: type[Reduction], convert: Callable[[Tensor], Tensor] | None = None
) -> Callable[..., Tensor]:
    over = function(rule, f"reduce_{rule.f}", convert, precision="wide")
    _as_numpy(rule.f, in_precision(over, "wide"))
    return over


reduce_sum = _reduction(ReduceSum)
reduce_mean = _reduction(ReduceMean, floating)
reduce_max = function(ReduceMax, "reduce_max")
reduce_min = function(ReduceMin, "reduce_min")
reduce_prod = _reduction(ReduceProd)


def _plain(f: str, doc: str) -> Callable[..., Tensor]:
    """A reduction without a gradient."""
    whole_op = ops.scalar_op("ne", 0) if f in ("any", "all") else None

    def plain(x: Tensor, axis: int | None = None, keepdims: int = 0) -> Tensor:
        over = reduced_axes(axis, x.rank, f)
        keeps, is_whole = flag(keepdims, f"{f}: keepdims"), not over and x.rank > 0
        if is_whole and whole_op is None:
            raise ValueError(f"{f}: got no axes, want at least one")
        op = whole_op if is_whole else ops.reduce_op(f, () if axis is None else over, keeps)
        made = op(x)
        made.requires_grad = False
        return made

    _as_numpy(f, called(plain, f, doc, __package__))
    return plain


_INDEX = "The index of the first {} element along an axis, of all by default; int64 (ONNX {})."
argmax = public()(_plain("argmax", _INDEX.format("largest", "ArgMax")))
argmin = public()(_plain("argmin", _INDEX.format("smallest", "ArgMin")))
public()(_plain("any", "Whether any element is non-zero; bool (NumPy any)."))
public()(_plain("all", "Whether every element is non-zero; bool (NumPy all)."))


class SoftMax(Rule):
    """Softmax over one axis (ONNX Softmax from opset 13); integers become float32."""

    log = False
    keeps = ("ys",)

    def __init__(self, axis: int = 1) -> None:
        self.axis = whole(axis, "softmax: axis")

    def forward(self, x: Tensor) -> Tensor:
        return self._run("softmax", x)

    def _run(self, name: str, *xs: Tensor) -> Tensor:
        """An operation along the axis, which a tensor of shape () has with extent 1."""
        is_last = self.axis == xs[0].rank - 1
        op = ops.op(name, axis=-1 if is_last else self.axis, log=self.log)
        if xs[0].rank or not is_first(self.axis):
            return op(*xs)
        return ops.reshape(op(*(ops.reshape(x, (1,)) for x in xs)), ())

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """Computed from `dy` and the output."""
        return (self._run("softmax_grad", dys[0], self.load(0)),)


class LogSoftMax(SoftMax):
    """The logarithm of softmax over one axis, without overflow (ONNX LogSoftmax); integers become
    float32."""

    log = True


softmax = function(SoftMax, "softmax", floating, precision="wide")
log_softmax = function(LogSoftMax, "log_softmax", floating, precision="wide")
