"""A model's layers as a table."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ..layer.collect import below, own_params

if TYPE_CHECKING:
    from ..layer.base import Layer

_HEAD = ("name", "type", "output shape", "parameters")


def table(module: Layer) -> str:
    """One row per layer; values that are unknown before its first call are shown as a dash."""
    rows, total, frozen, counted = [], 0, 0, set()
    for layer in below(module):
        own = {id(t): t for t in own_params(layer).values() if id(t) not in counted}
        counted.update(own)
        count = sum(prod(t.shape) for t in own.values())
        total += count
        frozen += sum(prod(t.shape) for t in own.values() if not t.requires_grad)
        unknown = "-" if layer._makes_tensors() else f"{count:,}"
        rows.append((layer._node.path or "(model)", type(layer).__name__, _shape(layer), unknown))
    lines = _align([_HEAD, *rows])
    lines.insert(1, "-" * max(map(len, lines)))
    lines += [lines[1], f"{total:,} parameters" + (f", {frozen:,} of them fixed" if frozen else "")]
    return "\n".join(lines)


def _shape(layer: Any) -> str:
    shape = layer._node.output_shape
    return "-" if shape is None else str(tuple(shape))


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    *left, last = widths
    return [
        "  ".join(
            [*(cell.ljust(w) for cell, w in zip(row[:-1], left, strict=True)), row[-1].rjust(last)]
        )
        for row in rows
    ]
