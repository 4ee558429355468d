"""A run of `Module.fit`: its epochs, steps and callbacks."""

from __future__ import annotations

import math
import os
import zlib
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dist
from ..refusals import is_real
from ..tensor import Tensor, from_numpy
from .callbacks import Callback, Checkpoint, holders_of
from .history import History, Means, parts_of
from .modes import in_mode
from .progress import Progress
from .validation import Validation, batches_in, call_with, rows_of, targets_of

if TYPE_CHECKING:
    from . import Module


class Run:
    """A run of `fit`, as callbacks see it: `model`, `loader`, `epochs`, `history`; the number of
    the `epoch` in progress, from 1, and of its `batch`; `figures`, what the last step returned, by
    name, which `float(...)` reads."""

    def __init__(
        self, model: Module, loader: Any, epochs: int, metrics: Any, callbacks: list[Callback]
    ) -> None:
        self.model, self.loader, self.epochs = model, loader, epochs
        self.metrics, self.callbacks = metrics, callbacks
        self.history, self.held_out = History(), None
        self.epoch = self.batch = 0
        self.figures: dict[str, Any] = {}
        self._validation: Validation | None = None
        #: In float16 steps whose gradients are not finite are skipped.
        self._skips = "loss_scale" in vars(model)
        self._watching = [one for one in callbacks if one.watches_batches()]
        #: Whether other ranks make the same epochs, and whether this one saves for them.
        self._is_joint, self._saves = _is_joint(model, callbacks), True

    def validate(self, held_out: Any, loss: Any) -> None:
        """Has each epoch end with a validation."""
        self.held_out = held_out
        self._validation = Validation(self.model, held_out, loss, self.metrics)

    def stop(self, reason: str) -> None:
        """Ends training after this epoch."""
        self.history.stopped = reason

    def go(self, progress: Progress) -> History:
        """Trains."""
        with ExitStack() as last:
            for one in reversed(self.callbacks):
                last.callback(one.on_close, self)
            self._train(progress)
            for one in self.callbacks:
                one.on_end(self)
        if self.history.stopped is not None:
            progress.say(f"fit: {self.history.stopped}")
        return self.history

    def _train(self, progress: Progress) -> None:
        """Makes the epochs."""
        mode = nullcontext() if self.model.training else in_mode(self.model, True)
        try:
            with mode:
                for one in reversed(self.callbacks):  # what was saved last is read first
                    one.on_begin(self)
                while self._goes_on():
                    self._epoch(progress)
        except KeyboardInterrupt:
            self.stop(f"interrupted in epoch {self.epoch}, after batch {self.batch}")
        except FloatingPointError as error:
            error.history = self.history  # type: ignore[attr-defined]
            raise
        finally:
            progress.close()

    def _goes_on(self) -> bool:
        """Whether there is another epoch."""
        if self._is_joint:
            self._meet()
        return len(self.history) < self.epochs and self.history.stopped is None

    def _meet(self) -> None:
        """Waits for all ranks, so that what one has saved is there for all, and ends training where
        one of them does. Of ranks that save in the same folders the first does.

        Raises:
            DistError: ranks have loaded different epochs.
        """
        kept = [one.checkpoints.folder for one in self.callbacks if isinstance(one, Checkpoint)]
        key = zlib.crc32("\n".join(map(os.path.realpath, kept)).encode())
        own = _sent([key, len(self.history), self.history.stopped is not None])
        keys, epochs, stopped = dist.all_gather(own).to_numpy().astype(np.int64).T.tolist()
        self._saves = keys.index(key) == dist.rank()
        if len({*epochs}) > 1:
            raise dist.DistError(f"fit: got epochs {epochs} from the ranks, want one checkpoint "
                                 "that all of them read")  # fmt: skip
        if any(stopped) and self.history.stopped is None:
            self.stop(f"rank {stopped.index(1)} has stopped")

    def _epoch(self, progress: Progress) -> None:
        self.epoch, self.batch = len(self.history) + 1, 0
        for one in self.callbacks:
            one.on_epoch_begin(self)
        progress.begin(self.epoch, _length(self.loader))
        found = self._steps(progress)
        if self._validation is not None:
            found |= self._validation(self.epoch)
        row = {name: value for name, (value, _) in found.items()}
        if self._is_joint:
            row |= _of_all(found)
        self.history.rows.append(row)
        progress.end(self.epoch, row)
        for one in self.callbacks:
            one.on_epoch_end(self)

    def _steps(self, progress: Progress) -> dict[str, tuple[Any, int]]:
        """The figures of the steps of an epoch, and of how many rows they are."""
        means = Means(f"fit: epoch {self.epoch}", refuses=not self._skips, skips=self._skips)
        for metric in self.metrics.values():
            metric.reset()
        has_outputs = False
        for batch in batches_in(self.loader):
            rows = rows_of(batch)
            has_outputs = self._step(batch, bool(rows or not means.rows))
            means.add(rows, self.figures)
            progress.batch(self.figures)
            for one in self._watching:
                one.on_batch_end(self)
        if not self.batch:
            raise ValueError(f"fit: epoch {self.epoch}: got no batches")
        found: dict[str, Any] = means.compute()
        metrics = self.metrics if has_outputs else {}
        return found | {name: (one.compute(), means.rows) for name, one in metrics.items()}

    def _step(self, batch: Any, counts: bool) -> bool:
        """Makes a step and shows it to the metrics if it counts; returns whether it gave outputs,
        which are not held any longer when the next step begins."""
        made = call_with(self.model, batch)
        outputs, self.figures = parts_of("fit: train_one_batch", made)
        self.batch += 1
        targets = targets_of(batch)
        if not self.metrics:
            return outputs is not None
        if outputs is None or targets is None:
            if self._validation is None:
                raise TypeError("fit: got metrics, but train_one_batch returns no outputs, or the "
                                "batch has no targets, and there is no validation")  # fmt: skip
            return False
        for metric in self.metrics.values() if counts else ():
            metric.update(outputs, targets)
        return True


def _is_joint(model: Module, callbacks: list[Callback]) -> bool:
    """Whether an optimizer of the model, or one that a callback was given, is one of several
    ranks."""
    from ..opt import DistOpt, LocalSGD

    found = any(isinstance(one, (DistOpt, LocalSGD)) for one in holders_of(model, callbacks))
    return found and dist.size() > 1


def _of_all(found: dict[str, tuple[Any, int]]) -> dict[str, float]:
    """The means of all ranks' figures that are numbers, by the rows of each, so that callbacks
    decide alike on all ranks."""
    numbers = {name: pair for name, pair in found.items() if is_real(pair[0])}
    parts = [(value * rows if rows else 0.0, rows) for value, rows in numbers.values()]
    sums = dist.all_reduce(_sent(parts)).to_numpy().tolist()
    means = [total / rows if rows else math.nan for total, rows in sums]
    return dict(zip(numbers, means, strict=True))


def _sent(values: Any) -> Tensor:
    return from_numpy(np.array(values, np.float64), dtype="float64")


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None
