"""Steps of a process that gets only part of the processors' time, for `load.py`.

The process is in a control group with a quota (version 2 or 1), which it joins before it loads a
library, so that the package may choose its number of threads by it. Where no such group can be
created, the process is stopped and continued instead, which the package cannot see.

What a quota of q processors gives a step that takes t on one thread at full speed is t / q. Times
are means over many periods of the quota, as a step between two pauses runs at full speed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import math
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import load_models
from contenders import Contender
from load_models import OURS, Step
from process import used
from report import bounded, duration
from turns import Others

#: Seconds after which a quota is granted anew.
PERIOD = 0.1
#: Seconds between looks at the time that a paced process has used.
LOOK = 0.001
#: Linux's PR_SET_PDEATHSIG: which signal a process gets when its parent ends.
PARENT_ENDS = 1
#: The largest ratio aimed at between a step's time and what the quota gives.
GIVEN = 1.1
HEADS = (
    "one step", "processors", "by", "threads", "one thread", "under the quota",
    "what the quota gives", f"ratio (at most {GIVEN:g})", "taken by others",
)  # fmt: skip

# ---- control groups ------------------------------------------------------------------------------


def _own_groups() -> Iterator[Path]:
    """The folders of this process's group that may control processors."""
    root = Path("/sys/fs/cgroup")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield from (base / path.lstrip("/") for base in (root, root / "unified"))
        elif "cpu" in controllers.split(","):
            yield root / controllers / path.lstrip("/")


def _limited(folder: Path, processors: float) -> bool:
    """Whether a new group has been given its quota."""
    period = round(PERIOD * 1e6)
    most = round(processors * period)
    version_2, version_1 = folder / "cpu.max", folder / "cpu.cfs_quota_us"
    try:
        if version_2.exists():
            version_2.write_text(f"{most} {period}")
        elif version_1.exists():
            (folder / "cpu.cfs_period_us").write_text(str(period))
            version_1.write_text(str(most))
        else:
            return False
    except OSError:
        return False
    return True


@contextlib.contextmanager
def group(processors: float) -> Iterator[Path | None]:
    """A control group with such a quota within this process's own, removed at the end; None if none
    can be created."""
    for own in _own_groups():
        folder = own / f"singa_rs-bench-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if _limited(folder, processors):
                yield folder
                return
        finally:
            folder.rmdir()
    yield None


def join(folder: Path | None) -> None:
    """Moves this process into a group."""
    if folder:
        (folder / "cgroup.procs").write_text(str(os.getpid()))


# ---- stopping and continuing ---------------------------------------------------------------------


@contextlib.contextmanager
def paced(pid: int, processors: float) -> Iterator[None]:
    """A process is stopped within the context whenever it has used up a period's time."""
    ended = threading.Event()
    pacer = threading.Thread(target=_pace, args=(pid, processors, ended))
    pacer.start()
    try:
        yield
    finally:
        ended.set()
        pacer.join()


def _pace(pid: int, processors: float, ended: threading.Event) -> None:
    most = used(pid)
    try:
        while not ended.is_set():
            # What was not used is lost, what was used in excess is owed, as with a control group.
            most = min(most, used(pid)) + processors * PERIOD
            _pace_once(pid, most, time.monotonic() + PERIOD)
    finally:
        os.kill(pid, signal.SIGCONT)


def _pace_once(pid: int, most: float, end: float) -> None:
    """One period, in which a process may run until it has used so much time since its start."""
    if used(pid) < most:
        os.kill(pid, signal.SIGCONT)
    while used(pid) < most and time.monotonic() < end:
        time.sleep(LOOK)
    if used(pid) >= most:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(max(0.0, end - time.monotonic()))


# ---- what is measured ----------------------------------------------------------------------------


def make(folder: Path | None, model: str, threads: int) -> Step:
    """Our step of a model, in a group. The process is killed when the one that started it ends: a
    stopped one would not notice."""
    ctypes.CDLL(None).prctl(PARENT_ENDS, signal.SIGKILL)
    join(folder)
    return load_models.make(model, OURS, threads)


def _default_threads() -> int:
    from singa_rs import device

    return device.get_default_device().num_threads


def chosen(folder: Path | None) -> int:
    """The number of threads that the package chooses in a group."""
    with ProcessPoolExecutor(1, initializer=join, initargs=(folder,)) as pool:
        return pool.submit(_default_threads).result()


def _mean(one: Contender, args: argparse.Namespace, others: Others) -> float:
    """The mean time of a turn's steps: a turn lasts many periods."""
    with others.than(one.process.pid):
        return statistics.fmean(one.steps(max(3, math.ceil(args.seconds / one.least))))


def rounds(
    full: Contender, limited: Contender, pace: float, others: Others, args: argparse.Namespace
) -> list[tuple[float, float]]:
    """The mean times of a step at full speed and under a quota, in turns; the latter's process is
    paced if that is how it gets its quota."""
    found = []
    for _ in range(args.rounds):
        quick = _mean(full, args, others)
        slow = paced(limited.process.pid, pace) if pace else contextlib.nullcontext()
        with slow:
            found.append((quick, _mean(limited, args, others)))
    return found


def row(model: str, processors: float, args: argparse.Namespace) -> str:
    """A row of the table."""
    others = Others()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(group(processors))
        threads = chosen(folder)
        full, limited = Contender(make, None, model, 1), Contender(make, folder, model, threads)
        for one in (full, limited):
            stack.callback(one.stop)
        found = rounds(full, limited, 0 if folder else processors, others, args)
    quick, slow = (statistics.median(column) for column in zip(*found, strict=True))
    how = "a control group" if folder else "stopping and continuing"
    cells = [load_models.title(model), f"{processors:g}", how, str(threads)]
    cells += [duration(quick), duration(slow), duration(quick / processors)]
    cells += [bounded([b * processors / a for a, b in found], GIVEN), f"{others.worst:.0%}"]
    return f"| {' | '.join(cells)} |"


def compare(args: argparse.Namespace) -> None:
    """Prints the table of steps under quotas."""
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for model in args.models:
        for processors in args.quota:
            print(row(model, processors, args), flush=True)
