"""Running a body: node by node, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Device
from ..errors import DTypeError
from ..tensor import Tensor
from . import codes, folding
from .body import Body, Node
from .functions import expanded
from .guesses import MOST_ELEMENTS, Guesses
from .stretches import VALUES, Stretches
from .values import Coded, Value, is_text, to_array, to_tensor

if TYPE_CHECKING:
    from .imported import Weights


class Frame:
    """The values of a body that is being run."""

    def __init__(
        self,
        body: Body,
        device: Device,
        outer: Frame | None = None,
        stretches: Stretches | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.body, self.device, self.outer = body, device, outer
        #: What is not a constant of the body or one of the weights, which stand for constants.
        self.values: dict[str, Value] = {}
        self.weights: Weights | tuple[()] = () if weights is None else weights
        #: What records and replays its parts; without it, each node is run.
        self.stretches = stretches
        #: How often a node has read a value of the device back to the host, and how often one that
        #: may be guessed.
        self.reads = self.small_reads = 0
        #: What notes the values that are read, or takes their place.
        self.guesses: Guesses | None = None if outer is None else outer.guesses
        #: The position of the node that is being run.
        self.at = 0

    def find(self, name: str) -> Value:
        """A value of this body, or of one around it; None for an input that is left out."""
        if name in self.values:
            return self.values[name]
        frame: Frame | None = self
        while name and frame is not None:
            for known in (frame.values, frame.weights, frame.body.constants):
                if name in known:
                    return known[name]
            frame = frame.outer
        if name:
            raise ValueError(f"{self.body.name or 'graph'}: got no value for {name!r}")
        return None

    def find_all(self, names: Iterable[str]) -> list[Value]:
        """`find` of each."""
        known = self.values
        return [known[name] if name in known else self.find(name) for name in names]

    def run(self, values: Mapping[str, Value]) -> list[Value]:
        """The outputs of the body for these inputs."""
        self.values.update(values)
        if self.stretches is not None:
            self.stretches.run(self)
        else:
            for at in range(len(self.body.nodes)):
                self.advance(at)
        return self.find_all(self.body.outputs)

    def advance(self, at: int) -> None:
        """Runs the node at a position, and drops what no later one needs."""
        self.at = at
        self.step(self.body.nodes[at])
        self.drop(self.body.dead[at])

    def take(self, found: Mapping[str, Value], dead: Iterable[str]) -> None:
        """Takes the values that a part has made, and drops what no later one needs."""
        self.values.update(found)
        self.drop(dead)

    def drop(self, names: Iterable[str]) -> None:
        """Lets go of values."""
        for name in names:
            self.values.pop(name, None)

    def call(self, body: Body, inputs: Iterable[Value] = ()) -> list[Value]:
        """The outputs of a body that stands in this one."""
        inner = Frame(body, self.device, self, self.stretches)
        # An input that is left out must not be looked up outside.
        given = dict.fromkeys(body.inputs) | dict(zip(body.inputs, inputs, strict=False))
        found = inner.run(given)
        self.reads += inner.reads
        self.small_reads += inner.small_reads
        return found

    def step(self, node: Node) -> None:
        """Runs a node."""
        inputs = self.find_all(node.inputs)
        try:
            found = self.results(node, inputs)
        except VALUES as error:
            raise _named(error, node) from error
        for name, value in zip(node.outputs, found, strict=False):
            if name:
                self.values[name] = value

    def results(self, node: Node, inputs: list[Value]) -> tuple[Value, ...]:
        """The outputs of a node for these inputs."""
        row = node.row
        if node.fault:
            raise ValueError(f"{node.label}: {node.fault}")
        if row is None:
            return tuple(self.call(node.function or expanded(node, inputs), inputs))
        if not row.is_raw and folding.folds(node, inputs):
            return folding.fold(node, inputs)
        if not row.is_raw and any(map(is_text, inputs)):  # no device works with strings
            return folding.fold(node, [self.read(x) for x in inputs])
        args = inputs if row.is_raw else [self._argument(node, i, x) for i, x in enumerate(inputs)]
        if not (row.is_raw or row.takes_codes) and any(isinstance(x, Coded) for x in args):
            return self._moved(node, args)
        made = row.run(*args, **self._keywords(node))
        return made if isinstance(made, tuple) else (made,)

    def _keywords(self, node: Node) -> dict[str, Any]:
        """A node's attributes, and what its row asks for."""
        extra = {"outputs": len(node.outputs), "frame": self, "node": node}
        return {**node.attrs, **{name: extra[name] for name in node.row.asks}}

    def _moved(self, node: Node, args: list[Value]) -> tuple[Value, ...]:
        """The outputs of a node that moves elements which are codes."""
        if node.row.name not in codes.MOVING:
            kinds = ", ".join({x.dtype.name for x in args if isinstance(x, Coded)})
            raise DTypeError(f"{node.label}: got {kinds}, want a dtype that is computed with")
        return codes.moved(node.row.run, args, self._keywords(node))

    def _argument(self, node: Node, i: int, x: Value) -> Value:
        """An input where the row wants it."""
        if i in node.row.host:
            return self.read_small(x)
        if i in node.row.kept:
            return x
        is_array = isinstance(x, (np.ndarray, np.generic)) and not is_text(x)
        return to_tensor(x, self.device) if is_array else x

    def read(self, x: Value) -> Value:
        """A value on the host."""
        if not isinstance(x, (Tensor, Coded)):
            return x
        self.note_read()
        return to_array(x)

    def read_small(self, x: Value) -> Value:
        """As `read`, of what is nearly always the same, as conditions and sizes are: a small value
        of whole numbers may be guessed."""
        is_small = isinstance(x, Tensor) and not x.dtype.is_float and x.numel <= MOST_ELEMENTS
        if not is_small:
            return self.read(x)
        if self.guesses is None or self.guesses.is_noting:
            self.small_reads += 1
            self.note_read()
        return to_array(x) if self.guesses is None else self.guesses.value(x, self._position())

    def _position(self) -> int:
        """Where the node that is being run is in the body whose values are guessed."""
        frame = self
        while frame.outer is not None and frame.outer.guesses is self.guesses:
            frame = frame.outer
        return frame.at

    def note_read(self) -> None:
        """Notes that a node reads values of the device, which cannot be recorded."""
        self.reads += 1


def _named(error: Exception, node: Node) -> Exception:
    """An error that begins with its node."""
    message = str(error)
    is_named = message.startswith((node.label, f"{node.proto.op_type}:"))
    return (
        error
        if is_named or isinstance(error, UnicodeError)
        else type(error)(f"{node.label}: {message}")
    )
