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
from models import LeNet, ResNet
from report import duration, ratio
from singa_rs import layer, module, opt, tensor
from singa_rs.compat.singa import install

Step = Callable[[], float]
Network = Callable[[opt.Optimizer], module.Module]


class Convolutions(LeNet):
    """The network of `cnn/model/cnn.py`."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        self.conv1 = layer.Conv2d(20, 5, activation="RELU")
        self.conv2 = layer.Conv2d(50, 5, activation="RELU")


def resnet50(optimizer: opt.Optimizer) -> ResNet:
    """The network `resnet50` of `cnn/model/resnet.py`."""
    return ResNet(50, 10, optimizer)


CASES = {
    "cnn": (Convolutions, (64, 1, 28, 28), {"num_channels": 1}, 60),
    "resnet": (resnet50, (2, 3, 224, 224), {"num_channels": 3}, 6),
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


def ours(network: Network, x: np.ndarray, y: np.ndarray) -> Step:
    """A step of the module."""
    model = network(sgd())
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
    for name, (network, shape, options, turns) in CASES.items():
        x = draws.normal(size=shape).astype(np.float32)
        y = draws.integers(0, 10, shape[0]).astype(np.int32)
        steps = theirs(name, x, y, options), ours(network, x, y)
        for step in steps * 4:  # records, compares, and warms up
            step()
        pairs = [[timed(step, clock) for step in steps] for _ in range(turns)]
        medians = [duration(statistics.median(one)) for one in zip(*pairs, strict=True)]
        quotient = ratio([a / b for a, b in pairs])
        print(f"| {name}, batch {shape[0]} | {' | '.join(medians)} | {quotient} |", flush=True)


if __name__ == "__main__":
    main()
