"""Tensors that each step reads in attributes and replaces: arguments of the graph."""

import collections

import numpy as np
import pytest
from recorded import Net, batch, function, pair, replays, same, step
from singa_rs import autograd, layer
from singa_rs.tensor import Tensor, from_numpy

ROWS, WIDTH = 4, 5


def zeros(*shape):
    return Tensor(shape or (ROWS, WIDTH))


def ones():
    return from_numpy(np.ones((ROWS, WIDTH), np.float32))


class Carrying(Net):
    """Mixes a state into what its first layer makes."""

    def __init__(self):
        super().__init__()
        self.h = zeros()

    def forward(self, x):
        return self.fc2(self.mixed(self.fc1(x)))

    def mixed(self, x):
        self.h = autograd.tanh(x + self.h).detach()
        return x * self.h

    def between(self, i):
        """What the program does after a step."""


class Lstm(Carrying):
    def __init__(self):
        super().__init__()
        self.s = None

    def mixed(self, x):
        h, c = self.s or (zeros(), zeros())
        c = c * 0.5 + autograd.tanh(x)
        h = autograd.sigmoid(x + h) * c
        self.s = (h.detach(), c.detach())
        return h


class InDictionary(Carrying):
    def __init__(self):
        super().__init__()
        self.kept = {"h": zeros()}

    def mixed(self, x):
        self.kept["h"] = (x * 0.1 + self.kept["h"]).detach()
        return x + self.kept["h"]


class Average(Carrying):
    def mixed(self, x):
        self.h = 0.9 * self.h + 0.1 * x.detach().mean(0)
        return x - self.h


class Queue(Carrying):
    def __init__(self):
        super().__init__()
        self.queue = zeros(3 * ROWS, WIDTH)

    def mixed(self, x):
        y = x + self.queue.mean(0)
        self.queue = autograd.cat((self.queue[ROWS:], x.detach()), 0)
        return y


class InObject(Carrying):
    def __init__(self):
        super().__init__()
        self.kept = type("Kept", (), {})()
        self.kept.h = zeros()

    def mixed(self, x):
        self.kept.h = (x * 0.1 + self.kept.h).detach()
        return x + self.kept.h


class InLayer(Carrying):
    def __init__(self):
        super().__init__()

        class Cell(layer.Layer):
            def forward(cell, x):
                cell.h = (x * 0.5 + getattr(cell, "h", 0.0)).detach()
                return x + cell.h

        self.cell = Cell()

    def mixed(self, x):
        return self.cell(x)


class WrittenFirst(Carrying):
    def mixed(self, x):
        self.h *= 0.5
        self.h[0] = self.h[1] + 1
        return super().mixed(x)


class TwoPlaces(Carrying):
    def __init__(self):
        super().__init__()
        self.last = self.h

    def mixed(self, x):
        y = x * self.h - self.last * 0.5
        self.h = self.last = autograd.tanh(y).detach()
        return y

    def between(self, i):
        if i % 5 == 4:
            self.h = ones()
        if i % 5 == 2:
            self.last = ones()


class SetByTheProgram(Carrying):
    def between(self, i):
        if i % 4 == 3:
            self.h = ones()


class WrittenByTheProgram(Carrying):
    def between(self, i):
        if i % 4 == 3:
            self.h *= 0.5


class SetToNone(Carrying):
    def mixed(self, x):
        self.h = zeros() if self.h is None else self.h
        return super().mixed(x)

    def between(self, i):
        if i % 6 == 5:
            self.h = None


class Strided(Carrying):
    def mixed(self, x):
        y = super().mixed(x)
        self.h = autograd.cat((self.h, self.h), 1)[:, ::2]
        return y


class Sometimes(Carrying):
    def __init__(self):
        super().__init__()
        self.n = 0

    def mixed(self, x):
        self.n += 1
        y = x + self.h
        if self.n % 3 == 0:
            self.h = y.detach()
        return y


class LastLoss(Carrying):
    def __init__(self):
        super().__init__()
        self.last = zeros(1)

    def forward(self, x):
        return self.fc2(self.fc1(x))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss * (1 + self.last))
        self.last = loss.detach().reshape((1,))
        return out, loss


class Delayed(Carrying):
    def __init__(self):
        super().__init__()
        self.before = zeros()

    def mixed(self, x):
        y = autograd.tanh(x + self.h - self.before)
        self.before, self.h = self.h, y.detach()
        return y

    def between(self, i):
        if i % 6 == 5:
            self.h = ones()


class InTurn(Carrying):
    def __init__(self):
        super().__init__()
        self.other = ones()

    def mixed(self, x):
        y = x + self.h
        self.h, self.other = self.other, self.h
        return y


class Latest(Carrying):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque([zeros(), ones(), zeros()], maxlen=3)

    def mixed(self, x):
        y = x * self.seen[0] + self.seen[2]
        self.seen.append(y.detach())
        return y


class Back(Carrying):
    """Takes back the first state now and then."""

    def __init__(self):
        super().__init__()
        self.first, self.n = ones(), 0

    def mixed(self, x):
        y = super().mixed(x)
        self.n += 1
        if self.n % 4 == 0:
            self.h = self.first
        return y

    def between(self, i):
        if i == 13:
            self.first = zeros()


class LstmSetByTheProgram(Lstm):
    def between(self, i):
        if i % 5 == 4:
            self.s = (ones(), zeros())


class Nested(Carrying):
    def __init__(self):
        super().__init__()
        self.s = [(zeros(), ones()), (ones(), zeros())]

    def mixed(self, x):
        made = []
        for h, c in self.s:
            c = (c * 0.5 + x).detach()
            x = autograd.tanh(x + h) * c
            made.append((x.detach(), c))
        self.s = made
        return x

    def between(self, i):
        if i % 5 == 4:
            self.s = [(ones(), zeros()), (zeros(), ones())]


class BesideAnother(Carrying):
    """A tuple that holds a tensor that stays, too."""

    def __init__(self):
        super().__init__()
        self.weight = ones()
        self.s = (self.h, self.weight)

    def mixed(self, x):
        h, weight = self.s
        y = x + h * weight
        self.s = (autograd.tanh(y).detach(), self.weight)
        return y

    def between(self, i):
        if i == 9:
            self.weight = ones() * 2


KINDS = [
    Carrying, Lstm, InDictionary, Average, Queue, InObject, InLayer, WrittenFirst, TwoPlaces,
    SetByTheProgram, WrittenByTheProgram, SetToNone, Strided, Sometimes, LastLoss,
    Delayed, InTurn, Latest, Back, LstmSetByTheProgram, Nested,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_states_are_arguments(kind):
    recorded, eager = pair(kind)
    given = [batch() for _ in range(24)]
    for i, (x, y) in enumerate(given):
        step(recorded, eager, x, y)
        recorded.between(i)
        eager.between(i)
        same([x.requires_grad for x in held(recorded)], [x.requires_grad for x in held(eager)])
    assert replays(recorded) >= 8


def held(model):
    return [x for x in vars(model).values() if type(x) is Tensor]


@pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")
def test_a_tuple_with_a_tensor_that_stays():
    recorded, eager = pair(BesideAnother)
    for i in range(16):
        step(recorded, eager, *batch())
        recorded.between(i)
        eager.between(i)


def test_states_that_the_program_sets_need_no_graph_of_their_own():
    recorded, eager = pair(LstmSetByTheProgram)
    for i in range(60):
        step(recorded, eager, *batch())
        recorded.between(i)
        eager.between(i)
    assert len(function(recorded).entries) <= 2


def test_results_keep_the_states_that_they_are():
    class Answering(Carrying):
        def train_one_batch(self, x, y):
            old = self.h
            super().train_one_batch(x, y)
            return old, self.h

    recorded, eager = pair(Answering)
    found = []
    for _ in range(10):
        found.append((recorded(*(given := batch())), eager(*given)))
    for ours, theirs in found:
        same(ours, theirs)
        same(*([x.requires_grad for x in one] for one in (ours, theirs)))
    assert replays(recorded) >= 5


def test_a_state_may_be_an_argument_as_well():
    class Given(Carrying):
        def train_one_batch(self, x, y):
            self.h = autograd.tanh(x + self.h).detach()
            return super().train_one_batch(self.h, y)

        def mixed(self, x):
            return x

    recorded, eager = pair(Given)
    for model in (recorded, eager):
        model.h = zeros(4, 6)
    for i in range(12):
        x, y = batch()
        given = [model.h if i % 3 == 2 else from_numpy(x) for model in (recorded, eager)]
        same(recorded(given[0], from_numpy(y)), eager(given[1], from_numpy(y)))
    same(recorded.h, eager.h)
    assert replays(recorded) >= 1


def test_batches_of_several_sizes_have_states_of_their_own():
    class Sized(Carrying):
        def mixed(self, x):
            if self.h.shape[0] != x.shape[0]:
                self.h = zeros(x.shape[0], WIDTH)
            return super().mixed(x)

    recorded, eager = pair(Sized)
    for i in range(20):
        step(recorded, eager, *batch(2 if i % 5 == 4 else ROWS))
    assert replays(recorded) >= 5


def test_explain_names_states():
    recorded, eager = pair(Carrying)
    for _ in range(6):
        step(recorded, eager, *batch())
    assert "key: attribute h, an argument: float32 (4, 5), no gradient" in recorded.explain()
    assert len(function(recorded).entries) == 1


@pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")
def test_programs_that_compare_states_by_identity_stay_right():
    class Comparing(Carrying):
        def __init__(self):
            super().__init__()
            self.first = self.h

        def mixed(self, x):
            y = x * 2 if self.h is self.first else x
            return super().mixed(y)

        def between(self, i):
            if i == 6:
                self.h = self.first

    recorded, eager = pair(Comparing)
    for i in range(12):
        step(recorded, eager, *batch())
        recorded.between(i)
        eager.between(i)


def test_rows_of_one_tensor_are_arguments_wherever_they_lie():
    recorded, eager = pair(Net)
    x, y = batch(40)
    x, y = from_numpy(x), from_numpy(y)
    for i in range(0, 40, 4):
        step(recorded, eager, x[i : i + 4], y[i : i + 4])
    assert replays(recorded) == 8


def test_a_sequence_and_the_one_after_it_may_overlap():
    class Shifted(Net):
        def train_one_batch(self, x, y):
            loss = ((self.fc1(x) - y[:, :5]) ** 2).mean()
            self.optimizer(loss)
            return loss

    recorded, eager = pair(Shifted)
    data = from_numpy(batch(4, 30)[0])
    for i in range(10):
        step(recorded, eager, data[:, i : i + 6], data[:, i + 1 : i + 7])
    assert replays(recorded) == 8
