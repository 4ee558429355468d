"""The rows of the table, a file a family: importing them enters them."""

from . import (
    arranging,
    control,
    convolution,
    elementwise,
    losses,
    normalisation,
    pooling,
    positions,
    products,
    recurrent,
    resampling,
    sequences,
    shapes,
)

__all__ = [
    "arranging",
    "control",
    "convolution",
    "elementwise",
    "losses",
    "normalisation",
    "pooling",
    "positions",
    "products",
    "recurrent",
    "resampling",
    "sequences",
    "shapes",
]
