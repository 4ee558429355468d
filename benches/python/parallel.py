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

    def __init__(self, optimizer: opt.Optimizer, branches: int = 16, width: int = 48) -> None:
        super().__init__(optimizer)
        self.first = [layer.Linear(width, activation="RELU") for _ in range(branches)]
        self.second = [layer.Linear(width, activation="RELU") for _ in range(branches)]
        self.last = [layer.Linear(10) for _ in range(branches)]

    def forward(self, x: Tensor) -> Tensor:
        chains = zip(self.first, self.second, self.last, strict=True)
        return autograd.add_all(*[third(second(first(x))) for first, second, third in chains])


#: Name -> (model factory, input shape, rounds, steps per round).
CASES: dict[str, tuple[Callable[[opt.Optimizer], Trained], tuple[int, ...], int, int]] = {
    "LeNet, batch 64": (LeNet, (64, 1, 28, 28), 25, 10),
    "ResNet-18, 64 x 64, batch 8": (lambda o: ResNet(18, 10, o), (8, 3, 64, 64), 15, 1),
    "16 networks of 48 units, batch 16": (Branches, (16, 48), 25, 100),
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
        ratio = statistics.median(parallel / sequence for sequence, parallel in times)
        middle = [1e3 * statistics.median(column) for column in zip(*times, strict=True)]
        print(f"{name}: {middle[0]:.2f} ms, {middle[1]:.2f} ms, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
