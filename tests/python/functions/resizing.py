"""Resampling, against sums over all elements by ONNX's formulas."""

import math

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table

table = Table()


def coordinate(i, n, m, scale, how):
    """ONNX's formulas, one element at a time."""
    if how == "align_corners":
        return i * (n - 1) / (m - 1) if m > 1 else 0.0
    if how == "asymmetric":
        return i / scale
    if how == "pytorch_half_pixel" and m == 1:
        return 0.0
    half = (i + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        return n / 2 * (1 - m / (n * scale)) + half
    return half


def cubic(distance, a):
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


KERNELS = {"linear": lambda d, a: max(0.0, 1 - abs(d)), "cubic": cubic}
ROUNDINGS = {
    "round_prefer_floor": lambda v: math.ceil(v - 0.5),
    "round_prefer_ceil": lambda v: math.floor(v + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


def matrix(n, m, scale, mode, how, rounding, a, excludes, antialias):
    """What each element of the result is made of."""
    made, shrunk = np.zeros((m, n)), min(scale, 1.0) if antialias else 1.0
    reach = math.ceil(2 / shrunk) + 1
    for i in range(m):
        at = coordinate(i, n, m, scale, how)
        if mode == "nearest":
            made[i, min(max(ROUNDINGS[rounding](at), 0), n - 1)] = 1
            continue
        for j in range(math.floor(at) - reach, math.floor(at) + reach + 1):
            if 0 <= j < n or not excludes:
                made[i, min(max(j, 0), n - 1)] += KERNELS[mode]((at - j) * shrunk, a)
        if excludes or antialias:
            made[i] /= made[i].sum()
    return made


def resized(
    x,
    size=None,
    scale=None,
    mode="nearest",
    coordinates=None,
    nearest_mode="round_prefer_floor",
    cubic_coeff=None,
    exclude_outside=None,
    antialias=False,
    axes=None,
):
    mode = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    axes = range(2, x.ndim) if axes is None else axes
    how = coordinates or "half_pixel"
    if cubic_coeff is None:
        cubic_coeff = -0.5 if antialias else -0.75
    flags = (antialias if exclude_outside is None else exclude_outside, antialias)
    given = size if scale is None else scale
    for axis, one in zip(axes, np.broadcast_to(given, len(axes)), strict=True):
        n = x.shape[axis]
        m = int(one) if scale is None else math.floor(n * one)
        by = m / n if scale is None else one
        if how == "pytorch_align_corners":
            by = (m - 1) / (n - 1)
        weights = matrix(n, m, by, mode, how, nearest_mode, cubic_coeff, *flags)
        x = np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)
    return x


def add(label, shape, *args, **options):
    table.add(
        f"interpolate-{label}",
        lambda x: autograd.interpolate(x, *args, **options),
        lambda x: resized(x, *args, **options),
        shape,
        empty=((0, *shape[1:]),) if "axes" not in options else (),
    )


IMAGE, CORNERS = (2, 2, 4, 5), "pytorch_align_corners"
for _mode in ("nearest", "linear", "cubic"):
    for _how in (
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
    ):
        add(f"{_mode}-{_how}-larger", IMAGE, (7, 10), None, _mode, _how)
        add(f"{_mode}-{_how}-smaller", IMAGE, None, (0.7, 0.45), _mode, _how)
    add(f"{_mode}-one", IMAGE, 1, None, _mode, "pytorch_half_pixel")
    add(f"{_mode}-line", (2, 1, 6), 9, mode=_mode)
    add(f"{_mode}-volume", (1, 2, 3, 2, 4), scale=(2, 1, 1.5), mode=_mode)
for _rounding in ROUNDINGS:
    add(f"nearest-{_rounding}", IMAGE, scale=(1.6, 0.5), nearest_mode=_rounding)
for _mode in ("linear", "cubic"):
    add(f"{_mode}-excludes", IMAGE, (9, 3), mode=_mode, exclude_outside=True)
    add(f"{_mode}-antialias", IMAGE, (3, 2), mode=_mode, antialias=True)
    add(f"{_mode}-antialias-larger", IMAGE, (3, 7), mode=_mode, antialias=True)
    for _name, _size in (("larger", (7, 9)), ("smaller", (3, 2))):
        add(f"{_mode}-corners-{_name}", IMAGE, _size, None, _mode, CORNERS, antialias=True)
    add(f"{_mode}-line-antialias", (1, 1, 11), None, 0.3, _mode, "asymmetric", antialias=True)
    add(
        f"{_mode}-both",
        (1, 11, 7),
        (3, 9),
        None,
        _mode,
        axes=(1, 2),
        antialias=True,
        exclude_outside=False,
        cubic_coeff=-0.75,
    )
add("bilinear", IMAGE, scale=2, mode="bilinear")
add("bicubic-keys", IMAGE, scale=2.5, mode="bicubic", cubic_coeff=-0.5)
add("same", IMAGE, (4, 5), mode="linear")
add("axes", IMAGE, (3, 4), mode="linear", axes=(0, 2))


def image(*shape):
    return Tensor(shape or IMAGE)


REFUSED = {
    "interpolate: got size None and": (ValueError, lambda: autograd.interpolate(image())),
    "interpolate: got size 3 and": (ValueError, lambda: autograd.interpolate(image(), 3, 2.0)),
    "interpolate: got mode 'bilinear' for 1": (
        ValueError,
        lambda: autograd.interpolate(image(1, 2, 3), 4, mode="bilinear"),
    ),
    "interpolate: got mode 'area'": (
        ValueError,
        lambda: autograd.interpolate(image(), 4, mode="area"),
    ),
    "interpolate: got coordinates": (
        ValueError,
        lambda: autograd.interpolate(image(), 4, coordinates="corners"),
    ),
    "interpolate: got nearest_mode": (
        ValueError,
        lambda: autograd.interpolate(image(), 4, nearest_mode="round"),
    ),
    r"interpolate: size: got \(2, 3, 4\)": (
        ValueError,
        lambda: autograd.interpolate(image(), (2, 3, 4)),
    ),
    "interpolate: size: got 0": (ValueError, lambda: autograd.interpolate(image(), 0)),
    "interpolate: scale: got -1.0": (
        ValueError,
        lambda: autograd.interpolate(image(), None, -1.0),
    ),
    "interpolate: scale: got 0.1": (
        ValueError,
        lambda: autograd.interpolate(image(), None, 0.1),
    ),
    r"interpolate: got shape \(1, 2\)": (
        ShapeError,
        lambda: autograd.interpolate(image(1, 2), 2),
    ),
    r"interpolate: got shape \(1, 2, 0\)": (
        ShapeError,
        lambda: autograd.interpolate(image(1, 2, 0), 2),
    ),
}
