"""How a model's bodies are run: in parts between the nodes that read a value back, or as a whole
where what they read can be guessed.

A node whose result's shape, or whose choice of a body, depends on values has to read them; what
lies between such nodes does not, and becomes a graph function of its own.
"""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import GraphError
from ..record import UserCodeLock
from ..tensor import Tensor
from .body import Body
from .guesses import MOST_VALUES, Guess, Guesses
from .parts import Cuts, Part, Stretch, Taken, is_host, part_of
from .values import Value

if TYPE_CHECKING:
    from .imported import Weights
    from .running import Frame

#: What operators raise for values that they cannot work with.
VALUES = ArithmeticError, LookupError, TypeError, ValueError
#: How many stretches are kept, and how many of a part for what it has read.
_MOST, _MOST_OF_PART = 256, 4
#: More than so few are kept only while their results take no more bytes than this.
_FEW, _MOST_BYTES = 8, 64 << 20


class _Guessed:
    """A part whose nodes read values, for inputs of some shapes."""

    def __init__(self, cuts: Cuts, start: int) -> None:
        self._cuts, self._start = cuts, start
        #: What replays it, once a run has been noted.
        self._stretch: Stretch | None = None
        #: Whether the last run has read what is guessed.
        self._is_sure = False
        self._last: tuple[Guess, ...] | None = None
        self._known: OrderedDict[tuple[Guess, ...], Stretch] = OrderedDict()

    @property
    def result_bytes(self) -> int:
        """What the results of its graphs take from run to run."""
        return sum(one.result_bytes for one in self._known.values())

    def settle(
        self, noted: tuple[Guess, ...], make: Callable[[tuple[Guess, ...]], Stretch]
    ) -> None:
        """Takes notice of what the nodes have read in a run: it is what they are to read, unless
        that has been something else; then they have to read it twice."""
        if len(noted) > MOST_VALUES:  # the node that reads most is a loop
            self._cuts.fix(at for at, _ in Counter(one.at for one in noted).most_common(1))
        elif self._stretch is not None and noted == self._stretch.noted:
            self._is_sure = True
        elif self._stretch is None or noted == self._last:
            self._stretch = self._known[noted] = self._known.get(noted) or make(noted)
            self._known.move_to_end(noted)
            if len(self._known) > _MOST_OF_PART:
                self._known.popitem(last=False)
            self._is_sure = True
        self._last = noted

    def outputs(self, inputs: Sequence[Value]) -> dict[str, Value] | None:
        """All outputs by name; None if they have to be found without guesses."""
        stretch = self._stretch
        if stretch is None or not self._is_sure:
            return None
        self._is_sure = False
        try:
            found = stretch.outputs(inputs)
        except GraphError:
            if not stretch.failures:
                raise
            self._cuts.fix([self._start + stretch.failures.pop()])
            return None
        except VALUES:  # either a wrong guess, or an error that a run without guesses has, too
            self._cuts.note_misses(one.at for one in stretch.noted)
            return None
        if found is None:
            self._cuts.note_misses(stretch.missed)
            return None
        self._cuts.note_hit()
        self._is_sure = True
        return found


class _Whole(NamedTuple):
    """What replays all of a body, for inputs of some shapes and dtypes."""

    stretch: Stretch | _Guessed
    #: The positions of the body's inputs that it takes.
    places: tuple[int, ...]
    #: Where it is kept, by which key.
    known: OrderedDict[Hashable, Any]
    key: Hashable


def _signature(body: Body, inputs: Sequence[Value]) -> Hashable | None:
    """What the recording of a whole body depends on; None unless all inputs are tensors."""
    found: list[Hashable] = [id(body)]
    for x in inputs:
        if not isinstance(x, Tensor):
            return None
        found += x.shape, x.dtype
    return tuple(found)


class Stretches:
    """How a model's bodies are run: as few stretches as their nodes let them."""

    def __init__(self, weights: Weights, exact: bool = True) -> None:
        #: The parameters, which parts have as they are, not as inputs.
        self.weights = weights
        #: Whether parts compute to the bit what their nodes do (`Module.compile`).
        self.exact = exact
        #: By body, where it is cut.
        self._cuts: dict[int, Cuts] = {}
        self._parts: dict[tuple[int, int, int], Part] = {}
        #: The parts that have been run by themselves.
        self._run: set[tuple[int, int, int]] = set()
        self._known: OrderedDict[Hashable, Stretch | None] = OrderedDict()
        self._guessed: OrderedDict[Hashable, _Guessed] = OrderedDict()
        self._whole: dict[Hashable, _Whole] = {}
        #: Held in runs, which change all of these.
        self.lock = UserCodeLock("sonnx")

    def __reduce__(self) -> Any:
        """A copy, whose bodies are others, knows no stretches yet."""
        return Stretches, (self.weights, self.exact)

    def replayed(self, body: Body, inputs: Sequence[Value]) -> list[Value] | None:
        """The outputs of a body that is one stretch, if it has been run for such tensors."""
        signature = _signature(body, inputs)
        found = self._whole.get(signature)
        if found is None:
            return None
        try:
            made = found.stretch.outputs([inputs[i] for i in found.places])
        except GraphError:
            if not (isinstance(found.stretch, Stretch) and found.stretch.failures):
                raise
            made = None
        except VALUES:
            return None  # `run` will find the node
        if made is None:  # `run` will learn where it reads a value, or what
            del self._whole[signature]
            return None
        found.known.move_to_end(found.key)
        return [made[name] for name in body.outputs]

    def run(self, frame: Frame) -> None:
        """Runs the nodes of a frame."""
        is_first = id(frame.body) not in self._cuts
        at, cuts = 0, self._cuts_of(frame.body)
        while at < len(frame.body.nodes):
            end = cuts.next(cuts.fixed, at)
            if end == at:
                self._advance(frame, at)
                at += 1
            elif frame.guesses is None and (is_first or cuts.next(cuts.all, at) < end):
                self._run_guessed(frame, at, end)
                at = end
            else:
                self._run_parts(frame, at, end)
                at = end

    def _cuts_of(self, body: Body) -> Cuts:
        if id(body) not in self._cuts:
            self._cuts[id(body)] = Cuts(body)
        return self._cuts[id(body)]

    # ---- with guesses ----------------------------------------------------------------------------

    def _run_guessed(self, frame: Frame, start: int, end: int) -> None:
        """Runs nodes in a row some of which may read values: as one stretch if these are as
        expected, and else in parts, with a note of what they read."""
        cuts = self._cuts_of(frame.body)
        part = self._part(frame.body, start, end)
        taken = Taken.of(part.given, frame.find_all(part.given)) if part.is_repeatable else None
        if taken is None:
            self._run_parts(frame, start, end)
            return
        key = (id(frame.body), start, end, *taken.key)
        guessed = self._guessed.get(key) or _Guessed(cuts, start)
        found = guessed.outputs(taken.moving)
        if found is not None:
            self._note_whole(frame, part, self._guessed, key)
            frame.take(found, part.dead)
            frame.note_read()
            return
        frame.guesses = guesses = Guesses()
        try:
            self._run_parts(frame, start, end)
        finally:
            frame.guesses = None
        if cuts.next(cuts.all, start) < end:
            if key not in self._guessed:
                self._limit_results()
            self._guessed[key] = guessed
            _keep_last(self._guessed, key, self._whole)
            make = functools.partial(self._made, frame, part, taken.values)
            guessed.settle(tuple(guesses.found), make)

    # ---- in parts --------------------------------------------------------------------------------

    def _run_parts(self, frame: Frame, start: int, end: int) -> None:
        """Runs nodes in a row: those that read values by themselves, the others in stretches."""
        at, cuts = start, self._cuts_of(frame.body)
        while at < end:
            stop = min(cuts.next(cuts.all, at), end)
            if stop == at:
                self._advance(frame, at)
                at += 1
            elif self._runs_part(frame, at, stop):
                at = stop

    def _runs_part(self, frame: Frame, start: int, end: int) -> bool:
        """Runs nodes in a row; or finds that they cannot be recorded, and where to cut them."""
        place = id(frame.body), start, end
        is_new, part = place not in self._run, self._part(frame.body, start, end)
        self._run.add(place)
        taken = Taken.of(part.given, frame.find_all(part.given))
        if taken is None:
            self._learn(frame, start, end)
            return True
        key = (*place, *taken.key)
        if not is_new and key not in self._known:  # sizes that come once are not worth a graph
            self._known[key] = None
            self._learn(frame, start, end)
            return True
        found = self._recorded(frame, part, key, taken)
        if found is None:
            return False
        frame.take(found, part.dead)
        return True

    def _recorded(
        self, frame: Frame, part: Part, key: tuple[Any, ...], taken: Taken
    ) -> dict[str, Value] | None:
        """The outputs of a part, recorded or replayed; None if a node reads a value, where the body
        is cut from then on."""
        stretch = self._known.get(key)
        if stretch is None:
            self._limit_results()
            stretch = self._made(frame, part, taken.values)
        self._known[key] = stretch
        _keep_last(self._known, key, self._whole)
        try:
            found = stretch.outputs(taken.moving)
        except GraphError:
            if not stretch.failures:
                raise
            del self._known[key]
            self._whole.clear()
            self._cuts_of(frame.body).add(key[1] + stretch.failures.pop())
            return None
        except VALUES:
            self._learn(frame, *key[1:3])
            raise  # unless a node has raised an error that names it
        self._note_whole(frame, part, self._known, key)
        return found

    def _learn(self, frame: Frame, start: int, end: int) -> None:
        for at in range(start, end):
            self._advance(frame, at)

    def _advance(self, frame: Frame, at: int) -> None:
        """Runs a node by itself, and cuts the body there if it reads a value."""
        reads, small = frame.reads, frame.small_reads
        frame.advance(at)
        count = frame.reads - reads
        if count:
            self._cuts_of(frame.body).add(at, is_fixed=count > frame.small_reads - small)

    # ---- what both have in common ----------------------------------------------------------------

    def _note_whole(
        self,
        frame: Frame,
        part: Part,
        known: OrderedDict[Hashable, Any],
        key: Hashable,
    ) -> None:
        """Notes the stretch of this key, if it needs nothing but a body's inputs and makes all of
        its outputs."""
        whole = frame.body
        if frame.outer is not None or len(part.body.nodes) < len(whole.nodes):
            return
        signature = _signature(whole, [frame.values[name] for name in whole.inputs])
        if signature and set(part.given) <= set(whole.inputs) and set(whole.outputs) <= set(
            part.body.outputs
        ):  # fmt: skip
            places = tuple(map(whole.inputs.index, part.given))
            self._whole[signature] = _Whole(known[key], places, known, key)

    def _made(
        self, frame: Frame, part: Part, values: Mapping[str, Value], noted: tuple[Guess, ...] = ()
    ) -> Stretch:
        host = {name: one for name, one in values.items() if is_host(one)}
        made = Stretch(part.body, frame.device, host, self.weights, noted)
        made.eval()
        made.graph(exact=self.exact, parallel=True)  # small branches are frequent in inference
        return made

    def _limit_results(self) -> None:
        """Lets go of stretches that were used longest ago, if all results take much memory."""
        for known in (self._known, self._guessed):
            held = [0 if one is None else one.result_bytes for one in known.values()]
            total = sum(held)
            for size in held[: max(len(held) - _FEW, 0)]:
                if total <= _MOST_BYTES:
                    break
                _drop_first(known, self._whole)
                total -= size

    def _part(self, whole: Body, start: int, end: int) -> Part:
        key = (id(whole), start, end)
        if key not in self._parts:
            self._parts[key] = part_of(whole, start, end, self.weights)
        return self._parts[key]


def _keep_last(
    known: OrderedDict[Hashable, Any], key: Hashable, whole: dict[Hashable, _Whole]
) -> None:
    """Lets go of what was used longest ago, and of what may refer to it."""
    known.move_to_end(key)
    while len(known) > _MOST:
        _drop_first(known, whole)


def _drop_first(known: OrderedDict[Hashable, Any], whole: dict[Hashable, _Whole]) -> None:
    known.popitem(last=False)
    whole.clear()
