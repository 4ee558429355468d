"""What SINGA's proposals for modules and graphs say, statement by statement."""

import numpy as np
import pytest
from recorded import CPU
from singa_rs import GraphError, ShapeError, autograd, layer, module, opt, tensor
from singa_rs.compat import singa
from singa_rs.tensor import Placeholder, Tensor, from_numpy

RNG = np.random.default_rng(3)
IMAGES = RNG.standard_normal((4, 1, 8, 8)).astype(np.float32)
LABELS = np.array([0, 2, 1, 2], np.int32)


class Net(module.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.conv = layer.Conv2d(2, 3, padding=1)
        self.pool = layer.MaxPool2d(2, 2)
        self.fc = layer.Linear(classes)
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        y = self.pool(autograd.relu(self.conv(x)))
        return self.fc(autograd.flatten(y))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = autograd.softmax_cross_entropy(out, y)
        self.optimizer(loss)
        return out, loss


class Old(singa.module.Module):
    """A model as programs defined one before `train_one_batch` and `compile`."""

    def __init__(self):
        super().__init__()
        self.conv = singa.autograd.Conv2d(1, 2, 3, padding=0)
        self.pool = singa.autograd.MaxPool2d(2, 2, padding=0)
        self.linear = singa.autograd.Linear(2 * 3 * 3, 3)
        self.optimizer = singa.opt.SGD(lr=0.1)

    def forward(self, x):
        y = self.pool(singa.autograd.relu(self.conv(x)))
        return self.linear(singa.autograd.flatten(y))

    def loss(self, out, y):
        return singa.autograd.softmax_cross_entropy(out, y)

    def optim(self, loss):
        self.optimizer.backward_and_update(loss)


def compiled(**options):
    CPU.set_seed(7)
    net = Net()
    net.compile([Placeholder(IMAGES.shape)], **options)
    return net


# ---- compile -------------------------------------------------------------------------------------


def test_compile_takes_inputs_that_are_not_filled():
    x = Placeholder(IMAGES.shape)
    net = Net()
    net.compile([x], is_train=True, use_graph=True, sequential=False)
    assert not x.is_allocated
    x.copy_from_numpy(IMAGES)
    assert net(x, from_numpy(LABELS))[0].shape == (4, 3)


def test_compile_initialises_every_layer_by_the_shapes_of_placeholders():
    shapes = {name: p.shape for name, p in compiled().get_params().items()}
    assert shapes == {"conv.W": (2, 1, 3, 3), "conv.b": (2,), "fc.W": (32, 3), "fc.b": (3,)}


def test_compile_computes_nothing():
    net = compiled()
    assert not any(p.is_allocated for p in net.get_states().values())
    with pytest.raises(GraphError, match="unfilled"):
        Placeholder((2,)).to_numpy()


def test_compile_sets_the_mode_and_the_graph():
    net = compiled(is_train=False, use_graph=False)
    assert not net.training and not autograd.training and not net.graph_mode
    net.compile([Placeholder(IMAGES.shape)], is_train=True, use_graph=True)
    assert net.training and net.graph_mode


def test_a_layer_is_initialised_once():
    class Counted(layer.Layer):
        calls = 0

        def initialize(self, x):
            self.calls += 1
            self.W = Tensor(x.shape[1:], stores_grad=True).set_value(2)

        def forward(self, x):
            return x * self.W

    one, x = Counted(), from_numpy(np.ones((2, 3)))
    assert (one(x) + one(x)).tolist() == [[4] * 3] * 2 and one.calls == 1


def test_initialising_is_optional():
    class Lazy(layer.Layer):
        W = None

        def forward(self, x):
            if self.W is None:
                self.W = Tensor(x.shape[1:], stores_grad=True).set_value(3)
            return x * self.W

    one = Lazy()
    assert one(from_numpy(np.ones((1, 2)))).tolist() == [[3, 3]]
    assert list(one.get_params()) == ["W"]


@pytest.mark.parametrize("init", ["ones", lambda t: t.set_value(1)])
def test_initial_values_are_named_or_written_by_a_function(init):
    one = layer.Linear(2, kernel_init=init, bias_init="zeros")
    assert one(from_numpy(np.ones((1, 3)))).tolist() == [[3, 3]]


# ---- save and load -------------------------------------------------------------------------------


def test_save_writes_an_onnx_model_and_the_states(tmp_path):
    net = compiled()
    net.save(str(tmp_path / "net"), state={"epoch": 3})
    assert {p.name for p in tmp_path.iterdir()} == {"net.onnx", "net.state.safetensors"}


def test_load_copies_parameters_and_returns_the_states_as_a_dict(tmp_path):
    net, other = compiled(), Net()
    net.save(str(tmp_path / "net"), state={"epoch": 3, "moment": from_numpy(np.ones(2))})
    other.compile([Placeholder(IMAGES.shape)])
    state = other.load(str(tmp_path / "net"), include_state=True)
    assert state["epoch"] == 3 and state["moment"].tolist() == [1, 1]
    for name, p in other.get_params().items():
        assert p.tolist() == net.get_params()[name].tolist()


def test_load_warns_of_parameters_of_other_shapes(tmp_path):
    net, other = compiled(), Net(classes=5)
    net.save(str(tmp_path / "net"))
    other.compile([Placeholder(IMAGES.shape)])
    before = other.get_params()["fc.W"].tolist()
    with pytest.warns(UserWarning, match=r"fc\.W") as told:
        other.load(str(tmp_path / "net"), skip_mismatched=True)
    assert len(told) == 1 and "(32, 3)" in str(told[0].message)
    assert other.get_params()["fc.W"].tolist() == before
    assert other.get_params()["conv.W"].tolist() == net.get_params()["conv.W"].tolist()


def test_load_warns_of_layers_that_are_missing(tmp_path):
    class More(Net):
        def __init__(self):
            super().__init__()
            self.last = layer.Linear(2)

        def forward(self, x):
            return self.last(super().forward(x))

    net, more = compiled(), More()
    net.save(str(tmp_path / "net"))
    more.compile([Placeholder(IMAGES.shape)])
    with pytest.warns(UserWarning, match=r"last\.W"):
        more.load(str(tmp_path / "net"))


# ---- Graph and Node ------------------------------------------------------------------------------


def test_a_graph_stores_how_its_nodes_are_related():
    conv, relu, pool, *_, last = compiled().graph
    assert conv.inputs == ("input 0", "conv.W", "conv.b")
    assert relu.inputs == (conv,) and pool.inputs[0] is relu
    assert any(getattr(one, "op", "") == "matmul" for one in last.inputs)


def test_a_node_stores_an_operation_with_its_inputs_and_outputs():
    conv = compiled().graph.nodes[0]
    assert (conv.op, conv.name) == ("conv", "conv:0") and conv.attrs["padding"] == [1, 1, 1, 1]
    assert conv.input_shapes == ((4, 1, 8, 8), (2, 1, 3, 3), (2,))
    assert conv.shapes == ((4, 2, 8, 8),) and conv.dtypes == (tensor.float32,)


def test_a_node_infers_the_shape_of_its_result():
    nodes = compiled().graph.nodes
    assert nodes[0].infer_shape() == (4, 2, 8, 8)
    assert nodes[0].infer_shape((9, 1, 5, 6), (2, 1, 3, 3), (2,)) == (9, 2, 5, 6)
    assert nodes[2].infer_shape((9, 2, 4, 6))[0] == (9, 2, 2, 3)
    assert nodes[-1].infer_shape() == (4, 3)


def test_a_node_refuses_shapes_that_its_operation_does_not_take():
    conv = compiled().graph.nodes[0]
    with pytest.raises(ValueError, match="conv:0: infer_shape: got 1 shapes, want 3"):
        conv.infer_shape((4, 1, 8, 8))
    with pytest.raises(ShapeError, match=r"\(4, 3, 8, 8\)"):
        conv.infer_shape((4, 3, 8, 8), (2, 1, 3, 3), (2,))


def test_a_graph_infers_shapes_without_data():
    net = compiled()
    assert net.graph.infer_shape() == (4, 3) and net.graph.infer_shape((9, 1, 8, 8)) == (9, 3)
    with pytest.raises(ValueError, match="got 2 shapes, want 1"):
        net.graph.infer_shape((9, 1, 8, 8), (1,))
    with pytest.raises(ShapeError, match="Conv2d"):
        net.graph.infer_shape((9, 2, 8, 8))
    assert not any(p.is_allocated for p in net.get_states().values())


def test_a_graph_of_several_results_infers_all_shapes():
    class Two(module.Module):
        def forward(self, a, b):
            return {"sum": a + b, "both": [a @ b]}

    two = Two()
    two.compile([Placeholder((3, 3)), Placeholder((3, 3))])
    assert two.graph.infer_shape() == ((3, 3), (3, 3))
    assert two.graph.infer_shape((1, 3), (3, 1)) == ((3, 3), (1, 1))


def test_printing_a_graph_lists_its_nodes():
    lines = str(compiled().graph).splitlines()
    assert lines[0] == f"Graph(Net): {len(lines) - 1} nodes of (4, 1, 8, 8) float32"
    assert lines[1] == "  conv:0 (4, 2, 8, 8) <- input 0, conv.W, conv.b"
    assert lines[2] == "  relu:1 (4, 2, 8, 8) <- conv:0"


def test_a_graph_needs_inputs():
    net = Net()
    assert str(net.graph) == "Graph(Net): neither compiled nor called with tensors alone"
    with pytest.raises(GraphError, match="graph: Net was neither compiled nor called"):
        _ = net.graph.nodes
    net(from_numpy(IMAGES), from_numpy(LABELS))
    assert len(net.graph) == len(compiled().graph)


def test_a_graph_numbers_constants_apart():
    class Shifted(module.Module):
        def forward(self, x):
            return x + np.ones(2, np.float32)

    net = Shifted()
    net.compile([Placeholder((3, 2))])
    assert [node.inputs for node in net.graph] == [("input 0", "constant")]


def test_models_may_have_an_attribute_of_that_name():
    net = compiled()
    net.graph = "mine"
    assert net.graph == "mine" and compiled().graph.nodes


# ---- buffered operations -------------------------------------------------------------------------


def test_graph_turns_recording_on_and_off():
    net = compiled(use_graph=False)
    net.graph(True, False)
    assert net.graph_mode
    net.graph(mode=False, sequential=False)
    assert not net.graph_mode
    with pytest.raises(TypeError, match="graph: mode"):
        net.graph(np.ones(2))


def test_forward_and_train_one_batch_are_graphs():
    x, y = from_numpy(IMAGES), from_numpy(LABELS)
    net, eager = compiled(), compiled(use_graph=False)
    for _ in range(4):
        got, want = (one(x, y)[1].tolist() for one in (net, eager))
        assert got == want
    assert [one.title for one in net.graphs] == ["Net.train_one_batch, graph 0"]


def test_memory_is_allocated_when_it_is_first_used():
    before = CPU.memory()["allocated"]
    x = Tensor((1000, 1000))
    assert CPU.memory()["allocated"] == before and not x.is_allocated
    x.set_value(1)
    assert CPU.memory()["allocated"] >= before + 4_000_000


def test_memory_of_intermediate_tensors_is_used_again():
    net = compiled()
    x, y = from_numpy(IMAGES), from_numpy(LABELS)
    for _ in range(4):
        net(x, y)
    graph = net.graphs[0]
    blocks = [b for b in graph.data()["blocks"] if b["role"] == "temporary"]
    assert 0 < graph.arena_bytes < sum(b["bytes"] for b in blocks)


@pytest.mark.parametrize("sequential", [True, False])
def test_operations_are_buffered_and_then_run(sequential):
    x = Tensor((2,)).set_value(1)
    CPU.SetBufferFlag(True)
    y = x * 3
    x += y
    CPU.SetBufferFlag(False)
    with pytest.raises(GraphError):
        y.to_numpy()
    CPU.ExecBuffOps(sequential)
    assert (x.tolist(), y.tolist()) == ([4, 4], [3, 3])
    CPU.RunGraph(sequential)
    assert (x.tolist(), y.tolist()) == ([16, 16], [12, 12])
    CPU.ResetGraph()
    with pytest.raises(GraphError, match="nothing"):
        CPU.RunGraph()


def old_losses(buffered, steps=5):
    """The losses of an old program, whose steps run one by one, or are buffered and run again."""
    CPU.set_seed(5)
    net, x, y = Old(), Tensor(IMAGES.shape), Tensor(LABELS.shape, dtype=tensor.int32)
    losses = []
    net.train()
    for step in range(steps):
        x.copy_from_numpy(IMAGES * (1 + step % 2))
        y.copy_from_numpy(LABELS)
        if buffered and step == 1:
            CPU.SetBufferFlag(True)
        if not buffered or step < 2:
            loss = net.loss(net(x), y)
            net.optim(loss)
        if buffered and step >= 1:
            CPU.SetBufferFlag(False)
            CPU.ExecBuffOps()
        losses.append(loss.item())
    CPU.ResetGraph()
    return losses


@pytest.mark.filterwarnings("ignore:Old")
def test_old_programs_run_without_compile():
    losses = old_losses(False)
    assert losses[4] < losses[0] and losses[3] < losses[1]
    assert old_losses(True) == losses


def test_old_programs_say_where_they_run():
    net = Old()
    net.on_device(CPU)
    assert net.device == CPU and net(from_numpy(IMAGES)).shape == (4, 3)
    net.on_device(CPU)
    assert all(p.device == CPU for p in net.get_states().values())
    with pytest.raises(TypeError, match="got None, want a Device, 'cpu' or 'cuda'"):
        net.on_device(None)


@pytest.mark.parametrize("name", ["loss", "optim"])
def test_methods_of_old_programs_are_deprecated(name):
    net = Old()
    net.train()
    out = net(from_numpy(IMAGES))
    with pytest.warns(DeprecationWarning, match=f"Old.{name}: define train_one_batch"):
        if name == "loss":
            net.loss(out, from_numpy(LABELS))
        else:
            net.optim(autograd.softmax_cross_entropy(out, from_numpy(LABELS)))
