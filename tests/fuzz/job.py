"""Many programs in processes that are watched: a crash or a hang is a finding."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The number of programs that a process runs before it is replaced.
CHUNK = 250
#: Time limits in seconds: for a program in all ways, and for shrinking one that differs.
LIMIT, SHRINKING = 60.0, 40.0
#: Environments of processes, in turn: graphs verified and memory poisoned, as shipped, portable.
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {},
    {"SINGA_RS_CHECK": "1"},
    {},
    {"SINGA_RS_CHECK": "1", "SINGA_RS_KERNELS": "portable"},
)


@dataclass
class Report:
    """What a job found."""

    counts: Counter = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


class Worker:
    """A process that runs the programs of some seeds."""

    def __init__(self, start: int, end: int, folder: Path, options: list[str]) -> None:
        self.at, self.end, self.folder = start, end, folder
        self.environment = ENVIRONMENTS[start // CHUNK % len(ENVIRONMENTS)]
        self.since = time.monotonic()
        self.limit = LIMIT
        tests = str(Path(__file__).parents[1])
        path = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))
        clean = {
            k: v for k, v in os.environ.items() if k not in ("SINGA_RS_CHECK", "SINGA_RS_KERNELS")
        }
        self.place = tempfile.TemporaryDirectory()
        self.errors = open(Path(self.place.name) / "stderr", "w+")
        command = [sys.executable, "-X", "faulthandler", "-m", "fuzz.worker"]
        self.process = subprocess.Popen(
            [*command, str(start), str(end), str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**clean, **self.environment, "PYTHONPATH": path},
            cwd=self.place.name,
            text=True,
        )

    def stop(self) -> str:
        """Ends the process; its last output."""
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        text = self.errors.read()[-2000:]
        self.errors.close()
        self.place.cleanup()
        return text


class Job:
    """Programs of seeds from `start` on, in several processes."""

    def __init__(
        self, start: int, programs: int, jobs: int, folder: Path, options: list[str]
    ) -> None:
        self.folder, self.options = folder, options
        ends = range(start, start + programs, CHUNK)
        self.waiting = [(i, min(i + CHUNK, start + programs)) for i in reversed(ends)]
        self.jobs, self.report = jobs, Report()
        self.selector = selectors.DefaultSelector()
        self.running: list[Worker] = []

    def run(self, tell: Any = None) -> Report:
        """Runs all programs; `tell` gets a line of progress now and then."""
        began = told = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.jobs:
                self._begin(*self.waiting.pop())
            for key, _ in self.selector.select(timeout=1.0):
                self._hear(key.data)
            for worker in [w for w in self.running if time.monotonic() - w.since > w.limit]:
                self._fail(worker, f"took more than {worker.limit:.0f} s")
            if tell is not None and time.monotonic() - told > 30:
                told = time.monotonic()
                tell(self._progress(told - began))
        self.report.seconds = time.monotonic() - began
        return self.report

    def _progress(self, seconds: float) -> str:
        done = self.report.counts["programs"]
        rate, found = done / seconds, len(self.report.findings)
        return f"{done} programs, {rate:.1f} a second, {found} findings"

    def _begin(self, start: int, end: int) -> None:
        worker = Worker(start, end, self.folder, self.options)
        self.running.append(worker)
        self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def _hear(self, worker: Worker) -> None:
        line = worker.process.stdout.readline()
        if not line:
            code = worker.process.wait()
            if worker.at < worker.end:
                self._fail(worker, f"the process ended with {code}")
            else:
                self._drop(worker)
            return
        worker.since = time.monotonic()
        kind, _, rest = line.partition(" ")
        if kind == "at":
            worker.at, worker.limit = int(rest), LIMIT
        elif kind == "shrinks":
            worker.limit = LIMIT + SHRINKING
        elif kind == "counts":
            self.report.counts.update(json.loads(rest))
        elif kind == "finding":
            self.report.findings.append({**json.loads(rest), "environment": worker.environment})

    def _drop(self, worker: Worker) -> str:
        self.selector.unregister(worker.process.stdout)
        self.running.remove(worker)
        text = worker.stop()
        worker.process.stdout.close()
        return text

    def _fail(self, worker: Worker, says: str) -> None:
        """A crash or a hang: the seed is a finding, and the job goes on with the next one."""
        text = self._drop(worker)
        found = {"seed": worker.at, "way": "?", "says": f"{says}\n{text}", "file": None}
        self.report.findings.append({**found, "environment": worker.environment})
        if worker.at + 1 < worker.end:
            self.waiting.append((worker.at + 1, worker.end))
