"""Which gradients are smaller as products of two matrices of few columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def sides(shape: Sequence[int]) -> tuple[int, int]:
    """The rows and columns of a gradient of this shape as a matrix."""
    rows = shape[0] if len(shape) > 1 else 1
    return rows, prod(shape) // max(rows, 1)


def saves(shape: Sequence[int], rank: int) -> bool:
    """Whether two factors of `rank` columns have fewer elements than a gradient of this shape."""
    rows, columns = sides(shape)
    return rank * (rows + columns) < rows * columns
