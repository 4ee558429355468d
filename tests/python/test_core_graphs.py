"""Graphs and recordings of the engine itself: what runs refuse, and comparisons on two threads."""

import threading

import numpy as np
import pytest
from handles import ADD, CPU, NEG, tensor
from harness import DEVICE
from singa_rs import GraphError, _core, autograd
from singa_rs.record.tracing import trace
from singa_rs.tensor import from_numpy


def recorded(arguments, step):
    """A sealed recording of a step."""
    recording = _core.Recording(CPU, arguments, _core.Journal())
    recording.end(step())
    recording.seal()
    return recording


def test_a_captured_tensor_that_a_graph_writes_is_no_argument():
    x, p = tensor([1, 2]), tensor([3, 4])
    graph = recorded([x], lambda: ADD.into([ADD(x, p), x], [p]) or []).graph()
    graph.run([x])
    assert (p.to_numpy() == [5, 8]).all()
    for call in (
        lambda: graph.run([p]),
        lambda: graph.time([p], 1),
        lambda: graph.profile([p], 1),
        lambda: graph.compare(graph, [p]),
    ):
        with pytest.raises(GraphError, match="share memory"):
            call()
    assert (p.to_numpy() == [5, 8]).all()


@pytest.mark.parametrize("f", ["inv", "cholesky"])
def test_what_has_no_result_is_refused_though_nothing_reads_it(f):
    function = getattr(autograd, f)

    def step(x):
        function(x)
        return x * 2.0

    good, bad = from_numpy(np.eye(3, dtype=np.float32)), from_numpy(np.zeros((3, 3), np.float32))
    graph = trace(DEVICE, [good], lambda: step(good)).recording.graph()
    assert (graph.run([good])[0].to_numpy() == 2 * np.eye(3)).all()
    for call in (lambda: step(bad), lambda: graph.run([bad])):
        with pytest.raises(ValueError, match=f):
            call()


class Slow:
    """A key that lets other threads run while it is compared."""

    def __eq__(self, other):
        threading.Event().wait(0.05)
        return True

    __hash__ = None


def test_two_threads_compare_two_recordings_both_ways():
    x = tensor([1, 2])

    def made():
        op = _core.HostOp("h", lambda x: x, lambda x: x, key=Slow())
        return recorded([x], lambda: [NEG(op(x))])

    a, b = made(), made()
    found = []
    ways = [(a, b), (b, a)] * 2
    threads = [
        threading.Thread(target=lambda pair=pair: found.append(pair[0].difference(pair[1])))
        for pair in ways
    ]
    for thread in threads:
        thread.daemon = True
        thread.start()
    assert not (a.was_read or b.state_is_late)
    for thread in threads:
        thread.join(20)
    assert found == [None] * 4
