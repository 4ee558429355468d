"""Steps in a process in which another library computes, too, for `load.py`.

Two libraries take turns within one process, a step each: this package and PyTorch, with the same
model, and this package and NumPy's matrix multiplication (OpenBLAS). One of them is timed; ahead of
each of its steps the other makes one, on as many threads. Two controls take turns with that: the
timed library alone; and beside the other on one thread, which takes as much from the caches but
leaves no threads that wait. The ratio to the latter is what the other's threads cost.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics

import load_models
import numpy as np
from contenders import Contender
from load_models import OURS, PYTORCH, Step
from report import duration, ratio
from turns import Others

NUMPY = "NumPy"
#: The width of the matrices that NumPy multiplies.
WIDTH = 512
#: Who is timed, and who computes ahead of each of its steps.
PAIRS = ((OURS, PYTORCH), (PYTORCH, OURS), (OURS, NUMPY), (NUMPY, OURS))
HEADS = (
    "one step", "timed", "beside", "alone", "beside one thread", "beside all threads",
    "all threads to alone", "to one thread", "taken by others",
)  # fmt: skip


def make(side: str, model: str, threads: int) -> Step:
    """A step of a library; NumPy's threads are set by the environment."""
    if side != NUMPY:
        return load_models.make(model, side, threads)
    a, b = np.random.default_rng(0).normal(size=(2, WIDTH, WIDTH)).astype(np.float32)
    return lambda: a @ b


def ways(timed: str, other: str, model: str, threads: int) -> list[Contender]:
    """The timed library alone, beside the other on one thread, and on all."""
    found = [Contender(make, timed, model, threads)]
    for count in (1, threads):
        # Whoever is NumPy reads its number of threads when it is imported.
        blas = threads if timed == NUMPY else count
        environment = {"OPENBLAS_NUM_THREADS": str(blas)}
        before = (make, other, model, count)
        found.append(Contender(make, timed, model, threads, before=before, environment=environment))
    return found


def rounds(
    contenders: list[Contender], others: Others, args: argparse.Namespace
) -> list[list[float]]:
    """The contenders' medians in each round."""
    least = contenders[0].least
    count = max(math.ceil(args.steps / args.rounds), math.ceil(args.seconds / least))

    def median(one: Contender) -> float:
        with others.than(one.process.pid):
            return statistics.median(one.steps(count, args.limit))

    return [[median(one) for one in contenders] for _ in range(args.rounds)]


def row(timed: str, other: str, model: str, args: argparse.Namespace) -> str:
    """A row of the table."""
    others = Others()
    with contextlib.ExitStack() as stack:
        contenders = ways(timed, other, model, args.threads)
        for one in contenders:
            stack.callback(one.stop)
        found = rounds(contenders, others, args)
    cells = [load_models.title(model), timed, other]
    cells += [duration(statistics.median(column)) for column in zip(*found, strict=True)]
    cells += [ratio([both / alone for alone, _, both in found])]
    cells += [ratio([both / single for _, single, both in found]), f"{others.worst:.0%}"]
    return f"| {' | '.join(cells)} |"


def compare(args: argparse.Namespace) -> None:
    """Prints the table of steps beside other libraries."""
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for model in args.models:
        for timed, other in PAIRS:
            print(row(timed, other, model, args), flush=True)
