"""The table of operators: how each is read from ONNX, and how the engine's operations are written.

Both directions of an operator stand next to each other, in the file of its family in `rows/`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


#: What rows may ask for beside inputs and attributes.
ASKED = frozenset({"outputs", "frame", "node"})


class Row(NamedTuple):
    """How an operator is read, from one opset to that of its next row."""

    name: str
    domain: str
    since: int
    #: Called with the node's inputs in order and its attributes by name; returns one value, or a
    #: tuple of them.
    run: Callable[..., Any]
    #: Positions of inputs that have to be on the host: shapes, axes, bounds of loops.
    host: frozenset[int]
    #: Positions of inputs that are taken where they are, on the host or on the device.
    kept: frozenset[int]
    #: Whether it takes values as they are, on the host or on the device, sequences too.
    is_raw: bool
    #: Whether it takes tensors of types that are stored as codes.
    takes_codes: bool
    #: Whether it may make something else of the same inputs, or changes what is not an output.
    varies: bool
    #: What `run` asks for beside inputs and attributes: `outputs`, how many are wanted; `frame`,
    #: where it runs; `node`, the node itself.
    asks: frozenset[str]

    def __reduce__(self) -> Any:
        """A copy is the row of the table, whose functions may be of any kind."""
        return reader, (self.domain, self.name, self.since)


#: By domain and name: rows by the opset they begin with, ascending.
READERS: dict[tuple[str, str], list[Row]] = {}
#: By the engine's name of an operation: the function that writes its nodes.
WRITERS: dict[str, Callable[..., Any]] = {}


def reads(
    name: str,
    since: int = 1,
    *,
    domain: str = "",
    host: str = "",
    kept: str = "",
    raw: bool = False,
    takes_codes: bool = False,
    varies: bool = False,
) -> Callable[[Function], Function]:
    """A decorator that enters how an operator is read from opset `since` on.

    The function's positional parameters are the operator's inputs, None for one that is left out;
    its keywords are the attributes, with their defaults. `host` names the inputs that have to be
    on the host, `kept` those that may be on the host or on the device. A keyword `outputs` is given
    the number of outputs that are wanted, a keyword `frame` the frame that runs the node, a keyword
    `node` the node.
    """

    def enter(run: Function) -> Function:
        parameters = inspect.signature(run).parameters
        positions = {one: i for i, one in enumerate(parameters)}
        row = Row(
            name,
            domain,
            since,
            run,
            *(frozenset(positions[one] for one in names.split()) for names in (host, kept)),
            raw,
            takes_codes,
            varies,
            frozenset(ASKED & set(parameters)),
        )
        rows = READERS.setdefault((domain, name), [])
        rows.append(row)
        rows.sort(key=lambda one: one.since)
        return run

    return enter


def reader(domain: str, name: str, opset: int) -> Row | None:
    """The row that reads an operator of an opset; None if there is none."""
    found = [row for row in READERS.get((domain, name), ()) if row.since <= opset]
    return found[-1] if found else None


def writes(*names: str) -> Callable[[Function], Function]:
    """A decorator that enters how operations of the engine with these names are written."""

    def enter(write: Function) -> Function:
        WRITERS.update(dict.fromkeys(names, write))
        return write

    return enter
