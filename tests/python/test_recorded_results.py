"""Results of recorded steps: those still held are never overwritten."""

import warnings

import numpy as np
from recorded import Net, batch, pair, replays, same, step
from singa_rs import module
from singa_rs.tensor import Tensor, from_numpy


def test_results_kept_in_a_list():
    recorded, eager = pair(Net)
    kept = []
    for _ in range(8):
        out, loss = step(recorded, eager, *batch())
        kept.append((out, loss, out.to_numpy(), loss.to_numpy()))
    for out, loss, *values in kept:
        assert out.to_numpy().tobytes() == values[0].tobytes()
        assert loss.to_numpy().tobytes() == values[1].tobytes()
    assert replays(recorded) == 6


class Keeping(Net):
    """Keeps its last output as an attribute."""

    def __init__(self):
        super().__init__()
        self.last, self.history = None, {}

    def train_one_batch(self, x, y):
        out, loss = super().train_one_batch(x, y)
        self.last = out
        self.history["loss"] = loss
        return out, loss


def test_result_also_kept_as_an_attribute():
    recorded, eager = pair(Keeping)
    kept = []
    for _ in range(8):
        out, _ = step(recorded, eager, *batch())
        kept.append((out, out.to_numpy()))
        same(recorded.last, out)
        same(recorded.history["loss"], eager.history["loss"])
    for out, value in kept:
        assert out.to_numpy().tobytes() == value.tobytes()
    assert replays(recorded) == 6


def test_kept_attribute_that_the_user_replaces():
    recorded, eager = pair(Keeping)
    for i in range(10):
        step(recorded, eager, *batch())
        same(recorded.last, eager.last)
        if i % 2:
            recorded.last = eager.last = None
        if i == 6:
            mine = Tensor((2, 2))
            recorded.last = eager.last = mine
    assert mine.to_numpy().tolist() == [[0, 0], [0, 0]]


def test_argument_kept_as_an_attribute():
    class Storing(Net):
        def train_one_batch(self, x, y):
            self.seen = x
            return super().train_one_batch(x, y)

    recorded, eager = pair(Storing)
    x, y = map(from_numpy, batch())
    for _ in range(4):
        step(recorded, eager, x, y)
    other = from_numpy(batch()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            step(recorded, eager, other, y)
            assert recorded.seen is other
        for _ in range(3):
            step(recorded, eager, x, y)
            assert recorded.seen is x


def test_an_argument_that_an_attribute_shows_stays_what_it_was():
    class Doubling(module.Module):
        def __init__(self):
            super().__init__()
            self.h = from_numpy(np.ones(2, np.float32))

        def forward(self, x):
            return x

        def train_one_batch(self, h):
            self.h = h * 2
            return {"before": h, "after": self.h}

    found = {}
    for use_graph in (False, True):
        model = Doubling()
        model.compile([from_numpy(np.ones(2, np.float32))], use_graph=use_graph)
        found[use_graph] = []
        for _ in range(6):
            made = model(model.h)
            found[use_graph].append([made[name].numpy().tolist() for name in ("before", "after")])
    assert found[True] == found[False]
