"""A step that two recordings agree on: its guards and its replay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from .. import _core, viz
from .._core import signature
from ..tensor import Tensor
from .attempt import Attempt, apart
from .call import staged
from .effects import Effects
from .items import is_container
from .left import put
from .memory import changed, matches, pattern
from .snapshot import Snapshot
from .symbols import evaluator
from .trees import first_ones, given_name, has_attributes, is_numeric, is_row
from .verifier import profile

_A, _M, _R = TypeVar("_A"), TypeVar("_M"), TypeVar("_R")

#: Recordings that are made only to compare them take this part of the time at most, and are at
#: least so many seconds apart.
_PART, _LEAST = 1e-3, 30.0


def seldom(cost: float) -> float:
    """How many seconds to replay a graph before it is compared with a new recording, for the
    seconds that this takes."""
    return max(cost / _PART, _LEAST)


class Entry:
    """A graph and its guards: everything that a call must match for the graph to be replayed."""

    def __init__(
        self, attempt: Attempt, effects: Effects, undecided: frozenset[str] = frozenset()
    ) -> None:
        call, self.verified, self.effects = attempt.call, attempt.verified, effects
        #: When it is to be compared with a new recording, by `perf_counter`.
        self.due = attempt.started + seldom(perf_counter() - attempt.started)
        self.function, self.training, self.paused = call.function, call.training, call.paused
        self.signature, self.requires_grad = call.signature, call.requires_grad
        self.device, self.results = call.device, attempt.traced.results
        self.tapping, self.marks = attempt.tapping, attempt.marks
        self.guards = attempt.guards
        left_out = self.guards.places.keys() | effects.kept.keys()
        undecided -= effects.flags.keys()
        #: Items that the step was found not to depend on.
        self.undecided = undecided - left_out
        items = attempt.before.items.items()
        captured = frozenset(self.graph.captured())
        self.departures = self.graph.departures
        left_out |= undecided
        #: Of these, containers, which may hold more items.
        self._open = [p for p in undecided if is_container(attempt.before.items.get(p))]
        self.wanted = {p: pattern(i.value, captured) for p, i in items if p not in left_out}
        self.held = {p: where for p, where in attempt.held.items() if p not in left_out}
        #: The attributes whose tensors are arguments of the graph, too, the last ones.
        self._carried = list(call.carried)
        own = call.tensors[: len(call.tensors) - len(self._carried)]
        #: Whether the arguments are just tensors in order, all that `accept` can check.
        is_other = any(call.made) or any(call.parameters) or any(map(has_attributes, own))
        self._is_row = is_row(call.tree, len(own)) and not is_other
        self._same = call.same
        self._looks = [(given_name(x), x.shape) for x in own]
        self.shown = call.shown()
        self._runs_before = self.graph.runs
        #: Whether a replay leaves all attributes as another one may find them, if its guards hold.
        self.repeats = effects.repeats and effects.numbers.keys() <= self.guards.places.keys()
        self._makers = [evaluator(made) for _, made in effects.numbers.values()]
        #: How many changes that other graphs have to notice a replay makes to numbers.
        self.noted = sum(place.is_noted(call.root) for place, _ in effects.numbers.values())
        #: What leaves tensors in attributes, if that is not shown by the same tensors.
        self._leaving = attempt.leaving
        if self._leaving is not None:
            self.noted += self._leaving.noted(call.root)
            self.repeats = self.repeats and self._leaving.repeats
        self._picture: viz.Graph | None = None

    def picture(self, title: str, names: Mapping[int, str]) -> viz.Graph:
        """The graph for inspection by users: always the same object. `names` are those of the
        model's tensors by `block_id`."""
        if self._picture is None or not self._picture.shows(self.graph):
            self._picture = viz.Graph(self.graph)
        self._picture.title, self._picture.names = title, names
        return self._picture

    @property
    def graph(self) -> _core.Graph:
        """The graph that a replay runs."""
        return self.verified.graph

    @property
    def runs(self) -> int:
        """How many calls were replayed."""
        return self.graph.runs - self._runs_before

    @property
    def is_simple(self) -> bool:
        """Whether a replay only runs the graph on distinct tensors in order, and changes numbers
        for which it may hold again: it leaves no tensor, serves no tap and is not verified."""
        has_more = (
            self._leaving is not None
            or self.effects.kept
            or not self.repeats
            or self.held
            or self.marks
            or self.tapping.probes
        )
        is_otherwise = has_more or self.paused or self.verified.recorded is not None
        are_distinct = self._same in (None, tuple(range(len(self.requires_grad))))
        return self._is_row and are_distinct and not is_otherwise

    def may_follow(self, other: Entry) -> bool:
        """Whether a run of another graph changes nothing but numbers that this one looks at."""
        effects = other.effects
        if effects.kept or effects.flags or other._leaving is not None or not self._makers:
            return False
        return effects.numbers.keys() <= self.guards.places.keys()

    def tell(self, root: Any, attributes: Snapshot) -> None:
        """Lets the attributes that another call found know of the numbers that a run has set."""
        for place, _ in self.effects.numbers.values():
            if not place.is_noted(root):
                attributes.follow(place.owner(root), place.key, place.read(root))

    # ---- matching -------------------------------------------------------------------------------

    def accept(self, args: tuple[Any, ...], attributes: Snapshot) -> list[Any] | None:
        """The tensors to run the graph on, if the arguments are tensors or arrays that fit it."""
        tensors: list[Any] = []
        if len(args) != len(self._looks) or not self._is_row:
            return None
        known = attributes.known
        if known is not None and (
            first_ones(args) != self._same or any(id(x) in known for x in args)
        ):
            return None
        for x, want, (name, shape) in zip(args, self.requires_grad, self._looks, strict=False):
            if type(x) is Tensor:
                if not _is_ordinary(x, want) or given_name(x) != name:
                    return None
                tensors.append(x)
            elif type(x) is np.ndarray and is_numeric(x) and want and name is None:
                if x.shape != shape:  # before it is copied
                    return None
                tensors.append(staged(x, self.device))
            else:
                return None
        for path, want in zip(self._carried, self.requires_grad[len(args) :], strict=True):
            x = attributes.tensors[path]
            if type(x) is not Tensor or not _is_ordinary(x, want):
                return None
            tensors.append(x)
        if signature(tensors) != self.signature:
            return None
        return tensors if self.misfit(tensors, attributes.tensors) is None else None

    def changes(self, root: Any) -> Sequence[Any] | None:
        """What a step sets numbers to; None if it finds other numbers than the recording wants, or
        none from which it could compute them."""
        if not self._makers:
            return ()
        numbers = self.guards.numbers(root)
        if not self.guards.hold(numbers):
            return None
        made = self._made(numbers)
        return made if len(made) == len(self._makers) else None

    def _made(self, numbers: Mapping[str, Any]) -> list[Any]:
        """What a step that finds these numbers sets numbers to, up to the first that cannot be
        computed."""
        made = []
        try:
            for make in self._makers:
                made.append(make(numbers))
        except Exception:  # of arithmetic, such as a division by zero
            return made
        return made

    def mismatch(self, now: Snapshot, root: Any) -> str | None:
        """How the attributes of a model differ from those recorded, as text; None if they match."""
        items, effects = now.items, self.effects
        if self.graph.departures != self.departures:
            return "a tensor that the step may use was rebound to other memory"
        for path, want in self.wanted.items():
            item = items.get(path)
            if item is None or not matches(want, item.value):
                how = "is gone" if item is None else changed(want, item.value)
                return f"attribute {path} {how}"
        for path, (place, _) in self.guards.places.items():
            item = items.get(path)
            if item is None or not place.is_at(item.owner, item.key, root):
                return f"attribute {path}, which changes from step to step, was replaced"
        if (otherwise := self.guards.mismatch(root)) is not None:
            return otherwise
        for path, kept in effects.kept.items():
            item = items.get(path)
            if item is None or not kept.admits(item, now.tensors.get(path), root):
                return f"attribute {path}, which each step sets, was replaced"
        if self._leaving is not None and (path := self._leaving.misplaced(now, root)):
            return f"attribute {path}, which each step sets, is in another object"
        computed = len(self._made(self.guards.numbers(root)))
        if computed < len(self._makers):
            path = list(effects.numbers)[computed]
            return f"attribute {path} cannot be computed from the present numbers"
        known = self.wanted.keys() | self.guards.places.keys() | effects.kept.keys()
        more = items.keys() - known
        more = {path for path in more if not self._is_undecided(path)} if more else more
        return f"attribute {min(more)} is new" if more else None

    def _is_undecided(self, path: str) -> bool:
        below = (path.startswith(f"{known}.") for known in self._open)
        return path in self.undecided or any(below)

    def misfit(self, tensors: Sequence[Tensor], attributes: Mapping[str, Tensor]) -> str | None:
        """How the arguments' memory differs from that recorded, as text; None if it matches."""
        for path, (i, distance) in self.held.items():
            held, given = attributes[path], tensors[i]
            if held.block_id != given.block_id or held.offset - given.offset != distance:
                return f"attribute {path} no longer shares the argument's memory as when recorded"
        if not self.graph.fits(tensors):
            return "the arguments share memory with each other or the model as they did not before"
        return None

    # ---- replay ---------------------------------------------------------------------------------

    def replay(
        self,
        tensors: Sequence[Tensor],
        root: Any,
        snapshot: Snapshot,
        changes: Sequence[Any],
        lists: Sequence[Any],
    ) -> Any:
        """Runs the graph once, then sets numbers; returns what the function would. `lists` are the
        lists and dictionaries among the arguments."""
        self.tapping.let_go()
        given = apart(tensors, (kept.tensor for kept in self.effects.kept.values()))

        take_effect = self.effect(root, snapshot, changes)
        held = dict(snapshot.tensors) if self.results.paths else {}  # as the run finds them

        def finished(made: list[Tensor]) -> Any:
            take_effect()
            for number, marks in self.marks:
                for name, value in marks.items():
                    setattr(tensors[number], name, value)
            built = self.results.build(given, made, held, lists)
            if self._leaving is None:
                return built
            self._leaving.leave(built.values, root, snapshot)
            return built.result

        return self.tapping.deliver(uninterrupted(self._run, tensors, finished))

    @property
    def _run(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """What runs the graph: no code in Python where nothing is timed or compared."""
        if profile.level or self.verified.recorded is not None:
            return partial(profile.run, self.verified.run)
        return self.graph.run

    def effect(self, root: Any, snapshot: Snapshot, changes: Sequence[Any]) -> Callable[[], None]:
        """What sets the attributes that the step sets, once or again; `snapshot` gets to know."""
        latest: list[Sequence[Any]] = []

        def take_effect() -> None:
            if not latest:  # another thread may have counted since they were computed
                now = self._made(self.guards.numbers(root)) if changes else ()
                latest.append(now if len(now) == len(changes) else changes)
            for (place, _), value in zip(self.effects.numbers.values(), latest[0], strict=True):
                put(place, root, value, snapshot)
            for kept in self.effects.kept.values():
                if kept.place.read(root) is not kept.tensor:
                    kept.place.write(root, kept.tensor)
            for path, flag in self.effects.flags.items():
                snapshot.tensors[path].requires_grad = flag

        return take_effect


def uninterrupted(run: Callable[[_A], _M], given: _A, finish: Callable[[_M], _R]) -> _R:
    """`finish(run(given))`, of which an interrupt (Ctrl-C) leaves no half: where it comes after the
    run, the rest is done before it is raised."""
    # Python sees no interrupt between a run in C and the dictionary that gets its results.
    made: dict[int, _M] = defaultdict(partial(run, given))
    try:
        return finish(made[0])
    except BaseException:
        for one in made.values():
            finish(one)
        raise


def _is_ordinary(x: Tensor, requires_grad: bool) -> bool:
    """Whether a tensor is a value alone, with this flag."""
    is_more = x._stores_grad or x._creator or x._is_cut or has_attributes(x)
    return x.requires_grad is requires_grad and not is_more
