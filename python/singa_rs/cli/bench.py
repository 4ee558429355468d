"""`singa-rs bench`: time training steps of three small models on this machine."""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .run import positive

NAME = "bench"
MODELS = ("mlp", "lenet", "gpt")
_WARM = 5


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"among {', '.join(MODELS)}; "
                        "all by default")  # fmt: skip
    parser.add_argument("--steps", type=positive, default=100, help="default: %(default)s")
    parser.add_argument("--threads", type=positive, help="default: as many as singa_rs uses")
    parser.add_argument("--compare", choices=("torch",), help="the same steps in another library")
    # A contender measures itself in a process of its own, whose memory is its alone.
    parser.add_argument("--alone", choices=("singa_rs", "torch"), help=argparse.SUPPRESS)


def run(given: argparse.Namespace) -> int:
    """Prints a table: the median time of a step, the memory that is planned for it, and by how much
    the process grew while it trained."""
    wrong = [name for name in given.models if name not in MODELS]
    if wrong:
        raise ValueError(f"got model {wrong[0]}, want {', '.join(MODELS)}")
    if given.alone:
        print(json.dumps(_measured(given.alone, given.models[0], given.steps, given.threads)))
        return 0
    libraries = ["singa_rs", *([given.compare] if given.compare else [])]
    if given.compare and importlib.util.find_spec(given.compare) is None:
        raise ModuleNotFoundError(
            f"--compare {given.compare}: it is not installed; pip install {given.compare}"
        )
    print(f"{'model':8}{'library':12}{'ms a step':>10}{'planned MiB':>13}{'process MiB':>13}")
    for model in given.models or MODELS:
        for library in libraries:
            found = _in_a_process(library, model, given)
            planned = "" if found["planned"] is None else f"{found['planned'] / 2**20:.2f}"
            grown = found["grown"] / 2**20
            print(f"{model:8}{library:12}{found['ms']:>10.3f}{planned:>13}{grown:>13.1f}",
                  flush=True)  # fmt: skip
    return 0


def _in_a_process(library: str, model: str, given: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, "-m", "singa_rs", "bench", model, "--alone", library]
    command += ["--steps", str(given.steps)]
    command += [] if given.threads is None else ["--threads", str(given.threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise RuntimeError(f"{model} in {library} failed: {last}")
    return json.loads(done.stdout.splitlines()[-1])


def _measured(library: str, model: str, steps: int, threads: int | None) -> dict[str, float | None]:
    if library == "torch":
        from .bench_torch import step_of
    else:
        from .bench_models import step_of
    before = _peak()  # with the library, whose size says nothing of a step
    step, planned = step_of(model, threads)
    seconds = _times(step, steps)
    grown = _peak() - before
    return {"ms": statistics.median(seconds) * 1e3, "planned": planned, "grown": grown}


def _times(step: Callable[[], float], steps: int) -> list[float]:
    for _ in range(_WARM):
        step()
    found = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    return found


def _peak() -> int:
    """The most memory that the process has had, in bytes. What `getrusage` tells a process begins
    with the memory of the one that started it, so Linux is asked for that of this program."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
