"""A graph as one self-contained page, which opens from disk."""

from __future__ import annotations

import json
import linecache
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from .profile import Profile

#: In order of dependency.
SCRIPTS = (
    "format.js",
    "model.js",
    "layout.js",
    "canvas.js",
    "graph.js",
    "arena.js",
    "timeline.js",
    "details.js",
    "search.js",
    "main.js",
    "selftest.js",
)


def text(data: Mapping[str, Any], title: str, profile: Profile | None) -> str:
    """The page."""
    page = files(__package__) / "page"
    read = lambda name: (page / name).read_text("utf-8")  # noqa: E731
    shown = {**data, "title": title, "sources": _sources(data), "profile": None}
    if profile is not None:
        shown["profile"] = {"seconds": [one.seconds for one in profile], "runs": profile.runs}
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
