"""Containers with attributes, structures that are deep, and objects that keep their state in C."""

import ctypes
from array import array
from contextvars import ContextVar
from types import SimpleNamespace

import numpy as np
import pytest
from scenarios import Fit, hold
from singa_rs import autograd, layer, tensor
from test_recorded_objects import scale_of, set_scale
from test_recorded_reads import scaled


def _chain(depth):
    made = None
    for _ in range(depth):
        made = SimpleNamespace(rest=made, scale=1.0)
    return made


def _nested(depth):
    made = [1.0]
    for _ in range(depth):
        made = [made]
    return made


def _last(one):
    while one.rest is not None:
        one = one.rest
    return one


def _innermost(one):
    while isinstance(one[0], list):
        one = one[0]
    return one


def test_long_chains_of_objects():
    def reads(o):
        return _last(o).scale

    scaled(reads, lambda o, i: set_scale(_last(o), i), lambda: _chain(400))


def test_lists_deep_in_each_other():
    def change(o, i):
        _innermost(o)[0] = scale_of(i)

    scaled(lambda o: _innermost(o)[0], change, lambda: _nested(700))


class Named(bytearray):
    """A container with attributes."""


class Known(set):
    """One whose items have no places."""


@pytest.mark.parametrize("kind", [Named, Known])
def test_attributes_of_containers(kind):
    def make():
        made = kind()
        made.scale = 1.0
        return made

    scaled(lambda o: o.scale, set_scale, make)


def _reordered(o, i):
    o.clear()
    o.update((8, 0) if scale_of(i) == 1.0 else (0, 8))


def test_the_order_of_a_set():
    scaled(lambda o: 1.0 + [*o][0], _reordered, lambda: {8, 0})


def test_equal_items_of_another_type_in_a_set():
    def change(o, i):
        o.clear()
        o.add(2 if scale_of(i) == 1.0 else 2.0)

    scaled(lambda o: 1.0 if type([*o][0]) is int else 3.0, change, lambda: {2})


@pytest.mark.parametrize("kind", [set, frozenset])
def test_the_order_of_another_set(kind):
    def change(o, i):
        o.known = kind((8, 0) if scale_of(i) == 1.0 else (0, 8))

    scaled(lambda o: 1.0 + [*o.known][0], change, lambda: SimpleNamespace(known=kind((8, 0))))


class Settings(ctypes.Structure):
    """A structure in C."""

    _fields_ = (("scale", ctypes.c_float),)


class Failure(Exception):
    """An error that carries a number."""


class Row(array):
    """An array of a class of the program."""


def _record():
    return np.array([(1.0, 3)], [("scale", "f4"), ("n", "i4")])[0]


def _masked():
    return np.ma.array([1.0, 2.0], mask=[True, False])


STATES = {
    "ctypes": (lambda: Settings(1.0), lambda o: o.scale, set_scale),
    "error": (lambda: Failure(1.0), lambda o: o.args[0], lambda o, i: o.__init__(scale_of(i))),
    "row": (lambda: Row("d", [1.0]), lambda o: o[0], lambda o, i: o.__setitem__(0, scale_of(i))),
    "record": (
        _record,
        lambda o: float(o["scale"]),
        lambda o, i: o.__setitem__("scale", scale_of(i)),
    ),
    "under a mask": (
        _masked,
        lambda o: float(o.data[0]),
        lambda o, i: o.data.__setitem__(0, scale_of(i)),
    ),
    "variable": (
        lambda: ContextVar("scale", default=1.0),
        lambda o: o.get(),
        lambda o, i: o.set(scale_of(i)),
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_what_is_kept_in_c(name):
    make, read, change = STATES[name]
    scaled(read, change, make)


def _add(values):
    values[0] += 1.0
    return float(values[0])


@pytest.mark.parametrize(
    "make", [_record, lambda: Row("d", [1.0]), lambda: (ctypes.c_float * 1)(1)]
)
def test_a_step_that_changes_it(make):
    scaled(_add, lambda o, i: None, make)


class Stack(Fit):
    """Calls layers in the order of their names' arrival."""

    def __init__(self):
        super().__init__()
        self.parts = layer.ModuleDict({name: layer.Linear(3) for name in "ab"})

    def forward(self, x):
        for part in self.parts.values():
            x = autograd.tanh(part(x))
        return self.fc(x)


def test_the_order_of_layers():
    def session(model):
        made = []
        for i in range(10):
            if i == 6:
                model.parts["a"] = model.parts.pop("a")
            made.append(model(tensor.ones((2, 3))))
        return made

    hold(Stack, session)


class Renewed(Fit):
    """Deletes a tensor and sets it again in each step."""

    last = None

    def forward(self, x):
        out = self.fc(x) if self.last is None else self.fc(x) + self.last
        if "last" in vars(self):
            del self.last
        self.last = out.detach()
        return out


def test_a_state_that_the_step_deletes_and_sets_stays_one():
    def session(model):
        made, kept = [], []
        for i in range(14):
            if i == 8:
                model.last = kept[4]
            made.append(model(tensor.ones((2, 3))))
            kept.append(model.last)
        assert "last" in model.get_states()
        return made

    hold(Renewed, session)
