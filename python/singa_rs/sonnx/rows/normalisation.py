"""Normalisation by batches, channels, groups and rows; dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...layer.norm import centred_alone
from ...tensor import Tensor, float32
from ...tensor.numbers import real
from ..running import Frame
from ..table import reads
from ..values import dtype_name, to_tensor
from .arranging import axis_of

# ---- batches -------------------------------------------------------------------------------------


@reads("BatchNormalization", varies=True)
def batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1, is_test: int = 0,
    outputs: int,
) -> Any:  # fmt: skip
    """Channels shifted and scaled by the running averages, which in this package's training take
    in the batch's. With `training_mode` by those of the batch, which give new averages. Below
    opset 9 there may be averages for each element instead, which training keeps.
    """
    if training_mode:
        return _by_batch(x, scale, bias, (mean, var), epsilon, momentum)[:outputs]
    if outputs > 1:
        raise ValueError(f"BatchNormalization: got {outputs} outputs, want 1 out of training mode")
    if not spatial:
        return _by_element(x, scale, bias, mean, var, epsilon)
    # ONNX's momentum is the weight of the old averages.
    handle = autograd.BatchNormHandle(1 - momentum, eps=epsilon)
    wide = x.dtype if x.dtype.itemsize > 2 else float32
    scale, bias = autograd.cast(scale, wide), autograd.cast(bias, wide)
    if not autograd.training:  # which updates the averages themselves
        mean, var = autograd.cast(mean, wide), autograd.cast(var, wide)
    return autograd.batchnorm_2d(handle, x, scale, bias, mean, var)


def _by_element(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float
) -> Tensor:
    """Each element of a sample shifted and scaled by averages of its own."""
    if any(one.shape != x.shape[1:] for one in (scale, bias, mean, var)):
        raise ShapeError(
            f"BatchNormalization: got averages of shape {mean.shape} for {x.shape}, want "
            f"{x.shape[1:]}, one for each element"
        )
    wide = x.dtype if x.dtype.itemsize > 2 else float32
    x_, scale, bias, mean, var = (autograd.cast(one, wide) for one in (x, scale, bias, mean, var))
    return autograd.cast((x_ - mean) * (var + eps) ** -0.5 * scale + bias, x.dtype)


def _by_batch(
    x: Tensor, scale: Tensor, bias: Tensor, running: tuple[Tensor, Tensor], eps: float, keep: float
) -> tuple[Tensor, ...]:
    """The batch normalised by its own mean and biased variance, and the new averages."""
    axes = [i for i in range(x.rank) if i != 1]
    centred, means, variances = _moments(x, axes)
    column = (-1, *(1,) * (x.rank - 2))
    y = centred * (variances + eps) ** -0.5
    y = y * scale.reshape(column) + bias.reshape(column)
    averages = (
        old * keep + autograd.cast(new.reshape(old.shape), old.dtype) * (1 - keep)
        for old, new in zip(running, (means, variances), strict=True)
    )
    return autograd.cast(y, x.dtype), *averages


def _moments(x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """What is left of `x` without its mean, in 32 bits at least; the mean and the variance."""
    wide = x if x.dtype.itemsize > 2 else autograd.cast(x, "float32")
    means = autograd.reduce_mean(wide, axes)
    centred = wide - means
    return centred, means, autograd.reduce_mean(centred * centred, axes)


# ---- channels and groups -------------------------------------------------------------------------


def _is_alone(x: Tensor) -> bool:
    """Whether a channel has a single value, from which training could learn nothing."""
    return x.rank > 1 and math.prod(x.shape[2:]) == 1


@reads("InstanceNormalization")
def instance_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5
) -> Tensor:
    """Each channel of each sample by its own mean and variance."""
    if _is_alone(x):
        return centred_alone(x, scale, bias)
    return autograd.instance_norm(x, scale, bias, epsilon)


@reads("GroupNormalization", since=18)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:  # fmt: skip
    """Groups of channels by their mean and variance; a scale and a bias for each channel, below
    opset 21 for each group."""
    if scale.shape == (num_groups,) != x.shape[1:2]:
        times = x.shape[1] // max(num_groups, 1)
        scale, bias = (autograd.repeat(one, times, 0) for one in (scale, bias))
    if num_groups == x.shape[1] and _is_alone(x):
        return centred_alone(x, scale, bias)
    return autograd.group_norm(x, num_groups, scale, bias, epsilon)


@reads("MeanVarianceNormalization", since=9)
def mean_variance_normalization(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    """Mean 0 and variance 1 over some axes."""
    centred, _, variances = _moments(x, axes)
    # The least deviation is that of ONNX's definition.
    return autograd.cast(centred / (variances**0.5 + 1e-9), x.dtype)


@reads("LRN")
def lrn(
    x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """Channels divided by a power of the mean square of those around them."""
    if size % 2:
        return autograd.local_response_norm(x, size, alpha, beta, bias)
    # An even window has its additional channel behind, in `autograd` before.
    turned = autograd.local_response_norm(autograd.flip(x, 1), size, alpha, beta, bias)
    return autograd.flip(turned, 1)


# ---- rows ----------------------------------------------------------------------------------------


def _spread(parameter: Tensor | None, over: tuple[int, ...]) -> Tensor | None:
    """A scale or a bias for all elements of a row."""
    if parameter is None or parameter.shape == over:
        return parameter
    return autograd.expand(parameter, over)


@reads("LayerNormalization", since=17)
def layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1,
    epsilon: float = 1e-5, stash_type: int = 1, outputs: int,
) -> Any:  # fmt: skip
    """Rows of mean 0 and variance 1, then scaled and shifted; their means and the inverses of their
    deviations in the element type `stash_type`, if these are wanted."""
    first = axis_of(axis, x.rank, "LayerNormalization")
    over = x.shape[first:]
    y = autograd.layer_norm(x, _spread(scale, over), _spread(bias, over), first, epsilon)
    if outputs == 1:
        return y
    _, means, variances = _moments(x, range(first, x.rank))
    stashed = (means, (variances + epsilon) ** -0.5)
    return y, *(autograd.cast(one, dtype_name(stash_type)) for one in stashed)


@reads("RMSNormalization", since=23)
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Rows divided by their root mean square, then scaled, in the dtype of the scale."""
    first = axis_of(axis, x.rank, "RMSNormalization")
    over = x.shape[first:]
    if scale.dtype == x.dtype:
        return autograd.rms_norm(x, _spread(scale, over), first, epsilon)
    return autograd.cast(autograd.rms_norm(x, None, first, epsilon), scale.dtype) * scale


# ---- dropout -------------------------------------------------------------------------------------


@reads("Dropout", varies=True)
def dropout_with_mask(
    x: Tensor, *, ratio: float = 0.5, is_test: int = 0, outputs: int, frame: Frame
) -> Any:
    """The same, with which elements were kept in the dtype of `x`."""
    y, *kept = dropout(x, ratio, outputs=outputs, frame=frame)
    return y, *(autograd.cast(one, x.dtype) for one in kept)


@reads("Dropout", since=10, host="ratio training_mode", varies=True)
def dropout(
    x: Tensor, ratio: Any = 0.5, training_mode: Any = None, *, seed: int | None = None,
    outputs: int, frame: Frame,
) -> Any:  # fmt: skip
    """Elements dropped in this package's training, or if the graph asks for it; `ratio` is an
    attribute below opset 12. With which elements were kept, if that is wanted."""
    share = 0.5 if ratio is None else real(np.reshape(ratio, ()), "Dropout: ratio")
    if not 0 <= share < 1:
        raise ValueError(f"Dropout: got ratio {share}, want 0 <= ratio < 1")
    asked = training_mode is not None and bool(np.reshape(training_mode, ()))
    if not share or not (asked or autograd.training):
        kept = autograd.expand(to_tensor(np.ones((), bool), frame.device), x.shape)
        return (x, kept)[:outputs]
    chances = autograd.expand(to_tensor(np.float32(1 - share), frame.device), x.shape)
    kept = autograd.cast(autograd.bernoulli(chances), "bool")
    return (autograd.where(kept, x * (1 / (1 - share)), 0.0), kept)[:outputs]
