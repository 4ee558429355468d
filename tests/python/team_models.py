"""Steps large enough for the threads of a team to share them, and digests of their bits."""

import hashlib
import os
import sys
from pathlib import Path

import numpy as np
from singa_rs import autograd, device, layer, module, opt
from singa_rs.tensor import from_numpy
from step_models import Net

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "python"))

import gpt  # noqa: E402

CPU = device.get_default_device()
#: Steps of which the first two are recorded and the others replayed.
STEPS = 4
SIZES = gpt.Sizes(layers=2, heads=4, width=64, context=64, batch=8)


class Lstm(module.Module):
    """An LSTM over (steps, batch, features), each of whose results is classified."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = layer.LSTM(64, 128), layer.Linear(16)
        self.optimizer = opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return self.head(autograd.reshape(self.lstm(x)[0], (-1, 128)))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss


def _conv():
    return Net(
        opt.SGD(0.05, momentum=0.9),
        layer.Conv2d(16, 3, padding=1),
        layer.BatchNorm2d(),
        layer.ReLU(),
        layer.MaxPool2d(2),
        layer.Conv2d(32, 3, padding=1),
        layer.ReLU(),
        layer.Flatten(),
        layer.Linear(10),
    )


def _drawn(shape, classes, labels):
    rng = np.random.default_rng(0)
    return rng.normal(size=shape).astype(np.float32), rng.integers(0, classes, labels, np.int32)


def _gpt():
    return gpt.model(SIZES, CPU.num_threads)


#: Name -> how a model is made, and its batch.
MODELS = {
    "conv": (_conv, _drawn((16, 3, 32, 32), 10, 16)),
    "lstm": (Lstm, _drawn((100, 32, 64), 16, 100 * 32)),
    "gpt": (_gpt, gpt.batch(SIZES)),
}


class Trained:
    """A model of those above with its batch; the same whenever it is made."""

    def __init__(self, name, use_graph=True):
        make, arrays = MODELS[name]
        CPU.set_seed(0)
        self.model, self.batch = make(), [from_numpy(array) for array in arrays]
        self.model.compile(self.batch[:1], use_graph=use_graph)

    def step(self):
        self.model.train_one_batch(*self.batch)

    def digest(self):
        """A digest of all parameters and states of layers."""
        found = hashlib.sha1()
        for value in self.model.get_states().values():
            found.update(value.to_numpy().tobytes())
        return found.hexdigest()


def digest(name, threads, use_graph=True):
    """A digest of a model after some steps on so many threads."""
    CPU.set_num_threads(threads)
    trained = Trained(name, use_graph)
    for _ in range(STEPS):
        trained.step()
    return trained.digest()


def tasks():
    """How many threads the process has."""
    return len(os.listdir("/proc/self/task"))
