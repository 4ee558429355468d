"""Imported models: run, replayed in parts, cut, trained further."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import real
from singa_rs import CheckpointError, autograd, device, layer, module, opt, sonnx, tensor
from singa_rs.tensor import Tensor, to_numpy


class Net(module.Module):
    """A small network of images."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = layer.Conv2d(4, 3), layer.BatchNorm2d()
        self.flat, self.head = layer.Flatten(), layer.Linear(3)
        self.optimizer = opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return self.head(self.flat(autograd.relu(self.norm(self.conv(x)))))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss


def trained():
    net = Net()
    net.compile([tensor.Placeholder((8, 3, 6, 6))])
    for seed in range(3):
        net.train_one_batch(real(8, 3, 6, 6, seed=seed), np.arange(8, dtype=np.int32) % 3)
    return net.eval()


@pytest.fixture(autouse=True)
def evaluation():
    yield
    autograd.training = False


def exported(net, dynamic=True):
    axes = {"x": {0: "batch"}} if dynamic else None
    return sonnx.model_proto(net, [real(2, 3, 6, 6)], dynamic=axes)


def test_an_exported_model_computes_the_same_when_it_is_imported():
    net = trained()
    rep = sonnx.prepare(exported(net))
    for n in (2, 5, 5, 5, 5):
        x = real(n, 3, 6, 6)
        (made,) = rep.run([x])
        np.testing.assert_allclose(made, to_numpy(net(Tensor(data=x))), atol=1e-5)


def test_tensors_in_and_out():
    rep = sonnx.prepare(exported(trained()), device=device.get_default_device(), init_inputs=None)
    rep.is_graph = True
    (made,) = rep.run([Tensor(data=real(2, 3, 6, 6))])
    assert isinstance(made, Tensor)
    assert [proto.op_type for proto, _ in rep.layers][0] == "Conv"


@pytest.mark.parametrize("count, kind", [(1, (2, 4, 4, 4)), (-2, (2, 64)), (None, (2, 3))])
def test_a_part_of_the_nodes(count, kind):
    model = sonnx.SONNXModel(exported(trained()))
    model.eval()
    protos = [node for node in model._body.nodes if node.proto.op_type != "Constant"]
    assert len(protos) > 5
    found = model.forward(Tensor(data=real(2, 3, 6, 6)), last_layers=count)
    assert found[0].shape[0] == 2 and (count != 1 or found[0].shape == kind)


def test_further_values():
    proto = exported(trained())
    name = next(node.output[0] for node in proto.graph.node if node.op_type == "Relu")
    model = sonnx.SONNXModel(proto)
    model.eval()
    y, middle = model.forward(Tensor(data=real(2, 3, 6, 6)), aux_output=[name])
    assert y.shape == (2, 3) and (to_numpy(middle) >= 0).all()


# ---- training ------------------------------------------------------------------------------------


class Further(sonnx.SONNXModel):
    """An imported model that trains on."""

    def __init__(self, proto):
        super().__init__(proto)
        self.optimizer = opt.SGD(0.1)

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x)[0], y)
        self.optimizer(loss)
        return loss


def losses(net, steps=6):
    autograd.training = True
    net.train()
    y = np.arange(8, dtype=np.int32) % 3
    return [net.train_one_batch(real(8, 3, 6, 6), y).to_numpy()[0] for _ in range(steps)]


@pytest.mark.parametrize("use_graph", [False, True])
def test_it_trains_like_the_model_it_was(use_graph):
    net = trained()
    further = Further(exported(net))
    net.optimizer = opt.SGD(0.1)
    further.compile([tensor.Placeholder((8, 3, 6, 6))], is_train=True, use_graph=use_graph)
    want, got = losses(net), losses(further)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert got[-1] < got[0]


def test_parameters_come_out_of_backward_with_names():
    rep = sonnx.prepare(exported(trained()))
    rep.is_graph, autograd.training = True, True
    (y,) = rep.run([Tensor(data=real(4, 3, 6, 6))])
    loss = autograd.softmax_cross_entropy(y, tensor.from_numpy(np.arange(4) % 3))
    found = {p.name for p, _ in autograd.backward(loss)}
    assert found == {"conv.W", "conv.b", "norm.scale", "norm.bias", "head.W", "head.b"}


def test_frozen_weights_and_a_new_head():
    class Tuned(sonnx.SONNXModel):
        def __init__(self, proto):
            super().__init__(proto)
            self.head = layer.Linear(2)
            self.optimizer = opt.SGD(0.1)

        def forward(self, x):
            return self.head(super().forward(x)[0])

        def train_one_batch(self, x, y):
            loss = autograd.softmax_cross_entropy(self.forward(x), y)
            self.optimizer(loss)
            return loss

    net = Tuned(exported(trained()))
    for one in net.weights.get_params().values():
        one.requires_grad = one.stores_grad = False
    before = {name: to_numpy(one) for name, one in net.weights.tensors().items()}
    net.compile([tensor.Placeholder((8, 3, 6, 6))])
    y = np.arange(8, dtype=np.int32) % 2
    made = [net.train_one_batch(real(8, 3, 6, 6), y).to_numpy()[0] for _ in range(8)]
    assert made[-1] < made[0]
    for name, one in net.weights.tensors().items():
        if "running" not in name:
            np.testing.assert_array_equal(to_numpy(one), before[name])


def test_states_are_saved_by_name(tmp_path):
    net = Further(exported(trained()))
    assert {"weights.conv.W", "weights.norm.running_mean"} <= set(net.get_states())
    assert "weights.norm.running_mean" not in net.get_params()
    net.save_states(tmp_path / "net.zip")
    other = Further(exported(trained()))
    other.load_states(tmp_path / "net.zip")
    x = Tensor(data=real(2, 3, 6, 6))
    np.testing.assert_array_equal(*(to_numpy(one.eval().forward(x)[0]) for one in (net, other)))


# ---- parts between nodes that read ---------------------------------------------------------------


def info(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape or None)


def branching():
    """A product, a choice by a value, another product."""
    node = helper.make_node
    yes = helper.make_graph(
        [node("Add", ["c", "a"], ["t"]), node("Tanh", ["t"], ["u"])], "yes", [], [info("u")]
    )
    no = helper.make_graph([node("Sub", ["c", "a"], ["v"])], "no", [], [info("v")])
    nodes = [
        node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["b"]),
        node("MatMul", ["b", "w"], ["c"]), node("Greater", ["s", "zero"], ["positive"]),
        node("If", ["positive"], ["d"], then_branch=yes, else_branch=no),
        node("MatMul", ["d", "w"], ["e"]), node("Sigmoid", ["e"], ["y"]),
    ]  # fmt: skip
    constants = [
        numpy_helper.from_array(real(3, 3), "w"),
        numpy_helper.from_array(np.float32(0), "zero"),
    ]
    graph = helper.make_graph(nodes, "g", [info("x", 3, 3), info("s")], [info("y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def expected(x, s):
    a, w = np.maximum(x, 0), real(3, 3)
    c = a @ w @ w
    d = np.tanh(c + a) if s > 0 else c - a
    return 1 / (1 + np.exp(-(d @ w)))


def test_what_lies_between_choices_is_replayed():
    rep = sonnx.prepare(branching())
    rng = np.random.default_rng(0)
    for _ in range(16):
        x, s = real(3, 3, seed=int(rng.integers(99))), np.array(rng.standard_normal(), np.float32)
        np.testing.assert_allclose(rep.run([x, s])[0], expected(x, s), rtol=1e-5, atol=1e-6)
    parts = [part for part in rep.model._stretches._known.values() if part is not None]
    assert len(parts) == 4 and all(part.graphs for part in parts)


def test_replays_see_weights_that_were_trained():
    rep = sonnx.prepare(exported(trained()), exact=True)
    x = real(2, 3, 6, 6)
    for _ in range(5):
        (before,) = rep.run([x])
    for one in rep.model.weights.get_params().values():
        one.copy_from(to_numpy(one) * 2)
    rep.model._stretches, parts = None, rep.model._stretches
    (want,) = rep.run([x])
    rep.model._stretches = parts
    (after,) = rep.run([x])
    np.testing.assert_array_equal(after, want)
    assert np.abs(after - before).max() > 0.1


def test_compiling_records_parts_where_the_whole_cannot_be_recorded():
    model = sonnx.SONNXModel(branching())
    model.compile([tensor.zeros((3, 3)), tensor.zeros(())], is_train=False)
    for s in (1.0, -1.0, 1.0, 1.0, -1.0, -1.0):
        (made,) = model(Tensor(data=real(3, 3)), Tensor(data=np.array(s, np.float32)))
        np.testing.assert_allclose(to_numpy(made), expected(real(3, 3), s), rtol=1e-5, atol=1e-6)
    assert any(part and part.graphs for part in model._stretches._known.values())
    assert not model.training and not model.graph_mode
    parts = model._stretches
    with pytest.raises(ValueError):
        model.compile([tensor.zeros((2, 3, 4)), tensor.zeros((5, 2))], amp="float16")
    assert model._stretches is parts and not model.training and model._amp is None


def test_shapes_are_computed_on_the_host():
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "first"], ["n"], axis=0),
        node("Concat", ["n", "rest"], ["to"], axis=0), node("Reshape", ["x", "to"], ["y"]),
    ]  # fmt: skip
    constants = [
        numpy_helper.from_array(np.array([0]), "first"),
        numpy_helper.from_array(np.array([-1]), "rest"),
    ]
    graph = helper.make_graph(nodes, "g", [info("x", "n", 2, 3)], [info("y")], constants)
    model = sonnx.SONNXModel(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    model.compile([tensor.zeros((4, 2, 3))], is_train=False)  # nothing is read
    assert model._stretches is None
    for _ in range(4):
        assert model(Tensor(data=real(4, 2, 3)))[0].shape == (4, 6)
    assert model.graphs


# ---- errors --------------------------------------------------------------------------------------


def test_operators_that_there_are_not():
    graph = helper.make_graph(
        [helper.make_node("Fancy", ["x"], ["y"], domain="somewhere")], "g", [info("x")], [info("y")]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("somewhere", 1)])
    with pytest.raises(NotImplementedError, match="somewhere.Fancy of opset 1"):
        sonnx.prepare(proto).run([real(2)])


@pytest.mark.parametrize("inputs", [[], [real(2, 3, 6, 6)] * 2])
def test_another_number_of_inputs(inputs):
    with pytest.raises(ValueError, match="got .* inputs, want 1: x"):
        sonnx.prepare(exported(trained())).run(inputs)


def test_another_device():
    with pytest.raises(ValueError, match="got device 'TPU'"):
        sonnx.prepare(exported(trained()), device="TPU")


def test_what_is_no_model(tmp_path):
    with pytest.raises(TypeError, match="want an onnx.ModelProto or a path"):
        sonnx.prepare(3)
    (tmp_path / "bad.onnx").write_bytes(b"not a model at all")
    whole = exported(trained()).SerializeToString()
    for wrong in (b"not a model at all", b"", whole[: len(whole) // 2]):
        (tmp_path / "bad.onnx").write_bytes(wrong)
        with pytest.raises(CheckpointError, match=f"sonnx: {tmp_path}/bad.onnx: no model of ONNX"):
            sonnx.prepare(tmp_path / "bad.onnx")


@pytest.mark.parametrize("wrong", [True, None, [1], np.ones(2)])
def test_files_are_paths_or_open(wrong, tmp_path):
    for call in (sonnx.load, lambda one: sonnx.save(exported(trained()), one)):
        with pytest.raises(TypeError, match="sonnx.(load|save): got .*, want a path or a file"):
            call(wrong)
    read, write = os.pipe()  # a number would be that of an open file, which is closed afterwards
    with pytest.raises(TypeError, match=f"sonnx.load: got {read}, want a path"):
        sonnx.load(read)
    os.close(write)
    os.close(read)
    proto = exported(trained())
    with open(tmp_path / "net.onnx", "wb") as file:
        sonnx.save(proto, file)
    with open(tmp_path / "net.onnx", "rb") as file:
        assert sonnx.load(file) == sonnx.load(tmp_path / "net.onnx") == proto


def test_files_are_models(tmp_path):
    onnx.save(exported(trained()), tmp_path / "net.onnx")
    assert sonnx.prepare(tmp_path / "net.onnx").run([real(2, 3, 6, 6)])[0].shape == (2, 3)
