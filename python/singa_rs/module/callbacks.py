"""What `Module.fit` does besides training: checkpoints, early stopping, TensorBoard, and whatever a
subclass of `Callback` does."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from .. import autograd, dist, files
from ..layer.check import count, flag, mapping, number, one_of
from ..layer.collect import below
from ..opt.observing import observe
from ..refusals import is_of_package
from ..shown import described, shown
from .checkpoints import MODES, Checkpoints
from .history import as_figure, numbers_of

if TYPE_CHECKING:
    from . import Module
    from .epochs import Run


class Callback:
    """Is called by `fit` at each of these points, with the run: `model`, `loader`, `epochs`,
    `epoch`, `batch`, `figures` (what the last step returned), `history`, and `stop(reason)`.

    One that has something to remember tells it by `state_dict` and takes it by `load_state_dict`,
    so that `Checkpoint` saves it.
    """

    #: Whether it is called after the others.
    is_last = False

    def __repr__(self) -> str:
        """Its settings but for the defaults."""
        return described(self)

    def on_begin(self, run: Run) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, run: Run) -> None:
        """Before the first batch of an epoch."""

    def on_batch_end(self, run: Run) -> None:
        """After a step. Reading its figures waits for it."""

    def on_epoch_end(self, run: Run) -> None:
        """After an epoch and its validation, whose figures are `run.history[-1]`."""

    def on_end(self, run: Run) -> None:
        """After the last epoch, early stopping or Ctrl-C."""

    def on_close(self, run: Run) -> None:
        """Last of all, also where training ended by an error, and even if `on_begin` was not
        called: gives back what the callback holds, such as files."""

    def watches_batches(self) -> bool:
        """Whether it has an `on_batch_end` of its own; others are not called for each step."""
        return type(self).on_batch_end is not Callback.on_batch_end


def _name(argument: str, value: Any) -> str:
    """The name of a figure."""
    if not isinstance(value, str):
        raise TypeError(f"{argument}: got {shown(value)}, want the name of a figure")
    return value


def figure(who: str, run: Run, name: str) -> float:
    """A figure of the last epoch.

    Raises:
        TypeError: it is no number.
        ValueError: it has none of this name.
    """
    row = run.history[-1]
    if name not in row:
        raise ValueError(f"{who}: got figures {', '.join(row)}, want {name!r} among them")
    found = as_figure(row[name])
    if found is None:
        raise TypeError(f"{who}: {name} is no number, got {shown(row[name])}")
    return found


class EarlyStopping(Callback):
    """Ends training when a figure has not improved for `patience` epochs in a row.

    Args:
        monitor: the figure.
        patience: how many epochs, from 1.
        min_delta: by how much a figure must be better than the best to count as better.
        mode: whether it should be small, "min", or large, "max"; to be given unless the name ends
            with "loss" or "error".
        restore_best: whether the model gets the parameters and states of the best epoch at the
            end. Until then a copy of them is kept.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 3,
        min_delta: float = 0.0,
        mode: str | None = None,
        restore_best: bool = False,
    ) -> None:
        self.monitor = _name("EarlyStopping: monitor", monitor)
        self.patience = count(patience, "EarlyStopping: patience")
        self.min_delta = number(min_delta, "EarlyStopping: min_delta", 0)
        if mode is None and not monitor.endswith(("loss", "error")):
            raise ValueError(f"EarlyStopping: got no mode for {monitor!r}, want 'min' or 'max'")
        self.mode = one_of("min" if mode is None else mode, "EarlyStopping: mode", MODES)
        self.restore_best = flag(restore_best, "EarlyStopping: restore_best")
        self._forget()

    def _forget(self) -> None:
        self.best: float | None = None
        self.best_epoch = self.waited = 0
        self._kept: dict[str, Any] = {}

    def on_begin(self, run: Run) -> None:
        """Begins anew, unless a checkpoint was loaded."""
        if not len(run.history):
            self._forget()
        self._stop_if_due(run)

    def on_epoch_end(self, run: Run) -> None:
        """Looks at the figure. NaN is no improvement."""
        value = figure("EarlyStopping", run, self.monitor)
        sign = 1.0 if self.mode == "max" else -1.0
        least = None if self.best is None else sign * self.best + self.min_delta
        if not math.isnan(value) and (least is None or sign * value > least):
            self.best, self.best_epoch, self.waited = value, run.epoch, 0
            if self.restore_best:
                with autograd.no_grad():
                    self._kept = {name: t.clone() for name, t in run.model.get_states().items()}
        else:
            self.waited += 1
        self._stop_if_due(run)

    def _stop_if_due(self, run: Run) -> None:
        if self.waited >= self.patience:
            best = f"a {self.monitor} that is a number"
            if self.best_epoch:
                best = f"{self.monitor} {self.best:.4g} of epoch {self.best_epoch}"
            run.stop(f"{self.waited} epochs without improvement over {best}")

    def on_end(self, run: Run) -> None:
        """Restores the best epoch.

        Raises:
            ValueError: the model has no parameters yet.
        """
        if not self._kept or self.best_epoch == len(run.history):
            return
        if not run.model.get_states():  # a finished run was loaded, and nothing was called
            raise ValueError(
                f"EarlyStopping: cannot restore epoch {self.best_epoch}: "
                f"{type(run.model).__name__} has no parameters before its first call; compile it"
            )
        run.model.set_states(self._kept)

    def state_dict(self) -> dict[str, Any]:
        """What it remembers."""
        return {
            "best": self.best,
            "best_epoch": self.best_epoch,
            "waited": self.waited,
            "kept": self._kept,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what `state_dict` told."""
        self.best, self.best_epoch = state["best"], state["best_epoch"]
        self.waited, self._kept = state["waited"], dict(state["kept"])


class ObservePlateau(Callback):
    """Shows a figure of each epoch to the optimizers whose learning rates follow one
    (`opt.OnPlateau`), by `Optimizer.observe`."""

    def __init__(self, monitor: str = "val_loss", optimizer: Any = None) -> None:
        """`optimizer`: that which sees it; by default all in the model's attributes that follow a
        figure.

        Raises:
            TypeError: no name of a figure, or no optimizer.
            ValueError: at the end of an epoch: there is none, or the figure is not finite.
        """
        self.monitor, self.optimizer = _name("ObservePlateau: monitor", monitor), optimizer
        if optimizer is not None and not hasattr(type(optimizer), "observe"):
            got = f"ObservePlateau: optimizer: got {shown(optimizer)}"
            raise TypeError(f"{got}, want an optimizer or None")

    def on_epoch_end(self, run: Run) -> None:
        """Shows the figure."""
        value = figure("ObservePlateau", run, self.monitor)
        held = [one for _, one in holders(run.model)]
        # A `LocalSGD` shows its optimizer nothing.
        held = [one if hasattr(one, "observe") else getattr(one, "opt", one) for one in held]
        found = [one for one in held if _follows(one)]
        if self.optimizer is None and not found:
            raise ValueError(
                "ObservePlateau: no optimizer in the attributes of the model has an opt.OnPlateau"
            )
        if self.optimizer is not None:
            self.optimizer.observe(value)
            return
        for one in filter(_observes_itself, found):
            one.observe(value)
        # A schedule that several have sees the figure once.
        observe([_within(one) for one in found if not _observes_itself(one)], value)


def _within(holder: Any) -> Any:
    """What has hyperparameters: of a `DistOpt` its optimizer."""
    return getattr(holder, "opt", holder)


def _observes_itself(holder: Any) -> bool:
    """Whether it has an `observe` of the program's own."""
    return not all(is_of_package(type(one).observe) for one in (holder, _within(holder)))


def _follows(holder: Any) -> bool:
    """Whether a hyperparameter of an optimizer follows a figure."""
    optimizer = _within(holder)
    schedules = optimizer._schedules() if hasattr(optimizer, "_schedules") else ()
    return any(schedule.state is not None for _, schedule, _ in schedules)


class Checkpoint(Callback):
    """Saves the run in a folder, and goes on from there, to the bit: parameters, states, optimizers
    and averages in the model's attributes, the place in random numbers, loaders, callbacks and the
    history. A folder without checkpoints begins anew.

    Args:
        folder: as for `Checkpoints`, which makes the files.
        every: after how many epochs it saves; also after the last one.
        keep: how many of the last checkpoints stay.
        best: the figure whose best epoch stays, too, and its mode: `("val_loss", "min")`.
        state: what else there is to save, as for `Module.save`: optimizers outside of the model,
            generators that the data set draws from.

    Raises, when training begins:
        CheckpointError: there are checkpoints, but none can be loaded.
        ValueError: the checkpoint is of more epochs than `fit` is to make, or no optimizer is found
            in the model or in `state`.
    """

    is_last = True

    def __init__(
        self,
        folder: str | PathLike[str],
        every: int = 1,
        keep: int = 3,
        best: tuple[str, str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.every = count(every, "Checkpoint: every")
        self.checkpoints = Checkpoints(folder, 1, keep, best)
        self.state = {} if state is None else mapping(state, "Checkpoint: state")

    def on_begin(self, run: Run) -> None:
        """Loads the newest checkpoint."""
        if not self.state and not dict(holders(run.model)):
            raise ValueError(
                f"Checkpoint: found no optimizer in the attributes of {type(run.model).__name__}, "
                "want state={'optimizer': ...}"
            )
        done = self.checkpoints.resume(run.model, self._state_of(run))
        if done is not None and done.step > run.epochs:
            got = f"{run.epochs} epochs, but {self.checkpoints.folder} is of epoch {done.step}"
            raise ValueError(f"Checkpoint: got {got}")

    def on_epoch_end(self, run: Run) -> None:
        """Saves, if it is time."""
        is_end = run.epoch == run.epochs or run.history.stopped is not None
        if is_end or run.epoch % self.every == 0:
            if self.checkpoints.best is not None:
                figure("Checkpoint: best", run, self.checkpoints.best[0])
            numbers, state = numbers_of(run.history[-1]), self._state_of(run)
            self.checkpoints.save(run.epoch, run.model, state, numbers, writes=run._saves)

    def _state_of(self, run: Run) -> dict[str, Any]:
        own = {"loader": run.loader, "validation": run.held_out, "history": run.history}
        own |= {f"callback {number}": one for number, one in enumerate(run.callbacks)}
        kept = {name: one for name, one in own.items() if hasattr(one, "load_state_dict")}
        return {**kept, "holders": dict(holders(run.model)), "state": self.state}


class TensorBoard(Callback):
    """Writes the figures of each epoch that are numbers for TensorBoard, whose package has to be
    installed."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        """`folder`: of the run, such as `runs/a`; made if it does not exist.

        Raises:
            ModuleNotFoundError: there is no package tensorboard.
        """
        self.folder = files.path_of("TensorBoard", folder)
        self._events = _tensorboard()
        self._writer: Any = None

    def on_begin(self, run: Run) -> None:
        """Opens a file of events, on one of several ranks that have the same figures."""
        if run._is_joint and dist.rank():
            return
        os.makedirs(self.folder, exist_ok=True)
        self._writer = self._events.writer(self.folder)

    def on_epoch_end(self, run: Run) -> None:
        """Writes the figures, whose step is the epoch."""
        if self._writer is not None:
            numbers = numbers_of(run.history[-1])
            self._writer.add_event(self._events.event(run.epoch, numbers))
            self._writer.flush()

    def on_close(self, run: Run) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _tensorboard() -> Any:
    try:
        from . import events
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"TensorBoard: {error}; install it by: pip install tensorboard"
        ) from error
    return events


def holders(model: Module) -> Iterator[tuple[str, Any]]:
    """What has states in the attributes of a model and the layers below it, by path: optimizers,
    averages of weights."""
    seen: set[int] = set()
    for one in below(model):
        for name, value in list(vars(one).items()):
            place = f"{one._layer_node.path}.{name}".lstrip(".")
            for path, inner in _inside(place, value):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    yield path, inner


def holders_of(model: Module, callbacks: list[Callback]) -> Iterator[Any]:
    """What has states in the attributes of a model, and in what callbacks were given."""
    given = [[getattr(one, name, None) for name in ("optimizer", "state")] for one in callbacks]
    for _, one in (*holders(model), *_inside("", given)):
        yield one


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple, dict)):
        for key, one in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield from _inside(f"{path}.{key}", one)
    elif hasattr(type(value), "set_states") and not hasattr(type(value), "_is_layer"):
        yield path, value
