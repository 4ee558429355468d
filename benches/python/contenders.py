"""Contenders that take turns of a few steps, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

#: Seconds between turns: threads of other libraries spin for a while after their last work.
REST = 0.1
#: About how many seconds a turn lasts: short steps are repeated, as threads that have to be woken
#: up are not what is compared.
TURN = 0.02


def serve(pipe: Connection, make: Callable[..., Callable[[], None]], *args: object) -> None:
    """Runs a step, or several if they are short, whenever it is told to, and answers with the
    seconds of one."""
    step = make(*args)
    least = min(_seconds(step, 1) for _ in range(5))
    count = max(1, round(TURN / least))
    pipe.send(_peak())
    while pipe.recv():
        pipe.send(_seconds(step, count))


def _peak() -> float:
    """The most MiB that this process has had in memory. What `getrusage` tells of a process that
    was forked begins with the memory of the one that forked it."""
    try:
        with open("/proc/self/status") as file:
            line = next(one for one in file if one.startswith("VmHWM"))
    except FileNotFoundError:  # no Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(line.split()[1]) / 1024


def _seconds(step: Callable[[], None], count: int) -> float:
    """The mean time of so many steps."""
    begin = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - begin) / count


class Contender:
    """A process that waits for its turns."""

    def __init__(self, *args: object) -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(other, *args))
        self.process.start()
        #: Peak memory in MiB.
        self.memory = self.pipe.recv()

    def turn(self) -> float:
        """The seconds of a step."""
        time.sleep(REST)
        self.pipe.send(True)
        return self.pipe.recv()

    def stop(self) -> None:
        """Ends the process."""
        self.pipe.send(False)
        self.process.join()


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
