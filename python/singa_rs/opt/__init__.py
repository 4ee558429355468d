"""Optimizers and schedules. Names and arguments as in SINGA's `opt`."""

from .. import elsewhere
from .adaptive import AdaGrad, Adam, AdamW, Lion, RMSProp
from .average import MovingAverage
from .base import Optimizer
from .clipping import clip_grad_norm, clip_grad_value
from .distributed import DistOpt, LocalSGD, density
from .schedule import Constant, DecayScheduler, ExponentialDecay
from .schedules import (
    CosineDecay,
    LinearDecay,
    OneCycle,
    OnPlateau,
    StepDecay,
    Warmup,
    warmup,
)
from .sgd import SGD
from .variants import LAMB, Adadelta, AMSGrad, Muon, NAdam

__all__ = [
    "NAdam",
    "Muon",
    "Adadelta",
    "AMSGrad",
    "LAMB",
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Constant",
    "CosineDecay",
    "DecayScheduler",
    "DistOpt",
    "ExponentialDecay",
    "LinearDecay",
    "Lion",
    "LocalSGD",
    "MovingAverage",
    "OnPlateau",
    "OneCycle",
    "Optimizer",
    "RMSProp",
    "StepDecay",
    "Warmup",
    "clip_grad_norm",
    "clip_grad_value",
    "density",
    "warmup",
]

elsewhere.closed(globals())
