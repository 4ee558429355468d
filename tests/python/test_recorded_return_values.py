"""What recorded steps return, and steps of which no graph can be made."""

import collections
import functools
import types

import numpy as np
import pytest
from scenarios import Fit, hold, x
from singa_rs import autograd, layer
from singa_rs.tensor import Tensor
from test_recorded_identity import made, switched

pytestmark = pytest.mark.filterwarnings("ignore:.*runs eagerly")


class Answer(dict):
    """Has state besides its items."""

    def __init__(self, mode, **items):
        super().__init__(**items)
        self.mode = mode


RESULTS = {
    "counter": (lambda x: collections.Counter(hits=3), dict),
    "class": (lambda x: Answer("train", a=x), lambda r: r.mode),
    "defaultdict": (lambda x: collections.defaultdict(list, a=x), lambda r: r["b"]),
    "ordered": (lambda x: collections.OrderedDict(b=x, a=1), list),
    "values": (lambda x: {"a": x}.values(), lambda r: [*r][0].to_numpy().tolist()),
    "partial": (lambda x: functools.partial(print, x), lambda r: r.args[0].to_numpy().tolist()),
    "error": (lambda x: ValueError(x), lambda r: r.args[0].to_numpy().tolist()),
    "object": (lambda x: types.SimpleNamespace(x=x), lambda r: r.x.to_numpy().tolist()),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_other_classes(name):
    make, look = RESULTS[name]
    session = switched(lambda m: None)
    hold(made(lambda self, x: make(x * 2.0)), lambda m: [look(one) for one in session(m)])


@pytest.mark.parametrize("part", [slice(None), slice(1)])
@pytest.mark.parametrize("size", [2, 2000])
def test_arrays_that_the_model_holds(part, size):
    def session(m):
        for i in range(8):
            out, weights = m(x())
            weights[:1] = i  # the program may write into the model's array
        return [out, m.weights.tolist(), np.shares_memory(weights, m.weights)]

    def forward(self, x):
        return x * float(self.weights[0]), self.weights[part]

    hold(made(forward, weights=lambda: np.ones(size, np.float32)), session)


def test_a_result_that_keeps_its_gradient():
    class Keeping(Fit):
        def train_one_batch(self, x):
            h = self.fc(x)
            h.stores_grad = True
            autograd.reduce_mean(h * h).reshape((1,)).backward()
            return h

    def session(m):
        h = [m(x()) for _ in range(4)][-1]
        return [h.stores_grad, h.grad]

    hold(Keeping, session)


# ---- steps that cannot be a graph run once -------------------------------------------------------


def answering(forward, **attributes):
    """A model whose result no graph can return."""
    return made(lambda self, x: types.SimpleNamespace(out=forward(self, x)), **attributes)


def calls(look, count=6):
    def session(m):
        for _ in range(count):
            m(x())
        return [look(m)]

    return session


class Tagged(np.ndarray):
    """An array of the program."""


@pytest.mark.parametrize("kind", [np.ndarray, Tagged])
def test_arrays_are_put_back(kind):
    def forward(self, x):
        self.seen[0] += 1
        return x * 2.0

    model = answering(forward, seen=lambda: np.zeros(2, int).view(kind))
    hold(model, calls(lambda m: m.seen.tolist()))


class Slots:
    """Has no `__dict__`."""

    __slots__ = ("n",)


def test_slots_are_emptied():
    def forward(self, x):
        self.c.n = getattr(self.c, "n", 0) + 1
        return x * 2.0

    hold(answering(forward, c=Slots), calls(lambda m: m.c.n))


def test_parameters_begin_with_the_same_numbers():
    def forward(self, x):
        if self.fc is None:
            self.fc = layer.Linear(1)
        return self.fc(x)

    hold(answering(forward, fc=lambda: None), calls(lambda m: m.fc.W, 1))


def test_tensors_that_a_step_makes_may_stay_attributes():
    def forward(self, x):
        self.last, self.before = x * 2.0, self.last
        return self.last if self.before is None else self.last + self.before

    model = made(forward, last=lambda: None, before=lambda: None)
    hold(model, lambda m: [m(Tensor.clone(x())) for _ in range(6)])


def test_masked_arrays_and_read_only_ones_are_left_alone():
    def forward(self, x):
        self.masked[0] += 1
        self.plain.flags.writeable = False
        return x * float(self.masked.sum())

    model = answering(
        forward,
        masked=lambda: np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
        plain=lambda: np.zeros(2),
    )
    session = calls(lambda m: [np.ma.isMaskedArray(m.masked), m.masked.mask.tolist()], 3)
    hold(model, session)
