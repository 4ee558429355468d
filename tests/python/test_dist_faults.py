"""Ranks that are killed, are stopped, raise, or do something else than the others, at random
moments of training: all others raise in time, and none hangs.

`SINGA_RS_FAULTS=100` runs so many faults instead of a few.
"""

import importlib.util
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import pytest
from dist_faulty import COMING, TIMEOUT
from singa_rs.dist.children import segment
from singa_rs.dist.place import SEGMENT

PROGRAM = [sys.executable, str(Path(__file__).parent / "dist_faulty.py")]
MPIEXEC = Path(sys.executable).parent / "mpiexec"
KINDS = ("kill", "stop", "raise", "graph")
#: What a busy machine may add to times.
MARGIN = 8.0
#: Whether a fault takes others the timeout to notice.
WAITS = {"stop"}
COUNT = int(os.environ.get("SINGA_RS_FAULTS", "4"))


class Ranks:
    """Processes, and the lines that they say."""

    def __init__(self, started):
        self.processes, self._lines = started, queue.SimpleQueue()
        #: Of each word, what ranks have said and nobody has asked for yet.
        self._said = defaultdict(dict)
        for one in started:
            threading.Thread(target=self._read, args=(one.stdout,), daemon=True).start()

    def _read(self, file):
        for line in filter(str.strip, file):
            self._lines.put(line)

    def expect(self, word, count, seconds):
        """What so many ranks say that begins with a word, by rank."""
        end = time.monotonic() + seconds
        while len(self._said[word]) < count:
            try:
                line = self._lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                found = sorted(self._said[word])
                pytest.fail(f"{word}: {found} of {count} have said it in {seconds} s")
            rank, *rest = line.split()
            if rank.isdecimal() and rest:  # anything else is the launcher's
                self._said[rest[0]][int(rank)] = " ".join(rest[1:])
        return self._said.pop(word)


def popen(command, **environment):
    return subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _host(size, arguments, path):
    places = [{"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size} for rank in range(size)]
    return [
        popen([*PROGRAM, *arguments], **{SEGMENT: path}, **{k: str(v) for k, v in place.items()})
        for place in places
    ]


def _mpi(size, arguments, path):
    return [popen([MPIEXEC, "-disable-auto-cleanup", "-n", str(size), *PROGRAM, *arguments])]


@contextmanager
def ranks(start, size, *arguments):
    """Ranks that are ended in any case."""
    with segment() as path:
        started = start(size, list(map(str, arguments)), path)
        try:
            yield Ranks(started)
        finally:
            for one in started:
                one.kill()
                one.wait()
                one.stdout.close()


def lose_a_rank(start, seed, kind):
    """One rank fails; the others say so, naming it."""
    draw = random.Random(seed)
    size = draw.randint(2, 3)
    lost, step = draw.randrange(size), draw.choice([0, 1, 2, draw.randrange(60)])
    with ranks(start, size, seed, kind, lost, step) as group:
        pids = {rank: int(pid) for rank, pid in group.expect("there", size, 2 * COMING).items()}
        if kind in ("kill", "stop"):
            time.sleep(draw.random() * 0.1)
            os.kill(pids[lost], signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
        else:
            group.expect("fails", 1, COMING)
        hearers = size if kind == "graph" else size - 1
        limit = MARGIN + (TIMEOUT if kind in WAITS else 0)
        heard = group.expect("heard", hearers, limit)
        told = f"{kind} {size} {lost} {step}: {heard}"
        assert (lost in heard) == (kind == "graph"), told
        assert all(f"rank {lost}" in text for rank, text in heard.items() if rank != lost), told
        if kind == "raise":
            assert all("ValueError: boom" in text for text in heard.values()), told
        if kind == "stop":
            os.kill(pids[lost], signal.SIGCONT)
            assert "stopped" in group.expect("heard", 1, MARGIN)[lost]
        codes = [one.wait(MARGIN) for one in group.processes] if start is _host else []
    return codes, lost


@pytest.mark.parametrize("seed", range(COUNT))
def test_all_others_raise_in_time(seed):
    kind = KINDS[seed % len(KINDS)]
    codes, lost = lose_a_rank(_host, seed, kind)
    want = {"kill": -signal.SIGKILL, "raise": 1}.get(kind, 0)
    assert codes == [want if rank == lost else 0 for rank in range(len(codes))]


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="MPI is not installed: pip install singa-rs[mpi]",
)
@pytest.mark.parametrize("seed", range(COUNT))
def test_all_others_raise_in_time_over_mpi(seed):
    """Its launcher ends all ranks at once where one is killed."""
    kinds = [kind for kind in KINDS if kind != "kill"]
    lose_a_rank(_mpi, seed, kinds[seed % len(kinds)])
