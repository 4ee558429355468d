"""Functions whose replays do not make up for their recordings stay eager."""

import warnings

import numpy as np
import pytest
from recorded import function, replays
from singa_rs import autograd, layer, module, opt, set_seed
from singa_rs.tensor import from_numpy

X = np.ones((2, 3), np.float32)


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(3), opt.SGD(0.1)
        self.n, self.text, self.mean, self.loss, self.k = 0, "", None, None, 0

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x, epoch=0):
        loss = autograd.reduce_mean(self.forward(x)).reshape((1,))
        self.optimizer(loss * self.factor(epoch))
        self.n += 1
        self.after(loss.detach())
        return loss

    def factor(self, epoch):
        return 1.0

    def after(self, loss):
        pass


class Logging(Net):
    """Its text never comes back."""

    def after(self, loss):
        if self.n % 10 == 0:
            self.text = f"step {self.n}"


class Averaging(Net):
    """Multiplies by a number that never comes back, in every other step."""

    def after(self, loss):
        if self.n % 2 == 0:
            w = self.fc.W.detach()
            self.mean = w if self.mean is None else (self.mean * self.k + w) / (self.k + 1)
            self.k += 1


class Counted(Net):
    """Each pair of calls has an argument of its own."""

    def factor(self, epoch):
        return 1.0 if epoch < 3 else 0.5


class Deleting(Net):
    """Has an attribute after every other step."""

    def after(self, loss):
        if self.n % 2:
            self.loss = loss
        else:
            del self.loss


def trained(cls, use_graph, calls, given=lambda i: (X,)):
    set_seed(3)
    model = cls()
    model.compile([X], is_train=True, use_graph=use_graph)
    return model, [model(*given(i)).item() for i in range(calls)]


@pytest.mark.parametrize("cls", [Logging, Averaging, Counted, Deleting])
def test_recordings_of_which_too_few_are_replayed(cls):
    def given(i):
        return (X, i // 2) if cls is Counted else (X,)

    with pytest.warns(RuntimeWarning, match="eagerly from now on: .*make up for .*; reason of"):
        model, losses = trained(cls, True, 500, given)
    assert losses == trained(cls, False, 500, given)[1]
    assert function(model).eager and function(model).history.recordings < 140


class Seldom(Net):
    """What it records seldom is worth it."""

    def after(self, loss):
        if self.n % 60 == 0:
            self.text = f"step {self.n}"


def test_recordings_that_replays_make_up_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = trained(Seldom, True, 4200)[0]
    assert not function(model).eager and function(model).history.recordings > 140


def test_many_shapes_that_come_back():
    rows = np.random.default_rng(3).integers(1, 17, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = trained(Net, True, 400, lambda i: (np.ones((rows[i], 3), np.float32),))[0]
    assert function(model).history.recordings < 40 and replays(model) > 300


def test_checks_are_not_counted():
    model = Net()
    model.compile([X], is_train=True, use_graph=True, check_every=2)
    for _ in range(300):
        model(from_numpy(X))
    assert not function(model).eager and function(model).history.recordings > 96
