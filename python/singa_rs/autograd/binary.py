"""Arithmetic on two operands with NumPy's broadcasting, and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import float32, float64
from ..errors import FOREIGN, reraise
from ..tensor import Tensor, as_tensor
from ..tensor.creation import as_operand
from ..tensor.dtypes import promote
from ..tensor.numbers import as_array, as_number
from . import ops
from .casting import cast
from .ops import Grads, Tensors
from .scalar import with_number
from .tape import Rule


class Binary(Rule):
    """`f(a, b)` of two tensors; operands of other types are converted first."""

    f: str
    op: Any
    #: What the gradient needs of a, b and the output.
    saves: Callable[[Tensor, Tensor, Tensor], tuple[Any, ...]] | None = None
    #: The shapes of the operands, if one was broadcast.
    shapes: tuple[Any, Any] | None = None

    def __call__(self, *xs: Any) -> tuple[Tensor, ...]:
        """Runs the operation; returns the output in a tuple."""
        a, b = xs
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return (compute(type(self), a, b),)
        return super().__call__(*_converted(type(self), a, b))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The function of every pair of elements."""
        return self.op(a, b)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        """Notes the shapes if one is broadcast, and saves what the gradient needs."""
        self.shapes = ops.shapes_if_broadcast(xs, ys[0])
        if self.saves is not None:
            self.saved = type(self).saves(*xs, *ys)

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """Each operand's gradient, summed over the axes that it was broadcast along."""
        (dy,), (a, b) = dys, self.shapes or (None, None)
        return (
            ops.reduce_to(self.to_a(dy), a) if wanted[0] else None,
            ops.reduce_to(self.to_b(dy), b) if wanted[1] else None,
        )

    def to_a(self, dy: Tensor) -> Tensor:
        """The gradient of `a` before it is summed."""
        return dy

    def to_b(self, dy: Tensor) -> Tensor:
        """The gradient of `b` before it is summed."""
        return dy


class Add(Binary):
    """`a + b` (ONNX Add)."""

    f = "add"


class Sub(Binary):
    """`a - b` (ONNX Sub)."""

    f = "sub"

    def to_b(self, dy: Tensor) -> Tensor:
        return ops.neg(dy)


def _operands(a: Tensor, b: Tensor, y: Tensor) -> tuple[Any, ...]:
    return (a.saved(), b.saved())


def _divisor(a: Tensor, b: Tensor, y: Tensor) -> tuple[Any, ...]:
    return (b.saved(), y.saved())


def _all_three(a: Tensor, b: Tensor, y: Tensor) -> tuple[Any, ...]:
    return (a.saved(), b.saved(), y.saved())


class Mul(Binary):
    """`a * b` (ONNX Mul)."""

    f = "mul"
    saves = _operands

    def to_a(self, dy: Tensor) -> Tensor:
        return ops.mul(dy, self.load(1))

    def to_b(self, dy: Tensor) -> Tensor:
        return ops.mul(dy, self.load(0))


class Div(Binary):
    """`a / b` (ONNX Div); integers are divided as float32."""

    f = "div"
    saves = _divisor

    def to_a(self, dy: Tensor) -> Tensor:
        return ops.div(dy, self.load(0))

    def to_b(self, dy: Tensor) -> Tensor:
        return ops.neg(ops.div(ops.mul(dy, self.load(1)), self.load(0)))


class Pow(Binary):
    """`a ** b` (ONNX Pow)."""

    f = "pow"
    saves = _all_three

    def to_a(self, dy: Tensor) -> Tensor:
        a, b = self.load(0), self.load(1)
        slope = ops.mul(b, ops.op("binary", f="pow")(a, ops.scalar_op("sub", 1)(b)))
        zero = ops.scalar_op("eq", 0)(b)  # a ** 0 is 1 for every a, also where a ** -1 is inf
        return ops.mul(dy, ops.where(zero, ops.full((), 0, a), slope))

    def to_b(self, dy: Tensor) -> Tensor:
        a, y = self.load(0), self.load(2)
        zero = ops.scalar_op("eq", 0)(a)
        log = ops.where(zero, ops.full((), 0, a), ops.op("unary", f="log")(a))
        return ops.mul(dy, ops.mul(y, log))


class Maximum(Binary):
    """The larger of each pair; NaN wins (NumPy maximum). Equal ones share the gradient."""

    f = "maximum"
    saves = _operands
    wins = "gt"

    def to_a(self, dy: Tensor) -> Tensor:
        return self._share(dy, self.load(0), self.load(1))

    def to_b(self, dy: Tensor) -> Tensor:
        return self._share(dy, self.load(1), self.load(0))

    def _share(self, dy: Tensor, mine: Tensor, other: Tensor) -> Tensor:
        won, tied = ops.op("binary", f=self.wins), ops.op("binary", f="eq")
        half = ops.where(tied(mine, other), ops.scale(dy, 0.5), ops.full((), 0, dy))
        return ops.where(won(mine, other), dy, half)


class Minimum(Maximum):
    """The smaller of each pair; NaN wins (NumPy minimum). Equal ones share the gradient."""

    f = "minimum"
    wins = "lt"


class Remainder(Binary):
    """`a - floor(a / b) * b`, with the sign of `b` (NumPy remainder)."""

    f = "remainder"
    saves = _operands

    def to_b(self, dy: Tensor) -> Tensor:
        whole = ops.op("binary", f="floor_divide")(self.load(0), self.load(1))
        return ops.neg(ops.mul(dy, whole))


class FloorDivide(Binary):
    """`floor(a / b)` (NumPy floor_divide); it has no gradient."""

    f = "floor_divide"
    differentiable = False


class Comparison(Binary):
    """A truth value for each pair. An integer and a float are compared as float64."""

    differentiable = False


def compute(cls: type[Binary], a: Any, b: Any) -> Tensor:
    """`cls` of two operands, one of which may be a number or an array."""
    try:
        if isinstance(a, Tensor):
            number = b if type(b) in (float, int) else as_number(b)
            if number is not None:
                return with_number(cls.f, a, number, False)
        elif isinstance(b, Tensor):
            number = as_number(a)
            if number is not None:
                return with_number(cls.f, b, number, True)
        return cls()(_operand(cls, a, b), _operand(cls, b, a))[0]
    except FOREIGN as error:
        reraise(cls.f, compute, (cls, a, b), {}, error)


def _operand(cls: type[Binary], x: Any, other: Any) -> Tensor:
    """`x` as a tensor; an array of floats takes the dtype of the other operand, if of floats."""
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, (np.ndarray, list, tuple)) and as_number(x) is None:
        kind = type(x).__name__
        raise TypeError(f"{cls.f}: got {kind}, want a Tensor, a number or an array")
    array = as_array(x, cls.f)
    like = other.dtype if isinstance(other, Tensor) else None
    if like is not None and like.is_float and array.dtype.kind == "f":
        return as_tensor(array, dtype=like)
    return as_operand(array, () if like is None else (like,))


def _converted(cls: type[Binary], a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands in the dtype that they are computed in."""
    have, other = a.dtype, b.dtype
    if issubclass(cls, Comparison):
        mixed = have.is_float != other.is_float
        want = have if have == other else float64 if mixed else promote(have, other)
    else:
        want = promote(have, other)
        want = float32 if cls is Div and not want.is_float else want
    return cast(a, want), cast(b, want)
