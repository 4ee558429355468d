"""State: tensors that outlive the step that makes them, and attributes that later steps read."""

from __future__ import annotations

from collections.abc import Callable

from .. import _core
from .._core import GraphError
from ..autograd.mode import mode

#: Tells graph functions that an attribute of a layer, a module or an optimizer may have changed.
note_change = _core.note_change

#: Why a step that goes on after reading a value is not recorded.
CAUGHT_READ = "the step catches the error that a value is read while it is recorded"
#: Why no graph can give state the values that it has in eager execution.
LATE_STATE = "state is initialised at random after the step has used the same generator"


class making_state:  # used like a function
    """A context in which what a recording thread makes is state: parameters, moments, averages.

    The operations in it are not recorded, but kept and run once, when the state is first needed.
    In a thread that does not record, the context has no effect.
    """

    def __enter__(self) -> None:
        _core.enter_state()

    def __exit__(self, *_: object) -> None:
        _core.leave_state()


def once_run(call: Callable[[], None], what: str) -> None:
    """Calls a function once what the thread records has run, or at once if it does not record. Such
    a recording is run once, and not replayed.

    Raises:
        GraphError: the recording is made by hand, so that it may run at any time; it says what the
            function is for.
    """
    nodes = mode.nodes
    if nodes is None:
        call()
    elif nodes.later is None:
        raise GraphError(f"record: {what}, which a recording by hand cannot; run it before")
    else:
        nodes.later.append(call)
