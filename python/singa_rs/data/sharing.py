"""Batches that are dealt out to processes that work together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..device import Device
from ..refusals import count
from ..tensor import Tensor, full

#: By device, 1, or 0 where the rows that this process was given last are another's.
_counting: dict[Device, Tensor] = {}
_is_counting = [1.0]


def counting(device: Device) -> Tensor:
    """Whether the rows that this process was given last count, 1 or 0, of shape (1,): the same
    tensor each time, which a recorded step reads in each run."""
    if device not in _counting:
        _counting[device] = full((1,), _is_counting[0], device)
    return _counting[device]


def are_counting() -> bool:
    """Whether the rows that this process was given last count."""
    return _is_counting[0] > 0


def note_weight(weight: float) -> None:
    """Tells `counting` the weight of a batch that is given."""
    now = float(weight > 0)
    if now != _is_counting[0]:
        _is_counting[0] = now
        for one in _counting.values():
            one.set_value(now)


class Share(NamedTuple):
    """What one of several processes gets of each batch: rows next to each other, as many as the
    others, or at the end of an epoch one more or less."""

    rank: int = 0
    size: int = 1

    def rows(self, batch: np.ndarray) -> np.ndarray:
        """This process's rows of a batch, at least one: where there are fewer rows than processes,
        it may be another's, whose weight is 0 then."""
        start, end = self._ends(len(batch))
        return batch[start:end] if start < end else batch[:1]

    def weight(self, count: int) -> float:
        """How many of the rows of a batch of `count` count for this process, as a multiple of the
        average of all processes. So the mean over the processes of weight times the mean over
        their rows is the mean over all rows."""
        start, end = self._ends(count)
        return (end - start) * self.size / count

    def stream(self, number: int) -> int:
        """The number of a batch's generator: processes draw different numbers."""
        return number * self.size + self.rank

    def _ends(self, count: int) -> tuple[int, int]:
        return self.rank * count // self.size, (self.rank + 1) * count // self.size


def share_of(ranks: Any) -> Share:
    """The share that a pair of rank and number of processes tells; everything for None.

    Raises:
        TypeError: not a pair of ints.
        ValueError: a rank that is not below the number.
    """
    if ranks is None:
        return Share()
    if not isinstance(ranks, (tuple, list)) or len(ranks) != 2:
        raise TypeError(f"DataLoader: got ranks {ranks!r:.80}, want (rank, number of processes)")
    size = count(ranks[1], "DataLoader: ranks[1]")
    return Share(count(ranks[0], "DataLoader: ranks[0]", 0, size - 1), size)
