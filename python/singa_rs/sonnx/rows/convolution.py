"""Convolutions and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor
from ..table import reads

Ints = Sequence[int] | None


def padding_of(auto_pad: str, pads: Ints) -> Any:
    """The padding in the form of `autograd`: numbers, or the name of a rule."""
    return auto_pad if auto_pad != "NOTSET" else (pads or 0)


def _check_kernel(op: str, kernel: Ints, weight: Tensor) -> None:
    if kernel and tuple(kernel) != weight.shape[2:]:
        got = f"kernel_shape {tuple(kernel)} and a weight {weight.shape}"
        raise ShapeError(f"{op}: got {got}, want equal extents")


@reads("Conv")
def conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None, pads: Ints = None,
    strides: Ints = None,
) -> Tensor:  # fmt: skip
    """A convolution over one to three spatial axes."""
    _check_kernel("Conv", kernel_shape, w)
    padding = padding_of(auto_pad, pads)
    return autograd.conv(x, w, b, strides or 1, padding, dilations or 1, group)


@reads("ConvTranspose")
def conv_transpose(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None,
    output_padding: Ints = None, output_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    """The transpose of a convolution; `output_shape` decides the padding if it is given."""
    _check_kernel("ConvTranspose", kernel_shape, w)
    axes = x.rank - 2
    stride, gaps = tuple(strides or (1,) * axes), tuple(dilations or (1,) * axes)
    padding, more = padding_of(auto_pad, pads), tuple(output_padding or (0,) * axes)
    if output_shape:
        reach = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], gaps, strict=True)]
        covered = zip(x.shape[2:], stride, reach, more, strict=True)
        full = [s * (n - 1) + r + m for n, s, r, m in covered]
        padding, added = _pads_for(full, output_shape[-axes:], auto_pad)
        more = tuple(a + b for a, b in zip(more, added, strict=True))
    return autograd.conv_transpose(x, w, b, stride, padding, more, gaps, group)


def _pads_for(
    full: Sequence[int], want: Sequence[int], auto_pad: str
) -> tuple[list[int], list[int]]:
    """What is left out of extents before and after each axis, or added after it, for wanted ones;
    of an odd number SAME_UPPER leaves out more at the end, all other rules at the start."""
    out = [max(0, n - m) for n, m in zip(full, want, strict=True)]
    less, rest = [n // 2 for n in out], [n - n // 2 for n in out]
    added = [max(0, m - n) for n, m in zip(full, want, strict=True)]
    return (less + rest if auto_pad == "SAME_UPPER" else rest + less), added
