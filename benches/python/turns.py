"""Contenders that take turns, each in a process of its own.

Thread pools disturb each other within one process: OpenMP's threads spin for milliseconds after
their last work, and libraries bring several copies of OpenMP. So every contender lives in a worker
process that waits for its turn by reading from a pipe, and a turn begins `REST` seconds after the
previous one, when its threads are asleep; a worker reports how much processor time it took outside
its turns, and the parent warns if that is much. All workers are confined to the same cores, one for
each thread.

A turn may be disturbed by other work on the machine: its `others` is the share of all cores that
other processes took meanwhile.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Any, NamedTuple

from process import used
from workloads import CASES

#: Seconds between turns.
REST = 0.05
#: Seconds that a worker may take to get ready: compilers are slow.
PATIENCE = 900


class Contender(NamedTuple):
    """A contender: a title, a module with `make`, its argument `how`, and environment variables."""

    title: str
    module: str
    how: str = ""
    environment: dict[str, str] = {}  # noqa: RUF012


class Turn(NamedTuple):
    """Seconds per step, the share of the cores that others took, and the share of one core that the
    worker took since its last turn."""

    seconds: float
    others: float
    idle: float


def cores(threads: int) -> set[int]:
    """As many cores as threads, preferably no two of them hyperthreads of one core."""
    allowed = sorted(os.sched_getaffinity(0))
    firsts: dict[str, int] = {}
    for cpu in allowed:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        firsts.setdefault(path.read_text() if path.exists() else str(cpu), cpu)
    rest = [cpu for cpu in allowed if cpu not in firsts.values()]
    return set([*firsts.values(), *rest][:threads])


def busy() -> float:
    """Seconds that the machine's cores were busy, or were taken away from a virtual machine."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Others:
    """Notes how much of the machine's cores others take meanwhile."""

    def __init__(self) -> None:
        #: The largest share within any of the contexts.
        self.worst = 0.0

    @contextlib.contextmanager
    def than(self, *pids: int) -> Iterator[None]:
        """Within the context all processes count but those of these numbers."""

        def taken() -> float:
            return busy() - sum(map(used, pids))

        before, start = taken(), time.perf_counter()
        yield
        share = (taken() - before) / (time.perf_counter() - start) / (os.cpu_count() or 1)
        self.worst = max(self.worst, share)


def _measure(step: Any, count: int, left: float) -> Turn:
    """One turn of a worker that had used `left` seconds of processor time after its last one."""
    idle = time.process_time() - left
    for _ in range(min(count // 10, 20)):  # other workers have evicted its data from the caches
        step()
    machine, own, start = busy(), time.process_time(), time.perf_counter()
    for _ in range(count):
        step()
    wall = time.perf_counter() - start
    others = busy() - machine - (time.process_time() - own)
    return Turn(wall / count, max(0.0, others) / wall / (os.cpu_count() or 1), idle)


def _losses(step: Any, count: int) -> list[float]:
    return [float(loss.item()) for loss in (step() for _ in range(count))]


def _serve(pipe: Connection, who: Contender, case: str, threads: int, dtype: str) -> None:
    """A worker's main loop: prepares the step, then takes a turn per count, until it gets None."""
    os.sched_setaffinity(0, cores(threads))
    os.environ.update({"OMP_NUM_THREADS": str(threads), **who.environment})
    try:
        step = importlib.import_module(who.module).make(CASES[case], who.how, threads, dtype)
        first = _losses(step, 5)
        pipe.send(first)
        gc.collect()
        left = time.process_time()
        while (count := pipe.recv()) is not None:
            pipe.send(_measure(step, count, left))
            left = time.process_time()
    except Exception:
        pipe.send(traceback.format_exc().strip().splitlines()[-1])


class Worker:
    """A contender's process, ready for turns, with the losses of its first five steps."""

    def __init__(self, who: Contender, case: str, threads: int = 2, dtype: str = "float32") -> None:
        """Raises RuntimeError with the worker's message if it fails."""
        context = multiprocessing.get_context("spawn")
        self.who = who
        self.pipe, other = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(other, who, case, threads, dtype), daemon=True
        )
        self.process.start()
        other.close()
        self.ended = time.perf_counter()
        self.losses: list[float] = self._answer()
        #: Steps per turn.
        self.count = 1

    def _answer(self) -> Any:
        if not self.pipe.poll(PATIENCE):
            self.process.kill()
            raise RuntimeError(f"{self.who.title}: no answer within {PATIENCE} s")
        try:
            answer = self.pipe.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(f"{self.who.title}: died ({self.process.exitcode})") from None
        self.ended = time.perf_counter()
        if isinstance(answer, str):
            raise RuntimeError(f"{self.who.title}: {answer}")
        return answer

    def turn(self) -> Turn:
        """Makes `count` steps after a rest."""
        time.sleep(REST)
        waited = time.perf_counter() - self.ended
        self.pipe.send(self.count)
        turn = self._answer()
        return turn._replace(idle=max(0.0, turn.idle - REST) / waited)

    def settle(self, seconds: float) -> None:
        """Chooses the number of steps per turn so that a turn takes about `seconds`."""
        self.turn()
        self.count = max(1, round(seconds / self.turn().seconds))

    def stop(self) -> None:
        """Ends the process."""
        if self.process.is_alive():
            self.pipe.send(None)
            self.process.join(10)
        if self.process.is_alive():
            self.process.kill()


class Load:
    """Keeps so many other processes spinning within the context, on the cores that this one may
    use."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.processes: list[BaseProcess] = []

    def __enter__(self) -> Load:
        context = multiprocessing.get_context("spawn")
        begun = context.Semaphore(0)
        for _ in range(self.count):
            one = context.Process(target=_spin, args=(begun, os.getpid()), daemon=True)
            one.start()
            self.processes.append(one)
        for _ in self.processes:
            begun.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.processes:
            one.kill()
        for one in self.processes:
            one.join()


def _spin(begun: Semaphore, parent: int) -> None:
    begun.release()
    while os.getppid() == parent:  # which may have been killed
        for _ in range(1_000_000):
            pass
