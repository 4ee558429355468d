"""Training steps whose optimizer, gradients and parameters are divided among processes.

    python benches/python/shards.py --ranks 2

For each stage of `DistOpt(shard=)`: the median time of a step, all stages in turn, and rank 0's
memory of parameters, states and the arena. Each process has one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from singa_rs import autograd, device, dist, layer, opt, tensor
from singa_rs.module import Module

STAGES = (0, 1, 2, 3)
#: Steps before those that are timed, and these.
WARMING, TIMED = 6, 20


class Perceptron(Module):
    """Layers of one width, each of which is a bucket."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = layer.ModuleList(layer.Linear(width) for _ in range(depth))
        self.bucket = width * (width + 1)

    def forward(self, x: Any) -> Any:
        """(N, width) -> (N, width)."""
        for one in self.layers:
            x = autograd.relu(one(x))
        return x

    def train_one_batch(self, x: Any, y: Any) -> Any:
        """The loss."""
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer.backward_and_update(loss, self.bucket)
        return loss


def measured(stage: int, width: int, depth: int, rows: int) -> tuple[float, dict[str, int]]:
    """Milliseconds of a step, and the bytes of each account."""
    cpu = device.get_default_device()
    cpu.set_num_threads(1)
    model = Perceptron(width, depth)
    model.optimizer = opt.DistOpt(opt.Adam(1e-3), shard=stage)
    x = tensor.from_numpy(np.ones((rows, width), np.float32))
    model.compile([x], is_train=True)
    times = [_seconds(model, x) for _ in range(WARMING + TIMED)][WARMING:]
    return 1e3 * statistics.median(times), cpu.memory()


def _seconds(model: Perceptron, x: Any) -> float:
    dist.barrier()
    begin = time.perf_counter()
    model(x, x).item()
    return time.perf_counter() - begin


def main() -> None:
    """Prints a row for each stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("ranks", 2), ("rounds", 3), ("width", 1024), ("depth", 8), ("rows", 64)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    args = parser.parse_args()
    given = (args.width, args.depth, args.rows)
    found: dict[int, list[Any]] = {stage: [] for stage in STAGES}
    for _ in range(args.rounds):
        for stage in STAGES:
            found[stage].append(dist.spawn(measured, args.ranks, (stage, *given))[0])
    print("| shard | ms | parameters, MB | states, MB | arena, MB |\n|---|---|---|---|---|")
    for stage, all_of in found.items():
        memory = all_of[0][1]
        cells = [f"{memory[one] / 1e6:.1f}" for one in ("parameters", "states", "arena")]
        took = statistics.median(one for one, _ in all_of)
        print(f"| {stage} | {took:.1f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
