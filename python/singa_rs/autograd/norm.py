"""Batch and layer normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import DTypeError, ShapeError
from ..tensor import Tensor
from ..tensor.keys import Settings
from ..tensor.numbers import real, whole
from . import ops
from .casting import floating
from .mode import mode
from .reduce import as_axes
from .rule import Rule
from .table import public

_RUNNING = ("running_mean", "running_var")


class BatchNormHandle(Settings):
    """What batch normalisation needs besides tensors.

    Args:
        momentum: the weight of the new batch in the running averages, from 0 to 1.
        x: accepted and ignored, as SINGA passes an input.
        eps: added to the variance; at least 0.

    Raises:
        TypeError, ValueError: not a number, or out of its range.
    """

    def __init__(self, momentum: float = 0.1, x: Any = None, eps: float = 1e-5) -> None:
        momentum = _within(momentum, "batchnorm_2d: momentum", 1.0)
        super().__init__(momentum=momentum, eps=_within(eps, "batchnorm_2d: eps", math.inf))


def _within(value: Any, what: str, high: float) -> float:
    """A finite number from 0 to `high`."""
    found = real(value, what)
    if not math.isfinite(found) or not 0 <= found <= high:
        raise ValueError(f"{what}: got {value}, want a number in [0, {high:g}]")
    return found


def _check_average(name: str, average: Tensor, batch: Tensor) -> None:
    """Rejects a running average that cannot take in that of the batch."""
    if average.shape != batch.shape:
        shapes = f"{name} of shape {average.shape}, want {batch.shape}"
        raise ShapeError(f"batchnorm_2d: got {shapes}")
    if average.dtype != batch.dtype:
        dtypes = f"{name} of dtype {average.dtype.name}, want {batch.dtype.name}"
        raise DTypeError(f"batchnorm_2d: got {dtypes}")
    if not average.is_contiguous():
        average.make_room()


class _BatchNorm2d(Rule):
    """Each channel shifted and scaled from one mean and variance to another (ONNX
    BatchNormalization): in training from those of the batch, else from the running ones."""

    def __init__(
        self,
        handle: BatchNormHandle,
        running_mean: Tensor,
        running_var: Tensor,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.handle = handle
        self.running_mean, self.running_var = running_mean, running_var
        self.batch = mode.training

    def forward(self, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        eps = self.handle.eps
        if not self.batch:
            running = (self.running_mean, self.running_var)
            self.stats = running
            return ops.op("batch_norm_inference", eps=eps)(x, scale, bias, *running)
        count = x.numel // x.shape[1] if x.rank > 1 and x.shape[1] else 0
        if count == 1:
            raise ValueError(
                f"batchnorm_2d: got shape {x.shape}, want several values per channel in training"
            )
        y, *self.stats = ops.op("batch_norm", eps=eps)(x, scale, bias)
        self._update(self.stats, count)
        return y

    def _update(self, stats: Sequence[Tensor], count: int) -> None:
        """Updates the running averages, both or neither; the variance by the unbiased estimate."""
        factors = (1.0, count / (count - 1) if count else 1.0)
        running = (self.running_mean, self.running_var)
        for name, average, batch in zip(_RUNNING, running, stats, strict=True):
            _check_average(name, average, batch)
        for average, batch, factor in zip(running, stats, factors, strict=True):
            momentum = self.handle.momentum
            ops.op("running_average", momentum=momentum, factor=factor)(average, batch)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(xs[0], xs[1], *self.__dict__.pop("stats"))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """The gradients of x, scale and bias."""
        name = "batch_norm_grad" if self.batch else "batch_norm_inference_grad"
        saved = (self.load(i) for i in range(4))
        return ops.op(name, eps=self.handle.eps)(dys[0], *saved)


@public(BatchNormHandle, _BatchNorm2d)
def batchnorm_2d(
    handle: BatchNormHandle,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
) -> Tensor:
    """Batch normalisation over axis 1 (ONNX BatchNormalization).

    In training by the mean and variance of the batch, which update the running ones in place
    (`running = (1 - momentum) * running + momentum * batch`, the variance unbiased); else by the
    running ones.

    Args:
        handle: momentum and eps.
        x: (N, C, ...).
        scale, bias, running_mean, running_var: (C,).

    Raises:
        ValueError: one value per channel in training.
        ShapeError, DTypeError: tensors that do not fit; neither running average has changed then.
    """
    return _BatchNorm2d(handle, running_mean, running_var)(x, scale, bias)[0]


class _LayerNorm(Rule):
    """The last axes shifted and scaled to mean 0 and variance 1, then by parameters (ONNX
    LayerNormalization)."""

    keeps = ("kept",)

    def __init__(self, axis: int = -1, eps: float = 1e-5) -> None:
        self.axis = whole(axis, "layer_norm: axis")
        self.eps = _within(eps, "layer_norm: eps", math.inf)

    def forward(self, x: Tensor, scale: Tensor, *bias: Tensor) -> Tensor:
        (axis,) = as_axes(self.axis, x.rank, "layer_norm")
        self.shape, self.over = x.shape, x.shape[axis:]
        for t in (scale, *bias):
            if t.shape != self.over:
                raise ShapeError(f"layer_norm: got {t.shape} beside {x.shape}, want {self.over}")
        columns = math.prod(self.over)
        x = ops.reshape(x, (math.prod(x.shape[:axis]), columns))
        scale, *bias = (ops.reshape(t, (columns,)) for t in (scale, *bias))
        y, *statistics = ops.op("layer_norm", eps=self.eps)(x, scale, *bias)
        self.kept = (x, scale, *statistics)
        return ops.reshape(y, self.shape)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """The gradients of x and scale, and of bias if it was given."""
        x, *others = (self.load(i) for i in range(4))
        dy = ops.reshape(dys[0], x.shape)
        dx, dscale = ops.op("layer_norm_grad")(dy, x, *others)
        made = [ops.reshape(dx, self.shape), ops.reshape(dscale, self.over)]
        if len(wanted) == 3:
            made.append(ops.reshape(ops.reduce_op("sum", (0,), False)(dy), self.over))
        return tuple(made)


@public()
def layer_norm(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, axis: int = -1, eps: float = 1e-5
) -> Tensor:
    """Layer normalisation over the axes from `axis` on (ONNX LayerNormalization): `(x - mean) /
    sqrt(var + eps) * scale + bias`, with the mean and the biased variance over these axes.

    Args:
        x: integers become float32.
        scale, bias: of the shape of these axes, and the dtype of x; no bias if None.
        axis: the first one.
        eps: added to the variance; at least 0.

    Raises:
        ValueError: an axis that x does not have; eps out of its range.
        ShapeError, DTypeError: parameters that do not fit.
    """
    parameters = (scale,) if bias is None else (scale, bias)
    return _LayerNorm(axis, eps)(floating(x), *parameters)[0]
