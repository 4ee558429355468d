"""The rows of the table, a file a family: importing them enters them."""

from . import (
    arithmetic,
    casting,
    control,
    elementwise,
    ml,
    preview,
    products,
    quantization,
    random,
    reductions,
    shapes,
    strings,
)

__all__ = [
    "arithmetic",
    "casting",
    "control",
    "elementwise",
    "ml",
    "preview",
    "products",
    "quantization",
    "random",
    "reductions",
    "shapes",
    "strings",
]
