"""Models whose steps are saved, and a program that trains one on without knowing it."""

import os
import subprocess
import sys

import numpy as np
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs.tensor import Placeholder

RNG = np.random.default_rng(5)
ROWS = 8


class Net(module.Module):
    """Layers in a row, and an optimizer that is called with a classification loss."""

    def __init__(self, optimizer, *layers):
        super().__init__()
        self.layers = layer.Sequential(*layers)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = optimizer

    def forward(self, x):
        return self.layers(x)

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


class Sequence(Net):
    """An LSTM, of whose results the last one is classified."""

    def __init__(self):
        super().__init__(opt.RMSProp(0.01))
        self.lstm, self.fc = layer.LSTM(4, 6, batch_first=True), layer.Linear(3)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class Attention(Net):
    """Self-attention with dropout, of whose results the mean is classified."""

    def __init__(self):
        super().__init__(opt.AdamW(opt.CosineDecay(0.01, 20), clip_norm=1.0))
        self.block = layer.TransformerEncoderLayer(8, 2, 16, dropout=0.1)
        self.fc = layer.Linear(3)

    def forward(self, x):
        return self.fc(autograd.reduce_mean(self.block(x), [1], keepdims=0))


def _mlp():
    return Net(opt.SGD(0.1, momentum=0.9), layer.Linear(16), layer.ReLU(), layer.Linear(3))


def _conv():
    return Net(
        opt.SGD(0.05, momentum=0.9, weight_decay=1e-4),
        layer.Conv2d(8, 3, padding=1, bias=False),
        layer.BatchNorm2d(),
        layer.ReLU(),
        layer.MaxPool2d(2),
        layer.Flatten(),
        layer.Linear(3),
    )


def _dropout():
    decay = opt.ExponentialDecay(0.01, decay_steps=3, decay_rate=0.7, staircase=True)
    return Net(opt.Adam(decay), layer.Linear(16), layer.Dropout(0.5), layer.Linear(3))


#: Name -> how it is made, and the shape of its inputs.
MODELS = {
    "mlp": (_mlp, (ROWS, 6)),
    "conv": (_conv, (ROWS, 2, 8, 8)),
    "dropout": (_dropout, (ROWS, 6)),
    "lstm": (Sequence, (ROWS, 5, 4)),
    "attention": (Attention, (ROWS, 5, 8)),
}


def made(name, **options):
    """A compiled model, and ten batches for it."""
    make, shape = MODELS[name]
    model = make()
    model.compile([Placeholder(shape)], **options)
    return model, batches(shape)


def batches(shape, count=10):
    """Inputs and labels."""
    rng = np.random.default_rng(len(shape))
    draw = lambda: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    return [(draw(), rng.integers(0, 3, shape[0]).astype(np.int32)) for _ in range(count)]


def train(model, given):
    """The results of a step on each batch, as arrays."""
    return [
        [one.to_numpy() for one in model.train_one_batch(*map(tensor.from_numpy, b))] for b in given
    ]


def states_of(model):
    """All that training changes, by the names of a step's states."""
    named = {f"{k}": v for k, v in model.optimizer.get_named_states("optimizer").items()}
    found = {**model.get_states(), **named, "optimizer.lr_value": model.optimizer.lr_value}
    return {name: state.to_numpy() for name, state in found.items()}


#: Runs a step on rows of arrays in a file, and writes results and states to another.
RUNNER = """
import sys
import numpy as np
import singa_rs

path, given, made, saved = sys.argv[1:]
step = singa_rs.Step.load(path)
found = {}
with np.load(given) as arrays:
    rows = len(arrays.files) // len(step.arguments)
    for row in range(rows):
        args = [arrays[f"{row}.{one.name}"] for one in step.arguments]
        for one, result in zip(step.results, step.run(*args), strict=True):
            found[f"{row}.{one.name}"] = result.to_numpy()
found.update((f"state {name}", state.to_numpy()) for name, state in step.states.items())
np.savez(made, **found)
if saved:
    step.save(saved)
assert "singa_rs.layer" not in sys.modules and "singa_rs.opt" not in sys.modules
"""


def environment():
    """That of a process which finds oneDNN and has as many threads as this one, on which the bits
    of oneDNN's products depend."""
    threads = str(device.get_default_device().num_threads)
    return {**os.environ, "VIRTUAL_ENV": sys.prefix, "OMP_NUM_THREADS": threads}


def run_apart(folder, path, rows, names=("x", "y"), saved=""):
    """What another process makes of a step and these rows of arguments, by name."""
    given, made = folder / "given.npz", folder / "made.npz"
    arrays = {
        f"{n}.{name}": one
        for n, row in enumerate(rows)
        for name, one in zip(names, row, strict=True)
    }
    np.savez(given, **arrays)
    command = [sys.executable, "-c", RUNNER, str(path), str(given), str(made), str(saved)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == 0, done.stderr
    with np.load(made) as found:
        return dict(found)
