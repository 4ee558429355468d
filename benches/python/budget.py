"""What a memory budget costs: the time of training steps with half, or another part, of the arena
that they take without recomputation, relative to steps that keep everything.

    python benches/python/budget.py                                   # all models, half
    python benches/python/budget.py --models lstm --parts 0.7 0.5     # some of it
    python benches/python/budget.py --default                         # see below

With `--default`, parts are of the arena that a step takes without a budget, when cheap values are
recomputed as well, and times are relative to such steps. Both steps run in one process and take
turns; the ratio is that of the medians of their times.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numpy as np
from models import OPTIMIZERS, ResNet
from sequences import Lstm, Transformer
from singa_rs import MemoryBudgetError, device, tensor
from singa_rs.module import Module

MIB = 1 << 20

#: Name -> (model factory, input shape, batch axis).
MODELS = {
    "resnet50": (lambda by: ResNet(50, 10, by), (8, 3, 224, 224), 0),
    "lstm": (lambda by: Lstm(256, 10, by), (100, 64, 128), 1),
    "transformer": (lambda by: Transformer(256, 8, 4, 10, by), (16, 128, 64), 0),
}


def fresh(name: str, models: dict = MODELS) -> tuple[Module, tensor.Tensor, tensor.Tensor]:
    """The model and a batch."""
    make, shape, axis = models[name]
    rng = np.random.default_rng(0)
    x = tensor.from_numpy(rng.normal(size=shape).astype(np.float32))
    y = tensor.from_numpy(rng.integers(0, 10, shape[axis : axis + 1]).astype(np.int32))
    return make(OPTIMIZERS["SGD"]()), x, y


def compiled(name: str, budget: float | int | None) -> tuple[Module, list[tensor.Tensor], float]:
    """The model, a batch, and the seconds it took to record and plan a step."""
    model, x, y = fresh(name)
    model.compile([x], is_train=True, use_graph=True, memory_budget=budget)
    start = time.perf_counter()
    model.plan(x, y)
    return model, [x, y], time.perf_counter() - start


def seconds(model: Module, batch: list[tensor.Tensor]) -> float:
    """The time of one step."""
    start = time.perf_counter()
    model(*batch)[1].item()
    return time.perf_counter() - start


def compare(name: str, part: float, steps: int, default: bool) -> float | None:
    """Prints a row; returns the ratio."""
    free, batch, _ = compiled(name, None if default else 1.0)
    plan = free.plan(*batch)
    whole = plan.arena_bytes if default else plan.unconstrained_bytes
    try:
        bound, _, planning = compiled(name, int(part * whole))
    except MemoryBudgetError as error:
        print(f"| {name} | {part} | {whole / MIB:.1f} | needs {error.smallest / whole:.2f} | | |")
        return None
    arena = bound.plan(*batch).arena_bytes
    for _ in range(4):
        seconds(free, batch), seconds(bound, batch)
    times = [(seconds(free, batch), seconds(bound, batch)) for _ in range(steps)]
    before, after = (statistics.median(side) for side in zip(*times, strict=True))
    row = [name, part, f"{whole / MIB:.1f}", f"{arena / MIB:.1f} ({arena / whole:.3f})"]
    row += [f"{before * 1e3:.1f} to {after * 1e3:.1f} ms", f"**{after / before:.3f}**"]
    print(f"| {' | '.join(map(str, row))} | {planning:.2f} s |", flush=True)
    return after / before


def main() -> None:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n\n")[0])).add_argument
    add("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add("--parts", nargs="+", type=float, default=[0.5])
    add("--default", action="store_true", help="parts of what a step takes without a budget")
    add("--steps", type=int, default=15)
    add("--threads", type=int, default=2)
    args = parser.parse_args()
    device.get_default_device().set_num_threads(args.threads)
    print("| model | budget | arena, MiB | with budget | step | ratio | planning |")
    print(f"|{'---|' * 7}")
    for part in args.parts:
        ratios = [compare(name, part, args.steps, args.default) for name in args.models]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            mean = math.exp(statistics.fmean(map(math.log, known)))
            print(f"| geometric mean | {part} | | | | **{mean:.3f}** | |")


if __name__ == "__main__":
    main()
