"""Layers that change how large images are: by factors, or to a given size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .. import autograd
from ..autograd.resize import COORDINATES
from ..errors import ShapeError
from ..refusals import is_real
from ..tensor import Tensor
from .base import Layer
from .check import axes, count, count_or_none, float_input, one_of

MODES = ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "cubic", "bicubic")


class Upsample(Layer):
    """Images, lines or volumes enlarged by factors or to a size (ONNX and PyTorch Upsample):
    `autograd.interpolate`, where PyTorch's names of coordinates stand, too."""

    def __init__(
        self,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        *,
        size: int | Sequence[int] | None = None,
        coordinates: str | None = None,
    ) -> None:
        """`scale_factor`: for all spatial axes, or one for each; 2 unless there is a `size`.
        `mode`: "nearest", "nearest-exact", "linear" or "cubic". `size`: the extents of the result
        instead. `coordinates`: as in `autograd.interpolate`; by default "half_pixel", and for
        "nearest" "asymmetric", where places between two elements are rounded down.

        Raises:
            TypeError, ValueError: factors or sizes that are not positive numbers, or both of them;
                another mode or other coordinates.
        """
        super().__init__()
        if scale_factor is not None and size is not None:
            raise ValueError(f"Upsample: got scale_factor {scale_factor} and size {size}, want one")
        factor = 2 if scale_factor is None and size is None else scale_factor
        self.scale_factor: Any = _each(factor, "Upsample: scale_factor", _factor)
        self.size: Any = _each(size, "Upsample: size", count)
        self.mode = one_of(mode, "Upsample: mode", MODES)
        is_nearest = self.mode == "nearest"
        coordinates = coordinates or ("asymmetric" if is_nearest else "half_pixel")
        self.coordinates = one_of(coordinates, "Upsample: coordinates", tuple(COORDINATES))

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial), with an axis for each factor or size.

        Raises:
            ShapeError: a different number of axes.
        """
        given = self.scale_factor if self.size is None else self.size
        spatial = x.rank - 2
        wanted = given if isinstance(given, tuple) else (given,) * spatial
        if spatial < 1 or spatial != len(wanted):
            raise ShapeError(f"Upsample: got shape {x.shape}, want (N, C) and {given} times more")
        is_plain = self.mode == "nearest" and self.coordinates == "asymmetric"
        if is_plain and self.size is None and all(isinstance(n, int) for n in wanted):
            return autograd.upsample(x, self.mode, [1, 1, *wanted])
        rounding = "floor" if is_plain else None
        how = (self.size, self.scale_factor, self.mode, self.coordinates)
        return autograd.interpolate(x, *how, nearest_mode=rounding)


def _factor(value: Any, what: str) -> float:
    """A positive number; a whole one from 1 as an int."""
    if not is_real(value) or not 0 < value < math.inf:
        kind = ValueError if is_real(value) else TypeError
        raise kind(f"{what}: got {value!r}, want a positive number")
    return int(value) if float(value).is_integer() else float(value)


def _each(value: Any, what: str, check: Callable[[Any, str], Any]) -> Any:
    """A checked number, or several of them as a tuple."""
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        return check(value, what)
    if not value:
        raise ValueError(f"{what}: got {value!r}, want at least one")
    return tuple(check(one, what) for one in value)


class PixelShuffle(Layer):
    """Channels to space: (N, C r**2, H, W) -> (N, C, H r, W r) (Shi et al., 2016; ONNX
    DepthToSpace, CRD)."""

    def __init__(self, upscale_factor: int) -> None:
        """`upscale_factor`: r, an int from 1."""
        super().__init__()
        self.upscale_factor = count(upscale_factor, "PixelShuffle: upscale_factor")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C r**2, H, W).

        Raises:
            ShapeError: a different number of axes, or channels that cannot be divided.
        """
        axes(x, "PixelShuffle", 4)
        return autograd.depth_to_space(x, self.upscale_factor, "CRD")


class PixelUnshuffle(Layer):
    """Space to channels: (N, C, H r, W r) -> (N, C r**2, H, W), the inverse of `PixelShuffle`."""

    def __init__(self, downscale_factor: int) -> None:
        """`downscale_factor`: r, an int from 1."""
        super().__init__()
        self.downscale_factor = count(downscale_factor, "PixelUnshuffle: downscale_factor")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H r, W r).

        Raises:
            ShapeError: a different number of axes, or extents that cannot be divided.
        """
        axes(x, "PixelUnshuffle", 4)
        return autograd.space_to_depth(x, self.downscale_factor, "CRD")


class _AdaptivePool(Layer):
    spatial: ClassVar[int]
    #: The function, which says what the windows are.
    function: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: int | None | Sequence[int | None]) -> None:
        """`output_size`: for all spatial axes, or one for each; None keeps an extent.

        Raises:
            TypeError, ValueError: sizes other than ints from 1, or not one for each axis.
        """
        super().__init__()
        name = f"{type(self).__name__}: output_size"
        many = isinstance(output_size, Sequence) and not isinstance(output_size, str)
        given: Any = output_size if many else (output_size,) * self.spatial
        if len(given) != self.spatial:
            raise ValueError(f"{name}: got {output_size}, want {self.spatial} sizes")
        self.output_size = tuple(count_or_none(n, name) for n in given)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C, *output_size).

        Raises:
            ShapeError: a different number of axes, or one without elements.
        """
        name = type(self).__name__
        float_input(x, name)
        axes(x, name, self.spatial + 2)
        return type(self).function(x, self.output_size)


class _AdaptiveAvgPool(_AdaptivePool):
    function = autograd.adaptive_avg_pool


class _AdaptiveMaxPool(_AdaptivePool):
    function = autograd.adaptive_max_pool


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """`autograd.adaptive_avg_pool` of lines (PyTorch AdaptiveAvgPool1d)."""

    spatial = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`autograd.adaptive_avg_pool` of images (PyTorch AdaptiveAvgPool2d)."""

    spatial = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """`autograd.adaptive_avg_pool` of volumes (PyTorch AdaptiveAvgPool3d)."""

    spatial = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """`autograd.adaptive_max_pool` of lines (PyTorch AdaptiveMaxPool1d)."""

    spatial = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`autograd.adaptive_max_pool` of images (PyTorch AdaptiveMaxPool2d)."""

    spatial = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`autograd.adaptive_max_pool` of volumes (PyTorch AdaptiveMaxPool3d)."""

    spatial = 3
