"""Steps that change the class of an object, and programs that do so between steps."""

import warnings

import numpy as np
import pytest
from singa_rs import layer, module, opt, set_seed
from singa_rs.tensor import from_numpy

X = from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3) / 6)


def states(base, **attributes):
    """Two classes that take turns, with a factor of each."""
    first = type("First", (base,), {"w": 1.0, **attributes})
    return first, type("Second", (first,), {"w": 0.5, "__slots__": ()})


class Scaled(layer.Layer):
    def forward(self, x):
        return x * self.w


#: By kind of object: its two classes.
KINDS = {
    "object": states(object),
    "slots alone": states(object, __slots__=("n",)),
    "list": states(list),
    "list without attributes": states(list, __slots__=()),
    "dict": states(dict),
    "set": states(set),
    "frozenset": states(frozenset),
    "tuple": states(tuple),
    "array": states(np.ndarray),
    "layer": states(Scaled),
}
OUTER = {}


class Net(module.Module):
    """Counts its steps; in some of them an object gets its other class, by which it multiplies."""

    def __init__(self, kinds, is_outside=False, every=3):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(3), opt.SGD(0.1)
        self.kinds, self.every, self.n = kinds, every, 0
        self.one = OUTER["one"] = self.made()
        if is_outside:
            del self.one

    def made(self):
        first = self.kinds[0]
        return first((1,)) if issubclass(first, np.ndarray) else first()

    def turn(self):
        self.n += 1
        if self.n % self.every == 0:
            one = self.held()
            one.__class__ = self.kinds[type(one) is self.kinds[0]]

    def held(self):
        return self.one if hasattr(self, "one") else OUTER["one"]

    def forward(self, x):
        return self.fc(x) * self.held().w

    def train_one_batch(self, x):
        loss = self.forward(x).mean()
        self.optimizer(loss)
        self.turn()
        return loss


class Turning(Net):
    """Its own class changes."""

    w = 1.0

    def made(self):
        return None

    def held(self):
        return self


class Turned(Turning):
    w = 0.5


def compiled(use_graph, cls, *args, **options):
    set_seed(3)
    model = cls(*args, **options)
    model.compile([X], is_train=True, use_graph=use_graph)
    return model


def told(model, loss):
    return type(model.held()), model.n, loss.item()


def both(count, cls, *args, between=lambda model, i: None, **options):
    """What a recorded and an eager model tell after each step."""
    found = []
    for use_graph in (True, False):
        model, rows = compiled(use_graph, cls, *args, **options), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for i in range(count):
                between(model, i)
                rows.append(told(model, model(X)))
        found.append(rows)
    return found


@pytest.mark.parametrize("every", [1, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_changes_the_class_of_an_object(kind, every):
    recorded, eager = both(20, Net, KINDS[kind], every=every)
    assert recorded == eager


@pytest.mark.parametrize("kind", ["object", "slots alone", "dict", "layer"])
def test_a_step_changes_the_class_of_a_global_object(kind):
    recorded, eager = both(20, Net, KINDS[kind], is_outside=True)
    assert recorded == eager


def test_a_step_changes_the_class_of_its_model():
    recorded, eager = both(20, Turning, (Turning, Turned))
    assert recorded == eager


@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_program_changes_the_class_between_steps(kind, is_outside):
    def change(model, i):
        if i % 4 == 3:
            model.held().__class__ = KINDS[kind][i % 8 == 3]

    options = {"is_outside": is_outside, "every": 1000, "between": change}
    recorded, eager = both(20, Net, KINDS[kind], **options)
    assert recorded == eager


@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_leaves_classes_as_they_are(kind, is_outside):
    model = compiled(True, Net, KINDS[kind], is_outside, 1)
    model.plan(X)
    assert type(model.held()) is KINDS[kind][0]
    model(X)
    model.plan(X)
    assert type(model.held()) is KINDS[kind][1]


def test_a_plan_leaves_the_class_of_the_model():
    model = compiled(True, Turning, (Turning, Turned), every=1)
    model.plan(X)
    assert type(model) is Turning


class Failing(Net):
    def train_one_batch(self, x):
        super().train_one_batch(x)
        if self.n == 3:
            raise OSError("no more")


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_puts_the_class_back(kind):
    model = compiled(True, Failing, KINDS[kind], every=3)
    for _ in range(2):
        model(X)
    with pytest.raises(OSError, match="no more"):
        model(X)
    assert (type(model.one), model.n) == (KINDS[kind][0], 2)


class Unrecorded(Net):
    """Steps that no graph can do run again eagerly."""

    def train_one_batch(self, x):
        super().train_one_batch(x)
        return {"this": object(), "w": self.held().w}


@pytest.mark.parametrize("is_outside", [False, True])
def test_a_step_that_runs_again_changes_the_class_once(is_outside):
    model = compiled(True, Unrecorded, KINDS["object"], is_outside, 1)
    model(X)
    assert type(model.held()) is KINDS["object"][1]


class Factor:
    """A factor of all that a class may have."""

    __slots__ = ()
    shared = 5.0

    def own(self):
        return getattr(self, "mark", 1.0)

    def factor(self):
        return self.shared * self.slot * self.own()

    def count(self):
        """Counts in the class, in a slot and in an attribute that comes and goes."""
        type(self).calls += 1
        self.slot += 1
        if hasattr(self, "mark"):
            del self.mark
        else:
            self.mark = 2.0


class Scale(Factor, opt.SGD):
    def __init__(self):
        super().__init__(0.1)

    def __call__(self, loss):
        super().__call__(loss * self.factor())


class Rate(Factor, opt.DecayScheduler):
    def __init__(self):
        super().__init__(0.1)

    def call(self, step):
        return step * 0.1 * self.factor()


class Average(Factor, opt.MovingAverage):
    def update(self, params):
        super().update(params)
        for one in self.averages.values():
            one *= self.factor()


class Owner(module.Module):
    """Its optimizer, schedule or average is of a class of the program."""

    def __init__(self, kind, counts=False):
        super().__init__()
        made = type(kind.__name__, (kind,), {"__slots__": ("slot",), "shared": 1.0, "calls": 0})()
        made.slot = made.mark = 2.0
        self.made, self.counts, self.fc = made, counts, layer.Linear(3)
        self.optimizer = made if kind is Scale else opt.SGD(made if kind is Rate else 0.1)
        self.average = made if kind is Average else opt.MovingAverage(0.5)

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x):
        loss = self.forward(x).mean()
        self.optimizer(loss)
        self.average.update(self.fc.get_params())
        if self.counts:
            self.made.count()
        return loss, self.made.shared


#: What a program does to an object, or to its class.
EVENTS = {
    "class attribute": lambda one: setattr(type(one), "shared", 3.0),
    "method": lambda one: setattr(type(one), "factor", lambda self: 3.0),
    "new method": lambda one: setattr(type(one), "own", lambda self: 3.0),
    "slot": lambda one: setattr(one, "slot", 3.0),
    "deleted attribute": lambda one: delattr(one, "mark"),
    "deleted class attribute": lambda one: delattr(type(one), "shared"),
}


def trained(use_graph, kind, event=lambda one: None, counts=False):
    """What a model has learnt, and what its object holds, after an event between steps."""
    model = compiled(use_graph, Owner, kind, counts)
    for i in range(12):
        if i == 6:
            event(model.made)
        _, shared = model(X)
    one = model.made
    weights = [*model.get_params().values(), *model.average.averages.values()]
    found = [weight.to_numpy().tolist() for weight in weights]
    return found, shared, type(one).calls, one.slot, getattr(one, "mark", None)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("kind", [Scale, Rate, Average])
def test_the_program_changes_its_own_optimizer_schedule_or_average(kind, event):
    change = EVENTS[event]
    eager = trained(False, kind, change)
    assert trained(True, kind, change) == eager != trained(False, kind)


@pytest.mark.parametrize("kind", [Scale, Rate, Average])
def test_a_step_changes_its_own_optimizer_schedule_or_average(kind):
    eager = trained(False, kind, counts=True)
    assert trained(True, kind, counts=True) == eager
    assert eager[2] == 12


@pytest.mark.parametrize("kind", [Scale, Rate, Average])
def test_a_plan_leaves_slots_and_attributes_of_optimizers_and_schedules(kind):
    model = compiled(True, Owner, kind, True)
    for _ in range(3):
        before = type(model.made).calls, model.made.slot, getattr(model.made, "mark", None)
        model.plan(X)
        assert (type(model.made).calls, model.made.slot) == before[:2]
        assert getattr(model.made, "mark", None) == before[2]
        model(X)
