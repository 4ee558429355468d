"""The long job: `python -m fuzz --programs 200000 --jobs 2 --findings DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import coverage, ways
from .check import check
from .job import Job
from .worker import one


def main() -> int:
    """The exit status: 0 if nothing differs and everything was drawn."""
    given = _arguments()
    if given.show is not None:
        return _show(given.show, given.way)
    options = [] if given.shrink else ["--no-shrink"]
    job = Job(given.seed, given.programs, given.jobs, Path(given.findings), options)
    report = job.run(lambda line: print(line, flush=True))
    print(coverage.table(report.counts))
    for found in report.findings:
        print(
            f"seed {found['seed']}, {found['way']}, {found['environment']}: {found['says'][:400]}"
        )
        if found["file"]:
            print(f"  {found['file']}")
    count, seconds = report.counts["programs"], report.seconds
    rate = count / max(seconds, 1e-9)
    print(
        f"{count} programs in {seconds:.0f} s ({rate:.1f} a second), "
        f"{len(report.findings)} findings"
    )
    missing = coverage.missing(report.counts)
    if missing:
        print(f"never drawn: {', '.join(missing)}")
    return int(bool(report.findings) or bool(missing) and given.programs >= 20_000)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first program's")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--findings", default="findings", help="where programs that differ go")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false", help="as they are")
    parser.add_argument(
        "--show", type=int, metavar="SEED", help="print one program, run it, shrink it"
    )
    parser.add_argument("--way", help="with --show: run it in this way alone")
    return parser.parse_args()


def _show(seed: int, way: str | None) -> int:
    """Prints a program, and what differs."""
    program, findings, _ = check(seed, (ways.named(way),) if way else ())
    print(program.file(f"Seed {seed}."))
    for finding in findings:
        print(f"# {finding.way.name}: {finding.says}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())


__all__ = ["main", "one"]
