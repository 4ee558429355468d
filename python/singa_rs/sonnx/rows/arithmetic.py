"""Arithmetic and comparison of several operands, in all dtypes."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, float64
from ..names import COMPARISONS, OF_TWO
from ..table import reads
from . import integers

Two = Callable[[Tensor, Tensor], Tensor]


def aligned(a: Tensor, b: Tensor, axis: int | None) -> Tensor:
    """The second operand of opsets below 7, whose axes begin at `axis` of the first."""
    if axis is None:
        return b
    at = axis % a.rank
    return b.reshape((*b.shape, *(1,) * (a.rank - at - b.rank)))


def _enter(name: str, function: Two) -> None:
    """Enters a function of two tensors; those of opsets below 7 do not broadcast by themselves."""

    def old(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
        return function(a, aligned(a, b, axis) if broadcast else b)

    reads(name)(old)
    reads(name, since=7)(lambda a, b: function(a, b))


def _compared(function: Two) -> Two:
    return lambda a, b: function(integers.ordered(a), integers.ordered(b))


for _name, _, _function in OF_TWO:
    _enter(_name, functools.partial(integers.in_int64, getattr(autograd, _function)))
for _name, _, _function in COMPARISONS:
    _enter(_name, _compared(getattr(autograd, _function)))


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """`a / b`; of integers without its fraction."""
    return autograd.div(a, b) if a.dtype.is_float else integers.quotient(a, b)


def _power(a: Tensor, b: Tensor) -> Tensor:
    """`a ** b` in the dtype of `a`."""
    if not a.dtype.is_float and b.dtype.is_float:
        return cast(autograd.pow(cast(a, float64), cast(b, float64)), a.dtype)
    if a.dtype.is_float:
        wide = a.dtype if b.dtype == a.dtype else float64
        return cast(autograd.pow(cast(a, wide), cast(b, wide)), a.dtype)
    return cast(integers.in_int64(autograd.pow, a, b), a.dtype)


_enter("Div", _quotient)
_enter("Pow", _power)


@reads("Mod", since=10)
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    """The rest of dividing, with the sign of `b`, or with that of `a` if `fmod`."""
    if not a.dtype.is_float:
        return integers.modulo(a, b, bool(fmod))
    return autograd.fmod(a, b) if fmod else autograd.remainder(a, b)


@reads("BitShift", since=11)
def bit_shift(x: Tensor, n: Tensor, *, direction: str) -> Tensor:
    """The bits of `x` moved by `n` places, "LEFT" or "RIGHT"."""
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"BitShift: got direction {direction!r}, want 'LEFT' or 'RIGHT'")
    return integers.shifted(x, n, direction == "LEFT")


def _extreme(function: Two) -> Callable[..., Tensor]:
    def run(*xs: Tensor) -> Tensor:
        if xs[0].dtype.is_float:
            return functools.reduce(function, xs)
        return functools.reduce(functools.partial(integers.extreme, function), xs)

    return run


reads("Max")(_extreme(autograd.maximum))
reads("Min")(_extreme(autograd.minimum))


@reads("Sum")
def sum_(*xs: Tensor) -> Tensor:
    """The sum of tensors that broadcast."""
    return functools.reduce(autograd.add, xs)


@reads("Mean")
def mean(*xs: Tensor) -> Tensor:
    """The mean of tensors that broadcast."""
    return sum_(*xs) / len(xs)


@reads("Clip")
def clip_within(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:
    """`x` within two numbers."""
    return autograd.clip(x, min, max)


@reads("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """`min(max(x, low), high)`: the upper bound wins."""
    for function, bound in ((autograd.maximum, low), (autograd.minimum, high)):
        if bound is not None and x.dtype.is_float:
            x = function(x, bound)
        elif bound is not None:
            x = integers.extreme(function, x, bound)
    return x


@reads("Where", since=9)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` where the condition holds, else `y`."""
    return autograd.where(condition, x, y)


@reads("IsInf", since=10)
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    """Whether elements are infinite, with a sign that is looked for."""
    found = autograd.isinf(x)
    if not detect_negative:
        found = autograd.logical_and(found, x > 0)
    return found if detect_positive else autograd.logical_and(found, x < 0)
