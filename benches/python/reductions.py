"""Reductions of what has just been computed: a recorded function as it was recorded, and rewritten,
in turn.

    python benches/python/reductions.py

Prints the median times on two threads, their ratio, and the memory of the arenas.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from singa_rs import autograd, device, tensor
from singa_rs.record.tracing import trace

ROUNDS = 101
SHAPES = [(300, 1000), (1000, 1000), (4096, 1024), (100_000, 64)]
FUNCTIONS: dict[str, Callable] = {
    "(x * y).sum()": lambda x, y: (x * y).sum(),
    "(x * y).sum(axis=0)": lambda x, y: (x * y).sum(axis=0),
    "(x * y).sum(axis=1)": lambda x, y: (x * y).sum(axis=1),
    "((x - y) ** 2).mean()": lambda x, y: ((x - y) ** 2).mean(),
    "(tanh(x) * y).sum(axis=0)": lambda x, y: (autograd.tanh(x) * y).sum(axis=0),
}


def measured(function: Callable, shape: tuple[int, ...]) -> tuple[list[float], list[int]]:
    """Seconds of a run as recorded and rewritten, and the bytes of the arenas."""
    rng = np.random.default_rng(0)
    xs = [tensor.from_numpy(rng.normal(size=shape).astype(np.float32)) for _ in range(2)]
    traced = trace(device.get_default_device(), xs, lambda: function(*xs))
    graphs = [traced.recording.graph(rewrite=way) for way in (False, True)]
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for graph, taken in zip(graphs, times, strict=True):
            start = time.perf_counter()
            graph.run(xs)
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times], [g.arena_bytes for g in graphs]


def main() -> None:
    print(
        "| function | shape | as recorded | rewritten | ratio | arenas |\n|---|---|---|---|---|---|"
    )
    for name, function in FUNCTIONS.items():
        for shape in SHAPES:
            (before, after), arenas = measured(function, shape)
            sizes = " and ".join(f"{size / 2**20:.2f}" for size in arenas)
            print(
                f"| `{name}` | {shape[0]} x {shape[1]} | {before * 1e3:.3f} ms | "
                f"{after * 1e3:.3f} ms | {after / before:.2f} | {sizes} MiB |"
            )


if __name__ == "__main__":
    main()
