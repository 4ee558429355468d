"""The number of threads never changes a result, whatever OpenMP's settings and who sets them."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from recorded import B, Net, function, inputs
from singa_rs import autograd, device, tensor
from singa_rs.tensor import Tensor, from_numpy

CPU = device.get_default_device()

#: Runs every kind of kernel that shares work among threads, again and again while OpenMP's settings
#: change; prints a digest of the bits each time.
PROGRAM = """
import ctypes, hashlib, sys, threading
import numpy as np
from singa_rs import autograd as ag, device
from singa_rs.tensor import from_numpy

device.get_default_device().set_num_threads(2)
g = np.random.default_rng(0)
def draw(*shape): return from_numpy(g.standard_normal(shape).astype(np.float32))
a, b, x, w = draw(256, 1000), draw(1000, 1000), draw(8, 16, 28, 28), draw(32, 16, 3, 3)
x.requires_grad = w.requires_grad = x.stores_grad = w.stores_grad = True
near = a.to_numpy() @ b.to_numpy()

def digest():
    found = hashlib.sha1()
    product = (a @ b).to_numpy()
    assert np.allclose(product, near, atol=1e-2)
    found.update(product.tobytes())
    found.update((a.transpose() @ a).to_numpy().tobytes())
    found.update(ag.softmax(a * 2 + 1).sum(0).to_numpy().tobytes())
    ag.training = True
    y = ag.conv2d(ag.ConvHandle(1, padding=1), x, w)
    for _, grad in ag.backward(ag.reduce_sum(y * y).reshape((1,))):
        found.update(grad.to_numpy().tobytes())
    found.update(y.to_numpy().tobytes())
    return found.hexdigest()

def on_a_thread():
    made = []
    thread = threading.Thread(target=lambda: made.append(digest()))
    thread.start()
    thread.join()
    return made[0]

{body}
"""
PLAIN = "print(digest())"
CHANGING = """
omp = ctypes.CDLL("libgomp.so.1")
found = {digest(), on_a_thread()}
for setting in ["dynamic", "max_active_levels", "num_threads"]:
    get = getattr(omp, "omp_get_" + setting.replace("num", "max"))
    set = getattr(omp, "omp_set_" + setting)
    for value in [0, 1, 3]:
        if value or setting != "num_threads":
            before = get()
            set(value)
            now = get()
            found.add(digest())
            assert get() == now, "a setting of others was not put back"
            set(before)
    found.add(on_a_thread())

# Within a region of somebody else's, on each of its threads.
body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: found.add(digest()))
omp.GOMP_parallel(body, None, 2, 0)
assert len(found) == 1, found
print(*found)
"""


def run(body=PLAIN, **environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{body}", body)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plain():
    return run()


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs GCC's OpenMP library")


@linux
@pytest.mark.parametrize(
    "environment",
    [
        {"OMP_DYNAMIC": "true"},
        {"OMP_MAX_ACTIVE_LEVELS": "0", "OMP_NUM_THREADS": "1"},
        {"OMP_NESTED": "true", "OMP_PROC_BIND": "true"},
    ],
    ids=str,
)
def test_openmp_environment_variables_change_no_bit(environment, plain):
    assert run(**environment) == plain


@linux
def test_openmp_settings_of_another_library_change_no_bit(plain):
    assert run(CHANGING) == plain


@linux
def test_a_limit_of_threads_is_kept_and_results_stay_right():
    text = "print(device.get_default_device().num_threads); digest(); print(omp_max())"
    body = "omp_max = lambda: ctypes.CDLL('libgomp.so.1').omp_get_thread_limit()\n" + text
    assert run(body, OMP_THREAD_LIMIT="1").split() == ["2", "1"]


SIGNALS = """
import signal, time
a, b, heard = draw(96, 8192), draw(8192, 96), []
want = (a @ b).to_numpy()
signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    assert np.array_equal((a @ b).to_numpy(), want)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(heard) > 50)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
@pytest.mark.parametrize("environment", [{}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}], ids=str)
def test_signals_leave_products_and_the_heap_alone(environment):
    """oneDNN's products for AVX2 have their stack in a buffer of the heap."""
    assert run(SIGNALS, **environment) == "True\n"


@linux
def test_threads_that_cannot_be_started_are_an_error():
    body = """
import resource
digest()
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (48 << 20), resource.RLIM_INFINITY))
device.get_default_device().set_num_threads(64)
try:
    digest()
except (MemoryError, RuntimeError) as error:
    assert isinstance(error, MemoryError) or "cannot be started" in str(error), error
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    device.get_default_device().set_num_threads(2)
    print("refused", digest())
"""
    assert run(body).split() == ["refused", *run().split()]


# ---- another number of threads -------------------------------------------------------------------


@pytest.fixture
def threads():
    before = CPU.num_threads
    yield CPU.set_num_threads
    CPU.set_num_threads(before)


def wide():
    """Factors whose product is shared by threads."""
    g = np.random.default_rng(0)
    return [from_numpy(g.standard_normal(s).astype(np.float32)) for s in ((24, 3072), (3072, 64))]


def test_a_model_is_recorded_again_for_another_number_of_threads(threads):
    threads(1)
    model = Net()
    model.compile(inputs())
    x, y = map(from_numpy, B)
    for _ in range(4):
        model(x, y)
    recordings = function(model).history.recordings
    threads(1)
    model(x, y)
    assert function(model).history.recordings == recordings, "nothing has changed"
    threads(2)
    for _ in range(4):
        model(x, y)
    assert function(model).history.recordings == recordings + 2
    assert "key: 1 thread" in model.explain() and "key: 2 threads" in model.explain()
    threads(1)
    model(x, y)
    assert function(model).history.recordings == recordings + 2, "the first graph is still there"


def test_replay_has_the_bits_of_eager_execution_on_as_many_threads(threads):
    a, b = wide()

    class Product(Net):
        def forward(self, x):
            return x @ b

    model = Product()
    model.eval()
    model.graph(True)
    for count in (1, 2, 3, 1, 2):
        threads(count)
        for _ in range(3):
            assert model(a).to_numpy().tobytes() == (a @ b).to_numpy().tobytes()


def test_what_was_recorded_by_hand_follows_the_number_of_threads(threads):
    a, b = wide()
    threads(1)
    with CPU.record() as graph:
        product = a @ b
        total = autograd.reduce_sum(product)
    for count in (1, 2, 4, 1):
        threads(count)
        graph.run(2)
        want = a @ b
        assert product.to_numpy().tobytes() == want.to_numpy().tobytes()
        assert total.to_numpy().tobytes() == autograd.reduce_sum(want).to_numpy().tobytes()
        assert graph.nodes == graph.graph.nodes


def test_a_recording_continues_with_another_number_of_threads(threads):
    total = Tensor((4,)).set_value(0)
    threads(1)
    with CPU.record() as graph:
        total += 1
    graph.run()
    threads(2)
    graph.run()
    with graph:
        total += 10
    threads(3)
    graph.run()
    assert (total.to_numpy() == 13).all()


def test_a_refused_number_of_threads_changes_nothing(threads):
    count = tensor.Tensor((1,)).device.num_threads
    with pytest.raises(ValueError, match="set_num_threads"):
        threads(0)
    assert CPU.num_threads == count
