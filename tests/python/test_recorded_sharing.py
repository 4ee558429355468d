"""What a step reaches through its arguments is told apart from what it reaches otherwise."""

import numpy as np
import pytest
from recorded import (
    RNG,
    Net,
    batch,
    copy,
    evaluated,
    pair,
    replays,
    same,
    same_states,
    step,
    tensor,
)
from singa_rs import module
from singa_rs.tensor import Tensor, from_numpy

# ---- an argument that the step reaches in another way, too ---------------------------------------


def test_argument_that_a_closure_holds_too():
    bank = tensor(8, 6)

    class Nearest(Net):
        def forward(self, x):
            return super().forward(x) + (x @ bank.transpose()).max(axis=1, keepdims=True)

    recorded, eager = pair(Nearest)
    x2, y = tensor(4, 6), from_numpy(batch()[1])
    for x in (bank[:4], x2, bank[:4], bank[4:], x2, bank[2:6]) * 2:
        step(recorded, eager, x, y)
    assert replays(recorded) == 10 and len(recorded.graphs) == 1


class Holder:
    """An object that no recording inspects."""


@pytest.mark.parametrize("writes", ["argument", "other", "neither"])
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_argument_that_an_object_holds_too(writes):
    """The same bits for x, another tensor and x again, through whichever reference x is written."""

    class Step(module.Module):
        def __init__(self, holder):
            super().__init__()
            self.holder = holder

        def forward(self, x):
            before = x * 2
            if writes == "argument":
                x += 1
            if writes == "other":
                self.holder.x += 1
            return before + self.holder.x * x

    values = RNG.normal(size=(2, 3)).astype(np.float32)
    results = []
    for use_graph in (True, False):
        holder = Holder()
        holder.x = from_numpy(values)
        model, x2 = Step(holder), from_numpy(values + 1)
        model.eval()
        model.graph(use_graph)
        given = [holder.x, x2, holder.x, x2, x2, holder.x, holder.x, x2]
        results.append([model(x).to_numpy().tobytes() for x in given])
        results[-1] += [holder.x.to_numpy().tobytes(), x2.to_numpy().tobytes()]
        if use_graph:
            told = "writes the memory of an argument that it also reaches" in model.explain()
            assert told == (writes != "neither")
            assert model.graphs
    assert results[0] == results[1]


def test_function_stays_eager_where_each_call_writes_an_aliased_argument():
    state = tensor(2, 3)

    class Step(module.Module):
        def forward(self, x):
            x *= 2
            return x + state

    model = Step()
    model.eval()
    model.graph(True)
    want = state.to_numpy()
    with pytest.warns(RuntimeWarning, match=r"Step\.forward.*memory of an argument"):
        for _ in range(5):
            want = want * 2
            assert model(state).to_numpy().tobytes() == (want + want).tobytes()


def test_same_tensor_as_two_arguments():
    class Step(module.Module):
        def forward(self, a, rest):
            a += 1
            return a * rest["b"], rest["b"][0]

    recorded, eager = evaluated(Step)
    for i in range(9):
        x, other = tensor(2, 3), tensor(2, 3)
        results = []
        for model in (recorded, eager):
            a = copy(x)
            results.append(model(a, {"b": (a, a[:], copy(other))[i % 3]}))
        same(*results)
    assert len(recorded.graphs) == 2 and replays(recorded, "forward") == 5


# ---- parameters and what the model holds ---------------------------------------------------------


def test_parameter_that_the_step_trains():
    class Tied(Net):
        def train_one_batch(self, x, y, w):
            out = self.forward(x) + (x @ w)[:, :3]
            loss = self.loss(out, y)
            self.optimizer(loss)
            return out, w

    recorded, eager = pair(Tied)
    for i in range(8):
        x, y = map(from_numpy, batch())
        results = []
        for model in (recorded, eager):
            out, w = model(x, y, model.fc1.W)
            assert w is model.fc1.W
            results.append(out)
            if i == 5:
                model.fc1.W.data = from_numpy(np.ones((6, 5), np.float32))
        same(*results)
        same_states(recorded, eager)
    assert replays(recorded) == 4 and len(recorded.graphs) == 2


class Prompted(Net):
    """Trains a parameter that is passed to it."""

    def train_one_batch(self, x, y, prompt):
        out = self.forward(x + prompt)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out


def test_parameters_that_are_no_part_of_the_model():
    recorded, eager = pair(Prompted)
    mine, other = ([Tensor((1, 6), stores_grad=True, name=n) for n in "pq"] for _ in range(2))
    for i in (0, 0, 0, 1, 1, 1, 0, 1, 0, 1):
        x, y = map(from_numpy, batch())
        same(recorded(x, y, mine[i]), eager(x, y, other[i]))
        same(mine, other)
    assert len(recorded.graphs) == 2 and replays(recorded) == 6
    assert mine[0].to_numpy().any() and mine[1].to_numpy().any()


def test_parameter_after_an_ordinary_tensor():
    recorded, eager = pair(Prompted)
    plain = tensor(1, 6)
    mine, other = (Tensor((1, 6), stores_grad=True, name="p") for _ in range(2))
    for i in range(12):
        x, y = map(from_numpy, batch())
        args = (mine, other) if 3 < i < 8 or i == 9 else (plain, plain)
        same(recorded(x, y, args[0]), eager(x, y, args[1]))
        same(mine, other)
    assert mine.to_numpy().any() and len(recorded.graphs) == 2


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_state_of_the_model(writes):
    class Summing(Net):
        def __init__(self):
            super().__init__()
            self.total = tensor(4, 6)

        def train_one_batch(self, x, y):
            if writes:
                self.total += x
            else:
                x = x + self.total
            return *super().train_one_batch(x, y), x * 2

    recorded, eager = pair(Summing)
    eager.total.copy_from(recorded.total)
    y, free = from_numpy(batch()[1]), tensor(4, 6)
    for own in (False, False, False, True, True, True, True, False):
        results = [m(m.total if own else free, y) for m in (recorded, eager)]
        same(*results)
        same(recorded.total, eager.total)
    if writes:
        assert "memory of an argument" in recorded.explain()
    else:
        assert len(recorded.graphs) == 1 and replays(recorded) == 6


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_state_that_each_step_replaces(reads):
    """The step is passed the state that it left in an attribute, and may read that, too."""

    class Recurrent(module.Module):
        def __init__(self):
            super().__init__()
            self.h = Tensor((2, 3))

        def forward(self, x, h):
            out = x * h - self.h if reads else x * h
            self.h = out + 1
            return out

    recorded, eager = evaluated(Recurrent)
    xs, others = ([tensor(2, 3) for _ in range(14)] for _ in range(2))
    results = []
    for model in (recorded, eager):  # one after the other, as each would notice the other's changes
        made = []
        for i, (x, h) in enumerate(zip(xs, others, strict=True)):
            given = h if i in (7, 10) else model.h
            if i == 12:
                given = model.h = others[0]
            if i == 13:  # what the attribute held before
                given = others[0]
            made += [model(x, given), copy(model.h)]
        results.append(made)
    same(*results)
    assert reads or replays(recorded, "forward") >= 12


class Windowed(module.Module):
    def __init__(self, bank):
        super().__init__()
        self.window = bank[:2]

    def forward(self, x):
        return x + self.window


def test_view_in_an_attribute_that_is_moved():
    bank, square = tensor(8, 2), tensor(2, 2)
    recorded, eager = evaluated(Windowed, bank)
    views = [bank[:2]] * 4 + [bank[2:4]] * 3 + [square] * 3 + [square.transpose()]
    for view in views:
        for model in (recorded, eager):
            model.window = view
        x = tensor(2, 2)
        same(recorded(x), eager(x))


def test_attribute_that_is_the_argument_and_moves():
    """It moves to a smaller tensor than the one that the step also reaches through a closure."""
    bank = tensor(8, 2)

    class Reaching(Windowed):
        def forward(self, x):
            return x + bank.sum(axis=0)

    recorded, eager = evaluated(Reaching, bank)
    for view in [bank[:2]] * 4 + [tensor(2, 2)] * 3 + [bank[2:4]] * 2:
        for model in (recorded, eager):
            model.window = view
        same(recorded(recorded.window), eager(eager.window))
    assert replays(recorded, "forward") == 5


def test_parameter_that_a_closure_holds_too():
    p = Tensor((8, 2), stores_grad=True, name="p")
    whole = p[:]

    class Reaching(module.Module):
        def forward(self, p):
            return p * 2 + whole.sum()

    recorded, eager = evaluated(Reaching)
    p.copy_from(tensor(8, 2))
    for i in range(9):
        if i in (4, 7):
            p.data = tensor(8, 2)
        same(recorded(p), eager(p))
    assert replays(recorded, "forward") == 3
