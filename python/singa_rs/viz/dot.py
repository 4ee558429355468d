"""A graph in Graphviz's language."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def text(data: Mapping[str, Any], title: str) -> str:
    """An oval for each operation, a box for each tensor that is an argument, a result or older than
    the graph; arrows are labelled with the tensors that are passed on."""
    lines = [f"digraph {_quoted(title)} {{", "  node [fontname=sans-serif, fontsize=10];"]
    lines += ["  edge [fontname=sans-serif, fontsize=8, color=gray40];"]
    for number, node in enumerate(data["nodes"]):
        lines.append(
            f"  n{number} [label={_quoted(node['name'])}, tooltip={_quoted(node['line'])}];"
        )
    for number, block in enumerate(data["blocks"]):
        if block["role"] != "temporary" and block["first"] is not None:
            label = _quoted(block["name"] or block["role"])
            lines.append(f"  b{number} [label={label}, shape=box, color=steelblue];")
    lines += [f"  {a} -> {b} [label={_quoted(what)}];" for a, b, what in _arrows(data)]
    return "\n".join([*lines, "}"]) + "\n"


def _arrows(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    writers: dict[int, str] = {}
    for number, node in enumerate(data["nodes"]):
        name = f"n{number}"
        for place in node["inputs"]:
            yield writers.get(place["block"], f"b{place['block']}"), name, _what(place)
        for place in node["outputs"]:
            writers[place["block"]] = name
            if data["blocks"][place["block"]]["role"] != "temporary":
                yield name, f"b{place['block']}", _what(place)


def _what(place: Mapping[str, Any]) -> str:
    return f"{place['dtype']} {tuple(place['shape'])}"


def _quoted(value: str) -> str:
    # Graphviz reads backslashes before quotes, backslashes and newlines as JSON does.
    return json.dumps(value, ensure_ascii=False)
