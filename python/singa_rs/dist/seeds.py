"""Random numbers of processes that work together."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..device import Device, _begin_all
from .group import rank

#: How far apart the places are at which ranks begin in the sequence of the generator.
_APART = 2**40


class _State:
    """By how many ranks `set_seed` has put this process apart from rank 0."""

    apart = 0


def set_seed(seed: int) -> None:
    """Restarts the generators of all devices, those made later included: initial values are the
    same on all ranks, the numbers that steps draw, such as those of dropout, differ from rank to
    rank.

    Raises:
        TypeError, ValueError: as `Device.set_seed`.
        GraphError: a step is being recorded.
    """
    if _core.recording():
        raise _core.GraphError("set_seed: a step is being recorded")
    ahead = rank()

    def begin(device: Device) -> None:
        device.set_seed(seed)
        state = device.get_rng_state()
        state[0, 1] += ahead * _APART
        device.set_rng_state(state)

    _begin_all(begin)
    _State.apart = ahead


def shared_rng_state(state: np.ndarray) -> np.ndarray:
    """What `Device.get_rng_state` told, as rank 0 has it: for files, which any number of ranks may
    read. As it is where `set_seed` was not called."""
    return _moved(state, -_State.apart)


def own_rng_state(state: np.ndarray) -> np.ndarray:
    """This rank's, of what `shared_rng_state` has made."""
    return _moved(state, _State.apart)


def _moved(state: np.ndarray, ranks: int) -> np.ndarray:
    """A state with the generator of steps so many ranks further."""
    made = np.array(state)
    if ranks and made.shape == (2, 2):  # anything else is refused where it is set
        made[0, 1] = (int(made[0, 1]) + ranks * _APART) % 2**64
    return made
