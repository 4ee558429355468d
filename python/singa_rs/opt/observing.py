"""Metrics, as schedules see them that follow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .hyperparameters import Scheduled


def observe(optimizers: Iterable[Scheduled], metric: Any) -> None:
    """Shows a number to the schedules that follow one, to each once, of whichever of the optimizers
    and groups it is. All of these have the values that it chooses then.

    Raises:
        TypeError, ValueError: anything but a finite number.
    """
    found = [
        (f"{type(one).__name__}: {name}", one, schedule, holder)
        for one in optimizers
        for name, schedule, holder in one._schedules()
        if schedule.state is not None
    ]
    # Different schedules have the state of the one that they hold.
    for schedule in {id(schedule.state): schedule for _, _, schedule, _ in found}.values():
        schedule._observe(metric)
    for argument, one, schedule, holder in found:
        one._evaluate(argument, schedule, holder)
