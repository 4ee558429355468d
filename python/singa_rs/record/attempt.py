"""A recording of a call of a graph function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from .. import _core
from .._core import InternalError
from ..tensor import Tensor
from .call import Call
from .effects import Effects, Undo, changes, effects, flags_set, kind
from .left import Leaving
from .memory import changed, is_flagged, matches, pattern
from .options import Options
from .reads import Reads
from .returned import Returned
from .snapshot import Snapshot
from .state import CAUGHT_READ, LATE_STATE
from .symbols import Symbols, holds_number
from .tracers import Tracers, twin
from .tracing import Traced, trace
from .trees import replace
from .unseen import Watching, may_answer_otherwise
from .verifier import VerifiedGraph


def apart(given: Sequence[Tensor], shown: Iterable[Tensor]) -> Sequence[Tensor]:
    """The arguments, apart from the tensors that are about to show what a run makes: they keep what
    these show now."""
    ids = set(map(id, shown))
    return [twin(x) if id(x) in ids else x for x in given] if ids else given


class Attempt:
    """A recording of a call, with the attributes before and after."""

    def __init__(
        self,
        call: Call,
        before: Snapshot,
        undo: Undo,
        previous: Attempt | None = None,
        moving: Collection[str] = (),
        leaves: bool | None = False,
    ) -> None:
        """`moving`: paths of numbers that change from call to call, which are symbolic. `leaves`:
        whether each run leaves tensors of its own in the attributes that the step sets to some;
        with None, if it can."""
        #: When it began, by `perf_counter`.
        self.started = perf_counter()
        self.call, self.before = call, before
        #: The attributes in the memory of an argument, with its index and their distance from it.
        self.held = _held(call.tensors, before)
        tracers = Tracers((call.args, call.kwargs), call.known)
        self.tapping = undo.tapping
        self.symbols = Symbols(before.items, moving, call.root)
        #: What leaves tensors in attributes, if that is not shown by the same tensors.
        self.leaving = None
        if leaves is not False:
            self.leaving = Leaving(call, before, tracers, has_to=leaves is True)
        returned = Returned(before)
        run = self._wrapped(partial(call.run, tracers.given), returned)
        arguments = [*tracers.tensors, *call.carried.values()]
        with tracers, _watching(before, previous) as watching:
            held, lists = before.tensors, tracers.containers
            self.traced: Traced = trace(call.device, arguments, run, undo, held, lists)
        self._look_after(tracers, watching)
        obstacles = self._obstacles(tracers, returned)
        self._obstacle = next(filter(None, obstacles), None)
        #: The graph to run; None until `plan` or `take_graph_of`.
        self.verified: VerifiedGraph | None = None
        #: For which numbers it holds.
        self.guards = self.symbols.guards
        #: The arguments, as the result has them.
        self._given: Sequence[Tensor] = call.tensors
        self._lists = call.lists
        #: The warning about the graph that was shown before.
        self._known_fault: str | None = None

    def _wrapped(self, run: Callable[[], Any], returned: Returned) -> Callable[[], Any]:
        """The call, with all that looks at what it does."""
        run = self.symbols.around(returned.around(run), replace)
        run = self.tapping.around(run)
        return run if self.leaving is None else self.leaving.around(run)

    def _look_after(self, tracers: Tracers, watching: Watching) -> None:
        """Looks at what the call has done."""
        call = self.call
        #: The attributes that the step sets on its arguments, by index of the argument.
        self.marks = tracers.marks(call.tensors)
        self.after = tracers.restore(call.look, call.root)
        self.changes = changes(self.before, self.after)
        self.flags = flags_set(self.changes, self.before, self.after, call.carried)
        #: What the step does that the recording does not show.
        self.unseen = watching.found(self.after, self.symbols.results)
        if self.leaving is not None and self.leaving.is_idle:
            self.traced.results.take_first()
            self.leaving = None

    def _obstacles(self, tracers: Tracers, returned: Returned) -> Iterator[str | None]:
        """Why no graph can do what was recorded, as texts."""
        before, recording = self.before, self.traced.recording
        yield CAUGHT_READ if recording.was_read else None
        yield LATE_STATE if recording.state_is_late else None
        yield tracers.difference() or self.traced.results.obstacle
        yield tracers.alias(before, self.after) or returned.obstacle
        yield None if self.leaving is None else self.leaving.obstacle

    def plan(self, options: Options) -> None:
        """Makes a graph of the recording, whose runs its tensors show from then on."""
        recording = self.traced.recording
        try:
            graph = options.graph_of(recording, self.call.training)
            self.verified = options.verified(recording, graph)
        except InternalError as error:
            self._obstacle = str(error)

    def take_graph_of(self, equal: Attempt) -> None:
        """Uses the graph of an equal recording, whose runs this one's tensors show from then on."""
        equal.graph.adopt(self.traced.recording)
        self.verified, self._known_fault = equal.verified, equal.verified.fault

    @property
    def graph(self) -> _core.Graph:
        """The graph of the recording."""
        return self.verified.graph

    @property
    def fault(self) -> str | None:
        """The warning about the graph, if it is a new one."""
        fault = self.verified.fault
        return None if fault is self._known_fault else fault

    def obstacle(self) -> str | None:
        """Why no graph can do what the call does, as text; None if the graph can."""
        if self._obstacle is None and not self.graph.fits(self.call.tensors):
            return "the step writes the memory of an argument that it also reaches in another way"
        return self._obstacle

    def is_followed_by(self, before: Snapshot) -> str | None:
        """None if the attributes before the next call are as this one left them, apart from those
        that it changed itself; else one that was changed since, as text."""
        captured = frozenset(self.graph.captured())
        # Their influence shows in the recordings, or guards decide on them.
        loose = before.loose | self.after.loose | self.guards.places.keys()
        loose |= set() if self.leaving is None else self.leaving.touched
        for path, item in before.items.items():
            known = self.after.items.get(path)
            if path in loose:
                continue
            if known is None:
                return f"attribute {path} is new"
            if path in self.changes or matches(pattern(known.value, captured), item.value):
                continue
            return f"attribute {path} {changed(known.value, item.value)}"
        gone = self.after.items.keys() - before.items.keys() - loose
        return f"attribute {min(gone)} is gone" if gone else None

    def is_for(self, now: Snapshot) -> str | None:
        """None if the tensors whose `requires_grad` the step sets are found with the flags that it
        has found; else one that is not, as text."""
        for path in self.flags:
            old, new = self.before.items[path].value, now.items.get(path)
            if new is not None and new.value != old and is_flagged(old, new.value):
                return f"attribute {path} {changed(old, new.value)}"
        return None

    def undecided(self, later: Attempt) -> frozenset[str]:
        """Loose items that differ before two recordings that are equal nevertheless, and which no
        code reads; numbers have guards instead."""
        ours, theirs = self.before.items, later.before.items
        differ = (
            path
            for path in self.before.loose | later.before.loose
            if path not in ours or path not in theirs or ours[path].value != theirs[path].value
        )
        others = [p for p in differ if p not in theirs or not holds_number(theirs[p])]
        if not others:
            return frozenset()
        reads = Reads(later.before, {**ours, **theirs})
        return frozenset(path for path in others if path not in reads)

    def replaced(self, now: Snapshot) -> set[str]:
        """The paths of tensors that the step reads, and the program has replaced since by others
        of their kind."""
        if self.verified is None:
            return set()
        captured, after = set(self.graph.captured()), self.after.spots()
        held = {p: spot for p, spot in now.spots().items() if p in after and p not in self.changes}
        differ = {p for p, spot in held.items() if after[p] != spot and after[p].block in captured}
        kinds = (self.after.items, now.items)
        return {p for p in differ if len({items[p].value.meta for items in kinds}) == 1}

    @property
    def left_paths(self) -> set[str]:
        """The paths of what each run leaves."""
        return set() if self.leaving is None else self.leaving.paths

    def carried(self) -> set[str]:
        """The paths of tensors that the step reads and replaces by others."""
        spots, captured = self.before.spots(), set(self.graph.captured())
        replaced = (self.changes.keys() & self.after.tensors.keys()) | self.left_paths
        return {path for path in replaced if path in spots and spots[path].block in captured}

    def let_go(self) -> None:
        """Forgets all that a comparison with a later recording does not need, so that it keeps no
        memory."""
        self.call.let_go()
        self._given, self._lists = (), []
        self.call.root = None  # the model keeps the attempt, which must not keep the model alive
        self.before.let_go()
        self.after.let_go()
        self.changes = {
            path: (old and old.alone(), new and new.alone())
            for path, (old, new) in self.changes.items()
        }

    def run(self) -> list[Tensor]:
        """Runs the graph once on the call's arguments."""
        before, after = self.before.tensors, self.after.tensors
        replaced = [t for path, t in before.items() if after.get(path) is not t]
        self._given = apart(self.call.tensors, replaced)
        return self.verified.run(self.call.tensors)

    def graphs(self) -> list[_core.Graph]:
        """The graphs of which a run may have started."""
        if self.verified is None:
            return []
        return [graph for graph in (self.graph, self.verified.recorded) if graph is not None]

    def build(self, made: Sequence[Tensor]) -> Any:
        """The result of the call, from what a run of its graph made."""
        held = self.before.tensors
        built = self.traced.results.build(self._given, made, held, self._lists)
        if self.leaving is not None:
            self.leaving.leave(built.values, self.call.root, None)
            built = built.result
        return self.tapping.deliver(built)

    def _differences(self, later: Attempt) -> Iterator[str | None]:
        """How the recordings differ, as texts."""
        yield self.traced.recording.difference(later.traced.recording)
        yield self.traced.results.difference(later.traced.results)
        if self.tapping.probes != later.tapping.probes:
            yield "the taps that the step reaches"
        if self.marks != later.marks:
            yield "the attributes that the step sets on its arguments"
        yield later.unseen.difference()

    def compare(self, later: Attempt) -> Effects | str:
        """What both do to the attributes, if the recordings are the same; else the first
        difference, as text."""
        if difference := next(filter(None, self._differences(later)), None):
            return difference
        for path in self.changes.keys() - later.changes.keys() - later.symbols.results.keys():
            left, found = self.after.items.get(path), later.before.items.get(path)
            if kind(left) != kind(found):
                return f"attribute {path}, which one of them alone changed"
        flags = dict(self.flags.items() & later.flags.items())
        found = effects(self.changes, later.changes, later.after, later.symbols.results, flags)
        spots, captured = later.before.spots(), set(self.graph.captured())
        for path in found.kept if isinstance(found, Effects) else ():
            is_answered = path in self.traced.results.paths
            if is_answered or path in spots and spots[path].block in captured:
                return f"attribute {path}, which the step may read before replacing it"
        return found


def _watching(before: Snapshot, previous: Attempt | None) -> Watching:
    """A look at what a recording will not show. The first of a function is not looked at closely:
    only a replay of it would leave that out."""
    if previous is None:
        return Watching(before, None, False)
    return Watching(before, previous.unseen, may_answer_otherwise(before.functions))


def _held(arguments: Sequence[Tensor], before: Snapshot) -> dict[str, tuple[int, int]]:
    given = {x.block_id: (i, x.offset) for i, x in enumerate(arguments)}
    return {
        path: (given[spot.block][0], spot.offset - given[spot.block][1])
        for path, spot in before.spots().items()
        if spot.block in given and path not in before.outside
    }
