"""Rewritten graphs: what they replace, and that they keep every bit."""

import json

import numpy as np
import pytest
from recorded import CPU, step
from singa_rs import autograd, layer, module, opt, tensor


class Net(module.Module):
    """A convolution, batch normalisation and ReLU; what lies between may be answered."""

    def __init__(self, shows):
        super().__init__()
        self.conv, self.norm = layer.Conv2d(6, 3, bias=False), layer.BatchNorm2d()
        self.pool, self.flatten, self.out = layer.MaxPool2d(2, 2), layer.Flatten(), layer.Linear(4)
        self.shows = shows
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(lr=0.1, momentum=0.9)

    def forward(self, x):
        z = self.norm(self.conv(x))
        return self.out(self.flatten(self.pool(autograd.relu(z)))), z

    def train_one_batch(self, x, labels):
        out, z = self.forward(x)
        loss = self.loss(out, labels)
        self.optimizer(loss)
        return (out, loss, z) if self.shows else (out, loss)


def models(make, x):
    """A compiled model and an eager one of the same parameters."""
    made = []
    for use_graph in (True, False):
        CPU.set_seed(5)
        model = make()
        model.compile([x], use_graph=use_graph)
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


@pytest.mark.parametrize("shows", [False, True])
def test_batch_norm_and_relu_become_one_unless_what_is_between_is_seen(shows):
    rng = np.random.default_rng(3)
    x = tensor.from_numpy(rng.normal(size=(4, 3, 9, 9)).astype(np.float32))
    labels = tensor.from_numpy(rng.integers(0, 4, 4).astype(np.int32))
    recorded, eager = models(lambda: Net(shows), x)
    for _ in range(5):
        step(recorded, eager, x, labels)
    names = {node["name"] for node in json.loads(recorded.graphs[-1].to_json())["nodes"]}
    assert ("batch_norm_relu_grad" in names) is not shows
    assert ("relu" in names) is shows


class Wide(module.Module):
    """Two dense layers, the first with a weight whose gradient is large."""

    def __init__(self, optimizer):
        super().__init__()
        self.first, self.second = layer.Linear(128), layer.Linear(4)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = optimizer

    def forward(self, x):
        return self.second(autograd.tanh(self.first(x)))

    def train_one_batch(self, x, labels):
        out = self.forward(x)
        loss = self.loss(out, labels)
        self.optimizer(loss)
        return out, loss


@pytest.mark.parametrize(
    "make",
    [
        lambda: opt.SGD(lr=0.1),
        lambda: opt.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
        lambda: opt.RMSProp(lr=0.01),
        lambda: opt.AdaGrad(lr=0.01),
        lambda: opt.Adam(lr=0.01),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_gradient_is_made_where_its_weight_is_updated(make, dtype):
    rng = np.random.default_rng(4)
    x = tensor.from_numpy(rng.normal(size=(24, 700)).astype(dtype))
    labels = tensor.from_numpy(rng.integers(0, 4, 24).astype(np.int32))
    recorded, eager = models(lambda: Wide(make()), x)
    for _ in range(4):
        step(recorded, eager, x, labels)
    nodes = json.loads(recorded.graphs[-1].to_json())["nodes"]
    assert [node["name"] for node in nodes].count("matmul_update") == 1
    assert recorded.graphs[-1].arena_bytes < 700 * 128 * np.dtype(dtype).itemsize
