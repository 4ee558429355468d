"""Batches of a data set, in order or shuffled, made in the background, resumable anywhere."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from ..device import Device
from ..refusals import count, hinted, strict_flag
from ..shown import described
from .collating import staged
from .draws import default_seed, key, order
from .iteration import Batches, Place
from .processes import Workers
from .sharing import note_weight, share_of
from .sources import Job, Stream, source_of

_MOST_WORKERS = 1024
_KINDS = ("thread", "process")
#: What else is derived from.
_FIXED = ("batch_size", "dataset", "seed")


def _nothing() -> None:
    """What ends no workers."""


class DataLoader:
    """Iterates over a data set in batches of tensors (torch.utils.data.DataLoader).

    Each `iter(loader)` is one epoch, with an order of its own if `shuffle`. The batches, their
    order and what `data.rng()` draws while they are made are functions of the data set, `seed`, the
    epoch and the batch's number, whatever the number and kind of workers. Several iterations may go
    on at once; each is an epoch of its own. A batch that is held is never overwritten; memory of
    those that are not goes around, so a loader takes that of the batches under way alone.

    Args:
        dataset: arrays with equally many rows (one, or a tuple or dictionary of them); an object
            with `__len__` and `__getitem__`; or an iterable, which one thread reads. Tensors are
            copied when the loader is made; other libraries' arrays that have `__dlpack__` are read
            where they are, as NumPy's.
        batch_size: the number of samples in a batch; the last one may be smaller.
        shuffle: whether each epoch has a random order.
        seed: of the order and of `data.rng()`, from 0 to 2**63 - 1; by default that which
            `singa_rs.set_seed` was last given, else 0.
        drop_last: whether a smaller last batch is left out.
        num_workers: how many workers make batches in the background; with 0 the caller does.
        workers: "thread", or "process": spawned processes with copies of the data set, `collate`
            and `transform`, for Python code that computes much. Scripts that start processes need
            `if __name__ == "__main__":`.
        prefetch: how many batches are kept ready beside those that workers are making.
        collate: makes a batch of a list of samples; `data.collate` by default. For arrays, whole
            rows are taken at once by default.
        device: where the tensors are; the CPU by default.
        transform: a function of each batch of arrays, called by the worker: augmentation.
        as_numpy: whether batches stay NumPy arrays.
        persistent_workers: whether processes stay from epoch to epoch, with the data set as it was
            when they were started, until `close()`.
        ranks: this process's rank and the number of those that work together (`(dist.rank(),
            dist.size())`), each of which makes `batch_size` rows of every batch. No row is given
            twice: at the end of an epoch they get fewer, and `weight` says how many counted.

    Raises:
        TypeError: an argument of the wrong type, or one that cannot be copied to processes.
        ValueError: an argument out of range; arrays without rows or of different lengths;
            `shuffle` or `ranks` of an iterable.

    While iterating, errors of the data set, `collate` and `transform` are raised as they are, in
    the place of the batch. Errors of worker processes are caused by a `WorkerError` with the
    process's traceback; a process that ends raises a `WorkerError`.
    """

    @hinted
    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        seed: int | None = None,
        drop_last: bool = False,
        num_workers: int = 0,
        workers: str = "thread",
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
        device: Device | None = None,
        *,
        transform: Callable[[Any], Any] | None = None,
        as_numpy: bool = False,
        persistent_workers: bool = False,
        ranks: tuple[int, int] | None = None,
    ) -> None:
        self._source = source_of("DataLoader", dataset)
        self.batch_size = count(batch_size, "DataLoader: batch_size")
        self.seed = key(default_seed() if seed is None else seed, "DataLoader: seed")
        self.shuffle = strict_flag(shuffle, "DataLoader: shuffle")
        self.drop_last = strict_flag(drop_last, "DataLoader: drop_last")
        self.as_numpy = strict_flag(as_numpy, "DataLoader: as_numpy")
        self.persistent_workers = strict_flag(persistent_workers, "DataLoader: persistent_workers")
        self._share = share_of(ranks)
        #: The rows of all processes in a batch.
        self._rows = self.batch_size * self._share.size
        self.num_workers = count(num_workers, "DataLoader: num_workers", 0, _MOST_WORKERS)
        self.prefetch = count(prefetch, "DataLoader: prefetch", 0)
        self.dataset, self.workers, self.device = dataset, workers, device
        self._check({"collate": collate, "transform": transform})
        self._job = Job(self._source, self.seed, collate, transform, self._share)
        self._begin(Place(0, 0))

    def _begin(self, place: Place) -> None:
        """Gives the loader a place, and neither workers nor iterations."""
        self._place = place
        self._lasting: Workers | None = None
        self._end_lasting: Callable[[], Any] = _nothing
        self._open: weakref.WeakSet[Batches] = weakref.WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        del state["_lasting"], state["_end_lasting"], state["_open"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin(copy(self._place))

    def _check(self, functions: dict[str, Any]) -> None:
        """Refuses settings that are not among those which there are."""
        if not isinstance(self.workers, str) or self.workers not in _KINDS:
            got = f"{self.workers!r:.80}"
            raise ValueError(f"DataLoader: got workers {got}, want 'thread' or 'process'")
        size, kind = self._share.size, type(self.dataset).__name__
        if isinstance(self._source, Stream) and (self.shuffle or size > 1):
            what = "shuffle=True" if self.shuffle else f"ranks {(self._share.rank, size)}"
            raise ValueError(
                f"DataLoader: got {what} for {kind}, want a dataset with __len__ and __getitem__"
            )
        if self.device is not None and not isinstance(self.device, Device):
            raise TypeError(f"DataLoader: got device {self.device!r:.80}, want a Device")
        for name, one in functions.items():
            if one is not None and not callable(one):
                raise TypeError(f"DataLoader: got {name} {one!r:.80}, want a function")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_open" in self.__dict__:
            raise AttributeError(f"DataLoader: {name} cannot be changed, want another DataLoader")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Its settings but for the defaults, and how much there is."""
        shown = described(self, hidden=("dataset", "seed"))
        if isinstance(self._source, Stream):
            return f"{shown}: rows of a {type(self.dataset).__name__}"
        return f"{shown}: {len(self._source):,} rows in {len(self):,} batches"

    def __len__(self) -> int:
        """The number of batches in an epoch.

        Raises:
            TypeError: the data set is an iterable.
        """
        if isinstance(self._source, Stream):
            kind = type(self.dataset).__name__
            raise TypeError(f"DataLoader: got a dataset without a length, {kind}")
        count = len(self._source)
        return count // self._rows if self.drop_last else -(-count // self._rows)

    def __iter__(self) -> Batches:
        """The next epoch, or the rest of the one that `load_state_dict` gave."""
        place = self._place.next()
        tasks = self._tasks(place)
        workers = self._process_workers()
        made = Batches(
            self,
            tasks,
            partial((workers or self._job).make, place.epoch),
            place,
            stage=None if self.as_numpy else partial(staged, device=self.device),
            threads=self.num_workers,
            room=self.num_workers + self.prefetch,
            close=None if workers is None or self.persistent_workers else workers.close,
        )
        self._place = place
        self._open.add(made)
        return made

    def _tasks(self, place: Place) -> Iterator[Any]:
        """What the batches from a place on are made of."""
        if isinstance(self._source, Stream):
            around = partial(self._job.reading, place.epoch)
            return self._source.read(self.batch_size, place.position, self.drop_last, around)
        count, size = len(self._source), self._rows
        rows = order(count, self.seed, place.epoch) if self.shuffle else np.arange(count)
        batches = (rows[i * size : (i + 1) * size] for i in range(place.position, len(self)))
        return map(self._share.rows, batches)

    def _process_workers(self) -> Workers | None:
        """The processes of a new iteration."""
        if self.workers == "thread" or not self.num_workers:
            return None
        if not self.persistent_workers:
            return Workers(self._job, self.num_workers)
        if self._lasting is None or not self._lasting.are_alive():
            self._end_lasting()
            self._lasting = Workers(self._job, self.num_workers)
            self._end_lasting = weakref.finalize(self, self._lasting.close)
        return self._lasting

    @property
    def epoch(self) -> int:
        """The number of the epoch that the latest iteration is in; after its end, of the next."""
        return self._place.epoch

    @property
    def weight(self) -> float:
        """By what the loss of the batch that the latest iteration gave last is to be multiplied,
        so that the mean over all processes is that over all rows: 1, except at the end of an epoch
        whose rows cannot be dealt out evenly. 0 for a process that got a row of another one because
        there was none for it.

        Raises:
            ValueError: no batch of this epoch was given yet.
        """
        if self._share.size == 1:
            return 1.0
        if self._place.position == 0:
            raise ValueError("weight: no batch of this epoch was given yet")
        return self._weight(self._place.position)

    def _weight(self, position: int) -> float:
        """The weight of the batch before a position."""
        before = (position - 1) * self._rows
        return self._share.weight(min(self._rows, len(self._source) - before))

    def _note(self, position: int) -> None:
        """Lets layers know whether the rows of the batch before a position count; 0: the end."""
        if self._share.size > 1:
            note_weight(self._weight(position) if position else 1.0)

    def state_dict(self) -> dict[str, int]:
        """Where the latest iteration is, after the batch that it gave last: plain ints.

        A loader with the same arguments that gets this from `load_state_dict` goes on with the
        very batches that this one would give, also in another number of processes, if their
        batches have as many rows together.
        """
        return {"epoch": self._place.epoch, "position": self._place.position, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Lets the next iteration go on at the place that `state_dict` told. Values may be arrays
        of one integer, as state files have them.

        Raises:
            TypeError: not such a dictionary.
            ValueError: it is of a loader with another seed, batch size, order or length, which
                would give other batches.
        """
        want = {"epoch": 0, "position": 0, **self._identity()}
        if not isinstance(state, Mapping) or set(state) != set(want):
            got = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
            raise TypeError(f"load_state_dict: got {got}, want a dictionary of {sorted(want)}")
        found = {name: _integer(name, state[name]) for name in want}
        for name, value in self._identity().items():
            if found[name] != value:
                raise ValueError(
                    f"load_state_dict: got {name} {found[name]}, want this loader's, {value}"
                )
        most = 2**63 if isinstance(self._source, Stream) else len(self)
        epoch = key(found["epoch"], "load_state_dict: epoch")
        position = count(found["position"], "load_state_dict: position", 0, most)
        self._place = Place(epoch, position)

    def _identity(self) -> dict[str, int]:
        """What decides on the batches, besides the place."""
        is_stream = isinstance(self._source, Stream)
        return {
            "length": -1 if is_stream else len(self._source),
            "batch_size": self._rows,
            "seed": self.seed,
            "shuffle": int(self.shuffle),
            "drop_last": int(self.drop_last),
        }

    def close(self) -> None:
        """Ends all iterations and workers. The loader can be iterated again afterwards."""
        for one in list(self._open):
            one.close()
        self._end_lasting()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _integer(name: str, value: Any) -> int:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"load_state_dict: got {name} {value!r:.80}, want an int")
    return int(array.reshape(-1)[0])
