"""The table of functions that are made of operations, and of what they refuse."""

from . import (
    activations,
    angles,
    axes,
    elementwise,
    grids,
    linalg,
    nans,
    parts,
    pieces,
    products,
    putting,
    resizing,
    scattering,
    searching,
    statistics,
)
from .base import Fn

TABLES = (
    activations,
    angles,
    axes,
    nans,
    parts,
    pieces,
    products,
    putting,
    elementwise,
    resizing,
    grids,
    linalg,
    scattering,
    searching,
    statistics,
)
FUNCTIONS: list[Fn] = [fn for one in TABLES for fn in one.table]
#: By the text of the error: its type and the call.
REFUSED = {text: call for one in TABLES for text, call in one.REFUSED.items()}
#: By name: what is compared exactly, and the same by NumPy.
EXACT = {name: pair for one in TABLES for name, pair in getattr(one, "EXACT", {}).items()}
