"""Costs that a user feels immediately, next to PyTorch's in the same run.

    python benches/python/eager.py        # in an environment with singa_rs and torch: make bench

Prints the time of `relu` on a 4x4 tensor with gradient recording (median of interleaved rounds,
and the ratio), the time of importing the package over importing NumPy, and a few larger
operations.
"""

import argparse
import statistics
import subprocess
import sys
import time

import numpy as np


def rate(call, repeats: int) -> float:
    """Seconds per call."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def interleaved(ours, theirs, repeats: int, rounds: int) -> tuple[float, float]:
    """Medians of both over alternating rounds, so that fluctuations of the machine hit both."""
    rate(ours, repeats), rate(theirs, repeats)
    pairs = [(rate(ours, repeats), rate(theirs, repeats)) for _ in range(rounds)]
    a, b = zip(*pairs, strict=True)
    return statistics.median(a), statistics.median(b)


def report(name: str, ours: float, theirs: float) -> None:
    print(f"{name:34} {ours * 1e6:10.2f} us {theirs * 1e6:10.2f} us {ours / theirs:6.2f}")


def import_time(module: str) -> float:
    """Median seconds that the import takes in a fresh process."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [
        float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(9)
    ]
    return statistics.median(runs[2:])


def operations():
    """(name, singa_rs's call, PyTorch's, repeats) of each comparison."""
    import torch
    from singa_rs import autograd, tensor

    autograd.training = True
    rng = np.random.default_rng(0)

    def pair(*shape):
        array = rng.normal(size=shape).astype(np.float32)
        mine, other = tensor.from_numpy(array), torch.from_numpy(array.copy())
        mine.requires_grad = mine.stores_grad = True
        return mine, other.requires_grad_()

    x, tx = pair(4, 4)
    yield "relu 4x4, recorded", lambda: autograd.relu(x), lambda: torch.relu(tx), 5000
    yield "add 4x4, recorded", lambda: autograd.add(x, x), lambda: torch.add(tx, tx), 5000
    y, ty = pair(512, 1024)
    yield "tanh 512x1024", lambda: autograd.tanh(y), lambda: torch.tanh(ty), 50
    a, ta = pair(512, 512)
    b, tb = pair(512, 512)
    yield "matmul 512", lambda: autograd.matmul(a, b), lambda: torch.matmul(ta, tb), 50


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=11)
    rounds = options.parse_args().rounds
    print(f"{'':34} {'singa_rs':>13} {'PyTorch':>13}  ratio")
    for name, ours, theirs, repeats in operations():
        report(name, *interleaved(ours, theirs, repeats, rounds))
    numpy, ours = import_time("numpy"), import_time("singa_rs")
    print(f"import: {ours - numpy:.3f} s more than NumPy's {numpy:.3f} s")


if __name__ == "__main__":
    main()
