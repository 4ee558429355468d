"""Random numbers that depend on a seed and a position alone: the order of an epoch's samples, and
the generators that transforms draw from. Philox (Salmon et al. 2011) counts, so no state is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import refusals

_ORDER, _BATCH, _SPLIT, _SAMPLES = range(4)


class _Here(threading.local):
    """The generator of the batch that this thread makes."""

    generator: np.random.Generator | None = None


_here = _Here()
_elsewhere = np.random.Generator(np.random.Philox(key=0))
#: The seed of loaders that are given none.
_default = 0


def _bits(seed: int, epoch: int, purpose: int, number: int = 0) -> np.random.Philox:
    """The bit generator of one purpose; each has 2**128 numbers of its own."""
    return np.random.Philox(
        key=np.array([seed, epoch], np.uint64), counter=np.array([0, 0, number, purpose], np.uint64)
    )


def _shuffled(bits: np.random.Philox, count: int) -> np.ndarray:
    """The numbers below `count` in random order. NumPy guarantees raw bits, and only those, to
    stay the same from version to version."""
    return np.argsort(bits.random_raw(count), kind="stable")


def order(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order of an epoch's samples."""
    return _shuffled(_bits(seed, epoch, _ORDER), count)


def split_order(count: int, seed: int) -> np.ndarray:
    """The order in which samples are dealt out to the parts of a data set."""
    return _shuffled(_bits(seed, 0, _SPLIT), count)


@contextmanager
def drawing(seed: int, epoch: int, number: int, reads: bool = False) -> Iterator[None]:
    """`rng()` is the generator of a batch in the block; with `reads` that with which an iterable
    makes the batch's samples."""
    before = _here.generator
    bits = _bits(seed, epoch, _SAMPLES if reads else _BATCH, number)
    _here.generator = np.random.Generator(bits)
    try:
        yield
    finally:
        _here.generator = before


def rng() -> np.random.Generator:
    """The generator that transforms and data sets draw from.

    While a `DataLoader` makes a batch it is that batch's own, a function of the loader's seed, the
    epoch and the batch's number: augmentation is the same for any number of workers, and after
    `load_state_dict`. Elsewhere it is one generator of the process, which `set_seed` restarts.
    """
    return _elsewhere if _here.generator is None else _here.generator


def set_seed(seed: int) -> None:
    """Restarts the generator that `rng` returns outside of loaders.

    Raises:
        TypeError: not an int.
        ValueError: a seed below 0, or of 2**63 or more.
    """
    global _elsewhere
    _elsewhere = np.random.Generator(np.random.Philox(key=key(seed, "set_seed: seed")))


def default_seed() -> int:
    """The seed of loaders that are given none: 0, or that of `singa_rs.set_seed`."""
    return _default


def set_default(seed: int) -> None:
    """Sets the seed of loaders that are given none."""
    global _default
    _default = seed


def key(value: Any, argument: str) -> int:
    """A seed or an epoch: an int from 0 to 2**63 - 1."""
    return refusals.count(value, argument, 0, 2**63 - 1)
