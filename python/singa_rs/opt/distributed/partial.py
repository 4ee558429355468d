"""Averages of some parameters in each step, in turn."""

from __future__ import annotations

from collections.abc import Iterable

from ... import autograd
from ...dist.together import reduced_into
from ...tensor import Tensor
from ..exchange import Pair, noting


class Partitions:
    """The parameters of an update, in its order, in parts: those of up to `limit` elements
    together, and larger ones alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._params: list[Tensor] = []

    def noted(self, pairs: Iterable[Pair]) -> Iterable[Pair]:
        """The pairs as they are; their parameters are noted."""
        return noting(pairs, lambda param, _: self._params.append(param))

    def parts(self) -> list[list[Tensor]]:
        """The parts, after the update."""
        made: list[list[Tensor]] = []
        unfilled: list[Tensor] = []
        count = 0
        for param in self._params:
            if param.numel > self._limit:
                made.append([param])
                continue
            unfilled.append(param)
            count += param.numel
            if count > self._limit:
                made.append(unfilled)
                unfilled, count = [], 0
        return [*made, unfilled] if unfilled else made


def average(params: list[Tensor]) -> None:
    """Averages parameters over all ranks, in place."""
    with autograd.no_grad():
        for dtype in dict.fromkeys(param.dtype for param in params):
            alike = [param for param in params if param.dtype == dtype]
            reduced_into(alike, alike).wait()
