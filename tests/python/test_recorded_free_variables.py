"""What the code of a step reads besides attributes, and what its outcome does not depend on."""

import types

import numpy as np
import pytest
from readers import Plain, Scaled, by_default
from recorded import B, Net, pair, replays, step
from singa_rs import module
from singa_rs.tensor import from_numpy

X = B[0]


# ---- other values that code reads ----------------------------------------------------------------

FACTOR, TABLE, MASK, OPTIONS = 2.0, [2.0], from_numpy(np.full(6, 2, np.float32)), Plain()
CONFIG = types.ModuleType("config")
CONFIG.factor = 2.0


class Config:
    factor = 2.0


def helper():
    return FACTOR


class Mixed:
    mixed = 2.0


TEACHER = Scaled()


class Reading(Mixed, module.Module):
    how = None
    factor, table = 2.0, [2.0]

    def forward(self, x):
        return x * getattr(self, self.how)(self)

    def by_global(self, _):
        return FACTOR

    def by_table(self, _):
        return TABLE[0]

    def by_tensor(self, _):
        return MASK

    def by_object(self, _):
        return OPTIONS.get()

    def by_module(self, _):
        return CONFIG.factor

    def by_class(self, _):
        return Config.factor

    def by_helper(self, _):
        return helper()

    def by_inner(self, _):
        return [FACTOR for _ in range(1)][0]

    def by_own_class(self, _):
        return self.factor

    def by_own_table(self, _):
        return self.table[0]

    def by_default(self, _):
        return by_default()

    @property
    def doubled(self):
        return FACTOR

    def by_property(self, _):
        return self.doubled

    @staticmethod
    def fixed():
        return FACTOR

    def by_static(self, _):
        return self.fixed()

    def by_kind(self, _):
        return OPTIONS.kind

    def by_mixin(self, _):
        return self.mixed

    def by_layer(self, _):
        return TEACHER.factor


def set_global(name, value):
    return lambda patch: patch.setitem(globals(), name, value)


OUTSIDE = {
    "by_global": set_global("FACTOR", 3.0),
    "by_table": lambda _: TABLE.__setitem__(0, 3.0),
    "by_tensor": lambda patch: patch.setitem(
        globals(), "MASK", from_numpy(np.full(6, 3, np.float32))
    ),
    "by_object": lambda patch: patch.setattr(OPTIONS, "scale", 3.0),
    "by_module": lambda patch: patch.setattr(CONFIG, "factor", 3.0),
    "by_class": lambda patch: patch.setattr(Config, "factor", 3.0),
    "by_helper": set_global("helper", lambda: 3.0),
    "by_inner": set_global("FACTOR", 3.0),
    "by_own_class": lambda patch: patch.setattr(Reading, "factor", 3.0),
    "by_own_table": lambda patch: patch.setattr(Reading, "table", [3.0]),
    "by_default": lambda patch: patch.setitem(by_default.__kwdefaults__["more"], "a", 3.0),
    "by_property": set_global("FACTOR", 3.0),
    "by_static": set_global("FACTOR", 3.0),
    "by_kind": lambda patch: patch.setattr(Plain, "kind", 3.0),
    "by_mixin": lambda patch: patch.setattr(Mixed, "mixed", 3.0),
    "by_layer": lambda patch: patch.setattr(TEACHER, "factor", 3.0),
}


@pytest.mark.parametrize("how", OUTSIDE)
def test_a_change_of_other_state_that_code_reads(how, monkeypatch):
    model, x = Reading(), from_numpy(X)
    model.how = how
    model.eval()
    model.graph(True)
    for _ in range(4):
        assert np.array_equal(model(x).to_numpy(), X * np.float32(2))
    assert replays(model, "forward") >= 2
    OUTSIDE[how](monkeypatch)
    try:
        for _ in range(4):
            assert np.array_equal(model(x).to_numpy(), X * np.float32(3)), how
    finally:
        TABLE[0] = 2.0
    assert replays(model, "forward") >= 2


def test_a_method_that_is_replaced(monkeypatch):
    model, x = Reading(), from_numpy(X)
    model.how = "by_global"
    model.eval()
    model.graph(True)
    for _ in range(4):
        model(x)
    monkeypatch.setattr(Reading, "by_global", lambda self, _: 5.0)
    for _ in range(3):
        assert np.array_equal(model(x).to_numpy(), X * np.float32(5))


# ---- values on which nothing depends -------------------------------------------------------------


class Meter:
    def __init__(self):
        self.values, self.last, self.total = [], None, 0.0

    def update(self, value):
        self.values.append(value)
        self.last, self.total = value, self.total + value


def test_objects_that_change_and_decide_nothing():
    """A value that differs between two recordings of the same operations does not matter."""
    recorded, eager = pair(Net)
    recorded.meter, eager.meter = Meter(), Meter()
    for _ in range(8):
        out, loss = step(recorded, eager, *B)
        for model in (recorded, eager):
            model.meter.update(float(loss.to_numpy().reshape(-1)[0]))
    assert replays(recorded) >= 5


class Clicks:
    def __init__(self):
        self.n, self.factor = 0, 1.0


class Clicking(Net):
    """Changes an object that it holds."""

    def __init__(self, by=1, factor=1.0):
        super().__init__()
        self.clicks, self.by, self.factor = Clicks(), by, factor

    def train_one_batch(self, x, y):
        self.clicks.n += self.by
        self.clicks.factor *= self.factor
        return super().train_one_batch(x * self.clicks.factor, y)


def test_a_number_of_an_object_that_each_step_raises():
    recorded, eager = pair(Clicking)
    for i in range(8):
        if i == 5:
            recorded.clicks.n = eager.clicks.n = 100
        step(recorded, eager, *B)
        assert recorded.clicks.n == eager.clicks.n
    assert replays(recorded) >= 4


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_a_float_of_an_object_that_each_step_changes():
    recorded, eager = pair(Clicking, 1, 0.5)
    for _ in range(8):
        step(recorded, eager, *B)
        assert recorded.clicks.factor == eager.clicks.factor
