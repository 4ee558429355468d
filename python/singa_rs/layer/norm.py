"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, overload

from .. import autograd
from ..autograd.precision import stored_in
from ..errors import ShapeError
from ..tensor import Tensor, float32, float64, full
from .base import Layer
from .check import at_most, axes, count, count_or_none, features, flag, float_input, number
from .parameters import parameter, state


class BatchNorm(Layer):
    """Batch normalisation (Ioffe and Szegedy, 2015; ONNX BatchNormalization).

    In training, each channel is normalised by the batch's mean and biased variance, and

        running = (1 - momentum) * running + momentum * batch

    with the variance times n / (n - 1); in evaluation by the running averages. So `momentum` is
    the weight of the new batch, as in SINGA and PyTorch; in ONNX it is that of the old average.
    The default is 0.1: SINGA's 0.9 keeps little more than the last batch. With None the running
    averages are those of all batches, each of the same weight; `num_batches_tracked`, a state (),
    counts them.

    Parameters `scale` and `bias`, unless `affine` is False, and states `running_mean` and
    `running_var`, all (C,); they are of float32 beside 16-bit floats. Without
    `track_running_stats` there are no states, and the batch's statistics serve in evaluation, too.
    """

    #: How many axes an input may have.
    ranks: ClassVar[tuple[int, ...]]

    @overload
    def __init__(
        self,
        *,
        momentum: float | None = 0.1,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None: ...
    @overload
    def __init__(
        self,
        channels: int,
        /,
        momentum: float | None = 0.1,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None: ...
    def __init__(
        self,
        *args: Any,
        momentum: float | None = 0.1,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        """Without arguments, with `channels`, or with `channels, momentum`; names for the rest.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = type(self).__name__
        at_most(name, len(args), 2)
        self.channels = count(args[0], f"{name}: channels") if args else None
        given = args[1] if len(args) > 1 else momentum
        is_mean = given is None
        self.momentum = None if is_mean else number(given, f"{name}: momentum", 0.0, 1.0)
        self.eps = number(eps, f"{name}: eps", 0.0)
        self.affine = flag(affine, f"{name}: affine")
        self.track_running_stats = flag(track_running_stats, f"{name}: track_running_stats")

    def initialize(self, x: Tensor) -> None:
        """Makes the parameters and the running averages."""
        name = type(self).__name__
        float_input(x, name)
        self._check(x)
        self.channels = x.shape[1]
        shape = (self.channels,)
        if self.affine:
            self.scale = parameter(shape, x, "ones", f"{name}: scale", wide=True)
            self.bias = parameter(shape, x, "zeros", f"{name}: bias", wide=True)
        if self.track_running_stats:
            self.running_mean = state(shape, x, 0.0, wide=True)
            self.running_var = state(shape, x, 1.0, wide=True)
            if self.momentum is None:
                self.num_batches_tracked = state((), x, 0.0, wide=True)
        momentum = 1.0 if self.momentum is None else self.momentum
        self.handle = autograd.BatchNormHandle(momentum, eps=self.eps)

    def _check(self, x: Tensor) -> None:
        axes(x, type(self).__name__, *self.ranks)
        features(x, type(self).__name__, 1, self.channels)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C), or (N, C, ...) with as many axes as the layer's name says.

        Raises:
            ShapeError: a different number of axes or channels.
        """
        self._check(x)
        if not self.track_running_stats:
            return self._by_batch(x)
        given = (self.handle, x, *self._weights(x))
        if self.momentum is not None or not autograd.training:
            return autograd.batchnorm_2d(*given, self.running_mean, self.running_var)
        batch = [full((self.channels,), 0, x.device, self.running_mean.dtype) for _ in range(2)]
        y = autograd.batchnorm_2d(*given, *batch)
        self._take(*batch)
        return y

    def _weights(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The scale and the bias."""
        if self.affine:
            return self.scale, self.bias
        shape, wide = (self.channels,), wide_dtype(x)
        return full(shape, 1, x.device, wide), full(shape, 0, x.device, wide)

    def _by_batch(self, x: Tensor) -> Tensor:
        """The batch normalised by its own statistics: as one sample, each channel is."""
        if x.numel == self.channels:
            name, want = type(self).__name__, "several values per channel"
            raise ValueError(f"{name}: got shape {x.shape}, want {want}")
        order = (1, 0, *range(2, x.rank))
        turned = autograd.unsqueeze(autograd.transpose(x.as_type(wide_dtype(x)), order), 0)
        y = autograd.instance_norm(turned, *self._weights(x), self.eps)
        return autograd.transpose(autograd.squeeze(y, 0), order).as_type(x.dtype)

    def _take(self, mean: Tensor, var: Tensor) -> None:
        """Takes a batch's mean and unbiased variance into the running averages."""
        with autograd.no_grad():
            share = self.momentum if self.momentum is not None else self._next_share()
            for running, batch in ((self.running_mean, mean), (self.running_var, var)):
                kept = running * (1 - share)
                running.copy_from(kept + share * batch.as_type(running.dtype))

    def _next_share(self) -> Tensor:
        """The weight of the next batch in the average of all."""
        self.num_batches_tracked.copy_from(self.num_batches_tracked + 1)
        return 1 / self.num_batches_tracked


def wide_dtype(x: Tensor) -> Any:
    """The dtype in which statistics of x are computed."""
    return float64 if x.dtype == float64 else float32


class BatchNorm1d(BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L) (ONNX BatchNormalization).

    `momentum` is the weight of the new batch in the running averages, as in SINGA and PyTorch; in
    ONNX it is that of the old average. The default is 0.1: SINGA's 0.9 keeps little more than the
    last batch. With None each batch has the same weight, and `num_batches_tracked` counts them.
    Parameters `scale` and `bias`, unless `affine` is False, states `running_mean` and
    `running_var`, unless `track_running_stats` is, all (C,).
    """

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch normalisation of (N, C) or (N, C, H, W) (ONNX BatchNormalization).

    `momentum` is the weight of the new batch in the running averages, as in SINGA and PyTorch; in
    ONNX it is that of the old average. The default is 0.1: SINGA's 0.9 keeps little more than the
    last batch. With None each batch has the same weight, and `num_batches_tracked` counts them.
    Parameters `scale` and `bias`, unless `affine` is False, states `running_mean` and
    `running_var`, unless `track_running_stats` is, all (C,).
    """

    ranks = (2, 4)


class BatchNorm3d(BatchNorm):
    """Batch normalisation of (N, C) or (N, C, D, H, W) (ONNX BatchNormalization).

    `momentum` is the weight of the new batch in the running averages, as in SINGA and PyTorch; in
    ONNX it is that of the old average. The default is 0.1: SINGA's 0.9 keeps little more than the
    last batch. With None each batch has the same weight, and `num_batches_tracked` counts them.
    Parameters `scale` and `bias`, unless `affine` is False, states `running_mean` and
    `running_var`, unless `track_running_stats` is, all (C,).
    """

    ranks = (2, 5)


class _RowNorm(Layer):
    """Normalisation over the last axes, with parameters of their shape."""

    #: The function, which takes x, the parameters, the first axis and eps.
    function: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    def _set(self, normalized_shape: Any, axis: Any, eps: Any, affine: Any) -> None:
        name = type(self).__name__
        one = isinstance(normalized_shape, Sequence) or normalized_shape is None
        shape = normalized_shape if one else (normalized_shape,)
        if shape is not None:
            shape = tuple(count(n, f"{name}: normalized_shape") for n in shape)
            if not shape:
                raise ValueError(f"{name}: normalized_shape: got (), want at least one axis")
        self.normalized_shape = shape
        self.axis = -len(shape) if shape else count(axis, f"{name}: axis", -64)
        self.eps = number(eps, f"{name}: eps", 0.0)
        self.affine = flag(affine, f"{name}: affine")

    def _over(self, x: Tensor) -> tuple[int, ...]:
        """The shape of the axes that are normalised."""
        name, axis, want = type(self).__name__, self.axis, self.normalized_shape
        if not -x.rank <= axis < x.rank:
            raise ShapeError(f"{name}: got shape {x.shape}, want an axis {axis}")
        if want is not None and x.shape[axis:] != want:
            raise ShapeError(f"{name}: got shape {x.shape}, want {want} at its end")
        return x.shape[axis:]

    def initialize(self, x: Tensor) -> None:
        """Makes the parameters."""
        name = type(self).__name__
        float_input(x, name)
        over = self._over(x)
        self.axis, self.normalized_shape = -len(over), over
        for one in self.names if self.affine else ():
            fill = "zeros" if one == "bias" else "ones"
            setattr(self, one, parameter(over, x, fill, f"{name}: {one}"))

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that ends with that of the parameters.

        Raises:
            ShapeError: other extents of these axes.
        """
        self._over(x)
        given = {one: getattr(self, one) for one in self.names if self.affine}
        return getattr(autograd, self.function)(x, **given, axis=self.axis, eps=self.eps)


class LayerNorm(_RowNorm):
    """Layer normalisation over the last axes (Ba, Kiros and Hinton, 2016; ONNX LayerNormalization,
    PyTorch LayerNorm). Parameters `scale` and `bias`, of the shape of these axes."""

    function = "layer_norm"
    names = ("scale", "bias")

    def __init__(
        self,
        normalized_shape: int | Sequence[int] | None = None,
        eps: float = 1e-5,
        affine: bool = True,
        has_bias: bool = True,
        axis: int = -1,
    ) -> None:
        """`normalized_shape`: the extents of these axes; else they are those from `axis` on.

        Args:
            eps: added to the variance.
            affine: whether there are parameters.
            has_bias: whether they include a bias.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self._set(normalized_shape, axis, eps, affine)
        if not flag(has_bias, "LayerNorm: has_bias"):
            self.names = ("scale",)


class RMSNorm(_RowNorm):
    """Root mean square normalisation over the last axes (Zhang and Sennrich, 2019; ONNX
    RMSNormalization, PyTorch RMSNorm). The parameter is `scale`, of the shape of these axes."""

    function = "rms_norm"
    names = ("scale",)

    def __init__(
        self,
        normalized_shape: int | Sequence[int] | None = None,
        eps: float = 1e-5,
        affine: bool = True,
        axis: int = -1,
    ) -> None:
        """As `LayerNorm`; `eps` is added to the mean of the squares.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self._set(normalized_shape, axis, eps, affine)


class _ChannelNorm(Layer):
    """Normalisation with a scale and a bias for each channel."""

    channels: int | None
    affine: bool

    def initialize(self, x: Tensor) -> None:
        """Makes the parameters."""
        name = type(self).__name__
        float_input(x, name)
        self.channels = features(x, name, 1, self.channels)
        self.scale = self.bias = None
        if self.affine:
            self.scale = parameter((self.channels,), x, "ones", f"{name}: scale")
            self.bias = parameter((self.channels,), x, "zeros", f"{name}: bias")


def centred_alone(x: Tensor, scale: Tensor | None, bias: Tensor | None) -> Tensor:
    """(N, C, ...) in groups of a single value, which is their mean; then a scale and a bias for
    each channel."""
    y, column = (x - x).as_type(stored_in(x.dtype)), (-1, *(1,) * (x.rank - 2))
    if scale is None or bias is None:
        return y
    return y * scale.reshape(column) + bias.reshape(column)


class GroupNorm(_ChannelNorm):
    """Group normalisation (Wu and He, 2018; ONNX GroupNormalization, PyTorch GroupNorm).
    Parameters `scale` and `bias`, (C,)."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int | None = None,
        eps: float = 1e-5,
        affine: bool = True,
    ) -> None:
        """`num_groups`: how many groups the channels are divided into.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range; channels that
                cannot be divided.
        """
        super().__init__()
        self.num_groups = count(num_groups, "GroupNorm: num_groups")
        self.channels = count_or_none(num_channels, "GroupNorm: num_channels")
        if self.channels and self.channels % self.num_groups:
            want = f"a divisor of {self.channels} channels"
            raise ValueError(f"GroupNorm: num_groups: got {num_groups}, want {want}")
        self.eps = number(eps, "GroupNorm: eps", 0.0)
        self.affine = flag(affine, "GroupNorm: affine")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...).

        Raises:
            ShapeError: a different number of channels, or one that cannot be divided.
        """
        features(x, "GroupNorm", 1, self.channels)
        groups = x.shape[0] * self.num_groups
        if x.numel != groups or x.shape[0] < 2:
            return autograd.group_norm(x, self.num_groups, self.scale, self.bias, self.eps)
        return centred_alone(x, self.scale, self.bias)


class InstanceNorm(_ChannelNorm):
    """Instance normalisation of any number of spatial axes, by the statistics of each sample in
    training and evaluation alike (Ulyanov et al., 2016; ONNX InstanceNormalization, PyTorch
    InstanceNorm1d, 2d, 3d). Parameters `scale` and `bias`, (C,), if `affine`."""

    def __init__(
        self, num_features: int | None = None, eps: float = 1e-5, affine: bool = False
    ) -> None:
        """`num_features`: the number of channels.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.channels = count_or_none(num_features, "InstanceNorm: num_features")
        self.eps = number(eps, "InstanceNorm: eps", 0.0)
        self.affine = flag(affine, "InstanceNorm: affine")

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...).

        Raises:
            ShapeError: a different number of channels.
            ValueError: a single value in each channel.
        """
        features(x, "InstanceNorm", 1, self.channels)
        return autograd.instance_norm(x, self.scale, self.bias, self.eps)
