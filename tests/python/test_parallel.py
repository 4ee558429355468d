"""`graph_alg="parallel"`: the bits of eager execution, whichever thread runs what and when."""

import json
import warnings

import numpy as np
import pytest
from recorded import CPU, RNG, Net, inputs, replays, same, same_states, step
from singa_rs import autograd, layer, module, opt
from singa_rs.record import Options
from singa_rs.tensor import Placeholder, from_numpy
from test_recorded_programs import Session


@pytest.fixture(params=[2, 5])
def threads(request):
    before = CPU.num_threads
    CPU.set_num_threads(request.param)
    yield request.param
    CPU.set_num_threads(before)


@pytest.fixture
def always(monkeypatch):
    """Threads share all the work they can, however small the gain."""

    def graph_of(self, recording, training):
        return recording.graph(exact=self.exact, parallel=True, least_gain=0)

    monkeypatch.setattr(Options, "graph_of", graph_of)


class Inception(module.Module):
    """Branches of small convolutions and a residual connection, trained with Adam."""

    def __init__(self):
        super().__init__()
        sizes = [(1, 0), (3, 1), (5, 2), (3, 1)]
        self.branches = [layer.Conv2d(4, k, padding=p, activation="RELU") for k, p in sizes]
        self.deeper = [layer.Conv2d(4, 3, padding=1) for _ in sizes]
        self.norms = [layer.BatchNorm2d() for _ in sizes]
        self.join, self.drop = layer.Conv2d(8, 1), layer.Dropout(0.3)
        self.flat, self.out = layer.Flatten(), layer.Linear(3)
        self.loss, self.optimizer = layer.SoftMaxCrossEntropy(), opt.Adam(0.01)

    def forward(self, x):
        made = [n(d(b(x))) for b, d, n in zip(self.branches, self.deeper, self.norms, strict=True)]
        y = self.join(autograd.cat(made, 1)) + x
        return self.out(self.flat(self.drop(y)))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


def models(graph_alg):
    """A compiled and an eager model with the same parameters."""
    made = []
    for use_graph in (True, False):
        CPU.set_seed(5)
        model = Inception()
        x = Placeholder((2, 8, 8, 8), device=CPU)
        model.compile([x], use_graph=use_graph, graph_alg=graph_alg)
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


def images():
    x = RNG.normal(size=(2, 8, 8, 8)).astype(np.float32)
    return from_numpy(x), from_numpy(RNG.integers(0, 3, 2).astype(np.int32))


def shared(model):
    """The number of operations in a model's graph that several threads share."""
    (graph,) = model.graphs
    return sum(end - first for first, end in json.loads(graph.to_json())["segments"])


def test_branches_run_concurrently(threads):
    pair = models("parallel")
    for _ in range(12):
        step(*pair, *images(), draws=True)
    assert replays(pair[0]) == 10
    (graph,) = pair[0].graphs
    assert shared(pair[0]) > graph.nodes / 2
    assert f"on {threads} threads" in graph.summary()
    sequence = models("sequence")[0]
    sequence(*images()), sequence(*images())
    assert shared(sequence) == 0 and "threads" not in sequence.graphs[0].summary()


def test_evaluation(threads):
    pair = models("parallel")
    for model in pair:
        model.eval()
    for _ in range(5):
        x, _ = images()
        same(*(model(x) for model in pair))
    same_states(*pair)


@pytest.mark.parametrize("seed", range(100, 115))
def test_sessions(seed, threads, always):
    autograd.training = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        Session(seed).run(40)


def test_unprofitable_parts_run_in_sequence():
    CPU.set_seed(1)
    model = Net()
    model.compile(inputs(), graph_alg="parallel")
    x, y = RNG.normal(size=(4, 6)).astype(np.float32), np.zeros(4, np.int32)
    for _ in range(3):
        model(x, y)
    assert shared(model) == 0


def test_one_thread_shares_nothing():
    before = CPU.num_threads
    CPU.set_num_threads(1)
    try:
        pair = models("parallel")
        for _ in range(3):
            step(*pair, *images(), draws=True)
        assert shared(pair[0]) == 0
    finally:
        CPU.set_num_threads(before)


def test_a_failure_names_its_operation_and_leaves_the_graph_usable(threads, always):
    class Looking(module.Module):
        def __init__(self):
            super().__init__()
            self.table = layer.Embedding(5, 4)

        def forward(self, x):
            index = (x * 1.0).as_type("int32")
            parts = [self.table(index) * float(k) for k in range(6)]
            return sum(parts[1:], parts[0])

    model = Looking()
    model.eval()
    model.graph(True)
    good, bad = (from_numpy(np.full((3,), k, np.float32)) for k in (2, 9))
    want = [model(good).to_numpy() for _ in range(4)][0]
    for _ in range(3):
        with pytest.raises(Exception, match="gather.*test_parallel.py"):
            model(bad)
        assert np.array_equal(model(good).to_numpy(), want)


def test_run_graph_concurrently():
    x = from_numpy(np.ones(3, np.float32))
    CPU.ResetGraph()
    CPU.EnableGraph(True)
    made = [x * float(k) for k in range(4)]
    CPU.EnableGraph(False)
    for _ in range(3):
        CPU.RunGraph(False)
        assert [one.to_numpy()[0] for one in made] == [0, 1, 2, 3]
    CPU.ResetGraph()
