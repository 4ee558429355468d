"""The training steps to compare, independent of any library: shapes, weights and batches as NumPy
arrays, so that every contender starts from the same numbers.

Parameters are listed in the order in which the layers run, with a block's shortcut last: a layer's
weights (dense (in, out), convolutions (out, in, k, k)), then its bias; for batch normalisation the
scale, then the bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

#: Depth -> blocks per stage, and whether they are bottlenecks (He et al., 2015).
DEPTHS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True)}


class Case(NamedTuple):
    """One model with its batch."""

    title: str
    shape: tuple[int, ...]
    classes: int
    lr: float
    momentum: float
    #: The largest ratio aimed at between a step's time and the best peer's.
    target: float
    #: The widths of a perceptron.
    widths: tuple[int, ...] = ()
    #: The number of layers of a residual network.
    depth: int = 0

    @property
    def is_convolutional(self) -> bool:
        return len(self.shape) == 4


def exact(number: float) -> float:
    """The nearest float32, so that all contenders use the same value in every dtype."""
    return float(np.float32(number))


CASES = {
    "mlp": Case(
        "MLP 784-256-256-10, batch 64",
        (64, 784),
        10,
        exact(0.05),
        0.0,
        0.75,
        widths=(784, 256, 256, 10),
    ),
    "tiny": Case(
        "tiny MLP 4-32-16-4, batch 32", (32, 4), 4, exact(0.05), 0.0, 0.75, widths=(4, 32, 16, 4)
    ),
    "lenet": Case("LeNet, batch 64", (64, 1, 28, 28), 10, exact(0.002), exact(0.9), 0.75),
    "resnet18": Case(
        "ResNet-18, 224x224, batch 16",
        (16, 3, 224, 224),
        1000,
        exact(0.001),
        exact(0.9),
        0.88,
        depth=18,
    ),
    "resnet50": Case(
        "ResNet-50, 224x224, batch 8",
        (8, 3, 224, 224),
        1000,
        exact(0.001),
        exact(0.9),
        0.88,
        depth=50,
    ),
}


class Unit(NamedTuple):
    """A convolution without bias, followed by batch normalisation."""

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1


class Block(NamedTuple):
    """Units in sequence, next to a shortcut, which may be the identity."""

    units: list[Unit]
    shortcut: Unit | None


def blocks(depth: int) -> Iterator[Block]:
    """The blocks of a residual network between its first and its last pooling."""
    counts, is_bottleneck = DEPTHS[depth]
    inputs = 64
    for stage, count in enumerate(counts):
        for i in range(count):
            width, stride = 64 << stage, 2 if stage and not i else 1
            outputs = width * 4 if is_bottleneck else width
            if is_bottleneck:
                units = [Unit(inputs, width, 1), Unit(width, width, 3, stride)]
                units.append(Unit(width, outputs, 1))
            else:
                units = [Unit(inputs, width, 3, stride), Unit(width, outputs, 3)]
            projects = stride != 1 or inputs != outputs
            yield Block(units, Unit(inputs, outputs, 1, stride) if projects else None)
            inputs = outputs


#: The initial value of the last scale in a residual block. From 1, ResNet-50's activations grow
#: from block to block, and rounding errors with them: PyTorch's own two layouts then differ by a
#: percent after five steps. From 0.2 they differ by 1e-6.
LAST_SCALE = 0.2


def _starts(case: Case) -> Iterator[tuple[tuple[int, ...], int, float]]:
    """For each parameter: its shape, and its fan-in, or 0 and its initial constant."""

    def dense(inputs: int, outputs: int):
        yield (inputs, outputs), inputs, 0
        yield (outputs,), 0, 0

    def conv(inputs: int, outputs: int, kernel: int):
        yield (outputs, inputs, kernel, kernel), inputs * kernel**2, 0

    def unit(one: Unit, scale: float = 1):
        yield from conv(one.inputs, one.outputs, one.kernel)
        yield (one.outputs,), 0, scale
        yield (one.outputs,), 0, 0

    if case.depth:
        yield from unit(Unit(3, 64, 7, 2))
        for *first, last, shortcut in (
            (*block.units, block.shortcut) for block in blocks(case.depth)
        ):
            for one in first:
                yield from unit(one)
            yield from unit(last, LAST_SCALE)
            yield from unit(shortcut) if shortcut else ()
        yield from dense(2048 if case.depth == 50 else 512, case.classes)
    elif case.widths:
        for inputs, outputs in pairwise(case.widths):
            yield from dense(inputs, outputs)
    else:
        for inputs, outputs in ((1, 20), (20, 50)):
            yield from conv(inputs, outputs, 5)
            yield (outputs,), 0, 0
        yield from dense(800, 500)
        yield from dense(500, case.classes)


def weights(case: Case, dtype: str = "float32") -> list[np.ndarray]:
    """The initial parameters (He et al., 2015, normal)."""
    rng = np.random.default_rng(1)

    def make(shape: tuple[int, ...], inputs: int, start: float) -> np.ndarray:
        if inputs:
            return rng.normal(scale=(2 / inputs) ** 0.5, size=shape)
        return np.full(shape, start)

    return [make(*one).astype(dtype) for one in _starts(case)]


def batches(case: Case, dtype: str = "float32") -> list[tuple[np.ndarray, np.ndarray]]:
    """Two batches of inputs and labels (int32), used in turn."""
    rng = np.random.default_rng(0)
    return [
        (
            rng.normal(size=case.shape).astype(dtype),
            rng.integers(0, case.classes, case.shape[:1]).astype(np.int32),
        )
        for _ in range(2)
    ]
