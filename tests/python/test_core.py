"""Engine behaviour visible only from Python: cycles, threads, forks, interpreter shutdown."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from forking import in_child, needs_fork
from handles import ADD, CPU, tensor
from singa_rs import _core


def test_an_object_and_the_operation_made_of_its_methods_are_collected():
    class Layer:
        def __init__(self):
            self.weight = tensor(np.ones(1 << 16))
            self.op = _core.HostOp("mine", self.infer, self.forward)

        def infer(self, x):
            return x

        def forward(self, x):
            return x * 2

    layer = Layer()
    assert layer.op(tensor([1, 2])).to_numpy().tolist() == [2, 4]
    alive = weakref.ref(layer)
    gc.collect()
    assert alive() is layer
    del layer
    gc.collect()
    assert alive() is None


def test_a_pair_that_forward_returns_is_two_results():
    def infer(x):
        return ((2,), "float32"), ((), "float32")

    op = _core.HostOp("pair", infer, lambda x: ([1, 2], 0))
    assert [made.to_numpy().tolist() for made in op(tensor([5]))] == [[1, 2], 0]


def test_a_garbage_collector_that_asks_handles():
    """Finalisers run wherever Python makes an object."""

    class Asks:
        def __init__(self):
            self.me = self

        def __del__(self):
            assert x.shape == (2, 3) and ADD(x, x).numel == 6

    x = tensor(np.ones((2, 3)))
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Asks()
            assert (x.shape, x.strides, x.numel) == ((2, 3), (3, 1), 6)
            ADD(x, x).to_numpy()
    finally:
        gc.set_threshold(*thresholds)


def test_other_threads_run_while_a_long_operation_does():
    """A fill has no inputs, and random generation no large ones; both take a while."""
    fill = _core.Op("fill", value=1.0, shape=(1 << 25,), dtype="float32")
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    for _ in range(5):
        fill()
    end = time.perf_counter()
    stop.set()
    thread.join()
    assert sum(start < tick < end for tick in ticks) >= 5


def test_host_operations_inside_host_operations_of_two_threads():
    inner = _core.HostOp("inner", lambda x: x, lambda x: ADD(tensor(x), tensor(x)).to_numpy())
    outer = _core.HostOp("outer", lambda x: x, lambda x: inner(tensor(x)).to_numpy() + 1)
    failures = []

    def work():
        try:
            for n in range(1, 40):
                assert outer(tensor(np.ones(n))).to_numpy().tolist() == [3] * n
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "a thread hangs"
    assert not failures


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_never_waits_for_a_lock():
    """Another thread holds them all the time: allocating, running, trimming."""
    x, stop = tensor(np.ones((300, 300))), threading.Event()

    def work():
        while not stop.is_set():
            ADD(x, x)
            CPU.trim()

    refused = {
        "seed": lambda: CPU.set_seed(1),
        "trim": CPU.trim,
        "state": lambda: _core.random_state(CPU, "step"),
        "account": lambda: x.set_account("states"),
        "lend": lambda: np.from_dlpack(x),
        "host": lambda: _core.HostOp("h", lambda x: x, lambda x: x)(x),
    }
    allowed = {
        "view": lambda: x.view_permute((1, 0)).view_slice([(0, 1, 1), (0, 1, 1)]).shape,
        "new": lambda: _core.Handle((2, 3), CPU, "float32").is_allocated,
        "memory": lambda: CPU.memory()["results"] > 0,
        "alias": lambda: x.alias().is_allocated,
    }
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for name, job in refused.items():
            answer = in_child(job)
            assert answer.startswith("DeviceError") and "spawn" in answer, (name, answer)
        for name, job in allowed.items():
            assert "Error" not in in_child(job), name
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)


SCRIPT = """
import os, sys, threading
import numpy as np
from singa_rs import _core
cpu = _core.cpu()
x = _core.from_numpy(np.ones((64, 64), np.float32), cpu)
y = _core.Op("matmul")(x, x)
lent = _core.from_dlpack(np.ones(5))
out = np.from_dlpack(y)
host = _core.HostOp("h", lambda x: x, lambda x: x)
host(x)
{}
"""


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(0)",
        "sys.modules['kept'] = (x, y, lent, out, host)",
        "threading.local().kept = (lent, x)",
        "cycle = [lent, x]; cycle.append(cycle); del lent",
        "import atexit; atexit.register(lambda: host(x).to_numpy())",
        # A thread is still in the middle of an operation when the interpreter ends.
        """
big = _core.from_numpy(np.ones((1500, 1500), np.float32), cpu)
def work():
    while True:
        _core.Op("matmul")(big, big)
threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)
""",
        # A forked child that ends as any script does, finalisers and all.
        """
pid = os.fork()
if pid == 0:
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
""",
    ],
    ids=["exit", "module", "thread-local", "cycle", "atexit", "daemon", "fork"],
)
def test_the_interpreter_ends_with_live_tensors(end):
    path = os.pathsep.join(sys.path)
    script = SCRIPT.format(end)
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=env, timeout=100, capture_output=True
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
