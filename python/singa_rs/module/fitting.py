"""`Module.fit`: epochs of training, on top of `train_one_batch`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..layer.base import Layer
from ..layer.check import count, flag
from ..metric import Running
from ..refusals import hinted
from .callbacks import Callback
from .epochs import Run
from .history import History
from .progress import Progress
from .validation import batches_of, check_parts


class Fitted(Layer):
    """The part of a module that trains on whole data sets."""

    @hinted
    def fit(
        self,
        loader: Any,
        epochs: int = 1,
        validation: Any = None,
        callbacks: Callback | Sequence[Callback] = (),
        *,
        batch_size: int | None = None,
        shuffle: bool = True,
        metrics: Mapping[str, Running] | Sequence[Running] = (),
        loss: Callable[[Any, Any], Any] | None = None,
        progress: bool = True,
    ) -> History:
        """Calls the module with each batch of a data set, `epochs` times. In training that is
        `train_one_batch`, recorded and replayed if the module was compiled. It returns the loss,
        `(outputs, loss)`, or a dictionary of losses by name, with `outputs` if there are metrics.

        Ctrl-C ends training; the history is returned, whose `stopped` says so. The module is left
        in the mode in which it was.

        Args:
            loader: a `DataLoader`; an iterable of batches, each the arguments of the step in a
                tuple, list or dictionary, or a single one; or arrays with equally many rows in a
                tuple, such as `(x, y)`. Arrays are copied to the model's device; those of other
                libraries that have `__dlpack__` are read as NumPy's.
            epochs: how many in all, those that a checkpoint has made included.
            validation: a data set as `loader`, gone through in evaluation after each epoch: by
                `validate_one_batch`, if the module has it, which returns what a step does; else
                `forward` gets all parts of a batch but the last, the targets.
            callbacks: `module.callbacks`, called in order, those that save last.
            batch_size: rows in a batch of arrays, 32 by default; the last one may be smaller.
            shuffle: whether the rows of arrays get a random order in each epoch, of the seed that
                `singa_rs.set_seed` gave.
            metrics: by name, or named after their classes (`metric.Accuracy` is `accuracy`).
                Computed of the steps' outputs, which are copied to the host, and of the validation.
            loss: of outputs and targets, for validation; by default the module's attribute `loss`.
            progress: whether there is a bar, or a line per epoch, on the error output.

        Returns:
            The figures of each epoch. Losses are means over rows, of all ranks that train
            together, of the losses before each step.

        Raises:
            FloatingPointError: a loss is NaN or infinite, by epoch and batch; the error has the
                `history` so far. In float16, whose optimizer skips such a step, it is left out.
            TypeError, ValueError: arguments of other kinds, no batches in an epoch.
        """
        if not callable(getattr(self, "train_one_batch", None)):
            raise TypeError(f"fit: {type(self).__name__} has no train_one_batch")
        epochs = count(epochs, "fit: epochs")
        to, is_mixed = self.device, flag(shuffle, "fit: shuffle")
        check_parts("fit", loader, self.train_one_batch)  # type: ignore[attr-defined]
        batches = batches_of("fit", loader, batch_size, is_mixed, epochs, to)
        run = Run(self, batches, epochs, named(metrics), _callbacks(callbacks))  # type: ignore[arg-type]
        if validation is not None:
            held_out = batches_of("fit: validation", validation, batch_size, False, epochs, to)
            run.validate(held_out, loss)
        elif loss is not None:
            raise ValueError("fit: got loss, which is for validation, and no validation")
        return run.go(Progress(flag(progress, "fit: progress"), epochs))


def named(metrics: Any) -> dict[str, Running]:
    """Metrics by name.

    Raises:
        TypeError: something else is among them.
        ValueError: two have one name, or one is called loss.
    """
    if isinstance(metrics, Running) or not isinstance(metrics, (Mapping, list, tuple)):
        raise TypeError(f"fit: got metrics {metrics!r:.80}, want them in a list or a dictionary")
    pairs = list(metrics.items()) if isinstance(metrics, Mapping) else [
        (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(one).__name__).lower(), one) for one in metrics
    ]  # fmt: skip
    for name, one in pairs:
        if not isinstance(one, Running) or not isinstance(name, str):
            raise TypeError(f"fit: got metric {one!r:.80}, want one such as metric.Accuracy()")
    found = dict(pairs)
    if len(found) < len(pairs) or "loss" in found:
        got = ", ".join(name for name, _ in pairs)
        raise ValueError(f"fit: got metrics {got}, want other names: give them in a dictionary")
    return found


def _callbacks(given: Any) -> list[Callback]:
    found = list(given) if isinstance(given, Iterable) else [given]
    for one in found:
        if not isinstance(one, Callback):
            raise TypeError(f"fit: got callback {one!r:.80}, want a module.callbacks.Callback")
    return sorted(found, key=lambda one: one.is_last)
