"""Which elements are numbers, and replacing those that are not; comparing with a tolerance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._core import DTypeError, ShapeError, bool_
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import real
from . import ops
from .casting import promoted
from .index import where
from .shape import clone
from .table import public


def flags_of(x: Tensor, of_floats: Any, otherwise: bool) -> Tensor:
    """A condition on floats, which other dtypes meet everywhere or nowhere; without a gradient."""
    if x.dtype.is_float:
        made = of_floats(x)
    else:
        made = ops.op("fill", value=int(otherwise), shape=x.shape, dtype="bool")()
    made.requires_grad = False
    return made


def _size(x: Tensor) -> Tensor:
    return ops.op("unary", f="abs")(x)


@public(methods="isnan")
def isnan(x: Tensor) -> Tensor:
    """Whether each element is NaN, bool (ONNX IsNaN)."""
    return flags_of(x, lambda x: ops.op("binary", f="ne")(x, x), False)


@public(methods="isinf")
def isinf(x: Tensor) -> Tensor:
    """Whether each element is infinite, bool (ONNX IsInf)."""
    return flags_of(x, lambda x: ops.scalar_op("eq", math.inf)(_size(x)), False)


@public(methods="isfinite")
def isfinite(x: Tensor) -> Tensor:
    """Whether each element is neither NaN nor infinite, bool (NumPy isfinite)."""
    return flags_of(x, lambda x: ops.scalar_op("lt", math.inf)(_size(x)), True)


#: The greatest finite numbers.
GREATEST = {
    "float64": float(np.finfo(np.float64).max),
    "float32": float(np.finfo(np.float32).max),
    "float16": float(np.finfo(np.float16).max),
    "bfloat16": (2 - 2**-7) * 2.0**127,
}


@public(methods="nan_to_num")
def nan_to_num(
    x: Tensor, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`x` with numbers in the place of NaN and of infinities (NumPy nan_to_num), which by default
    are 0 and the greatest and least numbers of the dtype. Where they stand the gradient is 0.

    Raises:
        DTypeError: a number that the dtype cannot hold.
    """
    if not x.dtype.is_float:
        return clone(x)
    most = GREATEST[x.dtype.name]
    high = most if posinf is None else real(posinf, "nan_to_num: posinf")
    low = -most if neginf is None else real(neginf, "nan_to_num: neginf")
    made = where(isnan(x), as_tensor(real(nan, "nan_to_num: nan"), x.device, x.dtype), x)
    made = where(x.detach() == math.inf, as_tensor(high, x.device, x.dtype), made)
    return where(x.detach() == -math.inf, as_tensor(low, x.device, x.dtype), made)


@public(methods="masked_fill")
def masked_fill(x: Tensor, mask: Any, value: Any) -> Tensor:
    """`x` with `value` where the mask holds (PyTorch masked_fill).

    Args:
        x: any shape and dtype, which the result has, too.
        mask: bool; shapes broadcast.
        value: a number, or a tensor of one element, which gets the gradient of those places.

    Raises:
        DTypeError: a mask of another dtype; a value that the dtype cannot hold.
        ShapeError: shapes that do not broadcast; a value of several elements.
    """
    mask, value = as_tensor(mask, x.device), as_tensor(value, x.device, x.dtype)
    if mask.dtype != bool_:
        raise DTypeError(f"masked_fill: got a mask of {mask.dtype.name}, want bool")
    if value.numel != 1:
        raise ShapeError(f"masked_fill: got a value of shape {value.shape}, want one element")
    pairs = zip(reversed(mask.shape), reversed(x.shape), strict=False)
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ShapeError(
            f"masked_fill: got a mask of shape {mask.shape} for {x.shape}, want one that broadcasts"
        )
    if value.dtype != x.dtype:
        value = _core.Op("convert", dtype=x.dtype.name)(value)
    return where(mask, value.reshape(()), x)


@public(methods="isclose")
def isclose(
    x: Tensor, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether `|x - y| <= atol + rtol * |y|`, bool; infinities are close to themselves (NumPy
    isclose)."""
    x, y = (t.detach() for t in promoted((x, y)))
    rtol, atol = real(rtol, "isclose: rtol"), real(atol, "isclose: atol")
    wide = [t if t.dtype.name == "float64" else t.as_type("float64") for t in (x, y)]
    distance = abs(wide[0] - wide[1])
    near = (distance <= abs(wide[1]) * rtol + atol) & isfinite(wide[1])
    made = near | (x == y)
    if equal_nan:
        made = made | (isnan(x) & isnan(y))
    made.requires_grad = False
    return made


@public(methods="allclose")
def allclose(
    x: Tensor, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, as in `isclose`: a Python bool (NumPy allclose). Reads
    values.

    Raises:
        GraphError: of tensors that are only recorded; `isclose(x, y).all()` is one, too.
    """
    return bool(isclose(x, y, rtol, atol, equal_nan).all())
