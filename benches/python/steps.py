"""Whole training steps, side by side with PyTorch and JAX in one run.

    python benches/python/steps.py                        # every model: make bench-steps
    python benches/python/steps.py --models tiny mlp      # some of them
    python benches/python/steps.py --portable             # also without oneDNN
    python benches/python/steps.py --load                 # while another process keeps a core busy

Prints a table in Markdown, and draws the same to `--picture`. Every contender has a process of its
own, and they take turns: A B C A B C ... (`turns.py` says why and how). Ratios are of two turns in
the same round; the table shows the median over all rounds, and the middle half of them in brackets.
A round in which others took more than `--disturbed` of the machine is measured again; if that
happens too often, the least disturbed rounds count.

A step is forward, backward and update, on a batch that is already in the library's own tensors. It
is over when the loss is computed. A peer that takes over twice as long as the fastest peer in each
of the first five rounds cannot be the best one, and takes no further turns.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

from machine import describe
from report import draw, table
from turns import Contender, Load, Turn, Worker
from workloads import CASES

OURS = Contender("singa_rs", "ours", "replay")
PORTABLE = Contender("portable", "ours", "replay", {"SINGA_RS_KERNELS": "portable"})
PEERS = [
    Contender("PyTorch", "peers_torch", "eager"),
    Contender("channels-last", "peers_torch", "channels-last"),
    Contender("compiled", "peers_torch", "compiled"),
    Contender("JAX", "peers_jax"),
]

#: Seconds per turn, unless a step takes longer.
TURN = 0.25
#: Rounds after which a peer that is far behind drops out.
EARLY = 5


class Outcome(NamedTuple):
    """The measurements of one model: the rounds that count, each with a turn per contender's title;
    the first rounds, which alone include peers that are far behind; and why others failed."""

    model: str
    rounds: list[dict[str, Turn]]
    early: list[dict[str, Turn]]
    failures: dict[str, str]

    def shared(self, *titles: str) -> list[dict[str, Turn]]:
        """The rounds that include all of these contenders."""

        def having(rounds: list[dict[str, Turn]]) -> list[dict[str, Turn]]:
            return [one for one in rounds if all(title in one for title in titles)]

        return having(self.rounds) or having(self.early)

    def seconds(self, title: str) -> float:
        """A contender's median time of a step."""
        return statistics.median(one[title].seconds for one in self.shared(title))

    def ratios(self, a: str, b: str) -> list[float]:
        """The ratios of a's to b's turns, round by round."""
        return [one[a].seconds / one[b].seconds for one in self.shared(a, b)]

    def best(self) -> str | None:
        """The fastest peer."""
        titles = [peer.title for peer in PEERS if self.shared(peer.title)]
        return min(titles, key=self.seconds, default=None)


def contenders(model: str, args: argparse.Namespace) -> list[Contender]:
    """Who competes: layouts matter to convolutions only, and under load only PyTorch counts."""
    peers = [
        peer
        for peer in PEERS
        if (CASES[model].is_convolutional or peer.how != "channels-last")
        and (not args.load or peer.module == "peers_torch" and peer.how != "compiled")
    ]
    return [OURS, *([PORTABLE] if args.portable else []), *peers]


def start(model: str, args: argparse.Namespace) -> tuple[list[Worker], dict[str, str]]:
    """The workers, started one by one so that they get ready undisturbed; why others failed."""
    workers, failures = [], {}
    for who in contenders(model, args):
        try:
            worker = Worker(who, model, args.threads)
            worker.settle(TURN)
            workers.append(worker)
        except RuntimeError as error:
            if who is OURS:
                sys.exit(f"{model}: {error}")
            failures[who.title] = str(error)
            print(f"{model}: {error}", file=sys.stderr)
    return workers, failures


def slow(rounds: list[dict[str, Turn]]) -> set[str]:
    """The peers that were far behind the fastest one in every round."""
    peers = {peer.title for peer in PEERS} & set(rounds[0])
    return {
        title
        for title in peers
        if all(one[title].seconds > 2 * min(one[p].seconds for p in peers) for one in rounds)
    }


def disturbed(one: dict[str, Turn]) -> float:
    """The share that others took in the worst turn of a round."""
    return max(turn.others for turn in one.values())


def compete(workers: list[Worker], args: argparse.Namespace) -> tuple[list, list]:
    """The rounds that count, and the first ones."""
    rounds: list[dict[str, Turn]] = []
    calm = 0
    behind: set[str] = set()
    while calm < args.pairs and len(rounds) < args.patience * args.pairs:
        active = [worker for worker in workers if worker.who.title not in behind]
        rounds.append({worker.who.title: worker.turn() for worker in active})
        calm += args.load or disturbed(rounds[-1]) <= args.disturbed
        if len(rounds) == EARLY:
            behind = slow(rounds)
    key = (lambda one: 0) if args.load else disturbed
    return sorted(rounds, key=key)[: args.pairs], rounds[:EARLY]


def measure(model: str, args: argparse.Namespace) -> Outcome:
    """Measures a model's contenders in turns."""
    workers, failures = start(model, args)
    try:
        with Load() if args.load else contextlib.nullcontext():
            rounds, early = compete(workers, args)
    finally:
        for worker in workers:
            worker.stop()
    outcome = Outcome(model, rounds, early, failures)
    for title in early[0]:
        idle = statistics.median(one[title].idle for one in outcome.shared(title))
        if idle > 0.05:
            print(f"{model}: {title} took {idle:.0%} of a core between turns", file=sys.stderr)
    return outcome


def main() -> None:
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("--models", nargs="+", choices=CASES, default=list(CASES))
    add("--pairs", type=int, default=30, help="rounds")
    add("--threads", type=int, default=2)
    add("--portable", action="store_true", help="our portable kernels, too")
    add("--load", action="store_true", help="keep one core busy; PyTorch is the only peer")
    add("--disturbed", type=float, default=0.1, help="the share of the machine others may take")
    add("--patience", type=int, default=3, help="times as many rounds where others disturb")
    add("--picture", help="the SVG file to draw to")
    args = parser.parse_args()
    machine = describe(args.threads)
    print(machine, end="\n\n", flush=True)
    outcomes = []
    for model in args.models:
        outcomes.append(measure(model, args))
        print(table(outcomes[-1:], list(outcomes[-1].early[0]), args.load), file=sys.stderr)
    everyone = [OURS.title, *([PORTABLE.title] if args.portable else []), *(p.title for p in PEERS)]
    titles = [title for title in everyone if any(outcome.shared(title) for outcome in outcomes)]
    print(table(outcomes, titles, args.load))
    if args.picture:
        Path(args.picture).write_text(draw(outcomes, titles, machine))


if __name__ == "__main__":
    main()
