"""FeedForwardNet: the graph of layers, forward, and backward layer by layer."""

import gc

import numpy as np
import pytest
import singa_rs.compat.net as ffnet
from nets import batch, branched, filled, perceptron, two_ends
from singa_rs import autograd, device, tensor
from singa_rs import layer as layers
from singa_rs.compat import layer, loss
from singa_rs.compat.net import FeedForwardNet
from singa_rs.compat.proto.model_pb2 import kEval, kTrain
from singa_rs.errors import GraphError, ShapeError


def told(net: FeedForwardNet, dy, **how) -> dict:
    """The gradients by parameter's name."""
    found = {}
    for names, values, grads, _ in net.backward(dy, **how):
        assert len(names) == len(values) == len(grads)
        found.update(zip(names, grads, strict=True))
    return found


# ---- structure -----------------------------------------------------------------------------------


def test_names_shapes_and_order():
    net = branched()
    assert net.param_names() == [
        "conv/weight", "conv/bias", "bn/gamma", "bn/beta", "bn/mean", "bn/var", "side/weight",
        "dense/weight", "dense/bias",
    ]  # fmt: skip
    shapes = [value.shape for value in net.param_values()]
    assert shapes == [(4, 27), (4,), (4,), (4,), (4,), (4,), (4, 36), (144, 4), (4,)]
    assert [spec.name for spec in net.param_specs()] == net.param_names()
    assert list(net.get_params()) == [n for n in net.param_names() if n[-3:] not in ("ean", "var")]
    assert net.out_sample_shape_of_layer["split"] == [(4, 12, 12)] * 2
    assert [one.name for one in net.src_of_layer["merge"]] == ["side", "split"]
    assert [one.name for one in net.dst_of_layer["split"]] == ["side", "merge"]
    assert net.layers[-1].get_output_sample_shape() == (4,)


def test_topo_sort_keeps_the_order_where_it_can():
    one, two, three = (layer.Dummy(name, (2,)) for name in ("1", "2", "3"))
    sources = {"1": [three], "2": [], "3": []}
    assert FeedForwardNet.topo_sort([one, two, three], sources) == [two, three, one]
    with pytest.raises(ValueError, match="1, 2 read from each other"):
        FeedForwardNet.topo_sort([one, two], {"1": [two], "2": [one]})


@pytest.mark.parametrize(
    ("kind", "match", "add"),
    [
        (TypeError, "add: got singa_rs.layer.linear.Linear", lambda n: n.add(layers.Linear(3))),
        (ValueError, "second layer named 'out'", lambda n: n.add(layer.Dummy("out"))),
        (ValueError, "'tanh' already have a reader; add a Split",
         lambda n: n.add(layer.Dummy("x"), n.layers[1])),
        (ValueError, "x reads nothing; give it input_sample_shape",
         lambda n: n.add(layer.Dummy("x"), [])),
        (ValueError, "its source 'y' is not in the net",
         lambda n: n.add(layer.Dummy("x"), layer.Dummy("y", (3,)))),
        (TypeError, "x: got 'out' for src", lambda n: n.add(layer.Dummy("x"), "out")),
        (ShapeError, "Conv2D 'x': got a sample of", lambda n: n.add(layer.Conv2D("x", 2))),
    ],
)  # fmt: skip
def test_what_cannot_be_added(kind, match, add):
    net = perceptron()
    with pytest.raises(kind, match=match):
        add(net)
    assert [one.name for one in net.layers] == ["hidden", "tanh", "out"]
    net.add(layer.Activation("more"))  # the refused layer has taken no output


# ---- forward -------------------------------------------------------------------------------------


def test_forward_computes_layer_by_layer():
    net, x = perceptron(), batch(4, 6)
    w, b, v, c = (value.to_numpy() for value in net.param_values())
    want = np.tanh(x.to_numpy() @ w + b) @ v + c
    np.testing.assert_allclose(net.forward(False, x).to_numpy(), want, rtol=1e-5, atol=1e-6)
    found = net.forward(kEval, x, output=["tanh"])
    assert set(found) == {"tanh", "out"}
    np.testing.assert_allclose(found["tanh"].to_numpy(), np.tanh(x.to_numpy() @ w + b), rtol=1e-5)


def test_several_inputs_and_outputs_by_name():
    net, a, b = two_ends(), batch(4, 2), batch(4, 3, seed=5)
    found = net.forward(True, {"a": a, "b": b})
    w, c, v, d = (value.to_numpy() for value in net.param_values())
    joined = np.concatenate([a.to_numpy(), b.to_numpy() @ w + c], axis=1)
    np.testing.assert_allclose(found["all"].to_numpy(), joined, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["sum"].to_numpy(), joined @ v + d, rtol=1e-5, atol=1e-6)

    seeds = {"all": batch(4, 5, seed=6), "sum": batch(4, 1, seed=7)}
    rows = list(net.backward(seeds, output=["a", "b"]))
    assert [names for names, *_ in rows if names] == [
        ["sum/weight", "sum/bias"], ["b/weight", "b/bias"],
    ]  # fmt: skip
    through = seeds["all"].to_numpy() + seeds["sum"].to_numpy() @ v.T
    grads = rows[-1][3]
    np.testing.assert_allclose(grads["a"].to_numpy(), through[:, :2], rtol=1e-5)
    np.testing.assert_allclose(grads["b"].to_numpy(), through[:, 2:] @ w.T, rtol=1e-5, atol=1e-6)


def test_a_layer_gets_given_tensors_before_those_of_others():
    net = FeedForwardNet()
    net.add(layer.Dense("first", 2, input_sample_shape=(3,)))
    net.add(layer.Concat("both", 1, [(4,), (2,)]))
    given, x = batch(5, 4), batch(5, 3, seed=8)
    y = net.forward(True, {"first": x, "both": given})
    np.testing.assert_array_equal(y.to_numpy()[:, :4], given.to_numpy())
    dy = batch(5, 6, seed=9)
    rows = list(net.backward(dy, output=["both"]))
    np.testing.assert_array_equal(rows[0][3]["both"][0].to_numpy(), dy.to_numpy()[:, :4])
    want = x.to_numpy().T @ dy.to_numpy()[:, 4:]
    np.testing.assert_allclose(rows[1][2][0].to_numpy(), want, rtol=1e-5, atol=1e-6)


def ran(net: FeedForwardNet, training: bool = True) -> bool:
    """Runs `two_ends` forward."""
    return bool(net.forward(training, {"a": batch(4, 2), "b": batch(4, 3)}))


@pytest.mark.parametrize(
    ("kind", "match", "call"),
    [
        (GraphError, "x has no tensor for b; give it by name",
         lambda n: n.forward(False, batch(4, 2))),
        (ValueError, "forward: x: got 'c', want one of the layers",
         lambda n: n.forward(False, {"c": batch(4, 2)})),
        (ValueError, "output: got 'c'",
         lambda n: n.forward(False, {"a": batch(4, 2), "b": batch(4, 3)}, output=["c"])),
        (TypeError, "output: got 'all', want a list",
         lambda n: n.forward(False, {"a": batch(4, 2), "b": batch(4, 3)}, output="all")),
        (ShapeError, r"Dense 'b': got a batch of shape \(4, 2\), want \(N, 3\)",
         lambda n: n.forward(False, {"a": batch(4, 2), "b": batch(4, 2)})),
        (ValueError, "forward: flag: got 3, want a bool, kTrain",
         lambda n: n.forward(3, {"a": batch(4, 2), "b": batch(4, 3)})),
        (TypeError, "forward: got list", lambda n: n.forward(False, [np.zeros((4, 2))])),
        (GraphError, "backward: dy: the outputs are of sum, all",
         lambda n: n.backward(batch(4, 5))),
        (GraphError, "backward: call forward in training first",
         lambda n: n.backward({"all": batch(4, 5), "sum": batch(4, 1)})),
        (GraphError, "the output of sum has no gradient",
         lambda n: ran(n) and list(n.backward({"all": batch(4, 5)}))),
        (GraphError, "Dense 'sum': backward: call forward in training first",
         lambda n: ran(n, False) and list(n.backward({"all": batch(4, 5), "sum": batch(4, 1)}))),
        (ShapeError, r"Dense 'sum': backward: got dy of shape \(4, 2\), want \(4, 1\)",
         lambda n: ran(n) and list(n.backward({"all": batch(4, 5), "sum": batch(4, 2)}))),
    ],
)  # fmt: skip
def test_wrong_calls_name_the_layer(kind, match, call):
    with pytest.raises(kind, match=match):
        call(two_ends())


def test_verbose_prints_each_output(monkeypatch, capsys):
    monkeypatch.setattr(ffnet, "verbose", True)
    perceptron().forward(False, batch(4, 6))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "-->hidden", "hidden-->tanh", "tanh-->out",
    ]  # fmt: skip


# ---- backward ------------------------------------------------------------------------------------


def test_gradients_are_those_of_autograd():
    net, x = perceptron(), batch(4, 6)
    dy = batch(4, 3, seed=4)
    net.forward(True, x)
    found = told(net, dy)
    w, b, v, c = net.param_values()
    with autograd._training_scope(True):
        y = autograd.matmul(autograd.tanh(autograd.matmul(x, w) + b), v) + c
        want = autograd.gradients(y, dy)
    for name, value in zip(net.param_names(), (w, b, v, c), strict=True):
        np.testing.assert_array_equal(found[name].to_numpy(), want[value].to_numpy())


def test_gradients_of_branches_are_those_of_autograd():
    """Of the same operations on one tape."""
    net, x, dy = branched(), batch(2, 3, 12, 12), batch(2, 4, seed=4)
    net.layers[7].p = 0.0  # dropout
    y = net.forward(True, x)
    found = told(net, dy)
    params = net.param_values()
    w, b, gamma, beta, _, _, side, v, c = params
    handle = autograd.BatchNormHandle(0.9)
    with autograd._training_scope(True):
        z = autograd.conv(x, w.reshape((4, 3, 3, 3)), b, 1, 1)
        z = autograd.batchnorm_2d(handle, z, gamma, beta, tensor.zeros((4,)), tensor.ones((4,)))
        z = autograd.relu(z)
        z = autograd.conv(z, side.reshape((4, 4, 3, 3)), None, 1, 1) + z
        z = autograd.reshape(autograd.max_pool(z, 2, 2), (2, 144))
        z = autograd.matmul(z, v) + c
        want = autograd.gradients(z, dy)
    np.testing.assert_array_equal(y.to_numpy(), z.to_numpy())
    for name, value in zip(net.param_names(), params, strict=True):
        if value.stores_grad:
            got = found[name].to_numpy()
            np.testing.assert_allclose(got, want[value].to_numpy(), rtol=1e-5, atol=1e-6)
        else:
            assert name in ("bn/mean", "bn/var") and found[name].is_empty()


def test_gradients_come_layer_by_layer_and_parameters_may_change_at_once():
    net, x, dy = perceptron(), batch(4, 6), batch(4, 3, seed=4)
    net.forward(True, x)
    want = told(net, dy)
    net.forward(True, x)
    pairs, found = net.backward(dy), {}
    for names, values, grads, _ in pairs:
        found.update(zip(names, grads, strict=True))
        for value in values:
            value.set_value(0)  # of no effect on the layers before
    for name, grad in want.items():
        np.testing.assert_array_equal(found[name].to_numpy(), grad.to_numpy())


def test_what_a_layer_kept_is_for_one_backward():
    net, x, dy = perceptron(), batch(4, 6), batch(4, 3)
    net.forward(True, x)
    told(net, dy)
    with pytest.raises(GraphError, match="Dense 'out': backward: call forward in training first"):
        told(net, dy)
    net.forward(True, x)
    net.forward(False, x)
    with pytest.raises(GraphError, match="Dense 'out': backward: call forward"):
        told(net, dy)


def test_a_change_between_forward_and_backward_is_noticed():
    net, x, dy = perceptron(), batch(4, 6), batch(4, 3)
    net.forward(True, x)
    net.param_values()[2].set_value(1)
    with pytest.raises(GraphError, match="changed in place"):
        told(net, dy)


def test_freeze_leaves_out_what_is_before():
    net, x, dy = branched(), batch(2, 3, 12, 12), batch(2, 4)
    means = net.param_values()[4].to_numpy()
    net.forward(True, x, freeze="pool")
    np.testing.assert_array_equal(net.param_values()[4].to_numpy(), means)  # in evaluation
    rows = list(net.backward(dy, freeze="pool"))
    assert [name for names, *_ in rows for name in names] == ["dense/weight", "dense/bias"]
    assert len(rows) == 4
    with pytest.raises(ValueError, match="forward: freeze: got 'none'"):
        net.forward(True, x, freeze="none")


def test_the_gradient_of_the_input_is_told_when_asked_for():
    net, x, dy = perceptron(), batch(4, 6), batch(4, 3)
    net.forward(True, x)
    rows = list(net.backward(dy, output=["hidden"]))
    assert rows[-1][3]["hidden"].shape == (4, 6)
    net.forward(True, x)
    assert list(net.backward(dy))[-1][3] == {}
    first = net.layers[0]
    assert first.backward(True, first.forward(True, x))[0].shape == (4, 6)  # by itself


class Doubled(layer.Layer):
    """A layer as programs write it, without a tape."""

    def __init__(self, name, shape):
        super().__init__(name)
        self.shape, self.calls = shape, []
        self.has_setup = True

    def get_output_sample_shape(self):
        return self.shape

    def forward(self, flag, x):
        self.calls.append(flag)
        return x * 2

    def backward(self, flag, dy):
        return dy * 2, []


def test_layers_of_a_program():
    net = FeedForwardNet()
    net.add(layer.Dense("first", 3, input_sample_shape=(2,)))
    own = net.add(Doubled("own", (3,)))
    net.add(layer.Dense("last", 2))
    filled(net)
    x, dy = batch(4, 2), batch(4, 2, seed=5)
    net.forward(True, x)
    found = told(net, dy)
    last = net.param_values()[2].to_numpy()
    want = x.to_numpy().T @ (2 * dy.to_numpy() @ last.T)
    np.testing.assert_allclose(found["first/weight"].to_numpy(), want, rtol=1e-5, atol=1e-6)
    assert own.calls == [True]


# ---- memory --------------------------------------------------------------------------------------


def wide(layers_: int = 8, width: int = 256) -> FeedForwardNet:
    net = FeedForwardNet(loss.SquaredError())
    for i in range(layers_):
        net.add(layer.Dense(f"fc{i}", width, input_sample_shape=(width,) if not i else None))
    return filled(net)


def peak_of(step) -> int:
    """The peak of what a step takes besides what is there before."""
    dev = device.get_default_device()
    step()  # kernels are made
    gc.collect()
    dev.reset_peak()
    before = dev.memory()["allocated"]
    step()
    return dev.memory()["peak"] - before


def test_gradients_let_go_layer_by_layer_take_the_memory_of_one_layer():
    net, x, dy = wide(), batch(2, 256), batch(2, 256, seed=4)
    size = net.param_values()[0].nbytes

    def layer_by_layer():
        net.forward(True, x)
        for _, _, grads, _ in net.backward(dy):
            del grads

    def collected():
        net.forward(True, x)
        return [told[2] for told in net.backward(dy)]

    assert peak_of(collected) >= 8 * size
    assert peak_of(layer_by_layer) < 3 * size


def test_forward_keeps_only_what_gradients_need():
    net, x = FeedForwardNet(), batch(8, 4, 32, 32)
    net.add(layer.Conv2D("conv", 4, 3, input_sample_shape=(4, 32, 32)))
    net.add(layer.Activation("relu"))
    net.add(layer.Activation("relu2"))
    filled(net)
    dev = device.get_default_device()
    gc.collect()
    before = dev.memory()["allocated"]
    y = net.forward(True, x)
    # The results of both rectifiers: neither that of the convolution, nor one of them twice.
    assert dev.memory()["allocated"] - before <= 2 * y.nbytes + 4096
    told(net, tensor.ones_like(y))
    del y
    assert dev.memory()["allocated"] - before <= 4096


def test_a_flag_is_a_phase():
    net, x = branched(), batch(2, 3, 12, 12)
    a = net.forward(kTrain, x)
    assert net.layers[0]._stretch is not None
    b = net.forward(kEval, x)
    assert net.layers[0]._stretch is None
    assert not np.array_equal(a.to_numpy(), b.to_numpy())
