"""Quantisation: numbers as integers, or as floats of 8 or 4 bits, times scales."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from ... import autograd
from ...autograd.casting import cast
from ...autograd.reduce import as_axes
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, float32, float64, int32, int64
from ..arrays import CODED, FLOAT4E2M1, INT2, UINT2, name_of
from ..codes import Coded
from ..table import reader, reads
from ..values import NAMES, dtype_name, element_of
from .casting import converted

Stored = Tensor | Coded

_T = onnx.TensorProto
#: The types of integers that numbers are quantised to.
_WHOLE = (_T.UINT8, _T.INT8, _T.UINT16, _T.INT16, _T.UINT4, _T.INT4, UINT2, INT2)
_FLOATS = (_T.FLOAT8E4M3FN, _T.FLOAT8E4M3FNUZ, _T.FLOAT8E5M2, _T.FLOAT8E5M2FNUZ, FLOAT4E2M1)


def _numbers(x: Stored) -> Tensor:
    return x.values() if isinstance(x, Coded) else x


def _integers(x: Stored) -> Tensor:
    return cast(_numbers(x), int64)


def _spread(t: Tensor, x: Stored, axis: int, block_size: int, name: str) -> Tensor:
    """Scales or zero points as they broadcast to `x`: one for all, for each place along an axis, or
    for each block of places."""
    if math.prod(t.shape) == 1:
        return t.reshape(())
    (along,) = as_axes(axis, len(x.shape), name)
    extent = x.shape[along]
    blocks = -(-extent // (block_size or 1))
    want = (*x.shape[:along], blocks, *x.shape[along + 1 :]) if block_size else (extent,)
    if t.shape != want:
        raise ShapeError(f"{name}: got {t.shape} scales or zero points for {x.shape}, want {want}")
    if not block_size:
        return t.reshape((-1, *(1,) * (len(x.shape) - along - 1)))
    return autograd.narrow(autograd.repeat(t, block_size, along), along, 0, extent)


def _range(to: int) -> tuple[int, int]:
    """The least and the greatest number of an element type of integers."""
    info = ml_dtypes.iinfo(CODED[to] if to in CODED else np.dtype(NAMES[to]))
    return int(info.min), int(info.max)


def _rounded(x: Tensor, zero: Tensor | None, to: int) -> Stored:
    """`x` rounded, of two the even number, moved by the zero point, within the range of a type."""
    whole = autograd.rounde(x)
    moved = whole if zero is None else whole + cast(zero, whole.dtype)
    return converted(autograd.clip(moved, *_range(to)), to)


def _stored_type(zero: Stored | None, wanted: int) -> int:
    """The element type that numbers are quantised to."""
    to = element_of(zero) if zero is not None else wanted or _T.UINT8
    if to not in (*_WHOLE, *_FLOATS) or wanted not in (0, to):
        got = " and ".join(name_of(one) for one in sorted({to, wanted or to}))
        want = "one of integers of at most 16 bits or floats of at most 8"
        raise DTypeError(f"QuantizeLinear: got output type {got}, want {want}")
    return to


@reads("QuantizeLinear", since=10, takes_codes=True)
def quantize_linear(
    x: Tensor, scale: Stored, zero: Stored | None = None, *, axis: int = 1, saturate: int = 1,
    block_size: int = 0, output_dtype: int = 0, precision: int = 0,
) -> Stored:  # fmt: skip
    """`x / scale + zero` in the type of `zero`, or `output_dtype`, or uint8."""
    to = _stored_type(zero, output_dtype)
    wide = NAMES[precision] if precision else scale.dtype if isinstance(scale, Tensor) else float32
    spread = _spread(_numbers(scale), x, axis, block_size, "QuantizeLinear")
    ratio = cast(cast(x, wide) / cast(spread, wide), float64 if wide == float64 else float32)
    moved = None if zero is None else _spread(_numbers(zero), x, axis, block_size, "QuantizeLinear")
    if to in _WHOLE:
        return _rounded(ratio, moved, to)
    return converted(ratio if moved is None else ratio + moved, to, bool(saturate))


@reads("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Tensor) -> tuple[Stored, ...]:
    """`x` in uint8, with the scale and the zero point by which its values and 0 fill the range."""
    low = autograd.clip(autograd.reduce_min(x, keepdims=0), None, 0.0)
    span = autograd.clip(autograd.reduce_max(x, keepdims=0), 0.0, None) - low
    scale = autograd.where(span == 0, 1.0, span) / 255
    zero = autograd.rounde(autograd.clip(0.0 - low / scale, 0.0, 255.0))
    return _rounded(x / scale, zero, _T.UINT8), scale, cast(zero, "uint8")


@reads("DequantizeLinear", since=10, takes_codes=True)
def dequantize_linear(
    x: Stored, scale: Stored, zero: Stored | None = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:  # fmt: skip
    """`(x - zero) scale` in the type of `scale`, or `output_dtype`."""
    if zero is None:
        numbers = _numbers(x)
    else:
        moved = _spread(_numbers(zero), x, axis, block_size, "DequantizeLinear")
        numbers = _difference(_numbers(x), moved)
    factor = _spread(_numbers(scale), x, axis, block_size, "DequantizeLinear")
    wide = float64 if factor.dtype == float64 else float32
    made = cast(numbers, wide) * cast(factor, wide)
    return cast(made, dtype_name(output_dtype or element_of(scale)))


def _difference(x: Tensor, zero: Tensor) -> Tensor:
    return x - zero if x.dtype.is_float else cast(x, int64) - cast(zero, int64)


def _centred(x: Stored, zero: Stored | None, axis: int) -> Tensor:
    """`x - zero` in int64; a zero point for each place of `axis` of `x`, or one for all."""
    if zero is None:
        return _integers(x)
    at = _integers(zero)
    if at.rank == 1 and math.prod(at.shape) > 1:
        return _integers(x) - _spread(at, x, axis, 0, "zero point")
    return _integers(x) - (at.reshape(()) if math.prod(at.shape) == 1 else at)


def _product(a: Stored, b: Stored, a_zero: Stored | None, b_zero: Stored | None) -> Tensor:
    """The product of integers, with zero points for all, for each row of `a` or column of `b`."""
    return autograd.matmul(_centred(a, a_zero, -2), _centred(b, b_zero, -1))


@reads("MatMulInteger", since=10)
def matmul_integer(
    a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    """The product of the last two axes of `a - a_zero` and `b - b_zero`, int32."""
    return cast(_product(a, b, a_zero, b_zero), int32)


@reads("QLinearMatMul", since=10, takes_codes=True)
def qlinear_matmul(
    a: Stored, a_scale: Tensor, a_zero: Stored, b: Stored, b_scale: Tensor, b_zero: Stored,
    y_scale: Tensor, y_zero: Stored,
) -> Stored:  # fmt: skip
    """The product of quantised matrices, quantised."""
    product = cast(_product(a, b, a_zero, b_zero), float64)
    rows = cast(a_scale, float64)
    rows = rows.reshape((-1, 1)) if rows.rank == 1 and math.prod(rows.shape) > 1 else rows
    factor = rows * cast(b_scale, float64) / cast(y_scale, float64)
    return _rounded(product * factor, _integers(y_zero), element_of(y_zero))


def _convolved(x: Tensor, w: Tensor, attrs: dict[str, Any]) -> Tensor:
    """The convolution of integers, in float64, which holds their sums; zeros stand around `x`."""
    convolve = reader("", "Conv", 11)
    return convolve.run(cast(x, float64), cast(w, float64), None, **attrs)


def _of_channels(t: Tensor, x: Tensor) -> Tensor:
    """A value for each output channel, or one for all, as it broadcasts to a result like `x`."""
    return t.reshape((-1, *(1,) * (x.rank - 2))) if math.prod(t.shape) > 1 else t.reshape(())


@reads("ConvInteger", since=10)
def conv_integer(
    x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, **attrs: Any
) -> Tensor:
    """The convolution of `x - x_zero` with `w - w_zero`, int32."""
    return cast(_convolved(_centred(x, x_zero, 0), _centred(w, w_zero, 0), attrs), int32)


@reads("QLinearConv", since=10)
def qlinear_conv(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor,
    y_scale: Tensor, y_zero: Tensor, b: Tensor | None = None, **attrs: Any,
) -> Stored:  # fmt: skip
    """The convolution of quantised numbers, with a bias in int32, quantised."""
    sums = _convolved(_centred(x, x_zero, 0), _centred(w, w_zero, 0), attrs)
    if b is not None:
        sums = sums + _of_channels(cast(b, float64), sums)
    factor = cast(x_scale, float64) * cast(w_scale, float64) / cast(y_scale, float64)
    made = sums * _of_channels(factor, sums)
    return _rounded(made, _integers(y_zero), element_of(y_zero))
