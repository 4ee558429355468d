"""Arguments of windows that slide over the last axes of images: of convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import wholes

#: One number for all axes, or one for each.
Numbers = int | Sequence[int]
#: Numbers, or the name of a rule that they follow from.
Padding = int | Sequence[int] | str
#: The greatest number of spatial axes.
MOST_AXES = 3

_WANT = {1: "an int", 2: "an int or a pair", 3: "an int or three of them"}
#: PyTorch's names of ONNX's rules.
_SYNONYMS = {"same": "SAME_UPPER", "valid": "VALID"}
PAD_MODES = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def along(value: Numbers, axes: int, what: str) -> tuple[int, ...]:
    """A number for each axis, from one for all or from one for each."""
    given = wholes(value, what)
    if len(given) not in (1, axes):
        raise ValueError(f"{what}: got {value}, want {_WANT[axes]}")
    return given * (axes // len(given))


def around(value: Numbers, axes: int, what: str) -> tuple[int, ...]:
    """Padding before each axis, then after each: from one int, one for each axis, or all."""
    given = wholes(value, what)
    return given if len(given) == 2 * axes else along(given, axes, what) * 2


def pad_mode(name: str, what: str) -> str:
    """One of `PAD_MODES`, by that name or by PyTorch's."""
    found = _SYNONYMS.get(name, name)
    if found not in PAD_MODES:
        want = ", ".join((*PAD_MODES, *_SYNONYMS))
        raise ValueError(f"{what}: got {name!r}, want one of {want}")
    return found


def extents(kernel: Sequence[int], dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """The extents of windows with gaps between their elements."""
    gaps = dilation or (1,) * len(kernel)
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, gaps, strict=True))


def divided(totals: Sequence[int], mode: str) -> tuple[int, ...]:
    """Total paddings along each axis, half of each before and after it: SAME_UPPER has the odd
    element after the axis, SAME_LOWER before it."""
    small, large = [n // 2 for n in totals], [n - n // 2 for n in totals]
    return tuple(small + large if mode == "SAME_UPPER" else large + small)


def same(
    size: Sequence[int], reach: Sequence[int], stride: Sequence[int], mode: str
) -> tuple[int, ...]:
    """The padding with which there are `ceil(size / stride)` windows of extents `reach`."""
    found = zip(size, reach, stride, strict=True)
    totals = [max(0, (-(-n // s) - 1) * s + r - n) for n, r, s in found]
    return divided(totals, mode)


def resolved(
    padding: Padding,
    size: Sequence[int],
    reach: Sequence[int],
    stride: Sequence[int],
    what: str,
) -> tuple[int, ...]:
    """The padding of windows of extents `reach` around axes of these sizes."""
    if not isinstance(padding, str):
        return around(padding, len(size), what)
    mode = pad_mode(padding, what)
    return same(size, reach, stride, mode) if mode.startswith("SAME") else (0,) * (2 * len(size))


def spatial_axes(x: Tensor, op: str) -> int:
    """The number of axes after (N, C).

    Raises:
        ShapeError: none, or more than three.
    """
    if not 1 <= x.rank - 2 <= MOST_AXES:
        raise ShapeError(f"{op}: got shape {x.shape}, want (N, C) and one to three spatial axes")
    return x.rank - 2


def geometry(op: str, axes: int, stride: Numbers, dilation: Numbers, group: Any) -> dict[str, Any]:
    """The attributes of a convolution but for its padding."""
    (groups,) = wholes(group, f"{op}: group")
    return {
        "stride": along(stride, axes, f"{op}: stride"),
        "dilation": along(dilation, axes, f"{op}: dilation"),
        "groups": groups,
    }
