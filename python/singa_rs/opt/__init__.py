"""Optimizers and schedules. Names and arguments as in SINGA's `opt`."""

from .adaptive import AdaGrad, Adam, AdamW, Lion, RMSProp
from .base import Optimizer
from .schedule import Constant, DecayScheduler, ExponentialDecay
from .sgd import SGD

__all__ = [
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Constant",
    "DecayScheduler",
    "ExponentialDecay",
    "Lion",
    "Optimizer",
    "RMSProp",
]
