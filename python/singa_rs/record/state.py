"""State: tensors that outlive the step that makes them, and attributes that later steps look at."""

from __future__ import annotations

from .. import _core

#: Tells graph functions that an attribute of a layer, a module or an optimizer may have changed.
note_change = _core.note_change

#: Why no graph gives state the numbers that it would have had.
LATE_STATE = "state is drawn at random after the step has drawn from the same generator"


class making_state:  # noqa: N801 - used like a function
    """Within it, what a recording thread makes is state: a parameter, a moment, a running average.

    Its operations are not recorded, but kept to be run once, when the state is first needed.
    Elsewhere it changes nothing.
    """

    def __enter__(self) -> None:
        _core.enter_state()

    def __exit__(self, *_: object) -> None:
        _core.leave_state()
