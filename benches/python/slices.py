"""Slices of a tensor in a loop, `x[:, t]`, against `split` along the same axis: forward and
backward, eager, on one thread.

    python benches/python/slices.py

Prints the processor time of a pass over T slices for each T, the same with `split`, and their
ratio: medians of rounds in turn. The gradients of all slices go into one buffer, each slice once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from singa_rs import autograd, device, tensor
from singa_rs.tensor import Tensor

#: Samples, and features of each slice.
SAMPLES, FEATURES = 32, 64
LENGTHS = (32, 64, 128, 256, 512, 1024)


def by_index(x: Tensor) -> list[Tensor]:
    """The slices along axis 1, one by one."""
    return [x[:, t] for t in range(x.shape[1])]


def by_split(x: Tensor) -> list[Tensor]:
    """The same tensors from one operation, whose parts keep the axis with extent 1."""
    parts = autograd.split(x, 1, num_output=x.shape[1])
    return [autograd.squeeze(part, 1) for part in parts]


def passes(x: Tensor, slices: Callable[[Tensor], list[Tensor]]) -> Callable[[], Tensor]:
    """A loss that reads all slices, and its gradient."""

    def run() -> Tensor:
        h = None
        for part in slices(x):
            h = autograd.tanh(part if h is None else autograd.add(part, h))
        return autograd.gradients(autograd.reduce_sum(h))[x]

    return run


def seconds(run: Callable[[], Tensor]) -> float:
    """Seconds of processor time that one pass takes, however busy the machine is."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=21)
    rounds = options.parse_args().rounds
    autograd.training = True
    device.get_default_device().set_num_threads(1)
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        x = tensor.from_numpy(rng.normal(size=(SAMPLES, length, FEATURES)).astype(np.float32))
        x.stores_grad = True
        sides = passes(x, by_index), passes(x, by_split)
        index, split = (side().to_numpy() for side in sides)
        if not np.array_equal(index, split):
            raise SystemExit(f"T = {length}: the gradients differ")
        times = [tuple(map(seconds, sides)) for _ in range(rounds)]
        mine, other = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
        ratio = statistics.median(a / b for a, b in times)
        print(f"| {length} | {mine:.2f} ms | {other:.2f} ms | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
