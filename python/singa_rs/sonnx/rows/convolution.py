"""Convolutions and their transposes, and columns added up in images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...autograd.grid import sample_at
from ...errors import ShapeError
from ...tensor import Tensor
from ...tensor.numbers import wholes
from ..running import Frame
from ..table import reads
from ..values import to_tensor
from .integers import in_int64

Ints = Sequence[int] | None


def padding_of(auto_pad: str, pads: Ints) -> Any:
    """The padding in the form of `autograd`: numbers, or the name of a rule."""
    return auto_pad if auto_pad != "NOTSET" else (pads or 0)


def check_windows(op: str, x: Tensor, pads: Ints, **each: Ints) -> None:
    """Raises a ShapeError unless attributes have a number for each spatial axis, pads two."""
    axes = x.rank - 2
    for name, numbers, want in (("pads", pads, 2 * axes), *((k, v, axes) for k, v in each.items())):
        if numbers and len(numbers) != want:
            raise ShapeError(
                f"{op}: got {name} {tuple(numbers)} for {x.shape}, want {want} numbers"
            )


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
    check_windows("Conv", x, pads, strides=strides, dilations=dilations)
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
    check_windows("ConvTranspose", x, pads, strides=strides, dilations=dilations)
    axes = x.rank - 2
    stride, gaps = tuple(strides or (1,) * axes), tuple(dilations or (1,) * axes)
    padding, more = padding_of(auto_pad, pads), tuple(output_padding or (0,) * axes)
    if auto_pad.startswith("SAME") and not output_shape:
        output_shape = [n * s for n, s in zip(x.shape[2:], stride, strict=True)]
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


@reads("Col2Im", since=18, host="image_shape block_shape")
def col2im(
    x: Tensor, image_shape: Any, block_shape: Any, *, dilations: Ints = None, pads: Ints = None,
    strides: Ints = None,
) -> Tensor:  # fmt: skip
    """The sums of windows, given as columns, in images."""
    sizes = [wholes(one, "Col2Im: shape") for one in (image_shape, block_shape)]
    options = dilations or 1, pads or 0, strides or 1
    return in_int64(lambda columns: autograd.fold(columns, *sizes, *options), x)


# ---- convolution at places that are moved --------------------------------------------------------


@reads("DeformConv", since=19)
def deform_conv(
    x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None, offset_group: int = 1,
    pads: Ints = None, strides: Ints = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """A convolution whose windows' elements are moved by offsets, with zeros outside of the image
    (Dai et al., 2017; with a mask Zhu et al., 2019)."""
    _check_kernel("DeformConv", kernel_shape, w)
    axes, kernel, out = x.rank - 2, w.shape[2:], offset.shape[2:]
    taps, area = math.prod(kernel), math.prod(out)
    geometry = (strides or (1,) * axes, dilations or (1,) * axes, pads or (0,) * (2 * axes))
    base = to_tensor(_window_places(kernel, out, *geometry), frame.device)
    n, channels = x.shape[:2]
    moved = offset.reshape((n * offset_group, taps, axes, area))
    at = moved + autograd.cast(base, moved.dtype)
    image = x.reshape((n * offset_group, channels // offset_group, *x.shape[2:]))
    columns = sample_at(image, [at[:, :, d] for d in range(axes)])
    if mask is not None:
        columns = columns * mask.reshape((n * offset_group, 1, taps, area))
    columns = columns.reshape((n, group, channels // group * taps, area))
    weights = w.reshape((group, w.shape[0] // group, -1))
    y = autograd.matmul(weights, columns).reshape((n, w.shape[0], *out))
    return y if b is None else y + b.reshape((-1, *(1,) * axes))


def _window_places(
    kernel: Sequence[int], out: Sequence[int], stride: Sequence[int], gaps: Sequence[int],
    pads: Sequence[int],
) -> np.ndarray:  # fmt: skip
    """Where the elements of all windows stand along each axis, (elements, axes, windows)."""
    within, starts = np.indices(kernel), np.indices(out)
    along = [
        (within[d].reshape(-1, 1) * gaps[d] + starts[d].reshape(1, -1) * stride[d] - pads[d])
        for d in range(len(kernel))
    ]
    return np.stack(along, 1).astype(np.float32)
