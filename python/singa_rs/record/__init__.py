# ruff: noqa: F401 - the names of other files are public here
"""Recording steps and replaying them: graph functions, plans, recording by hand.

Objects whose attributes a recorded step may read (layers, optimizers, schedules) yield them from
`_watched()`, return a function that restores them from `_remember()`, and call `note_change()`
when one of them is set or deleted.
"""

from .asking import begin_layer, begin_step, resume, updating
from .fast_path import MISS, FastPath
from .function import GraphFunction, name_written
from .lock import UserCodeLock
from .operations import Event, Operations, observed, operations, perform, place
from .options import Options, memory_budget
from .places import NOTHING, filled_slots, slots
from .plan import Plan, infer, plan
from .saving import save_step
from .session import Recorded
from .state import making_state, note_change, once_run
from .step import Step
from .taps import Tap, Taps
from .tracing import is_recording
from .trees import flatten

__all__ = [
    "Event",
    "GraphFunction",
    "Operations",
    "Options",
    "Plan",
    "Recorded",
    "Step",
    "Tap",
    "Taps",
    "flatten",
    "infer",
    "is_recording",
    "making_state",
    "memory_budget",
    "note_change",
    "observed",
    "operations",
    "plan",
    "save_step",
]


def __dir__() -> list[str]:
    return sorted(__all__)
