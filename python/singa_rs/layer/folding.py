"""Windows as columns and back, axes and channels in other orders, normalisation across channels,
dropout for SELU, resampling under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import autograd
from ..errors import ShapeError
from ..refusals import is_integral
from ..tensor import Tensor
from .base import Layer
from .check import count, float_input, number
from .resize import Upsample
from .shape import Dropping

Numbers = int | Sequence[int]


def _extents(value: Any, argument: str, least: int = 1) -> Any:
    """An int, or a tuple of several."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            raise ValueError(f"{argument}: got {value!r}, want at least one int")
        return tuple(count(one, argument, least) for one in value)
    return count(value, argument, least)


class _Windows(Layer):
    def __init__(
        self, kernel_size: Numbers, dilation: Numbers, padding: Numbers, stride: Numbers
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = _extents(kernel_size, f"{name}: kernel_size")
        self.dilation = _extents(dilation, f"{name}: dilation")
        self.padding = _extents(padding, f"{name}: padding", 0)
        self.stride = _extents(stride, f"{name}: stride")

    def _given(self) -> tuple[Any, ...]:
        return self.kernel_size, self.dilation, self.padding, self.stride


class Unfold(_Windows):
    """The elements of all windows as columns (PyTorch Unfold; autograd.unfold)."""

    def __init__(
        self,
        kernel_size: Numbers,
        dilation: Numbers = 1,
        padding: Numbers = 0,
        stride: Numbers = 1,
    ) -> None:
        """Each is one int for all axes, or one for each."""
        super().__init__(kernel_size, dilation, padding, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, *spatial) -> (N, C * elements of a window, windows)."""
        return autograd.unfold(x, *self._given())


class Fold(_Windows):
    """The sum of windows in images (PyTorch Fold; autograd.fold)."""

    def __init__(
        self,
        output_size: Numbers,
        kernel_size: Numbers,
        dilation: Numbers = 1,
        padding: Numbers = 0,
        stride: Numbers = 1,
    ) -> None:
        """`output_size`: one int for each axis; the others one for all axes, or one for each."""
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = _extents(output_size, "Fold: output_size")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C * elements of a window, windows) -> (N, C, *output_size)."""
        return autograd.fold(x, self.output_size, *self._given())


class Unflatten(Layer):
    """One axis as several (PyTorch Unflatten)."""

    def __init__(self, axis: int, sizes: Sequence[int]) -> None:
        """`sizes`: the extents, one of which may be -1."""
        super().__init__()
        self.axis = count(axis, "Unflatten: axis", -64)
        self.sizes = _extents(sizes, "Unflatten: sizes", -1)

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis, with the product of the sizes as extent there."""
        return autograd.unflatten(x, self.axis, self.sizes)


class ChannelShuffle(Layer):
    """Channels of groups in turn (Zhang et al., 2017; PyTorch ChannelShuffle)."""

    def __init__(self, groups: int) -> None:
        """`groups`: a divisor of the number of channels."""
        super().__init__()
        self.groups = count(groups, "ChannelShuffle: groups")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...)."""
        return autograd.channel_shuffle(x, self.groups)


class LocalResponseNorm(Layer):
    """Channels divided by what those around them measure (Krizhevsky et al., 2012; PyTorch
    LocalResponseNorm; autograd.local_response_norm)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = count(size, "LocalResponseNorm: size")
        self.alpha = number(alpha, "LocalResponseNorm: alpha")
        self.beta = number(beta, "LocalResponseNorm: beta")
        self.k = number(k, "LocalResponseNorm: k")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...) with at least three axes."""
        float_input(x, "LocalResponseNorm")
        return autograd.local_response_norm(x, self.size, self.alpha, self.beta, self.k)


class AlphaDropout(Dropping):
    """Dropout that keeps mean and variance behind SELU (Klambauer et al., 2017; PyTorch
    AlphaDropout)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.alpha_dropout(x, self.ratio)


class FeatureAlphaDropout(AlphaDropout):
    """`AlphaDropout` of whole channels (PyTorch FeatureAlphaDropout)."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...)."""
        return autograd.feature_alpha_dropout(x, self.ratio)


class _Upsampling(Upsample):
    mode_of: str
    coordinates_of: str | None = None

    def __init__(
        self, size: Numbers | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        """Either `size`, the extents of the result, or `scale_factor`."""
        if is_integral(size):
            size = (count(size, f"{type(self).__name__}: size"),) * 2
        super().__init__(scale_factor, self.mode_of, size=size, coordinates=self.coordinates_of)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W).

        Raises:
            ShapeError: a different number of axes.
        """
        if x.rank != 4:
            raise ShapeError(f"{type(self).__name__}: got shape {x.shape}, want 4 axes")
        return super().forward(x)


class UpsamplingNearest2d(_Upsampling):
    """Images enlarged by repeating elements (PyTorch UpsamplingNearest2d)."""

    mode_of = "nearest"


class UpsamplingBilinear2d(_Upsampling):
    """Images enlarged by linear interpolation between corners that stay (PyTorch
    UpsamplingBilinear2d)."""

    mode_of, coordinates_of = "bilinear", "align_corners"
