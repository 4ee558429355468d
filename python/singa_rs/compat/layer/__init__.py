# ruff: noqa: F401 - the names of other files are public here
"""The layers of SINGA 1.x, for `compat.net.FeedForwardNet`. Every constructor begins with a name,
and ends with `input_sample_shape`, the shape of an input without the batch, which the first layer
of a net needs."""

from .base import Layer
from .dense import Activation, Dense, Dropout, Flatten, L2Norm, Softmax
from .joints import Concat, Dummy, Merge, Slice, Split
from .norm import LRN, BatchNormalization
from .recurrent import GRU, LSTM, RNN
from .series import AvgPooling1D, Conv1D, MaxPooling1D
from .specs import ParamSpec
from .windows import AvgPooling2D, Conv2D, MaxPooling2D, Pooling2D

__all__ = [
    "Activation",
    "AvgPooling1D",
    "AvgPooling2D",
    "BatchNormalization",
    "Concat",
    "Conv1D",
    "Conv2D",
    "Dense",
    "Dropout",
    "Dummy",
    "Flatten",
    "GRU",
    "L2Norm",
    "LRN",
    "LSTM",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "Merge",
    "ParamSpec",
    "Pooling2D",
    "RNN",
    "Slice",
    "Softmax",
    "Split",
]


def __dir__() -> list[str]:
    return sorted(__all__)


#: SINGA's prefix of the implementation. Programs assign it; it has no effect.
engine = "singacpp"
