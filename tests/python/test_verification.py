"""Runs of graphs are compared with the operations as recorded; a graph that differs is not used."""

import warnings

import numpy as np
import pytest
from singa_rs import autograd, device, layer, module, opt
from singa_rs.errors import InternalError, OutOfMemoryError
from singa_rs.record import Options
from singa_rs.record.verifier import VerifiedGraph
from singa_rs.tensor import Tensor, from_numpy

CPU = device.get_default_device()
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(5)
        self.optimizer = opt.SGD(0.1, momentum=0.9)
        self.factor = 1.0

    def forward(self, x):
        return autograd.tanh(self.fc(x)) * self.factor

    def train_one_batch(self, x):
        out = self.forward(x)
        loss = autograd.mse_loss(out, np.zeros((3, 5), np.float32))
        self.optimizer(loss)
        return out, loss


def compiled(**options):
    CPU.set_seed(0)
    net = Net()
    net.compile([from_numpy(X)], **options)
    return net


def steps(net, n=4):
    """The result of each step, followed by all parameters."""
    made = [net(from_numpy(X))[0].to_numpy() for _ in range(n)]
    return made + [state.to_numpy() for state in net.get_states().values()]


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def verified(net):
    return [line.split("verified: ")[1] for line in net.explain().splitlines() if "fied:" in line]


@pytest.mark.parametrize("verify", [True, False, 1, 2, 3])
def test_a_graph_that_does_what_was_recorded_is_used(verify):
    net = compiled(verify=verify)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(steps(net, 9), steps(compiled(use_graph=False), 9))
    [said] = verified(net)
    assert said.startswith("no run was compared" if verify is False else "equal to the operations")


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "yes", None])
def test_invalid_verify_intervals_are_refused(wrong):
    with pytest.raises(ValueError, match="verify="):
        compiled(verify=wrong)


def spoil(net, monkeypatch):
    """Makes the next recording of a model get the graph of a different step."""
    make, recordings = Options.graph_of, []

    def note(options, recording, training):
        recordings.append(recording)
        return make(options, recording, training)

    with monkeypatch.context() as patched:
        patched.setattr(Options, "graph_of", note)
        net.factor = 2.0
        net(from_numpy(X))
    net.factor = 1.0
    monkeypatch.setattr(
        Options, "graph_of", lambda o, _, training: make(o, recordings[0], training)
    )


def test_a_graph_that_does_something_else_is_never_used(monkeypatch):
    net, eager = compiled(), compiled(use_graph=False)
    eager.factor = 2.0
    eager(from_numpy(X))
    eager.factor = 1.0
    spoil(net, monkeypatch)
    with pytest.warns(RuntimeWarning, match="differs from what was recorded.*bug in singa_rs"):
        same(steps(net, 1), steps(eager, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(steps(net), steps(eager))
    [said] = verified(net)
    assert said.startswith("not used, as the result of ") and net.graphs[0].nodes > 0


def test_a_wrong_graph_is_used_without_verification(monkeypatch):
    net, eager = compiled(verify=False), compiled(use_graph=False)
    eager.factor = 2.0
    eager(from_numpy(X))
    eager.factor = 1.0
    spoil(net, monkeypatch)
    assert not np.array_equal(steps(net, 1)[0], steps(eager, 1)[0])


def test_a_warning_that_is_an_error_leaves_a_whole_step(monkeypatch):
    net, eager = compiled(), compiled(use_graph=False)
    eager.factor = 2.0
    eager(from_numpy(X))
    eager.factor = 1.0
    spoil(net, monkeypatch)
    eager(from_numpy(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="bug in singa_rs"):
            net(from_numpy(X))
        same(steps(net), steps(eager))


def recorded(function, x, y):
    """The unrewritten graph of a function whose result for x is written to y."""
    with CPU.record() as session:
        y.copy_from(function(x))
    session._recording.seal()
    return session._recording.graph(rewrite=False)


def test_every_so_many_runs_are_compared():
    x, y = Tensor(data=np.full(3, 2, np.float32)), Tensor((3,))
    product, total = recorded(lambda x: x * x, x, y), recorded(lambda x: x + x, x, y)
    verified = VerifiedGraph(product, total, 2)
    made = []
    for value in (2, 3, 4, 5, 6):  # at 2 both are the same
        x.set_value(value)
        verified.run([])
        made.append(y.to_numpy()[0])
    assert made == [4, 9, 8, 10, 12]  # the second run was not compared, the third was
    assert verified.recorded is None and "bug in singa_rs" in verified.fault


def test_a_graph_that_fails_its_check_is_run_eagerly(monkeypatch):
    def refuse(options, recording, training):
        raise InternalError("graph: internal error: a test")

    net = compiled()
    monkeypatch.setattr(Options, "graph_of", refuse)
    with pytest.warns(RuntimeWarning, match="internal error: a test"):
        same(steps(net, 6), steps(compiled(use_graph=False), 6))


class Doubled(autograd.Operator):
    host = True
    calls = 0

    def infer(self, meta):
        return [(meta.shape, meta.dtype)]

    def forward(self, x):
        Doubled.calls += 1
        return x * 2

    def backward(self, dy):
        return dy * 2


class Hosted(Net):
    def forward(self, x):
        return Doubled()(super().forward(x))[0]


def test_user_code_never_runs_twice():
    net = Hosted()
    net.compile([from_numpy(X)])
    Doubled.calls = 0
    steps(net, 4)
    assert Doubled.calls == 4
    assert verified(net) == [
        "not compared: user code or exchanges between processes would run twice"
    ]
    assert net.plan(from_numpy(X)).verification[1] == verified(net)[0]


class Scarce:
    """A graph for whose comparison there is not enough memory."""

    fault = None

    def obstacle(self, recorded):
        return None

    def fits(self, tensors):
        return True

    def compare(self, recorded, tensors):
        raise OutOfMemoryError("compare")

    def run(self, tensors):
        return ["made"]


def test_without_memory_for_both_the_graph_runs_alone():
    graph = Scarce()
    verified = VerifiedGraph(graph, graph)
    assert verified.run([]) == ["made"] and verified.graph is graph
    assert verified.outcome == "not compared: there is not enough memory for both"


def test_a_plan_states_the_extra_memory_of_the_first_run():
    x = from_numpy(X)
    plan = compiled().plan(x)
    more, said = plan.verification
    largest = max(state.to_numpy().nbytes for state in compiled().get_states().values())
    assert more >= 2 * largest and f"{more:,} bytes more" in said  # a parameter and its momentum
    assert said in plan.summary()
    for options in ({"verify": False}, {"exact": False}, {"check_finite": True}):
        more, said = compiled(**options).plan(x).verification
        assert more == 0 and said.startswith("not compared: ")
        assert next(iter(options)).split("_")[0] in said or "as recorded" in said


def test_what_is_recorded_by_hand_is_verified():
    x = Tensor(data=np.ones(3, np.float32))
    with CPU.record() as graph:
        y = x * 2 + 1
        x += 1
    graph.run()
    np.testing.assert_array_equal(y.to_numpy(), [3, 3, 3])
    np.testing.assert_array_equal(x.to_numpy(), [2, 2, 2])
    graph.run(2)
    np.testing.assert_array_equal(y.to_numpy(), [7, 7, 7])


@pytest.mark.parametrize("f", [autograd.softmax, autograd.log_softmax])
def test_rows_beside_a_tensor_with_more_axes_are_those_along_the_last_axis(f):
    class Spread(Net):
        def forward(self, x):
            return f(self.fc(x), 1) + self.fc(x)[None]

        def train_one_batch(self, x):
            out = self.forward(x)
            loss = (out * out).sum()
            self.optimizer(loss)
            return out, loss

    made = []
    for options in ({"verify": False}, {"use_graph": False}):
        CPU.set_seed(0)
        net = Spread()
        net.compile([from_numpy(X)], **options)
        made.append(steps(net))
    same(*made)
