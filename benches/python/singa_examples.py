"""Training steps of SINGA's examples, beside the same networks written for this package.

    SINGA=folder OMP_NUM_THREADS=1 python benches/python/singa_examples.py --processor

`examples/cnn/model` is read from a checkout of SINGA and imported through the alias. Its networks
make steps as `train_cnn.py` does: pictures and labels are copied into tensors, the model is called,
outputs and loss are read. The others get the arrays as arguments of `train_one_batch`. Both are in
one process and take turns, of a step each; medians, and the middle half of the quotients of turns.
`--processor` counts processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from models import Trained
from report import duration, ratio
from singa_rs import autograd, layer, opt, tensor
from singa_rs.compat.singa import install
from singa_rs.tensor import Tensor

Step = Callable[[], float]


class Convolutions(Trained):
    """The network of `cnn/model/cnn.py`."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        self.conv1 = layer.Conv2d(20, 5, activation="RELU")
        self.conv2 = layer.Conv2d(50, 5, activation="RELU")
        self.pool1, self.pool2 = layer.MaxPool2d(2, 2), layer.MaxPool2d(2, 2)
        self.flatten = layer.Flatten()
        self.hidden, self.out = layer.Linear(500), layer.Linear(10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool2(self.conv2(self.pool1(self.conv1(x))))
        return self.out(autograd.relu(self.hidden(self.flatten(x))))


class Bottleneck(layer.Layer):
    """A unit of ResNet-50 (He et al., 2016)."""

    def __init__(self, width: int, stride: int, is_first: bool) -> None:
        super().__init__()
        sizes = ((width, 1, 1), (width, 3, stride), (4 * width, 1, 1))
        self.convs = [layer.Conv2d(n, k, stride=s, padding=k // 2, bias=False) for n, k, s in sizes]
        self.norms = [layer.BatchNorm2d() for _ in sizes]
        self.short = layer.Conv2d(4 * width, 1, stride=stride, bias=False) if is_first else None
        self.norm = layer.BatchNorm2d()

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(y))
            y = autograd.relu(y) if i < 2 else y
        return autograd.relu(y + (self.norm(self.short(x)) if self.short else x))


class ResNet50(Trained):
    """The network `resnet50` of `cnn/model/resnet.py`."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        self.conv = layer.Conv2d(64, 7, stride=2, padding=3, bias=False)
        self.norm = layer.BatchNorm2d()
        self.pool = layer.MaxPool2d(3, 2, 1)
        self.blocks = [
            Bottleneck(64 << stage, 1 if i or not stage else 2, i == 0)
            for stage, count in enumerate((3, 4, 6, 3))
            for i in range(count)
        ]
        self.out = layer.Linear(10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(autograd.relu(self.norm(self.conv(x))))
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean((2, 3)))


CASES = {
    "cnn": (Convolutions, (64, 1, 28, 28), {"num_channels": 1}, 60),
    "resnet": (ResNet50, (2, 3, 224, 224), {"num_channels": 3}, 6),
}


def sgd() -> opt.SGD:
    return opt.SGD(lr=0.005, momentum=0.9, weight_decay=1e-5)


def theirs(name: str, x: np.ndarray, y: np.ndarray, options: dict[str, int]) -> Step:
    """A step of SINGA's model, as `train_cnn.py` makes it."""
    there = importlib.import_module(f"model.{name}")
    make = there.resnet50 if name == "resnet" else there.create_model
    model = make(num_classes=10, **options)
    tx, ty = tensor.Tensor(x.shape), tensor.Tensor(y.shape, dtype=tensor.int32)
    model.set_optimizer(sgd())
    model.compile([tx], is_train=True, use_graph=True, sequential=False)

    def step() -> float:
        tx.copy_from_numpy(x)
        ty.copy_from_numpy(y)
        out, loss = model(tx, ty, "plain", None)
        tensor.to_numpy(out)
        return tensor.to_numpy(loss)[0]

    return step


def ours(kind: type[Trained], x: np.ndarray, y: np.ndarray) -> Step:
    """A step of the module."""
    model = kind(sgd())
    model.compile([tensor.Placeholder(x.shape)], is_train=True)

    def step() -> float:
        out, loss = model.train_one_batch(x, y)
        out.to_numpy()
        return loss.item()

    return step


def timed(step: Step, clock: Callable[[], float]) -> float:
    start = clock()
    step()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--singa", default=os.environ.get("SINGA", ""), help="a checkout of SINGA")
    parser.add_argument("--processor", action="store_true", help="count processor time")
    args = parser.parse_args()
    clock = time.process_time if args.processor else time.perf_counter
    folder = Path(args.singa) / "examples" / "cnn"
    if not (folder / "model").is_dir():
        raise SystemExit(f"singa_examples: {folder} has no folder model; --singa names a checkout")
    install()
    sys.path.insert(0, str(folder))
    draws = np.random.default_rng(0)
    print("| network | SINGA's program | module | quotient |\n|---|---|---|---|")
    for name, (kind, shape, options, turns) in CASES.items():
        x = draws.normal(size=shape).astype(np.float32)
        y = draws.integers(0, 10, shape[0]).astype(np.int32)
        steps = theirs(name, x, y, options), ours(kind, x, y)
        for step in steps * 4:  # records, compares, and warms up
            step()
        pairs = [[timed(step, clock) for step in steps] for _ in range(turns)]
        medians = [duration(statistics.median(one)) for one in zip(*pairs, strict=True)]
        quotient = ratio([a / b for a, b in pairs])
        print(f"| {name}, batch {shape[0]} | {' | '.join(medians)} | {quotient} |", flush=True)


if __name__ == "__main__":
    main()
