"""Modes, generators and settings of layers: each change between calls is noticed."""

import numpy as np
import pytest
from recorded import CPU, B, Net, evaluated, pair, replays, same
from singa_rs import autograd, layer, module
from singa_rs.tensor import Tensor, from_numpy

X = B[0]


# ---- modes and generators ------------------------------------------------------------------------


class Dropping(module.Module):
    def __init__(self):
        super().__init__()
        self.drop = layer.Dropout(0.5)

    def forward(self, x):
        return self.drop(x * 1.0)


class Around(module.Module):
    def __init__(self):
        super().__init__()
        self.part, self.deep = Dropping(), [Dropping()]

    def forward(self, x):
        return self.deep[0](self.part(x))


def drawn(call):
    CPU.set_seed(0)
    return call().to_numpy()


def both(cls, calls=4):
    """A recorded and an eager model in evaluation mode, called a few times."""
    models = [cls() for _ in range(2)]
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([from_numpy(X)], is_train=False, use_graph=use_graph)
        for _ in range(calls):
            model(from_numpy(X)), model.forward(from_numpy(X))
    return models


def agree(models, call):
    x = from_numpy(X)
    for _ in range(3):
        recorded, eager = (drawn(lambda m=m: call(m, x)) for m in models)
        assert np.array_equal(recorded, eager)
    return recorded


def test_forward_follows_the_assigned_mode():
    models = both(Dropping)
    for training in (True, False, True, True, False):
        autograd.training = training
        drops = (agree(models, lambda m, x: m.forward(x)) == 0).any()
        assert drops == training
    other = Dropping()
    autograd.training = True
    other.train()
    assert not (agree(models, lambda m, x: m.forward(x)) == 0).any(), "its own mode holds again"


@pytest.mark.parametrize("which", [lambda m: m.part, lambda m: m.deep[0]])
def test_a_submodule_with_its_own_mode(which):
    models = [Around() for _ in range(2)]
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([from_numpy(X)], is_train=False, use_graph=use_graph)
        part = Dropping()
        if which(model) is model.part:
            model.part = part
        else:
            model.deep[0] = part
        for _ in range(4):
            model(from_numpy(X))
    for training in (True, False, True):
        for model in models:
            which(model).train(training)
            autograd.training = False
        assert (agree(models, lambda m, x: m(x)) == 0).any() == training


class Seeding(Net):
    seed = 7

    def __init__(self):
        super().__init__()
        self.drop = layer.Dropout(0.5)

    def train_one_batch(self, x, y):
        noise = self.drop(x * 1.0)
        CPU.set_seed(self.seed)
        out, loss = super().train_one_batch(self.drop(x), y)
        return out, loss, noise


def test_a_seed_that_the_step_sets():
    recorded, eager = pair(Seeding)
    for i in range(8):
        if i == 5:
            recorded.seed = eager.seed = (1 << 63) - 1
        results = []
        for model in (recorded, eager):
            CPU.set_seed(i)
            results.append((model(*B), from_numpy(X).uniform(0, 1)))
        same(*results)
    assert replays(recorded) >= 3


def test_a_seed_that_decides_initial_values():
    class Late(module.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.drop = (
                layer.Linear(5),
                layer.Linear(3),
                layer.Dropout(0.5),
            )

        def train_one_batch(self, x):
            CPU.set_seed(5)
            return self.drop(self.second(self.first(x))) + Tensor((4, 3)).gaussian(0.0, 1.0)

    got = []
    for use_graph in (True, False):
        CPU.set_seed(1)
        model = Late()
        model.train()
        model.graph(use_graph)
        got.append([model(from_numpy(X)).to_numpy() for _ in range(4)])
        got[-1].append(Tensor((4, 3)).gaussian(0.0, 1.0).to_numpy())
    for a, b in zip(*got, strict=True):
        assert np.array_equal(a, b)


def test_a_seed_in_a_recording_by_hand():
    with CPU.record() as graph:
        CPU.set_seed(11)
        made = autograd.dropout(from_numpy(X), 0.5)
    autograd.training = True
    values = []
    for _ in range(3):
        graph.run()
        values.append(made.to_numpy())
    assert all(np.array_equal(values[0], value) for value in values)


# ---- layers --------------------------------------------------------------------------------------


class Images(module.Module):
    def __init__(self):
        super().__init__()
        self.conv = layer.Conv2d(2, 3, padding=1)
        self.norm = layer.BatchNorm2d()
        self.pool = layer.MaxPool2d(2)

    def forward(self, x):
        return self.pool(self.norm(self.conv(x)))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m.conv, "handle", autograd.ConvHandle(3, 1, 0)),
        lambda m: setattr(m.conv, "handle", autograd.ConvHandle(3, 2, 1)),
        lambda m: setattr(m.pool, "handle", autograd.PoolingHandle(2, is_max=False)),
        lambda m: setattr(m.norm, "handle", autograd.BatchNormHandle(eps=0.5)),
    ],
)
def test_handles_that_are_replaced(change):
    models = evaluated(Images)
    x = from_numpy(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))
    [model(x) for model in models]
    models[1].set_states(models[0].get_states())
    for i in range(6):
        if i == 3:
            [change(model) for model in models]
        same(*(model(x) for model in models))


def test_handles_stay_as_they_are():
    for handle in (autograd.ConvHandle(3), autograd.PoolingHandle(2), autograd.BatchNormHandle()):
        with pytest.raises(AttributeError, match="make another"):
            handle.stride = 2
    assert autograd.ConvHandle(3) == autograd.ConvHandle((3, 3)) != autograd.ConvHandle(3, 2)
