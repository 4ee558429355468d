"""Taps that are removed and set again, of one module or several, are served by the same graphs."""

import numpy as np
import pytest
from recorded import B, Net, evaluated, function, pair, replays, same, step
from singa_rs import layer, module, opt
from singa_rs.tensor import from_numpy
from tap_models import Inside, equal, tapped


@pytest.mark.parametrize("options", [{}, {"grad": True}, {"value": False, "grad": True}])
@pytest.mark.parametrize("what", ["norm", "fc1.W"])
def test_one_after_another(what, options):
    models, tap = tapped()
    if what == "fc1.W":
        options = {}
    seen = []
    for _ in range(4):
        taps = tap(what, **options)
        for _ in range(3):
            step(*models, *B)
            equal(taps)
        assert taps[0].value is not None or taps[0].grad is not None
        [one.remove() for one in taps]
        seen += taps
    step(*models, *B)
    assert all(one.value is None and one.grad is None for one in seen), "those that were removed"
    assert len(function(models[0]).entries) == 1, "one graph serves all of them"
    assert replays(models[0]) >= 9


def test_one_that_replaces_another():
    models, tap = tapped()
    first = tap("fc1", grad=True)
    for _ in range(4):
        step(*models, *B)
    second = tap("fc1", grad=True)
    for _ in range(3):
        step(*models, *B)
        equal(second)
        assert first[0].value is None and first[0].grad is None
    third = tap("fc1")
    for _ in range(3):
        step(*models, *B)
        equal(third)
        assert second[0].value is None and third[0].grad is None


def test_one_inside_a_step_that_is_removed():
    models, _ = tapped(Inside)
    for _ in range(4):
        step(*models, *B)
    for _ in range(3):
        before = [model.taps["hidden"] for model in models]
        [one.remove() for one in before]
        assert not models[0].taps
        for _ in range(2):
            step(*models, *B)
            equal([model.taps["hidden"] for model in models])
        assert before[0].value is None and models[0].taps["hidden"].grad is not None


def test_one_inside_a_step_that_wants_other_things_now_and_then():
    class Sometimes(Net):
        wants = False

        def forward(self, x):
            hidden = self.fc1(x)
            self.tap(hidden, "hidden", grad=self.wants)
            return self.fc2(hidden)

    models, _ = tapped(Sometimes)
    for wants in (False, True, False, True, False):
        for model in models:
            model.wants = wants
        for _ in range(4):
            step(*models, *B)
            taps = [model.taps["hidden"] for model in models]
            equal(taps)
            assert taps[0].wants == (True, wants) and taps[0].value is not None


class Outer(module.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.optimizer = inner, opt.SGD(lr=0.1)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x):
        return self.inner.forward(x)

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("what", ["inner.fc1", "inner.fc1.W"])
def test_a_tap_of_the_module_around_another_that_is_called_by_itself(what):
    models = pair(Net)
    outer = [Outer(model) for model in models]
    for _ in range(4):
        step(*models, *B)
    for _ in range(2):
        taps = [one.tap(what, value=what == "inner.fc1", grad=True) for one in outer]
        for _ in range(4):
            step(*models, *B)
            equal(taps)
            assert taps[0].grad is not None
        [tap.remove() for tap in taps]
        step(*models, *B)


def test_two_modules_that_tap_one_layer():
    models = pair(Net)
    outer = [Outer(model) for model in models]
    for _ in range(3):
        inner_taps = [model.tap(model.fc1) for model in models]
        outer_taps = [one.tap("inner.fc1") for one in outer]
        for _ in range(3):
            step(*models, *B)
            equal(inner_taps), equal(outer_taps)
            same(inner_taps[0].value, outer_taps[0].value)
        [tap.remove() for tap in inner_taps]
        for _ in range(3):
            step(*models, *B)
            equal(outer_taps)
        [tap.remove() for tap in outer_taps]


def test_a_layer_that_was_replaced_under_its_name():
    models = evaluated(Net)
    x = from_numpy(B[0])
    [model(x) for model in models]
    models[1].set_states(models[0].get_states())
    taps = [model.tap("fc1") for model in models]
    for _ in range(3):
        same(*(model(x) for model in models))
    for model in models:
        model.fc1 = layer.Linear(5)
        model(x)
    models[1].set_states(models[0].get_states())
    [tap.remove() for tap in taps]
    again = [model.tap("fc1") for model in models]
    for _ in range(3):
        same(*(model(x) for model in models))
        equal(again)
        assert again[0].value is not None


# ---- what else graphs keep for objects that may be replaced --------------------------------------


class Answers(Net):
    """Returns a tensor that it holds, and keeps one that it makes."""

    def __init__(self):
        super().__init__()
        self.buffer, self.held = from_numpy(np.ones((2, 2), np.float32)), None

    def train_one_batch(self, x, y):
        out, loss = super().train_one_batch(x, y)
        self.held = out * 2
        return self.buffer, loss


def test_a_returned_attribute_that_was_replaced():
    recorded, eager = models = pair(Answers)
    for i in range(9):
        if i == 4:
            for model in models:  # another object on the same memory
                model.buffer = model.buffer.alias()
        if i == 6:
            for model in models:
                model.buffer = from_numpy(np.full((2, 2), 3, np.float32))
        step(recorded, eager, *B)
        assert recorded(*B)[0] is recorded.buffer and eager(*B)[0] is eager.buffer


def test_a_kept_attribute_that_was_replaced():
    recorded, eager = models = pair(Answers)
    for i in range(12):
        if i in (4, 8):
            for model in models:
                model.held = None if i == 4 else from_numpy(B[0])
        step(recorded, eager, *B)
        same(recorded.held, eager.held)


def test_a_returned_attribute_that_the_step_replaces():
    class Swaps(Net):
        last = None

        def train_one_batch(self, x, y):
            before, self.last = self.last, self.fc1(x)
            return super().train_one_batch(x, y)[1], before

    recorded, eager = pair(Swaps)
    for model in (recorded, eager):
        model.last = from_numpy(np.zeros((4, 5), np.float32))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(8):
            step(recorded, eager, *B)
