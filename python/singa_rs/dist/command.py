"""What `singa-rs run -n 4 train.py ...` does: processes that work together, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from ..shown import ending
from .children import end_with, segment
from .place import SEGMENT

#: How long ranks get to end by themselves after one has failed, and after they were asked to.
GRACE, _LAST_GRACE = 61.0, 5.0
_INTERVAL = 0.05
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def run_ranks(command: Sequence[str], count: int, grace: float) -> int:
    """Runs a command in `count` processes that find each other by `dist.init`; returns the exit
    status of the first that fails, or 0. The others are ended then, after `grace` seconds."""
    with segment() as path, _forwarding() as ranks:
        try:
            for rank in range(count):
                ranks.append(_start(command, rank, count, path))
            return _status(ranks, grace)
        except KeyboardInterrupt:  # which the ranks get from the terminal, too
            return 128 + signal.SIGINT
        finally:
            _end(ranks)


def _start(command: Sequence[str], rank: int, count: int, path: str) -> subprocess.Popen[bytes]:
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    environment = {**os.environ, **{name: str(value) for name, value in own.items()}, SEGMENT: path}
    parent = os.getpid()
    return subprocess.Popen(command, env=environment, preexec_fn=lambda: end_with(parent))


def _status(ranks: list[subprocess.Popen[bytes]], grace: float) -> int:
    """Waits for the ranks; those that go on after one has failed only for the grace."""
    failed, deadline = 0, None
    seen: set[int] = set()
    while len(seen) < len(ranks) and (deadline is None or time.monotonic() < deadline):
        for number, rank in enumerate(ranks):
            if number in seen or rank.poll() is None:
                continue
            seen.add(number)
            if rank.returncode:
                print(f"singa-rs: rank {number} {ending(rank.returncode)}", file=sys.stderr)
                if deadline is None:
                    failed, deadline = rank.returncode, time.monotonic() + grace
        time.sleep(_INTERVAL)
    return 128 - failed if failed < 0 else failed


def _end(ranks: list[subprocess.Popen[bytes]]) -> None:
    """Ends those that still run, and leaves no zombie."""
    for rank in ranks:
        if rank.poll() is None:
            rank.terminate()
    deadline = time.monotonic() + _LAST_GRACE
    for rank in ranks:
        try:
            rank.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            rank.kill()
            rank.wait()


@contextmanager
def _forwarding() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Gives the list of ranks, to which signals that end this process are passed on."""
    ranks: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        for rank in ranks:
            rank.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield ranks
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
