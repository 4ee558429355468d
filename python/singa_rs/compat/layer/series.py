"""Convolution and pooling of series: layers of samples (L,) or (C, L), or (C, 1, L) as images of
one row."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...tensor import Tensor
from .base import Layer, Shape, Specs, sample_shape
from .windows import AvgPooling2D, Conv2D, MaxPooling2D


class _Series(Layer):
    """A layer of images with one row that takes series, too."""

    def _shapes_of(self, in_shapes: Any) -> tuple[Shape, Shape]:
        shape = sample_shape(in_shapes, self._where("input_sample_shape"))
        if len(shape) not in (1, 2) and shape[1:2] != (1,):
            raise self._refuse(f"a sample of {shape}", "(L,), (C, L) or (C, 1, L)")
        return shape, self._shown(self._setup(_image(shape)), len(shape))

    def _shown(self, made: Shape, axes: int) -> Shape:
        """The shape of the output's sample, of its image (C, 1, L)."""
        return made if axes == 3 else (made[0], made[2])

    def _fits(self, shape: Shape, sample: Shape) -> bool:
        return shape[1:] in (sample, _image(sample))

    def _compute(self, x: Tensor) -> Tensor:
        image = _image(x.shape[1:])
        y = super()._compute(autograd.reshape(x, (x.shape[0], *image)))  # type: ignore[safe-super]
        shown = self._shown(y.shape[1:], x.rank - 1)
        return autograd.reshape(y, (x.shape[0], *shown))


def _image(sample: Shape) -> Shape:
    """A sample as an image of one row."""
    return (
        sample if len(sample) == 3 else (*((1,) * (2 - len(sample))), *sample[:-1], 1, sample[-1])
    )


class Conv1D(_Series, Conv2D):
    """Convolution of series (SINGA 1.x Conv1D); the output is (nb_kernels, L')."""

    def __init__(
        self,
        name: str,
        nb_kernels: int,
        kernel: int = 3,
        stride: int = 1,
        border_mode: str = "same",
        cudnn_prefer: str = "fastest",
        workspace_byte_limit: int = 1024,
        use_bias: bool = True,
        W_specs: Specs = None,
        b_specs: Specs = None,
        pad: int | None = None,
        input_sample_shape: Any = None,
    ) -> None:
        """As `Conv2D`, with an int for the kernel, the stride and the padding."""
        super().__init__(
            name,
            nb_kernels,
            (1, kernel),
            (1, stride),
            border_mode,
            use_bias=use_bias,
            W_specs=W_specs,
            b_specs=b_specs,
            pad=None if pad is None else (0, pad),
            input_sample_shape=input_sample_shape,
        )


class MaxPooling1D(_Series, MaxPooling2D):
    """The maxima of windows of series (SINGA 1.x MaxPooling1D)."""

    def __init__(
        self,
        name: str,
        kernel: int = 3,
        stride: int = 2,
        border_mode: str = "same",
        pad: int | None = None,
        data_format: str = "NCHW",
        input_sample_shape: Any = None,
    ) -> None:
        """As `Pooling2D`, with an int for the kernel, the stride and the padding."""
        around = None if pad is None else (0, pad)
        how = (border_mode, around, data_format, input_sample_shape)
        super().__init__(name, (1, kernel), (1, stride), *how)

    def _shown(self, made: Shape, axes: int) -> Shape:
        return made[2:] if axes == 1 else super()._shown(made, axes)


class AvgPooling1D(MaxPooling1D, AvgPooling2D):
    """The means of windows of series (SINGA 1.x AvgPooling1D)."""
