"""Control flow: bodies that are run by a condition, or once for each round of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..body import Body
from ..running import Frame
from ..table import reads


@reads("If", host="cond")
def if_(cond: Any, *, then_branch: Body, else_branch: Body, frame: Frame) -> tuple[Any, ...]:
    """One of two bodies."""
    return tuple(frame.call(then_branch if bool(np.ravel(cond)[0]) else else_branch))
