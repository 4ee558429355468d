"""The threads that share steps: how many there are, what becomes of them when something else than a
step happens, and that their number changes no bit. Every process here is one of its own."""

import functools
import os
import subprocess
import sys
import time

import pytest
from forking import needs_fork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
each_team = pytest.mark.parametrize("threads", [2, 4])
COUNTS = (1, 2, 3, 4, 8, 16)
#: What the OpenMP library that oneDNN brings along says when it is loaded.
REFUSAL = "libgomp: Invalid value for environment variable"

START = """
import os, sys, threading, time
import numpy as np
from forking import in_child
from singa_rs import autograd
from team_models import *

begun = tasks()
threads = int(sys.argv[1])
CPU.set_num_threads(threads) if threads else None
"""


def run(body, threads=0, **environment):
    """What a program prints that runs without an error; `threads` of 0 leave the default."""
    fixed = {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    given = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + body, str(threads)],
        env={**given, **fixed, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    said = [line for line in done.stderr.splitlines() if line and not line.startswith(REFUSAL)]
    assert (done.returncode, said) == (0, [])
    return done.stdout


# ---- the same bits -------------------------------------------------------------------------------

DIGESTS = """
for name in MODELS:
    print(digest(name, threads), digest(name, threads, use_graph=False))
"""


@functools.cache
def digests(threads):
    """For each model its bits on so many threads, replayed and eager."""
    lines = run(DIGESTS, threads).splitlines()
    return dict(zip(("conv", "lstm", "gpt"), map(str.split, lines), strict=True))


@pytest.mark.parametrize("model", ["conv", "lstm", "gpt"])
def test_any_number_of_threads_gives_the_same_bits(model):
    assert len({digests(threads)[model][0] for threads in COUNTS}) == 1


@pytest.mark.parametrize("threads", COUNTS)
def test_replay_has_the_bits_of_eager_execution(threads):
    assert all(replayed == eager for replayed, eager in digests(threads).values())


CHANGING = """
steady, changed = Trained("gpt"), Trained("gpt")
counts, seen = [1, threads, 3, 2 * threads], {}
for i in range(200):
    CPU.set_num_threads(counts[i % 4])
    changed.step()
    if i >= 8:  # every number has been there twice
        seen.setdefault(i % 4, []).append(tasks())
CPU.set_num_threads(1)
for _ in range(200):
    steady.step()
assert steady.digest() == changed.digest()
assert all(max(found) <= found[0] for found in seen.values()), seen
"""


@each_team
def test_changes_of_the_number_of_threads_keep_the_bits_and_leak_no_thread(threads):
    run(CHANGING, threads)


TOGETHER = """
def train(trained):
    for _ in range(20):
        trained.step()

apart, together = ([Trained(name) for name in MODELS] for _ in range(2))
for trained in apart:
    train(trained)
callers = [threading.Thread(target=train, args=(trained,)) for trained in together]
[caller.start() for caller in callers]
[caller.join() for caller in callers]
for one, other in zip(apart, together, strict=True):
    assert one.digest() == other.digest()
"""


@each_team
def test_models_that_are_trained_at_the_same_time_share_the_team(threads):
    run(TOGETHER, threads)


# ---- how many there are --------------------------------------------------------------------------

COUNTED = """
trained = Trained("conv")
for _ in range(STEPS):
    trained.step()
print(CPU.num_threads, tasks() - begun)
"""


def counted(threads=0, **environment):
    """The device's number of threads, and how many a process has started by its first steps."""
    return tuple(map(int, run(COUNTED, threads, **environment).split()))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_team_is_the_caller_and_so_many_threads_less_one(threads):
    assert counted(threads) == (threads, threads - 1)


@pytest.mark.parametrize("text", ["1", "2", "1,4", " 2 "])
def test_the_environment_bounds_the_number_of_threads(text):
    most, _ = counted()
    want = min(most, int(text.split(",")[0]))
    assert counted(OMP_NUM_THREADS=text) == (want, want - 1)


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1000"])
def test_other_values_in_the_environment_bound_nothing(text):
    assert counted(OMP_NUM_THREADS=text) == counted()


@each_team
def test_the_device_s_setting_comes_before_the_environment(threads):
    assert counted(threads, OMP_NUM_THREADS="1") == (threads, threads - 1)


RESTING = """
trained = Trained("conv")
for _ in range(STEPS):
    trained.step()
time.sleep(0.2)
before = time.process_time()
time.sleep(1)
print(time.process_time() - before)
"""


@each_team
def test_a_team_at_rest_takes_no_time(threads):
    assert float(run(RESTING, threads)) < 0.05


# ---- forks, the end of the process, and errors ---------------------------------------------------

FORKING = """
trained, same, ended = Trained("gpt"), Trained("gpt"), threading.Event()
def train():
    other = Trained("conv")
    while not ended.is_set():
        other.step()

for _ in range(STEPS):
    trained.step()
if {is_busy}:
    caller = threading.Thread(target=train)
    caller.start()
jobs = {{
    "replayed": trained.step,
    "eager": lambda: Trained("conv", use_graph=False).step(),
    "after a change": lambda: (CPU.set_num_threads(3), trained.step()),
}}
for name, job in jobs.items():
    answer = in_child(job)
    assert answer.startswith("DeviceError") and "spawn" in answer, (name, answer)
ended.set()
if {is_busy}:
    caller.join()
trained.step()
for _ in range(STEPS + 1):
    same.step()
assert trained.digest() == same.digest()
"""


@needs_fork
@each_team
@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
def test_a_forked_child_is_told_to_spawn(threads, is_busy):
    run(FORKING.format(is_busy=is_busy), threads)


SPAWNING = """
import multiprocessing

here = digest("gpt", threads)
with multiprocessing.get_context("spawn").Pool(1) as pool:
    assert pool.apply(digest, ("gpt", threads)) == here
"""


@each_team
def test_a_spawned_child_has_a_team_of_its_own(threads):
    run(SPAWNING, threads)


LEAVING = """
ready = threading.Semaphore(0)

def train(name):
    trained = Trained(name)
    for _ in range(STEPS):
        trained.step()
    ready.release()
    while True:
        trained.step()

for name in MODELS:
    threading.Thread(target=train, args=(name,), daemon=True).start()
for _ in MODELS:
    ready.acquire()
print(time.time())
"""


@each_team
def test_the_process_ends_while_daemon_threads_make_steps(threads):
    began = float(run(LEAVING, threads))
    assert time.time() - began < 5


FAILING = """
class Armed(autograd.Operator):
    host = True
    is_armed = False

    def infer(self, meta):
        return [(meta.shape, meta.dtype)]

    def forward(self, a):
        if Armed.is_armed:
            raise ArithmeticError("armed")
        return a.copy()


class Guarded(Lstm):
    def forward(self, x):
        return super().forward(Armed()(x)[0])


class Raising(Lstm):
    def forward(self, x):
        super().forward(x)
        raise KeyError("raised")


def refused(call, kind):
    try:
        call()
    except kind:
        return
    raise AssertionError("nothing was raised")


(x, y), labels = map(from_numpy, MODELS["lstm"][1]), from_numpy(MODELS["lstm"][1][1] + 1000)
trained, guarded, raising = Trained("lstm"), Guarded(), Raising()
guarded.compile([x])
for _ in range(STEPS):
    trained.step()
    guarded.train_one_batch(x, y)
team = tasks()

Armed.is_armed = True
refused(lambda: guarded.train_one_batch(x, y), ArithmeticError)
Armed.is_armed = False
refused(lambda: trained.model.train_one_batch(x, labels), (ValueError, IndexError))
refused(lambda: raising.train_one_batch(x, y), KeyError)
refused(lambda: x @ x.reshape((-1, 7)), ValueError)

same = Trained("lstm")
for _ in range(STEPS + 1):
    same.step()
trained.step()
guarded.train_one_batch(x, y)
assert trained.digest() == same.digest()
assert tasks() == team
"""


@each_team
def test_a_step_that_fails_leaves_the_team_as_it_was(threads):
    run(FAILING, threads)
