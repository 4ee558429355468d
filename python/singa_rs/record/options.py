"""The options of `Module.compile` for recordings and graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .. import _core
from ..shown import shown
from .verifier import VerifiedGraph

#: Units of memory in bytes.
_UNITS = {
    "B": 1,
    **{f"{prefix}B": 1000**n for n, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}IB": 1024**n for n, prefix in enumerate("KMGT", 1)},
}


class Options(NamedTuple):
    """How calls are recorded, and how graphs are made of recordings."""

    #: The number of replays after which a call is recorded again and compared: None, seldom; 0,
    #: never.
    check_every: int | None = None
    #: Whether rewrites must keep every bit of the results.
    exact: bool = True
    #: Whether a run stops at the first operation that makes a NaN or an infinity.
    check_finite: bool = False
    #: Whether operations that leave threads idle run concurrently.
    parallel: bool = False
    #: The limit on the arena of a graph: bytes, or a fraction of what it takes without
    #: recomputation.
    memory_budget: int | float | None = None
    #: Whether a new graph's first run is compared with the operations as recorded, and the
    #: interval in runs at which later ones are, if they are.
    verify: bool = True
    verify_every: int | None = None
    #: The type of products, in mixed precision.
    amp: _core.DType | None = None

    def graph_of(self, recording: _core.Recording, training: bool) -> _core.Graph:
        """The analysed, planned graph of a sealed recording of a call."""
        return self._graph(recording, memory_budget=self.budget(training))

    def recorded(self, recording: _core.Recording) -> _core.Graph:
        """The graph of a sealed recording's operations as they are."""
        return recording.graph(rewrite=False)

    def unverified(self, graph: _core.Graph) -> str | None:
        """Why no run of a graph is compared with the operations as recorded; None if runs are."""
        if not self.verify:
            return "verify=False"
        if not self.exact:
            return "exact=False, which allows different rounding"
        if self.check_finite or graph.fault is not None:
            return "the graph runs the operations as recorded"
        return None

    def verified(self, recording: _core.Recording, graph: _core.Graph) -> VerifiedGraph:
        """The graph of a sealed recording, whose runs are compared with the operations as recorded
        unless something speaks against it."""
        if self.unverified(graph) is not None:
            return VerifiedGraph(graph)
        return VerifiedGraph(graph, self.recorded(recording), self.verify_every)

    def unconstrained(self, recording: _core.Recording) -> int:
        """Bytes of the arena without recomputation, for operations that run one after another."""
        return self._replace(parallel=False)._graph(recording, recompute=False).arena_bytes

    def budget(self, training: bool) -> int | float | None:
        """The memory budget of a graph for training, or for evaluation."""
        if isinstance(self.memory_budget, float) and not training:
            return None  # nothing to recompute: each value is used at once
        return self.memory_budget

    def _graph(self, recording: _core.Recording, **how: Any) -> _core.Graph:
        return recording.graph(
            exact=self.exact,
            keep=self.memory_budget is None,
            check_finite=self.check_finite,
            parallel=self.parallel,
            **how,
        )

    @contextmanager
    def eagerly(self) -> Iterator[None]:
        """A context in which `check_finite` also applies to operations that run without a graph."""
        before = _core.check_finite(self.check_finite)
        try:
            yield
        finally:
            _core.check_finite(before)


def memory_budget(value: Any) -> int | float | None:
    """A memory budget as bytes (int) or a fraction (float).

    Raises:
        TypeError: a value of another type.
        ValueError: text that is not a size; a size or fraction out of range.
    """
    if value is None:
        return None
    found = _size(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TypeError(f"compile: got memory_budget={shown(value)}, want {_WANT}")
    if not (0 < found <= 1 if isinstance(found, float) else 0 <= found < 1 << 63):
        raise ValueError(f"compile: got memory_budget={value!r}, want {_WANT}")
    return found


_WANT = 'bytes, a size such as "2GB" or "512MiB", or a fraction above 0 and up to 1'


def _size(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?I?B)\s*", text.upper())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"compile: got memory_budget={text!r}, want {_WANT}")
    return int(float(match[1]) * _UNITS[match[2]])
