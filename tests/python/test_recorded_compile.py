"""Compiling, planning and explaining modules."""

import copy
import gc
import pickle
import warnings

import numpy as np
import pytest
from recorded import CPU, B, Counting, Net, batch, function, inputs, pair, replays, same, step
from singa_rs import autograd, initializer, layer, module, opt, tensor
from singa_rs.errors import GraphError
from singa_rs.tensor import Placeholder, Tensor, from_numpy

LABELS = Placeholder((4,), device=CPU, dtype=tensor.int32)


CPU.set_seed(0)  # allocates the generators' states


def held():
    gc.collect()  # what earlier tests left
    return {name: CPU.memory()[name] for name in ("parameters", "states", "arena", "staging")}


# ---- compile -------------------------------------------------------------------------------------


def test_compile_takes_no_memory():
    model = Net()
    before = held()
    model.compile(inputs(), is_train=True)
    shapes = {name: p.shape for name, p in model.get_params().items()}
    assert shapes["fc1.W"] == (6, 5) and shapes["norm.scale"] == (5,) and shapes["fc2.b"] == (3,)
    assert not any(p.is_allocated for p in model.get_states().values())
    assert held() == before
    assert model.training and autograd.training and model.graph_mode


@pytest.mark.parametrize("sequential", [False, True])
def test_compile_takes_singas_keyword(sequential):
    models = Net(), Net()
    models[0].compile(inputs(), True, True, sequential)
    models[1].compile(inputs(), is_train=True, use_graph=True, sequential=sequential)
    for model in models:
        assert model.graph_mode and not model._graphs.options.parallel
    model = Net()
    model.compile(inputs(), graph_alg="parallel", sequential=False)
    assert model._graphs.options.parallel


def test_compile_refuses_contradictions_of_singas_keyword():
    with pytest.raises(ValueError, match='graph_alg="parallel" and sequential=True'):
        Net().compile(inputs(), graph_alg="parallel", sequential=True)
    with pytest.raises(TypeError, match="sequential: got 'no', want a bool"):
        Net().compile(inputs(), sequential="no")


def test_compiled_parameters_are_those_of_an_eager_model():
    CPU.set_seed(8)
    compiled = Net()
    compiled.compile(inputs(), is_train=False)
    CPU.set_seed(8)
    eager = Net()
    eager.eval()
    same(compiled(B[0]), eager(B[0]))
    for name, p in eager.get_states().items():
        same(compiled.get_states()[name], p)


def test_initial_values_are_made_when_they_are_first_read():
    class Odd(layer.Layer):
        def initialize(self, x):
            self.W = Tensor((3, 3), stores_grad=True)
            self.W.copy_from(np.arange(9).reshape(3, 3))
            self.half = self.W * 0.5
            self.basis = Tensor((3, 3))
            initializer.orthogonal(self.basis)

        def forward(self, x):
            return x @ self.W + self.half + self.basis

    class Model(module.Module):
        def __init__(self):
            super().__init__()
            self.odd = Odd()

        def forward(self, x):
            return self.odd(x)

    model = Model()
    model.compile([Placeholder((3, 3))], is_train=False)
    assert model.odd.half.to_numpy().tolist() == (np.arange(9).reshape(3, 3) / 2).tolist()
    basis = model.odd.basis.to_numpy()
    assert np.allclose(basis @ basis.T, np.eye(3), atol=1e-5)
    assert model.odd.W.to_numpy().tolist() == np.arange(9).reshape(3, 3).tolist()


def test_compile_runs_no_step_of_the_user():
    class Stepping(Counting):
        def forward(self, x):
            self.n += 1
            self.stats["seen"].append(7)
            self.last = super().forward(x)
            return self.last

    model = Stepping()
    model.compile(inputs())
    model.plan(B[0], B[1])
    assert model.n == 0 and model.stats == {"steps": 0, "seen": [0, 5]}
    assert not hasattr(model, "last")
    assert not model.optimizer.get_states()["step_counter"]


def test_compile_checks_shapes():
    class Wrong(Net):
        def forward(self, x):
            return super().forward(x) @ x

    model = Wrong()
    with pytest.raises(ValueError, match=r"matmul.*\(4, 3\).*\(4, 6\)"):
        model.compile(inputs())
    assert not model.fc1._initialized and not model.get_params()


def test_compile_takes_tensors_and_one_input():
    model = Net()
    model.compile(Tensor((4, 6)), True, True, "sequence")
    assert model.fc1.W.shape == (6, 5)
    model.compile((from_numpy(B[0]),), False)
    assert not model.training


def test_a_forward_that_reads_values_cannot_be_compiled():
    class Reading(Net):
        def forward(self, x):
            return super().forward(x * float(x.max()))

    with pytest.raises(GraphError, match="item"):
        Reading().compile(inputs())


def test_options():
    model = Net()
    model.compile(inputs(), True, True, False)  # SINGA's sequential
    model.compile(inputs(), exact=False)
    model.compile(inputs(), graph_alg="parallel")
    with pytest.raises(ValueError, match="graph_alg"):
        model.compile(inputs(), graph_alg="fast")
    with pytest.raises(ValueError, match="amp"):
        model.compile(inputs(), amp="int8")
    for wrong in (0, -1, True, 2.5):
        with pytest.raises(ValueError, match="check_every"):
            model.compile(inputs(), check_every=wrong)
    with pytest.raises(TypeError, match="exact"):
        model.compile(inputs(), exact=1)
    with pytest.raises(TypeError):
        model.compile(inputs(), True, True, "sequence", 1 << 20)


def test_without_a_graph_steps_are_eager():
    model = Net()
    model.compile(inputs(), use_graph=False)
    assert not model.graph_mode and "use_graph=True" in model.explain()
    out, _ = model(*B)
    assert not out.is_dummy() and model.graphs == []


def test_graph_without_compile():
    recorded, eager = Net(), Net()
    for model in (recorded, eager):
        CPU.set_seed(2)
        model.train()
        model(*B)
    recorded.graph(True, False)
    for _ in range(5):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3
    recorded.graph(False)
    step(recorded, eager, *batch())
    assert recorded.graphs == []


def test_compiled_models_are_copied():
    recorded, eager = pair(Net)
    for _ in range(3):
        step(recorded, eager, *batch())
    other, twin = copy.deepcopy(recorded), copy.deepcopy(eager)
    assert other.graph_mode and other.graphs == []
    for _ in range(4):
        step(other, twin, *batch())
        step(recorded, eager, *batch())


class Plain(module.Module):
    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(3)

    def forward(self, x):
        return self.fc(x)


def test_compiled_models_are_pickled():
    recorded, eager = pair(Plain)
    other = pickle.loads(pickle.dumps(recorded))
    for model in (other, eager):
        model.eval()
    for _ in range(4):
        step(other, eager, B[0])
    assert replays(other, "forward") == 2


def test_states_are_loaded_before_they_are_made(tmp_path):
    recorded, _ = pair(Net)
    recorded(*B)
    recorded.save_states(tmp_path / "net.zip")
    other = Net()
    other.load_states(tmp_path / "net.zip")
    other.compile(inputs(), is_train=False)
    recorded.eval()
    same(other(B[0]), recorded(B[0]))


# ---- plan ----------------------------------------------------------------------------------------


def test_plan_states_memory_without_running():
    model = Net()
    model.compile(inputs())
    before = held()
    plan = model.plan(inputs()[0], LABELS)
    assert held() == before
    parameters = sum(p.nbytes for p in model.get_params().values())
    assert plan.accounts["parameters"] == parameters
    assert plan.accounts["staging"] == 4 * 6 * 4 + 4 * 4
    assert plan.accounts["results"] >= 2 * (4 * 3 * 4 + 4)  # the caller holds the last ones, too
    assert plan.arena_bytes >= plan.lower_bound_bytes > 0
    assert plan.peak_bytes == sum(plan.accounts.values())
    assert "peak" in plan.summary() and "train_one_batch" in plan.summary()


def test_plan_leaves_the_model_as_it_is():
    recorded, eager = pair(Net)
    recorded.plan(inputs()[0], LABELS)
    for _ in range(5):
        step(recorded, eager, *batch())
    recorded.plan(*B)
    step(recorded, eager, *batch())


def test_plan_of_evaluation_and_of_uncompiled_models():
    model = Net()
    model.eval()
    plan = model.plan(Placeholder((2, 6)))
    assert "forward" in plan.summary() and model.fc1.W.shape == (6, 5)
    assert 3 <= plan.nodes <= 8 and plan.accounts["states"] == 2 * 5 * 4


def test_plan_of_a_step_that_fails():
    model = Net()
    model.compile(inputs())
    with pytest.raises(ValueError):
        model.plan(Placeholder((2, 9)), LABELS)
    model(*B)


# ---- explain, graphs -----------------------------------------------------------------------------


def test_explain():
    recorded, eager = pair(Counting)
    assert "nothing has been called" in recorded.explain()
    for rows in (4, 4, 4, 3):
        step(recorded, eager, *batch(rows))
    recorded.flag = eager.flag = True
    step(recorded, eager, *batch())
    text = recorded.explain()
    for line in (
        "Counting.train_one_batch: recorded",
        "key: argument 0: float32 (4, 6)",
        "key: training",
        "increments attribute n by 1",
        "increments attribute stats.steps by 2",
        "recording 1 (first call): kept",
        "recording 2 (to compare with the previous recording): same",
        "new: argument 0: float32 (3, 6)",
        "attribute flag changed from False to True",
    ):
        assert line in text, text


def test_graphs_report_their_figures():
    recorded, _ = pair(Net)
    assert recorded.graphs == []
    for _ in range(3):
        recorded(*B)
    (graph,) = recorded.graphs
    assert graph.nodes > 10 and graph.blocks > graph.nodes
    assert graph.arena_bytes >= graph.peak_bytes >= graph.lower_bound_bytes > 0
    assert graph.summary()


def test_as_many_graphs_as_fit():
    recorded, eager = pair(Net)
    recorded.eval(), eager.eval()
    for rows in range(1, 19):
        for _ in range(2):
            step(recorded, eager, batch(rows)[0])
    assert len(recorded.graphs) == 16
    step(recorded, eager, batch(1)[0])


def test_arguments_that_are_always_new_end_in_eager_calls():
    recorded, eager = pair(Net)
    recorded.eval(), eager.eval()
    with pytest.warns(RuntimeWarning, match=r"last one: new: argument 0: float32 \(32, 6\)"):
        for rows in range(1, 34):
            step(recorded, eager, batch(rows)[0])
    assert function(recorded, "forward").eager


def test_check_every():
    recorded, eager = pair(Net, check_every=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(14):
            step(recorded, eager, *batch())
    assert 5 <= function(recorded).history.recordings <= 7


def test_new_optimizer():
    recorded, eager = pair(Net)
    for i in range(8):
        if i == 4:
            recorded.optimizer, eager.optimizer = opt.Adam(0.01), opt.Adam(0.01)
        step(recorded, eager, *batch())
    assert replays(recorded) == 4
