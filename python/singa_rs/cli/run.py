"""`singa-rs run`: start a program in several processes on this machine."""

from __future__ import annotations

import argparse
import sys

from ..dist.command import GRACE, run_ranks

NAME = "run"


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("-n", type=positive, required=True, help="how many processes")
    parser.add_argument("--grace", type=float, default=GRACE, help="seconds that the others get to "
                        "end after one has failed; default: %(default)s")  # fmt: skip
    parser.add_argument("-m", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("program", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="what it gets")


def run(given: argparse.Namespace) -> int:
    """Starts the processes; returns the exit status of the first that fails, or 0."""
    program = [*(["-m"] if given.m else []), given.program, *given.args]
    return run_ranks([sys.executable, *program], given.n, given.grace)


def positive(text: str) -> int:
    """A whole number from 1, of the command line."""
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"got {count}, want at least 1")
    return count
