"""SINGA 1.x's layers by themselves: shapes, values, gradients, arguments."""

import copy
import pickle

import numpy as np
import pytest
from nets import batch
from singa_rs import autograd, tensor
from singa_rs.compat import layer
from singa_rs.compat.layer.base import sample_shape
from singa_rs.compat.proto.core_pb2 import kInt
from singa_rs.compat.proto.model_pb2 import PoolingConf, kEval, kTrain
from singa_rs.errors import GraphError, ShapeError

#: Name -> (layer, shape of a sample of its input, and of its output).
CASES = {
    "conv": (lambda s: layer.Conv2D("l", 4, 3, input_sample_shape=s), (3, 8, 7), (4, 8, 7)),
    "conv of odd padding": (
        lambda s: layer.Conv2D("l", 4, (2, 4), (1, 2), input_sample_shape=s), (3, 8, 7), (4, 8, 3),
    ),
    "conv, valid": (
        lambda s: layer.Conv2D("l", 4, 3, 2, "valid", input_sample_shape=s), (3, 8, 7), (4, 3, 3),
    ),
    "conv, pads": (
        lambda s: layer.Conv2D("l", 4, 3, pad=(0, 2), use_bias=False, input_sample_shape=s),
        (3, 8, 7), (4, 6, 9),
    ),
    "conv of series": (lambda s: layer.Conv1D("l", 4, 3, 2, input_sample_shape=s), (9,), (4, 4)),
    "conv of channels of series": (
        lambda s: layer.Conv1D("l", 4, 3, pad=1, input_sample_shape=s), (2, 9), (4, 9),
    ),
    "maxima": (lambda s: layer.MaxPooling2D("l", input_sample_shape=s), (3, 8, 7), (3, 4, 3)),
    "means": (
        lambda s: layer.AvgPooling2D("l", 3, 2, pad=1, input_sample_shape=s), (3, 8, 7), (3, 4, 4),
    ),
    "maxima of series": (lambda s: layer.MaxPooling1D("l", input_sample_shape=s), (9,), (4,)),
    "means of series": (
        lambda s: layer.AvgPooling1D("l", 2, 2, "valid", input_sample_shape=s), (3, 9), (3, 4),
    ),
    "batch": (lambda s: layer.BatchNormalization("l", input_sample_shape=s), (3, 4, 5), (3, 4, 5)),
    "batch of rows": (lambda s: layer.BatchNormalization("l", input_sample_shape=s), (3,), (3,)),
    "lrn": (lambda s: layer.LRN("l", 3, k=2, input_sample_shape=s), (5, 4, 3), (5, 4, 3)),
    "l2": (lambda s: layer.L2Norm("l", s), (3, 4), (3, 4)),
    "dense": (lambda s: layer.Dense("l", 4, input_sample_shape=s), (3,), (4,)),
    "dense, turned": (
        lambda s: layer.Dense("l", 4, W_transpose=True, input_sample_shape=s), (3,), (4,),
    ),
    "dense, no bias": (
        lambda s: layer.Dense("l", 4, use_bias=False, input_sample_shape=s), (3,), (4,),
    ),
    "relu": (lambda s: layer.Activation("l", input_sample_shape=s), (3, 2), (3, 2)),
    "sigmoid": (lambda s: layer.Activation("l", "Sigmoid", s), (3, 2), (3, 2)),
    "tanh": (lambda s: layer.Activation("l", "tanh", s), (3, 2), (3, 2)),
    "softmax": (lambda s: layer.Softmax("l", input_sample_shape=s), (3, 2), (3, 2)),
    "softmax of the last": (lambda s: layer.Softmax("l", 2, s), (3, 2), (3, 2)),
    "flatten": (lambda s: layer.Flatten("l", input_sample_shape=s), (3, 2, 2), (12,)),
    "no dropout": (lambda s: layer.Dropout("l", 0, s), (3, 2), (3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_gradients(name):
    """Gradients are those of central differences, along a random direction."""
    make, given, want = CASES[name]
    one, x = make(given), batch(3, *given)
    assert one.get_output_sample_shape() == want
    for value, seed in zip(one.param_values(), range(9), strict=False):
        if value.stores_grad:
            value.copy_from(batch(*value.shape, seed=seed) * 0.3 + 0.1)
    y = one.forward(kTrain, x)
    assert y.shape == (3, *want)
    dy = batch(*y.shape, seed=4)
    dx, grads = one.backward(kTrain, dy)
    pairs = [(x, dx), *zip(one.param_values(), grads, strict=True)]
    for to, grad in pairs:
        if grad.is_empty():
            assert not to.stores_grad
            continue
        assert grad.shape == to.shape
        way, start = batch(*to.shape, seed=5).to_numpy(), to.to_numpy()
        sides = []
        for step in (1e-3, -1e-3):
            to.copy_from_numpy(start + np.float32(step) * way)
            made = one.forward(True, x).to_numpy().astype(np.float64)
            sides.append((made * dy.to_numpy()).sum())
        to.copy_from_numpy(start)
        slope = (sides[0] - sides[1]) / 2e-3
        assert (grad.to_numpy() * way).sum() == pytest.approx(slope, rel=0.02, abs=0.02)


def test_values():
    x = batch(2, 3, 4, 4)
    pool = layer.AvgPooling2D("p", 3, 1, pad=1, input_sample_shape=(3, 4, 4))
    want = x.to_numpy()[:, :, :2, :2].sum((2, 3)) / 9  # padding counts
    np.testing.assert_allclose(pool.forward(False, x).to_numpy()[:, :, 0, 0], want, rtol=1e-5)
    norm = layer.L2Norm("n", (3, 4, 4)).forward(False, x).to_numpy()
    np.testing.assert_allclose((norm**2).sum((1, 2, 3)), 1, rtol=1e-5)
    soft = layer.Softmax("s", 2, (3, 4, 4)).forward(False, x).to_numpy()
    np.testing.assert_allclose(soft.sum((2, 3)), 1, rtol=1e-5)
    lrn = layer.LRN("l", 3, alpha=0.5, beta=0.75, k=2, input_sample_shape=(3, 4, 4))
    a = x.to_numpy().astype(np.float64)
    want = a[:, 1] / (2 + 0.5 / 3 * (a**2).sum(1)) ** 0.75
    np.testing.assert_allclose(lrn.forward(False, x).to_numpy()[:, 1], want, rtol=1e-5)
    assert layer.Flatten("f", 0, (3, 4, 4)).forward(False, x).shape == (96,)
    assert layer.Flatten("f", 3, (3, 4, 4)).forward(False, x).shape == (24, 4)


def test_a_series_may_be_an_image_of_one_row():
    conv = layer.Conv1D("c", 4, 3, input_sample_shape=(2, 9))
    x = batch(5, 2, 9)
    y = conv.forward(False, x.reshape((5, 2, 1, 9)))
    assert y.shape == (5, 4, 1, 9)
    np.testing.assert_array_equal(y.to_numpy()[:, :, 0], conv.forward(False, x).to_numpy())


def test_the_averages_of_a_batch_take_its_weight():
    bn = layer.BatchNormalization("b", 0.75, input_sample_shape=(3, 4, 4))
    x = batch(2, 3, 4, 4)
    bn.forward(True, x)
    mean, var = (value.to_numpy() for value in bn.param_values()[2:])
    a = x.to_numpy()
    np.testing.assert_allclose(mean, 0.75 * a.mean((0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(var, 0.25 + 0.75 * a.var((0, 2, 3), ddof=1), rtol=1e-5)
    y = bn.forward(kEval, x).to_numpy()
    want = (a - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_joints():
    x = batch(4, 6)
    a = x.to_numpy()
    parts = layer.Slice("s", 1, [1, 4], (6,))
    assert parts.get_output_sample_shape() == [(1,), (3,), (2,)]
    made = parts.forward(True, x)
    for one, want in zip(made, np.split(a, [1, 4], axis=1), strict=True):
        np.testing.assert_array_equal(one.to_numpy(), want)
    np.testing.assert_array_equal(parts.backward(True, made)[0].to_numpy(), a)
    rows = layer.Slice("s", 0, [3], (6,))
    assert rows.get_output_sample_shape() == [(6,)] * 2
    assert [one.shape for one in rows.forward(True, x)] == [(3, 6), (1, 6)]

    joined = layer.Concat("c", 2, [(2, 3), (2, 1)])
    assert joined.get_output_sample_shape() == (2, 4)
    y = joined.forward(True, [batch(5, 2, 3), batch(5, 2, 1)])
    back, none = joined.backward(True, y)
    assert [one.shape for one in back] == [(5, 2, 3), (5, 2, 1)] and none == []

    split = layer.Split("s", 3, (6,))
    assert all(one is x for one in split.forward(True, x))
    np.testing.assert_allclose(split.backward(True, [x] * 3)[0].to_numpy(), 3 * a, rtol=1e-6)
    merge = layer.Merge("m", (6,))
    np.testing.assert_allclose(merge.forward(True, [x] * 3).to_numpy(), 3 * a, rtol=1e-6)
    assert [one is x for one in merge.backward(True, x)[0]] == [True] * 3
    np.testing.assert_array_equal(x.to_numpy(), a)


@pytest.mark.parametrize(
    ("kind", "match", "call"),
    [
        (TypeError, "Dense: name: got 3", lambda: layer.Dense(3, 4)),
        (ValueError, "Dense 'd': num_output: got 0", lambda: layer.Dense("d", 0)),
        (ShapeError, r"Dense 'd': got a sample of \(3, 4\), want one axis; put a Flatten",
         lambda: layer.Dense("d", 2, input_sample_shape=(3, 4))),
        (ValueError, "Activation 'a': mode: got 'elu', want one of relu, sigmoid, tanh",
         lambda: layer.Activation("a", "elu")),
        (ValueError, "Dropout 'd': p: got 1", lambda: layer.Dropout("d", 1)),
        (ValueError, "Conv2D 'c': border_mode: got 'full'",
         lambda: layer.Conv2D("c", 2, border_mode="full")),
        (ValueError, "Conv2D 'c': data_format: got 'NHWC', want one of NCHW",
         lambda: layer.Conv2D("c", 2, data_format="NHWC")),
        (ShapeError, r"Conv2D 'c': got a sample of \(3, 2, 2\), want room for a window",
         lambda: layer.Conv2D("c", 2, 3, border_mode="VALID", input_sample_shape=(3, 2, 2))),
        (ShapeError, "MaxPooling2D 'p': got pads",
         lambda: layer.MaxPooling2D("p", 2, 2, pad=2, input_sample_shape=(3, 8, 8))),
        (ShapeError, "Conv1D 'c': got a sample of", lambda: layer.Conv1D(
            "c", 2, input_sample_shape=(3, 2, 2))),
        (ValueError, "LRN 'l': size: got 4, want an odd number", lambda: layer.LRN("l", 4)),
        (ShapeError, r"Merge 'm': got samples of \(3,\), \(4,\), want one shape",
         lambda: layer.Merge("m", [(3,), (4,)])),
        (ShapeError, "Concat 'c': got samples", lambda: layer.Concat("c", 1, [(3, 1), (4, 2)])),
        (ShapeError, "Slice 's': got a sample of", lambda: layer.Slice("s", 1, [3], (3,))),
        (ValueError, "Slice 's': slice_point: got", lambda: layer.Slice("s", 1, [3, 2], (9,))),
        (GraphError, "Dense 'd': forward: call setup",
         lambda: layer.Dense("d", 2).forward(True, batch(2, 2))),
        (GraphError, "Dense 'd': get_output_sample_shape: call setup",
         lambda: layer.Dense("d", 2).get_output_sample_shape()),
        (TypeError, "Dense 'd': forward: got list",
         lambda: layer.Dense("d", 2, input_sample_shape=(2,)).forward(True, [0, 0])),
        (GraphError, "Merge 'm': forward: got 1, want several",
         lambda: layer.Merge("m", (2,)).forward(True, [batch(2, 2)])),
        (GraphError, "Split 's': backward: got 1, want 2 gradients",
         lambda: layer.Split("s", 2, (2,)).backward(True, batch(2, 2))),
        (GraphError, "Concat 'c': backward: call forward first",
         lambda: layer.Concat("c", 1, [(2,), (3,)]).backward(True, batch(2, 5))),
        (ValueError, "weight specs: init 'gaussian' needs std",
         lambda: layer.Dense("d", 2, W_specs={"init": "gaussian", "mean": 0})),
        (ValueError, "bias specs: init: got 'zeros', want one of",
         lambda: layer.Dense("d", 2, b_specs={"init": "zeros"})),
        (TypeError, "weight specs: lr_mult: got 'a'",
         lambda: layer.Dense("d", 2, W_specs={"lr_mult": "a"})),
        (TypeError, "shape: got 3", lambda: sample_shape(3, "shape")),
    ],
)  # fmt: skip
def test_wrong_arguments_name_the_layer(kind, match, call):
    with pytest.raises(kind, match=match):
        call()


def test_specifications():
    specs = {"name": "own", "init": "Uniform", "low": 1, "high": 2, "lr_mult": 2, "clamp": 3}
    with pytest.warns(UserWarning, match="Dense 'd': weight specs: ignores clamp; knows name"):
        made = layer.Dense("d", 50, W_specs=specs, input_sample_shape=(20,))
    weight, bias = made.param_values()
    assert made.param_names() == ["own", "d/bias"] and weight.name == "own"
    assert 1 <= weight.to_numpy().min() < 1.1 < 1.9 < weight.to_numpy().max() < 2
    np.testing.assert_array_equal(bias.to_numpy(), 0)
    own, other = made.param_specs
    assert (own.lr_mult, own.decay_mult, other.lr_mult) == (2, 1, 1)
    assert (own.filler.type, own.filler.min, own.filler.max) == ("uniform", 1, 2)
    assert not own.HasField("regularizer") and not own.HasField("constraint")
    assert specs == {**specs, "name": "own"}
    drawn = layer.Dense("d", 300, input_sample_shape=(500,)).param_values()[0].to_numpy()
    assert abs(drawn).max() <= np.sqrt(6 / 800) and drawn.std() == pytest.approx(
        np.sqrt(2 / 800), rel=0.02
    )


def test_copies_have_what_a_layer_has_but_not_what_it_kept():
    one, x = layer.Dense("d", 2, input_sample_shape=(3,)), batch(4, 3)
    y = one.forward(True, x)
    for made in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(made.forward(False, x).to_numpy(), y.to_numpy())
        assert made.param_names() == one.param_names()
        assert not made.param_values()[0].shares_block(one.param_values()[0])
        with pytest.raises(GraphError):
            made.backward(True, y)
    assert one.backward(True, y)[0].shape == (4, 3)


def test_constants():
    assert (kTrain, kEval, PoolingConf.MAX, PoolingConf.AVE) == (4, 8, 0, 1)
    assert tensor.Tensor((2,), None, kInt).dtype == tensor.int32
    assert layer.engine == "singacpp"
    assert not autograd.training
