"""Steps that count, and set other things, outside of the model."""

import warnings

import pytest
from recorded import replays
from scenarios import Step, hold, x

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


def test_other_scalars_that_a_step_sets_outside_are_not_replayed():
    said = ["a"]

    class Saying(Step):
        def forward(self, x):
            said[0] = "b" if said[0] == "a" else "a"
            return x * (2.0 if said[0] == "b" else 1.0)

    def session(model):
        said[0] = "a"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return [model(x()) for _ in range(8)]

    hold(Saying, session)
