"""Layers that change how large images are: by whole factors, or to a given size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self.output_size = tuple(None if n is None else count(n, name) for n in given)

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
