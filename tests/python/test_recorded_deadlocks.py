"""No deadlocks: user code within a step that calls models, on the step's thread or another."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from recorded import CPU
from singa_rs import autograd, device, layer, module, opt
from singa_rs.errors import GraphError
from singa_rs.tensor import from_dlpack, from_numpy

X = np.ones((4, 6), np.float32)


class Twice(autograd.Operator):
    """Doubles on the host, after calling `act` once."""

    host = True
    act = None

    def infer(self, meta):
        return [(meta.shape, meta.dtype)]

    def forward(self, a):
        act, Twice.act = Twice.act, None
        if act is not None:
            act()
        return a * 2

    def backward(self, dy):
        return dy * 2


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(5), opt.SGD(0.1)

    def forward(self, x):
        return Twice()(self.fc(x))[0]

    def train_one_batch(self, x):
        out = self.forward(x)
        loss = autograd.reduce_mean(out * out).reshape((1,))
        self.optimizer(loss)
        return out, loss


@pytest.fixture(autouse=True)
def limit():
    """A time limit on each test."""

    def late(*_):
        raise TimeoutError("still waiting")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(40)
    yield
    signal.alarm(0)
    Twice.act = None


def compiled(cls=Net, calls=4):
    model = cls()
    model.compile([from_numpy(X)], use_graph=True)
    for _ in range(calls):
        model(from_numpy(X))
    return model


def evaluate(model):
    model.eval()
    try:
        return model(from_numpy(X)).to_numpy()
    finally:
        model.train()


OPERATIONS = {
    "the step itself": lambda m, _: m(from_numpy(X)),
    "forward": lambda m, _: m.forward(from_numpy(X)),
    "another model": lambda _, other: other(from_numpy(X)),
    "evaluation": lambda m, _: evaluate(m),
    "a parameter": lambda m, _: m.fc.W.to_numpy(),
    "plan": lambda m, _: m.plan(from_numpy(X)),
    "summary": lambda m, _: [graph.summary() for graph in m.graphs],
    "json": lambda m, _: [graph.to_json() for graph in m.graphs],
    "explain": lambda m, _: m.explain(),
    "profile": lambda m, _: [graph.profile(1) for graph in m.graphs],
    "memory": lambda *_: device.get_default_device().memory(),
    "trim": lambda *_: CPU.trim(),
    "seed": lambda *_: CPU.set_seed(3),
    "compile": lambda m, _: m.compile([from_numpy(X)]),
    "states": lambda m, _: m.set_states(m.get_states()),
    "a tap": lambda m, _: m.tap("fc").remove(),
}


def run(act):
    """The result of a call that may be refused, or its GraphError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return act()
        except GraphError as error:
            return error


@pytest.mark.parametrize("calls", [0, 1, 4], ids=["recorded", "recorded again", "replayed"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_host_operation_that_uses_its_own_model(operation, calls):
    model, other = compiled(calls=calls), compiled()
    Twice.act = lambda: OPERATIONS[operation](model, other)
    run(lambda: model(from_numpy(X)))
    for _ in range(3):
        model(from_numpy(X))


def test_a_refusal_says_what_to_do():
    model = compiled()
    Twice.act = lambda: model(from_numpy(X))
    with pytest.raises(GraphError, match="use_graph=False"):
        model(from_numpy(X))


def apart(act):
    """A function that calls `act` on another thread and joins it."""

    def call():
        answers = []
        thread = threading.Thread(target=lambda: answers.append(run(act)))
        thread.start()
        thread.join()
        return answers

    return call


def in_a_pool(act):
    def call():
        with ThreadPoolExecutor(1) as pool:
            return [pool.submit(run, act).result()]

    return call


@pytest.mark.parametrize("calls", [0, 4], ids=["recorded", "replayed"])
@pytest.mark.parametrize("start", [apart, in_a_pool])
@pytest.mark.parametrize("own", [True, False])
def test_a_host_operation_that_waits_for_a_thread_that_calls_a_model(own, start, calls):
    model, other = compiled(calls=calls), compiled()
    answers = []
    called = start(lambda: (model if own else other)(from_numpy(X)))
    Twice.act = lambda: answers.extend(called())
    model(from_numpy(X))
    (answer,) = answers
    assert isinstance(answer, GraphError) and "use_graph=False" in str(answer)
    for _ in range(3):
        model(from_numpy(X)), other(from_numpy(X))


class Starts(Net):
    """Calls `act` while it is recorded."""

    act = None

    def train_one_batch(self, x):
        act, Starts.act = Starts.act, None
        if act is not None:
            act()
        return super().train_one_batch(x)


@pytest.mark.parametrize("start", [apart, in_a_pool])
def test_a_recorded_step_that_waits_for_a_thread_that_calls_it(start):
    model = compiled(Starts, calls=0)
    answers = []
    called = start(lambda: model(from_numpy(X)))
    Starts.act = lambda: answers.extend(called())
    model(from_numpy(X))
    (answer,) = answers
    assert isinstance(answer, GraphError) and "use_graph=False" in str(answer)
    for _ in range(3):
        model(from_numpy(X))
    assert model.graphs


def test_a_recorded_step_that_waits_for_a_thread_that_calls_another_model():
    model, other = compiled(Starts, calls=0), compiled()
    answers = []
    called = apart(lambda: other(from_numpy(X)))
    Starts.act = lambda: answers.extend(called())
    model(from_numpy(X))
    assert not isinstance(answers[0], GraphError)


def test_two_models_whose_host_operations_wait_for_threads_that_call_the_other():
    first, second = compiled(), compiled()
    Twice.act = apart(lambda: second(from_numpy(X)))
    threads = [
        threading.Thread(target=run, args=(lambda m=m: m(from_numpy(X)),)) for m in (first, second)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    first(from_numpy(X)), second(from_numpy(X))


def test_initialize_that_waits_for_a_thread_that_initialises():
    class Slow(layer.Layer):
        def initialize(self, x):
            self.answers = apart(lambda: layer.Linear(2)(from_numpy(X)))()

        def forward(self, x):
            return x * 1

    slow = Slow()
    slow(from_numpy(X))
    assert isinstance(slow.answers[0], GraphError)
    layer.Linear(2)(from_numpy(X))


def test_a_host_operation_in_initialize_that_computes():
    class Host(autograd.Operator):
        host = True

        def infer(self, meta):
            return [(meta.shape, meta.dtype)]

        def forward(self, a):
            return (from_numpy(a) * 3).to_numpy()

    class Layer(layer.Layer):
        def initialize(self, x):
            self.scale = Host()(from_numpy(np.ones((6,), np.float32)))[0]

        def forward(self, x):
            return x * self.scale

    class Model(module.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            return self.layer(x)

    model = Model()
    model.compile([from_numpy(X)], is_train=False)
    assert np.array_equal(model(from_numpy(X)).to_numpy(), 3 * X)


def test_a_slow_host_operation_does_not_time_out_others_early():
    model, other = compiled(), compiled()
    Twice.act = lambda: time.sleep(0.5)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(run(lambda: other(from_numpy(X)))))
    slow = threading.Thread(target=lambda: model(from_numpy(X)))
    slow.start()
    time.sleep(0.1)
    thread.start()
    thread.join(), slow.join()
    assert not isinstance(answers[0], GraphError)


# ---- code that Python runs at arbitrary points ---------------------------------------------------


def test_a_signal_handler_that_calls_the_model():
    """At any moment of a recording, a replay or an eager call."""
    model, answers = compiled(calls=0), []
    before = signal.signal(
        signal.SIGVTALRM, lambda *_: answers.append(run(lambda: model(from_numpy(X))))
    )
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.01, 0.01)
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            run(lambda: model(from_numpy(X)))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert answers
    for _ in range(3):
        model(from_numpy(X))


class Last:
    """Calls `act` when it is finalised."""

    def __init__(self, act):
        self.act = act

    def __del__(self):
        self.act()


@pytest.mark.parametrize("way", ["finaliser", "weak reference", "lent memory"])
@pytest.mark.parametrize("calls", [0, 1, 4])
def test_code_that_runs_when_an_object_is_collected(way, calls):
    model, answers = compiled(Starts, calls=calls), []
    act = lambda: answers.append(run(lambda: model(from_numpy(X))))  # noqa: E731

    class Array(np.ndarray):
        def __del__(self):
            act()

    def lets_go():
        if way == "finaliser":
            Last(act)
        elif way == "weak reference":
            one = Last(lambda: None)
            reference = weakref.ref(one, lambda _: act())
            del one
            assert reference() is None
        else:
            lent = from_dlpack(np.ones((4, 6), np.float32).view(Array))
            made = lent * 1
            del lent, made

    Starts.act = Twice.act = lets_go
    run(lambda: model(from_numpy(X)))
    lets_go()
    assert answers
    for _ in range(3):
        model(from_numpy(X))


def test_a_process_ends_while_a_thread_waits(tmp_path):
    program = tmp_path / "waits.py"
    program.write_text(
        "import threading\n"
        "import test_recorded_deadlocks as t\n"
        "model, other = t.compiled(), t.compiled()\n"
        "def act():\n"
        "    threading.Thread(target=lambda: t.run(lambda: other(t.from_numpy(t.X)))).start()\n"
        "t.Twice.act = act\n"
        "model(t.from_numpy(t.X))\n"
        "print('ended')\n"
    )
    command = [sys.executable, str(program)]
    path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout == "ended\n" and done.returncode == 0, done.stderr
