"""Short sessions that are compared with eager execution."""

import numpy as np
from recorded import CPU, same
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor, from_numpy

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)


def x():
    return from_numpy(X)


def from_numpy64(array):
    """A tensor of the array, in float64."""
    return from_numpy(array, dtype="float64")


def leaf(*values, dtype="float64"):
    """A tensor that stores its gradient."""
    made = from_numpy(np.array(values), dtype=dtype)
    made.stores_grad = True
    return made


class Step(module.Module):
    """Its training step is its forward pass alone."""

    def train_one_batch(self, *args):
        return self.forward(*args)


class Fit(module.Module):
    """A linear layer that is trained towards zero."""

    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(1), opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return self.fc(x)

    def loss_of(self, x):
        out = self.forward(x)
        return autograd.reduce_mean(out * out).reshape((1,))

    def train_one_batch(self, x):
        loss = self.loss_of(x)
        self.optimizer(loss)
        return loss


def _plain(value):
    return value.to_numpy() if isinstance(value, Tensor) else value


def hold(make, session):
    """Runs a session of a model with a graph and without; both must return the same."""
    seen = []
    for use_graph in (True, False):
        CPU.set_seed(1)
        autograd.training = False
        try:
            model = make()
            model.graph(use_graph)
            shown = session(model)
        finally:
            autograd.training = False
        seen.append(shown if isinstance(shown, (list, tuple)) else [shown])
    for made, want in zip(*seen, strict=True):
        same(made, want)
