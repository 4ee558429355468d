"""Resampling along axes: nearest, linear and cubic, with ONNX's rules for coordinates. Each axis is
resampled by itself: a few gathers, weighted and added."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import ShapeError
from ..refusals import strict_flag
from ..tensor import Tensor, as_tensor
from ..tensor.numbers import real, wholes
from .casting import cast, floating
from .index import gather
from .mode import as_one
from .reduce import as_axes
from .shape import apart, clone, transpose
from .table import public
from .terms import wide


class Axis(NamedTuple):
    """How an axis changes: `n` elements become `m`, each of which is `step` of the old ones."""

    n: int
    m: int
    step: float
    #: What is kept of the axis, as shares of it, if the coordinates crop it.
    crop: tuple[float, float] = (0.0, 1.0)


def _half_pixel(i: np.ndarray, axis: Axis) -> np.ndarray:
    return (i + 0.5) * axis.step - 0.5


def _symmetric(i: np.ndarray, axis: Axis) -> np.ndarray:
    """The centre stays in its place, also where the extent was rounded."""
    return (axis.n - axis.m * axis.step) / 2 + _half_pixel(i, axis)


def _cropped(i: np.ndarray, axis: Axis) -> np.ndarray:
    """The outermost elements are the edges of the crop; a single one is its centre."""
    start, end = axis.crop
    span = (end - start) * (axis.n - 1)
    if axis.m == 1:
        return i * 0.0 + 0.5 * (start + end) * (axis.n - 1)
    return start * (axis.n - 1) + i * (span / (axis.m - 1))


#: Where elements of the result stand between those of the input, by ONNX's names.
COORDINATES: dict[str, Callable[[np.ndarray, Axis], np.ndarray]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda i, axis: _half_pixel(i, axis) if axis.m > 1 else i * 0.0,
    "align_corners": lambda i, axis: i * (axis.n - 1) / max(axis.m - 1, 1),
    "asymmetric": lambda i, axis: i * axis.step,
    "tf_crop_and_resize": _cropped,
}
#: PyTorch's aligned corners, which `antialias` moves off the corners: all elements are as far apart
#: as with "align_corners", and stand as with "half_pixel".
_CORNERS = "pytorch_align_corners"
_PLACES = {**COORDINATES, _CORNERS: _half_pixel}
#: Those that the whole of an axis is resampled by.
_UNCROPPED = {name: one for name, one in _PLACES.items() if one is not _cropped}
#: How a place between two elements becomes one of them, by ONNX's names.
ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
#: Modes that take one neighbour.
_NEAREST = ("nearest", "nearest-exact")
#: PyTorch's names of modes, and for how many axes each is.
_ALIASES = {"linear": 1, "bilinear": 2, "trilinear": 3, "cubic": 1, "bicubic": 2}


class Mode(NamedTuple):
    """How an element is made of its neighbours: "nearest", "linear" or "cubic"."""

    kind: str
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    coefficient: float = -0.75
    excludes: bool = False
    #: Whether an axis that shrinks has each of its elements count.
    antialias: bool = False


def cubic_weights(t: Any, a: float) -> list[Any]:
    """The weights of the two elements before a place and of the two after it, which is `t` behind
    the second of them (Keys, 1981)."""

    def near(x: Any) -> Any:
        return (x * (a + 2) - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _shrinking_weights(t: Any, mode: Mode, step: float) -> list[Any]:
    """The weights of all elements within `step` times the reach of the usual ones, before a place
    and after it, which is `t` behind the last of the former: triangles or cubic pieces as wide as
    an element of the result (PyTorch, PIL)."""
    reach = 1 if mode.kind == "linear" else 2
    before = -math.floor(-reach * step) - 1
    made = []
    for k in range(-before, before + 2):
        x = abs(k - t) / step
        if reach == 1:
            made.append(np.clip(1 - x, 0, 1))
        else:
            part = np.floor(x).astype(int)
            pieces = cubic_weights(x - part, mode.coefficient)[1::-1]
            made.append(np.where(part == 0, pieces[0], np.where(part == 1, pieces[1], 0)))
    whole = sum(made)
    return [w / whole for w in made]


def _snapped(at: np.ndarray) -> np.ndarray:
    """Places at an element, or in the middle between two, which rounding has moved off it: a scale
    of float32, such as 0.6, is not exact."""
    near = np.round(2 * at) / 2
    return np.where(abs(at - near) <= 1e-6 * np.maximum(abs(at), 1), near, at)


@functools.lru_cache(maxsize=512)
def _taps(axis: Axis, mode: Mode) -> list[tuple[np.ndarray, np.ndarray]]:
    """What the elements of the result are sums of: indices, and weights."""
    if mode.coordinates == _CORNERS:
        axis = axis._replace(step=(axis.n - 1) / (axis.m - 1) if axis.m > 1 else 0.0)
    at = _PLACES[mode.coordinates](np.arange(axis.m), axis)
    if mode.kind == "nearest":
        found = [(ROUNDINGS[mode.rounding](_snapped(at)), np.ones(axis.m))]
    else:
        first = np.floor(at)
        t = at - first
        if mode.antialias and axis.step > 1:
            weights = _shrinking_weights(t, mode, axis.step)
        else:
            weights = [1 - t, t] if mode.kind == "linear" else cubic_weights(t, mode.coefficient)
        before = len(weights) // 2 - 1
        found = [(first + k - before, w) for k, w in enumerate(weights)]
    if mode.excludes:
        inside = [(i, np.where((i < 0) | (i >= axis.n), 0, w)) for i, w in found]
        whole = sum(w for _, w in inside)
        found = [(i, w / whole) for i, w in inside]
    kept = [(np.clip(i, 0, axis.n - 1).astype(np.int32), w) for i, w in found]
    return [(i, w) for i, w in kept if w.any()]


def _resampled(x: Tensor, along: int, taps: list[tuple[np.ndarray, np.ndarray]]) -> Tensor:
    """The sum of the taps along one axis."""
    made = None
    for places, weights in taps:
        is_same = np.array_equal(places, np.arange(x.shape[along]))
        part = x if is_same else gather(x, along, places)
        if (weights != 1).any():
            column = weights.reshape(-1, *(1,) * (x.rank - along - 1))
            part = part * as_tensor(column, x.device, x.dtype)
        made = part if made is None else made + part
    return made


def resample(x: Tensor, changes: Sequence[tuple[int, Axis]], how: Mode) -> Tensor:
    """The tensor with some of its axes resampled; weights are float32 at least, and integers
    become float32, except by "nearest"."""
    if not changes:
        return clone(x)
    if how.coordinates not in _UNCROPPED:
        return _along_axes(x, changes, how)
    known = {along: (axis.step, axis.step == axis.n / axis.m) for along, axis in changes}
    steps = tuple(known.get(along, (1.0, True)) for along in range(x.rank))
    attrs = {"steps": steps, "how": how}
    return as_one("resample", attrs, x, lambda x: _along_axes(x, changes, how))


def _along_axes(x: Tensor, changes: Sequence[tuple[int, Axis]], how: Mode) -> Tensor:
    # The axes that grow least first, so that little is resampled twice.
    order = sorted(changes, key=lambda change: (change[1].m / change[1].n, -change[0]))
    made = x if how.kind == "nearest" else wide(floating(x))
    # Results of gathers are row-major: the axes in the order of memory keep images channels-last.
    axes = sorted(range(x.rank), key=lambda a: -abs(made.strides[a]))
    made = transpose(made, axes)
    for along, axis in order:
        made = _resampled(made, axes.index(along), _taps(axis, how))
    made = transpose(made, [axes.index(a) for a in range(x.rank)])
    return apart(cast(made, x.dtype) if x.dtype.is_float else made, x)


def _extents(x: Tensor, axes: tuple[int, ...], size: Any, scale: Any) -> list[tuple[int, Axis]]:
    """How each axis changes.

    Raises:
        ValueError, ShapeError: numbers that do not fit.
    """
    if (size is None) == (scale is None):
        raise ValueError(f"interpolate: got size {size} and scale {scale}, want one of them")
    given: Any = size if scale is None else scale
    what = "interpolate: " + ("size" if scale is None else "scale")
    single = not isinstance(given, (Sequence, np.ndarray, Tensor)) or isinstance(
        given, (str, bytes)
    )
    many = [given] * len(axes) if single else list(given)
    if len(many) != len(axes):
        raise ValueError(f"{what}: got {given} for {len(axes)} axes, want one for each")
    made = []
    for along, one in zip(axes, many, strict=True):
        n = x.shape[along]
        if n == 0:
            raise ShapeError(f"interpolate: got shape {x.shape}, want elements along each axis")
        by = real(one, what) if scale is not None else 0.0
        if scale is not None and not 0 < by * n < 2**31:
            raise ValueError(f"{what}: got {one} for an extent of {n}, want a positive number")
        m = wholes(one, what)[0] if scale is None else int(by * n)
        if not 1 <= m < 2**31:
            raise ValueError(f"{what}: got {one} for an extent of {n}, want one element at least")
        made.append((along, Axis(n, m, n / m if scale is None else 1 / by)))
    return made


def _kind(mode: Any, sides: int) -> str:
    """The mode by ONNX's name."""
    if isinstance(mode, str) and mode in _NEAREST:
        return "nearest"
    if isinstance(mode, str) and mode in _ALIASES:
        if mode in ("linear", "cubic") or _ALIASES[mode] == sides:
            return {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    want = "'nearest', 'nearest-exact', 'linear' or 'cubic'"
    want = "adaptive_avg_pool" if mode == "area" else want
    raise ValueError(f"interpolate: got mode {mode!r} for {sides} axes, want {want}")


def _places(mode: str, coordinates: str | None, rounding: str | None) -> tuple[str, str]:
    """The coordinates and the rounding of a mode: PyTorch's if neither is given; else what is not
    is ONNX's default."""
    is_free = coordinates is None and rounding is None
    own = "asymmetric" if is_free and mode == "nearest" else "half_pixel"
    nearest = "round_prefer_ceil" if mode == "nearest-exact" else "round_prefer_floor"
    nearest = "floor" if own == "asymmetric" else nearest
    return (
        _among("coordinates", own if coordinates is None else coordinates, _UNCROPPED),
        _among("nearest_mode", nearest if rounding is None else rounding, ROUNDINGS),
    )


def _among(what: str, value: Any, known: dict[str, Any]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"interpolate: got {what} {value!r}, want one of {', '.join(known)}")
    return value


@public()
def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale: float | Sequence[float] | None = None,
    mode: str = "nearest",
    coordinates: str | None = None,
    *,
    nearest_mode: str | None = None,
    cubic_coeff: float | None = None,
    exclude_outside: bool | None = None,
    antialias: bool = False,
    axes: int | Sequence[int] | None = None,
) -> Tensor:
    """Images, lines or volumes enlarged or shrunk to `size` or by `scale` (ONNX Resize, PyTorch
    interpolate). Neighbours beyond an edge are the elements at the edge.

    Every mode is PyTorch's by default, and so are its keywords `scale_factor` and `align_corners`,
    which is `coordinates="pytorch_align_corners"`; its "area" is `adaptive_avg_pool`.

    Args:
        x: (N, C, *spatial) unless `axes` says otherwise. Integers become float32, except by
            "nearest", which keeps any dtype. 16-bit floats are weighted in float32.
        size: the extents of the result, one int for all axes or one for each.
        scale: factors instead, floats; an extent is rounded down.
        mode: "nearest" or "nearest-exact"; "linear", of 2 neighbours along each axis ("bilinear"
            and "trilinear" for 2 and 3 axes); "cubic", of 4 ("bicubic" for 2).
        coordinates: where element i of m stands among n, by ONNX's names, with s the factor:
            "half_pixel" `(i + 0.5) / s - 0.5`, "asymmetric" `i / s`, "align_corners"
            `i (n - 1) / (m - 1)`, "pytorch_half_pixel", which is 0 for an m of 1, and
            "half_pixel_symmetric", which keeps the centre where the extent was rounded. Beside
            these, "pytorch_align_corners" is "align_corners", but with `antialias` "half_pixel"
            with `(m - 1) / (n - 1)` for s, also in the weights. The default is "half_pixel", but
            for "nearest" without a `nearest_mode` "asymmetric".
        nearest_mode: which neighbour a place between two is, "round_prefer_floor",
            "round_prefer_ceil", "floor" or "ceil". By default the first, as in ONNX; for "nearest"
            without `coordinates` "floor", for "nearest-exact" "round_prefer_ceil".
        cubic_coeff: the coefficient of the cubic weights: -0.75, with `antialias` Keys's -0.5.
        exclude_outside: whether neighbours beyond an edge have no weight; `antialias` by default.
        antialias: whether all elements of an axis that shrinks count, not only the neighbours.
        axes: the axes that are resampled, those after the second by default.

    Raises:
        ValueError: both or neither of `size` and `scale`, or not one for each axis; a name that is
            not among these.
        ShapeError: no axis, or one without elements.
    """
    over = as_axes(range(2, x.rank) if axes is None else axes, x.rank, "interpolate")
    if not over:
        raise ShapeError(f"interpolate: got shape {x.shape}, want axes after (N, C)")
    smooth = strict_flag(antialias, "interpolate: antialias")
    coefficient = (-0.5 if smooth else -0.75) if cubic_coeff is None else cubic_coeff
    excludes = smooth if exclude_outside is None else exclude_outside
    kind, (places, rounding) = _kind(mode, len(over)), _places(mode, coordinates, nearest_mode)
    is_moved = places != _CORNERS or (smooth and kind != "nearest")
    how = Mode(
        kind,
        places if is_moved else "align_corners",
        rounding,
        real(coefficient, "interpolate: cubic_coeff"),
        strict_flag(excludes, "interpolate: exclude_outside"),
        smooth,
    )
    return resample(x, _extents(x, over, size, scale), how)
