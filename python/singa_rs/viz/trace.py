"""A profile in the format of Chrome's tracing, which Perfetto reads, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .profile import Profile


def text(profile: Profile, data: Mapping[str, Any], title: str) -> str:
    """The operations in sequence, and the memory that is live during each."""
    events: list[dict[str, Any]] = [_name("process_name", f"singa_rs {title}")]
    events.append(_name("thread_name", "operations"))
    now = 0.0
    for index, (one, alive) in enumerate(zip(profile, data["curve"], strict=True)):
        duration = one.seconds * 1e6
        args = {"index": index, "line": one.line, "flops": one.flops, "bytes": one.bytes}
        shared = {"pid": 1, "tid": 1, "ts": now}
        events.append({"ph": "X", "name": one.name, "dur": duration, "args": args, **shared})
        events.append({"ph": "C", "name": "arena", "args": {"bytes": alive}, **shared})
        now += duration
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _name(kind: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": 1, "name": kind, "args": {"name": name}}
