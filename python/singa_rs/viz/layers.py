"""The operations of a graph, grouped by the layers whose calls asked for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ..refusals import is_integral

#: What rows are called whose operations no layer asked for, or an unknown one.
MODEL, UNKNOWN = "(model)", "(unknown)"


class Operation(Protocol):
    """What is added up."""

    @property
    def flops(self) -> int:
        """Floating-point operations."""

    @property
    def bytes(self) -> int:
        """Bytes read and written."""


class OfLayer(NamedTuple):
    """The operations of one layer."""

    #: Its path; "(model)" for what the model does itself, "(unknown)" where it is not known.
    layer: str
    operations: int
    #: Floating-point operations, and bytes read and written.
    flops: int
    bytes: int
    #: The mean time of a run; None without a profile.
    seconds: float | None


def grouped(
    layers: Sequence[str | None], operations: Sequence[Operation], depth: int | None = None
) -> list[OfLayer]:
    """One row for each layer, in the order of their first operations.

    Args:
        layers: the path of the layer of each operation; None where it is not known.
        operations: with `seconds`, if they were timed.
        depth: how many parts of the paths to tell apart; all by default.

    Raises:
        ValueError: a depth below 1.
    """
    if depth is not None and (not is_integral(depth) or depth < 1):
        raise ValueError(f"layers: got depth={depth!r}, want an integer from 1")
    found: dict[str, list[Operation]] = {}
    for path, one in zip(layers, operations, strict=True):
        found.setdefault(_name(path, depth), []).append(one)
    return [_row(layer, ones) for layer, ones in found.items()]


def _name(path: str | None, depth: int | None) -> str:
    if path is None:
        return UNKNOWN
    return ".".join(path.split(".")[:depth]) or MODEL


def _row(layer: str, ones: Sequence[Operation]) -> OfLayer:
    times = [one.seconds for one in ones if hasattr(one, "seconds")]
    flops, moved = sum(one.flops for one in ones), sum(one.bytes for one in ones)
    return OfLayer(layer, len(ones), flops, moved, sum(times) if times else None)


def checked(op: str, by: str) -> str:
    """What a summary is grouped by.

    Raises:
        ValueError: neither "operation" nor "layer".
    """
    if by not in ("operation", "layer"):
        raise ValueError(f'{op}: got by={by!r}, want "operation" or "layer"')
    return by


def table(title: str, rows: Iterable[OfLayer], most: int | None = None) -> str:
    """The rows as text: if they were timed, those that take longest first."""
    listed = list(rows)
    if any(row.seconds is not None for row in listed):
        return _timed(title, sorted(listed, key=lambda row: -(row.seconds or 0.0)), most)
    lines = [title, "   operations      MFLOP        MB  layer"]
    lines += [
        f"{row.operations:13}{row.flops / 1e6:11.3f}{row.bytes / 1e6:10.3f}  {row.layer}"
        for row in listed[:most]
    ]
    return "\n".join([*lines, *_more(listed, most)])


def _timed(title: str, rows: Sequence[OfLayer], most: int | None) -> str:
    total = sum(row.seconds or 0.0 for row in rows) or 1.0
    lines = [title, "    share        ms  operations     MFLOP        MB  layer"]
    for row in rows[:most]:
        seconds = row.seconds or 0.0
        lines.append(
            f"  {100 * seconds / total:6.1f}%{seconds * 1e3:10.3f}{row.operations:12}"
            f"{row.flops / 1e6:10.3f}{row.bytes / 1e6:10.3f}  {row.layer}"
        )
    return "\n".join([*lines, *_more(rows, most)])


def _more(rows: Sequence[OfLayer], most: int | None) -> list[str]:
    left = len(rows) - len(rows[:most])
    return [f"  and {left} more"] if left else []
