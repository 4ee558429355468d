"""What the call of a replayed step costs beyond its kernels, for a ten-layer perceptron.

    python benches/python/replay.py

The whole call from Python, and the kernels alone within a run of the same graph, in turn, so that
both find the processor's caches as Python's interpreter leaves them.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from models import OPTIMIZERS, Perceptron
from singa_rs import device, tensor

RUNS = 100


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=50)
    pairs = options.parse_args().pairs
    device.get_default_device().set_num_threads(1)
    rng = np.random.default_rng(0)
    x = tensor.from_numpy(rng.normal(size=(32, 32)).astype(np.float32))
    y = tensor.from_numpy(rng.integers(0, 10, 32).astype(np.int32))
    net = Perceptron([32] * 9 + [10], OPTIMIZERS["SGD"]())
    net.compile([x], is_train=True, use_graph=True)
    for _ in range(5):
        net(x, y)
    graph = net.graphs[-1]

    def pair() -> tuple[float, float]:
        whole = bare = 0.0
        for _ in range(RUNS):
            start = time.perf_counter()
            net(x, y)
            whole += time.perf_counter() - start
            bare += graph.time([x, y], 1)
        return whole / RUNS, bare / RUNS

    times = [pair() for _ in range(pairs)]
    whole, bare = (statistics.median(side) * 1e6 for side in zip(*times, strict=True))
    beyond = statistics.median(a - b for a, b in times) * 1e6
    print(f"call {whole:.1f} us, kernels {bare:.1f} us, beyond them {beyond:.1f} us")


if __name__ == "__main__":
    main()
