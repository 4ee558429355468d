"""The process that runs some seeds: `python -m fuzz.worker START END FOLDER [--no-shrink]`. Prints
the current seed, what differs, and in the end what was drawn."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from . import coverage, gradients, ways
from .check import Finding, check, judge, still
from .program import Program
from .shrink import shrink

#: One in so many programs is checked for rules, and for gradients.
RULES, GRADIENTS = 7, 6


def main(arguments: list[str]) -> None:
    """Runs the programs of the seeds."""
    start, end, folder = int(arguments[0]), int(arguments[1]), Path(arguments[2])
    shrinks = "--no-shrink" not in arguments
    counts: Counter = Counter()
    for seed in range(start, end):
        _say("at", str(seed))
        one(seed, counts, folder, shrinks)
    _say("counts", json.dumps(counts))
    _say("at", str(end))


def _say(kind: str, text: str) -> None:
    print(kind, text, flush=True)


def one(seed: int, counts: Counter, folder: Path, shrinks: bool) -> None:
    """Checks the program of one seed."""
    program, findings, seen = check(seed)
    if seed % RULES == 0 or program.is_large:
        for way in coverage.RULE_WAYS:
            says = judge(program, way, seen)
            findings += [Finding(program, way, says)] if says is not None else []
        coverage.rules(seen, counts)
    coverage.count(program, seen, counts)
    for finding in findings[:1]:
        _tell(finding, folder, shrinks)
    if seed % GRADIENTS == 0 and not findings:
        says = gradients.difference(program)
        counts["gradients compared"] += says != ""
        if says:
            small = shrink(program, _keeps_differing, 20) if shrinks else program
            _write(
                small, "gradients", gradients.difference(small) or says, folder, "use_graph=True"
            )


def _keeps_differing(program: Program) -> bool:
    return bool(gradients.difference(program))


def _tell(finding: Finding, folder: Path, shrinks: bool) -> None:
    program, says = finding.program, finding.says
    if shrinks:
        _say("shrinks", str(program.seed))
        fails = still(finding)
        program = shrink(program, fails) if fails(program) else program
    how = ", ".join(f"{name}={value!r}" for name, value in finding.way.how.items())
    _write(program, finding.way.name, says, folder, how)


def _write(program: Program, way: str, says: str, folder: Path, how: str) -> None:
    path = folder / f"seed_{program.seed}.py"
    path.write_text(program.file(f"Seed {program.seed}, {way}: {says}".replace('"""', "'''"), how))
    found: dict[str, Any] = {"seed": program.seed, "way": way, "says": says, "file": str(path)}
    _say("finding", json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])


__all__ = ["main", "ways"]
