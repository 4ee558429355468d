"""Regions of images: aligned, pooled, and chosen among overlapping ones."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor, full
from ..running import Frame
from ..table import reads
from ..values import to_tensor
from .arranging import padded

# ---- RoiAlign ------------------------------------------------------------------------------------


class _Align(NamedTuple):
    """How regions become images of one size."""

    #: The extents of the result, by axis.
    size: tuple[int, int]
    is_max: bool
    frame: Frame

    def taps(
        self, axis: int, start: Tensor, extent: Tensor, grid: int, n: int
    ) -> list[tuple[Tensor, Tensor]]:
        """The two neighbours of all samples along an axis, (R, bins * grid), and their weights,
        which are 0 far outside of the image."""
        bins = self.size[axis]
        shares = (np.arange(bins * grid) + 0.5) / (bins * grid)
        shares = autograd.cast(to_tensor(shares, self.frame.device), start.dtype)
        at = start.unsqueeze(1) + extent.unsqueeze(1) * shares
        inside = autograd.cast((at >= -1) & (at <= n), at.dtype)
        at = autograd.clip(at, 0.0, n - 1.0)
        low = autograd.floor(at.detach())
        t = at - low
        places = (
            autograd.cast(low, "int64"),
            autograd.cast(autograd.clip(low + 1, 0, n - 1), "int64"),
        )
        return [(places[0], (1 - t) * inside), (places[1], t * inside)]

    def run(self, x: Tensor, boxes: Tensor, batch: Tensor, grid: tuple[int, int]) -> Tensor:
        """The result, (R, C, h, w), for boxes (R, 4) of starts and extents by axis."""
        channels, height, width = x.shape[1:]
        rows = autograd.transpose(x, (0, 2, 3, 1)).reshape((-1, channels))
        down = self.taps(0, boxes[:, 0], boxes[:, 2], grid[0], height)
        across = self.taps(1, boxes[:, 1], boxes[:, 3], grid[1], width)
        first = (batch * (height * width)).reshape((-1, 1, 1))
        parts = []
        for (i, a), (j, b) in itertools.product(down, across):
            places = first + i.unsqueeze(2) * width + j.unsqueeze(1)
            weights = (a.unsqueeze(2) * b.unsqueeze(1)).unsqueeze(3)
            parts.append(autograd.gather(rows, 0, places) * weights)
        # ONNX's maxima are those of the weighted neighbours, not of their sums.
        join = autograd.maximum if self.is_max else autograd.add
        made = functools.reduce(join, parts)
        split = (made.shape[0], self.size[0], grid[0], self.size[1], grid[1], channels)
        over = autograd.reduce_max if self.is_max else autograd.reduce_mean
        return autograd.transpose(over(made.reshape(split), (2, 4), 0), (0, 3, 1, 2))


def _aligned(
    x: Tensor, rois: Tensor, batch: Tensor, how: _Align, ratio: int, scale: float, half: bool
) -> Tensor:
    if x.rank != 4 or rois.rank != 2 or rois.shape[1] != 4 or batch.shape != rois.shape[:1]:
        shapes = f"{x.shape}, {rois.shape}, {batch.shape}"
        raise ShapeError(f"RoiAlign: got shapes {shapes}, want (N, C, H, W), (R, 4) and (R,)")
    ends = rois * scale - (0.5 if half else 0.0)
    starts, extents = ends[:, :2], ends[:, 2:] - ends[:, :2]
    if not half:
        extents = autograd.maximum(extents, 1.0)
    # Regions are given by x before y.
    boxes = autograd.cat([autograd.flip(starts, 1), autograd.flip(extents, 1)], 1)
    batch = autograd.cast(batch, "int64")
    if ratio > 0:
        return how.run(x, boxes, batch, (ratio, ratio))
    return _by_grids(x, boxes, batch, how)


def _by_grids(x: Tensor, boxes: Tensor, batch: Tensor, how: _Align) -> Tensor:
    """Regions with as many samples as they are large, which is read: those of equal numbers
    together."""
    grids = np.ceil(how.frame.read(boxes)[:, 2:].astype(np.float64) / how.size).astype(int)
    found, which = np.unique(grids, axis=0, return_inverse=True)
    parts = [full((0, x.shape[1], *how.size), 0, dtype=x.dtype)]
    order = np.argsort(which.reshape(-1), kind="stable")
    for i, grid in enumerate(found):
        places = to_tensor(np.flatnonzero(which.reshape(-1) == i), how.frame.device)
        if grid.min() < 1:
            parts.append(full((places.numel, *parts[0].shape[1:]), 0, dtype=x.dtype))
            continue
        given = (autograd.gather(t, 0, places) for t in (boxes, batch))
        parts.append(how.run(x, *given, tuple(int(n) for n in grid)))
    return autograd.gather(autograd.cat(parts, 0), 0, np.argsort(order))


@reads("RoiAlign", since=16)
def roi_align(
    x: Tensor, rois: Tensor, batch_indices: Tensor, *,
    coordinate_transformation_mode: str = "half_pixel", mode: str = "avg", output_height: int = 1,
    output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0, frame: Frame,
) -> Tensor:  # fmt: skip
    """Regions resampled to one size, by means or maxima of samples between the elements."""
    known = ("half_pixel", "output_half_pixel")
    if mode not in ("avg", "max") or coordinate_transformation_mode not in known:
        got = f"mode {mode!r}, coordinate_transformation_mode {coordinate_transformation_mode!r}"
        raise ValueError(f"RoiAlign: got {got}, want 'avg' or 'max', and one of {known}")
    how = _Align((output_height, output_width), mode == "max", frame)
    half = coordinate_transformation_mode == "half_pixel"
    return _aligned(x, rois, batch_indices, how, sampling_ratio, spatial_scale, half)


@reads("RoiAlign", since=10)
def roi_align_10(
    x: Tensor, rois: Tensor, batch_indices: Tensor, *, frame: Frame, **how: Any
) -> Tensor:
    """The same with the coordinates that opset 10 has."""
    how["coordinate_transformation_mode"] = "output_half_pixel"
    return roi_align(x, rois, batch_indices, frame=frame, **how)


# ---- MaxRoiPool ----------------------------------------------------------------------------------


def _rounded(x: float) -> int:
    """The nearest integer, halves away from zero."""
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


@reads("MaxRoiPool", host="rois")
def max_roi_pool(
    x: Tensor, rois: Any, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> Tensor:
    """The maxima of a grid of windows in each region (Girshick, 2015); 0 for windows that are
    outside of the image."""
    if x.rank != 4 or np.ndim(rois) != 2 or np.shape(rois)[1] != 5:
        shapes = f"{x.shape}, {np.shape(rois)}"
        raise ShapeError(f"MaxRoiPool: got shapes {shapes}, want (N, C, H, W) and (R, 5)")
    parts = [full((0, x.shape[1], *pooled_shape), 0, dtype=x.dtype)]
    for image, *ends in rois:
        left, top, right, bottom = (_rounded(float(n) * spatial_scale) for n in ends)
        region = _region(x[int(image) : int(image) + 1], (top, left), (bottom, right))
        made = autograd.adaptive_max_pool(region, tuple(pooled_shape))
        parts.append(autograd.where(autograd.isneginf(made), 0.0, made))
    return autograd.cat(parts, 0)


def _region(x: Tensor, first: Sequence[int], last: Sequence[int]) -> Tensor:
    """The elements from a first place to a last one, minus infinity outside of the image."""
    before = [-n for n in first]
    after = [max(b, a) + 1 - n for a, b, n in zip(first, last, x.shape[2:], strict=True)]
    return padded(x, [0, 0, *before, 0, 0, *after], value=-math.inf)


# ---- NonMaxSuppression ---------------------------------------------------------------------------


@reads("NonMaxSuppression", since=10, host="boxes scores most overlap least")
def non_max_suppression(
    boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None, *,
    center_point_box: int = 0, frame: Frame,
) -> Tensor:  # fmt: skip
    """The boxes of each class in the order of their scores, but for those that overlap a better
    one: (image, class, box). How many there are depends on values, so they are chosen on the host.
    """
    count = 0 if most is None else int(np.ravel(most)[0])
    share = 0.0 if overlap is None else float(np.ravel(overlap)[0])
    floor = None if least is None else float(np.ravel(least)[0])
    corners = _corners(boxes.astype(np.float64), bool(center_point_box))
    found = [
        (image, kind, box)
        for image, kind in np.ndindex(*scores.shape[:2])
        for box in _kept(corners[image], scores[image, kind], count, share, floor)
    ]
    return to_tensor(np.array(found, np.int64).reshape(-1, 3), frame.device)


def _corners(boxes: np.ndarray, by_centre: bool) -> np.ndarray:
    """Boxes by their least and greatest coordinates."""
    a, b = boxes[..., :2], boxes[..., 2:]
    a, b = (a - b / 2, a + b / 2) if by_centre else (np.minimum(a, b), np.maximum(a, b))
    return np.concatenate([a, b], -1)


def _kept(
    corners: np.ndarray, scores: np.ndarray, count: int, share: float, floor: float | None
) -> list[int]:
    """The places of the best boxes that do not overlap each other."""
    order = np.argsort(-scores, kind="stable")
    order = order if floor is None else order[scores[order] > floor]
    kept: list[int] = []
    while order.size and len(kept) < count:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[_overlaps(corners[best], corners[order]) <= share]
    return kept


def _overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The shared area of a box and each of others, divided by that of both together."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.prod(np.maximum(sides, 0), -1)
    areas = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], -1)
    both = areas - shared
    return np.divide(shared, both, out=np.zeros_like(shared), where=both > 0)
