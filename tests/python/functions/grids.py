"""Samples at the places of a grid, one place at a time."""

import itertools
import math

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain, slopes
from .resizing import KERNELS

table = Table()


def reflected(at, n, align):
    low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
    if low == high:
        return 0.0
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def inside(at, n, padding, align):
    if padding == "zeros":
        return at
    at = reflected(at, n, align) if padding == "reflection" else at
    return min(max(at, 0.0), n - 1.0)


def taps(at, n, mode, padding, align):
    """The neighbours along one axis, and their weights."""
    if mode != "bicubic":
        at = inside(at, n, padding, align)
    if mode == "nearest":
        found = [(round(at), 1.0)]
    else:
        name, reach = ("linear", 1) if mode == "bilinear" else ("cubic", 2)
        near = range(math.floor(at) - reach + 1, math.floor(at) + reach + 1)
        found = [(i, KERNELS[name](at - i, -0.75)) for i in near]
        if mode == "bicubic":
            found = [(round(inside(i, n, padding, align)), w) for i, w in found]
    return [(i, w) for i, w in found if 0 <= i < n]


def sampled(x, grid, mode="bilinear", padding="zeros", align=False):
    sizes = x.shape[2:]
    made = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(grid.shape[:-1]):
        axes = []
        for n, g in zip(sizes, grid[place][::-1], strict=True):
            at = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2
            axes.append(taps(at, n, mode, padding, align))
        for corner in itertools.product(*axes):
            weight = math.prod(w for _, w in corner)
            where = tuple(i for i, _ in corner)
            made[(place[0], slice(None), *place[1:])] += weight * x[(place[0], slice(None), *where)]
    return made


def affine(theta, size, align=False):
    sizes = size[2:]
    made = np.zeros((size[0], *sizes, len(sizes)))
    for place in np.ndindex(*sizes):
        at = [
            0 if n == 1 else 2 * i / (n - 1) - 1 if align else (2 * i + 1) / n - 1
            for i, n in zip(place, sizes, strict=True)
        ]
        made[(slice(None), *place)] = theta @ np.array([*at[::-1], 1.0])
    return made


IMAGE, GRID = (2, 2, 4, 5), (2, 3, 2, 2)
FIXED = np.random.default_rng(4).uniform(-2.2, 2.2, GRID)
for _padding in ("zeros", "border", "reflection"):
    for _align in (False, True):
        _how = (_padding, _align)
        table.add(
            f"grid_sample-nearest-{_padding}-{_align}",
            lambda x, how=_how: autograd.grid_sample(x, FIXED, "nearest", *how),
            lambda x, how=_how: sampled(x, FIXED, "nearest", *how),
            IMAGE,
            halves=False,
        )
        for _mode in ("bilinear", "bicubic"):
            table.add(
                f"grid_sample-{_mode}-{_padding}-{_align}",
                lambda x, g, how=(_mode, *_how): autograd.grid_sample(x, g, *how),
                lambda x, g, how=(_mode, *_how): sampled(x, g, *how),
                IMAGE,
                GRID,
                step=1e-6,
                low=-1.8317,
                high=1.8731,
                halves=False,
                empty=((0, *IMAGE[1:]), (0, *GRID[1:])),
            )
table.add(
    "grid_sample-volume",
    lambda x, g: autograd.grid_sample(x, g, "trilinear", "border"),
    lambda x, g: sampled(x, g, "bilinear", "border"),
    (1, 2, 3, 2, 4),
    (1, 2, 1, 2, 3),
    step=1e-6,
    low=-1.8317,
    high=1.8731,
    halves=False,
)
table.add(
    "grid_sample-line",
    lambda x, g: autograd.grid_sample(x, g, "linear"),
    sampled,
    (2, 2, 5),
    (2, 4, 1),
    step=1e-6,
    low=-1.8317,
    high=1.8731,
    halves=False,
)
for _shape, _size in {(2, 2, 3): (2, 1, 3, 4), (1, 3, 4): (1, 2, 2, 1, 3)}.items():
    for _align in (False, True):
        table.add(
            f"affine_grid-{len(_size) - 2}-{_align}",
            lambda t, how=(_size, _align): autograd.affine_grid(t, *how),
            lambda t, how=(_size, _align): affine(t, *how),
            _shape,
        )


#: Places along 3 elements: both ends, beyond them, in the middle and between.
ALONG = np.array([-1.0, 1.0, -1.5, 1.5, 0.0, 0.5])[None, :, None]


def slopes_along(padding, align):
    """The gradient of a grid on a line with the elements 1, 4 and 16."""
    image = plain([[[1.0, 4.0, 16.0]]], "float64")
    sample = lambda grid: autograd.grid_sample(image, grid, "linear", padding, align)  # noqa: E731
    return slopes(sample, ALONG)


#: Clipped places have no gradient, as in PyTorch, those exactly at an end neither.
EXACT = {
    f"grid_sample-ends-{padding}-{align}": (
        lambda how=(padding, align): slopes_along(*how),
        lambda want=want: [np.array(want)[None, :, None]],
    )
    for padding, align, want in (
        ("border", True, [0, 0, 0, 0, 12.0, 12.0]),
        ("border", False, [0, 0, 0, 0, 18.0, 18.0]),
        ("reflection", True, [0, 0, -3.0, -12.0, 12.0, 12.0]),
        ("reflection", False, [0, 0, -4.5, -18.0, 18.0, 18.0]),
    )
}


def of(*shape):
    return Tensor(shape)


REFUSED = {
    "grid_sample: got mode 'area'": (
        ValueError,
        lambda: autograd.grid_sample(of(*IMAGE), of(*GRID), "area"),
    ),
    "grid_sample: got padding_mode": (
        ValueError,
        lambda: autograd.grid_sample(of(*IMAGE), of(*GRID), padding_mode="wrap"),
    ),
    r"grid_sample: got shapes \(2, 2, 4, 5\), \(2, 3, 2, 3\)": (
        ShapeError,
        lambda: autograd.grid_sample(of(*IMAGE), of(2, 3, 2, 3)),
    ),
    r"grid_sample: got shapes \(2, 2, 0, 5\)": (
        ShapeError,
        lambda: autograd.grid_sample(of(2, 2, 0, 5), of(*GRID)),
    ),
    r"affine_grid: got shape \(2, 2, 3\)": (
        ShapeError,
        lambda: autograd.affine_grid(of(2, 2, 3), (2, 1, 3, 4, 5)),
    ),
}
