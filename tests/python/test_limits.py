"""Memory that runs out, blocks over 4 GiB, threads, forked children."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
from forking import in_child, needs_fork
from harness import DEVICE, to_handle
from singa_rs import _core
from singa_rs.tensor import Tensor

ADD = _core.Op("binary", f="add")
GIB = 1 << 30


def available() -> int:
    """Bytes of memory that the machine has left."""
    try:
        with open("/proc/meminfo") as info:
            line = next(line for line in info if line.startswith("MemAvailable"))
        return int(line.split()[1]) << 10
    except (OSError, StopIteration):
        return 0


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 << 50, 1 << 59], ids=["petabyte", "largest"])
def test_memory_beyond_the_machine(size):
    gc.collect()
    huge = _core.Handle((size,), DEVICE, "uint8")  # no memory yet: this is allowed
    before = DEVICE.memory()["allocated"]
    with pytest.raises(_core.OutOfMemoryError, match=str(size)):
        huge.view_slice([(0, 1, 1)]).to_numpy()
    with pytest.raises(MemoryError):
        _core.Op("fill", value=1, shape=(size,), dtype="uint8")()
    assert DEVICE.memory()["allocated"] <= before
    assert ADD(to_handle(np.ones(2), "float32"), to_handle(np.ones(2), "float32")).item is not None


@pytest.mark.skipif(available() == 0, reason="the machine does not tell its free memory")
def test_memory_just_above_what_is_free():
    """Refused before it is allocated: touching it would get the process killed.

    The margin covers memory that other processes may release meanwhile: with a smaller one, a block
    that fits after all would take all of the machine's memory from them.
    """
    size = available() + 2 * GIB
    with pytest.raises(_core.OutOfMemoryError) as caught:
        _core.Op("fill", value=1, shape=(size,), dtype="uint8")()
    for word in ("fill", "requested", "available"):
        assert word in str(caught.value)


EXHAUST = """
import resource
import numpy as np
from singa_rs import _core

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
held, refused = [], False
try:
    while True:
        held.append(_core.Handle((100 << 20,), _core.cpu(), "uint8"))
        held[-1].view_slice([(0, 1, 1)]).copy_from_numpy(np.ones(1, np.uint8))
except _core.OutOfMemoryError as error:
    refused = True
    largest, text = error.largest, str(error)
    assert error.requested == 100 << 20 and error.bound == len(held[1:]) * error.requested
    assert error.in_use >= error.bound and 0 < error.fragmentation < 0.125
    assert [one[0] for one in largest] == ["results"] * min(len(held) - 1, 10)
    assert all(size >= 100 << 20 and line == "<string>:12" for _, size, line in largest)
    assert text.count("results, made at <string>:12") == len(largest)
assert refused and 3 < len(held) < 12
held.clear()
again = _core.Handle((100 << 20,), _core.cpu(), "uint8")
again.view_slice([(0, 1, 1)]).copy_from_numpy(np.ones(1, np.uint8))
assert _core.cpu().trim() > 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limit of the address space")
def test_memory_that_runs_out_bit_by_bit():
    """A process with its own limit allocates blocks until memory runs out, and carries on."""
    command = [sys.executable, "-c", EXHAUST]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_memory_is_accounted_for():
    DEVICE.trim()
    before = DEVICE.memory()
    x = to_handle(np.ones(1 << 20), "float32")
    during = DEVICE.memory()
    assert during["allocated"] - before["allocated"] == x.nbytes
    del x
    after = DEVICE.memory()
    assert after["allocated"] == before["allocated"]
    assert after["pool"] - before["pool"] >= 4 << 20
    assert DEVICE.trim() >= 4 << 20 and DEVICE.memory()["pool"] == 0


def add_twice(x, w):
    """A recording with a sum in the arena: it adds twice `x` to `w`."""
    with DEVICE.record() as graph:
        double = x + x
        w += double
        del double
    return graph


def test_the_arena_is_trimmed_and_allocated_again():
    x, w = (Tensor((1 << 18,)).set_value(value) for value in (1, 0))
    graph = add_twice(x, w)
    graph.run()
    DEVICE.trim()
    assert DEVICE.memory()["arena"] == 0
    before = DEVICE.memory()["allocated"]
    graph.run()
    arena = DEVICE.memory()["arena"]
    assert arena >= 1 << 20 and DEVICE.memory()["allocated"] == before + arena
    assert (w.to_numpy() == 4).all()
    assert DEVICE.trim() >= arena and DEVICE.memory()["allocated"] == before
    del graph
    assert DEVICE.memory()["arena"] == 0


def test_trimming_while_another_thread_runs_graphs():
    x, w = (Tensor((1000,)).set_value(value) for value in (1, 0))
    graph, done = add_twice(x, w), threading.Event()
    thread = threading.Thread(target=lambda: (graph.run(2000), done.set()))
    thread.start()
    while not done.is_set():
        DEVICE.trim()
    thread.join()
    assert (w.to_numpy() == 4000).all()


REENTER = """
import re
import resource
from singa_rs import _core, device
from singa_rs.tensor import Tensor

cpu = device.get_default_device()
x, w = (Tensor((8 << 20,)).set_value(value) for value in (1, 0))
with cpu.record() as graph:
    double = x + x
    w += double
    del double
graph.run()
assert cpu.trim() >= 32 << 20
data = int(re.search(r"VmData:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) << 10
_, hard = resource.getrlimit(resource.RLIMIT_DATA)
resource.setrlimit(resource.RLIMIT_DATA, (data + (16 << 20), hard))
try:
    graph.run()
    raise AssertionError("not refused")
except _core.OutOfMemoryError as error:
    assert "arena" in str(error)
    assert error.bound == error.requested == 32 << 20 and error.fragmentation == 0
    what, size, line = error.largest[0]
    assert what.startswith("add float32 (") and size == 32 << 20 and line == "<string>:10"
    assert {"results"} == {what for what, *_ in error.largest[1:]}
resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
assert cpu.memory()["arena"] == 0 and (w.to_numpy() == 2).all()
graph.run()
assert cpu.memory()["arena"] >= 32 << 20 and (w.to_numpy() == 4).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limit of private memory")
def test_a_trimmed_arena_may_be_refused():
    """The refusal comes before anything is written; with more memory the graph runs again."""
    command = [sys.executable, "-c", REENTER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(600)
def test_a_block_over_four_gibibytes():
    if available() < 8 * GIB:
        pytest.skip(f"needs 8 GiB of free memory, there are {available() / GIB:.1f}")
    size = 4 * GIB + GIB // 4
    x = _core.Handle((size,), DEVICE, "uint8")
    x.view_slice([(size - 3, 3, 1)]).copy_from_numpy(np.array([1, 2, 3], np.uint8))
    x.view_slice([(0, 1, 1)]).copy_from_numpy(np.array([7], np.uint8))
    assert x.view_slice([(size - 1, 4, -1)]).to_numpy().tolist() == [3, 2, 1, 0]
    assert x.view_slice([((1 << 32) - 2, 4, 1)]).to_numpy().tolist() == [0, 0, 0, 0]
    total = _core.Op("reduce", f="sum", axes=(), keepdims=False)
    assert total(x).item() == 13
    highest = _core.Op("reduce", f="argmax", axes=(), keepdims=False)
    assert highest(x.view_slice([(1, size - 1, 1)])).item() == size - 2
    _core.Op("binary_scalar", f="add", scalar=1, reverse=False).into([x], [x])
    assert x.view_slice([(size - 2, 2, 1)]).to_numpy().tolist() == [3, 4]
    assert x.view_slice([((1 << 32) - 1, 2, 1)]).to_numpy().tolist() == [1, 1]
    del x
    DEVICE.trim()


def test_a_large_block_after_small_ones():
    """Free memory is queried again if the last reading does not suffice."""
    small = to_handle(np.ones(1000), "float32")
    large = _core.Handle((300 << 20,), DEVICE, "uint8")
    assert large.view_slice([(0, 1, 1)]).to_numpy()[0] == 0 and small.numel == 1000


# ---- threads -------------------------------------------------------------------------------------


def hammer(seed, failures):
    """Operations of many kinds and sizes, each result checked."""
    rng = np.random.default_rng(seed)
    try:
        for _ in range(60):
            n, m = rng.integers(1, 200, 2)
            a, b = rng.normal(size=(n, m)), rng.normal(size=(m, n))
            x, y = to_handle(a, "float32"), to_handle(b, "float32")
            product = _core.Op("matmul")(x, y)
            np.testing.assert_allclose(product.to_numpy(), a @ b, rtol=1e-3, atol=1e-3)
            sums = _core.Op("reduce", f="sum", axes=(0,), keepdims=False)(x)
            np.testing.assert_allclose(sums.to_numpy(), a.sum(0), rtol=1e-3, atol=1e-4)
            tanh = _core.Op("unary", f="tanh")(x.view_permute((1, 0)))
            np.testing.assert_allclose(tanh.to_numpy(), np.tanh(a.T), rtol=1e-4, atol=1e-5)
            ADD.into([x, x], [x])
            np.testing.assert_allclose(x.to_numpy(), 2 * a.astype(np.float32))
    except BaseException as failure:
        failures.append(failure)


def test_threads_at_once():
    failures: list[BaseException] = []
    threads = [threading.Thread(target=hammer, args=(seed, failures)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread hangs"
    assert not failures, failures[0]


def test_threads_update_one_tensor_in_turn():
    """Each operation is atomic: no addition is lost."""
    total = to_handle(np.zeros(100_000), "float32")
    one = to_handle(np.ones(100_000), "float32")

    def add():
        for _ in range(50):
            ADD.into([total, one], [total])

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert (total.to_numpy() == 200).all()


# ---- fork ----------------------------------------------------------------------------------------


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_to_spawn():
    x = to_handle(np.ones((300, 300)), "float32")
    matmul = _core.Op("matmul")
    matmul(x, x)
    jobs = {
        "operation": lambda: matmul(x, x),
        "small operation": lambda: ADD(x, x),
        "read": lambda: x.to_numpy(),
        "number": lambda: x.view_slice([(0, 1, 1), (0, 1, 1)]).item(),
        "write": lambda: x.copy_from_numpy(np.zeros((300, 300), np.float32)),
        "new": lambda: _core.from_numpy(np.ones((300, 300)), DEVICE),
    }
    for name, job in jobs.items():
        answer = in_child(job)
        assert answer.startswith("DeviceError"), (name, answer)
        assert "spawn" in answer
    assert matmul(x, x).to_numpy()[0, 0] == 300


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_may_exit_and_let_go():
    """Most forked children exit without using the engine again."""
    x = to_handle(np.ones((300, 300)), "float32")
    _core.Op("matmul")(x, x)

    def leave():
        nonlocal x
        del x
        return "left"

    assert in_child(leave) == "left"


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_works():
    """The other thread's locks stay locked in the child: it must not wait for them."""
    matmul, stop = _core.Op("matmul"), threading.Event()
    x = to_handle(np.ones((400, 400)), "float32")

    def work():
        while not stop.is_set():
            matmul(x, x)

    def use_and_let_go():
        nonlocal y
        try:
            matmul(y, y)
        finally:
            del y

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            y = to_handle(np.ones((400, 400)), "float32")
            answer = in_child(use_and_let_go)
            assert answer.startswith("DeviceError: matmul"), answer
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
