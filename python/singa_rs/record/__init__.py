"""Recording steps and replaying them: graph functions, plans, recording by hand.

Objects whose attributes a recorded step may read (layers, optimizers, schedules) yield them from
`_watched()`, return a function that restores them from `_remember()`, and call `note_change()`
when one of them is set.
"""

from .function import GraphFunction, name_written
from .options import Options, memory_budget
from .patience import PatientLock
from .places import NOTHING, slots
from .plan import Plan, infer, plan
from .session import Recorded
from .shortcut import MISS, Shortcut
from .state import making_state, note_change
from .taking import is_recording
from .taps import Tap, Taps

__all__ = [
    "MISS",
    "NOTHING",
    "GraphFunction",
    "Options",
    "PatientLock",
    "Plan",
    "Recorded",
    "Shortcut",
    "Tap",
    "Taps",
    "infer",
    "is_recording",
    "memory_budget",
    "making_state",
    "name_written",
    "note_change",
    "plan",
    "slots",
]
