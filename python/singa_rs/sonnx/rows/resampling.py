"""Images resampled: enlarged, shrunk, cropped, or sampled where a grid says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...autograd.resize import COORDINATES, ROUNDINGS, Axis, Mode, resample
from ...errors import ShapeError
from ...tensor import Tensor
from ...tensor.numbers import wholes
from ..body import Node
from ..running import Frame
from ..table import reads
from ..values import to_tensor
from .arranging import axis_of

_KINDS = ("nearest", "linear", "cubic")
_CROP = "tf_crop_and_resize"
#: By how much rounding may move a place beyond the edge that it stands on.
_ROUNDING = 1e-6


def _known(op: str, **given: tuple[str, Any]) -> None:
    """Raises unless the names of modes are known ones."""
    for what, (name, known) in given.items():
        if name not in known:
            raise ValueError(f"{op}: got {what} {name!r}, want one of {', '.join(known)}")


def _floats(x: Any) -> list[float]:
    """The elements of an optional input; none if it is empty, which stands for none."""
    return [] if x is None else [float(n) for n in np.ravel(x)]


# ---- Resize --------------------------------------------------------------------------------------


@reads("Resize", since=11, host="roi scales sizes")
def resize(
    x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None, *, antialias: int = 0,
    axes: Sequence[int] | None = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor", frame: Frame, node: Node,
) -> Tensor:  # fmt: skip
    """Axes resampled by scales or to sizes."""
    coordinates = coordinate_transformation_mode
    _known(
        "Resize", mode=(mode, _KINDS), coordinate_transformation_mode=(coordinates, COORDINATES),
        nearest_mode=(nearest_mode, ROUNDINGS),
    )  # fmt: skip
    over = [axis_of(a, x.rank, "Resize") for a in (range(x.rank) if axes is None else axes)]
    crops = _crops(roi, len(over)) if coordinates == _CROP else [(0.0, 1.0)] * len(over)
    extents, by, to = [x.shape[a] for a in over], _floats(scales), _floats(sizes)
    if bool(by) == bool(to):
        raise ValueError(f"Resize: got scales {scales} and sizes {sizes}, want one of them")
    if by:
        found = _by_scales(extents, by, crops)
    else:
        found = _to_sizes(extents, wholes(sizes, "Resize: sizes"), crops, keep_aspect_ratio_policy)
    if by and coordinates == "align_corners" and node.producer != "pytorch":
        coordinates, found = _CROP, [_aligned(one) for one in found]
    changes = _changes(over, found)
    options = (cubic_coeff_a, bool(exclude_outside), bool(antialias))
    made = resample(x, changes, Mode(mode, coordinates, nearest_mode, *options))
    if coordinate_transformation_mode == _CROP:
        made = _extrapolated(made, changes, extrapolation_value, frame)
    if antialias and not x.dtype.is_float:  # as in onnxruntime, which cuts fractions off otherwise
        made = autograd.floor(made + 0.5)
    return autograd.cast(made, x.dtype)


def _changes(over: Sequence[int], found: Sequence[Axis]) -> list[tuple[int, Axis]]:
    """The axes that do not stay as they are."""
    if any(one.n < 1 or one.m < 1 for one in found):
        got = f"extents {[one.n for one in found]} to {[one.m for one in found]}"
        raise ShapeError(f"Resize: got {got}, want an element along each axis")
    every = zip(over, found, strict=True)
    return [(a, one) for a, one in every if (one.n, 1, (0.0, 1.0)) != (one.m, *one[2:])]


def _crops(roi: Any, count: int) -> list[tuple[float, float]]:
    """Starts and ends of what is kept, of each axis."""
    found = _floats(roi)
    if len(found) != 2 * count:
        raise ValueError(f"Resize: got roi {found}, want {count} starts and as many ends")
    return list(zip(found[:count], found[count:], strict=True))


def _by_scales(
    extents: Sequence[int], scales: Sequence[float], crops: Sequence[tuple[float, float]]
) -> list[Axis]:
    if len(scales) != len(extents) or min(scales, default=1) <= 0:
        raise ValueError(f"Resize: got scales {scales}, want {len(extents)} positive ones")
    return [
        Axis(n, _scaled(n, crop[1] - crop[0], by), 1 / by, crop)
        for n, by, crop in zip(extents, scales, crops, strict=True)
    ]


def _scaled(n: int, share: float, by: float) -> int:
    """An extent by a scale, rounded down in float32, as by the shape inference of ONNX, since a
    scale such as 2.3 is less than that in float32."""
    return int(np.float32(n) * np.float32(share) * np.float32(by))


def _aligned(axis: Axis) -> Axis:
    """With corners aligned by a scale: ONNX counts with the extent before it is rounded, PyTorch,
    whose exporters mean what it does, with the rounded one."""
    scaled = axis.n / axis.step
    return axis._replace(crop=(0.0, (axis.m - 1) / (scaled - 1) if axis.m > 1 else 0.0))


def _to_sizes(
    extents: Sequence[int], sizes: Sequence[int], crops: Sequence[tuple[float, float]], policy: str
) -> list[Axis]:
    known = {"stretch": None, "not_larger": max, "not_smaller": min}
    _known("Resize", keep_aspect_ratio_policy=(policy, known))
    if len(sizes) != len(extents) or min(sizes, default=1) < 1:
        raise ValueError(f"Resize: got sizes {sizes}, want {len(extents)} from 1")
    steps = [n / m for n, m in zip(extents, sizes, strict=True)]
    choose = known[policy]
    if choose is not None:
        steps = [choose(steps)] * len(sizes)
        sizes = [int(n / by + 0.5) for n, by in zip(extents, steps, strict=True)]
    return [
        Axis(n, m, by, crop) for n, m, by, crop in zip(extents, sizes, steps, crops, strict=True)
    ]


def _extrapolated(
    y: Tensor, changes: Sequence[tuple[int, Axis]], value: float, frame: Frame
) -> Tensor:
    """A value where the crop reaches beyond the edges."""
    for along, axis in changes:
        at = COORDINATES[_CROP](np.arange(axis.m), axis)
        beyond = ((at < -_ROUNDING) | (at > axis.n - 1 + _ROUNDING)).reshape(
            (-1, *(1,) * (y.rank - along - 1))
        )
        if beyond.any():
            y = autograd.where(to_tensor(beyond, frame.device), value, y)
    return y


@reads("Upsample", since=7, host="scales")
@reads("Resize", since=10, host="scales")
def upsample(x: Tensor, scales: Any, *, mode: str = "nearest") -> Tensor:
    """All axes resampled by scales; those of Upsample are an attribute below opset 9. The nearest
    element is the one before a place, of axes that shrink the one behind it, as in onnxruntime."""
    _known("Upsample", mode=(mode, _KINDS[:2]))
    found = _by_scales(x.shape, _floats(scales), [(0.0, 1.0)] * x.rank)
    made, every = x, _changes(range(x.rank), found)
    for rounding, shrinks in (("floor", False), ("ceil", True)):
        changes = [one for one in every if (one[1].step > 1) == shrinks]
        made = resample(made, changes, Mode(mode, "asymmetric", rounding)) if changes else made
    return autograd.cast(made, x.dtype)


@reads("Upsample")
def upsample_images(
    x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest"
) -> Tensor:
    """Images enlarged."""
    kind = {"bilinear": "linear"}.get(mode, mode)
    return upsample(x, (1.0, 1.0, height_scale, width_scale), mode=kind)


# ---- grids ---------------------------------------------------------------------------------------


@reads("GridSample", since=16)
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:  # fmt: skip
    """The elements at the places of a grid, or between them, in the dtype of `x`."""
    made = autograd.grid_sample(x, grid, mode, padding_mode, bool(align_corners))
    return autograd.cast(made, x.dtype)


@reads("AffineGrid", since=20, host="size")
def affine_grid(theta: Tensor, size: Any, *, align_corners: int = 0) -> Tensor:
    """The grid of affine maps."""
    extents = wholes(size, "AffineGrid: size")
    if align_corners:
        theta = _at_corners(theta, extents[2:])
    return autograd.affine_grid(theta, extents, bool(align_corners))


def _at_corners(theta: Tensor, sizes: Sequence[int]) -> Tensor:
    """Maps for which the only element of an axis is at -1, as in ONNX, not in the middle."""
    for i, n in enumerate(reversed(sizes)):
        if n == 1:
            moved = theta[..., -1:] - theta[..., i : i + 1]
            theta = autograd.cat([theta[..., :-1], moved], -1)
    return theta
