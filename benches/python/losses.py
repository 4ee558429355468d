"""The losses of the first five steps, from the same weights and batches as PyTorch's.

    python benches/python/losses.py                       # every model
    python benches/python/losses.py --models tiny lenet   # some of them

Prints the largest relative difference from PyTorch (eager), and whether eager execution and replay
give the very same bits. The exit status is 1 if a limit is exceeded. float64 is for the small
models only.
"""

from __future__ import annotations

import argparse
import sys

from turns import Contender, Worker
from workloads import CASES, Case

REPLAY = Contender("replay", "ours", "replay")
EAGER = Contender("eager", "ours", "eager")
PYTORCH = Contender("PyTorch", "peers_torch", "eager")

#: The largest relative difference that is allowed.
LIMITS = {"float32": 1e-4, "float64": 1e-9}


def losses(who: Contender, model: str, dtype: str, threads: int) -> list[float]:
    """The losses of the first five steps, in a process of its own."""
    worker = Worker(who, model, threads, dtype)
    worker.stop()
    return worker.losses


def check(model: str, dtype: str, threads: int) -> bool:
    """Prints a model's row; whether it is within the limits."""
    ours, eager, theirs = (losses(who, model, dtype, threads) for who in (REPLAY, EAGER, PYTORCH))
    off = max(abs(a / b - 1) for a, b in zip(ours, theirs, strict=True))
    same = ours == eager
    row = f"{off:.1e}", f"{LIMITS[dtype]:.0e}", "yes" if same else "NO"
    print(f"| {CASES[model].title} | {dtype} | {' | '.join(row)} |", flush=True)
    return same and off <= LIMITS[dtype]


def dtypes(case: Case) -> list[str]:
    """The dtypes in which a model is checked."""
    return ["float32"] if case.depth else list(LIMITS)


def main() -> int:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("--models", nargs="+", choices=CASES, default=list(CASES))
    add("--threads", type=int, default=2)
    args = parser.parse_args()
    print("| five steps | dtype | largest difference | at most | eager and replay equal |")
    print("|---|---|---|---|---|")
    pairs = [(model, dtype) for model in args.models for dtype in dtypes(CASES[model])]
    return 0 if all([check(*pair, args.threads) for pair in pairs]) else 1


if __name__ == "__main__":
    sys.exit(main())
