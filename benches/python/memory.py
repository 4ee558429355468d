"""The memory that a process takes for ten steps of training: next to PyTorch's, and next to the
peak that `Module.plan` states.

    python benches/python/memory.py                              # all of it, a process each
    python benches/python/memory.py --models lenet resnet18      # some of the models
    python benches/python/memory.py --one singa_rs lenet Adam    # one figure, in this process

A process is measured from before the model is created until after ten steps: VmHWM minus its
initial value. By then each side has run a small convolution and trained a small perceptron with the
same optimizer, so that the libraries are loaded (PyTorch's first update alone imports 140 MiB) and
the threads started; free memory was returned to the system, so that it does not hide what is taken.
For the comparison with PyTorch, which is eager, the median of five processes counts. Two batches
are held in NumPy arrays, from which each step copies one into the same tensors.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import statistics
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import process
from workloads import CASES, Case

MIB = 1 << 20
STEPS = 10
#: The number of processes compared per side: a small model's memory varies by 0.2 MiB.
PROCESSES = 5
#: The models compared with PyTorch, and the largest ratio aimed at.
COMPARED = {"mlp": 0.6, "lenet": 0.6, "resnet18": 0.5, "resnet50": 0.5}
#: The models compared with the plan.
STATED = ["digits", "perceptron", "lenet", "resnet18", "resnet50"]
#: A model trained beforehand: large enough for each kind of product to run the library's code.
SMALL = CASES["tiny"]._replace(shape=(64, 64), classes=10, widths=(64, 128, 128, 10))
OPTIMIZERS = ["SGD", "Adam"]


def batches(shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two batches."""
    rng = np.random.default_rng(0)
    return [
        (
            rng.normal(size=shape).astype(np.float32),
            rng.integers(0, 10, shape[:1]).astype(np.int32),
        )
        for _ in range(2)
    ]


def start() -> int:
    """Begins a measurement; the bytes that the process has at this point."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return process.start()


def singa_rs(name: str, optimizer: str) -> tuple[int, int]:
    """The bytes taken and those stated."""
    import models
    import ours
    from singa_rs import device, layer, tensor

    def train(make: Callable, shape: tuple[int, ...], data: list, steps: int) -> int:
        net = make(models.OPTIMIZERS[optimizer]())
        x = tensor.Placeholder(shape)
        y = tensor.Placeholder(shape[:1], dtype=tensor.int32)
        net.compile([x], is_train=True, use_graph=True)
        stated = net.plan(x, y).peak_bytes
        for step in range(steps):
            for placeholder, array in zip((x, y), data[step % 2], strict=True):
                placeholder.copy_from(array)
            result = net.train_one_batch(x, y)
        del result
        return stated

    def network(by: object) -> object:
        return ours.network(CASES[name], by)

    make, shape = (network, CASES[name].shape) if name in CASES else models.MODELS[name]
    data = batches(shape)
    layer.Conv2d(8, 3)(tensor.from_numpy(np.ones((2, 4, 8, 8), np.float32)))
    train(lambda by: ours.network(SMALL, by), SMALL.shape, batches(SMALL.shape), 3)
    device.get_default_device().trim()
    before = start()
    stated = train(make, shape, data, STEPS)
    return process.peak() - before, stated


def pytorch(name: str, optimizer: str) -> tuple[int, int]:
    """The bytes taken; PyTorch states none."""
    import peers_torch
    import torch

    torch.set_num_threads(2)
    updates = {
        "SGD": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
        "Adam": lambda p: torch.optim.Adam(p, lr=0.001),
    }

    def train(case: Case, data: list, steps: int) -> None:
        net = peers_torch.network(case)
        x, y = torch.empty(case.shape), torch.empty(case.shape[0], dtype=torch.long)
        update = updates[optimizer](net.parameters())
        for step in range(steps):
            for held, array in zip((x, y), data[step % 2], strict=True):
                held.copy_(torch.from_numpy(array))
            update.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            update.step()

    data = batches(CASES[name].shape)
    torch.nn.Conv2d(4, 8, 3)(torch.ones(2, 4, 8, 8)).sum().backward()
    train(SMALL, batches(SMALL.shape), 3)
    before = start()
    train(CASES[name], data, STEPS)
    return process.peak() - before, 0


SIDES = {"singa_rs": singa_rs, "PyTorch": pytorch}


def apart(side: str, model: str, optimizer: str) -> tuple[int, int]:
    """A measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", side, model, optimizer]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    run = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=True)
    taken, stated = map(int, run.stdout.split())
    return taken, stated


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def compare(models: list[str]) -> None:
    """Prints the comparison with PyTorch."""
    row("ten steps with momentum", "singa_rs", "PyTorch", "ratio", "at most")
    row(*["---"] * 5)
    for model in [model for model in COMPARED if model in models]:
        runs = [[apart(side, model, "SGD")[0] for side in SIDES] for _ in range(PROCESSES)]
        mine, other = map(statistics.median, zip(*runs, strict=True))
        sizes = [f"{taken / MIB:.1f} MiB" for taken in (mine, other)]
        row(CASES[model].title, *sizes, f"**{mine / other:.2f}**", f"{COMPARED[model]:.2f}")


def check(models: list[str]) -> None:
    """Prints the comparison with what plans state."""
    row("model", "optimizer", "stated", "taken", "difference")
    row(*["---"] * 5)
    for model in [model for model in STATED if model in models]:
        for optimizer in OPTIMIZERS:
            taken, stated = apart("singa_rs", model, optimizer)
            off = f"{(taken - stated) / MIB:+.1f} MiB, {taken / stated - 1:+.1%}"
            sizes = [f"{size / MIB:.1f} MiB" for size in (stated, taken)]
            row(model, optimizer, *sizes, off)


def main() -> None:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n\n")[0])).add_argument
    known = list(dict.fromkeys([*COMPARED, *STATED]))
    add("--models", nargs="+", choices=known, default=known)
    add("--one", nargs=3, metavar=("SIDE", "MODEL", "OPTIMIZER"), help="print bytes, no more")
    args = parser.parse_args()
    if args.one:
        side, model, optimizer = args.one
        print(*SIDES[side](model, optimizer))
        return
    compare(args.models)
    print()
    check(args.models)


if __name__ == "__main__":
    main()
