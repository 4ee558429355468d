"""The interpreter ends while daemon threads are anywhere in the engine."""

import subprocess
import sys
import time

import pytest

PROGRAM = """
import os, sys, tempfile, threading, time
import numpy as np
from singa_rs import autograd as ag, layer, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

kind = sys.argv[1]
X = np.zeros((64, 64), np.float32)
x = from_numpy(X)


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = layer.Linear(16), layer.Linear(4)
        self.optimizer = opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return self.b(ag.relu(self.a(x)))

    def train_one_batch(self, x):
        loss = ag.reduce_mean(self.forward(x)).reshape((1,))
        self.optimizer(loss)
        return loss


def trained(use_graph):
    model = Net()
    model.compile([x], use_graph=use_graph)
    return model


replayed, eager = trained(True), threading.local()
for _ in range(3):
    replayed(x)
folder = tempfile.mkdtemp()
ids = iter(range(1000))


def exchanged():
    np.from_dlpack(from_numpy(X))
    tensor.from_dlpack(X.copy()) + 1.0


def saved(path):
    replayed.save_states(path)
    replayed.load_states(path)


def train_one():
    if not hasattr(eager, "model"):
        eager.model = trained(False)
    eager.model(x)


def big():
    a = from_numpy(np.ones((1500, 1500), np.float32))
    return lambda: a @ a


def recorded():
    with x.device.record() as graph:
        y = x @ x
        for _ in range(50):
            y = y + x
    graph.run(3)


def make_host():
    from singa_rs import _core

    def forward(a):
        time.sleep(0.001)
        return a * 2

    op = _core.HostOp("twice", lambda m: (m.shape, m.dtype), forward)
    return lambda: op(x)


def sleeping():
    from singa_rs import _core

    def forward(a):
        time.sleep(3600)
        return a

    op = _core.HostOp("asleep", lambda m: (m.shape, m.dtype), forward)
    return lambda: op(x)


def long_run():
    with x.device.record() as graph:
        y = from_numpy(X)
        for _ in range(200):
            y = y @ x
    return lambda: graph.run(10**9)


work = {
    "from_numpy": lambda: from_numpy(X),
    "to_numpy": lambda: x.to_numpy(),
    "add": lambda: from_numpy(X) + 1.0,
    "replay": lambda: replayed(x),
    "eager": train_one,
    "record": recorded,
    "dlpack": exchanged,
    "item": lambda: ag.reduce_sum(x).item(),
    "host": make_host(),
    "asleep": sleeping(),
    "product": big(),
    "run": long_run() if kind == "run" else None,
    "states": None,
}[kind]


def loop():
    path = os.path.join(folder, f"{next(ids)}.npz")
    while True:
        saved(path) if kind == "states" else work()


for _ in range(2):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.05)
"""
KINDS = [
    "from_numpy", "to_numpy", "add", "replay", "eager", "record", "dlpack", "item", "host",
    "asleep", "product", "run", "states",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_interpreter_ends_well_and_soon(kind):
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert time.monotonic() - begun < 20
