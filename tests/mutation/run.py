"""Mutation testing of graph/, rewrite/ and engine/: how many small changes of the source the tests
notice.

    python tests/mutation/run.py [PATH ...] [--sample N] [--seed N] [--again] [--fresh]

All mutants are built at once, and an environment variable enables one of them. A mutant is tested
only with the tests that reach it, first those in Rust, then, if it survives, those in Python. The
results are kept in target/mutation/results.jsonl, so an interrupted run continues where it stopped;
mutants of functions that have not changed since are not tested again. `--again` tests those again
that survived without a reason, `--fresh` all.
"""

import argparse
import random
import time
from pathlib import Path

import report
from crate import ROOMS, ROOT, Crate, shipped
from suites import Python, Rust
from trials import Trials

FOLDER = ROOT / "target" / "mutation"
RESULTS = FOLDER / "results.jsonl"


def arguments() -> argparse.Namespace:
    rooms = [f"src/{room}" for room in ROOMS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="*", default=rooms, help="files or folders of the source")
    parser.add_argument("--sample", type=int, help="try so many, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="what the sample is drawn from")
    parser.add_argument("--jobs", type=int, default=2, help="how many tests run at a time")
    parser.add_argument(
        "--programs", type=int, default=250, help="random programs a test; 0: as many as tests draw"
    )
    parser.add_argument(
        "--again", action="store_true", help="try anew what survived without a reason"
    )
    parser.add_argument("--fresh", action="store_true", help="try anew all")
    parser.add_argument("--only", choices=("Rust", "Python"), help="those tests alone")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    return parser.parse_args()


def drawn(crate: Crate, options: argparse.Namespace) -> list[str]:
    """The mutants to test, in random order, so that an interrupted run tests a random sample."""
    compiled = [m.key for m in crate.mutants if m.key not in crate.left_out]
    random.Random(options.seed).shuffle(compiled)
    return compiled[: options.sample]


def is_open(record: dict | None, suite: str, options: argparse.Namespace) -> bool:
    """Whether a mutant with this record is yet to be tested with a suite."""
    if record is None or options.fresh and suite == "Rust":
        return suite == "Rust"
    if record["outcome"] in report.CAUGHT or report.reason(record):
        return False
    return options.again or suite == "Python" and record.get("suite") != "Python"


def stage(crate: Crate, suite: Rust | Python, options: argparse.Namespace) -> None:
    """Tests the open mutants with a suite."""
    known = report.read(RESULTS)
    keys = [key for key in drawn(crate, options) if is_open(known.get(key), suite.name, options)]
    trials = Trials(crate, suite, options.jobs)
    tests = trials.trace()
    seconds = sum(test.seconds for test in tests)
    print(f"{suite.name}: {len(tests)} tests reach mutants, {seconds:.0f} s in all", flush=True)
    for test in sorted(tests, key=lambda t: -t.seconds)[:8]:
        print(f"  {test.seconds:6.1f} s {test.name}")
    print(f"{len(keys)} mutants to try", flush=True)
    trials.try_all([crate.numbers[key] for key in keys], tests, RESULTS, known)


def main() -> None:
    options = arguments()
    paths = [str(Path(path).resolve().relative_to(ROOT)) for path in options.paths]
    crate = Crate(shipped(paths), FOLDER / "crate")
    if options.list:
        for mutant in crate.mutants:
            print(f"{mutant.file}:{mutant.line} {mutant.function}: {mutant.name}")
        return
    begin = time.monotonic()
    crate.build()
    compiled = len(crate.mutants) - len(crate.left_out)
    print(f"{len(crate.mutants)} mutants, {compiled} compile", flush=True)
    if options.only != "Python":
        stage(crate, Rust(crate, options.programs), options)
    if options.only != "Rust":
        stage(crate, Python(crate, FOLDER / "package"), options)
    print(f"{time.monotonic() - begin:.0f} s")
    known = report.read(RESULTS)
    records = [known[m.key] for m in crate.mutants if m.key in known]
    records = [r for r in records if r["key"] not in crate.left_out]
    print(*report.survivors(records), sep="\n")
    print(report.table(records))


if __name__ == "__main__":
    main()
