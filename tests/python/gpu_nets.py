"""Small models and data for tests on a GPU: the machine's where `SINGA_RS_DEVICE` is set and empty,
else one that is emulated, which builds for tests have."""

import os

import numpy as np
import pytest
from singa_rs import _core, device, layer, module, opt, tensor

is_real = os.environ.get("SINGA_RS_DEVICE") == ""
needs_gpu = pytest.mark.skipif(
    not (is_real or hasattr(_core, "emulated_gpu")), reason="a build without an emulated GPU"
)
RNG = np.random.default_rng(5)
X, LABELS = RNG.normal(size=(8, 6)).astype(np.float32), np.arange(8) % 3
A, INTS = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[0, 1, 0], [1, 0, 1]])
CPU = device.get_default_device()


def started(monkeypatch):
    """The GPU."""
    if not is_real:
        monkeypatch.setenv("SINGA_RS_DEVICE", "emulated")
    return device.create_cuda_gpu()


def on(to, array):
    return tensor.from_numpy(np.asarray(array), to, str(np.asarray(array).dtype))


def plain(value):
    """What was computed, without where; only tensors on one device."""
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value.to_numpy().tolist()


def places(value):
    if isinstance(value, (tuple, list)):
        return set().union(*map(places, value))
    return {value.device}


def check(function, gpu):
    """A function of a device gives the same on a GPU as on the CPU, and gives it there."""
    made = function(gpu)
    assert places(made) == {gpu}
    np.testing.assert_allclose(plain(made), plain(function(CPU)), rtol=1e-5)


class Net(module.Module):
    def __init__(self, optimizer=None):
        super().__init__()
        self.linear, self.loss = layer.Linear(3), layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(0.1) if optimizer is None else optimizer

    def forward(self, x):
        return self.linear(x)

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def compiled(to, make=Net, **options):
    CPU.set_seed(0)
    to.set_seed(0)
    model = make()
    model.compile([on(to, X)], **options)
    return model


def losses(model, to, steps=3):
    return [model(on(to, X), on(to, LABELS)).item() for _ in range(steps)]
