"""Steps that raise in a run: what they have changed until then is what eager execution changes."""

import numpy as np
import pytest
from recorded import CPU
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.tensor import from_numpy

EYE = np.eye(3, dtype=np.float32)


class Layers(module.Module):
    """All gradients come before what may fail, and all updates after it."""

    def __init__(self):
        super().__init__()
        self.layers = layer.Sequential(*(layer.Linear(64, bias=False) for _ in range(4)))
        self.optimizer = opt.SGD(0.1)

    def forward(self, x, square):
        return self.layers(x)

    def train_one_batch(self, x, square):
        loss = (autograd.tanh(self.layers(x)) ** 2).sum()
        pairs = list(autograd.backward(loss))
        inverse = autograd.inv(square)
        for parameter, gradient in pairs:
            self.optimizer.apply(parameter.name, parameter, gradient)
        self.optimizer.step()
        return inverse


class Summing(module.Module):
    """Adds to a buffer after what may fail."""

    def __init__(self):
        super().__init__()
        self.w = from_numpy(np.ones((64, 64), np.float32))
        self.sum = tensor.zeros((4, 64))

    def forward(self, x, square):
        return x

    def train_one_batch(self, x, square):
        made = x[:4] @ self.w
        inverse = autograd.inv(square)
        self.sum += made
        return inverse * 1.0


class Labelled(Summing):
    """The same, of labels that the step computes."""

    def train_one_batch(self, x, square):
        made = x[:4] @ self.w
        labels = autograd.argmax(square, 1) + (square.sum() < 0.0) * 5
        loss = autograd.softmax_cross_entropy(square, labels)
        self.sum += made
        return loss


class Around(Summing):
    """Adds to the buffer before it and after it."""

    def train_one_batch(self, x, square):
        self.sum += 1.0
        inverse = autograd.inv(square)
        self.sum += x[:4] @ self.w
        return inverse * 1.0


def states(kind, use_graph, wrong):
    """The states after a call that raises and after another one."""
    x = from_numpy(np.ones((16, 64), np.float32))
    CPU.set_seed(1)
    model = kind()
    model.compile([x, from_numpy(EYE)], is_train=True, use_graph=use_graph)
    seen = []
    for square in (EYE, EYE, EYE, wrong, EYE):
        try:
            model(x, from_numpy(square))
            assert square is not wrong
        except ValueError:
            assert square is wrong
        found = {**model.get_states(), "sum": getattr(model, "sum", x)}
        seen.append({name: one.to_numpy().copy() for name, one in found.items()})
    return seen


@pytest.mark.parametrize("kind", [Layers, Summing, Around, Labelled])
def test_what_a_step_that_fails_has_changed(kind):
    wrong = -EYE if kind is Labelled else 0 * EYE
    for a, b in zip(states(kind, True, wrong), states(kind, False, wrong), strict=True):
        assert a.keys() == b.keys()
        for name in a:
            assert np.array_equal(a[name], b[name]), name
