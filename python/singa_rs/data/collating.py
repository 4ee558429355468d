"""Samples stacked to batches, batches to tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import tensor
from ..device import Device
from ..tensor import Tensor
from ..tensor.numbers import lent

_NUMBERS = (np.ndarray, np.generic, bool, int, float)


def collate(samples: Sequence[Any]) -> Any:
    """A batch of samples: arrays, of other libraries too, tensors and numbers are stacked along a
    new first axis; tuples, lists and dictionaries become the same of stacked columns; text becomes
    a list.

    Args:
        samples: at least one sample; all alike.

    Raises:
        TypeError: samples of a type that cannot be stacked, or of different types.
        ValueError: no samples, or samples of different shapes, lengths or keys.
    """
    if not isinstance(samples, (list, tuple)):
        raise TypeError(f"collate: got {type(samples).__name__}, want a list of samples")
    if not samples:
        raise ValueError("collate: got no samples, want at least one")
    first = samples[0]
    if isinstance(first, Mapping):
        _check_alike(samples, Mapping, lambda one: sorted(map(repr, one)), "keys")
        return {key: collate([one[key] for one in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        _check_alike(samples, (tuple, list), len, "lengths")
        return like(first, [collate(column) for column in zip(*samples, strict=True)])
    if isinstance(first, (str, bytes)):
        _check_alike(samples, (str, bytes), type, "types")
        return list(samples)
    return _stacked(samples)


def _stacked(samples: Sequence[Any]) -> np.ndarray:
    arrays = [_array(one) for one in samples]
    _check_alike(arrays, np.ndarray, np.shape, "shapes")
    return np.stack(arrays)


def _array(sample: Any) -> np.ndarray:
    if isinstance(sample, Tensor):
        return sample.to_numpy()
    if not isinstance(sample, _NUMBERS):
        sample = lent(sample, "collate")
    if not isinstance(sample, _NUMBERS):
        kind = type(sample).__name__
        raise TypeError(f"collate: got a sample of {kind}, want arrays, tensors, numbers or text")
    made = np.asarray(sample)
    if made.dtype.kind not in "biuf":
        raise TypeError(f"collate: got a sample of {made.dtype}, want numbers or bools")
    return made


def _check_alike(samples: Sequence[Any], kind: Any, of: Callable[[Any], Any], what: str) -> None:
    strange = [type(one).__name__ for one in samples if not isinstance(one, kind)]
    if strange:
        got = type(samples[0]).__name__, strange[0]
        raise TypeError(f"collate: got samples of {got[0]} and {got[1]}, want one type")
    first = of(samples[0])
    other = next((of(one) for one in samples if of(one) != first), first)
    if other != first:
        raise ValueError(f"collate: got samples of {what} {first} and {other}, want the same")


def like(container: Any, items: Sequence[Any]) -> Any:
    """A tuple, named tuple or list of the type of another."""
    kind = type(container)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def map_leaves(function: Callable[[Any], Any], batch: Any) -> Any:
    """`function` of all that is in tuples, lists and dictionaries."""
    if isinstance(batch, Mapping):
        return {key: map_leaves(function, value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return like(batch, [map_leaves(function, value) for value in batch])
    return function(batch)


def staged(batch: Any, device: Device | None) -> Any:
    """A batch whose arrays are tensors on a device.

    Each gets memory from the device's pool, where that of batches which nobody holds any more is
    found: batches go around in a few places, and one that is held is never overwritten.
    """

    def stage(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind in "SU":
            return leaf
        return tensor.from_numpy(leaf, device)

    return map_leaves(stage, batch)
