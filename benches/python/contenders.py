"""Contenders that take turns of a few steps, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

import process

#: Seconds between turns: threads of other libraries spin for a while after their last work.
REST = 0.1
#: About how many seconds a turn lasts: short steps are repeated, as threads that have to be woken
#: up are not what is compared.
TURN = 0.02
#: Seconds after which a turn ends however many steps were asked for.
PATIENCE = 900
#: Seconds that a process may take to end.
END = 2


#: A function that makes a step, and its arguments.
Made = tuple[Any, ...]


def serve(pipe: Connection, made: Made, before: Made | None) -> None:
    """Makes steps whenever it is told to (how many, and within how many seconds), and answers with
    the times of all. Ahead of each it makes a step of `before`, which is not timed."""
    other = before[0](*before[1:]) if before else None
    step = made[0](*made[1:])
    least = min(_seconds(step, 5, PATIENCE, other))
    pipe.send((least, process.peak() / (1 << 20)))
    while order := pipe.recv():
        pipe.send(_seconds(step, *order, other))


def _seconds(
    step: Callable[[], object],
    count: int,
    limit: float,
    before: Callable[[], object] | None = None,
) -> list[float]:
    """The times of so many steps, or of fewer, but at least one, where a limit ends them."""
    found: list[float] = []
    end = time.perf_counter() + limit
    while len(found) < count and (not found or time.perf_counter() < end):
        if before:
            before()
        begin = time.perf_counter()
        step()
        found.append(time.perf_counter() - begin)
    return found


class Contender:
    """A process that waits for its turns; it ends with the one that started it."""

    def __init__(
        self,
        *made: object,
        before: Made | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        """Starts the process.

        Args:
            made: a function that makes the step that is timed, and its arguments
            before: the same of a step that runs ahead of each, in the same process
            environment: variables of the process

        Raises:
            EOFError: the process died, after printing why.
        """
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(
            target=serve, args=(other, made, before), daemon=True
        )
        with mock.patch.dict(os.environ, environment or {}):
            self.process.start()
        other.close()
        #: Seconds of the fastest of the first steps, and peak memory in MiB.
        self.least, self.memory = self.pipe.recv()

    def steps(self, count: int, limit: float = PATIENCE) -> list[float]:
        """The seconds of each of so many steps after a rest, or of as many as take about `limit`
        seconds."""
        time.sleep(REST)
        self.pipe.send((count, limit))
        return self.pipe.recv()

    def turn(self) -> float:
        """The mean seconds of a step, over several if they are short."""
        return statistics.fmean(self.steps(max(1, round(TURN / self.least))))

    def stop(self) -> None:
        """Ends the process, by force if it is in the middle of a turn."""
        if self.process.is_alive():
            self.pipe.send(None)
            self.process.join(END)
        self.process.kill()
        self.process.join()


def begin(peer: str, threads: int, columns: str = "model") -> None:
    """Prepares contenders of so many threads, and prints the head of the rows of `compare`: the
    title's columns, and the name of who is compared with."""
    multiprocessing.set_start_method("spawn")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    head = f"{columns} | ours, ms | {peer}, ms | ratio | of the best | MiB | MiB"
    print(f"| {head} |\n|{'---|' * (head.count('|') + 1)}")


def compare(title: str, pair: tuple[Contender, Contender], turns: int, first: int = 1) -> float:
    """Prints a row: medians, their ratio, that of the best turns, and peak memory in MiB; the first
    turns do not count. Ends the contenders; returns the ratio."""
    times = [[one.turn() for one in pair] for _ in range(turns)][first:]
    mine, other = (statistics.median(column) for column in zip(*times, strict=True))
    best = [min(column) for column in zip(*times, strict=True)]
    row = f"{1e3 * mine:.2f} | {1e3 * other:.2f} | {mine / other:.2f} | {best[0] / best[1]:.2f}"
    memory = " | ".join(f"{one.memory:.0f}" for one in pair)
    print(f"| {title} | {row} | {memory} |", flush=True)
    for one in pair:
        one.stop()
    return mine / other
