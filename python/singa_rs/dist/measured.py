"""How many elements are exchanged together, by what exchanges between these processes cost."""

from __future__ import annotations

from .group import current

#: Which part of an exchange's time its latency may be.
_SHARE = 1 / 16
#: The least and the most elements, and those where nothing is measured, as in SINGA.
LEAST, MOST, DEFAULT = 2**16, 2**22, 2**21
_ELEMENT = 4


def bucket_size() -> int:
    """How many elements of gradients `DistOpt` exchanges in one piece by default: so many that the
    latency is a sixteenth of the time, from 65,536 to 4,194,304.

    The first call of all ranks, or their first step, measures that with a few sums, and all take
    what rank 0 has found.

    Raises:
        DistError: as `Work.wait`.
    """
    group = current()
    if group.core is None:
        return DEFAULT
    if group.bucket is None:
        group.bucket = chosen(*group.core.measure())
    return group.bucket


def chosen(latency: float, byte: float) -> int:
    """The number of elements, a power of two, for the seconds of an exchange whatever its size, and
    those of each byte."""
    size = LEAST
    while size < MOST and latency > _SHARE * byte * _ELEMENT * size:
        size *= 2
    return size
