"""Where each rank's share of several tensors lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from ...tensor import Tensor


class Piece(NamedTuple):
    """Elements of a tensor that are in a rank's share, one after the other."""

    #: Which of the tensors.
    index: int
    #: The first of them in the tensor, and in the share.
    start: int = 0
    at: int = 0
    count: int = 0

    def of(self, whole: Tensor) -> Tensor:
        """The elements in the tensor: a view, if it has no gaps."""
        return _run(whole.reshape((whole.numel,)), self.start, self.count)

    def within(self, share: Tensor) -> Tensor:
        """A view of the elements in the share."""
        return _run(share, self.at, self.count)


class Layout:
    """Tensors of one dtype, one after the other, cut into shares that are equally large, for which
    there are zeros at the end."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], ranks: int) -> None:
        self.shapes = tuple(tuple(shape) for shape in shapes)
        self.numel = sum(map(prod, self.shapes))
        #: How many elements a share has.
        self.share = -(-self.numel // ranks)

    def pieces(self, rank: int) -> Iterator[Piece]:
        """What is in a rank's share: a piece of each tensor, in order, which may be empty, so that
        all ranks do the same operations."""
        begin, end, start = rank * self.share, (rank + 1) * self.share, 0
        for index, shape in enumerate(self.shapes):
            stop = start + prod(shape)
            low, high = max(start, begin), min(stop, end)
            is_in = low < high
            yield Piece(index, low - start, low - begin, high - low) if is_in else Piece(index)
            start = stop


def _run(flat: Tensor, start: int, count: int) -> Tensor:
    return flat.view_slice(((start, count, 1),))
