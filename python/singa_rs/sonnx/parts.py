"""Where a graph is cut into parts, each of which is recorded and replayed as a graph function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..device import Device
from ..errors import GraphError
from ..layer.node import apart
from ..module import Module
from ..tensor import Tensor
from .body import Body, body, is_indivisible, reads_of
from .guesses import Guess, Guesses, is_repeatable, wrong
from .values import Coded, Value, to_array

if TYPE_CHECKING:
    from .imported import Weights


class Cuts:
    """Where a body is cut: the positions of nodes that read values."""

    #: A node whose guesses are wrong more often than this, and than in one of so many runs, is
    #: read from then on.
    _LEAST, _RUNS = 2, 8

    def __init__(self, whole: Body) -> None:
        self._body = whole  # kept alive, so that no other one gets its identity
        self.all: set[int] = set()
        #: Those of them whose values are not guessed.
        self.fixed: set[int] = set()
        self._hits = 0
        self._misses: Counter[int] = Counter()

    def add(self, at: int, is_fixed: bool = False) -> None:
        """Adds a node: a body is recorded before and behind it, or nowhere."""
        is_all = is_indivisible(self._body)
        found = range(len(self._body.nodes)) if is_all else [at]
        self.all.update(found)
        if is_fixed or is_all:
            self.fixed.update(found)

    def fix(self, positions: Iterable[int]) -> None:
        """Notes nodes whose values are not guessed."""
        for at in positions:
            self.add(at, is_fixed=True)

    def next(self, among: Iterable[int], at: int) -> int:
        """The first of some positions from `at` on, or the end of the body."""
        return min([cut for cut in among if cut >= at], default=len(self._body.nodes))

    def note_hit(self) -> None:
        """Notes that all guesses of a run were right."""
        self._hits += 1

    def note_misses(self, positions: Iterable[int]) -> None:
        """Notes the nodes whose guesses were wrong."""
        self._misses.update(positions)
        most = max(self._LEAST, self._hits // self._RUNS)
        self.fix(at for at, count in self._misses.items() if count > most)


class Part(NamedTuple):
    """Nodes in a row."""

    body: Body
    #: What they take besides the weights.
    given: tuple[str, ...]
    #: The values that nothing behind them needs.
    dead: tuple[str, ...]
    #: Whether they may be run once more than their results are used.
    is_repeatable: bool


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


class Stretch(Module):
    """A part of a graph for inputs of some shapes and given values on the host, and for what its
    nodes read, if that is guessed."""

    #: What has no effect on recordings.
    _unwatched = Module._unwatched | {"of", "noted", "fixed", "failures", "missed"}

    def __init__(
        self,
        part: Body,
        device: Device,
        host: Mapping[str, Value],
        weights: Weights,
        noted: Sequence[Guess] = (),
    ) -> None:
        super().__init__()
        self.weights = _Own(weights, part.inputs)
        object.__setattr__(self, "of", (part, device, host))
        object.__setattr__(self, "noted", noted)
        #: The outputs that are on the host, which follow from the shapes.
        object.__setattr__(self, "fixed", {})
        #: The positions of nodes that could not be recorded: a list, since attributes are restored
        #: when a recording fails.
        object.__setattr__(self, "failures", [])
        #: The positions of nodes whose guesses were wrong in the last run.
        object.__setattr__(self, "missed", set())

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs that are not on the host; if values are guessed, whether they were right."""
        from .running import Frame

        part, device, host = self.of
        frame = Frame(part, device, weights=self.weights)
        guesses = frame.guesses = Guesses(self.noted) if self.noted else None
        names = [x for x in part.inputs if x not in host and x not in self.weights]
        try:
            made = frame.run({**host, **dict(zip(names, inputs, strict=True))})
        except GraphError:
            self.failures.append(frame.at)
            raise
        found = dict(zip(part.outputs, made, strict=True))
        self.fixed.update((name, one) for name, one in found.items() if is_host(one))
        moving = tuple(one for one in found.values() if not is_host(one))
        return moving if guesses is None else (guesses.same(), *moving)

    @property
    def result_bytes(self) -> int:
        """What the results of its graphs take from run to run."""
        return sum(one.result_bytes for one in self._graphs.all())

    def outputs(self, inputs: Sequence[Value]) -> dict[str, Value] | None:
        """All outputs by name; None if a guess was wrong."""
        with apart():
            moving = iter(self(*inputs))
        if self.noted:
            same = to_array(next(moving))
            self.missed.clear()
            if 0 in same.tobytes():
                self.missed.update(wrong(self.noted, same))
                return None
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


def key_of(value: Value) -> Hashable:
    """What a recording may depend on."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype
    if isinstance(value, list):
        return tuple(map(key_of, value))
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return id(value)  # a constant, which lives as long as its graph
    if isinstance(value, (np.ndarray, np.generic)):
        is_text = value.dtype == object
        return value.dtype.str, value.shape, str(value.tolist()) if is_text else value.tobytes()
    return value


class Taken(NamedTuple):
    """What a part takes."""

    #: By name.
    values: dict[str, Value]
    #: Those of them that are not on the host.
    moving: list[Value]
    #: What a recording may depend on.
    key: tuple[Hashable, ...]

    @classmethod
    def of(cls, names: Sequence[str], values: Sequence[Value]) -> Taken | None:
        """None if one of the values is what graphs do not have."""
        moving, key = [], []
        for x in values:
            if type(x) is Tensor:  # as nearly all are
                moving.append(x)
                key.append((x.shape, x.dtype))
                continue
            if is_foreign(x):
                return None
            if not is_host(x):
                moving.append(x)
            key.append(key_of(x))
        return cls(dict(zip(names, values, strict=True)), moving, tuple(key))


def part_of(whole: Body, start: int, end: int, weights: Weights) -> Part:
    """The nodes from one position to before another."""
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
    inner = body(whole.name, given, outputs, nodes, known)
    return Part(inner, own, dead, is_repeatable(inner))
