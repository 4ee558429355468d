"""The order of operations: an update runs as soon as its gradient is computed."""

import sys
from pathlib import Path

import numpy as np
import pytest
from singa_rs import autograd, opt, tensor
from singa_rs.record.tracing import trace

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "python"))

from models import LeNet, Perceptron, ResNet  # noqa: E402


def collecting(model):
    """The same model, but with no update before all gradients are computed."""

    class Collecting(type(model)):
        def train_one_batch(self, x, y):
            out = self.forward(x)
            loss = self.loss(out, y)
            for p, g in list(autograd.backward(loss)):
                self.optimizer.apply(p.name, p, g)
            self.optimizer.step()
            return out, loss

    model.__class__ = Collecting
    return model


def planned(model, shape):
    """The plan of a training step."""
    x, y = tensor.Placeholder(shape), tensor.Placeholder(shape[:1], dtype=tensor.int32)
    model.compile([x], is_train=True, use_graph=True)
    return model.plan(x, y)


CASES = {
    "lenet": (lambda: LeNet(opt.SGD(lr=0.01, momentum=0.9)), (64, 1, 28, 28)),
    "resnet18": (lambda: ResNet(18, 10, opt.SGD(lr=0.01, momentum=0.9)), (4, 3, 64, 64)),
    "mlp": (lambda: Perceptron([256] * 6 + [10], opt.Adam(lr=0.001)), (8, 256)),
}


@pytest.mark.parametrize("name", CASES)
def test_collected_gradients_take_no_more_memory_than_those_used_at_once(name):
    make, shape = CASES[name]
    collected, at_once = planned(collecting(make()), shape), planned(make(), shape)
    assert 0 < collected.lower_bound_bytes <= 1.02 * at_once.lower_bound_bytes


def ten_layers():
    return Perceptron([256] * 9 + [10], opt.Adam(lr=0.001))


def test_a_perceptron_of_ten_layers_takes_at_most_0_80_of_what_it_was_written_to_take():
    model, shape = collecting(ten_layers()), (1, 256)
    ordered = planned(model, shape)
    x = tensor.from_numpy(np.zeros(shape, np.float32))
    y = tensor.from_numpy(np.zeros(1, np.int32))
    recording = trace(x.device, [x, y], lambda: model.train_one_batch(x, y)).recording
    recorded = recording.graph(rewrite=False).memory()
    kept = [account for account in ordered.accounts if account != "arena"]
    assert {account: recorded[account] for account in ("parameters", "states")} == {
        account: ordered.accounts[account] for account in ("parameters", "states")
    }
    before = sum(recorded[account] for account in kept) + recorded["arena"]
    assert sum(ordered.accounts[account] for account in kept) + ordered.arena_bytes <= 0.8 * before


def test_collected_gradients_train_to_the_same_bits():
    rng = np.random.default_rng(0)
    data = [
        (rng.normal(size=(8, 64)).astype(np.float32), rng.integers(0, 10, 8).astype(np.int32))
        for _ in range(4)
    ]

    def trained(use_graph):
        model = collecting(Perceptron([64] * 3 + [10], opt.Adam(lr=0.001)))
        x, y = tensor.Placeholder((8, 64)), tensor.Placeholder((8,), dtype=tensor.int32)
        model.compile([x], is_train=True, use_graph=use_graph)
        weights = np.random.default_rng(1)
        for one in model.get_params().values():
            one.copy_from_numpy(weights.normal(size=one.shape).astype(np.float32))
        losses = []
        for images, labels in data:
            x.copy_from(images)
            y.copy_from(labels)
            losses.append(tensor.to_numpy(model(x, y)[1]))
        return losses + [tensor.to_numpy(one) for one in model.get_states().values()]

    for eager, replayed in zip(trained(False), trained(True), strict=True):
        np.testing.assert_array_equal(eager, replayed)
