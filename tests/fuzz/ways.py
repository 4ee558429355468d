"""The ways to run a program. All others are compared with `EAGER`."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from singa_rs.module import Module
from singa_rs.record import Options

from .run import Seen


class Way(NamedTuple):
    """How a program is run."""

    name: str
    #: Arguments of `compile`.
    how: dict[str, Any]
    #: Further arguments of `Recording.graph`: switches that users do not have.
    graph: dict[str, Any] = {}
    threads: int = 1
    #: Whether results are bitwise equal to those of eager execution.
    exact: bool = True
    #: Errors that eager execution need not raise.
    may_raise: tuple[str, ...] = ()
    #: Whether the step is recorded by `device.record()`, and in which of two spellings.
    by_hand: str = ""

    def prepare(self, names: dict[str, Any], seen: Seen) -> None:
        """Makes each model of the program compile in this way, and adds it to `seen`."""
        compile_ = names["Net"].compile
        way = self

        def compiled(model: Any, inputs: Any, **_: Any) -> None:
            compile_(model, inputs, **way.how)
            seen.models.append(model)
            if way.graph and model._graphs is not None:
                model._graphs.options = more(model._graphs.options, way.graph)

        names["Net"].compile = compiled

    def session(self, names: dict[str, Any], seen: Seen) -> None:
        """Runs the session of the program."""
        if self.by_hand:
            _BY_HAND[self.by_hand](names, seen)
        else:
            names["session"](seen.see)


def more(options: Options, given: dict[str, Any]) -> Options:
    """The same options, with further arguments for their graphs."""

    class More(Options):
        def _graph(self, recording: Any, **how: Any) -> Any:
            keep = {"keep": self.memory_budget is None}
            return recording.graph(
                **{
                    "exact": self.exact,
                    "check_finite": self.check_finite,
                    "parallel": self.parallel,
                    **keep,
                    **given,
                    **how,
                }
            )

    return More(*options)


# ---- by hand -------------------------------------------------------------------------------------

#: Steps of a session by hand: the first one is never recorded, as it makes parameters.
STEPS = 4


def _start(names: dict[str, Any], seen: Seen) -> tuple[Any, list[Any]]:
    model = names["Net"]()
    arguments = names["first"]
    seen.counts = False
    model.compile(arguments[:-1])
    seen.see(model(*arguments))
    return model, arguments


def _shown(model: Any, made: Any, seen: Seen) -> None:
    seen.note("result", _tensors(made))
    seen.look(model, numbers=False)


def _tensors(made: Any) -> Any:
    """The part of a result that each run by hand makes again."""
    if isinstance(made, dict):
        made = tuple(made.values())
    if isinstance(made, (tuple, list)):
        return [_tensors(one) for one in made]
    return None if isinstance(made, int) else made


def _eagerly(names: dict[str, Any], seen: Seen) -> None:
    """The eager reference of a recording by hand."""
    model, arguments = _start(names, seen)
    for _ in range(STEPS):
        _shown(model, model(*arguments), seen)


def _record(names: dict[str, Any], seen: Seen) -> None:
    model, arguments = _start(names, seen)
    with names["dev"].record() as graph:
        made = model(*arguments)
    for _ in range(STEPS):
        graph.run()
        _shown(model, made, seen)


def _enable(names: dict[str, Any], seen: Seen) -> None:
    dev = names["dev"]
    model, arguments = _start(names, seen)
    dev.ResetGraph()
    dev.EnableGraph(True)
    try:
        made = model(*arguments)
    finally:
        dev.EnableGraph(False)
    try:
        for i in range(STEPS):
            dev.RunGraph(sequential=i % 2 == 0)
            _shown(model, made, seen)
    finally:
        dev.ResetGraph()


_BY_HAND: dict[str, Callable[[dict[str, Any], Seen], None]] = {
    "eager": _eagerly,
    "record": _record,
    "EnableGraph": _enable,
}

_EAGERLY = {"use_graph": False}
#: Where `compile` itself can verify graphs against recordings, only one way does so.
_CHECKS = "verify" in signature(Module.compile).parameters
_GRAPH = {"use_graph": True, "verify": False} if _CHECKS else {"use_graph": True}
_VERIFIED = (Way("verified", {**_GRAPH, "verify": 2}),) if _CHECKS else ()
_UNLIMITED = (Way("whatever it gains", _GRAPH, {"limits": False}),) if _CHECKS else ()
_BUDGET = ("MemoryBudgetError", "OutOfMemoryError")

EAGER = Way("eager", _EAGERLY)
EAGER_2 = Way("eager, 2 threads", _EAGERLY, threads=2)
EAGER_BY_HAND = Way("eager, without a session", _EAGERLY, by_hand="eager")
REPLAYED = Way("replayed", _GRAPH)

#: Compared with eager execution with as many threads.
OTHERS = (
    Way("as recorded", _GRAPH, {"rewrite": False}),
    Way("as recorded, nothing again", _GRAPH, {"rewrite": False, "recompute": False}),
    Way("nothing computed again", _GRAPH, {"recompute": False}),
    Way("nothing kept", _GRAPH, {"keep": False}),
    Way("within rounding", {**_GRAPH, "exact": False}, exact=False),
    Way("half the memory", {**_GRAPH, "memory_budget": 0.5}, may_raise=_BUDGET),
    Way("nine tenths of the memory", {**_GRAPH, "memory_budget": 0.9}, may_raise=_BUDGET),
    Way("a budget in bytes", {**_GRAPH, "memory_budget": "2KiB"}, may_raise=_BUDGET),
    Way("a large budget", {**_GRAPH, "memory_budget": "1GiB"}, may_raise=_BUDGET),
    Way("finite", {**_GRAPH, "check_finite": True}, may_raise=("FloatingPointError",)),
    Way("compared again", {**_GRAPH, "check_every": 2}),
    Way("parallel, 1 thread", {**_GRAPH, "graph_alg": "parallel"}),
    *_VERIFIED,
    *_UNLIMITED,
)
THREADED = (
    Way("replayed, 2 threads", _GRAPH, threads=2),
    Way("parallel", {**_GRAPH, "graph_alg": "parallel"}, threads=2),
    Way("parallel, all parts", {**_GRAPH, "graph_alg": "parallel"}, {"least_gain": 0}, threads=2),
    Way(
        "parallel in little memory",
        {**_GRAPH, "graph_alg": "parallel", "memory_budget": 0.8},
        {"least_gain": 0},
        threads=2,
        may_raise=_BUDGET,
    ),
)
BY_HAND = (
    Way("recorded by hand", _EAGERLY, by_hand="record"),
    Way("EnableGraph", _EAGERLY, by_hand="EnableGraph"),
)
ALL = (EAGER, REPLAYED, *OTHERS, *THREADED, *BY_HAND)


def drawn(rng: Any, program: Any, count: int) -> list[Way]:
    """The ways besides replay in which a program is run."""
    pool = list(OTHERS + THREADED + (BY_HAND if program.is_plain else ()))
    return rng.sample(pool, min(count, len(pool)))


def reference(way: Way, program: Any) -> Way:
    """The eager reference of a way. Small operations run on one thread in any case."""
    if way.by_hand:
        return EAGER_BY_HAND
    return EAGER_2 if way.threads == 2 and program.is_large else EAGER


def named(name: str) -> Way:
    """The way of that name."""
    return next(way for way in ALL if way.name == name)
