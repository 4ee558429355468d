"""Moving averages of weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import autograd
from ..layer.check import mapping, tensors
from ..record import is_recording, note_change
from ..tensor import Tensor
from .hyperparameters import FRACTION, SUMS, Scheduled, holders
from .moments import Moments
from .schedule import DecayScheduler


class _Averages(Moments):
    """Averages, which have no value before their first update."""

    #: How often one was forgotten.
    forgotten = 0

    def _begin(self, made: Tensor, kind: str) -> None:
        """Forgets an average."""
        for slot in self._slots.values():
            if slot.tensors.get(kind) is made:
                del slot.tensors[kind]
        self.forgotten += 1
        note_change()

    def _start(self, made: Tensor, param: Tensor) -> None:
        made.copy_from(param.as_type(made.dtype))


class MovingAverage(Scheduled):
    """Exponential moving averages of parameters: `average = decay * average + (1 - decay) * p`,
    from the first values on (Polyak and Juditsky, 1992; PyTorch get_ema_avg_fn).

    `update` after the optimizer's call is part of a recorded step. `decay` is a hyperparameter as
    those of optimizers are: it may be assigned at any time, and may be a schedule.
    """

    hyperparameters = holders(decay=FRACTION)
    moment_kinds = ("average",)

    def __init__(self, decay: float | DecayScheduler = 0.999) -> None:
        """`decay`: a number from 0 to below 1, or a schedule.

        Raises:
            TypeError, ValueError: anything else.
        """
        super().__init__()
        self._moments: _Averages = _Averages(*self.moment_kinds, SUMS)
        self.decay = decay

    def _watched(self) -> Iterator[tuple[str, Any]]:
        """What a recorded step may read: recordings write into averages that were not forgotten."""
        yield from super()._watched()
        yield "forgotten", self._moments.forgotten

    @property
    def averages(self) -> dict[str, Tensor]:
        """The averages by parameter name."""
        return self._moments.named("average")

    def update(self, params: Mapping[str, Tensor]) -> None:
        """Takes parameters by name, as from `get_params`, into their averages; counts a step.

        Averages are float32, or float64 for parameters of float64.

        Raises:
            TypeError: anything but a mapping of names to tensors.
            ValueError: a parameter that was not among those of the first update.
        """
        named = mapping(params, "MovingAverage.update")
        tensors(list(named.values()), "MovingAverage.update")
        known = self.averages
        late = [name for name in named if known and name not in known]
        if late:
            raise ValueError(f"MovingAverage.update: {late[0]!r} was not there in the first update")
        for param in named.values():
            self._fit(param)
        with autograd.no_grad():
            started = self.step_counter.reshape(()) > 0
            kept = self.decay_value.reshape(()) * started
            for name, param in named.items():
                average = self._moments.of(param, name, "average")
                decay = kept.as_type(average.dtype)
                moved = average * decay + param.as_type(average.dtype) * (1 - decay)
                average.copy_from(moved)
        self.step()

    def copy_to(self, params: Mapping[str, Tensor]) -> None:
        """Writes the averages into parameters by name.

        Raises:
            TypeError: anything but a mapping of names to tensors.
            ValueError: a parameter that has no average yet.
        """
        for param, average in self._pairs("MovingAverage.copy_to", params):
            param.copy_from(average.as_type(param.dtype))

    @contextmanager
    def applied(self, params: Mapping[str, Tensor]) -> Iterator[None]:
        """A context in which parameters have the values of their averages, for evaluation; raises
        as `copy_to`."""
        pairs = self._pairs("MovingAverage.applied", params)
        before = [param.clone().detach() for param, _ in pairs]
        try:
            self.copy_to(params)
            yield
        finally:
            for (param, _), value in zip(pairs, before, strict=True):
                param.copy_from(value)

    def _look_in(self, model: Any) -> None:
        """As that of optimizers."""
        self._moments.look_in(model)

    def _pairs(self, name: str, params: Any) -> list[tuple[Tensor, Tensor]]:
        named = mapping(params, name)
        tensors(list(named.values()), name)
        restore = self._moments.remember()
        try:
            found = {key: self._moments.made(one, ("average",), key) for key, one in named.items()}
        finally:
            if not is_recording():
                restore()  # as it is `update` that tells whose parameters loaded averages are of
        missing = [key for key, made in found.items() if not made]
        if missing:
            raise ValueError(f"{name}: {missing[0]!r} has no average yet; call update first")
        return [(named[key], average) for key, (average,) in found.items()]
