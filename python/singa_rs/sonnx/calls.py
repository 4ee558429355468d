"""Whether calls of operators fit the rows that read them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from .table import ASKED, Row


class _Want(NamedTuple):
    """What a row's function is called with."""

    #: Parameters of inputs in order, which older opsets may have as attributes.
    inputs: tuple[str, ...]
    #: How many of these have no default.
    least: int
    is_variadic: bool
    attributes: frozenset[str]
    required: frozenset[str]
    takes_any: bool


@functools.cache
def _want(run: Callable[..., Any]) -> _Want:
    every = inspect.signature(run).parameters.values()
    inputs = [one for one in every if one.kind == one.POSITIONAL_OR_KEYWORD]
    named = [one for one in every if one.kind == one.KEYWORD_ONLY and one.name not in ASKED]
    return _Want(
        tuple(one.name for one in inputs),
        sum(one.default is one.empty for one in inputs),
        any(one.kind == one.VAR_POSITIONAL for one in every),
        frozenset(one.name for one in named),
        frozenset(one.name for one in named if one.default is one.empty),
        any(one.kind == one.VAR_KEYWORD for one in every),
    )


def fault(row: Row, attributes: Collection[str], inputs: Sequence[str]) -> str:
    """What about a call with these attributes and inputs the row does not know; "" if nothing."""
    want = _want(row.run)
    unknown = set(attributes) - want.attributes - set(want.inputs[len(inputs) :])
    if unknown and not want.takes_any:
        known = ", ".join(sorted(want.attributes)) or "none"
        return f"got attribute {min(unknown)!r}, want {known}"
    if missing := want.required - set(attributes):
        return f"got no attribute {min(missing)!r}"
    lacking = set(want.inputs[len(inputs) : want.least]) - set(attributes)
    if lacking or not want.is_variadic and len(inputs) > len(want.inputs):
        return f"got {len(inputs)} inputs, want {_count(want)}"
    if not (want.is_variadic or all(inputs[: want.least])):
        return f"got no input {want.inputs[list(inputs).index('')]!r}"
    return ""


def _count(want: _Want) -> str:
    if want.is_variadic:
        return f"{want.least} and more"
    return (
        str(want.least) if want.least == len(want.inputs) else f"{want.least} to {len(want.inputs)}"
    )
