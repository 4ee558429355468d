"""Recordings by hand that fail, are discarded or have run."""

import contextlib

import numpy as np
from recorded import CPU
from singa_rs import autograd
from singa_rs.tensor import Tensor
from test_recorded_undo import Failure, X, fail, looks


def by_hand(w, ends):
    with contextlib.suppress(Failure), CPU.record():
        (w * 2).sum().backward()
        w.requires_grad, w.name, w.data = False, "another", w * 3
        ends()


def test_a_recording_by_hand_that_fails():
    autograd.training = True
    w = Tensor(data=X, requires_grad=True, stores_grad=True)
    want = looks(w)
    by_hand(w, fail)
    assert looks(w) == want and np.array_equal(w.to_numpy(), X)


def test_a_recording_by_hand_that_is_forgotten():
    autograd.training = True
    w = Tensor(data=X, requires_grad=True, stores_grad=True)
    for is_open in (True, False):
        CPU.EnableGraph(True)
        (w * 2).sum().backward()
        assert w.grad is not None
        if not is_open:
            CPU.EnableGraph(False)
        CPU.ResetGraph()
        assert w.grad is None
        CPU.EnableGraph(False)
    CPU.ResetGraph()


def test_a_recording_by_hand_that_has_run_stays():
    autograd.training = True
    w = Tensor(data=X, requires_grad=True, stores_grad=True)
    CPU.EnableGraph(True)
    (w * 2).sum().backward()
    CPU.EnableGraph(False)
    CPU.RunGraph()
    CPU.ResetGraph()
    assert np.array_equal(w.grad.to_numpy(), 2 * X)
