"""A call of a graph function, and the recording of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from .. import _core
from .._core import GraphError, InternalError, signature
from ..autograd.inplace import is_intermediate
from ..autograd.mode import mode, training_scope
from ..autograd.order import has_history
from ..device import get_default_device
from ..tensor import Placeholder, Tensor, from_numpy
from ..tensor.keys import EXACT, Same
from .effects import Effects, Undo, changes, effects, kind
from .left import Leaving
from .memory import matches, pattern, text
from .options import Options
from .reads import Reads
from .snapshot import Snapshot
from .state import LATE_STATE
from .symbols import Symbols, holds_number
from .tracers import Tracers, is_itself, twin
from .tracing import Traced, trace
from .trees import attributes, first_ones, flatten, is_marked, leaves, replace
from .unseen import Watching, may_answer_otherwise
from .verifier import VerifiedGraph


class Call:
    """One call: its arguments, and the key that distinguishes it from other calls."""

    def __init__(
        self,
        function: Callable[..., Any],
        root: Any,
        training: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.function, self.root, self.training = function, root, training
        self.args, self.kwargs = admitted(args, kwargs, root)
        self.paused = bool(mode.paused)
        self.tensors: list[Tensor] = []
        self.tree = flatten((self.args, self.kwargs), self.tensors)
        #: The arguments that are known only by identity, and tensors with attributes that the
        #: program gave them.
        self.objects = [one for one in leaves((self.args, self.kwargs)) if is_object(one)]
        self.objects += [x for x in self.tensors if is_marked(x)]
        self.objects += attributes((self.args, self.kwargs))
        #: By path, tensors that steps replace in attributes: arguments of the graph, too, the last.
        self.carried: dict[str, Tensor] = {}
        self.device = self.tensors[0].device if self.tensors else get_default_device()
        #: In the key: operations are prepared for it, and their bits may depend on it.
        self.threads = self.device.num_threads

    def look(self, watched: bool = False) -> Snapshot:
        """What the call may read besides the tensors that it is given."""
        return Snapshot(self.root, self.objects, watched)

    def run(self, given: tuple[Any, Any] | None = None) -> Any:
        """Calls the function itself, with `given` in place of its arguments."""
        args, kwargs = given or (self.args, self.kwargs)
        _core.begin_step()
        with training_scope(self.training):
            return self.function(self.root, *args, **kwargs)

    def has_history(self) -> bool:
        """Whether gradients of the step would flow on, through an argument, to what made it."""
        return self.training and not self.paused and any(map(has_history, self.tensors))

    def check(self, name: str) -> None:
        """Rejects arguments that have no value.

        Raises:
            GraphError: an argument has no value.
        """
        for x in self.tensors:
            if isinstance(x, Placeholder):
                raise GraphError(f"{name}: got an unfilled {x!r}; fill it with copy_from first")

    def carry(self, paths: Iterable[str], now: Snapshot) -> None:
        """Takes the tensors at these paths as arguments, unless the program may tell them from what
        takes their place in a replay."""
        given = {x.block_id for x in self.tensors}
        found = {path: now.tensors[path] for path in sorted(paths) if path in now.tensors}
        if now.known is None:
            self.carried = {p: x for p, x in found.items() if _is_bare(x, given)}
        self.tensors += self.carried.values()

    def identify(self, known: frozenset[int] | None, turns: Hashable = ()) -> None:
        """Computes the key; `known` are tensors that the program also reaches in another way, if
        it may compare tensors by identity; `turns` as in `Snapshot`."""
        self.signature = signature(self.tensors)
        self.requires_grad = [x.requires_grad for x in self.tensors]
        #: Which of the tensors are identical, if the program may compare them.
        self.same = None if known is None else first_ones(self.tensors)
        self.known = known = known or frozenset()
        self.parameters = [
            (Same(x), x.block_id, x.offset) if is_itself(x, known) else None for x in self.tensors
        ]
        # Parameters have no tracers, so each has graphs of its own. Writes into what operations
        # have made are part of the tape, writes into other tensors are not.
        self.made = tuple(map(is_intermediate, self.tensors))
        of_tensors = (tuple(self.requires_grad), self.made, tuple(self.parameters))
        flags = (self.training, self.paused, self.same, tuple(self.carried), *of_tensors)
        self.key: Hashable = (self.function, self.tree, self.signature, flags, self.threads, turns)

    def let_go(self) -> None:
        """Forgets the arguments."""
        self.args, self.kwargs, self.tensors, self.objects = (), {}, [], []
        self.carried = dict.fromkeys(self.carried)

    def shown(self) -> list[str]:
        """The key as text."""
        names = [f"argument {i}" for i in range(len(self.tensors) - len(self.carried))]
        names += [f"attribute {path}, an argument" for path in self.carried]
        lines = [
            f"{name}: {t.dtype.name} {t.shape}" + ("" if t.requires_grad else ", no gradient")
            for name, t in zip(names, self.tensors, strict=True)
        ]
        given = leaves((self.args, self.kwargs))
        lines += [f"argument {leaf!r}" for leaf in given if not isinstance(leaf, Tensor)]
        mode_ = "training" if self.training else "evaluation"
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return [*lines, mode_ + (" within no_grad" if self.paused else ""), threads]


def _is_bare(x: Tensor, given: Collection[int]) -> bool:
    """Whether a tensor in an attribute is no more than a value, and none of these blocks."""
    is_more = x.stores_grad or is_marked(x) or has_history(x) or x._is_cut or x._divided is not None
    return type(x) is Tensor and not is_more and x.block_id not in given


def is_object(leaf: Any) -> bool:
    """Whether a part of an argument is an object, which may change and still be the same one."""
    return not isinstance(leaf, (Tensor, np.ndarray, float, complex)) and type(leaf) not in EXACT


def staged(array: np.ndarray, device: _core.Device) -> Tensor:
    """A copy of an array, which the caller may go on using."""
    made = from_numpy(array, device)
    made.set_account("staging")
    return made


def apart(given: Sequence[Tensor], shown: Iterable[Tensor]) -> Sequence[Tensor]:
    """The arguments, apart from the tensors that are about to show what a run makes: they keep what
    these show now."""
    ids = set(map(id, shown))
    return [twin(x) if id(x) in ids else x for x in given] if ids else given


def admitted(args: Any, kwargs: Any, root: Any) -> tuple[Any, Any]:
    """Arguments with copies of their NumPy arrays on the model's device."""
    given = (args, kwargs)
    if not any(isinstance(leaf, np.ndarray) for leaf in leaves(given)):
        return given
    to = root.device
    return replace(given, lambda one: staged(one, to) if isinstance(one, np.ndarray) else one)


class Attempt:
    """A recording of a call, with the attributes before and after."""

    def __init__(
        self,
        call: Call,
        before: Snapshot,
        undo: Undo,
        previous: Attempt | None = None,
        moving: Collection[str] = (),
        leaves: bool = False,
    ) -> None:
        """`moving`: paths of numbers that change from call to call, which are symbolic. `leaves`:
        whether each run leaves tensors of its own in the attributes that the step sets to some."""
        #: When it began, by `perf_counter`.
        self.started = perf_counter()
        self.call, self.before = call, before
        #: The attributes in the memory of an argument, with its index and their distance from it.
        self.held = _held(call.tensors, before)
        tracers = Tracers((call.args, call.kwargs), call.known)
        self.tapping = undo.tapping
        self.symbols = Symbols(before.items, moving, call.root)
        run = self.symbols.around(partial(call.run, tracers.given), replace)
        run = self.tapping.around(run)
        #: What leaves tensors in attributes, if that is not shown by the same tensors.
        self.leaving = Leaving(call, before) if leaves else None
        run = run if self.leaving is None else self.leaving.around(run)
        arguments = [*tracers.tensors, *call.carried.values()]
        with tracers, _watching(before, previous) as watching:
            self.traced: Traced = trace(call.device, arguments, run, undo, before.tensors)
        #: The attributes that the step sets on its arguments, by index of the argument.
        self.marks = tracers.marks(call.tensors)
        self.after = tracers.restore(call.look, call.root)
        self.changes = changes(before, self.after)
        #: What the step does that the recording does not show.
        self.unseen = watching.found(self.after, self.symbols.results)
        late = LATE_STATE if self.traced.recording.state_is_late else None
        self._obstacle = late or tracers.difference() or self.traced.results.obstacle
        if self.leaving is not None:
            self._obstacle = self._obstacle or self.leaving.obstacle
        #: The graph to run; None until `plan` or `take_graph_of`.
        self.verified: VerifiedGraph | None = None
        #: For which numbers it holds.
        self.guards = self.symbols.guards
        #: The arguments, as the result has them.
        self._given: Sequence[Tensor] = call.tensors
        #: The warning about the graph that was shown before.
        self._known_fault: str | None = None

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
        loose = before.loose | self.after.loose | self.guards.places.keys() | self.left_paths
        for path, item in before.items.items():
            known = self.after.items.get(path)
            if path in loose:
                continue
            if known is None:
                return f"attribute {path} is new"
            if path in self.changes or matches(pattern(known.value, captured), item.value):
                continue
            return f"attribute {path} changed from {text(known.value)} to {text(item.value)}"
        gone = self.after.items.keys() - before.items.keys() - loose
        return f"attribute {min(gone)} is gone" if gone else None

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
        self._given = ()
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
        built = self.traced.results.build(self._given, made, self.before.tensors)
        if self.leaving is not None:
            self.leaving.leave(built.values, self.call.root, None)
            built = built.result
        return self.tapping.deliver(built)

    def compare(self, later: Attempt) -> Effects | str:
        """What both do to the attributes, if the recordings are the same; else the first
        difference, as text."""
        difference = self.traced.recording.difference(later.traced.recording)
        if difference is None:
            difference = self.traced.results.difference(later.traced.results)
        if difference is None and self.tapping.probes != later.tapping.probes:
            difference = "the taps that the step reaches"
        if difference is None and self.marks != later.marks:
            difference = "the attributes that the step sets on its arguments"
        if difference is None:
            difference = later.unseen.difference()
        if difference is not None:
            return difference
        for path in self.changes.keys() - later.changes.keys() - later.symbols.results.keys():
            left, found = self.after.items.get(path), later.before.items.get(path)
            if kind(left) != kind(found):
                return f"attribute {path}, which one of them alone changed"
        found = effects(self.changes, later.changes, later.after, later.symbols.results)
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
