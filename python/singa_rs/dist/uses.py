"""When a forecast step ends whose parameters are gathered where they are used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Used(Protocol):
    """A parameter."""

    @property
    def first(self) -> float:
        """When it is used for the first time."""

    @property
    def last(self) -> float:
        """When backward uses it for the last time."""


def uses_of(buckets: Sequence[Sequence[Used]]) -> list[tuple[float, int]]:
    """When which bucket is gathered: for forward, and for backward unless no other was between."""
    forward = [(min(one.first for one in bucket), n) for n, bucket in enumerate(buckets)]
    backward = [(min(one.last for one in bucket), n) for n, bucket in enumerate(buckets)]
    ordered = sorted({*forward, *backward})
    before = [None, *(number for _, number in ordered)]
    return [use for use, number in zip(ordered, before, strict=False) if use[1] != number]


def end_of_uses(
    alone: float, uses: Sequence[tuple[float, float]], scatters: Iterable[tuple[float, float]]
) -> float:
    """When a step ends that takes `alone` without exchanges, of which one runs at a time.

    Args:
        uses: when each bucket is used that is gathered, in order, and what that takes. It may begin
            when the one before is used, and the step waits for it.
        scatters: when gradients are final, and what their exchange takes.
    """
    begins = [0.0, *(use for use, _ in uses)]
    waited = [(begin, cost, use) for begin, (use, cost) in zip(begins, uses, strict=False)]
    others = [(begin, cost, None) for begin, cost in scatters]
    late = free = 0.0
    for begin, cost, use in sorted(waited + others, key=lambda one: one[0]):
        free = max(begin + late, free) + cost
        if use is not None:
            late += max(0.0, free - use - late)
    return max(alone + late, free)
