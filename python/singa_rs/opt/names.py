"""States of optimizers as tensors by name, which files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tensor import Tensor
from .assigned import tensor_of

#: States of `get_states`: the step counter, and those of schedules.
COUNTER, SCHEDULES = "step_counter", "schedules"


def inside(prefix: Any, name: str) -> str:
    """What the names of an optimizer begin with.

    Raises:
        TypeError: a prefix that is not a str.
    """
    if not isinstance(prefix, str):
        raise TypeError(f"{name}: got {prefix!r:.80} for the prefix, want a str")
    return f"{prefix}/" if prefix else ""


def flat(states: Mapping[str, Any], counter: Tensor, start: str) -> dict[str, Tensor]:
    """What `get_states` returned: "m/fc.W" for the moment "m" of "fc.W", and the counter."""
    kinds = {kind: named for kind, named in states.items() if kind != COUNTER}
    found = {f"{start}{kind}/{n}": t for kind, named in kinds.items() for n, t in named.items()}
    tensors = {n: t if isinstance(t, Tensor) else tensor_of(t) for n, t in found.items()}
    return {f"{start}{COUNTER}": counter, **tensors}


def nested(found: Mapping[str, Any], start: str, kinds: Sequence[str], op: str) -> dict[str, Any]:
    """The opposite of `flat`, for `set_states`; names that do not begin with `start` are left out.

    Raises:
        ValueError: no step counter, or a name that is not of one of the `kinds`.
    """
    named = {n.removeprefix(start): t for n, t in found.items() if str(n).startswith(start)}
    if COUNTER not in named:
        raise ValueError(f"{op}: got no {start + COUNTER!r} among {len(found)} names")
    states: dict[str, Any] = {COUNTER: named.pop(COUNTER)}
    for name, one in named.items():
        kind, _, param = name.partition("/")
        if not param or kind not in kinds:
            want = ", ".join(kinds)
            raise ValueError(f"{op}: got {start + name!r}, want a state of the kinds {want}")
        states.setdefault(kind, {})[param] = one
    return states
