"""Parts of data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .draws import key, split_order
from .sources import Source, Stream, source_of


class Subset(Source):
    """Some samples of a data set, itself one.

    Args:
        dataset: arrays (one, or a tuple or dictionary of them), or an object with `__len__` and
            `__getitem__`.
        indices: the numbers of the samples, each from 0 to the length - 1.

    Raises:
        TypeError: not a data set with indices, or indices that are not integers.
        IndexError: an index out of range.
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | np.ndarray) -> None:
        self.dataset, self.indices = dataset, _integers(indices)
        self._whole = _with_numbers("Subset", dataset)
        count = len(self._whole)
        wrong = self.indices[(self.indices < 0) | (self.indices >= count)]
        if len(wrong):
            raise IndexError(f"Subset: got index {wrong[0]}, want indices from 0 to {count - 1}")

    def __repr__(self) -> str:
        """How many rows there are, and of what."""
        kind = type(self.dataset).__name__
        return f"Subset: {len(self):,} of {len(self._whole):,} rows of a {kind}"

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self._whole.samples(self.indices[[index]])[0]

    def samples(self, task: np.ndarray) -> list[Any]:
        """The samples at these places of `indices`."""
        return self._whole.samples(self.indices[task])

    def batch(self, task: np.ndarray) -> Any:
        """The samples at these places of `indices`, stacked."""
        return self._whole.batch(self.indices[task])


def _with_numbers(op: str, dataset: Any) -> Any:
    """How to read a data set whose samples have numbers."""
    source = source_of(op, dataset)
    if isinstance(source, Stream):
        kind = type(dataset).__name__
        raise TypeError(f"{op}: got {kind} for dataset, want one with __len__ and __getitem__")
    return source


def _integers(indices: Any) -> np.ndarray:
    try:
        found = np.asarray(indices)
    except ValueError:
        found = np.zeros((0, 0))
    if found.size == 0 and found.ndim == 1:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError(f"Subset: got indices {indices!r:.80}, want a list of ints")
    return found.astype(np.int64)


def random_split(dataset: Any, lengths: Sequence[float], seed: int = 0) -> list[Subset]:
    """Disjoint random parts of a data set, a function of its length, `lengths` and `seed`.

    Args:
        dataset: as `Subset` takes it.
        lengths: the number of samples in each part, which add up to the length; or shares that
            add up to 1, of which what rounding leaves goes to the first parts, one sample each.
        seed: from 0 to 2**63 - 1.

    Raises:
        TypeError: `lengths` is not a list of numbers.
        ValueError: the lengths do not add up to the data set's, nor to 1.
    """
    count = len(_with_numbers("random_split", dataset))
    sizes = _sizes(lengths, count)
    rows = split_order(count, key(seed, "random_split: seed"))
    return [Subset(dataset, part) for part in np.split(rows, np.cumsum(sizes)[:-1])]


def _sizes(lengths: Sequence[float], count: int) -> list[int]:
    is_list = isinstance(lengths, (list, tuple)) and len(lengths) > 0
    if not is_list or any(
        isinstance(n, bool) or not isinstance(n, (int, float, np.integer)) for n in lengths
    ):
        raise TypeError(f"random_split: got lengths {lengths!r:.80}, want a list of numbers")
    if all(isinstance(n, (int, np.integer)) and n >= 0 for n in lengths) and sum(lengths) == count:
        return [int(n) for n in lengths]
    if not all(0 <= n <= 1 for n in lengths) or not math.isclose(sum(lengths), 1):
        raise ValueError(
            f"random_split: got lengths {list(lengths)!r:.80}, want numbers of samples that add up "
            f"to {count}, or shares that add up to 1"
        )
    sizes = [math.floor(count * share) for share in lengths]
    for i in range(count - sum(sizes)):
        sizes[i % len(sizes)] += 1
    return sizes
