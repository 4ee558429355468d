"""Arithmetic of integers as ONNX has it: types that the engine only stores are computed in int64,
and uint64, which int64 does not hold, by its bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, int64, uint64

#: The bits of an int64 but the sign.
_LOW = 2**63 - 1


def in_int64(function: Callable[..., Tensor], *xs: Any) -> Tensor:
    """A function of integers of one dtype, which the result has, too, if it is of int64."""
    dtype = xs[0].dtype
    made = function(*(_computed(x) for x in xs))
    return cast(made, dtype) if dtype.is_storage and made.dtype == int64 else made


def _computed(x: Any) -> Any:
    is_stored = isinstance(x, Tensor) and x.dtype.is_storage
    return cast(x, int64) if is_stored else x


def ordered(x: Tensor) -> Tensor:
    """Integers that compare as those of `x` do, in a dtype that is computed with."""
    if x.dtype == uint64:
        return autograd.bitwise_xor(cast(x, int64), -(2**63))
    return cast(x, int64) if x.dtype.is_storage else x


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """`a / b` without its fraction."""
    return _unsigned_quotient(a, b) if a.dtype == uint64 else in_int64(_truncated, a, b)


def _truncated(a: Tensor, b: Tensor) -> Tensor:
    down, rest = autograd.floor_divide(a, b), autograd.remainder(a, b)
    is_low = autograd.logical_and(rest != 0, autograd.logical_xor(a < 0, b < 0))
    return down + cast(is_low, down.dtype)


def _unsigned_quotient(a: Tensor, b: Tensor) -> Tensor:
    """Half of `a` is positive: its quotient, doubled, is right or one too small (Hacker's Delight,
    9-3). A divisor from 2^63 on goes at most once."""
    x, y = cast(a, int64), cast(b, int64)
    is_large = y < 0
    divisor = autograd.where(is_large, 1, y)
    half = autograd.bitwise_and(autograd.right_shift(x, 1), _LOW)
    near = autograd.floor_divide(half, divisor) * 2
    rest = x - near * divisor
    more = ordered(cast(rest, uint64)) >= ordered(cast(divisor, uint64))
    once = ordered(a) >= ordered(b)
    return cast(autograd.where(is_large, cast(once, int64), near + cast(more, int64)), uint64)


def modulo(a: Tensor, b: Tensor, like_dividend: bool) -> Tensor:
    """The rest of dividing, with the sign of the divisor, or that of the dividend."""
    if a.dtype == uint64:
        x, y = cast(a, int64), cast(b, int64)
        return cast(x - cast(_unsigned_quotient(a, b), int64) * y, uint64)
    return in_int64(_like_dividend if like_dividend else autograd.remainder, a, b)


def _like_dividend(a: Tensor, b: Tensor) -> Tensor:
    rest = autograd.remainder(a, b)
    is_off = autograd.logical_and(rest != 0, autograd.logical_xor(rest < 0, a < 0))
    return autograd.where(is_off, rest - b, rest)


def shifted(x: Tensor, n: Tensor, to_left: bool) -> Tensor:
    """The bits moved by `n` places; the sign, if there is one, moves in from the left."""
    if to_left:
        return in_int64(autograd.left_shift, x, n)
    if x.dtype != uint64:
        return in_int64(autograd.right_shift, x, n)
    bits, count = cast(x, int64), cast(n, int64)
    once = autograd.bitwise_and(autograd.right_shift(bits, 1), _LOW)
    rest = autograd.right_shift(once, autograd.maximum(count - 1, 0))
    return cast(autograd.where(count == 0, bits, rest), uint64)


def extreme(function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """The larger or the smaller of each pair, by `maximum` or `minimum`."""
    if a.dtype != uint64:
        return in_int64(function, a, b)
    return cast(autograd.bitwise_xor(function(ordered(a), ordered(b)), -(2**63)), uint64)


__all__ = ["extreme", "in_int64", "modulo", "ordered", "quotient", "shifted"]
