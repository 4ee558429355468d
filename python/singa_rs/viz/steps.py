"""A page of a step that was read from a file: what it takes, returns and keeps, and its operations
as they were recorded. They are rewritten and planned where the step runs (docs/steps.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from .cbor import Reader

#: Bytes of the file before the operations, and of what precedes these.
_PREFIX, _RECORDING = 48, 20
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{style}
body {{ overflow: auto; height: auto; padding: 1em; display: block }}
table {{ border-collapse: collapse; margin-bottom: 2em }}
td, th {{ text-align: left; padding: 0.15em 1em 0.15em 0; vertical-align: top }}
</style></head><body>
<h1>{title}</h1><p>{summary}</p>
{tables}
</body></html>
"""


def step_text(step: Any, content: bytes, title: str) -> str:
    """The page of a loaded `Step` and the bytes of its file."""
    operations, lines = recorded(content)
    states = {name: (state.shape, state.dtype.name) for name, state in step.states.items()}
    rows = {
        "Arguments": [(one.name, one.shape, one.dtype.name) for one in step.arguments],
        "Results": [(one.name, one.shape, one.dtype.name) for one in step.results],
        "States": [(name, *one) for name, one in states.items()],
    }
    tables = [
        _table(f"{name} ({len(found)})", ("name", "shape", "dtype"), found)
        for name, found in rows.items()
    ]
    shown = [
        (number, name, attributes, ", ".join(inputs), lines[line])
        for number, (name, attributes, inputs, line) in enumerate(operations)
    ]
    columns = ("", "operation", "attributes", "inputs", "line")
    tables.append(_table(f"Operations as recorded ({len(shown)})", columns, shown))
    numbers = sum(math.prod(shape) for shape, _ in states.values())
    summary = f"{len(operations)} operations; {numbers:,} numbers in {len(states)} states"
    style = (files(__package__) / "page" / "style.css").read_text("utf-8")
    return _PAGE.format(title=escape(title), style=style, summary=summary, tables="\n".join(tables))


def recorded(content: bytes) -> tuple[list[tuple[str, str, list[str], int]], list[str]]:
    """The operations of a file of a step, each as its name, attributes, inputs and the number of
    its line, and the lines of the program."""
    lengths = [int.from_bytes(content[at : at + 8], "little") for at in (16, 24)]
    saved = Reader(content[_PREFIX + _RECORDING : _PREFIX + lengths[0]]).read()
    header = Reader(content[_PREFIX + lengths[0] : _PREFIX + sum(lengths)]).read()
    calls = [_call(kind, inputs, saved["metas"]) for kind, inputs, _ in saved["calls"]]
    lines = [origin["line"] for origin in header["origins"]]
    return [(*calls[call], origin) for call, _, _, origin in saved["ops"]], lines


def _call(
    kind: Mapping[str, Any], inputs: Sequence[int], metas: Sequence[Mapping[str, Any]]
) -> tuple[str, str, list[str]]:
    attributes = ", ".join(f"{name}={value}" for name, value in kind.items() if name != "op")
    return kind["op"], attributes, [_meta(metas[number]) for number in inputs]


def _meta(meta: Mapping[str, Any]) -> str:
    return f"{meta['dtype']} {tuple(meta['shape'])}"


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in columns)
    lines = (
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{''.join(lines)}</table>"
