"""Which tests reach which mutants, and which of them fail."""

import json
import os
import resource
import signal
import subprocess
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import schemata
from crate import Crate
from suites import Python, Rust

# A mutant may run on forever or allocate all memory: limits catch both.
TIMES, LEAST_SECONDS = 10, 10.0
MEMORY = 8 << 30


@dataclass
class Test:
    """A test, its time in seconds, and the mutants that it reaches."""

    name: str
    seconds: float
    reached: set[int]


class Trials:
    """Runs the tests of a suite."""

    def __init__(self, crate: Crate, suite: Rust | Python, jobs: int):
        self.crate, self.suite, self.jobs = crate, suite, jobs
        #: The outcomes of mutants that no test of the suite reaches.
        self.otherwise: dict[str, str] = {}
        self.killers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))

    def run(self, test: str, seconds: float, **settings: str) -> bool | None:
        """Whether a test passes; None if it takes longer."""
        process = subprocess.Popen(
            self.suite.command(test),
            cwd=self.suite.folder, env={**self.suite.environment, **settings},
            start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )  # fmt: skip
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def trace(self) -> list[Test]:
        """Runs every test without a mutant."""
        with ThreadPoolExecutor(self.jobs) as pool:
            traced = list(pool.map(self.trace_one, self.suite.names()))
        failed = [test.name for test in traced if test.seconds < 0]
        if failed:
            print("left out, as they fail without a mutant or take too long:", *failed, sep="\n  ")
        return [test for test in traced if test.reached and test.seconds >= 0]

    def trace_one(self, name: str) -> Test:
        path = self.crate.folder.parent / f"trace-{hash(name) & 0xFFFFFFFFFFFF:x}"
        path.write_bytes(bytes(schemata.size(len(self.crate.mutants))))
        begin = time.monotonic()
        passed = self.run(name, self.suite.longest, MUTANT_TRACE=str(path))
        seconds = time.monotonic() - begin if passed else -1
        reached = {n for n, byte in enumerate(path.read_bytes()) if byte}
        path.unlink()
        return Test(name, seconds, reached)

    def ordered(self, function: str, tests: list[Test]) -> list[Test]:
        """The tests in order of their time, after those that caught other mutants of the function;
        without those for which no time is left."""
        killers, left, chosen = self.killers[function], self.suite.altogether, []
        for test in sorted(tests, key=lambda test: (-killers[test.name], test.seconds)):
            left -= test.seconds
            if left >= 0:
                chosen.append(test)
        return chosen

    def try_one(self, number: int, tests: list[Test]) -> dict:
        """Tests one mutant; its record."""
        mutant = self.crate.mutants[number - 1]
        function = f"{mutant.file} {mutant.function}"
        outcome = "survived" if tests else self.otherwise.get(mutant.key, "not reached")
        record = {"key": mutant.key, "suite": self.suite.name, "outcome": outcome}
        begin = time.monotonic()
        for test in self.ordered(function, tests):
            limit = max(LEAST_SECONDS, TIMES * test.seconds)
            passed = self.run(test.name, limit, MUTANT=str(number))
            if not passed:
                self.killers[function][test.name] += 1
                outcome = "caught" if passed is False else "timeout"
                record |= {"outcome": outcome, "test": test.name}
                break
        where = {"file": mutant.file, "line": mutant.line, "function": mutant.function}
        seconds = round(time.monotonic() - begin, 2)
        return {**record, **where, "mutant": mutant.name, "tests": len(tests), "seconds": seconds}

    def try_all(
        self, numbers: list[int], tests: list[Test], results: Path, known: dict[str, dict]
    ) -> None:
        """Tests mutants, and writes a line for each as soon as its outcome is known; `known` are
        their earlier records."""
        self.otherwise = {key: record["outcome"] for key, record in known.items()}
        reaching = defaultdict(list)
        for test in tests:
            for number in test.reached:
                reaching[number].append(test)
        pool = ThreadPoolExecutor(self.jobs)
        try:
            tries = [pool.submit(self.try_one, n, reaching[n]) for n in numbers]
            with results.open("a") as file:
                for done, one in enumerate(as_completed(tries), 1):
                    self.note(one.result(), file)
                    if done % 100 == 0:
                        print(f"{done} of {len(numbers)} tried", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)

    def note(self, record: dict, file: TextIO) -> None:
        """Writes the record of a mutant at once, so that it survives however the run ends."""
        file.write(json.dumps(record) + "\n")
        file.flush()
        if record["outcome"] in ("survived", "not reached"):
            print(f"{record['file']}:{record['line']}: {record['mutant']}", flush=True)
