"""Ranks that meet by the name of a segment of shared memory, as torchrun's do, and what dead runs
leave of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from singa_rs.dist.place import place_of

RANK = """
import sys, time
import numpy as np
from singa_rs import dist, tensor
dist.init(timeout=60)
print("there", flush=True)
if sys.argv[2:] == ["wait"]:
    time.sleep(60)
if sys.argv[2:] == ["leave"]:
    sys.exit()
t = tensor.from_numpy(np.full(2, float(sys.argv[1]), np.float32))
print(dist.all_reduce(t).to_numpy().tolist(), flush=True)
"""


def environment(rank, size, port):
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    meeting = {"MASTER_ADDR": "test_dist_segments", "MASTER_PORT": f"{os.getpid()}-{port}"}
    return {**os.environ, **{k: str(v) for k, v in names.items()}, **meeting}


def start(rank, size, port, *args):
    command = [sys.executable, "-c", RANK, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment(rank, size, port), stdout=pipe, text=True)


def segment(port):
    return Path(place_of(environment(0, 2, port)).path)


@pytest.fixture
def port(request):
    yield request.node.name
    segment(request.node.name).unlink(missing_ok=True)


def sums(size, port):
    ranks = [start(rank, size, port, 1) for rank in range(size)]
    return [rank.communicate(timeout=120)[0].split("\n", 1)[1].strip() for rank in ranks]


def killed(port):
    """A run of two of which rank 0 came, gave its numbers and was killed."""
    rank = start(0, 2, port, 1000)
    assert rank.stdout.readline() == "there\n"
    time.sleep(0.3)
    rank.kill()
    rank.communicate()
    assert segment(port).exists()


@pytest.mark.parametrize("size", [2, 3])
def test_nobody_joins_a_dead_run(size, port):
    killed(port)
    assert sums(size, port) == [f"[{size}.0, {size}.0]"] * size
    assert not segment(port).exists()


def test_a_rank_that_waits_keeps_its_segment(port):
    first = start(0, 2, port, 1)
    assert first.stdout.readline() == "there\n"
    os.kill(first.pid, signal.SIGSTOP)
    second = start(1, 2, port, 2)
    assert second.stdout.readline() == "there\n"
    os.kill(first.pid, signal.SIGCONT)
    assert first.communicate(timeout=120)[0].strip() == "[3.0, 3.0]"
    assert second.communicate(timeout=120)[0].strip() == "[3.0, 3.0]"


def test_a_rank_that_leaves_before_others_come_takes_the_name_away(port):
    rank = start(0, 2, port, 1, "leave")
    assert rank.communicate(timeout=120)[0] == "there\n"
    assert rank.returncode == 0
    assert not segment(port).exists()


#: A process that a rank forks ends as any other, and the ranks go on.
FORKED = """
import os, sys
import numpy as np
from singa_rs import dist, tensor
dist.all_reduce(tensor.from_numpy(np.ones(2, np.float32)))
child = os.fork()
if child == 0:
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
dist.barrier()
os.write(1, b"done ")
"""


def test_a_forked_process_ends_in_silence(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FORKED)
    command = [sys.executable, "-m", "singa_rs", "run", "-n", "2", str(program)]
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}  # newer versions warn of forks with threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=quiet)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["done", "done"], "")
