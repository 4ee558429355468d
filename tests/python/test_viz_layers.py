"""The layers and phases of a graph's operations, and figures by layer."""

import json

import numpy as np
import pytest
from recorded import CPU, B, copy, same_states, step, tensor
from recorded import Net as Flat
from singa_rs import MemoryBudgetError, autograd, dist, layer, module, opt
from singa_rs.tensor import from_numpy


class Block(layer.Layer):
    """Two products with a function between them that has no layer of its own, and a sum."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layer.Linear(32), layer.Linear(32)

    def forward(self, x):
        return x + self.second(autograd.tanh(self.first(x)))


class Nested(module.Module):
    def __init__(self):
        super().__init__()
        self.blocks = layer.ModuleList([Block(), Block()])
        self.norm, self.head = layer.BatchNorm1d(), layer.Linear(3)
        self.optimizer = opt.Adam(0.01)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss


class ByHand(Nested):
    """Updates its parameters itself."""

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        for p, grad in autograd.backward(loss):
            p -= grad * 0.1
        return loss


class Deep(Nested):
    """Enough blocks for some to be worth computing again."""

    def __init__(self):
        super().__init__()
        self.blocks = layer.ModuleList([Block() for _ in range(8)])


class Shared(Nested):
    """Trained by several processes."""

    def __init__(self):
        super().__init__()
        self.optimizer = opt.DistOpt(opt.SGD(0.1))


def trained(kind, **options):
    model = kind()
    x, y = tensor(4, 32), from_numpy(np.array([0, 1, 2, 0], np.int32))
    model.compile([x], is_train=True, use_graph=True, **options)
    for _ in range(3):
        model(x, y)
    return model, x, y


@pytest.fixture(scope="module")
def nested():
    return trained(Nested)


def found(graph, name, phase):
    """The layers of the operations of a name and phase, in order."""
    nodes = graph.data()["nodes"]
    return [n["layer"] for n in nodes if n["name"].startswith(name) and n["phase"] == phase]


def test_operations_are_in_the_layers_that_ask_for_them(nested):
    (graph,) = nested[0].graphs
    products = [f"blocks.{i}.{which}" for i in (0, 1) for which in ("first", "second")]
    assert found(graph, "matmul", "forward") == [*products, "head"]
    backward = found(graph, "matmul", "backward")
    # The first layer needs no gradient of what the step was given.
    assert sorted(backward) == sorted([*products, "head"] * 2)[1:]
    assert found(graph, "batch_norm", "forward") == ["norm"]
    assert found(graph, "softmax_cross_entropy", "forward") == [""]
    assert found(graph, "tanh_grad", "backward") in ([], ["blocks.1", "blocks.0"])


@pytest.mark.parametrize("kind", [Nested, ByHand])
def test_updates_are_in_the_layers_of_their_parameters(kind):
    model, *_ = trained(kind)
    data = model.graphs[0].data()
    updated = set()
    for node in data["nodes"]:
        names = {data["blocks"][out["block"]]["name"] for out in node["outputs"]}
        names &= model.get_params().keys()
        for name in names:
            assert node["phase"] == "update"
            if kind is Nested:
                assert node["layer"] == name.rpartition(".")[0]
        updated |= names
    assert updated == model.get_params().keys()


def test_every_operation_has_a_layer_and_a_phase(nested):
    nodes = nested[0].graphs[0].data()["nodes"]
    layers = {node["layer"] for node in nodes}
    linear = {f"blocks.{i}.{which}" for i in (0, 1) for which in ("first", "second")}
    # What the blocks do themselves may be fused with the products.
    assert layers - {"blocks.0", "blocks.1"} == {"", "norm", "head", *linear}
    assert {node["phase"] for node in nodes} == {"forward", "backward", "update"}


def test_rewritten_operations_keep_to_the_layers_as_recorded(nested):
    model, x, y = nested
    exact = model.plan(x, y).picture().data()["nodes"]
    other, *_ = trained(Nested, check_finite=True)  # as recorded
    recorded = other.graphs[0].data()["nodes"]
    assert len(recorded) > len(exact)
    for phase in ("forward", "backward", "update"):
        layers = [{n["layer"] for n in nodes if n["phase"] == phase} for nodes in (exact, recorded)]
        assert layers[0] <= layers[1]


@pytest.mark.parametrize("options", [{"memory_budget": 0.5}, {"amp": "bfloat16"}, {"exact": False}])
def test_layers_are_found_however_a_step_is_planned(options):
    plain, *_ = trained(Deep)
    planned, *_ = trained(Deep, **options)
    graphs = [model.graphs[0].data()["nodes"] for model in (plain, planned)]
    fused = {f"blocks.{i}" for i in range(8)}  # what blocks do themselves, maybe with products
    for phase in ("forward", "backward", "update"):
        layers = [{n["layer"] for n in nodes if n["phase"] == phase} - fused for nodes in graphs]
        assert layers[0] == layers[1] and None not in layers[1]
    assert all(node["phase"] for node in graphs[1])
    if "memory_budget" in options:
        products = [[n["layer"] for n in nodes if "matmul" in n["name"]] for nodes in graphs]
        assert len(products[1]) > len(products[0]), "some are computed again"
        assert set(products[0]) == set(products[1])


def _several():
    model, _, _ = trained(Shared)
    (graph,) = model.graphs
    found = {node["phase"] for node in graph.data()["nodes"] if "exchange" in node["name"]}
    return found, {row.layer for row in graph.profile(1).layers()}


def test_exchanges_belong_to_updates():
    layers = {row.layer for row in trained(Nested)[0].graphs[0].layers()}
    assert dist.spawn(_several, 2, timeout=60.0) == [({"update"}, layers)] * 2


def test_errors_of_replays_begin_with_the_layer():
    class Lookup(module.Module):
        def __init__(self):
            super().__init__()
            self.words = layer.Embedding(4, 2)

        def forward(self, x):
            return self.words(x)

    model = Lookup()
    given, wrong = (from_numpy(np.array(n, np.int32)) for n in ([1, 2], [1, 7]))
    model.compile([given], is_train=False, use_graph=True)
    for _ in range(3):
        model(given)
    with pytest.raises(
        ValueError, match=r"^words: gather .*recorded at .*test_viz_layers.py:\d+\)"
    ):
        model(wrong)


def test_what_has_no_memory_is_named_by_layer():
    with pytest.raises(MemoryBudgetError, match=r"made at .*:\d+ in blocks\.1\.second"):
        trained(Nested, memory_budget=64)


def test_looking_for_layers_leaves_the_model_as_it_is():
    (model, x, y), (other, *_) = trained(Nested), trained(Nested)
    other.set_states({name: copy(one) for name, one in model.get_states().items()})
    before = {name: copy(one) for name, one in model.get_states().items()}
    (graph,) = model.graphs
    runs = graph.runs
    assert json.loads(graph.to_json())["nodes"][0]["phase"]
    after = model.get_states()
    assert all(np.array_equal(before[name], after[name].to_numpy()) for name in before)
    model(x, y)
    assert graph.runs == runs + 1 and model.graphs == [graph], "it is replayed as before"


def test_figures_by_layer_add_up(nested):
    (graph,) = nested[0].graphs
    nodes = graph.data()["nodes"]
    for depth in (None, 1, 2):
        rows = graph.layers(depth)
        assert sum(row.operations for row in rows) == len(nodes)
        assert sum(row.flops for row in rows) == sum(node["flops"] for node in nodes)
        assert sum(row.bytes for row in rows) == sum(node["bytes"] for node in nodes)
        assert all(row.seconds is None for row in rows)
    names = [row.layer for row in graph.layers(1)]
    assert sorted(names) == ["(model)", "blocks", "head", "norm"]
    profile = graph.profile(2)
    assert sum(row.seconds for row in profile.layers()) == pytest.approx(profile.seconds)
    assert [row[:4] for row in profile.layers(2)] == [row[:4] for row in graph.layers(2)]


def test_summaries_by_layer(nested):
    model, x, y = nested
    text = model.graphs[0].profile(2).summary(by="layer", most=3)
    assert "ms  operations" in text and text.splitlines()[-1].startswith("  and ")
    plan = model.plan(x, y)
    text = plan.summary(by="layer")
    assert text.startswith(f"Nested.train_one_batch: {plan.nodes} operations\n")
    assert "  blocks.1.second" in text and "peak" not in text
    assert "peak" in plan.summary()


@pytest.mark.parametrize("by", ["layers", None, 1])
def test_summaries_by_something_else_are_refused(nested, by):
    model, x, y = nested
    with pytest.raises(ValueError, match="summary: got by="):
        model.graphs[0].profile(1).summary(by=by)
    with pytest.raises(ValueError, match="summary: got by="):
        model.plan(x, y).summary(by=by)


@pytest.mark.parametrize("depth", [0, -1, 1.0, True, "1"])
def test_a_depth_is_a_number(nested, depth):
    with pytest.raises(ValueError, match="layers: got depth="):
        nested[0].graphs[0].layers(depth)


def test_operations_outside_of_models_have_no_layer():
    x = tensor(4, 4)
    with CPU.record() as graph:
        y = autograd.relu(x @ x)
    graph.run()
    nodes = json.loads(graph.to_json())["nodes"]
    assert {(node["layer"], node["phase"]) for node in nodes} == {(None, "forward")}
    assert graph.profile(1).layers()[0].layer == "(unknown)"
    assert y.shape == (4, 4)


def test_layers_are_those_of_the_recording():
    model, *_ = trained(Nested)
    (graph,) = model.graphs
    before = graph.layers()
    model.blocks.append(Block())
    assert graph.layers() == before
    del model
    assert graph.layers() == before


def test_evaluation_is_forward(nested):
    model, x, _ = nested
    model.eval()
    for _ in range(3):
        model(x)
    graph = next(one for one in model.graphs if "forward" in one.title)
    model.train()
    assert {node["phase"] for node in graph.data()["nodes"]} == {"forward"}
    assert "blocks.0.first" in {node["layer"] for node in graph.data()["nodes"]}


def test_replays_are_equal_to_eager_ones_afterwards():
    from recorded import pair

    models = pair(Flat)
    for _ in range(3):
        step(*models, *B)
    models[0].graphs[0].layers()
    step(*models, *B)
    same_states(*models)


def test_rows_of_a_profile_name_the_layer_or_say_how_many(nested):
    rows = nested[0].graphs[0].profile(1).summary(most=100).splitlines()
    assert any(row.endswith(".py:34 in norm") for row in rows)
    assert any("matmul" in row and row.endswith(" layers") for row in rows)
