"""`compile(exact=False)`: what is replaced, and how near the results stay."""

import json

import numpy as np
import pytest
from recorded import CPU
from singa_rs import autograd, layer, module, opt, tensor

RNG = np.random.default_rng(17)


def names(graph):
    return [node["name"] for node in json.loads(graph.to_json())["nodes"]]


class Residual(module.Module):
    """Two normalised convolutions beside a shortcut."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (layer.Conv2d(16, 3, padding=1, bias=b) for b in (False, True))
        self.norms = [layer.BatchNorm2d(), layer.BatchNorm2d()]
        self.flatten, self.out = layer.Flatten(), layer.Linear(5)
        self.loss, self.optimizer = layer.SoftMaxCrossEntropy(), opt.SGD(lr=0.05)

    def forward(self, x):
        h = autograd.relu(self.norms[0](self.first(x)))
        h = autograd.relu(autograd.add(self.norms[1](self.second(h)), h))
        return self.out(self.flatten(h))

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def models(make, given, is_train, *options):
    """Models of the same parameters, each compiled with other options."""
    made = []
    for option in options:
        CPU.set_seed(9)
        model = make()
        model.compile(given, is_train=is_train, use_graph=True, **option)
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


def test_batch_normalisation_is_folded_into_convolutions():
    x = tensor.from_numpy(RNG.normal(size=(8, 16, 9, 9)).astype(np.float32))
    y = tensor.from_numpy(RNG.integers(0, 5, 8).astype(np.int32))
    exact, folded = models(Residual, [x], True, {}, {"exact": False})
    for _ in range(3):
        for _ in range(3):  # the averages and weights move
            [model(x, y) for model in (exact, folded)]
        folded.set_states({k: v.to_numpy() for k, v in exact.get_states().items()})
        [model.eval() for model in (exact, folded)]
        for _ in range(3):
            want, got = (model(x).to_numpy() for model in (exact, folded))
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        [model.train() for model in (exact, folded)]
    graphs = [model.graphs[-1] for model in (exact, folded)]
    assert "normalize" in names(graphs[0]) and "normalize" not in names(graphs[1])
    assert graphs[1].constants[2] == 3, "once for each time that it was trained"


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_folded_follows_its_parameters(exact):
    x = tensor.from_numpy(RNG.normal(size=(2, 16, 9, 9)).astype(np.float32))
    replayed, eager = models(Residual, [x], False, {"exact": exact}, {})
    eager.graph(False)
    for scale in (1.0, 0.5, -2.0):
        for model in (replayed, eager):
            model.norms[0].scale.set_value(scale)
            model.norms[1].running_var.set_value(abs(scale))
        for _ in range(3):
            got, want = replayed(x).to_numpy(), eager(x).to_numpy()
            np.testing.assert_allclose(
                got, want, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-4
            )
