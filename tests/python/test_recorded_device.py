"""Recording by hand: `device.record()`, and SINGA's EnableGraph, RunGraph, ResetGraph."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from recorded import CPU, Net, batch, pair, same, step
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.errors import GraphError
from singa_rs.tensor import Placeholder, Tensor, from_numpy


@pytest.fixture(autouse=True)
def _idle():
    yield
    CPU.EnableGraph(False)
    CPU.ResetGraph()
    CPU.SetVerbosity(0)


def test_record_and_run():
    x, w = from_numpy(np.ones((2, 3), np.float32)), Tensor((3, 2)).set_value(2)
    with CPU.record() as graph:
        y = x @ w
        w += 1
    with pytest.raises(GraphError, match=r"test_recorded_device\.py:\d+"):
        y.to_numpy()
    assert w.to_numpy()[0, 0] == 2
    graph.run()
    assert y.to_numpy().tolist() == [[6, 6], [6, 6]] and w.to_numpy()[0, 0] == 3
    graph.run(n=2)
    assert y.to_numpy()[0, 0] == 12 and w.to_numpy()[0, 0] == 5
    x.copy_from(np.zeros((2, 3), np.float32))
    graph.run()
    assert y.to_numpy()[0, 0] == 0
    assert graph.nodes == 2 and graph.blocks == 3 and "Recorded" in repr(graph)


def test_dropped_tensors_are_in_the_arena():
    x = Tensor((64, 64)).set_value(1)
    with CPU.record() as graph:
        y = ((x + 1) * 2) @ x
    assert graph.arena_bytes >= 64 * 64 * 4
    graph.run()
    assert y.to_numpy()[0, 0] == 256


def test_an_exception_ends_a_recording():
    x = Tensor((2,))
    with pytest.raises(KeyError), CPU.record() as graph:
        y = x + 1
        raise KeyError("on purpose")
    with pytest.raises(GraphError, match="nothing"):
        graph.run()
    with pytest.raises(GraphError):
        y.to_numpy()
    assert (x + 1).to_numpy().tolist() == [1, 1]


def test_no_recording_within_a_recording():
    with CPU.record(), pytest.raises(GraphError, match="records already"), CPU.record():
        pass
    assert (Tensor((1,)) + 1).item() == 1


def script(steps, recorded):
    """A training script of SINGA's first design."""
    CPU.SetRandSeed(1)
    autograd.training = True
    fc1, fc2, sgd = layer.Linear(8), layer.Linear(3), opt.SGD(lr=0.1, momentum=0.9)
    x, y = Tensor((4, 6)), Tensor((4,), dtype=tensor.int32)
    rng = np.random.default_rng(5)

    def compute():
        out = fc2(autograd.relu(fc1(x)))
        loss = autograd.softmax_cross_entropy(out, y)
        for p, g in autograd.backward(loss):
            sgd.apply(p.name, p, g)
        sgd.step()
        return loss

    losses = []
    if recorded:
        CPU.EnableGraph(True)
        assert CPU.graph_enabled()
        loss = compute()
        CPU.EnableGraph(False)
    for _ in range(steps):
        x.copy_from_numpy(rng.normal(size=(4, 6)).astype(np.float32))
        y.copy_from_numpy(rng.integers(0, 3, 4).astype(np.int32))
        if recorded:
            CPU.RunGraph()
        else:
            loss = compute()
        losses.append(loss.to_numpy().tobytes())
    return losses, [p.to_numpy().tobytes() for p in (fc1.W, fc1.b, fc2.W, fc2.b)]


def test_enable_graph_trains_as_the_same_script_does():
    assert script(5, True) == script(5, False)


def test_enable_graph_appends_until_reset():
    x = Tensor((2,)).set_value(1)
    CPU.EnableGraph(True)
    y = x + 1
    CPU.EnableGraph(False)
    CPU.EnableGraph(True)
    z = y * 10
    CPU.EnableGraph(False)
    CPU.RunGraph()
    assert z.to_numpy().tolist() == [20, 20]
    CPU.EnableGraph(True)
    last = z + y
    CPU.EnableGraph(False)
    x.set_value(2)
    CPU.RunGraph()
    assert y.to_numpy().tolist() == [3, 3]
    assert last.to_numpy().tolist() == [33, 33]
    CPU.ResetGraph()
    with pytest.raises(GraphError, match="nothing"):
        CPU.RunGraph()
    assert last.to_numpy().tolist() == [33, 33]


def test_older_names():
    x = Tensor((2,)).set_value(1)
    CPU.SetBufferFlag(True)
    x += 1
    CPU.SetBufferFlag(False)
    CPU.ExecBuffOps()
    CPU.ExecBuffOps()
    assert x.to_numpy().tolist() == [3, 3]


def test_idle_calls_do_nothing():
    CPU.ResetGraph()
    CPU.EnableGraph(False)
    CPU.Sync()
    assert not CPU.graph_enabled()
    with pytest.raises(GraphError, match="nothing"):
        CPU.RunGraph(False)


def test_reset_within_a_recording_starts_over():
    x = Tensor((2,))
    CPU.EnableGraph(True)
    x += 1
    CPU.ResetGraph()
    x += 5
    CPU.EnableGraph(False)
    CPU.RunGraph()
    assert x.to_numpy().tolist() == [5, 5]


@pytest.mark.parametrize("use_graph", [True, False])
def test_models_are_compiled_and_planned_while_operations_are_buffered(use_graph):
    class Net(module.Module):
        def __init__(self):
            super().__init__()
            self.first, self.sgd = layer.Linear(2), opt.SGD(0.1)

        def forward(self, x):
            return self.first(x)

        def train_one_batch(self, x, y):
            loss = autograd.mse_loss(self.forward(x), y)
            self.sgd(loss)
            return loss

    def losses(is_buffered):
        CPU.SetRandSeed(3)
        x, y = Tensor((2, 3)).set_value(1), Tensor((2, 2))
        if is_buffered:
            CPU.EnableGraph(True)
            before = x + 1
        net = Net()
        net.compile([x], use_graph=use_graph)
        assert net.plan(x, y).peak_bytes and CPU.graph_enabled() == is_buffered
        if not is_buffered:
            return [float(net(x, y)) for _ in range(4)]
        loss = net(x, y)
        CPU.EnableGraph(False)
        made = [CPU.RunGraph() or float(loss) for _ in range(4)]
        assert before.to_numpy().tolist() == [[2] * 3] * 2
        CPU.ResetGraph()
        return made

    assert losses(True) == losses(False)


def test_a_model_is_not_compiled_within_a_block():
    with CPU.record(), pytest.raises(GraphError, match="^compile: got a call while"):
        module.Module().compile([Placeholder((2, 3))])


@pytest.mark.parametrize("wrong", ["False", None, [0]])
def test_enable_graph_takes_a_flag(wrong):
    with pytest.raises(TypeError, match="EnableGraph: flag: got .*, want a bool"):
        CPU.EnableGraph(wrong)


@pytest.mark.parametrize("ask", ["run", "graph", "summary", "nodes"])
def test_what_was_asked_of_an_empty_recording_is_named(ask):
    with pytest.raises(GraphError, match=f"^{ask}: the device has recorded nothing"):
        found = getattr(CPU.record(), ask)
        found()


def test_running_while_recording_is_refused():
    CPU.EnableGraph(True)
    with pytest.raises(GraphError, match="still recording"):
        CPU.RunGraph()
    CPU.EnableGraph(False)


def test_a_compiled_model_within_a_recording():
    recorded, eager = pair(Net)
    x, y = map(from_numpy, batch())
    with CPU.record() as graph:
        out, loss = recorded(x, y)
    graph.run()
    same((out, loss), eager(x, y))
    graph.run()
    same((out, loss), eager(x, y))
    assert recorded.graphs == []
    step(recorded, eager, *batch())


def test_recordings_belong_to_their_thread():
    values = []
    with CPU.record():
        thread = threading.Thread(target=lambda: values.append((Tensor((2,)) + 1).to_numpy()))
        thread.start()
        thread.join()
    assert values[0].tolist() == [1, 1]


def test_threads_may_be_the_first_to_run_a_graph_at_once():
    x, begun = from_numpy(np.ones((16, 16), np.float32)), threading.Barrier(4)
    for _ in range(20):
        with CPU.record() as graph:
            y = x
            for _ in range(50):
                y = y + x

        def run():
            begun.wait()
            graph.run()  # noqa: B023

        with ThreadPoolExecutor(4) as pool:
            [done.result() for done in [pool.submit(run) for _ in range(4)]]
        assert np.all(y.to_numpy() == 51)


def test_interrupt_between_runs():
    x = Tensor((1,), dtype=tensor.float64)
    with CPU.record() as graph:
        x += 1
    graph.run()
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        graph.run(n=10**9)
    done = x.item()
    graph.run()
    assert x.item() == done + 1 and done > 1


def test_time_profiling(capsys):
    CPU.PrintTimeProfiling()
    assert "not timed" in capsys.readouterr().out
    CPU.SetVerbosity(1)
    CPU.SetSkipIteration(2)
    x = Tensor((2,))
    with CPU.record() as graph:
        x += 1
    graph.run(2)
    CPU.PrintTimeProfiling()
    assert "none counted" in capsys.readouterr().out
    graph.run(3)
    CPU.PrintTimeProfiling()
    assert "3 runs of graphs after the first 2" in capsys.readouterr().out
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="SetVerbosity"):
            CPU.SetVerbosity(wrong)


def test_gradients_of_what_was_recorded_are_refused():
    autograd.training = True
    w = Tensor((2,), stores_grad=True).set_value(1)
    with CPU.record() as graph:
        loss = autograd.reduce_sum(w * w, axes=None, keepdims=0)
    graph.run()
    with pytest.raises(GraphError):
        list(autograd.backward(loss))


def test_creators_are_cut():
    autograd.training = True
    w = Tensor((2,), stores_grad=True)
    with CPU.record():
        y = w * 2
        assert not y.is_dummy()
    assert y.is_dummy() and y.creator is not None
