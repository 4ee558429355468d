"""A process whose limits leave it little memory: failed allocations are exceptions everywhere."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, threading
import numpy as np
from singa_rs import _core, autograd as ag, device, layer, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

kind, limit = sys.argv[1], getattr(resource, sys.argv[2])
cpu, x, keep = device.get_default_device(), tensor.ones((16,)), []
(tensor.ones((300, 200)) @ tensor.ones((200, 100))).to_numpy()
statm = open("/proc/self/statm").read().split()
used = int(statm[0 if limit == resource.RLIMIT_AS else 5]) * resource.getpagesize()
resource.setrlimit(limit, (used + (96 << 20),) * 2)


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.a, self.optimizer = layer.Linear(64), opt.SGD(0.1)

    def forward(self, x):
        return self.a(x)

    def train_one_batch(self, x):
        loss = ag.reduce_mean(self.a(x)).reshape((1,))
        self.optimizer(loss)
        return loss


def sizes():
    for n in range(1, 1 << 30):
        keep.append(tensor.ones((n,)) * 2.0)


def small():
    while True:
        keep.append(tensor.ones((int(sys.argv[3]),)))


def untouched():
    while True:
        keep.append(Tensor((16,)))


def views():
    while True:
        keep.append(x.reshape((4, 4)))


def arrays():
    while True:
        keep.append(from_numpy(np.ones((64, 64), np.float32)))


def tape():
    ag.training = True
    y = w = tensor.ones((4, 4))
    w.requires_grad = w.stores_grad = True
    while True:
        y = ag.mul(y, w)
        keep.append(y)


def recording():
    with cpu.record():
        y = x
        while True:
            y = y + x


def graphs():
    for n in (500, 1000, 2000, 4000, 8000, 16000, 32000, 64000):
        with cpu.record() as graph:
            y = x
            for i in range(n):
                y = y * float(i)
        keep.append(graph)
        graph.run()
        keep.append(graph.to_json())


def models():
    i = 0
    while True:
        i += 1
        model = Net()
        model.compile([tensor.ones((4, 8 + i))])
        keep.append((model, [model(tensor.ones((4, 8 + i))) for _ in range(3)]))


def products():
    for n in range(100, 100000, 7):
        keep.append(tensor.ones((n, n)) @ tensor.ones((n, n)))


def hosts():
    op = _core.HostOp("twice", lambda m: (m.shape, m.dtype), lambda a: a * 2)
    for n in range(10, 40):
        op(tensor.ones((1 << n,)))


def threads():
    a, refused, stop = tensor.ones((300, 300)), [], threading.Event()
    ready = threading.Semaphore(0)

    def work():
        try:
            (a @ a).to_numpy()
        except MemoryError as error:
            refused.append(error)
        ready.release()
        stop.wait()

    try:
        while not refused:
            thread = threading.Thread(target=work)
            keep.append(thread)
            thread.start()
            ready.acquire()  # another one at the same time may take what this one has made sure of
        raise refused[0]
    except RuntimeError as error:  # Python's own, where it cannot start one
        raise MemoryError from error
    finally:
        stop.set()


try:
    globals()[kind]()
except MemoryError as error:
    # Python itself needs some to go on, also for a loop.
    FREE
    for _ in range(len(keep) // 50):
        keep.pop()
    print("refused", type(error).__name__)
for i in range(10):
    try:
        model = Net()
        model.compile([tensor.ones((4, 8 + i))])
        [model(tensor.ones((4, 8 + i))) for _ in range(3)]
        (tensor.ones((300 + i, 200)) @ tensor.ones((200, 100 + i))).to_numpy()
    except MemoryError:
        pass
print("alive")
""".replace("FREE", "if keep: keep.pop()\n    " * 16)
CASES = [
    *[("small", "RLIMIT_AS", str(size)) for size in (1, 64, 4000, 100_000)],
    ("small", "RLIMIT_DATA", "16"),
    ("sizes", "RLIMIT_AS"),
    ("untouched", "RLIMIT_AS"),
    ("views", "RLIMIT_AS"),
    ("arrays", "RLIMIT_AS"),
    ("tape", "RLIMIT_AS"),
    ("recording", "RLIMIT_AS"),
    ("graphs", "RLIMIT_AS"),
    ("graphs", "RLIMIT_DATA"),
    ("models", "RLIMIT_AS"),
    ("products", "RLIMIT_AS"),
    ("hosts", "RLIMIT_AS"),
    ("threads", "RLIMIT_AS"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limits of a process")
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_refused_memory_is_an_exception(case):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *case], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == "alive" and "refused" in done.stdout, done.stdout
