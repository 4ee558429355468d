"""What the call of a replayed step costs beyond its kernels, for a ten-layer perceptron.

    python benches/python/replay.py [--sizes 8]

The whole call from Python, and the kernels alone within a run of the same graph, in turn, so that
both find the processor's caches as Python's interpreter leaves them. With `--sizes`, batches of so
many sizes come one after another, of which each has a graph.
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
    options.add_argument("--sizes", type=int, default=1)
    pairs, sizes = vars(options.parse_args()).values()
    device.get_default_device().set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 32)).astype(np.float32)
    y = rng.integers(0, 10, 32).astype(np.int32)
    batches = [[tensor.from_numpy(one[: 32 - n]) for one in (x, y)] for n in range(sizes)]
    net = Perceptron([32] * 9 + [10], OPTIMIZERS["SGD"]())
    net.compile(batches[0][:1], is_train=True, use_graph=True)
    for batch in batches * 5:
        net(*batch)
    cases = list(zip(batches, net.graphs, strict=True))  # the graph used last is the last

    def pair() -> tuple[float, float]:
        whole = bare = 0.0
        for batch, graph in cases * (RUNS // sizes):
            start = time.perf_counter()
            net(*batch)
            whole += time.perf_counter() - start
            bare += graph.time(batch, 1)
        count = RUNS // sizes * sizes
        return whole / count, bare / count

    times = [pair() for _ in range(pairs)]
    whole, bare = (statistics.median(side) * 1e6 for side in zip(*times, strict=True))
    beyond = statistics.median(a - b for a, b in times) * 1e6
    print(f"call {whole:.1f} us, kernels {bare:.1f} us, beyond them {beyond:.1f} us")


if __name__ == "__main__":
    main()
