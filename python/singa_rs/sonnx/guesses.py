"""Guesses: small values that nodes read back, taken to be what they were in an earlier run.

A node that reads a value cuts a graph in two. Where the value is nearly always the same, as
conditions and sizes are, the graph is recorded as a whole for that value, and the comparison with
what the value is becomes one more output: where it fails, nothing of that run is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import autograd
from ..errors import GraphError
from ..tensor import Tensor
from .body import Body, bodies_of
from .values import to_array, to_tensor

#: The most elements of a value that is guessed, and the most values of a part.
MOST_ELEMENTS, MOST_VALUES = 16, 64


class Guess(NamedTuple):
    """A value that a node has read."""

    #: The node's position in its body.
    at: int
    dtype: np.dtype
    shape: tuple[int, ...]
    bytes: bytes

    def array(self) -> np.ndarray:
        """The value, which may be written: what may not passes for a constant of the model."""
        return np.frombuffer(self.bytes, self.dtype).reshape(self.shape).copy()


class Guesses:
    """What the nodes of a part read: noted, or, where a recording cannot read it, as noted."""

    def __init__(self, noted: Sequence[Guess] | None = None) -> None:
        self._noted = noted
        #: The values that were read.
        self.found: list[Guess] = []
        #: Whether the elements of the values are as they were noted.
        self._same: list[Tensor] = []

    @property
    def is_noting(self) -> bool:
        """Whether values are read, and noted."""
        return self._noted is None

    def value(self, x: Tensor, at: int) -> np.ndarray:
        """The value of a tensor that the node at a position of the body reads.

        Raises:
            GraphError: a recording reads other values than were noted.
        """
        if self._noted is None:
            read = np.asarray(to_array(x))
            self.found.append(Guess(at, read.dtype, read.shape, read.tobytes()))
            return read
        count = len(self._same)
        guess = self._noted[count] if count < len(self._noted) else None
        if guess is None or guess.shape != x.shape:
            raise GraphError("sonnx: a recording reads another value than the run before it")
        value = guess.array()
        same = autograd.equal(x, to_tensor(value, x.device))
        self._same.append(same.reshape((same.numel,)))
        return value

    def same(self) -> Tensor:
        """Whether the elements of all values, one after the other, are as they were noted."""
        return autograd.cat(self._same, 0)


def wrong(noted: Sequence[Guess], same: np.ndarray) -> set[int]:
    """The positions of the nodes that read something else than was noted."""
    positions = [one.at for one in noted for _ in range(math.prod(one.shape))]
    return {at for at, is_same in zip(positions, same.tolist(), strict=True) if not is_same}


def is_repeatable(whole: Body) -> bool:
    """Whether running nodes once more, whose results were not used, changes nothing."""
    for node in whole.nodes:
        if node.row is None and node.function is None:
            return False  # ONNX's own definition may draw random numbers
        if node.row is not None and node.row.varies and node.row.name != "BatchNormalization":
            return False
        inner = (*bodies_of(node), *([] if node.function is None else [node.function]))
        if not all(map(is_repeatable, inner)):
            return False
    return True
