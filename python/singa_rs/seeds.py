"""One seed for everything that draws random numbers."""

from __future__ import annotations

import random

import numpy as np

from .device import _begin_all
from .errors import GraphError
from .refusals import count

_MOST = 2**32 - 1


def set_seed(seed: int) -> None:
    """Restarts the generators of Python's `random`, of NumPy's global functions, of all
    devices (initial values, dropout), those made later included, of `data.rng()`, and is the seed
    of loaders that are given none.

    Loaders and generators that there are already keep theirs. Processes that work together call
    `dist.set_seed`, whose device draws other numbers on each rank, after it.

    Args:
        seed: from 0 to 2**32 - 1, as NumPy's global generator takes it.

    Raises:
        TypeError: not an int.
        ValueError: out of range.
        GraphError: a step is being recorded.
    """
    from . import record
    from .data import draws

    seed = count(seed, "set_seed: seed", 0, _MOST)
    if record.is_recording():
        raise GraphError("set_seed: a step is being recorded")
    _begin_all(lambda device: device.set_seed(seed))
    random.seed(seed)
    np.random.seed(seed)
    draws.set_default(seed)
    draws.set_seed(seed)
