"""Training steps with `graph_alg="parallel"` next to `"sequence"`, in turns.

python benches/python/parallel.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from models import LeNet, ResNet, Trained
from singa_rs import autograd, layer, opt
from singa_rs.tensor import Placeholder, Tensor, from_numpy


class Branches(Trained):
    """Many small networks side by side, whose outputs are added."""

    def __init__(self, optimizer: opt.Optimizer, branches: int, width: int) -> None:
        super().__init__(optimizer)
        self.first = [layer.Linear(width, activation="RELU") for _ in range(branches)]
        self.second = [layer.Linear(width, activation="RELU") for _ in range(branches)]
        self.last = [layer.Linear(10) for _ in range(branches)]

    def forward(self, x: Tensor) -> Tensor:
        chains = zip(self.first, self.second, self.last, strict=True)
        return autograd.add_all(*[third(second(first(x))) for first, second, third in chains])


class Towers(Trained):
    """LSTMs side by side over the same sequences, whose mean outputs go into one linear layer."""

    def __init__(self, optimizer: opt.Optimizer, towers: int, inputs: int, units: int) -> None:
        super().__init__(optimizer)
        self.towers = [layer.LSTM(inputs, units, batch_first=True) for _ in range(towers)]
        self.last = layer.Linear(10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(autograd.cat([tower(x)[0].mean(1) for tower in self.towers], 1))


class Inception(Trained):
    """Convolutions with windows of several sizes side by side."""

    def __init__(self, optimizer: opt.Optimizer) -> None:
        super().__init__(optimizer)
        same = lambda size: layer.Conv2d(8, size, padding=size // 2, activation="RELU")  # noqa: E731
        self.first, self.second = [same(size) for size in (1, 3, 5, 3)], [same(3) for _ in range(4)]
        self.pool, self.last = layer.MaxPool2d(2, 2), layer.Linear(10)

    def forward(self, x: Tensor) -> Tensor:
        pairs = zip(self.first, self.second, strict=True)
        found = [self.pool(second(first(x))) for first, second in pairs]
        return self.last(autograd.flatten(autograd.cat(found, 1)))


#: Name -> (model factory, input shape, rounds, steps per round).
CASES: dict[str, tuple[Callable[[opt.Optimizer], Trained], tuple[int, ...], int, int]] = {
    "LeNet, batch 64": (LeNet, (64, 1, 28, 28), 25, 10),
    "ResNet-18, 64 x 64, batch 8": (lambda o: ResNet(18, 10, o), (8, 3, 64, 64), 15, 1),
    "16 networks of 32 units, batch 16": (lambda o: Branches(o, 16, 32), (16, 32), 25, 200),
    "8 networks of 64 units, batch 32": (lambda o: Branches(o, 8, 64), (32, 64), 25, 200),
    "4 networks of 128 units, batch 64": (lambda o: Branches(o, 4, 128), (64, 128), 25, 200),
    "4 LSTMs of 32 units, batch 4": (lambda o: Towers(o, 4, 16, 32), (4, 20, 16), 25, 200),
    "4 LSTMs of 64 units, batch 16": (lambda o: Towers(o, 4, 16, 64), (16, 30, 16), 25, 30),
    "4 branches of convolutions, batch 1": (Inception, (1, 3, 16, 16), 25, 200),
}


def compiled(name: str, graph_alg: str) -> Callable[[], object]:
    """A call that replays a training step."""
    make, shape, _, _ = CASES[name]
    model, rng = make(opt.SGD(lr=0.01, momentum=0.9)), np.random.default_rng(0)
    model.compile([Placeholder(shape)], graph_alg=graph_alg)
    x = from_numpy(rng.normal(size=shape).astype(np.float32))
    y = from_numpy(rng.integers(0, 10, shape[0]).astype(np.int32))
    for _ in range(4):
        model(x, y)
    print(f"{name}: {graph_alg}: {model.graphs[0].summary().splitlines()[-1]}")
    return lambda: model(x, y)


def seconds(step: Callable[[], object], steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps


def main() -> None:
    for name, (_, _, rounds, steps) in CASES.items():
        pair = [compiled(name, algorithm) for algorithm in ("sequence", "parallel")]
        times = [[seconds(step, steps) for step in pair] for _ in range(rounds)]
        gain = statistics.median(sequence / parallel for sequence, parallel in times)
        middle = [1e3 * statistics.median(column) for column in zip(*times, strict=True)]
        print(f"{name}: {middle[0]:.2f} ms, {middle[1]:.2f} ms, gain {gain:.2f}")


if __name__ == "__main__":
    main()
