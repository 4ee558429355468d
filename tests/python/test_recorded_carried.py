"""Tensors that each step reads in attributes and replaces: arguments of the graph."""

import pytest
from carrying import (
    KINDS,
    ROWS,
    WIDTH,
    BesideAnother,
    Carrying,
    InLayer,
    LstmSetByTheProgram,
    ones,
    zeros,
)
from recorded import Net, batch, function, pair, replays, same, step
from singa_rs import autograd
from singa_rs.tensor import Tensor, from_numpy


def train(recorded, eager, count):
    """Steps of both models, after each of which the program does what it does in between."""
    for i in range(count):
        step(recorded, eager, *batch())
        recorded.between(i)
        eager.between(i)
        same([x.requires_grad for x in held(recorded)], [x.requires_grad for x in held(eager)])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_states_are_arguments(kind):
    recorded, eager = pair(kind)
    train(recorded, eager, 24)
    assert replays(recorded) >= 8


def held(model):
    return [x for x in vars(model).values() if type(x) is Tensor]


@pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")
def test_a_tuple_with_a_tensor_that_stays():
    recorded, eager = pair(BesideAnother)
    train(recorded, eager, 16)


def test_states_that_the_program_sets_need_no_graph_of_their_own():
    recorded, eager = pair(LstmSetByTheProgram)
    train(recorded, eager, 60)
    assert len(function(recorded).entries) <= 2


def both(recorded, eager):
    """Steps of several models in turn, compared."""
    for ours, theirs in zip(recorded, eager, strict=True):
        step(ours, theirs, *batch())


def test_models_that_share_a_layer_share_its_state():
    (a, x), (b, y) = pair(InLayer), pair(InLayer)
    b.cell, y.cell = a.cell, x.cell
    for _ in range(12):
        both((a, b), (x, y))
    assert replays(a) >= 4 and replays(b) >= 4


def test_states_that_the_program_swaps():
    (a, x), (b, y) = pair(Carrying), pair(Carrying)
    for i in range(16):
        both((a, b), (x, y))
        if i % 3 == 2:
            a.h, b.h = b.h, a.h
            x.h, y.h = y.h, x.h
    assert replays(a) >= 8


def test_streams_with_states_of_their_own():
    recorded, eager = pair(Carrying)
    states = [[zeros(), zeros()] for _ in range(3)]
    for i in range(18):
        recorded.h, eager.h = states[i % 3]
        step(recorded, eager, *batch())
        states[i % 3] = [recorded.h, eager.h]
        for one in states:
            same(*one)
    assert replays(recorded) >= 12


def test_two_graphs_may_keep_what_the_other_has_left():
    class Synchronising(Carrying):
        def __init__(self):
            super().__init__()
            self.target, self.n = ones(), 0

        def mixed(self, x):
            self.n += 1
            y = super().mixed(x) * self.target
            if self.n % 4 == 0:
                self.target = self.h
            return y

    recorded, eager = pair(Synchronising)
    for _ in range(32):
        step(recorded, eager, *batch())
        same(recorded.target, eager.target)
    assert replays(recorded) >= 12


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
    train(recorded, eager, 12)


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
