"""Batch, layer, root mean square, group and instance normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import DTypeError, ShapeError
from ..tensor import Tensor
from ..tensor.keys import Settings
from ..tensor.numbers import real, whole, wholes
from ..tensor.takers import tensors_only
from . import ops
from .casting import floating
from .mode import mode
from .reduce import as_axes
from .rule import Rule
from .shape import reshape
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
        if x.rank > 1 and x.shape[1] and not x.numel:
            self.batch = False  # of no values there is no mean, and none is needed
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

    def origins(self) -> tuple[str, ...]:
        """x and scale; the running averages are constants, those of the batch are not."""
        return "x0", "x1", *(["" if self.batch else "constant"] * 2)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """The gradients of x, scale and bias."""
        name = "batch_norm_grad" if self.batch else "batch_norm_inference_grad"
        saved = (self.load(i) for i in range(4))
        return ops.op(name, eps=self.handle.eps)(dys[0], *saved)


@public(BatchNormHandle, _BatchNorm2d)
@tensors_only("running_mean", "running_var")
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
    running ones. A batch of no values leaves them as they are, as in PyTorch.

    Args:
        handle: momentum and eps.
        x: (N, C, ...).
        scale, bias, running_mean, running_var: (C,).

    Raises:
        ValueError: one value per channel in training.
        ShapeError, DTypeError: tensors that do not fit; neither running average has changed then.
    """
    return _BatchNorm2d(handle, running_mean, running_var)(x, scale, bias)[0]


class _RowNorm(Rule):
    """The last axes as rows that are normalised one by one, then scaled by parameters."""

    #: The engine's name for the operation.
    f: str

    def __init__(self, axis: int = -1, eps: float = 1e-5) -> None:
        self.axis = whole(axis, f"{self.f}: axis")
        self.eps = _within(eps, f"{self.f}: eps", math.inf)

    def forward(self, x: Tensor, *parameters: Tensor) -> Tensor:
        (axis,) = as_axes(self.axis, x.rank, self.f)
        self.over = x.shape[axis:]
        for t in parameters:
            if t.shape != self.over:
                raise ShapeError(f"{self.f}: got {t.shape} beside {x.shape}, want {self.over}")
        columns = math.prod(self.over)
        given = [ops.reshape(t, (columns,)) for t in parameters]
        scale, *bias = given or [ops.full((columns,), 1, x)]
        self.rows = (math.prod(x.shape[:axis]), columns)
        y, *statistics = ops.op(self.f, eps=self.eps)(ops.reshape(x, self.rows), scale, *bias)
        self.kept = (scale, *statistics)
        return ops.reshape(y, x.shape)

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        scale, *statistics = self.__dict__.pop("kept")
        self.save(xs[0], xs[1] if len(xs) > 1 else scale, *statistics)

    def origins(self) -> list[str]:
        """x and scale, which is a constant if it was not given."""
        scale = "x1" if len(self.edges) > 1 else "constant"
        return ["x0", scale, *[""] * (len(self.saved) - 2)]

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """The gradients of x and of the parameters that were given."""
        x, scale, *statistics = (self.load(i) for i in range(len(self.saved)))
        scale = ops.reshape(scale, self.rows[1:])
        dy, rows = ops.reshape(dys[0], self.rows), ops.reshape(x, self.rows)
        dx, *vectors = ops.op(f"{self.f}_grad")(dy, rows, scale, *statistics)
        made = (ops.reshape(dx, x.shape), *(ops.reshape(one, self.over) for one in vectors))
        return made[: len(wanted)]


class _LayerNorm(_RowNorm):
    """The last axes shifted and scaled to mean 0 and variance 1, then by parameters (ONNX
    LayerNormalization)."""

    f = "layer_norm"


class _RMSNorm(_RowNorm):
    """The last axes divided by the root of their mean square, then scaled by a parameter (ONNX
    RMSNormalization)."""

    f = "rms_norm"


def _first_axis(op: str, x: Tensor, normalized_shape: int | Sequence[int] | None, axis: int) -> int:
    """The axis from which on `x` has this shape; the given one for None."""
    if normalized_shape is None:
        return axis
    shape = wholes(normalized_shape, f"{op}: normalized_shape")
    if axis != -1:
        raise TypeError(f"{op}: got both axis and normalized_shape, want one of them")
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(f"{op}: got normalized_shape {shape} for {x.shape}, want its end")
    return -len(shape)


@public(precision="wide")
def layer_norm(
    x: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    axis: int = -1,
    eps: float = 1e-5,
    *,
    normalized_shape: int | Sequence[int] | None = None,
) -> Tensor:
    """Layer normalisation over the axes from `axis` on (ONNX LayerNormalization): `(x - mean) /
    sqrt(var + eps) * scale + bias`, with the mean and the biased variance over these axes.

    Args:
        x: integers become float32.
        scale, bias: of the shape of these axes, and the dtype of x; 1 and 0 if None.
        axis: the first one.
        eps: added to the variance; at least 0.
        normalized_shape: the extents of these axes instead of `axis`, with `weight` for `scale`
            (PyTorch layer_norm, which takes them in this order).

    Raises:
        ValueError: an axis that x does not have; eps out of its range; a bias without a scale.
        ShapeError, DTypeError: parameters that do not fit.
    """
    if not (scale is None or isinstance(scale, Tensor)):
        want = "a Tensor or None; normalized_shape, weight and bias go by keyword"
        raise TypeError(f"layer_norm: got {scale!r} for scale, want {want}")
    axis = _first_axis("layer_norm", x, normalized_shape, axis)
    if scale is None and bias is not None:
        raise ValueError("layer_norm: got a bias and no scale, want both, the scale or neither")
    parameters = [t for t in (scale, bias) if t is not None]
    return _LayerNorm(axis, eps)(floating(x), *parameters)[0]


@public(precision="wide")
def rms_norm(
    x: Tensor,
    scale: Tensor | None = None,
    axis: int = -1,
    eps: float = 1e-5,
    *,
    normalized_shape: int | Sequence[int] | None = None,
) -> Tensor:
    """Root mean square normalisation (Zhang and Sennrich, 2019; ONNX RMSNormalization) over the
    axes from `axis` on: `x / sqrt(mean(x * x) + eps) * scale`.

    Args:
        x: integers become float32.
        scale: of the shape of these axes, and the dtype of x; 1 if None.
        axis: the first one.
        eps: added to the mean of the squares; at least 0.
        normalized_shape: the extents of these axes instead of `axis`, with `weight` for `scale`
            (PyTorch rms_norm, which takes them in this order).

    Raises:
        ValueError: an axis that x does not have; eps out of its range.
        ShapeError, DTypeError: a scale that does not fit.
    """
    if not (scale is None or isinstance(scale, Tensor)):
        want = "a Tensor or None; normalized_shape and weight go by keyword"
        raise TypeError(f"rms_norm: got {scale!r} for scale, want {want}")
    axis = _first_axis("rms_norm", x, normalized_shape, axis)
    return _RMSNorm(axis, eps)(floating(x), *(() if scale is None else (scale,)))[0]


class _GroupNorm(Rule):
    """Groups of channels of each sample shifted and scaled to mean 0 and variance 1: batch
    normalisation of one batch that has each group as a channel."""

    keeps, constants = ("xs", "ones", "mean", "variance"), ("ones",)

    def __init__(self, name: str, groups: int | None, eps: float) -> None:
        self.f = name
        self.groups = None if groups is None else whole(groups, f"{name}: num_groups")
        if self.groups is not None and self.groups < 1:
            raise ValueError(f"{name}: num_groups: got {groups}, want at least 1")
        self.eps = _within(eps, f"{name}: eps", math.inf)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        if len(shape) < 2:
            raise ShapeError(f"{self.f}: got shape {shape}, want (N, C, ...)")
        groups = shape[1] if self.groups is None else self.groups
        if groups and shape[1] % groups:
            raise ShapeError(f"{self.f}: got shape {shape}, want channels in {groups} equal groups")
        count = math.prod(shape[1:]) // max(groups, 1)
        if count == 1 and (self.groups is None or shape[0] == 1):
            raise ValueError(f"{self.f}: got shape {shape}, want several values in each group")
        self.rows = (1, shape[0] * groups, count)
        wide = "float64" if x.dtype.name == "float64" else "float32"
        fills = (
            ops.op("fill", device=x.device, value=v, shape=self.rows[1:2], dtype=wide)
            for v in (1, 0)
        )
        self.ones, zeros = (fill() for fill in fills)
        norm = ops.op("batch_norm", eps=self.eps)
        y, self.mean, self.variance = norm(ops.reshape(x, self.rows), self.ones, zeros)
        return ops.reshape(y, shape)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The gradient of x."""
        x, *others = (self.load(i) for i in range(4))
        dy, rows = ops.reshape(dys[0], self.rows), ops.reshape(x, self.rows)
        dx, *_ = ops.op("batch_norm_grad", eps=self.eps)(dy, rows, *others)
        return (ops.reshape(dx, x.shape),)


def _by_channel(name: str, y: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
    """`y * scale + bias` with a scale and a bias for each channel."""
    channels = y.shape[1:2]
    for parameter in (scale, bias):
        if parameter is None:
            continue
        if parameter.shape != channels:
            raise ShapeError(f"{name}: got {parameter.shape} beside {y.shape}, want {channels}")
        if parameter.dtype != y.dtype:
            raise DTypeError(f"{name}: got dtype {parameter.dtype.name}, want {y.dtype.name}")
        beside = reshape(parameter, (*channels, *(1,) * (y.rank - 2)))
        y = y * beside if parameter is scale else y + beside
    return y


@public(precision="wide")
def group_norm(
    x: Tensor,
    num_groups: int,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Group normalisation (Wu and He, 2018; ONNX GroupNormalization): the channels of each sample
    in groups of equal size, each with its own mean and biased variance; then a scale and a bias
    for each channel.

    Args:
        x: (N, C, ...); integers become float32.
        num_groups: a divisor of C.
        scale, bias: (C,), in the dtype of x; 1 and 0 if None.
        eps: added to the variance; at least 0.

    Raises:
        ValueError: a sample alone with a single value in each group; eps or num_groups out of its
            range.
        ShapeError, DTypeError: channels that cannot be divided; parameters that do not fit.
    """
    y = _GroupNorm("group_norm", num_groups, eps)(floating(x))[0]
    return _by_channel("group_norm", y, scale, bias)


@public(precision="wide")
def instance_norm(
    x: Tensor, scale: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Instance normalisation (Ulyanov et al., 2016; ONNX InstanceNormalization): each channel of
    each sample by its own mean and biased variance; then a scale and a bias for each channel.

    Args:
        x: (N, C, ...); integers become float32.
        scale, bias: (C,), in the dtype of x; 1 and 0 if None.
        eps: added to the variance; at least 0.

    Raises:
        ValueError: a single value in each channel; eps out of its range.
        ShapeError, DTypeError: parameters that do not fit.
    """
    y = _GroupNorm("instance_norm", None, eps)(floating(x))[0]
    return _by_channel("instance_norm", y, scale, bias)
