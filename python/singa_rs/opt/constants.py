"""Optimizers follow an `init_value` that is assigned to a constant which they have as a
hyperparameter: they are found by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .noted import Noted, NotesDeletion
from .schedule import OWNERS, Constant


def own(owner: Any, name: str, schedule: Any) -> None:
    """Notes that an optimizer, or a group, has a schedule as this hyperparameter, if that is a
    constant."""
    if type(schedule) is Constant:
        OWNERS.setdefault(schedule, Noted()).add(owner, name)


class Follows(NotesDeletion):
    """What follows its constants; a deep copy, or a pickle, has constants of its own."""

    hyperparameters: ClassVar[dict[str, tuple[str, dict[str, float]]]]

    def __setstate__(self, state: Any) -> None:
        """Restores a copied or pickled optimizer."""
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():  # of its dictionary, and of slots
                object.__setattr__(self, name, value)
                if name in self.hyperparameters:
                    own(self, name, value)


def restoring(owner: Any, restore: Callable[[bool], None]) -> Callable[[bool], None]:
    """A function that restores what `restore` does, and the values of the owner's constants."""
    values = [(one, one.init_value) for one in vars(owner).values() if type(one) is Constant]

    def restore_all(keep_state: bool) -> None:
        restore(keep_state)
        for one, value in values:
            object.__setattr__(one, "init_value", value)

    return restore_all
