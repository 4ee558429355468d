"""Steps that count, and set other things, outside of the model."""

import functools
import warnings
from collections import deque

import numpy as np
import pytest
from recorded import replays
from scenarios import Fit, Step, hold, x
from singa_rs import layer
from singa_rs.record import MISS

COUNT, COUNTS = 0, {"n": 0}


def _global():
    global COUNT
    COUNT += 1
    return COUNT


def _item():
    COUNTS["n"] += 1
    return COUNTS["n"]


def _own():
    _own.calls += 1
    return _own.calls


class Counter:
    count = 0

    @classmethod
    def next(cls):
        cls.count += 1
        return cls.count


def _closure():
    n = 0

    def following():
        nonlocal n
        n += 1
        return n

    return following


COUNTERS = {
    "global": lambda: _global,
    "item of a global": lambda: _item,
    "attribute of a function": lambda: _own,
    "attribute of a class": lambda: Counter.next,
    "closure": _closure,
}


@pytest.mark.parametrize("where", COUNTERS)
def test_counters_outside_of_the_model(where):
    """Replays count, too, and what the step decides by them comes out as in eager execution."""

    def make():
        global COUNT
        COUNT, COUNTS["n"], Counter.count, _own.calls = 0, 0, 0, 0
        following = COUNTERS[where]()

        class Counting(Step):
            def forward(self, x):
                return x * (2.0 if following() % 4 == 0 else 1.0)

        made = Counting()
        made.following = following
        return made

    def session(model):
        made = [model(x()) for _ in range(14)]
        assert not model.graph_mode or replays(model) > 5
        return [*made, model.following()]

    hold(make, session)


OTHERS = {
    "text": ("a", lambda said: "b" if said == "a" else "a", "b"),
    "truth value": (False, lambda said: not said, True),
    "NumPy number": (np.float64(0), lambda said: np.float64(1 - said), 1),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_scalars_that_a_step_sets_outside_are_not_replayed(kind):
    first, change, wanted = OTHERS[kind]
    said = [first]

    class Saying(Step):
        def forward(self, x):
            said[0] = change(said[0])
            return x * (2.0 if said[0] == wanted else 1.0)

    def session(model):
        said[0] = first
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return [model(x()) for _ in range(8)]

    hold(Saying, session)


def test_an_object_that_the_first_step_makes():
    class Late:
        scale = 2.0

    made = [None]

    class Making(Step):
        def forward(self, x):
            if made[0] is None:
                made[0] = Late()
            return x * made[0].scale

    def session(model):
        results = []
        for i in range(12):
            if i % 6 == 0:
                made[0] = None
            results.append(model(x()))
        return results

    hold(Making, session)


def test_keys_that_are_alike_as_text():
    counts = {}

    class Counting(Step):
        def forward(self, x):
            counts[1] += 1
            counts["1"] += 10
            return x * (2.0 if counts[1] % 3 == 0 else 1.0)

    def session(model):
        counts.update({1: 0, "1": 0, "keys": 0})
        return [*(model(x()) for _ in range(10)), counts[1], counts["1"]]

    hold(Counting, session)


class Held:
    n = 0


HELD = Held()


@pytest.mark.parametrize("where", ["object", "dictionary", "global"])
def test_counters_outside_take_the_fast_path(where):
    class Counting(Fit):
        def loss_of(self, x):
            if where == "object":
                HELD.n += 1
            elif where == "dictionary":
                COUNTS["n"] += 1
            else:
                _global()
            return super().loss_of(x)

    model = Counting()
    model.graph(True)
    model.train()
    for _ in range(5):
        model(x())
    fast_path = model._graphs.fast_path
    assert fast_path is not None
    before = COUNT + COUNTS["n"] + HELD.n
    for _ in range(3):
        assert fast_path((x(),), model) is not MISS
    assert before + 3 == COUNT + COUNTS["n"] + HELD.n


def test_stand_ins_of_other_models_are_numbers():
    kept = []

    class First(Step):
        n = 0

        def forward(self, x):
            self.n += 1
            kept[:] = [self.n * 2]
            return x * (2.0 if self.n % 3 == 0 else 1.0)

    class Second(First):
        def forward(self, x):
            self.n += kept[0]
            return x * (2.0 if self.n % 3 == 0 else 1.0)

    def session(model):
        other, results = Second(), []
        other.graph(model.graph_mode)
        for _ in range(10):
            results += [model(x()), other(x()), model.n, other.n]
        return results

    hold(First, session)


def test_a_number_at_two_paths():
    class Twice(Step):
        def __init__(self):
            super().__init__()
            self.first = Held()
            self.first.n = 0
            self.second = vars(self.first)

        def forward(self, x):
            self.first.n += 1
            return x * (2.0 if self.second["n"] % 3 == 0 else 1.0)

    hold(Twice, lambda model: [*(model(x()) for _ in range(10)), model.first.n])


def test_a_wrapper_of_the_step():
    calls = []

    def counted(function):
        @functools.wraps(function)
        def inner(*args):
            calls.append(1)
            return function(*args)

        return inner

    class Wrapped(Step):
        def forward(self, x):
            return x * 2.0

    Wrapped.train_one_batch = counted(Wrapped.train_one_batch)

    def session(model):
        calls.clear()
        return [*(model(x()) for _ in range(5)), len(calls)]

    hold(Wrapped, session)


def test_containers_of_unusual_kinds():
    class Ring(deque):
        def __init__(self, length, fill):
            super().__init__([fill], maxlen=length)

    class Holding(Step):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(1)
            self.by_layer, self.ring = {self.fc: 1.0}, Ring(3, 0.5)
            self.space = {}
            exec("scale = 0.5", self.space)

        def forward(self, x):
            return self.fc(x) * self.by_layer[self.fc] * self.ring[0] * self.space["scale"]

    hold(Holding, lambda model: [model(x()) for _ in range(4)])
