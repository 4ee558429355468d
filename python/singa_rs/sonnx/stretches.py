"""Stretches: parts of a graph between nodes that read a value back, each recorded and replayed.

A node whose result's shape, or whose choice of a body, depends on values has to read them; what
lies between such nodes does not, and becomes a graph function of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..device import Device
from ..errors import GraphError
from ..layer.node import apart
from ..module import Module
from ..tensor import Tensor
from .body import Body, body, is_indivisible, reads_of
from .values import Coded, Value

if TYPE_CHECKING:
    from .imported import Weights
    from .running import Frame

#: What operators raise for values that they cannot work with.
VALUES = ArithmeticError, LookupError, TypeError, ValueError
#: How many stretches are kept.
_MOST = 256


class _Part(NamedTuple):
    """Nodes in a row."""

    body: Body
    #: What they take besides the weights.
    given: tuple[str, ...]
    #: The values that nothing behind them needs.
    dead: tuple[str, ...]


class _Own:
    """The weights that a part takes. A recording inspects these alone: a model has many parts, and
    may have a thousand weights."""

    def __init__(self, weights: Weights, names: Iterable[str]) -> None:
        self._weights = weights
        self._names = dict.fromkeys(name for name in names if name in weights)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Tensor:
        return self._weights[name]

    def _watched(self) -> Iterator[tuple[str, Any]]:
        """What a recorded part may read."""
        return ((name, self[name]) for name in self._names)

    def _remember(self) -> Callable[[bool], None]:
        """Returns a function that restores nothing, as no part assigns weights."""
        return lambda keep_state: None


class _Stretch(Module):
    """A part of a graph for inputs of some shapes and given values on the host."""

    _unwatched = Module._unwatched | {"of", "fixed", "failures"}  # of no effect on recordings

    def __init__(
        self, part: Body, device: Device, host: Mapping[str, Value], weights: Weights
    ) -> None:
        super().__init__()
        self.weights = _Own(weights, part.inputs)
        object.__setattr__(self, "of", (part, device, host))
        #: The outputs that are on the host, which follow from the shapes.
        object.__setattr__(self, "fixed", {})
        #: The positions of nodes that could not be recorded: a list, since attributes are restored
        #: when a recording fails.
        object.__setattr__(self, "failures", [])

    def forward(self, *inputs: Any) -> list[Any]:
        """The outputs that are not on the host."""
        from .running import Frame

        part, device, host = self.of
        frame = Frame(part, device, weights=self.weights)
        names = [x for x in part.inputs if x not in host and x not in self.weights]
        try:
            made = frame.run({**host, **dict(zip(names, inputs, strict=True))})
        except GraphError:
            self.failures.append(frame.at)
            raise
        found = dict(zip(part.outputs, made, strict=True))
        self.fixed.update((name, one) for name, one in found.items() if is_host(one))
        return [one for one in found.values() if not is_host(one)]

    def outputs(self, inputs: Sequence[Value]) -> dict[str, Value]:
        """All outputs by name."""
        with apart():
            moving = iter(self(*inputs))
        names = self.of[0].outputs
        return {name: self.fixed[name] if name in self.fixed else next(moving) for name in names}


def is_host(value: Value) -> bool:
    """Whether a value is on the host: an array, nothing, or a list of such."""
    if isinstance(value, list):
        return all(map(is_host, value))
    return not isinstance(value, Tensor)


def is_foreign(value: Value) -> bool:
    """Whether a value is, or holds, what graphs do not have: elements that are codes, maps."""
    if isinstance(value, list):
        return any(map(is_foreign, value))
    return isinstance(value, (Coded, dict))


def _key(value: Value) -> Hashable:
    """What a recording may depend on."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype
    if isinstance(value, list):
        return tuple(map(_key, value))
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return id(value)  # a constant, which lives as long as its graph
    if isinstance(value, (np.ndarray, np.generic)):
        is_text = value.dtype == object
        return value.dtype.str, value.shape, str(value.tolist()) if is_text else value.tobytes()
    return value


class _Whole(NamedTuple):
    """A stretch that is all of a body, for inputs of some shapes and dtypes."""

    stretch: _Stretch
    #: Its key among those that are known.
    key: Hashable
    #: The positions of the body's inputs that it takes.
    places: tuple[int, ...]


def _signature(body: Body, inputs: Sequence[Value]) -> Hashable | None:
    """What the recording of a whole body depends on; None unless all inputs are tensors."""
    if not all(isinstance(x, Tensor) for x in inputs):
        return None
    return id(body), *map(_key, inputs)


class Stretches:
    """How a model's bodies are run: in stretches, between the nodes that are known to read."""

    def __init__(self, weights: Weights, exact: bool = True) -> None:
        #: The parameters, which parts have as they are, not as inputs.
        self.weights = weights
        #: Whether parts compute to the bit what their nodes do (`Module.compile`).
        self.exact = exact
        #: By body, the positions of nodes that have read a value.
        self._cuts: dict[int, set[int]] = {}
        #: Keeps bodies alive, so that no other one gets their identity.
        self._held: dict[int, Body] = {}
        self._parts: dict[tuple[int, int, int], _Part] = {}
        self._known: OrderedDict[Hashable, _Stretch | None] = OrderedDict()
        self._whole: dict[Hashable, _Whole] = {}

    def replayed(self, body: Body, inputs: Sequence[Value]) -> list[Value] | None:
        """The outputs of a body that is one stretch, if it has been run for such tensors."""
        found = self._whole.get(_signature(body, inputs))
        if found is None:
            return None
        try:
            made = found.stretch.outputs([inputs[i] for i in found.places])
        except GraphError:
            if not found.stretch.failures:
                raise
            self._whole.clear()  # `run` will learn where it reads a value
            return None
        except VALUES:
            return None  # `run` will find the node
        self._known.move_to_end(found.key)
        return [made[name] for name in body.outputs]

    def run(self, frame: Frame) -> None:
        """Runs the nodes of a frame."""
        nodes, at = frame.body.nodes, 0
        self._held[id(frame.body)] = frame.body
        cuts = self._cuts.setdefault(id(frame.body), set())
        while at < len(nodes):
            if at in cuts:
                frame.advance(at)
                at += 1
                continue
            end = min((cut for cut in cuts if cut > at), default=len(nodes))
            at = end if self._runs_part(frame, at, end) else at

    def _runs_part(self, frame: Frame, start: int, end: int) -> bool:
        """Runs nodes in a row; or finds that they cannot be recorded, and where to cut them."""
        is_new = (id(frame.body), start, end) not in self._parts
        part = self._part(frame.body, start, end)
        values = {name: frame.find(name) for name in part.given}
        if any(map(is_foreign, values.values())):
            self._learn(frame, start, end)
            return True
        key = (id(frame.body), start, end, *map(_key, values.values()))
        if not is_new and key not in self._known:  # sizes that come once are not worth a graph
            self._known[key] = None
            self._learn(frame, start, end)
            return True
        found = self._recorded(frame, part, key, values)
        if found is None:
            return False
        if frame.outer is None and end - start == len(frame.body.nodes):
            self._note_whole(frame, part.body, _Whole(self._known[key], key, ()), list(values))
        frame.values.update(found)
        frame.drop(part.dead)
        return True

    def _recorded(
        self, frame: Frame, part: _Part, key: tuple[Any, ...], values: Mapping[str, Value]
    ) -> dict[str, Value] | None:
        """The outputs of a part, recorded or replayed; None if a node reads a value, where the body
        is cut from then on."""
        stretch = self._known.get(key) or self._made(frame, part.body, values)
        self._known[key] = stretch
        self._known.move_to_end(key)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
            self._whole.clear()
        try:
            return stretch.outputs([one for one in values.values() if not is_host(one)])
        except GraphError:
            if not stretch.failures:
                raise
            del self._known[key]
            self._cut(frame.body, key[1] + stretch.failures.pop())
            return None
        except VALUES:
            self._learn(frame, *key[1:3])
            raise  # unless a node has raised an error that names it

    def _note_whole(self, frame: Frame, part: Body, whole: _Whole, names: Sequence[str]) -> None:
        """Notes a stretch that needs nothing but a body's inputs, and makes all of its outputs."""
        inputs = frame.body.inputs
        signature = _signature(frame.body, [frame.values[name] for name in inputs])
        if signature and set(names) <= set(inputs) and set(frame.body.outputs) <= set(part.outputs):
            places = tuple(map(inputs.index, names))
            self._whole[signature] = whole._replace(places=places)

    def _learn(self, frame: Frame, start: int, end: int) -> None:
        for at in range(start, end):
            before = frame.reads
            frame.advance(at)
            if frame.reads > before:
                self._cut(frame.body, at)

    def _cut(self, whole: Body, at: int) -> None:
        """Notes that a node reads a value: a body is recorded before and behind it, or nowhere."""
        every = range(len(whole.nodes))
        self._cuts[id(whole)].update(every if is_indivisible(whole) else [at])

    def _made(self, frame: Frame, part: Body, values: Mapping[str, Value]) -> _Stretch:
        host = {name: one for name, one in values.items() if is_host(one)}
        made = _Stretch(part, frame.device, host, self.weights)
        made.eval()
        made.graph(exact=self.exact)
        return made

    def _part(self, whole: Body, start: int, end: int) -> _Part:
        key = (id(whole), start, end)
        if key not in self._parts:
            self._parts[key] = _part(whole, start, end, self.weights)
        return self._parts[key]


def _part(whole: Body, start: int, end: int, weights: Weights) -> _Part:
    nodes = whole.nodes[start:end]
    later = {x for node in whole.nodes[end:] for x in reads_of(node)} | set(whole.outputs)
    made = [y for node in nodes for y in node.outputs if y]
    inside = set(made)
    taken = dict.fromkeys(x for node in nodes for x in sorted(reads_of(node)) if x not in inside)
    fixed = (x for x in taken if x in whole.constants and x not in weights)
    known = {x: whole.constants[x] for x in fixed}
    given = tuple(x for x in taken if x not in known)
    outputs = tuple(y for y in dict.fromkeys(made) if y in later)
    own = tuple(x for x in given if x not in weights)
    dead = (x for names in whole.dead[start:end] for x in names)
    dead = tuple(x for x in dead if not (x in inside or x in weights or x in whole.constants))
    return _Part(body(whole.name, given, outputs, nodes, known), own, dead)
