"""Tensors that optimizers hold: values of hyperparameters, of shape (1,), and the user's own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from .. import autograd, device
from ..autograd.mode import mode
from ..errors import ShapeError
from ..layer.tree import members
from ..record import making_state
from ..refusals import is_of_package
from ..shown import shown
from ..tensor import Tensor
from ..tensor.creation import moved
from .schedule import DecayScheduler


def value_at(argument: str, schedule: DecayScheduler, step: Tensor) -> Tensor:
    """A schedule's value at a step, which must fit a hyperparameter's tensor."""
    value = schedule(step)
    if not isinstance(value, Tensor):
        raise TypeError(f"{argument}: the schedule returned {shown(value)}, want a Tensor")
    if value.shape != (1,):
        raise ShapeError(f"{argument}: the schedule returned shape {value.shape}, want (1,)")
    return value


def on(held: Tensor, to: device.Device) -> Tensor:
    """What an optimizer holds, on a device."""
    with making_state():
        made = moved(held, to)
    made.requires_grad = False
    made.set_account("states")
    return made


def scalar(dtype: Any, to: device.Device | None = None) -> Tensor:
    """A tensor for a value, zero at first."""
    with making_state():
        made = Tensor((1,), to, dtype, requires_grad=False)
    made.set_account("states")
    return made


def keep_written(made: Tensor, before: Tensor, given: float) -> None:
    """Gives a more precise tensor of a constant what the program has written into the one before,
    if it has written anything but the constant.

    In a graph function's recording, which runs once, by operations: the step may have written it.
    """
    if mode.nodes is not None and mode.nodes.later is not None:
        with autograd.no_grad():
            is_given = before == Tensor(data=np.float32(given), device=before.device)
            made.copy_from(autograd.where(is_given, made, before.as_type(made.dtype)))
        return
    with making_state():
        if (now := before.item()) != np.float32(given):
            made.set_value(now)


def is_own(optimizer: Any) -> bool:
    """Whether the updates of an optimizer are the user's own."""
    kind = type(optimizer)
    return not (is_of_package(kind.apply) and is_of_package(kind.step))


def held(owners: Iterable[Any]) -> dict[Hashable, Tensor]:
    """The tensors in the attributes of an optimizer and its groups, by their paths: what updates of
    the user's own may write, besides moments."""
    found = (
        members(f"{number}.{name}", value)
        for number, owner in enumerate(owners)
        for name, value in owner.__dict__.items()
    )
    return {path: one for of in found for path, one in of if isinstance(one, Tensor)}
