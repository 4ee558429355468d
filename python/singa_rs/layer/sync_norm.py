"""Batch normalisation over the batches of several processes."""

from __future__ import annotations

from .. import autograd, dist
from ..dist.functional import all_reduce
from ..errors import ShapeError
from ..tensor import Tensor, float32, float64, full
from .check import axes, features
from .norm import _BatchNorm


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, ...) whose statistics are those of the batches of all processes
    together (Ioffe and Szegedy, 2015; PyTorch SyncBatchNorm), which may differ in size.

    N processes with a part of a batch each compute what one does with the whole of it: outputs,
    running averages, and gradients of the sum of their losses, of which those of `scale` and
    `bias` are each process's own part. In evaluation, and in a process alone, it is `BatchNorm2d`.

    Statistics of 16-bit inputs are float32. `momentum` is as that of `BatchNorm2d`. Parameters
    `scale` and `bias`, states `running_mean` and `running_var`, all (C,).
    """

    ranks = (2, 3, 4, 5)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C), or (N, C, ...) with up to three more axes.

        Raises:
            ShapeError: a different number of axes or channels; no values to normalise.
            DistError: as exchanges.
        """
        if not autograd.training or dist.size() == 1:
            return super().forward(x)
        axes(x, "SyncBatchNorm", *self.ranks)
        features(x, "SyncBatchNorm", 1, self.channels)
        if x.numel == 0:
            raise ShapeError(f"SyncBatchNorm: got shape {x.shape}, want values on every rank")
        wide = x.as_type(float64 if x.dtype == float64 else float32)
        return self._normalized(wide).as_type(x.dtype)

    def _normalized(self, x: Tensor) -> Tensor:
        """The output; the batches' statistics go into the running averages."""
        over = (0, *range(2, x.rank))
        total, count = _sum_and_count(x, over)
        centred = x - self._by_channel(total / count, x)
        var = all_reduce(autograd.reduce_sum(centred * centred, over, False)) / count
        self._update(total / count, var, count)
        scale = self.scale.as_type(x.dtype) / autograd.sqrt(var + self.eps)
        bias = self.bias.as_type(x.dtype)
        return centred * self._by_channel(scale, x) + self._by_channel(bias, x)

    def _by_channel(self, values: Tensor, x: Tensor) -> Tensor:
        """Values of channels, which extend along all other axes of x."""
        return values.reshape((1, self.channels, *(1 for _ in x.shape[2:])))

    def _update(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Takes a batch's mean and biased variance into the running averages."""
        unbiased = var.detach() * (count / (count - 1))
        for running, batch in ((self.running_mean, mean.detach()), (self.running_var, unbiased)):
            with autograd.no_grad():
                kept = running * (1 - self.momentum)
                running.copy_from(kept + self.momentum * batch.as_type(running.dtype))


def _sum_and_count(x: Tensor, over: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The sums over all ranks of each channel's values, and of their number, in one exchange."""
    channels = x.shape[1]
    own = full((1,), x.numel // channels, x.device, x.dtype)
    both = all_reduce(autograd.cat([autograd.reduce_sum(x, over, False), own], 0))
    return both[:channels], both[channels:].detach()
