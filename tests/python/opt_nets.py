"""Small nets that are trained, recorded and eagerly, and compared to the bit."""

import numpy as np
from recorded import CPU, function, replays
from singa_rs import autograd, layer, module
from singa_rs.tensor import Placeholder, from_numpy

RNG = np.random.default_rng(2)
BATCHES = [
    (RNG.normal(size=(4, 6)).astype(np.float32), RNG.normal(size=(4, 2)).astype(np.float32))
    for _ in range(8)
]


class Net(module.Module):
    """Two layers, and an optimizer that is called with a mean of squares."""

    def __init__(self, optimizer):
        super().__init__()
        self.one, self.two = layer.Linear(5, activation="TANH"), layer.Linear(2)
        self.optimizer = optimizer

    def forward(self, x):
        return self.two(self.one(x))

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def made(cls, use_graph, *args):
    CPU.set_seed(3)
    net = cls(*args)
    net.compile([Placeholder((4, 6), device=CPU)], use_graph=use_graph)
    [state.to_numpy() for state in net.get_states().values()]
    return net


def trained(net, steps=range(8), between=None):
    """The parameters after each step."""
    seen = []
    for i in steps:
        net.train_one_batch(*map(from_numpy, BATCHES[i]))
        if between is not None:
            between(net, i)
        seen.append({k: p.to_numpy() for k, p in net.get_params().items()})
    return seen


def equal(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert value.tobytes() == b[key].tobytes(), key


def both(cls, make, between=None):
    """Trains a recorded and an eager net; asserts equal bits, one graph; returns the eager run."""
    nets = [made(cls, use_graph, make()) for use_graph in (True, False)]
    runs = [trained(net, between=between) for net in nets]
    equal(*runs)
    assert replays(nets[0]) and len(function(nets[0]).entries) == 1
    return runs[1]
