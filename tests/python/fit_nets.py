"""A network, its data and its runs for the tests of `Module.fit`."""

import numpy as np
from singa_rs import data, device, layer, module, opt
from singa_rs.module import callbacks
from singa_rs.tensor import from_numpy

CPU = device.get_default_device()
RNG = np.random.default_rng(0)
X = RNG.normal(size=(52, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32) + (X[:, 1] > 0)
HELD = X[40:], Y[40:]


class Net(module.Module):
    def __init__(self, optimizer=None):
        super().__init__()
        self.a, self.drop, self.b = layer.Linear(8, activation="RELU"), layer.Dropout(0.2), None
        self.norm, self.b = layer.BatchNorm1d(), layer.Linear(3)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = optimizer or opt.Adam(0.02)
        self.average = opt.MovingAverage(0.9)

    def forward(self, x):
        return self.b(self.norm(self.drop(self.a(x))))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        self.average.update(self.get_params())
        return out, loss


def made(compiles=True, **arguments):
    CPU.set_seed(3)
    net = Net(**arguments)
    if compiles:
        net.compile([from_numpy(X[:8])])
    return net


def loader(**options):
    return data.DataLoader((X[:40], Y[:40]), 8, shuffle=True, seed=5, **options)


def states(net):
    """The bytes of a model and its optimizer."""
    found = {}

    def note(name, one):
        if isinstance(one, dict):
            for key, value in one.items():
                note(f"{name}/{key}", value)
        else:
            array = one.to_numpy() if hasattr(one, "to_numpy") else np.asarray(one)
            assert array.dtype != object
            found[name] = array.tobytes()

    note("", net.get_states())
    note("optimizer", net.optimizer.get_states())
    return found


class Scripted(callbacks.Callback):
    """Puts figures into the history, in place of a validation."""

    def __init__(self, name, values):
        self.name, self.values = name, values

    def on_epoch_end(self, run):
        run.history[-1][self.name] = self.values[run.epoch - 1]
