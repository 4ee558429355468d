"""A run of `Module.fit`: its epochs, steps and callbacks."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

from .history import History, Means, parts_of
from .modes import in_mode
from .progress import Progress
from .validation import Validation, call_with, rows_of, targets_of

if TYPE_CHECKING:
    from . import Module
    from .callbacks import Callback


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
                while len(self.history) < self.epochs and self.history.stopped is None:
                    self._epoch(progress)
        except KeyboardInterrupt:
            self.stop(f"interrupted in epoch {self.epoch}, after batch {self.batch}")
        except FloatingPointError as error:
            error.history = self.history  # type: ignore[attr-defined]
            raise
        finally:
            progress.close()

    def _epoch(self, progress: Progress) -> None:
        self.epoch, self.batch = len(self.history) + 1, 0
        for one in self.callbacks:
            one.on_epoch_begin(self)
        progress.begin(self.epoch, _length(self.loader))
        row = self._steps(progress)
        if self._validation is not None:
            row |= self._validation(self.epoch)
        self.history.rows.append(row)
        progress.end(self.epoch, row)
        for one in self.callbacks:
            one.on_epoch_end(self)

    def _steps(self, progress: Progress) -> dict[str, float]:
        """The figures of the steps of an epoch."""
        means = Means(f"fit: epoch {self.epoch}", refuses=not self._skips, skips=self._skips)
        for metric in self.metrics.values():
            metric.reset()
        has_outputs = False
        for batch in self.loader:
            has_outputs = self._step(batch)
            means.add(rows_of(batch), self.figures)
            progress.batch(self.figures)
            for one in self._watching:
                one.on_batch_end(self)
        if not self.batch:
            raise ValueError(f"fit: epoch {self.epoch}: got no batches")
        found = means.compute()
        metrics = self.metrics if has_outputs else {}
        return found | {name: one.compute() for name, one in metrics.items()}

    def _step(self, batch: Any) -> bool:
        """Makes a step and shows it to the metrics; returns whether it gave outputs, which are not
        held any longer when the next step begins."""
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
        for metric in self.metrics.values():
            metric.update(outputs, targets)
        return True


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None
