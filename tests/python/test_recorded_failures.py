"""Recorded steps that fail: they change nothing, and the next one is right."""

import _thread
import os
import signal
import threading

import numpy as np
import pytest
from recorded import CPU, B, Counting, Net, batch, function, pair, replays, same, same_states, step
from singa_rs import autograd
from singa_rs.errors import GraphError
from singa_rs.record.entry import uninterrupted


class Failing(Counting):
    """Raises after its forward pass if `FAIL` says so."""

    def __init__(self, fails=()):
        super().__init__()
        self.h, self.fails, self.calls = None, fails, []

    def train_one_batch(self, x, y):
        out = self.forward(x)
        self.h = out
        self.n += 1
        if FAIL.pop("now", None):
            raise KeyError("on purpose")
        loss = self.loss(out, y)
        self.optimizer(loss)
        return loss


FAIL = {}


@pytest.mark.parametrize("when", [0, 1, 9])
def test_exception_in_a_call(when):
    """The failing call changes nothing; those after it do what they would have done."""
    recorded, eager = pair(Failing)
    for i in range(12):
        if i == when and i < 2:
            FAIL["now"] = True
            with pytest.raises(KeyError, match="on purpose"):
                recorded(*batch())
            assert recorded.n == eager.n == i and not autograd._mode.nodes
        if i == when and i >= 2:
            with pytest.raises(ValueError, match=r"index|class|label|range"):
                recorded(batch()[0], np.full(4, 77, np.int32))
            same_states(recorded, eager)
            assert recorded.n == eager.n
        step(recorded, eager, *batch())
        same(recorded.h, eager.h)
    assert replays(recorded) == 10


def test_exception_in_the_first_call_leaves_layers_as_they_were():
    model = Failing()
    model.train()
    model.graph(True)
    FAIL["now"] = True
    with pytest.raises(KeyError):
        model(*batch(4, 9))
    assert not model.fc1._initialized and not model.get_params() and model.h is None
    x, y = batch(4, 6)
    CPU.set_seed(4)
    out = model(x, y)
    CPU.set_seed(4)
    eager = Failing()
    eager.train()
    same(out, eager(x, y))
    same_states(model, eager)


def test_host_failure_names_the_written_parameters():
    class Picky(autograd.Operator):
        host = True

        def infer(self, x):
            return x

        def forward(self, x):
            if FAIL.pop("host", None):
                raise ZeroDivisionError("picky")
            return x

    class Hosted(Net):
        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            return Picky()(out)[0], loss

    recorded, eager = pair(Hosted)
    for i in range(6):
        if i == 4:
            FAIL["host"] = True
            with pytest.raises(ZeroDivisionError, match=r"picky.*already written.*fc1\.W"):
                recorded(*B)
            eager(*B)
        step(recorded, eager, *batch())


def test_value_read_while_recording():
    class Reading(Net):
        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            return out, loss.item()

    recorded, eager = pair(Reading)
    for _ in range(2):
        with pytest.raises(GraphError, match=r"item.*recorded\.py:\d+"):
            recorded(*batch())
    recorded.graph(False)
    step(recorded, eager, *batch())


def test_argument_read_while_recording():
    class Reading(Net):
        def train_one_batch(self, x, y):
            return super().train_one_batch(x * float(x.max()), y)

    recorded, _ = pair(Reading)
    with pytest.raises(GraphError, match="item"):
        recorded(*batch())


def test_kept_tensor_of_a_failed_call_is_gone():
    recorded, _ = pair(Failing)
    recorded(*batch())
    kept = recorded.h
    FAIL["now"] = True
    with pytest.raises(KeyError):
        recorded(*batch())
    assert recorded.h is kept


def test_interrupt():
    """Ctrl-C during a long call leaves everything usable."""
    recorded, eager = pair(Net)
    steps, stop = 0, threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    stop.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            recorded(*B)
            steps += 1
    stop.join()
    assert not autograd._mode.nodes and steps > 2
    recorded.set_states(eager.get_states())
    for buffers in (recorded.optimizer.moments, recorded.optimizer.moments):
        [buffer.set_value(0) for buffer in buffers.values()]
    recorded.optimizer.step_counter.set_value(0)
    for _ in range(4):
        step(recorded, eager, *batch())


def test_interrupt_while_recording():
    class Stopped(Net):
        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            if FAIL.pop("stop", None):
                raise KeyboardInterrupt
            return out, loss

    recorded, eager = pair(Stopped)
    for i in range(5):
        if i < 2:
            FAIL["stop"] = True
            with pytest.raises(KeyboardInterrupt):
                recorded(*batch())
            same_states(recorded, eager)
        step(recorded, eager, *batch())


def test_a_run_that_ends_with_stop_iteration():
    finished = []
    with pytest.raises(StopIteration):
        uninterrupted(next, iter(()), finished.append)
    assert not finished


def test_an_interrupt_after_a_run_waits_for_what_the_step_sets():
    finished = set()
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(_thread.interrupt_main, signal.SIGINT, finished.add)
    assert finished == {None}


class Interrupting:
    """A place that is written with an interrupt the first time."""

    def __init__(self, place):
        self.place, self.is_first = place, True

    def __getattr__(self, name):
        return getattr(self.place, name)

    def write(self, root, value):
        self.place.write(root, value)
        if self.is_first:
            self.is_first = False
            raise KeyboardInterrupt


def test_an_interrupt_between_two_numbers_that_a_step_sets():
    recorded, eager = pair(Counting)
    for _ in range(4):
        step(recorded, eager, *batch())
    numbers = function(recorded).entries[-1].effects.numbers
    path = next(iter(numbers))
    numbers[path] = (Interrupting(numbers[path][0]), numbers[path][1])
    x, y = batch()
    with pytest.raises(KeyboardInterrupt):
        recorded(x, y)
    eager(x, y)
    assert recorded.stats == eager.stats and recorded.n == eager.n
    step(recorded, eager, *batch())


def test_an_interrupt_before_a_step_begins(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    _, model = pair(Counting)
    with monkeypatch.context() as patched:
        patched.setattr("singa_rs.module.graphs.record.begin_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model(*batch())
    model(*batch())
    assert model.n == 1
