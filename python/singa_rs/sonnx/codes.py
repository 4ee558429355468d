"""Element types that are stored as codes: floats of 8 and 4 bits, integers of 4 and 2 bits.

The device has no arithmetic for them. A tensor of such a type is one of uint8, a code for each
element; operators that move elements move the codes, and conversions look values up in tables that
follow ml_dtypes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import autograd
from ..autograd.casting import cast
from ..device import Device
from ..errors import DTypeError
from ..tensor import Tensor, bool_, constant, float32, float64, from_numpy, int64, to_numpy, uint8
from .arrays import CODED, FLOAT4E2M1, FLOAT8E5M2, FLOAT8E8M0, bits, is_whole

_CODED = frozenset(CODED.values())
#: Operators that move elements without looking at them, and so move codes.
MOVING = {
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split",
    "Slice", "Expand", "Tile", "Gather", "GatherElements", "GatherND", "Where", "DepthToSpace",
    "SpaceToDepth", "ReverseSequence", "Compress", "Trilu",
}  # fmt: skip


class Coded:
    """A tensor whose elements are codes of a dtype."""

    def __init__(self, codes: Tensor, dtype: np.dtype) -> None:
        self.codes, self.dtype = codes, dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.codes.shape

    def array(self) -> np.ndarray:
        """The elements on the host, in their own dtype."""
        codes = to_numpy(self.codes)
        if is_whole(self.dtype):
            return _values(self.dtype)[codes].astype(self.dtype)
        return codes.view(self.dtype)

    def values(self) -> Tensor:
        """The elements in float32, which holds them all."""
        table = constant(_values(self.dtype), self.codes.device)
        return autograd.gather(table, 0, self.codes)


def is_coded(dtype: Any) -> bool:
    """Whether elements of a NumPy dtype are stored as codes."""
    return dtype in _CODED


def from_array(array: np.ndarray, device: Device) -> Coded:
    """A copy of an array of a dtype that is stored as codes."""
    codes = np.ascontiguousarray(array).view(np.uint8) & _mask(array.dtype)
    return Coded(from_numpy(codes.reshape(array.shape), device), array.dtype)


def encoded(x: Tensor, dtype: np.dtype, saturate: bool = True, round_mode: str = "up") -> Coded:
    """Numbers in a dtype that is stored as codes (ONNX Cast).

    Args:
        saturate: whether what is too large for a float becomes the largest one; else NaN, or
            infinity where the dtype has it.
        round_mode: "up", "down" or "nearest": how a power of two is found for float8e8m0. All
            others take the nearest number, of two the even one; integers drop the fraction, then
            all bits but their own.
    """
    if is_whole(dtype):
        whole = cast(x, int64)
        return Coded(cast(autograd.bitwise_and(whole, int(_mask(dtype))), uint8), dtype)
    is_short = x.dtype.is_float and x.dtype != float64 or x.dtype == bool_
    x = cast(x, float32 if is_short else float64).detach()
    if dtype == CODED[FLOAT8E8M0]:
        return Coded(cast(_powers(x, saturate, round_mode), uint8), dtype)
    return Coded(cast(_nearest(x, dtype, saturate), uint8), dtype)


def _nearest(x: Tensor, dtype: np.dtype, saturate: bool) -> Tensor:
    """The codes of the nearest numbers."""
    bounds = _bounds(dtype, x.dtype.name)
    code = autograd.searchsorted(constant(bounds, x.device, x.dtype), autograd.abs(x), "right")
    if saturate or dtype == CODED[FLOAT4E2M1]:  # which has nothing beyond its numbers
        code = autograd.minimum(code, len(bounds) - 1)
    is_signed = autograd.signbit(x)
    if dtype.name.endswith("fnuz"):  # they have no -0, whose code is that of NaN
        is_signed = autograd.logical_and(is_signed, code != 0)
    code = autograd.bitwise_or(code, cast(is_signed, int64) * _sign(dtype))
    return autograd.where(autograd.isnan(x), _nan(dtype), code)


def _nan(dtype: np.dtype) -> int:
    """The code of NaN: of several, the one that onnx's reference and onnxruntime write."""
    if dtype == CODED[FLOAT8E5M2]:
        return _sign(dtype) - 1
    return int(np.array(np.nan).astype(dtype).view(np.uint8))


def _powers(x: Tensor, saturate: bool, round_mode: str) -> Tensor:
    """The codes of powers of two (float8e8m0) for the sizes of numbers; 255 for what is none."""
    if round_mode not in ("up", "down", "nearest"):
        raise ValueError(f"Cast: got round_mode {round_mode!r}, want 'up', 'down' or 'nearest'")
    first = 2.0 ** np.arange(-127, 128, dtype=np.float64)
    # From where each code but the first begins.
    bounds = {"up": first, "nearest": 1.5 * first, "down": first[1:]}[round_mode]
    size, side = cast(autograd.abs(x), float64), "left" if round_mode == "up" else "right"
    code = autograd.searchsorted(constant(bounds, x.device, float64), size, side)
    code = autograd.minimum(code, 254 if saturate else 255)
    return autograd.where(autograd.isfinite(x), code, 255)


def _mask(dtype: np.dtype) -> np.uint8:
    """The bits of an element's code."""
    return np.uint8(2 ** bits(dtype) - 1)


def _sign(dtype: np.dtype) -> int:
    return int(_mask(dtype)) // 2 + 1


@functools.cache
def _values(dtype: np.dtype) -> np.ndarray:
    """The values of all codes."""
    codes = np.arange(256, dtype=np.uint8) & _mask(dtype)
    return codes.view(dtype).astype(np.float32)


@functools.cache
def _bounds(dtype: np.dtype, of: str) -> np.ndarray:
    """For each code but the first: the smallest number of dtype `of` that is nearer to its value,
    or as near and the code even. The last one is that of the numbers that are too large."""
    sizes = _values(dtype)[: _sign(dtype)].astype(of)
    sizes = sizes[np.isfinite(sizes)]
    middles = np.append((sizes[1:] + sizes[:-1]) / 2, sizes[-1] + (sizes[-1] - sizes[-2]) / 2)
    is_odd = np.arange(1, len(sizes) + 1) % 2 == 1
    return np.where(is_odd, np.nextafter(middles, np.inf, dtype=of), middles).astype(of)


def moved(run: Callable[..., Any], args: list[Any], attrs: dict[str, Any]) -> Any:
    """What an operator makes of elements that it only moves.

    Raises:
        DTypeError: tensors of several dtypes.
    """
    given = [x.dtype for x in args if isinstance(x, Coded)]
    if any(one != given[0] for one in given):
        names = ", ".join(one.name for one in given)
        raise DTypeError(f"got dtypes {names}, want one")
    found = run(*(x.codes if isinstance(x, Coded) else x for x in args), **attrs)
    made = found if isinstance(found, tuple) else (found,)
    return tuple(Coded(y, given[0]) if y.dtype == uint8 else y for y in made)
