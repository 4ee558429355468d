"""Graph functions: methods that are recorded until two recordings agree, then replayed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from time import perf_counter
from typing import Any, NamedTuple

from .. import _core
from .._core import GraphError, running
from .._core import changes as count_changes
from ..notices import warn_user
from ..shown import listed
from .attempt import Attempt
from .attempts import Attempts
from .call import Call
from .effects import Effects, Undo
from .entry import Entry
from .fast_path import FastPath
from .history import History
from .lock import UserCodeLock
from .options import Options
from .ready import Lately, Ready
from .saving import form_of
from .snapshot import Snapshot
from .tracing import uncollected
from .verifier import profile

#: The number of unequal recordings in a row after which a function stays eager.
MOST_UNEQUAL = 4
#: The same for recordings in a row none of which could be replayed. Of those that hold for some
#: numbers alone, no more than the graphs that are kept.
MOST_FRUITLESS = 32
#: How many graphs a function keeps, and how many bytes their results and constants may take.
MOST_GRAPHS, MOST_BYTES = 16, 1 << 30


def _late(replayed: Entry, difference: str) -> str:
    return (
        f"was recorded again after {replayed.runs} replays, and the recordings differ: "
        f"{difference}; replays since the last recording may have left that out"
    )


class _Made(NamedTuple):
    """The result of a call that was recorded and run."""

    result: Any


_NESTED = (
    "called from user code that a graph is running; there, call a model compiled with "
    "use_graph=False"
)


def _held(graph: _core.Graph) -> int:
    """Bytes that a graph keeps from run to run."""
    memory = graph.memory()
    return memory["results"] + memory["constants"]


class GraphFunction:
    """A method of a model as a graph.

    Each call is exactly one step. A call for which there is no graph yet is recorded, and its own
    recording is run. Once two recordings in a row are the same stream of operations, the graph
    replays calls that have the same key: the arguments' structure, shapes, strides, dtypes,
    requires_grad and shared memory, arguments that are not tensors, the mode, the tensors in the
    attributes of the model, and scalars there; of numbers that change, the decisions on them. A
    call is recorded again and compared after every `check_every` replays; by default seldom, by
    time; never if that is 0. Tensors that a step reads in attributes and replaces by others, such
    as recurrent states, are arguments of the graph.
    """

    def __init__(self, name: str, options: Options, carried: set[str] | None = None) -> None:
        self.name, self.options, self.check_every = name, options, options.check_every
        self.history = History()
        #: Why the function runs eagerly for good, if it does.
        self.eager: str | None = None
        self._entries: OrderedDict[Hashable, list[Entry]] = OrderedDict()
        self._attempts = Attempts(MOST_GRAPHS, carried)
        self._unequal = self._fruitless = 0
        #: What has been warned of.
        self._warned: set[str] = set()
        self._lock = UserCodeLock(name)
        #: Whether a call is being recorded, by the thread that holds the lock.
        self._is_recording = False
        #: What the last calls replayed.
        self._lately = Lately()
        #: By the mode: the arguments of the call recorded last, without their values.
        self.forms: dict[bool, tuple[Any, Any] | None] = {}

    @property
    def entries(self) -> list[Entry]:
        """The graphs that are replayed, with their keys; the most recently used last."""
        return [entry for entries in self._entries.values() for entry in entries]

    @property
    def result_bytes(self) -> int:
        """What the results of its graphs take from run to run."""
        return sum(entry.graph.memory()["results"] for entry in self.entries)

    def __call__(
        self,
        function: Callable[..., Any],
        root: Any,
        training: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Calls `function(root, *args, **kwargs)` in training or evaluation."""
        if not kwargs:
            found = self._lately.find(function, root, training, args)
            if found is not None and not self._is_due(found.ready.entry):
                return self._replay(found.ready, found.tensors, root, found.changes)
            del found  # it may hold what the program has let go
        self._lately.let_go()
        return self._call(Call(function, root, training, args, kwargs))

    def fast_path(self) -> FastPath | None:
        """The fast path for calls like the last one, if a replay only has to run the graph."""
        ready = self._lately.latest
        if ready is None or profile.level or self.check_every or not ready.entry.is_simple:
            return None
        if ready.entry.effects.numbers and ready.attributes.turns:
            return None
        seconds = ready.entry.due - perf_counter() if self.check_every is None else None
        return FastPath(ready, self._lately.ran, seconds)

    def explain(self) -> str:
        """The function's graphs, keys and recordings, as text."""
        lines = [f"{self.name}: " + (f"runs eagerly: {self.eager}" if self.eager else "recorded")]
        for index, entry in enumerate(self.entries):
            graph = entry.graph
            lines.append(f"  graph {index}: {graph.nodes} operations, replayed {entry.runs} times")
            lines += [f"    key: {line}" for line in entry.shown]
            lines.append(f"    key: {len(entry.wanted)} guarded attributes")
            lines += [f"    key: {line}" for line in entry.guards.shown()]
            lines += [f"    {line}" for line in entry.effects.shown()]
            lines += [f"    does not depend on {path}" for path in sorted(entry.undecided)]
            lines.append(f"    verified: {entry.verified.outcome}")
        lines += [f"  {event}" for event in self.history.events]
        return "\n".join(lines)

    # ---- one call -------------------------------------------------------------------------------

    def _call(self, call: Call) -> Any:
        if self.eager is not None or call.is_eager():
            return self._run(call)
        call.check(self.name)
        if running():  # the holder of the lock may be waiting for this thread
            raise GraphError(f"{self.name}: {_NESTED}")
        with self._lock:
            ready = self._ready_or_made(call)
        if isinstance(ready, _Made):
            return ready.result
        changes = None if ready is None else ready.entry.changes(call.root)
        if changes is None:  # also where another thread has changed a number meanwhile
            return self._run(call)
        return self._replay(ready, call.tensors, call.root, changes, call.lists)

    def _run(self, call: Call) -> Any:
        """Calls the function itself."""
        with self.options.eagerly():
            return call.run()

    def _ready_or_made(self, call: Call) -> Ready | _Made | None:
        """What to replay, or the result if the call was recorded; None if it is to run eagerly.
        The caller holds the lock."""
        if self._is_recording:  # re-entered by this thread, from a signal handler or the like
            return None
        count, snapshot = count_changes(), call.look(watched=True)
        call.carry(self._attempts.carried, snapshot)
        call.identify(snapshot.known, snapshot.turns)
        entry, reason = self._find(call, snapshot)
        if entry is None or self._is_due(entry):
            return self._record(call, snapshot, entry, reason)
        self._fruitless = 0
        ready = Ready(entry, snapshot, count)
        if not snapshot.is_weak:
            self._lately.put(ready)
        return ready

    def _find(self, call: Call, now: Snapshot) -> tuple[Entry | None, str]:
        """The graph to replay, or None; and why a call like this is recorded."""
        reason = ""
        for entry in reversed(self._entries.get(call.key, ())):
            found = entry.mismatch(now, call.root) or entry.misfit(call.tensors, now.tensors)
            if found is None:
                self._entries.move_to_end(call.key)
                return entry, f"check_every={self.check_every or 'seldom'}"
            reason = reason or found
        return None, reason or self.history.what_is_new(call, call.key in self._attempts)

    def _is_due(self, entry: Entry) -> bool:
        """Whether a graph is to be compared with a new recording."""
        if self.check_every is None:
            return perf_counter() >= entry.due
        return self.check_every > 0 and entry.runs + 1 >= self.check_every

    def _replay(self, ready: Ready, tensors: Any, root: Any, changes: Any, lists: Any = ()) -> Any:
        entry, snapshot = ready.entry, ready.attributes
        known_fault = entry.verified.fault
        moves = entry.graph.moves if entry.effects.kept else 0
        turns = snapshot.turns
        try:
            result = entry.replay(tensors, root, snapshot, changes, lists)
        except Exception as error:
            name_written(error, entry.graph, root)
            raise
        if not entry.repeats or snapshot.is_weak or snapshot.turns != turns:
            self._lately.drop(ready)
        else:
            more = entry.graph.moves - moves if entry.effects.kept else 0
            self._lately.ran(ready, root, entry.noted + more)
        if (fault := entry.verified.fault) is not known_fault:
            warn_user(f"{self.name}: {fault}")
        return result

    # ---- recording ------------------------------------------------------------------------------

    @uncollected
    def _record(self, call: Call, before: Snapshot, due: Entry | None, reason: str) -> _Made | None:
        """Records the call and runs its own recording, or the equal one before it; None if no
        graph can do what the call does, which then has had no effect."""
        previous, otherwise = self._attempts.latest(call, before)
        self._is_recording = True
        try:
            attempt, undo = self._attempts.record(call, before, previous)
            try:
                verdict = previous.compare(attempt) if previous else None
                if isinstance(verdict, Effects):
                    attempt.take_graph_of(previous)
                else:
                    attempt.plan(self.options)
                verdict = attempt.obstacle() or verdict
            except BaseException:
                undo()
                raise
        finally:
            self._is_recording = False
        reason = otherwise or reason
        return self._run_recorded(attempt, verdict, previous, due, reason, undo)

    def _run_recorded(
        self,
        attempt: Attempt,
        verdict: Effects | str | None,
        previous: Attempt | None,
        due: Entry | None,
        reason: str,
        undo: Undo,
    ) -> _Made | None:
        """Runs a recording, unless it cannot be used."""
        call, obstacle = attempt.call, attempt.obstacle()
        try:
            self._count(attempt, verdict, due, reason)
            if isinstance(verdict, Effects):
                self._warn_of("unseen", attempt.unseen.warning())
            elif due is not None and verdict is not None:
                self._warn_of("late", _late(due, verdict))
            if obstacle is not None:
                self.history.note(call, reason, f"discarded: {obstacle}")
                undo(runs_again=True)
                return None
            made = attempt.run()
        except BaseException as error:
            undo(keep_state=True)
            for graph in attempt.graphs():
                name_written(error, graph, call.root)
            raise
        undo.forget()
        result = attempt.build(made)
        undo.nodes.ran()
        if due is not None and due in self._entries.get(call.key, ()):
            self._forget(call.key, due)
        if undo.nodes.later:
            self._settle_once(attempt, reason)
        else:
            self._settle(attempt, verdict, previous, reason)
        if attempt.fault is not None:
            warn_user(f"{self.name}: {attempt.fault}")
        return _Made(result)

    def _count(
        self, attempt: Attempt, verdict: Effects | str | None, due: Entry | None, reason: str
    ) -> None:
        """Counts recordings that are of no use; after too many the function stays eager. If its
        warning is raised as an error, the call has had no effect."""
        if due is None and self.history.owes({entry.verified for entry in self.entries}):
            self._stay_eager(f"replays do not make up for recordings; reason of the last: {reason}")
            return
        if isinstance(verdict, str):
            self._unequal += 1
            if self._unequal >= MOST_UNEQUAL:
                what = verdict if attempt.obstacle() is not None else f"they differ: {verdict}"
                count = f"{MOST_UNEQUAL} recordings in a row"
                self._stay_eager(f"{count} could not be used; for the last one, {what}")
            return
        self._unequal = self._unequal if verdict is None else 0
        is_of_use = due is not None or attempt.call.key not in self._entries
        self._fruitless = 0 if verdict is not None and is_of_use else self._fruitless + 1
        most = MOST_GRAPHS if attempt.guards.outcomes else MOST_FRUITLESS
        if self._fruitless >= most:
            count = f"{most} recordings in a row"
            self._stay_eager(f"{count} were never replayed; reason of the last one: {reason}")

    def _warn_of(self, kind: str, what: str | None) -> None:
        """Warns, once for a kind, of what replays do not do. If that is raised as an error, the
        call has had no effect."""
        if what is not None and kind not in self._warned:
            self._warned.add(kind)
            warn_user(f"{self.name}: {what}")

    def _settle_once(self, attempt: Attempt, reason: str) -> None:
        """Notes a recording that has run and is of no use again, and drops its graph."""
        self._lately.clear()
        self.history.note(
            attempt.call, reason, "done once, as something followed that no replay does"
        )
        self.forms[attempt.call.training] = form_of(attempt.call)
        attempt.let_go()
        self._limit()

    def _settle(
        self, attempt: Attempt, verdict: Effects | str | None, previous: Attempt | None, reason: str
    ) -> None:
        """Notes the outcome of a recording that has run, and keeps its graph if it is equal to the
        one before."""
        self._lately.clear()
        if isinstance(verdict, Effects):
            outcome = "same as the previous one; matching calls replay its graph"
        elif verdict is not None:
            outcome = f"differs from the previous one: {verdict}"
        else:
            outcome = "kept, to be compared with the next one"
        self.history.note(attempt.call, reason, outcome)
        if self.eager is None:
            self._attempts.keep(attempt, previous)
            if isinstance(verdict, Effects):
                self._keep(attempt, verdict, previous.undecided(attempt))
        self.forms[attempt.call.training] = form_of(attempt.call)
        attempt.let_go()
        self._limit()

    def _keep(self, attempt: Attempt, effects: Effects, undecided: frozenset[str]) -> None:
        key = attempt.call.key
        self._entries.setdefault(key, []).append(Entry(attempt, effects, undecided))
        self._entries.move_to_end(key)
        if self.check_every == 0:
            self._attempts.drop(attempt)

    def _limit(self) -> None:
        """Drops the least recently used graphs."""
        while len(found := self.entries) > 1 and (
            len(found) > MOST_GRAPHS or sum(_held(entry.graph) for entry in found) > MOST_BYTES
        ):
            key, entries = next(iter(self._entries.items()))
            self._forget(key, entries[0])

    def _forget(self, key: Hashable, entry: Entry) -> None:
        self._entries[key].remove(entry)
        if not self._entries[key]:
            del self._entries[key]

    def _stay_eager(self, reason: str) -> None:
        self.eager = reason
        self._lately.clear()
        self._entries.clear()
        self._attempts.clear()
        warn_user(f"{self.name}: runs eagerly from now on: {reason}")


def name_written(error: BaseException, graph: _core.Graph, root: Any) -> None:
    """Adds to an error the names of the model's tensors that the failed run has already written."""
    blocks = set(graph.written())
    if not blocks or len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    names = [name for name, state in root.get_states().items() if state.block_id in blocks]
    if names:
        written = f"already written in this step: {listed(names, 16)}"
        error.args = (f"{error.args[0]}; {written}",)
