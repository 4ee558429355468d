"""Warm-up of sparse exchanges."""

from __future__ import annotations

from ...refusals import is_real
from .options import size

#: The share that the first stage exchanges, and by which each later one multiplies it.
_FACTOR = 0.25


def density(stage: int, final: float) -> float:
    """The share of gradients to exchange in a stage, such as an epoch: a quarter in stage 0, a
    quarter of that in each later one, down to `final` (Lin et al., 2018: 25%, 6.25%, 1.56%, 0.4%,
    0.1%). For `spars` with `topK`; each value is a recording of its own.

    Raises:
        TypeError: not an int and a number.
        ValueError: a stage below 0, a share that is not above 0 and at most 1.
    """
    number = size(stage, "density: stage", 0)
    if not is_real(final):
        raise TypeError(f"density: got final {final!r:.80}, want a number")
    if not 0 < final <= 1:
        raise ValueError(f"density: got final {final}, want a share above 0 and at most 1")
    return max(float(final), _FACTOR ** (number + 1))
