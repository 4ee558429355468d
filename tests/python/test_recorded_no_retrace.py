"""Ordinary programs that look unusual to a recording: they keep being replayed."""

import dataclasses
import sys
import types

import pytest
from recorded import same
from scenarios import Fit, Step, X, hold, x
from singa_rs import _core, tensor
from singa_rs.record.call import Call
from singa_rs.tensor import from_numpy


def replayed(make, calls=8):
    """How many of `calls` calls are replays."""
    model = make()
    model.graph(True)
    for _ in range(calls):
        model(x())
    return sum(entry.runs for f in model._graphs.all() for entry in f.entries)


@dataclasses.dataclass
class Options:
    scale: float = 1.0


@dataclasses.dataclass
class Counts:
    n: int


BATCHES = [x() for _ in range(20)]


def test_tensors_that_a_program_holds_replay_one_graph():
    class Trained(Step):
        def __init__(self):
            super().__init__()
            self.options = Options()

        def forward(self, x):
            return x * self.options.scale if type(x) is not list else None

        def fit(self):
            return [self(batch) for batch in BATCHES]

    model = Trained()
    model.graph(True)
    model.fit()
    assert sum(entry.runs for f in model._graphs.all() for entry in f.entries) == 18


def test_looks_at_a_model_and_new_learning_rates_are_no_changes():
    model = Fit()
    model.compile([x()], use_graph=True)
    for _ in range(4):
        model(x())
    before = _core.changes()
    model.train()
    model.get_params(), model.get_states(), model.optimizer.get_states(), model.graphs
    model.optimizer.lr = 0.05
    model.optimizer.momentum = 0.5
    assert _core.changes() == before
    model.optimizer.momentum = 0  # another update
    assert _core.changes() > before


class Counted(Step):
    """Its training step has another way every third time, if it looks at its count."""

    def __init__(self, looks, kind):
        super().__init__()
        self.looks, self.counts = looks, kind(n=0)
        self.w = tensor.ones((2,))

    def forward(self, x):
        self.counts.n += 1
        self.w += x.sum(0)
        return x * self.w * (2.0 if self.looks and self.counts.n % 3 == 0 else 1.0)


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("kind", [types.SimpleNamespace, Counts])
def test_graphs_in_turn_need_no_look_at_the_model(looks, kind, monkeypatch):
    recorded, eager = Counted(looks, kind), Counted(looks, kind)
    recorded.graph(True), eager.graph(False)
    batches = [from_numpy(X[:n]) for n in (4, 3, 4, 4, 2)] + [X[:1]]
    for i in range(84):
        if i == 72:  # all are known
            monkeypatch.setattr(Call, "look", None)
        x = batches[i % len(batches)]
        same(recorded(x), eager(x))
    monkeypatch.undo()
    recorded.counts.n = eager.counts.n = 1
    for x in batches:
        same(recorded(x), eager(x))
    assert recorded.counts.n == eager.counts.n == 7


class Outer:
    def __init__(self):
        self.a = 1.0


class Inner(Outer):
    def __init__(self):
        super().__init__()
        self.b = 2.0


def test_objects_of_subclasses_that_a_step_makes():
    class Making(Step):
        def forward(self, x):
            return x * Inner().b

    model = Making()
    model.graph(True)
    for _ in range(4):
        model(x())
    (function,) = model._graphs.all()
    assert function._lately.latest.is_current()


class AsModule:
    SCALE = 1.0


sys.modules["made_up_object"] = AsModule()


class Strict(type):
    def __getattr__(cls, name):
        raise KeyError(name)


class OfStrict(metaclass=Strict):
    scale = 1.0


class Items(dict):
    def __getattr__(self, name):
        return self[name]


class Closed:
    __slots__ = ("scale",)

    def __getattr__(self, name):
        raise KeyError(name)


def from_object(self, x):
    import made_up_object

    return x * made_up_object.SCALE


def made_closed():
    made = Closed()
    made.scale = 1.0
    return made


UNUSUAL = {
    "an object for a module": (None, from_object),
    "a strict metaclass": (lambda: OfStrict, lambda self, x: x * self.c.scale),
    "items as attributes": (lambda: Items(scale=1.0), lambda self, x: x * self.c.scale),
    "slots and nothing else": (made_closed, lambda self, x: x * self.c.scale),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_objects(name):
    make, forward = UNUSUAL[name]

    class Unusual(Step):
        def __init__(self):
            super().__init__()
            self.c = make() if make else None

    Unusual.forward = forward
    hold(Unusual, lambda m: [m(x()) for _ in range(4)])
    assert replayed(Unusual) == 6


def test_counters_of_which_one_is_reset():
    class Counting(Step):
        def __init__(self):
            super().__init__()
            self.n = self.t = 0

        def forward(self, x):
            self.n += 1
            self.t += 1
            return x * 2.0

    model = Counting()
    model.graph(True)
    for _ in range(10):
        model.t = 0
        for _ in range(4):
            model(x())
        assert model.t == 4
    assert model.n == 40
    assert sum(entry.runs for f in model._graphs.all() for entry in f.entries) >= 34
