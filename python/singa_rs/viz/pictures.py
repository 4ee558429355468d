"""A graph as text for other programs: Graphviz, a browser, Chrome's tracing."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .profile import Profile


def dot_text(data: Mapping[str, Any], title: str) -> str:
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


#: In order of dependency.
SCRIPTS = (
    "format.js",
    "model.js",
    "layers.js",
    "layout.js",
    "scene.js",
    "edges.js",
    "canvas.js",
    "boxes.js",
    "minimap.js",
    "graph.js",
    "arena.js",
    "timeline.js",
    "details.js",
    "search.js",
    "main.js",
)


def html_text(
    data: Mapping[str, Any], title: str, profile: Profile | None, quotes: bool = True
) -> str:
    """The page; `quotes` the lines of the program, where they can be read."""
    from importlib.resources import files  # importing it takes longer than most modules

    page = files(__package__) / "page"

    def read(name: str) -> str:
        return (page / name).read_text("utf-8")

    shown = {**data, "title": title, "sources": _sources(data) if quotes else {}, "profile": None}
    if profile is not None:
        shown["profile"] = {
            "seconds": [one.seconds for one in profile],
            "waiting": [one.waiting for one in profile],
            "runs": profile.runs,
        }
    parts = {
        "TITLE": escape(title),
        "STYLE": read("style.css"),
        "DATA": embedded(shown),
        "SCRIPT": "\n".join(map(read, SCRIPTS)),
    }
    return _filled(read("page.html"), parts)


def embedded(value: Any) -> str:
    """JSON in which no text can end the enclosing element, or be taken for markup."""
    made = json.dumps(value, separators=(",", ":"))
    return made.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """The template with each `{{NAME}}` replaced; inserted text is not expanded again."""
    first, *rest = template.split("{{")
    filled = [first]
    for piece in rest:
        name, after = piece.split("}}", 1)
        filled += [parts[name], after]
    return "".join(filled)


def _sources(data: Mapping[str, Any]) -> dict[str, str]:
    """The text of each line of the program, where it can be read."""
    lines = {node["line"] for node in data["nodes"]}
    found = {line: _source(line) for line in lines}
    return {line: source for line, source in found.items() if source}


def _source(line: str) -> str:
    file, _, number = line.rpartition(":")
    return linecache.getline(file, int(number)).strip() if number.isdigit() else ""


def trace_text(profile: Profile, data: Mapping[str, Any], title: str) -> str:
    """The operations in sequence, and the memory that is live during each."""
    events: list[dict[str, Any]] = [_name("process_name", f"singa_rs {title}")]
    events.append(_name("thread_name", "operations"))
    now = 0.0
    for index, (one, alive) in enumerate(zip(profile, data["curve"], strict=True)):
        duration = one.seconds * 1e6
        args = {"index": index, "waiting": one.waiting * 1e6}
        args |= {"line": one.line, "flops": one.flops, "bytes": one.bytes}
        shared = {"pid": 1, "tid": 1, "ts": now}
        events.append({"ph": "X", "name": one.name, "dur": duration, "args": args, **shared})
        events.append({"ph": "C", "name": "arena", "args": {"bytes": alive}, **shared})
        now += duration
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _name(kind: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": 1, "name": kind, "args": {"name": name}}
