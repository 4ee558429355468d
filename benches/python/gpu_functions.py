"""Single operations on a GPU beside PyTorch's: microseconds of the host, and until the GPU is done.

    python benches/python/gpu_functions.py

Needs PyTorch, and a GPU of NVIDIA. PyTorch multiplies without TF32, as singa_rs does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from singa_rs import _core, device, tensor

#: Calls before those that are timed, and how many are.
WARMING, SMALL, LARGE = 20, 200, 20


def micros(call: Callable[[], object], wait: Callable[[], object], count: int) -> tuple[float, ...]:
    """Of one call: the host's, and all of it."""
    for _ in range(WARMING):
        call()
    wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    host = time.perf_counter()
    wait()
    return tuple((end - start) / count * 1e6 for end in (host, time.perf_counter()))


def main() -> None:
    """Prints a row of a table for each operation."""
    gpu, rng = device.create_cuda_gpu(), np.random.default_rng(0)
    print("| operation | singa_rs host, all | PyTorch host, all |\n|---|--:|--:|")

    def row(title: str, ours: Callable[[], object], theirs: Callable[[], object], count: int):
        mine = micros(ours, lambda: _core.wait(gpu), count)
        other = micros(theirs, torch.cuda.synchronize, count)
        cells = (f"{host:.1f}, {whole:.1f} us" for host, whole in (mine, other))
        print(f"| {title} | {' | '.join(cells)} |", flush=True)

    def pair(shape: tuple[int, ...], dtype: str = "float32"):
        array = rng.normal(size=shape).astype(np.float32)
        there = torch.from_numpy(array).cuda().to(getattr(torch, dtype))
        return tensor.from_numpy(array, gpu, dtype), there

    for count in (1_000, 10_000_000):
        a, b = pair((count,))
        row(f"add, {count:,}", lambda a=a: a + a, lambda b=b: b + b, SMALL)
        row(f"exp, {count:,}", lambda a=a: tensor.exp(a), lambda b=b: b.exp(), SMALL)
        row(f"sum, {count:,}", lambda a=a: a.sum(), lambda b=b: b.sum(), SMALL)
    for size in (512, 4096):
        for dtype in ("float32", "bfloat16"):
            a, b = pair((size, size), dtype)
            title = f"product, {size} x {size}, {dtype}"
            row(title, lambda a=a: a @ a, lambda b=b: b @ b, LARGE)
    a, b = pair((4096, 4096))
    row("softmax of rows, 4096 x 4096", lambda: tensor.softmax(a), lambda: b.softmax(-1), LARGE)
    row("sum of rows, 4096 x 4096", lambda: tensor.sum(a, 1), lambda: b.sum(1), LARGE)
    row("sum of columns, 4096 x 4096", lambda: tensor.sum(a, 0), lambda: b.sum(0), LARGE)


if __name__ == "__main__":
    main()
