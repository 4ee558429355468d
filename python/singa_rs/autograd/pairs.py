"""More functions of two or three operands that broadcast, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import DTypeError, ShapeError, bool_
from ..errors import called
from ..tensor import Tensor, as_tensor
from ..tensor.creation import device_of
from ..tensor.numbers import as_array, number
from . import binary, ops
from .casting import floating, promoted, with_numbers
from .finite import isinf, isnan
from .index import where
from .powers import signbit
from .precision import rounded_once
from .rule import Rule
from .table import as_method, public
from .unary import FUNCTIONS as UNARY

_MAXIMUM, _MINIMUM = binary.FUNCTIONS["maximum"], binary.FUNCTIONS["minimum"]


def as_operands(op: str, *xs: Any) -> tuple[Tensor, ...]:
    """Operands in one dtype: numbers take that of tensors as in arithmetic, arrays of floats that
    of tensors of floats.

    Raises:
        ShapeError: shapes that do not broadcast.
        TypeError: anything but tensors, numbers and arrays.
        ValueError: an int that an integer type cannot hold.
    """
    is_float = any(isinstance(x, Tensor) and x.dtype.is_float for x in xs)
    return _in_one_dtype(op, *(xs if is_float else with_numbers(op, xs)))


def _in_one_dtype(op: str, *xs: Any) -> tuple[Tensor, ...]:
    """Operands as `as_operands`, but with numbers beside integers in a dtype that holds both."""
    kinds = [x.dtype for x in xs if isinstance(x, Tensor) and x.dtype.is_float]
    made = []
    for x in xs:
        if not isinstance(x, Tensor):
            array = as_array(x, op)
            plain = kinds and (array.ndim == 0 or array.dtype.kind == "f")
            given = array if array.ndim else x
            x = as_tensor(given, device_of(xs), kinds[0]) if plain else x
        made.append(x)
    found = promoted(made)
    shapes = {x.shape for x in found if x.rank}
    try:
        if len(shapes) > 1:
            np.broadcast_shapes(*shapes)
    except ValueError:
        got = ", ".join(str(x.shape) for x in found)
        raise ShapeError(f"{op}: got shapes {got}, want shapes that broadcast") from None
    return found


def float_operands(op: str, *xs: Any) -> tuple[Tensor, ...]:
    """Operands of floats in one dtype; integers become float32.

    Raises:
        ShapeError: shapes that do not broadcast.
        TypeError: anything but tensors, numbers and arrays.
    """
    return tuple(map(floating, _in_one_dtype(op, *xs)))


class Hypot(Rule):
    """`sqrt(a**2 + b**2)` without overflow."""

    keeps = ("xs", "ys")

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        sizes = [ops.op("unary", f="abs")(t) for t in (a, b)]
        most, least = (ops.op("binary", f=f)(*sizes) for f in ("maximum", "minimum"))
        unit = ops.where(ops.scalar_op("eq", 0)(most), ops.full((), 1, most), most)
        share = ops.op("unary", f="square")(ops.div(least, unit))
        made = ops.mul(most, ops.op("unary", f="sqrt")(ops.scalar_op("add", 1)(share)))
        infinite = ops.op("binary", f="or")(*map(ops.scalar_op("eq", math.inf), sizes))
        return ops.where(infinite, ops.full((), math.inf, made), made)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dy a / y` and `dy b / y`, 0 where both are 0."""
        y = self.load(2)
        none = ops.scalar_op("eq", 0)(y)
        share = ops.where(none, y, ops.div(dys[0], ops.where(none, ops.full((), 1, y), y)))
        operands = (self.load(0), self.load(1))
        return tuple(ops.reduce_to(ops.mul(share, t), t.shape) for t in operands)


@public(Hypot, methods="hypot")
@rounded_once
def hypot(a: Tensor, b: Any) -> Tensor:
    """`sqrt(a**2 + b**2)` without overflow (NumPy hypot); integers become float32. Infinite
    where one of them is, also beside NaN. The gradient at 0 is 0."""
    return Hypot()(*float_operands("hypot", a, b))[0]


@public(methods="logaddexp")
@rounded_once
def logaddexp(a: Tensor, b: Any) -> Tensor:
    """`log(exp(a) + exp(b))` without overflow (NumPy logaddexp); integers become float32."""
    a, b = float_operands("logaddexp", a, b)
    # The difference of equal infinities would be NaN.
    same = (a.detach() == b.detach()) & isinf(a.detach())
    is_less = a.detach() < b.detach()
    high, low = where(is_less, b, a), where(is_less, a, b)
    distance = where(same, 0.0, low) - where(same, 0.0, high)
    return high + UNARY["softplus"](distance)


@public(methods="logaddexp2")
@rounded_once
def logaddexp2(a: Tensor, b: Any) -> Tensor:
    """`log2(2**a + 2**b)` without overflow (NumPy logaddexp2); integers become float32."""
    a, b = float_operands("logaddexp2", a, b)
    base = math.log(2)
    return logaddexp(a * base, b * base) / base


@public(methods="fmod")
def fmod(a: Tensor, b: Any) -> Tensor:
    """The rest of dividing, with the sign of `a` (NumPy fmod, ONNX Mod with fmod=1)."""
    a, b = as_operands("fmod", a, b)
    rest, known = binary.FUNCTIONS["remainder"], a.detach()
    if a.dtype.is_float:
        size = abs(b)
        made = where(known < 0, -rest(-a, size), rest(a, size))
        return where((known == 0) & (made.detach() == 0), a, made)  # -0.0 stays
    made = rest(a, b)  # with the sign of `b`
    return where((made != 0) & ((made < 0) != (known < 0)), made - b, made)


@public(methods="copysign")
def copysign(a: Tensor, b: Any) -> Tensor:
    """The size of `a` with the sign of `b` (NumPy copysign); integers become float32. `b` gets no
    gradient."""
    a, b = float_operands("copysign", a, b)
    size = abs(a)
    return where(signbit(b), -size, size)


@public(methods="heaviside")
def heaviside(a: Tensor, b: Any) -> Tensor:
    """0 where `a` is negative, `b` where it is 0, 1 where it is positive (NumPy heaviside);
    integers become float32. `a` gets no gradient."""
    a, b = float_operands("heaviside", a, b)
    steps = where(a.detach() < 0, 0.0, where(a.detach() > 0, 1.0, a.detach()))
    return where(a.detach() == 0, b, steps)


def _known(op: str, pick: Callable[[Any, Any], Tensor], a: Any, b: Any) -> Tensor:
    """An extreme of those that are numbers."""
    a, b = as_operands(op, a, b)
    if not a.dtype.is_float:
        return pick(a, b)
    return where(isnan(a), b, where(isnan(b), a, pick(a, b)))


@public(methods="fmax")
def fmax(a: Tensor, b: Any) -> Tensor:
    """The larger of each pair, the other one where one is NaN (NumPy fmax)."""
    return _known("fmax", _MAXIMUM, a, b)


@public(methods="fmin")
def fmin(a: Tensor, b: Any) -> Tensor:
    """The smaller of each pair, the other one where one is NaN (NumPy fmin)."""
    return _known("fmin", _MINIMUM, a, b)


class _OfLogarithm(binary.CLASSES["Mul"]):
    """`a * b`, where a gradient of 0 stays 0 beside a logarithm that does not exist."""

    def to_a(self, dy: Tensor) -> Tensor:
        made = ops.mul(dy, self.load(1))
        is_nan, is_zero = ops.op("binary", f="ne")(made, made), ops.scalar_op("eq", 0)(dy)
        lost = ops.op("binary", f="and")(is_nan, is_zero)
        return ops.where(lost, ops.full((), 0, dy), made)


def of_logarithm(a: Tensor, b: Tensor, log: Callable[[Tensor], Tensor], least: float) -> Tensor:
    """`a * log(b)`, 0 where `a` is 0, unless `b` is NaN; from `least` down `log` is not finite."""
    known = b.detach()
    none = (a.detach() == 0) & ((known <= least) | (known == math.inf))
    return where(none, 0.0, _OfLogarithm()(a, log(where(none, 1.0, b)))[0])


@public(methods="xlogy")
@rounded_once
def xlogy(a: Tensor, b: Any) -> Tensor:
    """`a * log(b)`, 0 where `a` is 0, unless `b` is NaN (PyTorch xlogy); integers become
    float32."""
    return of_logarithm(*float_operands("xlogy", a, b), UNARY["log"], 0)


@public(methods="lerp")
@rounded_once
def lerp(a: Tensor, b: Any, weight: Any) -> Tensor:
    """`a + weight * (b - a)`, between `a` and `b` (PyTorch lerp); from a weight of 0.5 on by the
    distance from `b`, which a weight of 1 gives. Integers become float32.

    Args:
        a, b: tensors that broadcast.
        weight: a number or a tensor.
    """
    a, b, w = float_operands("lerp", a, b, weight)
    way = b - a
    if isinstance(weight, (int, float)):
        return a + w * way if weight < 0.5 else b + (w - 1) * way
    is_near = w.detach() < 0.5
    return where(is_near, a, b) + where(is_near, w, w - 1) * way


@public(methods="addcmul")
@rounded_once
def addcmul(x: Tensor, a: Any, b: Any, value: float = 1) -> Tensor:
    """`x + value * a * b` (PyTorch addcmul)."""
    factor = number(value, "addcmul: value")
    x, a, b = as_operands("addcmul", x, a, b)
    return x + (a * b if factor == 1 else a * b * factor)


@public(methods="addcdiv")
@rounded_once
def addcdiv(x: Tensor, a: Any, b: Any, value: float = 1) -> Tensor:
    """`x + value * a / b` (PyTorch addcdiv)."""
    factor = number(value, "addcdiv: value")
    x, a, b = _in_one_dtype("addcdiv", x, a, b)
    return x + (a / b if factor == 1 else a / b * factor)


def _logical(name: str, f: str) -> None:
    def logical(a: Tensor, b: Any) -> Tensor:
        given = (ops.cast(t, bool_) for t in _in_one_dtype(name, a, b))
        made = ops.op("binary", f=f)(*given)
        made.requires_grad = False
        return made

    logical.__name__ = logical.__qualname__ = name
    how = {"and": "both are", "or": "one is", "xor": "exactly one is"}[f]
    logical.__doc__ = f"Whether {how} not zero, bool (NumPy {name})."
    public(methods=name)(logical)


for _f in ("and", "or", "xor"):
    _logical(f"logical_{_f}", _f)


@public(methods="array_equal")
def array_equal(a: Tensor, b: Any, equal_nan: bool = False) -> bool:
    """Whether two tensors have one shape and the same elements: a Python bool (NumPy array_equal).
    Reads values.

    Raises:
        GraphError: tensors that are only recorded; `(a == b).all()` is one, too.
    """
    a, b = promoted((a, b))
    if a.shape != b.shape:
        return False
    same = a.detach() == b.detach()
    if equal_nan:
        same = same | (isnan(a) & isnan(b))
    return bool(same.all())


@public()
def bitwise_not(x: Tensor) -> Tensor:
    """The bits that an integer does not have; of bools, whether they do not hold (ONNX BitwiseNot,
    NumPy invert).

    Raises:
        DTypeError: neither integers nor bools.
    """
    if x.dtype == bool_:
        return UNARY["_not"](x)
    if not x.dtype.is_int or x.dtype.is_storage:
        raise DTypeError(f"bitwise_not: got dtype {x.dtype.name}, want integers or bool")
    return binary.FUNCTIONS["bitwise_xor"](x, 255 if x.dtype.name == "uint8" else -1)


def _scaled(name: str, *others: str) -> None:
    """Enters the methods of a sum or a difference, which may scale its second operand."""
    function = binary.FUNCTIONS[name]

    @rounded_once
    def scaled(self: Tensor, b: Any, factor: Any) -> Tensor:
        return function(self, (b if isinstance(b, Tensor) else as_array(b, name)) * factor)

    def method(self: Tensor, b: Any, *, alpha: float = 1) -> Tensor:
        if type(alpha) is not int or alpha != 1:  # other than the default
            factor = number(alpha, f"{name}: alpha")
            if factor != 1:
                return scaled(self, b, factor)
        return function(self, b)

    sign = "+" if name == "add" else "-"
    doc = f"`self {sign} alpha * b` (PyTorch {name}). Other dtypes are converted first."
    as_method(name, *others)(called(method, name, doc, __package__))


_scaled("add")
_scaled("sub", "subtract")
for _name in (
    "mul", "div", "remainder", "floor_divide", "maximum", "minimum", "less",
    "less_equal", "greater", "greater_equal", "equal", "not_equal",
):  # fmt: skip
    as_method(_name)(binary.FUNCTIONS[_name])
