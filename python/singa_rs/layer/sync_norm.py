"""Batch normalisation over the batches of several processes."""

from __future__ import annotations

from .. import autograd, dist
from ..dist.functional import all_reduce
from ..errors import ShapeError
from ..record import making_state
from ..tensor import Tensor, full
from .norm import BatchNorm, wide_dtype


class SyncBatchNorm(BatchNorm):
    """Batch normalisation of (N, C, ...) whose statistics are those of the batches of all processes
    together (Ioffe and Szegedy, 2015; PyTorch SyncBatchNorm), which may differ in size.

    N processes with a part of a batch each compute what one does with the whole of it: outputs,
    running averages, and gradients of the sum of their losses, of which those of `scale` and
    `bias` are each process's own part. In evaluation, and in a process alone, it is `BatchNorm2d`.

    Statistics of 16-bit inputs are float32. Arguments, parameters and states are as those of
    `BatchNorm2d`; without `track_running_stats`, evaluation takes the statistics of the process's
    own batch.
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
        self._check(x)
        if x.numel == 0:
            raise ShapeError(f"SyncBatchNorm: got shape {x.shape}, want values on every rank")
        return self._normalized(x.as_type(wide_dtype(x))).as_type(x.dtype)

    def _normalized(self, x: Tensor) -> Tensor:
        """The output; the batches' statistics go into the running averages."""
        over = (0, *range(2, x.rank))
        total, count = _sum_and_count(x, over)
        centred = x - self._by_channel(total / count, x)
        var = _all_reduce(autograd.reduce_sum(centred * centred, over, False)) / count
        if self.track_running_stats:
            self._take((total / count).detach(), var.detach() * (count / (count - 1).clip(1.0)))
        scale, bias = (one.as_type(x.dtype) for one in self._weights(x))
        scale = scale / autograd.sqrt(var + self.eps)
        return centred * self._by_channel(scale, x) + self._by_channel(bias, x)

    def _by_channel(self, values: Tensor, x: Tensor) -> Tensor:
        """Values of channels, which extend along all other axes of x."""
        return values.reshape((1, self.channels, *(1 for _ in x.shape[2:])))


def _sum_and_count(x: Tensor, over: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The sums over all ranks of each channel's values, and of their number, in one exchange."""
    channels = x.shape[1]
    own = full((1,), x.numel // channels, x.device, x.dtype)
    both = _all_reduce(autograd.cat([autograd.reduce_sum(x, over, False), own], 0))
    return both[:channels], both[channels:].detach()


def _all_reduce(x: Tensor) -> Tensor:
    """The sum over all ranks whose rows count."""
    from ..data.sharing import counting  # data loads when it is first used

    with making_state():
        counts = counting(x.device)
    return all_reduce(x * counts.as_type(x.dtype))
