"""Arrays in batches, without a loader."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..refusals import is_integral


def batches(
    *arrays: np.ndarray, size: int, rng: np.random.Generator | None = None, partial: bool = True
) -> Iterator[tuple[np.ndarray, ...]]:
    """The rows of equally long arrays in batches of `size`, shuffled by `rng` if it is given; a
    smaller last batch is included only with `partial`.

    Raises:
        TypeError: an argument that is not an array with rows, a size that is not an int, or an
            `rng` that is not a Generator.
        ValueError: no arrays, arrays of different lengths, or a size below 1.
    """
    for array in arrays:
        if not getattr(array, "shape", ()):
            raise TypeError(f"batches: got {array!r:.80}, want arrays with rows")
    if not is_integral(size):
        raise TypeError(f"batches: got size {size!r}, want an int")
    if rng is not None and not hasattr(rng, "permutation"):
        raise TypeError(f"batches: got rng {rng!r}, want a numpy.random.Generator")
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"batches: got lengths {sorted(lengths)}, want one length")
    if size < 1:
        raise ValueError(f"batches: got size {size}, want at least 1")
    (count,) = lengths
    order = np.arange(count) if rng is None else rng.permutation(count)
    return _batches(arrays, order, size, count if partial else count - count % size)


def _batches(
    arrays: tuple[np.ndarray, ...], order: np.ndarray, size: int, end: int
) -> Iterator[tuple[np.ndarray, ...]]:
    for start in range(0, end, size):
        rows = order[start : start + size]
        yield tuple(array[rows] for array in arrays)
