"""What models of many kinds are made of.

A model is a function of a library's dialect (`dialect_ours`, `dialect_torch`) and of `add`, which
registers a layer and returns it; what it returns computes the loss of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

#: A dialect, a function that registers layers, a function of a tensor, and the loss of a batch.
Library, Add, Function, Loss = Any, Callable[[Any], Any], Callable[[Any], Any], Callable[..., Any]


class Case(NamedTuple):
    """A model, its batch, and its optimizer: the name of a function of a dialect."""

    model: Callable[[Library, Add], Loss]
    batch: Callable[[], tuple[np.ndarray, ...]]
    optimizer: str = "adam"


def noise(*shape: int) -> np.ndarray:
    """Normally distributed float32."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def whole(count: int, *shape: int) -> np.ndarray:
    """Classes, symbols or rows below `count`."""
    return np.random.default_rng(1).integers(0, count, shape)


def classified(lib: Library, forward: Callable[..., Any]) -> Loss:
    """The cross entropy of what `forward` says of all arrays but the last, the classes."""
    return lambda *arrays: lib.cross_entropy(forward(*arrays[:-1]), arrays[-1])


def run(functions: Sequence[Function], x: Any) -> Any:
    """One function after the other."""
    for function in functions:
        x = function(x)
    return x


def mlp(lib: Library, sizes: Sequence[int], between: Callable[[], Any]) -> Any:
    """Linear layers of these sizes, with an activation between two."""
    layers = [lib.linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    return lib.chain(*[part for one in layers[:-1] for part in (one, between())], layers[-1])
