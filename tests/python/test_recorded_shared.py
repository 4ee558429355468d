"""Objects that the program has in two places: among a step's arguments or results, and in the model
or elsewhere."""

import numpy as np
import pytest
from recorded import Net, batch, function, pair, replays, same, step
from singa_rs import autograd
from singa_rs.tensor import Tensor, from_numpy

pytestmark = pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")

#: What one of the steps also reaches as an argument.
SHARED = {"k": 0}


class Buffer(Net):
    """Writes to a list in an attribute, and reads the argument."""

    def __init__(self):
        super().__init__()
        self.buffer = [Tensor((4, 6))]

    def train_one_batch(self, x, y, buffer):
        self.buffer[0] = x * 2
        return super().train_one_batch(x + buffer[0], y)


class Counter(Buffer):
    """Counts in a global dictionary, and reads the argument."""

    def train_one_batch(self, x, y, counts):
        SHARED["k"] += 1
        return Net.train_one_batch(self, x * (1 + counts["k"] % 2), y)


class Episode(Buffer):
    """Forgets its state where the argument is another list."""

    def __init__(self):
        super().__init__()
        self.h, self.episode = Tensor((4, 6)), None

    def train_one_batch(self, x, y, episode):
        if episode is not self.episode:
            self.h, self.episode = self.h * 0, episode
        self.h = (x + self.h).detach()
        return super(Buffer, self).train_one_batch(self.h, y)


class Keeping(Buffer):
    """Keeps the argument."""

    def __init__(self):
        super().__init__()
        self.factors = {"w": 1.0}

    def train_one_batch(self, x, y, factors):
        self.factors = factors
        return Net.train_one_batch(self, x * self.factors["w"], y)


class Handing(Buffer):
    """Returns the argument."""

    def train_one_batch(self, x, y, buffer):
        return *Net.train_one_batch(self, x, y), buffer


class Nested(Buffer):
    """Gets one list in two places."""

    def train_one_batch(self, x, y, lists):
        factor = 2.0 if lists["a"] is lists["b"][0] else 3.0
        return Net.train_one_batch(self, x * factor, y)


def _nested():
    one = [1.0]
    return {"a": one, "b": [one]}


EPISODES = [[1], [1]]
#: By the kind of model, the last argument of call number i.
GIVEN = {
    Buffer: lambda model, i: model.buffer,
    Counter: lambda model, i: SHARED,
    Episode: lambda model, i: EPISODES[i // 4],
    Handing: lambda model, i: [Tensor((4, 6))],
    Nested: lambda model, i: _nested(),
}


@pytest.mark.parametrize("kind", GIVEN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("as_arrays", [False, True])
def test_containers_among_the_arguments(kind, as_arrays):
    models = pair(kind)
    for i in range(8):
        given = batch()
        x, y = given if as_arrays else map(from_numpy, given)
        results = []
        for model in models:
            SHARED["k"] = i
            own = GIVEN[kind](model, i)
            *made, last = model(x, y, own)
            assert kind is not Handing or last is own
            results.append(made)
        same(*results)
    assert replays(models[0]) >= 4 or kind in (Buffer, Counter, Episode)


def test_a_dictionary_that_the_step_keeps():
    models, factors = pair(Keeping), ({"w": 1.0}, {"w": 1.0})
    for _ in range(8):
        x, y = batch()
        same(*[model(x, y, own) for model, own in zip(models, factors, strict=True)])
        for model, own in zip(models, factors, strict=True):
            assert model.factors is own
            own["w"] += 0.5


def test_another_list_of_the_same_numbers():
    models = pair(Nested)
    one = [1.0]
    for given in [{"a": one, "b": [one]}] * 4 + [{"a": [1.0], "b": [[1.0]]}] * 4:
        step(*models, *batch(), given)


@pytest.mark.parametrize("use_graph", [True, False])
def test_a_step_fills_a_list_beside_arrays(use_graph):
    class Filling(Net):
        def train_one_batch(self, x, y, log):
            log.append("seen")
            return super().train_one_batch(x, y)

    model, log = pair(Filling)[not use_graph], []
    for _ in range(6):
        model(*batch(), log)
    assert log == ["seen"] * 6


class Statistics(Net):
    """Returns a dictionary that it holds, and trains less where that says so."""

    def __init__(self):
        super().__init__()
        self.stats = {"seen": 0}

    def train_one_batch(self, x, y):
        out, loss = super().train_one_batch(x * (0.5 if self.stats["seen"] >= 8 else 1.0), y)
        self.stats["seen"] += x.shape[0]
        return out, loss, self.stats


def test_a_result_that_the_model_holds():
    models = pair(Statistics)
    for i in range(12):
        x, y = batch()
        results = [model(x, y) for model in models]
        same(*results)
        for model, (_, _, stats) in zip(models, results, strict=True):
            assert stats is model.stats
            if i % 2:
                stats["seen"] = 0


class Returning(Net):
    """Returns what it leaves in attributes: a tensor, and a dictionary that each step makes."""

    def train_one_batch(self, x, y):
        out, self.last = super().train_one_batch(x, y)
        self.parts = {"loss": self.last, "out": [out]}
        return self.last, self.parts, self.parts["out"]


def test_results_that_the_step_leaves():
    models = pair(Returning)
    for _ in range(10):
        for model in models:
            last, parts, out = model(*batch())
            assert last is model.last and parts is model.parts and out is parts["out"]
            assert parts["loss"] is last
    assert replays(models[0]) >= 5


def test_a_step_that_goes_on_after_it_has_read_a_value():
    class Damped(Net):
        def train_one_batch(self, x, y):
            loss = self.loss(self.forward(x), y)
            try:
                factor = 0.1 if float(loss) > 1.0 else 1.0
            except Exception:
                factor = 1.0
            self.optimizer(loss * factor)
            return loss

    models = pair(Damped)
    for _ in range(10):
        step(*models, *batch())
    assert "catches the error" in function(models[0]).eager


class Centred(Net):
    """Training leaves a tensor that evaluation reads."""

    def __init__(self):
        super().__init__()
        self.centre = Tensor((4, 3))

    def forward(self, x):
        return super().forward(x) - self.centre

    def train_one_batch(self, x, y):
        out, loss = super().train_one_batch(x, y)
        self.centre = out.detach()
        return loss


def test_evaluation_of_what_training_leaves():
    models, kept = pair(Centred), ([], [])
    for _ in range(14):
        x, y = batch()
        step(*models, x, y)
        for model, own in zip(models, kept, strict=True):
            own.append(model.centre)
            model.eval()
        step(*models, x)
        for model in models:
            model.train()
    assert replays(models[0], "forward") >= 6
    same(kept[0][8:], kept[1][8:])


def test_a_tensor_that_the_program_replaces_before_each_call():
    class Scaled(Net):
        def train_one_batch(self, x, y):
            return super().train_one_batch(autograd.mul(x, self.scale), y)

    recorded, eager = models = pair(Scaled)
    for i in range(16):
        for model in models:
            model.scale = from_numpy(np.full((1, 6), i, np.float32))
        step(recorded, eager, *batch())
    assert replays(recorded) >= 8
