"""Models and training runs whose checkpoints the tests write."""

import contextlib
import os

import numpy as np
import pytest
from singa_rs import autograd, data, device, layer, module, opt
from singa_rs.tensor import from_numpy

ROWS = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
CLASSES = np.arange(40, dtype=np.int32) % 3


@contextlib.contextmanager
def interrupted_save(monkeypatch):
    """A context in which saving is interrupted after it has renamed its first file."""
    replace, done = os.replace, []

    def once(*args):
        if done:
            raise KeyboardInterrupt
        done.append(replace(*args))

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", once)
        yield


class Net(module.Module):
    """Dropout, batch normalisation, and an optimizer with two moments."""

    def __init__(self, width=8, classes=3):
        super().__init__()
        self.first, self.norm = layer.Linear(width), layer.BatchNorm1d()
        self.drop, self.head = layer.Dropout(0.4), layer.Linear(classes)
        self.optimizer = opt.Adam(opt.CosineDecay(0.05, 50))

    def forward(self, x):
        return self.head(self.drop(autograd.relu(self.norm(self.first(x)))))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss


class Run:
    """A training run: all that a checkpoint has to hold."""

    def __init__(self, seed, use_graph=True, **options):
        device.get_default_device().set_seed(seed)
        self.net = Net(**options)
        self.net.compile([from_numpy(ROWS[:8])], use_graph=use_graph)
        self.loader = data.DataLoader((ROWS, CLASSES), 8, shuffle=True, seed=7)
        self.draws = np.random.default_rng(seed)
        self.losses = []

    @property
    def state(self):
        own = {"optimizer": self.net.optimizer, "loader": self.loader, "draws": self.draws}
        return {**own, "losses": self.losses}

    def steps(self, count, path=None):
        """Makes steps, and in the end a checkpoint; returns what they computed."""
        seen = []
        while len(seen) < count:
            for x, y in self.loader:
                noise = self.draws.normal(size=tuple(x.shape)).astype(np.float32)
                self.losses.append(self.net(x + from_numpy(noise), y).item())
                seen.append(self.losses[-1])
                if len(seen) == count:
                    break
        if path is not None:
            self.net.save(path, self.state)
        return seen

    def resume(self, path):
        """Goes on from a checkpoint."""
        self.losses = self.net.load(path, state=self.state)["losses"]
        return self


def values(net):
    """A model's states as arrays."""
    return {name: one.to_numpy() for name, one in net.get_states().items()}


def same(a, b):
    """Whether two dictionaries of arrays have the same bits."""
    assert sorted(a) == sorted(b)
    for name in a:
        assert a[name].tobytes() == b[name].tobytes(), name
