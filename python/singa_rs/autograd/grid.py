"""Sampling images at places that a grid gives, and grids of affine maps."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import ShapeError, int64
from ..refusals import strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import wholes
from ..tensor.placing import row_major
from . import ops
from .casting import cast, floating
from .index import gather, where
from .matmul import matmul
from .resize import cubic_weights
from .shape import plain_reshape, transpose
from .table import public
from .terms import wide
from .unary import FUNCTIONS as UNARY

PADDINGS = ("zeros", "border", "reflection")
#: PyTorch's and ONNX's names of modes.
_MODES = {
    "nearest": "nearest",
    **dict.fromkeys(("linear", "bilinear", "trilinear"), "linear"),
    **dict.fromkeys(("cubic", "bicubic"), "cubic"),
}
#: A place along an axis, its weight, None for 1, and whether it is one of the image.
_Tap = tuple[Tensor, Tensor | None, Tensor]


def _reflected(at: Tensor, n: int, align: bool) -> Tensor:
    """Places beyond an end as if the image were mirrored there, at the outermost elements if they
    are aligned, else at their edges."""
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span == 0:
        return at * 0.0
    beyond = abs(at - low)
    turns = UNARY["floor"](beyond.detach() / span)
    rest = beyond - turns * span
    is_back = turns - UNARY["floor"](turns / 2) * 2 == 1
    return where(is_back, span - rest, rest) + low


def _inside(at: Tensor, n: int, padding: str, align: bool) -> Tensor:
    """Places in the image for those outside of it, unless these are zeros."""
    if padding == "zeros":
        return at
    at = _reflected(at, n, align) if padding == "reflection" else at
    # Unlike those of `clip`, places exactly at an end get no gradient, as in PyTorch.
    return where(at.detach() <= 0, 0.0, where(at.detach() >= n - 1, n - 1.0, at))


def _taps(at: Tensor, n: int, kind: str, padding: str, align: bool) -> list[_Tap]:
    """The neighbours of places along one axis."""
    if kind == "nearest":
        found = [(UNARY["rounde"](_inside(at, n, padding, align).detach()), None)]
    elif kind == "linear":
        at = _inside(at, n, padding, align)
        first = UNARY["floor"](at.detach())
        t = at - first
        found = [(first, 1 - t), (first + 1, t)]
    else:
        first = UNARY["floor"](at.detach())
        near = [_inside(first + k, n, padding, align) for k in range(-1, 3)]
        found = list(zip(near, cubic_weights(at - first, -0.75), strict=True))
    return [(i, w, (i >= 0) & (i <= n - 1)) for i, w in found]


def _product(weights: Sequence[Tensor | None]) -> Tensor | None:
    given = [w for w in weights if w is not None]
    return functools.reduce(lambda a, b: a * b, given) if given else None


def _sampled(rows: Tensor, corner: Sequence[_Tap], sizes: Sequence[int], first: Tensor) -> Tensor:
    """The weighted elements at one of the neighbours of each place, with the channels last."""
    valid = functools.reduce(lambda a, b: a & b, [tap[2] for tap in corner])
    place = first
    for (i, _, _), step in zip(corner, row_major(sizes), strict=True):
        place = place + cast(where(valid, i, 0.0), int64) * step
    part = where(valid.unsqueeze(-1), gather(rows, 0, place), 0.0)
    weight = _product([tap[1] for tap in corner])
    return part if weight is None else part * weight.unsqueeze(-1)


def _check(x: Tensor, grid: Tensor) -> None:
    sides = x.rank - 2
    fits = sides > 0 and grid.rank == x.rank and grid.shape[-1] == sides
    if not fits or grid.shape[0] != x.shape[0] or 0 in x.shape[2:]:
        want = "(N, C, *spatial) with elements and (N, *out, number of spatial axes)"
        raise ShapeError(f"grid_sample: got shapes {x.shape}, {grid.shape}, want {want}")


@public()
def grid_sample(
    x: Tensor,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """The elements of images at places between them (PyTorch grid_sample, ONNX GridSample;
    Jaderberg et al., 2015). Both `x` and the grid get gradients; by "nearest" only `x` does.

    Args:
        x: (N, C, H, W), or with another number of spatial axes; integers become float32. 16-bit
            floats are weighted in float32.
        grid: (N, *out, 2): for each element of the result the place in the image, x (along W)
            before y, or (x, y, z) in volumes, each from -1 to 1.
        mode: "nearest" (halves go to even elements), "bilinear" (also called "linear" and
            "trilinear") or "bicubic" ("cubic").
        padding_mode: what is outside of the image: "zeros", the "border", or its "reflection". But
            for "zeros", the grid gets no gradient at the outermost elements and beyond.
        align_corners: whether -1 and 1 are the centres of the outermost elements, else their edges.

    Returns:
        (N, C, *out), of the dtype of `x`; NaN where the grid is NaN and the mode is not "nearest".

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: another mode or padding.
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"grid_sample: got mode {mode!r}, want one of {', '.join(_MODES)}")
    if not isinstance(padding_mode, str) or padding_mode not in PADDINGS:
        known = ", ".join(PADDINGS)
        raise ValueError(f"grid_sample: got padding_mode {padding_mode!r}, want one of {known}")
    align = strict_flag(align_corners, "grid_sample: align_corners")
    grid = as_tensor(grid, x.device)
    _check(x, grid)
    sizes = x.shape[2:]
    grid = cast(wide(floating(grid)), wide(x).dtype)
    places = []
    for i, n in enumerate(sizes):
        one = grid[..., len(sizes) - 1 - i]
        places.append((one + 1) * (n - 1) / 2 if align else ((one + 1) * n - 1) / 2)
    return sample_at(x, places, _MODES[mode], padding_mode, align)


def sample_at(
    x: Tensor,
    places: Sequence[Tensor],
    kind: str = "linear",
    padding: str = "zeros",
    align: bool = False,
) -> Tensor:
    """The elements of images (N, C, *spatial) at places, (N, *out) for each spatial axis, which
    count its elements: (N, C, *out), of the dtype of `x`."""
    count, channels, *sizes = x.shape
    taps = [_taps(at, n, kind, padding, align) for at, n in zip(places, sizes, strict=True)]
    area, back = math.prod(sizes), places[0].rank
    order = (0, *range(2, x.rank), 1)
    rows = plain_reshape(transpose(wide(x), order), (count * area, channels))
    first = ops.arange(count, x, step=area)
    first = ops.reshape(first, (count, *(1,) * (back - 1)))
    first.requires_grad = False
    parts = [_sampled(rows, corner, sizes, first) for corner in itertools.product(*taps)]
    made = transpose(functools.reduce(lambda a, b: a + b, parts), (0, back, *range(1, back)))
    return cast(made, x.dtype) if x.dtype.is_float else made


def _centres(n: int, align: bool) -> np.ndarray:
    """The places of the elements of an axis, from -1 to 1."""
    if n == 1:
        return np.zeros(1)
    return np.linspace(-1, 1, n) * (1 if align else (n - 1) / n)


@public()
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """The grid of affine maps, for `grid_sample` (PyTorch affine_grid, ONNX AffineGrid).

    Args:
        theta: (N, 2, 3) for images, (N, 3, 4) for volumes: matrices, and what is added.
        size: (N, C, *spatial) of the images that are to be made.
        align_corners: as in `grid_sample`.

    Returns:
        (N, *spatial, 2), or 3 for volumes.

    Raises:
        ShapeError: a shape that does not fit the size.
    """
    extents = wholes(size, "affine_grid: size")
    align = strict_flag(align_corners, "affine_grid: align")
    count, sizes = extents[:1], extents[2:]
    sides = len(sizes)
    if sides < 1 or theta.shape != (*count, sides, sides + 1) or min(sizes) < 1:
        raise ShapeError(
            f"affine_grid: got shape {theta.shape} for size {extents}, want (N, 2, 3) for "
            "(N, C, H, W), or (N, 3, 4) for (N, C, D, H, W)"
        )
    places = np.meshgrid(*(_centres(n, align) for n in sizes), indexing="ij")
    base = np.stack([*(p.ravel() for p in reversed(places)), np.ones(math.prod(sizes))], -1)
    theta = floating(theta)
    made = matmul(as_tensor(base, theta.device, theta.dtype), transpose(theta, (0, 2, 1)))
    return plain_reshape(made, (*count, *sizes, sides))
