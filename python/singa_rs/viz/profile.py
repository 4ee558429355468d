"""How long each operation of a graph takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..notices import in_notebooks
from .layers import OfLayer, checked, grouped, table


class Timed(NamedTuple):
    """One operation with its time."""

    name: str
    #: Mean seconds.
    seconds: float
    #: The part of them in which the thread that runs the step waited for others.
    waiting: float
    #: Floating-point operations, and bytes read and written.
    flops: int
    bytes: int
    #: The line of the program that it comes from, and the path of the layer that was called there:
    #: empty for the model itself, None outside of models.
    line: str
    layer: str | None = None


class Profile:
    """The operations of a graph in their order, each with its time."""

    def __init__(self, operations: Sequence[Timed], runs: int) -> None:
        self.operations, self.runs = list(operations), runs

    @property
    def seconds(self) -> float:
        """The total time of all operations."""
        return sum(one.seconds for one in self.operations)

    @property
    def waiting(self) -> float:
        """The part of it in which the thread that runs the step waited for others."""
        return sum(one.waiting for one in self.operations)

    def __iter__(self) -> Iterator[Timed]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)

    def __getitem__(self, index: int) -> Timed:
        return self.operations[index]

    def layers(self, depth: int | None = None) -> list[OfLayer]:
        """The operations grouped by the layer whose call asked for them, in the order of their
        first operations; each row has the time, `seconds`. See `Graph.layers`."""
        return grouped([one.layer for one in self], self.operations, depth)

    def summary(self, most: int = 20, by: str = "operation") -> str:
        """A table of the operations, the slowest first.

        Args:
            most: how many rows to show.
            by: "operation" groups by name and line, "layer" by the path of the layer.

        Raises:
            ValueError: another `by`.
        """
        if checked("summary", by) == "layer":
            title = (
                f"{len(self)} operations, {self.seconds * 1e3:.3f} ms a run, mean of {self.runs}"
            )
            return table(title, self.layers(), most)
        return self._by_operation(most)

    def _by_operation(self, most: int) -> str:
        rows: dict[tuple[str, str], list[float]] = {}
        layers: dict[tuple[str, str], set[str | None]] = {}
        for one in self.operations:
            layers.setdefault((one.name, one.line), set()).add(one.layer)
            row = rows.setdefault((one.name, one.line), [0, 0.0, 0.0, 0, 0])
            for i, more in enumerate((1, one.seconds, one.waiting, one.flops, one.bytes)):
                row[i] += more
        total = self.seconds or 1.0
        lines = [
            f"{len(self)} operations, {self.seconds * 1e3:.3f} ms a run, of which "
            f"{self.waiting * 1e3:.3f} ms waiting for other threads, mean of {self.runs}",
            "    share        ms   waits   calls   GFLOP/s     GB/s  operation",
        ]
        for (name, line), row in sorted(rows.items(), key=lambda item: -item[1][1])[:most]:
            calls, seconds, waiting, flops, moved = row
            per = max(seconds, 1e-12) * 1e9
            lines.append(
                f"  {100 * seconds / total:6.1f}%{seconds * 1e3:10.3f}{1e11 * waiting / per:7.1f}%"
                f"{calls:8.0f}{flops / per:10.1f}{moved / per:9.1f}  {name}  {line}"
                f"{_within(layers[name, line])}"
            )
        if len(rows) > most:
            lines.append(f"  and {len(rows) - most} more")
        return "\n".join(lines)

    _repr_html_ = in_notebooks

    def __repr__(self) -> str:
        return f"Profile({len(self)} operations, {self.seconds * 1e3:.3f} ms)"


def _within(layers: set[str | None]) -> str:
    """The layer that operations of a line belong to, or how many there are."""
    if len(layers) > 1:
        return f" in {len(layers)} layers"
    return "".join(f" in {path}" for path in layers if path)


def profile(data: Mapping[str, Any], times: Sequence[tuple[float, float]], runs: int) -> Profile:
    """The profile of a graph's operations, from their measured times and waiting times."""
    timed = [
        Timed(node["name"], *time, *(node[key] for key in ("flops", "bytes", "line", "layer")))
        for node, time in zip(data["nodes"], times, strict=True)
    ]
    return Profile(timed, runs)
