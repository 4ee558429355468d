"""Steps notice changes of what they read through classes that they name, enumerations, modules,
caches of functions, and views of dictionaries."""

import enum
import functools
import inspect
import types

import numpy as np
import pytest
from singa_rs import autograd, layer, module, opt, set_seed
from singa_rs.autograd import Operator
from singa_rs.tensor import from_numpy

X = from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3) / 6)
SLOPE = 1.0


class Meta(type):
    """A metaclass with an attribute."""

    factor = 1.0


class Focal(layer.Layer):
    gamma = 1.0

    def forward(self, x):
        return self.scaled(x)

    def scaled(self, x):
        return x * self.gamma


class Halved(Focal):
    def scaled(self, x):
        return x * 0.5


class Sloped(Operator):
    """Its backward, which the tape calls, reads a global."""

    def forward(self, x):
        return x * 1.0

    def backward(self, dy):
        return dy * SLOPE


class Weight(metaclass=Meta):
    k = 1.0

    def __init__(self):
        self.own = self.k

    def __call__(self):
        return self.own

    def one(self):
        return 1.0

    @property
    def two(self):
        return 1.0

    @staticmethod
    def three():
        return 1.0

    @functools.cache  # noqa: B019
    def cached(self):
        return {"factor": 1.0}


class Phase(enum.Enum):
    FIRST = {"factor": 1.0}

    def twice(self):
        return 2 * SLOPE


class Holder:
    class Config:
        factor = 1.0

    loss = Focal


@functools.cache
def settings():
    return {"factor": 1.0}


@functools.lru_cache(maxsize=4)
def options(name):
    return types.SimpleNamespace(factor=1.0, name=name)


TASK = types.ModuleType("task")
TASK.factor, TASK.Focal = (lambda: 1.0), type("Focal", (Focal,), {"gamma": 1.0})
TABLE = {"factor": 1.0}
BYTES = np.ones(1)
RULE = np.vectorize(lambda x: x * TABLE["factor"])


def _global(name):
    def change(model, value):
        globals()[name] = value

    return change


def _of(owner, name):
    return lambda model, value: setattr(owner, name, value)


def _in(table):
    return lambda model, value: table.update(factor=value)


def _loss_class(model, value):
    Holder.loss = Focal if value == 1 else Halved


def _function(model, value):
    TASK.factor = lambda: value


def _method(model, value):
    Weight.one = lambda self: value


def _property(model, value):
    Weight.two = property(lambda self: value) if value == 1 else value


def _cached(model, value):
    model.weight.cached()["factor"] = value


def _many(model, value):
    model.many = [value] * 2000


def _static(model, value):
    Weight.three = staticmethod(lambda: value)


#: By what changes: what the step multiplies by it, and the change.
WAYS = {
    "a global that a backward reads": (lambda m, x: Sloped()(x)[0], _global("SLOPE")),
    "an attribute that a forward reads": (lambda m, x: Focal()(x), _of(Focal, "gamma")),
    "one that a constructor reads": (lambda m, x: x * Weight()(), _of(Weight, "k")),
    "a method": (lambda m, x: x * Weight().one(), _method),
    "a method of an object": (lambda m, x: x * m.weight.one(), _method),
    "a property": (lambda m, x: x * Weight().two, _property),
    "a static method": (lambda m, x: x * Weight.three(), _static),
    "one of a metaclass": (lambda m, x: x * Weight.factor, _of(Meta, "factor")),
    "one of a class within": (lambda m, x: x * m.held.Config.factor, _of(Holder.Config, "factor")),
    "a class": (lambda m, x: m.held.loss()(x), _loss_class),
    "an attribute of a member": (lambda m, x: x * Phase.FIRST.w, _of(Phase.FIRST, "w")),
    "a member's value": (lambda m, x: x * Phase.FIRST.value["factor"], _in(Phase.FIRST.value)),
    "a global that a member reads": (lambda m, x: x * Phase.FIRST.twice(), _global("SLOPE")),
    "a cached dictionary": (lambda m, x: x * settings()["factor"], _in(settings())),
    "a cached object": (lambda m, x: x * options("a").factor, _of(options("a"), "factor")),
    "what a method has cached": (lambda m, x: x * m.weight.cached()["factor"], _cached),
    "a long list": (lambda m, x: x * m.many[-1], _many),
    "a function of a module": (lambda m, x: x * m.task.factor(), _function),
    "a class of a module": (lambda m, x: m.task.Focal()(x), _of(TASK.Focal, "gamma")),
    "a dictionary behind a proxy": (lambda m, x: x * m.proxy["factor"], _in(TABLE)),
    "a dictionary behind its values": (lambda m, x: x * sum(m.values), _in(TABLE)),
    "an array behind its memory": (lambda m, x: x * m.memory[0], lambda m, v: BYTES.fill(v)),
    "what a vectorised function reads": (lambda m, x: x * float(m.rule(1.0)), _in(TABLE)),
}


class Net(module.Module):
    def __init__(self, way):
        super().__init__()
        self.fc, self.optimizer, self.way = layer.Linear(3), opt.SGD(0.1), way
        self.held, self.task, self.rule = Holder(), TASK, RULE
        self.proxy, self.values = types.MappingProxyType(TABLE), TABLE.values()
        self.memory, self.weight = memoryview(BYTES), Weight()

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x):
        loss = autograd.sum(self.way(self, self.forward(x)) ** 2)
        self.optimizer(loss)
        return loss


def losses(way, change, use_graph):
    set_seed(3)
    model, found = Net(way), []
    change(model, 1.0)
    model.compile([X], use_graph=use_graph)
    for step in range(9):
        if step in (5, 7):
            change(model, 2.0 if step == 5 else 1.0)
        found.append(model(X).item())
    change(model, 1.0)
    return found, model


@pytest.mark.parametrize("name", WAYS)
def test_a_change_after_replays_is_noticed(name):
    want, _ = losses(*WAYS[name], use_graph=False)
    found, model = losses(*WAYS[name], use_graph=True)
    assert found == want and len(set(want)) == len(want)
    assert model.graphs


class Options:
    """Attributes whose names the step does not spell out."""


def _inspected(held):
    return [value for name, value in inspect.getmembers(held) if name == "level"]


def _state(held):
    return [vars(type(held)).get("level"), held.__reduce_ex__(2)[2]["level"]]


@pytest.mark.parametrize("read", [_inspected, _state])
def test_attributes_that_are_read_as_a_whole_stay_compared(read):
    def way(model, x):
        return x * (2.0 if "hard" in read(OPTIONS) else 1.0)

    def run(use_graph):
        set_seed(3)
        model, found = Net(way), []
        model.compile([X], use_graph=use_graph)
        for level in ("a", "b", "c", "d", "hard", "a"):
            OPTIONS.level = level
            found.append(model(X).item())
        return found

    assert run(True) == run(False)


OPTIONS = Options()
