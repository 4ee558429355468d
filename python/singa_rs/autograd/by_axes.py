"""Convolution and pooling under PyTorch's names, which tell the number of spatial axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import ShapeError
from ..errors import called
from ..tensor import Tensor
from .adaptive import Sizes, adaptive_avg_pool, adaptive_max_pool
from .convolution import conv, conv_transpose
from .pooling import avg_pool, max_pool, max_unpool
from .table import public
from .windows import Numbers, Padding

_WANT = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


def _enter(function: Callable[..., Any], axes: int, of: str, precision: str = "") -> None:
    """Enters `<of><axes>d`, which is `of` for images of that many axes."""
    name = f"{of}{axes}d"
    text = f"`{of}` of {_WANT[axes]} (PyTorch {name}), with PyTorch's order of arguments."
    public(precision=precision)(called(function, name, text, __package__))


def _checked(x: Tensor, axes: int, op: str) -> Tensor:
    if x.rank != axes + 2:
        raise ShapeError(f"{op}{axes}d: got shape {x.shape}, want {_WANT[axes]}")
    return x


def _convolutions(axes: int) -> None:
    def convolve(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Numbers = 1,
        padding: Padding = 0,
        dilation: Numbers = 1,
        groups: int = 1,
    ) -> Tensor:
        _checked(x, axes, "conv")
        return conv(x, weight, bias, stride, padding, dilation, groups)

    def transposed(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Numbers = 1,
        padding: Padding = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        dilation: Numbers = 1,
    ) -> Tensor:
        _checked(x, axes, "conv_transpose")
        how = (stride, padding, output_padding, dilation, groups)
        return conv_transpose(x, weight, bias, *how)

    if axes != 2:  # conv2d has SINGA's arguments
        _enter(convolve, axes, "conv", "short")
    _enter(transposed, axes, "conv_transpose", "short")


def _poolings(axes: int) -> None:
    def greatest(
        x: Tensor,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Padding = 0,
        dilation: Numbers = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        _checked(x, axes, "max_pool")
        return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def mean(
        x: Tensor,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        _checked(x, axes, "avg_pool")
        how = (ceil_mode, count_include_pad, divisor_override)
        return avg_pool(x, kernel_size, stride, padding, *how)

    def back(
        x: Tensor,
        indices: Any,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        output_size: Any = None,
    ) -> Tensor:
        _checked(x, axes, "max_unpool")
        return max_unpool(x, indices, kernel_size, stride, padding, output_size)

    _enter(greatest, axes, "max_pool")
    _enter(mean, axes, "avg_pool")
    _enter(back, axes, "max_unpool")


def _adaptive(axes: int, of: str, pool: Callable[..., Tensor]) -> None:
    def adaptive(x: Tensor, output_size: Sizes) -> Tensor:
        _checked(x, axes, of)
        many = isinstance(output_size, (tuple, list))
        return pool(x, output_size if many else (output_size,) * axes)

    _enter(adaptive, axes, of)


for _axes in (1, 2, 3):
    _convolutions(_axes)
    _poolings(_axes)
    _adaptive(_axes, "adaptive_avg_pool", adaptive_avg_pool)
    _adaptive(_axes, "adaptive_max_pool", adaptive_max_pool)
