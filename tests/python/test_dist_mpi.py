"""Exchanges over MPI, under its launcher: what ranks find is what they find over shared memory."""

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import dist_programs as programs
import numpy as np
import pytest
from singa_rs import dist

MPIEXEC = Path(sys.executable).parent / "mpiexec"
TESTS = Path(__file__).parent
#: Runs functions of `dist_programs` on each rank, and writes what they return.
RUN = """
import pickle, sys
import dist_programs
from singa_rs import dist
calls, folder = sys.argv[1:]
dist.init(timeout=20)
made = [getattr(dist_programs, name)(*arguments) for name, arguments in eval(calls)]
with open(f"{folder}/{dist.rank()}", "wb") as file:
    pickle.dump(made, file)
"""
#: Rank 1 fails between two exchanges, and the others say what they heard. The news can reach a rank
#: that is still waiting for the first one.
FAIL = """
import sys
import numpy as np
from singa_rs import dist, tensor
dist.init(timeout=20)
t = tensor.from_numpy(np.ones(4, np.float32))
try:
    dist.all_reduce(t)
    if dist.rank() == 1:
        raise ValueError("boom")
    dist.all_reduce(t)
except dist.DistError as error:
    print(f"heard: {error}", flush=True)
"""

#: Functions of `dist_programs`, with their arguments.
CALLS = [
    ("reduced", ("sum", "float32", (300, 101))),
    ("reduced", ("mean", "float64", (7, 5))),
    ("reduced", ("max", "int32", (7, 5))),
    ("over", ("float16", (90, 50), 1.0)),
    ("over", ("sparse", (90, 50), 0.02)),
    ("moved", ("float32",)),
    ("overlapped", ()),
]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="MPI is not installed: pip install singa-rs[mpi]",
)


def launched(n, program, *arguments, options=()):
    """The launcher's end, with what the ranks printed."""
    python = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(TESTS)!r})\n{program}"]
    command = [str(MPIEXEC), *options, "-n", str(n), *python, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def on_ranks(n, folder):
    """What the calls return on each rank."""
    done = launched(n, RUN, repr(CALLS), folder)
    assert done.returncode == 0, done.stderr
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(n)]


def same(one, other):
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


@pytest.mark.usefixtures("quick_start")
@pytest.mark.parametrize("n", [2, 3])
def test_the_bits_of_shared_memory(n, tmp_path):
    for at, made in enumerate(zip(*on_ranks(n, tmp_path), strict=True)):
        name, arguments = CALLS[at]
        want = dist.spawn(getattr(programs, name), n, arguments, timeout=30.0)
        assert same(made, want), (name, arguments)


def test_a_rank_that_fails_is_named():
    done = launched(3, FAIL, options=["-disable-auto-cleanup"])
    heard = done.stdout.split("heard:")[1:]  # the launcher may join the lines of two ranks
    assert len(heard) == 2, done.stdout + done.stderr
    assert all("rank 1 failed: ValueError: boom" in line for line in heard)
    assert done.returncode != 0
