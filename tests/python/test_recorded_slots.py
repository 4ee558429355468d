"""Attributes that objects keep in slots beside what they hold."""

from collections import OrderedDict, deque

import numpy as np
import pytest
from recorded import Net, batch, pair, replays, step, tensor
from singa_rs import autograd
from singa_rs.tensor import Tensor


def slotted(base, *given):
    """What makes objects of a class with a slot."""
    return lambda: type("Slotted", (base,), {"__slots__": ("kept",)})(*given)


KINDS = {
    "object": slotted(object),
    "list": slotted(list),
    "dict": slotted(dict),
    "ordered": slotted(OrderedDict),
    "set": slotted(set),
    "frozenset": slotted(frozenset, (3,)),
    "deque": slotted(deque),
    "bytearray": slotted(bytearray),
    "array": slotted(np.ndarray, (0,)),
    "tensor": slotted(Tensor, (2, 3)),
}


class Counting(Net):
    """Counts its steps, by which the loss is multiplied."""

    first = 0

    def __init__(self, make):
        super().__init__()
        self.one = make()
        self.one.kept = self.first
        if isinstance(self.one, Tensor):
            self.one.set_value(0.0)

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y) * (1 + self.one.kept % 2)
        self.optimizer(loss)
        self.one.kept += 1
        return loss


class Recurrent(Counting):
    """Keeps a hidden state."""

    first = None

    def train_one_batch(self, x, y):
        h = self.forward(x)
        h = h if self.one.kept is None else autograd.tanh(h + self.one.kept)
        loss = autograd.softmax_cross_entropy(h, y)
        self.optimizer(loss)
        self.one.kept = h.detach()
        return loss


class Deleting(Counting):
    """Every other step has something to delete."""

    def train_one_batch(self, x, y):
        has_one = hasattr(self.one, "kept")
        loss = autograd.softmax_cross_entropy(self.forward(x), y) * (2 if has_one else 1)
        self.optimizer(loss)
        if has_one:
            del self.one.kept
        else:
            self.one.kept = 1
        return loss


@pytest.mark.parametrize("kind", KINDS)
def test_a_counter(kind):
    recorded, eager = models = pair(Counting, KINDS[kind])
    for i in range(14):
        if i == 9:
            for model in models:
                model.one.kept = 20
        step(recorded, eager, *batch())
        assert recorded.one.kept == eager.one.kept
    assert replays(recorded) >= 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_recurrent_state(kind):
    recorded, eager = models = pair(Recurrent, KINDS[kind])
    for i in range(10):
        if i == 7:
            state = tensor(4, 3)
            for model in models:
                model.one.kept = state.clone()
        step(recorded, eager, *batch())
        assert recorded.one.kept.to_numpy().tobytes() == eager.one.kept.to_numpy().tobytes()
    assert replays(recorded) >= 5


@pytest.mark.filterwarnings("ignore:Deleting.train_one_batch. runs eagerly")
@pytest.mark.parametrize("kind", KINDS)
def test_slots_that_steps_empty(kind):
    recorded, eager = pair(Deleting, KINDS[kind])
    for _ in range(8):
        step(recorded, eager, *batch())
        assert hasattr(recorded.one, "kept") == hasattr(eager.one, "kept")


@pytest.mark.parametrize("cls", [Counting, Recurrent, Deleting])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_puts_slots_back(kind, cls):
    model = pair(cls, KINDS[kind])[0]
    model.plan(*batch())
    assert model.one.kept is cls.first or model.one.kept == cls.first


class Given(Net):
    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y) * x.kept
        self.optimizer(loss)
        return loss


def test_an_argument_with_slots():
    models, (x, y) = pair(Given), batch()
    given = slotted(Tensor, x.shape)()
    given.copy_from(x)
    for i in range(6):
        given.kept = 1.0 + i // 4
        step(*models, given, y)
