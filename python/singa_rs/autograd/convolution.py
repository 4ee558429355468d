"""Convolution over one to three spatial axes, and its transpose.

A handle holds the geometry that does not depend on the input: each of SINGA's layers makes one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from .._core import ShapeError
from ..device import report_warnings
from ..tensor import Tensor
from ..tensor.keys import Settings
from ..tensor.numbers import whole, wholes
from . import ops, windows
from .binary import FUNCTIONS as BINARY
from .ops import Grads, Tensors
from .repeat import pad
from .rule import Rule
from .shape import reshape
from .table import public
from .windows import Numbers, Padding


def with_odd(padding: tuple[int, ...], odd: Sequence[int]) -> tuple[int, ...]:
    """Padding with SINGA's extra rows and columns: (top, bottom, left, right)."""
    top, bottom, left, right = wholes(odd, "odd_padding")
    return padding[0] + top, padding[1] + left, padding[2] + bottom, padding[3] + right


class ConvHandle(Settings):
    """The geometry of a convolution over images.

    Args:
        kernel_size: (height, width).
        stride: (height, width).
        padding: one int, (vertical, horizontal) or (top, left, bottom, right).
        dilation: (height, width).
        group: the number of groups that the channels are divided into.
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        group: int = 1,
    ) -> None:
        super().__init__(
            kernel_size=windows.along(kernel_size, 2, "conv2d kernel"),
            stride=windows.along(stride, 2, "conv2d stride"),
            padding=windows.around(padding, 2, "conv2d padding"),
            dilation=windows.along(dilation, 2, "conv2d dilation"),
            group=whole(group, "conv2d group"),
        )


@functools.cache
def _report_once() -> None:
    """Shows the engine's warnings about its libraries, after the first convolution."""
    report_warnings()


class _Conv(Rule):
    """A convolution of images with filters (ONNX Conv)."""

    keeps = ("x0", "x1")

    def __init__(self, attrs: dict[str, Any]) -> None:
        self.attrs = attrs

    def forward(self, x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
        y = ops.op("conv", **self.attrs)(*((x, W) if b is None else (x, W, b)))
        _report_once()
        return y

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*xs[:2])
        self.has_bias = len(xs) == 3

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """The gradients of x and W, and of b if it was given."""
        (dy,), (x, W) = dys, (one.shape for one in self.saved)
        to_x = ops.op("conv_grad_input", **self.attrs, size=x[2:])
        to_w = ops.op("conv_grad_weight", **self.attrs, kernel=W[2:])
        made = (
            to_x(dy, self.load(1)) if wanted[0] else None,
            to_w(dy, self.load(0)) if wanted[1] else None,
        )
        if not self.has_bias:
            return made
        axes = (0, *range(2, dy.rank))
        total = ops.op("reduce", f="sum", axes=axes, keepdims=False)
        return (*made, total(dy) if wanted[2] else None)


class _Conv2d(_Conv):
    """A convolution of images with filters (ONNX Conv)."""

    def __init__(self, handle: ConvHandle, odd_padding: Sequence[int] = (0, 0, 0, 0)) -> None:
        self.handle, self.odd_padding = handle, tuple(odd_padding)
        super().__init__(
            {
                "stride": handle.stride,
                "padding": with_odd(handle.padding, self.odd_padding),
                "dilation": handle.dilation,
                "groups": handle.group,
            }
        )


@public(ConvHandle, _Conv2d, precision="short")
def conv2d(
    handle: ConvHandle,
    x: Tensor,
    W: Tensor,
    b: Tensor | None = None,
    odd_padding: Sequence[int] = (0, 0, 0, 0),
) -> Tensor:
    """A convolution (cross-correlation) of images with filters (ONNX Conv).

    Args:
        handle: the geometry.
        x: (N, C, H, W).
        W: (O, C / group, kh, kw).
        b: (O,) or None.
        odd_padding: additional padding: top, bottom, left, right (as in SINGA).

    Raises:
        ShapeError: shapes that do not fit each other.
    """
    return _Conv2d(handle, odd_padding)(*((x, W) if b is None else (x, W, b)))[0]


@public(precision="short")
def conv(
    x: Tensor,
    W: Tensor,
    b: Tensor | None = None,
    stride: Numbers = 1,
    padding: Padding = 0,
    dilation: Numbers = 1,
    group: int = 1,
) -> Tensor:
    """A convolution (cross-correlation) over one, two or three spatial axes (ONNX Conv, PyTorch
    conv1d, conv2d, conv3d).

    Args:
        x: (N, C, L), (N, C, H, W) or (N, C, D, H, W), of a float dtype.
        W: (O, C / group, k...), of the dtype of `x`.
        b: (O,) or None.
        stride: one int, or one for each axis.
        padding: zeros around the axes: one int, one for each axis, or those before each axis and
            then those after each. Or "SAME_UPPER" (or "same") and "SAME_LOWER", with which the
            result has ceil(size / stride) elements along each axis and an odd element of padding
            comes last or first; "VALID" (or "valid") is 0.
        dilation: the distance between the window's elements: one int, or one for each axis.
        group: the number of groups that the channels are divided into.

    Raises:
        ShapeError: shapes that do not fit each other.
        ValueError: a window larger than the padded image; numbers out of range.
        DTypeError: dtypes that are not one float dtype.
    """
    axes = windows.spatial_axes(x, "conv")
    attrs = windows.geometry("conv", axes, stride, dilation, group)
    _check_weight("conv", x, W)
    reach = windows.extents(W.shape[2:], attrs["dilation"])
    pads = windows.resolved(padding, x.shape[2:], reach, attrs["stride"], "conv: padding")
    return _Conv({**attrs, "padding": pads})(*((x, W) if b is None else (x, W, b)))[0]


def _check_weight(op: str, x: Tensor, W: Tensor) -> None:
    if W.rank != x.rank:
        raise ShapeError(f"{op}: got shapes {x.shape} and {W.shape}, want as many axes")


class _ConvTranspose(Rule):
    """The transpose of a convolution (ONNX ConvTranspose): its gradient with respect to the image,
    whose own gradients are the convolution and that one's gradient with respect to the weight."""

    keeps = ("xs",)

    def __init__(self, attrs: dict[str, Any], size: tuple[int, ...]) -> None:
        self.attrs, self.size = attrs, size

    def forward(self, x: Tensor, W: Tensor) -> Tensor:
        y = ops.op("conv_grad_input", **self.attrs, size=self.size)(x, W)
        _report_once()
        return y

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> Grads:
        """The gradients of x and W."""
        (dy,), W = dys, self.saved[1].shape
        to_x = ops.op("conv", **self.attrs)
        to_w = ops.op("conv_grad_weight", **self.attrs, kernel=W[2:])
        return (
            to_x(dy, self.load(1)) if wanted[0] else None,
            to_w(self.load(0), dy) if wanted[1] else None,
        )


@public(precision="short")
def conv_transpose(
    x: Tensor,
    W: Tensor,
    b: Tensor | None = None,
    stride: Numbers = 1,
    padding: Padding = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    group: int = 1,
) -> Tensor:
    """The transpose of a convolution over one, two or three spatial axes (ONNX ConvTranspose,
    PyTorch conv_transpose1d, 2d, 3d).

    Along each axis the result has `stride * (n - 1) + dilation * (k - 1) + 1` elements, less the
    padding, and `output_padding` more.

    Args:
        x: (N, C, L), (N, C, H, W) or (N, C, D, H, W), of a float dtype.
        W: (C, O / group, k...), of the dtype of `x`.
        b: (O,) or None.
        stride: the distance between the windows: one int, or one for each axis.
        padding: elements left out of the result: one int, one for each axis, or those before each
            axis and then those after each. Or "SAME_UPPER" and "SAME_LOWER", with which the result
            has `n * stride` elements along each axis, and `output_padding` more; "VALID" is 0.
        output_padding: elements added after each axis, less than the stride or the dilation.
        dilation: the distance between the window's elements: one int, or one for each axis.
        group: the number of groups that the channels are divided into.

    Raises:
        ShapeError: shapes that do not fit each other; padding that leaves no element.
        ValueError: numbers out of range.
        DTypeError: dtypes that are not one float dtype.
    """
    op = "conv_transpose"
    axes = windows.spatial_axes(x, op)
    attrs = windows.geometry(op, axes, stride, dilation, group)
    _check_transposed(x, W, b, attrs)
    before, after = _cropped(padding, _output_padding(output_padding, attrs), W, attrs)
    pads = (*before, *(max(0, n) for n in after))
    size, missing = _size(x, W, attrs, pads, after)
    # Where only added elements are left, one is computed before them, and cut off.
    less = tuple(min(0, n - 1) for n in size)
    kept = tuple(map(operator.add, pads, (*less, *(0,) * axes)))
    y = _ConvTranspose({**attrs, "padding": kept}, tuple(max(1, n) for n in size))(x, W)[0]
    if any(missing):
        y = pad(y, "constant", (0,) * (axes + 4) + missing)
        y = y[(..., *(slice(-n, None) for n in less))]
    return y if b is None else BINARY["add"](y, reshape(b, (b.shape[0], *(1,) * axes)))


def _check_transposed(x: Tensor, W: Tensor, b: Tensor | None, attrs: dict[str, Any]) -> None:
    _check_weight("conv_transpose", x, W)
    groups = attrs["groups"]
    for name in ("stride", "dilation"):
        if min(attrs[name]) < 1:
            raise ValueError(f"conv_transpose: {name}: got {attrs[name]}, want at least 1")
    if groups < 1 or x.shape[1] != W.shape[0] or x.shape[1] % groups:
        raise ShapeError(
            f"conv_transpose: got shapes {x.shape} and {W.shape} with {groups} groups, want "
            "(N, C, ...) and weights (C, O / groups, ...), C divisible by the groups"
        )
    if 0 in x.shape[2:] or 0 in W.shape[2:]:
        raise ShapeError(
            f"conv_transpose: got shapes {x.shape} and {W.shape}, want an element on each spatial "
            "axis"
        )
    if b is not None and b.shape != (groups * W.shape[1],):
        want = f"a bias of shape ({groups * W.shape[1]},)"
        raise ShapeError(f"conv_transpose: got shapes {W.shape} and {b.shape}, want {want}")


def _output_padding(given: Numbers, attrs: dict[str, Any]) -> tuple[int, ...]:
    stride, dilation = attrs["stride"], attrs["dilation"]
    more = windows.along(given, len(stride), "conv_transpose: output_padding")
    if any(not 0 <= n < max(s, d) for n, s, d in zip(more, stride, dilation, strict=True)):
        raise ValueError(
            f"conv_transpose: output_padding: got {given} with stride {stride} and dilation "
            f"{dilation}, want at least 0, and less than one of them"
        )
    return more


def _cropped(
    padding: Padding, more: tuple[int, ...], W: Tensor, attrs: dict[str, Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many elements are left out before and after each axis; fewer than 0 are added."""
    axes, what = len(more), "conv_transpose: padding"
    if isinstance(padding, str):
        pads = _cropped_by_rule(windows.pad_mode(padding, what), W, attrs)
    else:
        pads = windows.around(padding, axes, what)
        if min(pads) < 0:
            raise ValueError(f"{what}: got {padding}, want at least 0")
    return pads[:axes], tuple(n - m for n, m in zip(pads[axes:], more, strict=True))


def _cropped_by_rule(mode: str, W: Tensor, attrs: dict[str, Any]) -> tuple[int, ...]:
    stride, axes = attrs["stride"], len(attrs["stride"])
    if not mode.startswith("SAME"):
        return (0,) * (2 * axes)
    reach = windows.extents(W.shape[2:], attrs["dilation"])
    totals = [r - s for r, s in zip(reach, stride, strict=True)]
    pads = windows.divided([max(0, n) for n in totals], mode)
    after = (n + min(0, total) for n, total in zip(pads[axes:], totals, strict=True))
    return (*pads[:axes], *after)


def _size(
    x: Tensor, W: Tensor, attrs: dict[str, Any], pads: tuple[int, ...], after: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The extents that the transpose computes, and how many zeros are missing behind them: a
    convolution leaves out fewer elements than its stride."""
    axes, size, missing = len(after), [], []
    reach = windows.extents(W.shape[2:], attrs["dilation"])
    for d, (n, stride) in enumerate(zip(x.shape[2:], attrs["stride"], strict=True)):
        added = max(0, -after[d])
        left_out = min(added, stride - 1)
        full = (n - 1) * stride + reach[d] - pads[d] - pads[axes + d]
        size.append(full + left_out)
        missing.append(added - left_out)
    found = tuple(map(operator.add, size, missing))
    if min(found) < 1:
        raise ShapeError(
            f"conv_transpose: got shapes {x.shape} and {W.shape} with padding {pads}, which leaves "
            f"extents {found}, want at least 1"
        )
    return tuple(size), tuple(missing)
