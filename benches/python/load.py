"""Training steps while other processes spin on the same cores, side by side with PyTorch and JAX;
steps under a quota of processors; and steps in a process that other libraries compute in.

    python benches/python/load.py                              # no, 1, 2 and 4 spinning processes
    python benches/python/load.py --loads 0 4 --models mlp     # some of them
    python benches/python/load.py --loads --quota 1.0 1.5      # quotas alone (quota.py)
    python benches/python/load.py --loads --beside             # other libraries alone (beside.py)

Every contender has a process of its own. In each round each load is put on once, and at each load
the contenders take turns; spinning processes begin before the turns of their load and end after
them. A turn makes its share of `--steps`, more if that takes less than `--seconds`; a peer's ends
after `--limit` seconds. Its first tenth warms up and does not count.

The medians are of all steps that count at a load. Ratios are those of a round's medians, of which
the table shows the median and, in brackets, the middle half: of ours to the faster peer's; and of
our slowdown to JAX's, each against its own median without a load in the same round. Percentile 95
and the mean tell of steps that were held up, which a median hides; the mean is relative to the
smaller mean of the peers. A ratio over its limit is marked. The last column is the largest share of
all cores that other programs took during a turn: if it is not small, the row tells nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import os
import signal
import statistics
import sys
from itertools import chain
from typing import NamedTuple

import beside
import quota
from contenders import Contender
from load_models import JAX, MODELS, OURS, PYTORCH, make, title
from machine import describe
from report import bounded, duration
from turns import Load, Others, cores

SIDES = (OURS, PYTORCH, JAX)
#: The largest ratios aimed at: to the faster peer; of slowdowns; of percentile 95 to the median.
PEER, SLOWDOWN, TAIL = 1.0, 1.15, 3.0
HEADS = (
    "one step",
    "spinning",
    *SIDES,
    f"to the faster peer (at most {PEER:g})",
    "our slowdown",
    "JAX's",
    f"ratio (at most {SLOWDOWN:g})",
    f"percentile 95 / median (at most {TAIL:g})",
    "mean, to the peers'",
    "steps",
    "taken by others",
)


class Loaded(NamedTuple):
    """The turns of one load: for each side the seconds of every step, round by round; and what
    others took of the machine."""

    turns: dict[str, list[list[float]]]
    others: Others

    def steps(self, side: str) -> list[float]:
        """All of a side's steps."""
        return list(chain(*self.turns[side]))

    def medians(self, side: str) -> list[float]:
        """A side's median in each round."""
        return [statistics.median(turn) for turn in self.turns[side]]

    def to_peers(self) -> list[float]:
        """Our median over the smaller one of the peers', round by round."""
        rounds = zip(*(self.medians(side) for side in SIDES), strict=True)
        return [ours / min(peers) for ours, *peers in rounds]

    def slowdowns(self, side: str, quiet: Loaded) -> list[float]:
        """A side's medians over those without a load, round by round."""
        pairs = zip(self.medians(side), quiet.medians(side), strict=True)
        return [loaded / alone for loaded, alone in pairs]

    def tail(self) -> float:
        """Percentile 95 of our steps over their median."""
        steps = self.steps(OURS)
        return statistics.quantiles(steps, n=20)[-1] / statistics.median(steps)

    def mean_to_peers(self) -> float:
        """The mean of our steps over the smaller mean of the peers'."""
        ours, *peers = (statistics.fmean(self.steps(side)) for side in SIDES)
        return ours / min(peers)


def turn(one: Contender, side: str, args: argparse.Namespace) -> list[float]:
    """The seconds of the steps that count in a turn."""
    count = max(2, math.ceil(args.steps / args.rounds), math.ceil(args.seconds / one.least))
    warm = max(1, count // 10)
    seconds = one.steps(count + warm, math.inf if side == OURS else args.limit)
    return seconds[min(warm, len(seconds) - 1) :]


def measure(model: str, args: argparse.Namespace) -> dict[int, Loaded]:
    """A model's turns at every load; ends all processes that it starts."""
    found = {load: Loaded({side: [] for side in SIDES}, Others()) for load in args.loads}
    with contextlib.ExitStack() as stack:
        contenders = {}
        for side in SIDES:
            contenders[side] = Contender(make, model, side, args.threads)
            stack.callback(contenders[side].stop)
        for _ in range(args.rounds):
            for load, loaded in found.items():
                with Load(load) as spinning:
                    pids = [one.pid for one in spinning.processes]
                    for side, one in contenders.items():
                        with loaded.others.than(one.process.pid, *pids):
                            loaded.turns[side].append(turn(one, side, args))
    return found


def row(model: str, load: int, found: dict[int, Loaded]) -> str:
    """A row of the table."""
    one, quiet = found[load], found[0]
    ours, jax = (one.slowdowns(side, quiet) for side in (OURS, JAX))
    cells = [title(model), str(load)]
    cells += [duration(statistics.median(one.steps(side))) for side in SIDES]
    cells += [bounded(one.to_peers(), PEER)]
    cells += [f"{statistics.median(slower):.2f}" for slower in (ours, jax)]
    cells += [bounded([a / b for a, b in zip(ours, jax, strict=True)], SLOWDOWN)]
    cells += [bounded([one.tail()], TAIL), f"{one.mean_to_peers():.2f}"]
    cells += [str(len(one.steps(OURS))), f"{one.others.worst:.0%}"]
    return f"| {' | '.join(cells)} |"


def spinning(args: argparse.Namespace) -> None:
    """Prints the table of steps while processes spin."""
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for model in args.models:
        found = measure(model, args)
        for load in found:
            print(row(model, load, found), flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--loads", type=int, nargs="*", default=[0, 1, 2, 4], help="numbers of spinning processes")
    add("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add("--rounds", type=int, default=5)
    add("--steps", type=int, default=200, help="of a contender at a load, in all rounds")
    add("--seconds", type=float, default=1.0, help="that a turn takes at least")
    add("--limit", type=float, default=20.0, help="seconds after which a peer's turn ends")
    add("--threads", type=int, default=2)
    add("--quota", type=float, nargs="+", default=[], help="processors of control groups")
    add("--beside", action="store_true", help="in one process with other libraries")
    args = parser.parse_args()
    if args.loads and 0 not in args.loads:
        parser.error("--loads: 0 has to be among them, as slowdowns are relative to it")
    if min([*args.loads, 0]) < 0 or min([args.rounds, args.steps, args.threads]) < 1:
        parser.error("--loads cannot be negative, nor --rounds, --steps and --threads below 1")
    if min([*args.quota, 1.0]) <= 0:
        parser.error("--quota: got a number that is not positive")
    return args


def main() -> None:
    """Prints the tables."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # contexts end what they began
    multiprocessing.set_start_method("spawn")
    os.sched_setaffinity(0, cores(args.threads))  # as for all processes started from here on
    os.environ["OMP_NUM_THREADS"] = os.environ["NPROC"] = str(args.threads)
    print(describe(args.threads), flush=True)
    parts = ((spinning, args.loads), (quota.compare, args.quota), (beside.compare, args.beside))
    for part, is_wanted in parts:
        if is_wanted:
            print(flush=True)
            part(args)


if __name__ == "__main__":
    main()
