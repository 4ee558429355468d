"""Convolution, pooling and batch normalisation of raw tensors, by SINGA's handles."""

from __future__ import annotations

from collections.abc import Sequence

from .. import autograd, errors
from ..autograd import ops
from ..autograd.windows import Numbers
from ..errors import ShapeError
from ..tensor import Tensor
from ..tensor.keys import Settings
from .raw import RawTensor, raw

__all__ = [
    "BatchNormHandle",
    "ConvHandle",
    "CpuBatchNormBackwardx",
    "CpuBatchNormForwardInference",
    "CpuBatchNormForwardTraining",
    "CpuConvBackwardW",
    "CpuConvBackwardb",
    "CpuConvBackwardx",
    "CpuConvForward",
    "CpuPoolingBackward",
    "CpuPoolingForward",
    "PoolingHandle",
]

BatchNormHandle = autograd.BatchNormHandle


class ConvHandle(autograd.ConvHandle):
    """The geometry of a convolution, with SINGA's arguments (SINGA ConvHandle).

    Args:
        x: an input (N, C, H, W).
        kernel_size: (height, width).
        stride: (height, width).
        padding: (vertical, horizontal).
        in_channels: C.
        out_channels: how many channels the result has.
        bias: whether a bias is added.
        groups: the number of groups that the channels are divided into.

    Raises:
        ShapeError: an input with other channels.
    """

    def __init__(
        self,
        x: Tensor,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Numbers,
        in_channels: int,
        out_channels: int,
        bias: bool = True,
        groups: int = 1,
    ) -> None:
        if x.rank != 4 or x.shape[1] != in_channels:
            want = f"(N, {in_channels}, H, W)"
            raise ShapeError(f"ConvHandle: got shape {tuple(x.shape)}, want {want}")
        super().__init__(kernel_size, stride, padding, 1, groups)
        own = {name: value for name, value in vars(self).items() if name != "key"}
        more = {"channels": in_channels, "num_filters": out_channels, "bias_term": bool(bias)}
        Settings.__init__(self, **own, **more)


class PoolingHandle(autograd.PoolingHandle):
    """The geometry of a pooling, with SINGA's arguments (SINGA PoolingHandle).

    Args:
        x: an input (N, C, H, W).
        kernel_size: (height, width).
        stride: (height, width).
        padding: (vertical, horizontal).
        is_max: whether maxima are taken, or means.

    Raises:
        ShapeError: an input of other dimensions.
    """

    def __init__(
        self,
        x: Tensor,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Numbers = (0, 0),
        is_max: bool = True,
    ) -> None:
        if x.rank != 4:
            raise ShapeError(f"PoolingHandle: got shape {tuple(x.shape)}, want (N, C, H, W)")
        super().__init__(kernel_size, stride, padding, is_max)


def CpuConvForward(x: Tensor, W: Tensor, b: Tensor, ch: ConvHandle) -> RawTensor:
    """The convolution of images (N, C, H, W) with filters (O, C / groups, h, w), plus the bias (O,)
    if the handle has one."""
    given = (x, W, b) if ch.bias_term else (x, W)
    return raw(autograd._Conv2d(ch).forward(*given))


def CpuConvBackwardx(dy: Tensor, W: Tensor, x: Tensor, ch: ConvHandle) -> RawTensor:
    """The gradient of the images."""
    return raw(ops.op("conv_grad_input", **autograd._Conv2d(ch).attrs, size=x.shape[2:])(dy, W))


def CpuConvBackwardW(dy: Tensor, x: Tensor, W: Tensor, ch: ConvHandle) -> RawTensor:
    """The gradient of the filters."""
    return raw(ops.op("conv_grad_weight", **autograd._Conv2d(ch).attrs, kernel=W.shape[2:])(dy, x))


def CpuConvBackwardb(dy: Tensor, b: Tensor, ch: ConvHandle) -> RawTensor:
    """The gradient of the bias: `dy` summed over all but the channels."""
    return raw(ops.reshape(ops.reduce_op("sum", (0, 2, 3), False)(dy), b.shape))


def CpuPoolingForward(ph: PoolingHandle, x: Tensor) -> RawTensor:
    """The maxima or means of the windows of images (N, C, H, W)."""
    return raw(autograd._Pooling2d(ph).forward(x))


def CpuPoolingBackward(ph: PoolingHandle, dy: Tensor, x: Tensor, y: Tensor) -> RawTensor:
    """The gradient of the images: `dy` at the maxima, which are looked up again, or spread over the
    windows."""
    with autograd._training_scope(True):
        leaf = x.detach()
        leaf.requires_grad = True
        node = autograd._Pooling2d(ph)
        node(leaf)
        return raw(node.backward(dy))


def _vectors(*tensors: Tensor) -> list[Tensor]:
    """Views of parameters of shape (C,) or (1, C, 1, ...) as vectors."""
    return [ops.reshape(t, (t.numel,)) for t in tensors]


def _like(made: Sequence[Tensor], others: Sequence[Tensor]) -> tuple[RawTensor, ...]:
    """Tensors in the shapes of others."""
    return tuple(raw(ops.reshape(t, tuple(o.shape))) for t, o in zip(made, others, strict=True))


def _batch_norm(
    handle: BatchNormHandle, mean: Tensor, var: Tensor, of_batch: bool
) -> autograd._BatchNorm2d:
    rule = autograd._BatchNorm2d(handle, *_vectors(mean, var))
    rule.batch = of_batch
    return rule


def CpuBatchNormForwardInference(
    bnh: BatchNormHandle, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> RawTensor:
    """Batch normalisation over axis 1 by given averages. `scale`, `bias`, `mean` and `var` are of
    shape (C,) or (1, C, 1, 1)."""
    return raw(_batch_norm(bnh, mean, var, False).forward(x, *_vectors(scale, bias)))


def CpuBatchNormForwardTraining(
    bnh: BatchNormHandle, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> tuple[RawTensor, RawTensor, RawTensor]:
    """Batch normalisation over axis 1 by the mean and variance of the batch, which are returned
    after the result, and update the running `mean` and `var` in place."""
    rule = _batch_norm(bnh, mean, var, True)
    y = rule.forward(x, *_vectors(scale, bias))
    return raw(y), *_like(rule.stats, (mean, var))


def CpuBatchNormBackwardx(
    bnh: BatchNormHandle,
    y: Tensor,
    dy: Tensor,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
) -> tuple[RawTensor, RawTensor, RawTensor]:
    """The gradients of x, scale and bias, from the mean and variance of the batch."""
    grad = ops.op("batch_norm_grad", eps=bnh.eps)
    dx, *made = grad(dy, x, *_vectors(scale, mean, var))
    return raw(dx), *_like(made, (scale, bias))


errors.name_functions(globals(), {"raw"})
