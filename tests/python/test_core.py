"""The engine as only Python shows it: locks, forks, lent memory, the interpreter's end."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from singa_rs import _core

CPU = _core.cpu()
ADD = _core.Op("binary", f="add")
COPY = _core.Op("copy")
NEG = _core.Op("unary", f="neg")


def tensor(array, dtype=np.float32) -> _core.Handle:
    return _core.from_numpy(np.asarray(array, dtype), CPU)


# ---- lent memory ---------------------------------------------------------------------------------


def test_lent_memory_overlaps_itself():
    """Two imports of one array are two blocks on one memory."""
    array = np.arange(8, dtype=np.float32)
    x, y = _core.from_dlpack(array), _core.from_dlpack(array[::-1])
    assert not x.shares_block(y)
    ADD.into([x, y], [x])
    assert array.tolist() == [7] * 8


def test_memory_lent_and_lent_back_overlaps_itself():
    x = tensor(np.arange(6))
    back = _core.from_dlpack(np.from_dlpack(x)[::-1])
    assert not x.shares_block(back)
    COPY.into([back], [x])
    assert x.to_numpy().tolist() == [5, 4, 3, 2, 1, 0]
    x.copy_from_numpy(np.from_dlpack(x)[::-1])
    assert x.to_numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_lent_to_itself_is_an_alias():
    x = tensor([1, 2])
    y = _core.from_dlpack(x)
    assert y is not x and y.shares_block(x)
    version = y.version
    NEG.into([x], [x])
    assert y.version > version and y.to_numpy().tolist() == [-1, -2]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1],
        lambda a: a[::-2, ::3],
        lambda a: a.T,
        lambda a: a[2:2],
        lambda a: a[1, 2],
        lambda a: np.lib.stride_tricks.as_strided(a, (3, 6), (0, 8)),
    ],
    ids=["backwards", "stepped", "transposed", "empty", "scalar", "expanded"],
)
def test_strided_arrays_are_shared_both_ways(view):
    array = np.arange(24, dtype=np.float64).reshape(4, 6)
    lent = view(array)
    x = _core.from_dlpack(np.asarray(lent))
    np.testing.assert_array_equal(x.to_numpy(), lent)
    np.testing.assert_array_equal(np.from_dlpack(x), lent)
    np.testing.assert_array_equal(NEG(x).to_numpy(), -lent)
    array += 100
    np.testing.assert_array_equal(x.to_numpy(), lent)


def test_overlapping_windows_are_read_but_not_written():
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3, writeable=True)
    x = _core.from_dlpack(windows)
    np.testing.assert_array_equal(NEG(x).to_numpy(), -windows)
    with pytest.raises(ValueError, match="place of its own"):
        NEG.into([x], [x])


def test_truth_values_of_any_byte():
    """Another library may store a truth value as any byte but zero."""
    bits = np.array([0, 1, 2, 255], np.uint8).view(bool)
    logic = _core.Op("binary", f="and")
    for x in (_core.from_dlpack(bits), _core.from_numpy(bits, CPU)):
        assert logic(x, x).to_numpy().view(np.uint8).tolist() == [0, 1, 1, 1]
        assert _core.Op("cast", dtype="int32")(x).to_numpy().tolist() == [0, 1, 1, 1]
        assert x.view_slice([(2, 1, 1)]).item() is True


def test_arrays_that_cannot_be_lent():
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.raises(BufferError):
        _core.from_dlpack(array)
    for wrong in (np.ones(3, np.uint16), np.ones(3, np.complex64), np.array([None])):
        with pytest.raises((_core.DTypeError, BufferError)):
            _core.from_dlpack(wrong)
    capsule = tensor([1]).__dlpack__()

    class Once:
        def __dlpack__(self):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    _core.from_dlpack(Once())
    with pytest.raises(BufferError, match="used already"):
        _core.from_dlpack(Once())


class Producer:
    """Lends memory by the old protocol, and says anything of it."""

    class Managed(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("rank", ctypes.c_int32),
            ("dtype", ctypes.c_uint8 * 4),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    def __init__(self, shape, strides=None, rank=None, address=None, deleted=None):
        ints = lambda values: (ctypes.c_int64 * len(values))(*values)  # noqa: E731
        self.memory = np.arange(16, dtype=np.float32)
        self.shape, self.strides = ints(shape), strides and ints(strides)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: deleted and deleted())
        self.managed = self.Managed(
            data=self.memory.ctypes.data if address is None else address,
            device=(1, 0),
            rank=len(shape) if rank is None else rank,
            dtype=(2, 32, 1, 0),
            shape=self.shape,
            strides=self.strides,
            deleter=ctypes.cast(self.deleter, ctypes.c_void_p).value,
        )

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.mark.parametrize(
    "lie",
    [
        {"shape": [-1]},
        {"shape": [1 << 62, 4]},
        {"shape": [0, 1 << 62]},
        {"shape": [2, 2], "strides": [1 << 62, 1 << 62]},
        {"shape": [3], "strides": [-(1 << 63)]},
        {"shape": [2], "address": 3},
    ],
    ids=["negative", "overflow", "empty overflow", "far", "least", "unaligned"],
)
def test_lenders_that_make_no_sense(lie):
    with pytest.raises(ValueError, match="from_dlpack"):
        _core.from_dlpack(Producer(**lie))


def test_an_owner_is_let_go_of_when_nothing_is_locked():
    """The owner's deleter may run operations, and ask the very handle that lets go of it."""
    answers = []

    def deleted():
        answers.append(ADD(x, x).to_numpy().tolist())
        answers.append(x.shape)

    keeper = Producer([3], deleted=deleted)
    x = _core.from_dlpack(keeper)
    NEG.into([x], [x])
    x.rebind(tensor([1, 2]))
    assert answers == [[2, 4], (2,)]


def test_an_owner_is_let_go_of_by_a_running_operation():
    """A thread rebinds the only handle while an operation still reads the memory."""
    size, events = 1 << 22, []
    array = np.ones(size, np.float32)

    def deleted():
        events.append(ADD(small, small).item())

    small = tensor([1])
    keeper = Producer([size], address=array.ctypes.data, deleted=deleted)
    for _ in range(20):
        x = _core.from_dlpack(keeper)
        other = threading.Thread(target=lambda x=x: x.rebind(small))
        started = len(events)
        other.start()
        try:
            _core.Op("unary", f="exp")(x)
        finally:
            other.join(timeout=60)
        assert not other.is_alive() and len(events) == started + 1
    assert events == [2.0] * 20


def test_lent_memory_lives_as_long_as_anybody_holds_it():
    array = np.arange(1 << 16, dtype=np.float32)
    alive = weakref.ref(array)
    x = _core.from_dlpack(array)
    view = x.view_slice([(5, 3, 1)])
    del array, x
    gc.collect()
    assert alive() is not None and view.to_numpy().tolist() == [5, 6, 7]
    del view
    gc.collect()
    assert alive() is None
    x = tensor(np.arange(1 << 16))
    array = np.from_dlpack(x)[5:8]
    before = CPU.memory()["results"]
    del x
    gc.collect()
    assert array.tolist() == [5, 6, 7] and CPU.memory()["results"] == before
    del array
    gc.collect()
    assert CPU.memory()["results"] < before


# ---- cycles, threads, forks, the end -------------------------------------------------------------


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
    """A fill has no inputs, and random numbers none that are large; both take a while."""
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


def in_child(job) -> str:
    """What `job` answers in a forked child that then ends as scripts do; kills one that hangs."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = str(job())
        except BaseException as failure:
            answer = f"{type(failure).__name__}: {failure}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + 30
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the forked child hangs")
        time.sleep(0.01)
    with os.fdopen(reader) as answer:
        return answer.read()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


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


# ---- the ledger ----------------------------------------------------------------------------------


def test_the_ledger_balances():
    gc.collect()
    CPU.trim()
    before = CPU.memory()
    x = tensor(np.ones((100, 100)))
    x.set_account("parameters")
    y = _core.Op("matmul")(x, x.view_permute((1, 0)))
    assert CPU.memory()["parameters"] - before["parameters"] >= 40_000
    assert CPU.memory()["kernels"] > before["kernels"]
    CPU.reset_peak()
    y.set_account("states")
    x.set_account("results")
    after = CPU.memory()
    assert after["peak"] == after["allocated"]
    assert after["parameters"] == before["parameters"] and after["scratch"] == 0
    del x, y
    CPU.trim()
    after = CPU.memory()
    assert {k: after[k] for k in after if k != "peak"} == {
        k: before[k] for k in before if k != "peak"
    }
    assert after["reserved"] == after["allocated"]


def test_the_cpu_is_one_object():
    assert tensor([1]).device is CPU is _core.cpu()


def test_only_a_tensor_s_own_accounts():
    for name in ("pool", "kernels", "arena", "nothing"):
        with pytest.raises(ValueError, match="set_account"):
            tensor([1]).set_account(name)


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1 << 70])
def test_seeds_out_of_range(seed):
    with pytest.raises(ValueError, match="set_seed"):
        CPU.set_seed(seed)


@pytest.mark.parametrize("seed", [None, 1.0, "1", True])
def test_seeds_that_are_no_integers(seed):
    with pytest.raises(TypeError, match="set_seed"):
        CPU.set_seed(seed)


def test_seeds_of_numpy():
    CPU.set_seed(np.int64(3))
    assert _core.random_state(CPU, "step").to_numpy().tolist() == [6, 0]


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (1 << 70,), (0, 1 << 62), (1 << 62, 1 << 62)])
def test_extents_out_of_range(shape):
    x = tensor([1])
    for make in (lambda s: _core.Handle(s, CPU, "float32"), x.view_reshape, x.view_expand):
        with pytest.raises(ValueError, match=r"shape|tensor|expand|reshape"):
            make(shape)


@pytest.mark.parametrize("shape", [(1.5,), (None,), None, 3, "12", ("a",)])
def test_extents_that_are_no_integers(shape):
    with pytest.raises(TypeError, match="shape"):
        _core.Handle(shape, CPU, "float32")


@pytest.mark.parametrize(
    "name, attrs",
    [
        ("matmul", {"transpose": True}),
        ("softmax", {"axis": 0, "log": False, "nonsense": 1}),
        ("dropout", {"ratio": 0.5, "offest": 1}),
        ("binary_scalar", {"f": "add", "scalar": 1, "reversed": True}),
        ("unary", {"f": {"elu": {"alpha": 1.0, "beta": 2.0}}}),
    ],
)
def test_attributes_that_an_operation_does_not_have(name, attrs):
    with pytest.raises(ValueError, match="attribute|expected unit"):
        _core.Op(name, **attrs)


@pytest.mark.parametrize("offset", [0, 3])
def test_attributes_that_may_be_left_out(offset):
    attrs = _core.Op("dropout", ratio=0.5, offset=offset).attrs
    assert attrs == {"op": "dropout", "ratio": 0.5} | ({"offset": 3} if offset else {})
    with pytest.raises(ValueError, match="offset|integer|u64"):
        _core.Op("dropout", ratio=0.5, offset=-1)


def test_attributes_that_contain_themselves():
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        _core.Op("transpose", axes=endless)


def test_views_of_sizes_that_overflow():
    x = tensor(np.ones(5))
    with pytest.raises(ValueError):
        x.view_slice([(0, (1 << 63) - 1, -1)])
    with pytest.raises((ValueError, OverflowError)):
        x.view_slice([(0, (1 << 64) - 1, -1)])
    assert x.view_slice([(4, 1, (1 << 63) - 1)]).to_numpy().tolist() == [1]
    with pytest.raises(_core.ShapeError):
        tensor([[1]]).view_expand((1 << 31, 1 << 31))
    row, column = _core.Handle((1 << 40, 1), CPU), _core.Handle((1, 1 << 40), CPU)
    with pytest.raises(_core.ShapeError, match="add"):
        ADD(row, column)


def test_true_is_no_dtype():
    with pytest.raises(_core.DTypeError):
        _core.dtype(True)
    assert _core.float16 != True  # noqa: E712
