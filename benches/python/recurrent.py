"""Whole training steps of recurrent networks next to PyTorch's: time, memory, and whether both
learn the same.

    python benches/python/recurrent.py               # in an environment with singa_rs and torch
    python benches/python/recurrent.py --models char # some of the models
    python benches/python/recurrent.py --compiled    # also torch.compile

Times are medians of interleaved rounds on two threads, and ratios those of the rounds. Memory is
what a process of its own takes for ten steps, as in `memory.py`. For the parity both sides start
from the same weights and get the same batches for 20 steps of SGD and of AdamW.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle
from typing import NamedTuple

import numpy as np
import process
from machine import describe

THREADS, BATCHES, PARITY_STEPS, MEMORY_STEPS = 2, 4, 20, 10
#: Seconds per turn of a round.
TURN = 0.4
#: PyTorch's gates in our order.
ORDERS = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


class Case(NamedTuple):
    """A model: layers of a kind over an embedding, one-hot inputs or floats, then a linear one."""

    kind: str
    inputs: str
    size: int
    hidden: int
    layers: int
    steps: int
    batch: int
    classes: int
    bar: float | None = None


CASES = {
    "char": Case("LSTM", "embedded", 101, 128, 1, 100, 32, 101, 0.65),
    "char one-hot": Case("LSTM", "one-hot", 101, 128, 1, 100, 32, 101, 0.65),
    "two layers": Case("LSTM", "floats", 512, 512, 2, 64, 16, 101, 0.85),
    "char GRU": Case("GRU", "embedded", 101, 128, 1, 100, 32, 101),
    "char RNN": Case("RNN", "embedded", 101, 128, 1, 100, 32, 101),
}


def batches(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs (steps, batch, ...) and classes (steps, batch)."""
    rng, shape = np.random.default_rng(0), (case.steps, case.batch)
    return [
        (
            rng.normal(size=(*shape, case.size)).astype(np.float32)
            if case.inputs == "floats"
            else rng.integers(0, case.size, shape).astype(np.int32),
            rng.integers(0, case.classes, shape).astype(np.int32),
        )
        for _ in range(BATCHES)
    ]


# ---- ours ----------------------------------------------------------------------------------------


def ours(case: Case, optimizer: str = "SGD", threads: int = THREADS) -> tuple[Callable, Callable]:
    """A call that makes a step and returns the loss before it, and one that takes PyTorch's
    weights."""
    from singa_rs import autograd, device, layer, module, opt, tensor

    device.get_default_device().set_num_threads(threads)
    made = {"SGD": lambda: opt.SGD(0.1), "AdamW": lambda: opt.AdamW(1e-3)}[optimizer]

    class Net(module.Module):
        def __init__(self) -> None:
            super().__init__()
            width = case.hidden if case.inputs == "embedded" else case.size
            is_embedded = case.inputs == "embedded"
            table = layer.Embedding(case.size, width) if is_embedded else None
            kind = getattr(layer, case.kind)
            self.net = kind(width, case.hidden, num_layers=case.layers, embedding=table)
            self.head, self.optimizer = layer.Linear(case.classes), made()

        def forward(self, x: tensor.Tensor) -> tensor.Tensor:
            y = self.net(x)[0]
            return self.head(autograd.reshape(y, (-1, case.hidden)))

        def train_one_batch(self, x: tensor.Tensor, t: tensor.Tensor) -> tensor.Tensor:
            loss = autograd.softmax_cross_entropy(self.forward(x), autograd.reshape(t, (-1,)))
            self.optimizer(loss)
            return loss

    net, data = Net(), [tuple(map(tensor.from_numpy, pair)) for pair in batches(case)]
    net.compile([data[0][0]], use_graph=True)
    turns = cycle(data)

    def load(weights: dict[str, np.ndarray]) -> None:
        net.set_params({n: weights[n] for n in net.get_params()})

    return lambda: net.train_one_batch(*next(turns)), load


# ---- PyTorch's -----------------------------------------------------------------------------------


def theirs(
    case: Case, optimizer: str = "SGD", how: str = "eager", threads: int = THREADS
) -> tuple[Callable, Callable]:
    """The same in PyTorch; the second call returns its weights under our names."""
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    width = case.hidden if case.inputs == "embedded" else case.size
    table = nn.Embedding(case.size, width)
    net = getattr(nn, case.kind)(width, case.hidden, case.layers)
    head = nn.Linear(case.hidden, case.classes)
    parameters = [*net.parameters(), *head.parameters()]
    parameters += table.parameters() if case.inputs == "embedded" else []
    update = {
        "SGD": lambda: torch.optim.SGD(parameters, lr=0.1),
        "AdamW": lambda: torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01),
    }[optimizer]()
    data = [
        (torch.from_numpy(x) if x.ndim == 3 else torch.from_numpy(x).long(),
         torch.from_numpy(t).long())
        for x, t in batches(case)
    ]  # fmt: skip
    turns = cycle(data)

    def forward(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        if case.inputs == "embedded":
            x = table(x)
        elif case.inputs == "one-hot":
            x = nn.functional.one_hot(x, case.size).float()
        y = head(net(x)[0].reshape(-1, case.hidden))
        return nn.functional.cross_entropy(y, t.reshape(-1))

    run = torch.compile(forward) if how == "compiled" else forward

    def step() -> torch.Tensor:
        update.zero_grad(set_to_none=True)
        loss = run(*next(turns))
        loss.backward()
        update.step()
        return loss

    def weights() -> dict[str, np.ndarray]:
        found = {"head.W": head.weight.T, "head.b": head.bias, "net.embedding.W": table.weight}
        for i in range(case.layers):
            parts = {n: getattr(net, f"{n}_l{i}") for n in ("weight_ih", "weight_hh")}
            for ours, own in (("W", "weight_ih"), ("R", "weight_hh")):
                found[f"net.{ours}_l{i}"] = _ordered(case, parts[own]).T
            biases = [_ordered(case, getattr(net, f"bias_{n}_l{i}")) for n in ("ih", "hh")]
            found[f"net.b_l{i}"] = torch.cat(biases)
        return {n: np.ascontiguousarray(t.detach().numpy()) for n, t in found.items()}

    return step, weights


def _ordered(case: Case, t):  # noqa: ANN001, ANN202 - PyTorch's tensors
    """The rows of the gates in our order."""
    import torch

    order = ORDERS[case.kind]
    parts = torch.chunk(t, len(order))
    return torch.cat([parts[i] for i in order])


# ---- what is measured ----------------------------------------------------------------------------


def parity(case: Case, optimizer: str) -> float:
    """The largest relative difference of the losses."""
    step, load = ours(case, optimizer)
    other, weights = theirs(case, optimizer)
    load(weights())
    pairs = [(float(step().item()), float(other().item())) for _ in range(PARITY_STEPS)]
    return max(abs(a - b) / abs(b) for a, b in pairs)


def timed(step: Callable) -> float:
    """Seconds per step."""
    start, count = time.perf_counter(), 0
    while (took := time.perf_counter() - start) < TURN:
        step().item()
        count += 1
    return took / count


def times(case: Case, rounds: int, compiled: bool) -> None:
    """Prints the medians."""
    steps = {"singa_rs": ours(case)[0], "PyTorch": theirs(case)[0]}
    if compiled:
        steps["compiled"] = theirs(case, how="compiled")[0]
    for step in steps.values():
        for _ in range(5):
            step().item()
    found = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            found[name].append(timed(step))
    peers = [t for name, t in found.items() if name != "singa_rs"]
    best = [min(turn) for turn in zip(*peers, strict=True)]
    ratio = statistics.median(a / b for a, b in zip(found["singa_rs"], best, strict=True))
    medians = (f"{n} {statistics.median(t) * 1e3:.2f} ms" for n, t in found.items())
    bar = f", bar {case.bar}" if case.bar else ""
    print(f"  time: {', '.join(medians)}; ratio {ratio:.3f}{bar}", flush=True)


def memory(name: str, side: str) -> float:
    """MiB that ten steps take, in a process of its own."""
    command = [sys.executable, __file__, "--one", side, "--models", name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def one(name: str, side: str) -> float:
    """The same in this process, after a small model of the same kind."""
    case = CASES[name]
    make = ours if side == "singa_rs" else theirs
    small = make(case._replace(hidden=64, size=64, classes=16, steps=8, batch=8))[0]
    for _ in range(3):
        small().item()
    del small
    before = process.start()
    step = make(case)[0]
    for _ in range(MEMORY_STEPS):
        step().item()
    return (process.peak() - before) / (1 << 20)


def main() -> None:
    """Measures the models that the arguments name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--one", choices=["singa_rs", "torch"])
    parser.add_argument("--only", nargs="+", default=["parity", "time", "memory"])
    args = parser.parse_args()
    if args.one:
        return print(one(args.models[0], args.one))
    print(describe(THREADS))
    for name in args.models:
        print(name, flush=True)
        if "parity" in args.only:
            worst = {how: f"{parity(CASES[name], how):.1e}" for how in ("SGD", "AdamW")}
            print(f"  parity, largest relative difference of a loss: {worst}", flush=True)
        if "time" in args.only:
            times(CASES[name], args.rounds, args.compiled)
        if "memory" in args.only:
            a, b = (memory(name, side) for side in ("singa_rs", "torch"))
            print(f"  memory: {a:.1f} MiB, PyTorch {b:.1f}; ratio {a / b:.2f}", flush=True)
    return None


if __name__ == "__main__":
    main()
