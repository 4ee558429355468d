"""Constants of SINGA's `model.proto`: phases of a net, and kinds of pooling."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ...layer.check import flag

#: The phases, which `forward` takes as its flag.
kTrain = 4
kEval = 8


class PoolingConf(IntEnum):
    """What a pooling layer takes of each window."""

    MAX = 0
    AVE = 1


def is_training(phase: Any, argument: str) -> bool:
    """Whether a flag means training: a bool, or `kTrain` rather than `kEval`.

    Raises:
        ValueError: another number.
        TypeError: neither.
    """
    if type(phase) is int and phase in (kTrain, kEval):
        return phase == kTrain
    if type(phase) is int and phase not in (0, 1):
        raise ValueError(
            f"{argument}: got {phase}, want a bool, kTrain ({kTrain}) or kEval ({kEval})"
        )
    return flag(phase, argument)
