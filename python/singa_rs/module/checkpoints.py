"""The checkpoints of a training run: the last ones, and the best."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import files
from ..errors import CheckpointError
from ..layer.check import count, mapping, one_of
from ..shown import shown
from .checkpoint import pair, whole
from .history import as_figure
from .saving import Saved

if TYPE_CHECKING:
    from . import Module

MODES = ("min", "max")
#: What a checkpoint of a run holds beside the program's own states.
_STEP, _METRICS, _STATE = "step", "metrics", "state"


_NAME = re.compile(r"step-(\d{8,18})\.")


class Resumed(NamedTuple):
    """Where a run goes on: the steps that have been made, the metrics after them, and what the
    program saved as `state`."""

    step: int
    metrics: dict[str, float]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of a training run, in a folder of their own.

    Each is that of a step, or an epoch: `step-00000500.onnx` and `.state.safetensors`, as
    `Module.save` writes them. Of all, the last `keep` stay, and the one with the best metric.

        kept = module.Checkpoints("runs/a", every=500, keep=3, best=("loss", "min"))
        state = {"sgd": model.optimizer, "loader": loader}
        done = kept.resume(model, state)
        for step in range(done.step if done else 0, steps):
            ...
            kept.after(step + 1, model, state, {"loss": loss})

    Args:
        folder: made if it does not exist. Other files in it are left alone.
        every: after how many steps `after` saves.
        keep: how many of the last checkpoints stay.
        best: the name of a metric, and whether it should be small, "min", or large, "max".

    Raises:
        TypeError, ValueError: an argument of another kind, or out of its range.
        OSError: the folder cannot be made.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        every: int = 1,
        keep: int = 3,
        best: tuple[str, str] | None = None,
    ) -> None:
        self.folder = files.path_of("Checkpoints", folder)
        self.every, self.keep = count(every, "Checkpoints: every"), count(keep, "Checkpoints: keep")
        if best is not None:
            if not isinstance(best, (tuple, list)) or [type(one) for one in best] != [str, str]:
                raise TypeError(f"Checkpoints: got best {best!r:.80}, want a name and a mode")
            one_of(best[1], "Checkpoints: best", MODES)
        self.best = best
        os.makedirs(self.folder, exist_ok=True)

    def after(
        self,
        step: int,
        model: Module,
        state: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        *,
        writes: bool = True,
    ) -> bool:
        """`save`, if the steps made are a multiple of `every`; returns whether they are."""
        _check_model("Checkpoints.after", model)
        is_due = _step("Checkpoints.after", step) % self.every == 0
        if is_due:
            self.save(step, model, state, metrics, writes=writes)
        return is_due

    def save(
        self,
        step: int,
        model: Module,
        state: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        *,
        writes: bool = True,
    ) -> None:
        """Writes a checkpoint after so many steps, and removes those that are not to stay.

        Args:
            step: how many steps have been made, from 0; one that there is already is replaced.
            model: what is saved.
            state: as for `Module.save`.
            metrics: numbers by name, among them that of `best`. NaN is never the best.
            writes: as for `Module.save`.

        Raises:
            CheckpointError, TypeError, ValueError, OSError: as `Module.save`.
        """
        op = "Checkpoints.save"
        _check_model(op, model)
        given = {} if metrics is None else mapping(metrics, f"{op}: metrics")
        numbers = {name: _number(f"{op}: {name}", one) for name, one in given.items()}
        if self.best is not None and self.best[0] not in numbers:
            raise ValueError(
                f"{op}: got metrics {sorted(numbers)}, want {self.best[0]!r} among them"
            )
        held = {} if state is None else mapping(state, f"{op}: state")
        path = self._path(_step(op, step))
        model.save(path, {_STEP: step, _METRICS: numbers, _STATE: held}, writes=writes)
        if writes:
            self._prune()

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in their order."""
        return self._found(pair.STATE)

    def best_step(self) -> int | None:
        """The step whose checkpoint has the best metric, the last of equal ones; None if none has
        one, or `best` was not given."""
        found = [
            (value, step) for step in self.steps() if not math.isnan(value := self._rank(step))
        ]
        return max(found)[1] if found else None

    def resume(
        self,
        model: Module,
        state: Mapping[str, Any] | None = None,
        step: int | None = None,
        **options: bool,
    ) -> Resumed | None:
        """Loads the newest checkpoint that is whole into a model and the objects in `state`, or
        that of a `step`; None if there is none. One that is not whole is passed over, with a
        warning.

        Args:
            model: what is written.
            state: as for `Module.load`.
            step: which one, such as `best_step()`.
            options: `strict` and `skip_mismatched` of `Module.load`.

        Raises:
            CheckpointError: there are checkpoints, but none can be loaded.
        """
        _check_model("Checkpoints.resume", model)
        held = {} if state is None else mapping(state, "Checkpoints.resume: state")
        steps = self.steps() if step is None else [_step("Checkpoints.resume", step)]
        first = None
        for one in reversed(steps):
            try:
                found = model.load(self._path(one), state={_STATE: held}, **options)
            except CheckpointError as error:
                first = first or error
                warnings.warn(f"Checkpoints.resume: passed over: {error}", stacklevel=2)
                continue
            return Resumed(found[_STEP], found[_METRICS], found[_STATE])
        if first is not None:
            raise first
        return None

    def _path(self, step: int) -> str:
        return os.path.join(self.folder, _name(step))

    def _found(self, suffix: str) -> list[int]:
        """The steps of which there is a file with this end."""
        found = {name: _NAME.match(name) for name in os.listdir(self.folder)}
        steps = {name: int(one[1]) for name, one in found.items() if one is not None}
        return sorted(step for name, step in steps.items() if name == _name(step) + suffix)

    def _rank(self, step: int) -> float:
        """A checkpoint's metric, the higher the better; NaN if it has none."""
        if self.best is None:
            return math.nan
        name, mode = self.best
        try:
            value = float(whole.part("Checkpoints", self._path(step), _METRICS)[name])
        except (CheckpointError, KeyError, TypeError, ValueError):
            return math.nan
        return value if mode == "max" else -value

    def _prune(self) -> None:
        steps = self.steps()
        staying = {*steps[-self.keep :], self.best_step()}
        for step in {*steps, *self._found(pair.MODEL)} - staying:
            pair.remove(self._path(step))


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _step(op: str, value: Any) -> int:
    return count(value, f"{op}: step", 0)


def _check_model(op: str, model: Any) -> None:
    if not isinstance(model, Saved):
        raise TypeError(f"{op}: model: got {shown(model)}, want a Module")


def _number(argument: str, value: Any) -> float:
    found = as_figure(value)
    if found is None:
        raise TypeError(f"{argument}: got {value!r:.80}, want a number")
    return found
