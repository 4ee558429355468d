"""State: tensors that outlive the step that makes them, and attributes that later steps read."""

from __future__ import annotations

from .. import _core

#: Tells graph functions that an attribute of a layer, a module or an optimizer may have changed.
note_change = _core.note_change

#: Why no graph can give state the values that it has in eager execution.
LATE_STATE = "state is initialised at random after the step has used the same generator"


class making_state:  # noqa: N801 - used like a function
    """A context in which what a recording thread makes is state: parameters, moments, averages.

    The operations in it are not recorded, but kept and run once, when the state is first needed.
    In a thread that does not record, the context has no effect.
    """

    def __enter__(self) -> None:
        _core.enter_state()

    def __exit__(self, *_: object) -> None:
        _core.leave_state()
