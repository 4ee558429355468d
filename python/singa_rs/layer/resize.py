"""Layers that change how large images are: by whole factors, or to a given size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import autograd
from ..errors import ShapeError
from ..tensor import Tensor
from .base import Layer
from .check import axes, count, float_input, one_of


class Upsample(Layer):
    """Enlarged by whole factors, by repeating elements (ONNX and PyTorch Upsample, nearest)."""

    def __init__(self, scale_factor: int | Sequence[int] = 2, mode: str = "nearest") -> None:
        """`scale_factor`: for all spatial axes, or one for each.

        Raises:
            TypeError, ValueError: factors other than ints from 1; another mode than "nearest".
        """
        super().__init__()
        many = isinstance(scale_factor, Sequence) and not isinstance(scale_factor, str)
        given = scale_factor if many else (scale_factor,)
        factors = tuple(count(n, "Upsample: scale_factor") for n in given)
        if not factors:
            raise ValueError("Upsample: scale_factor: got (), want at least one")
        self.scale_factor = factors if many else factors[0]
        self.mode = one_of(mode, "Upsample: mode", ("nearest",))

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial), with an axis for each factor.

        Raises:
            ShapeError: a different number of axes.
        """
        factors = self.scale_factor
        spatial = x.rank - 2
        wanted = (factors,) * spatial if isinstance(factors, int) else factors
        if spatial < 1 or spatial != len(wanted):
            raise ShapeError(f"Upsample: got shape {x.shape}, want (N, C) and {factors} times more")
        return autograd.upsample(x, self.mode, [1, 1, *wanted])


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
    function: ClassVar[str]

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
        self.output_size = tuple(None if n is None else count(n, name) for n in given)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C, *output_size).

        Raises:
            ShapeError: a different number of axes, or one without elements.
        """
        name = type(self).__name__
        float_input(x, name)
        axes(x, name, self.spatial + 2)
        return getattr(autograd, self.function)(x, self.output_size)


class AdaptiveAvgPool1d(_AdaptivePool):
    """The means of windows that divide a line into `output_size` parts (PyTorch
    AdaptiveAvgPool1d): window i of m over n elements is from floor(i n / m) to
    ceil((i + 1) n / m)."""

    spatial = 1
    function = "adaptive_avg_pool"


class AdaptiveAvgPool2d(_AdaptivePool):
    """The means of windows that divide an image into `output_size` parts (PyTorch
    AdaptiveAvgPool2d): window i of m over n elements is from floor(i n / m) to
    ceil((i + 1) n / m)."""

    spatial = 2
    function = "adaptive_avg_pool"


class AdaptiveAvgPool3d(_AdaptivePool):
    """The means of windows that divide a volume into `output_size` parts (PyTorch
    AdaptiveAvgPool3d): window i of m over n elements is from floor(i n / m) to
    ceil((i + 1) n / m)."""

    spatial = 3
    function = "adaptive_avg_pool"


class AdaptiveMaxPool1d(_AdaptivePool):
    """The maxima of windows that divide a line into `output_size` parts (PyTorch
    AdaptiveMaxPool1d): window i of m over n elements is from floor(i n / m) to
    ceil((i + 1) n / m)."""

    spatial = 1
    function = "adaptive_max_pool"


class AdaptiveMaxPool2d(_AdaptivePool):
    """The maxima of windows that divide an image into `output_size` parts (PyTorch
    AdaptiveMaxPool2d): window i of m over n elements is from floor(i n / m) to
    ceil((i + 1) n / m)."""

    spatial = 2
    function = "adaptive_max_pool"


class AdaptiveMaxPool3d(_AdaptivePool):
    """The maxima of windows that divide a volume into `output_size` parts (PyTorch
    AdaptiveMaxPool3d): window i of m over n elements is from floor(i n / m) to
    ceil((i + 1) n / m)."""

    spatial = 3
    function = "adaptive_max_pool"
