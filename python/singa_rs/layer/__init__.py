"""Layers. Names and arguments as in SINGA's `layer`."""

from .activation import (
    ELU,
    GELU,
    SELU,
    BinaryCrossEntropy,
    CrossEntropy,
    HardSigmoid,
    LeakyReLU,
    MeanSquareError,
    RankingLoss,
    ReLU,
    Sigmoid,
    SiLU,
    SoftMax,
    SoftMaxCrossEntropy,
    SoftPlus,
    SoftSign,
    Tanh,
)
from .base import Layer
from .conv import Conv2d, SeparableConv2d
from .linear import Embedding, Gemm, Linear
from .norm import BatchNorm2d
from .pooling import AvgPool1d, AvgPool2d, GlobalAvgPool2d, MaxPool1d, MaxPool2d, Pooling2d
from .shape import Add, Cat, Dropout, Flatten, Reshape, Sequential

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "Add",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm2d",
    "BinaryCrossEntropy",
    "Cat",
    "Conv2d",
    "CrossEntropy",
    "Dropout",
    "Embedding",
    "Flatten",
    "Gemm",
    "GlobalAvgPool2d",
    "HardSigmoid",
    "Layer",
    "LeakyReLU",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "MeanSquareError",
    "Pooling2d",
    "RankingLoss",
    "ReLU",
    "Reshape",
    "SELU",
    "SeparableConv2d",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SoftMax",
    "SoftMaxCrossEntropy",
    "SoftPlus",
    "SoftSign",
    "Tanh",
]
