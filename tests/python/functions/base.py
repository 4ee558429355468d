"""A case of a function that is made of operations: what it is called on, and a NumPy reference."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from singa_rs import autograd
from singa_rs.tensor import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Fn:
    """A function of tensors against one of arrays in float64."""

    name: str
    of_tensors: Callable
    of_arrays: Callable
    shapes: tuple[Shape, ...]
    low: float = -2.0
    high: float = 2.0
    smooth: bool = True  # whether it has a gradient
    step: float = 2e-3  # of the differences; small where it has kinks
    tolerance: float = 1e-6  # of gradients
    scale: float = 1.0  # how much looser than usual 16-bit floats are compared
    same_dtype: bool = True  # whether the result has the dtype of the inputs
    empty: tuple[Shape, ...] = ()  # shapes without elements that must work
    wide: bool = False  # whether it refuses 16-bit floats
    halves: bool = True  # whether results of rounded inputs are near those of others

    def samples(self) -> list[np.ndarray]:
        """Distinct values in random order, always the same for one case."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        made = []
        for shape in self.shapes:
            count = math.prod(shape)
            spread = np.linspace(self.low, self.high, count + 2)[1:-1] + 0.0113 * (count % 2)
            made.append(rng.permutation(spread).reshape(shape))
        return made

    def __str__(self) -> str:
        """The id of the case in pytest's reports."""
        return self.name


class Table(list[Fn]):
    """Cases, with a shorthand for making them."""

    def add(self, name: str, of_tensors, of_arrays, *shapes: Shape, **options) -> None:
        """Appends a case."""
        self.append(Fn(name, of_tensors, of_arrays, shapes, **options))


def slopes(function: Callable, *arrays) -> list[Tensor]:
    """The gradients of the sum of a function's results, at arrays in float64."""
    xs = [Tensor(data=np.asarray(a, np.float64), dtype="float64") for a in arrays]
    for x in xs:
        x.stores_grad = True
    found = autograd.gradients(function(*xs).sum())
    return [found[x] for x in xs]


def plain(array, dtype="int64") -> Tensor:
    """A tensor that takes no part in gradients."""
    made = Tensor(data=np.asarray(array), dtype=dtype)
    made.requires_grad = False
    return made
