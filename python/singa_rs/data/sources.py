"""What a loader reads: arrays, anything with a length and indices, or an iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import count, islice
from typing import Any

import numpy as np

from ..shown import is_foreign
from ..tensor import Tensor
from ..tensor.numbers import lent
from .collating import collate, map_leaves
from .draws import drawing
from .sharing import Share

#: A context for each group of samples.
Around = Callable[[int], AbstractContextManager[None]]


class Source:
    """A data set as workers see it. They make a batch of a task: an array of the numbers of its
    samples or, if the data set has no numbers, a list of the samples themselves."""

    def samples(self, task: Any) -> list[Any]:
        """The samples of a batch."""
        raise NotImplementedError

    def batch(self, task: Any) -> Any:
        """The samples of a batch, stacked."""
        return collate(self.samples(task))


class Columns(Source):
    """Rows of equally long arrays: one array, or several in a tuple or dictionary."""

    def __init__(self, op: str, arrays: Any) -> None:
        self._arrays = map_leaves(lambda one: _as_array(op, one), arrays)
        lengths: list[int] = []
        map_leaves(lambda array: lengths.append(len(array)), self._arrays)
        if len(set(lengths)) != 1:
            raise ValueError(f"{op}: got arrays of lengths {lengths}, want one length")
        self._length = lengths[0]

    def __len__(self) -> int:
        return self._length

    def samples(self, task: np.ndarray) -> list[Any]:
        """The rows one by one."""
        return [map_leaves(lambda array, i=i: array[i], self._arrays) for i in task]

    def batch(self, task: np.ndarray) -> Any:
        """The rows together."""
        return map_leaves(lambda array: array[task], self._arrays)


class Indexed(Source):
    """An object with `__len__` and `__getitem__`."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def samples(self, task: np.ndarray) -> list[Any]:
        """The samples of these numbers."""
        return [self._dataset[int(i)] for i in task]


class Samples(Source):
    """What others have read: tasks are the samples themselves."""

    def samples(self, task: list[Any]) -> list[Any]:
        """The samples as they were read."""
        return task


class Stream(Source):
    """An iterable, which one thread reads; workers stack and transform its samples."""

    def __init__(self, dataset: Iterable[Any]) -> None:
        self._dataset = dataset
        self._is_used_up = False

    def read(self, size: int, start: int, is_whole: bool, around: Around) -> Iterator[list[Any]]:
        """The samples in groups of `size`, without the first `start` groups; with a smaller last
        one unless `is_whole`. Each group is read within the context `around` its number, counted
        from 1; the iterable starts within that of 0.

        Raises:
            ValueError: an iterator that was iterated before.
        """
        with around(0):
            samples = iter(self._dataset)
        if samples is self._dataset:
            if self._is_used_up:
                raise ValueError(
                    "DataLoader: got an iterator as dataset, which can be iterated only once; "
                    "want an object whose __iter__ starts again"
                )
            self._is_used_up = True
        return _groups(samples, size, start, is_whole, around)


def _groups(
    samples: Iterator[Any], size: int, start: int, is_whole: bool, around: Around
) -> Iterator[list[Any]]:
    for number in count(1):
        with around(number):
            group = list(islice(samples, size))
        is_last = len(group) < size
        if number > start and group and not (is_last and is_whole):
            yield group
        if is_last:
            return


def source_of(op: str, dataset: Any) -> Source:
    """How to read a data set; errors name `op`.

    Raises:
        TypeError: not a data set.
        ValueError: arrays without rows, or of different lengths.
    """
    if isinstance(dataset, Source):
        return dataset
    if are_arrays(dataset):
        return Columns(op, dataset)
    is_other = isinstance(dataset, (str, bytes, Mapping, type))
    if not is_other and hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"):
        return Indexed(dataset)
    if not is_other and isinstance(dataset, Iterable):
        return Stream(dataset)
    raise TypeError(
        f"{op}: got {type(dataset).__name__} for dataset, want arrays, an object with __len__ and "
        "__getitem__, or an iterable"
    )


def are_arrays(value: Any) -> bool:
    """Whether it is an array, or a tuple or dictionary of nothing but arrays."""
    if not isinstance(value, (tuple, Mapping)):
        return isinstance(value, (np.ndarray, Tensor)) or is_foreign(value)
    items = list(value.values() if isinstance(value, Mapping) else value)
    return len(items) > 0 and all(map(are_arrays, items))


def _as_array(op: str, value: Any) -> np.ndarray:
    array = value.to_numpy() if isinstance(value, Tensor) else lent(value, op)
    if array.ndim == 0:
        raise ValueError(f"{op}: got an array of shape () as dataset, want arrays with rows")
    return array


class Job:
    """How batches are made: all that a worker process has to know."""

    def __init__(
        self,
        source: Source,
        seed: int,
        stack: Callable[[list[Any]], Any] | None,
        transform: Callable[[Any], Any] | None,
        share: Share,
    ) -> None:
        # Workers get the samples of an iterable, which may not be one that can be copied.
        self._source = Samples() if isinstance(source, Stream) else source
        self._seed, self._share = seed, share
        self._stack, self._transform = stack, transform

    def reading(self, epoch: int, number: int) -> AbstractContextManager[None]:
        """A context in which an iterable makes group `number` of an epoch's samples."""
        return drawing(self._seed, epoch, self._share.stream(number), reads=True)

    def make(self, epoch: int, number: int, task: Any) -> Any:
        """Batch `number` of an epoch."""
        with drawing(self._seed, epoch, self._share.stream(number)):
            if self._stack is None:
                batch = self._source.batch(task)
            else:
                batch = self._stack(self._source.samples(task))
            return batch if self._transform is None else self._transform(batch)
