"""What is read from ONNX of shapes and positions, beyond onnx's own suite."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import agrees, model, one, real, replays, run, slopes
from singa_rs import sonnx
from singa_rs.errors import GraphError
from singa_rs.tensor import Tensor, to_numpy

X = real(3, 4, 5)
I64 = np.int64


def wide(*shape):
    return real(*shape).astype(np.float64)


def ints(*values):
    return np.array(values, I64)


@pytest.mark.parametrize(
    ("op", "xs", "attributes"),
    [
        ("Slice", [X], {"starts": [1, -9], "ends": [99, -1], "axes": [0, 2], "opset": 9}),
        ("Slice", [X, ints(-9), ints(-8), ints(1), ints(-1)], {}),
        ("Squeeze", [X[:, :1]], {"axes": [-2], "opset": 11}),
        ("Unsqueeze", [X], {"axes": [0, 4], "opset": 11}),
        ("Split", [X], {"axis": -1, "split": [2, 3], "outputs": 2, "opset": 11}),
        ("Split", [X], {"axis": 2, "outputs": 3, "num_outputs": 3}),
        ("Pad", [X], {"pads": [0, 1, 2, 1, -2, 0], "value": 3.0, "opset": 10}),
        ("Pad", [X, ints(1, 2), None, ints(-1)], {"mode": "reflect"}),
        ("Pad", [X, ints(0, -1, 1, 1, 2, -1)], {"mode": "edge"}),
        ("TopK", [X], {"k": 2, "axis": 1, "outputs": 2, "opset": 9}),
        ("Scatter", [X, ints([[[2]]], [[[0]]])[0], X[:1, :1, :1]], {"axis": 1, "opset": 9}),
        ("GatherElements", [X, ints(3, -4).reshape(1, 2, 1)], {"axis": 1}),
        ("CenterCropPad", [X, ints(2, 9)], {"axes": [0, -1], "opset": 18}),
    ],
)
def test_old_opsets_and_edges(op, xs, attributes):
    agrees(op, *xs, **attributes)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int16, np.uint64])
def test_types_that_are_only_stored(dtype):
    x = np.array([[5, 1], [1, 9]], dtype)
    values, places = run("TopK", x, ints(1), axis=1, outputs=2)
    assert values.dtype == dtype and values.ravel().tolist() == [5, 9]
    assert places.ravel().tolist() == [0, 1]
    at, more = ints(1, 0)[:, None], np.array([[7], [7]], dtype)
    found = run("ScatterElements", x, at, more, axis=1, reduction="add")
    assert found.dtype == dtype and found.tolist() == [[5, 8], [8, 9]]


def test_extremes_beyond_int64():
    x, more = np.array([3, 2**63 + 1], np.uint64), np.array([2**64 - 1, 7], np.uint64)
    found = run("ScatterElements", x, ints(0, 1), more, reduction="max")
    np.testing.assert_array_equal(found, np.maximum(x, more))
    np.testing.assert_array_equal(run("TopK", x, ints(1), outputs=2)[0], [2**63 + 1])


@pytest.mark.parametrize(
    ("op", "xs", "attributes"),
    [
        ("Pad", [wide(2, 3), ints(1, -1, 0, 2)], {}),
        ("Pad", [wide(2, 3), ints(1, 2, 0, 1)], {"mode": "wrap"}),
        ("GatherElements", [wide(2, 3), ints([2, 2])], {"axis": 1}),
        ("ScatterElements", [wide(3), ints(1, 1), wide(2)], {"reduction": "mul"}),
        ("TensorScatter", [wide(2, 4, 2), wide(2, 3, 2), ints(0, 3)], {"mode": "circular"}),
        ("ReverseSequence", [wide(3, 2), ints(2, 3)], {}),
        ("Compress", [wide(3, 2), np.array([True, False, True])], {"axis": 0}),
        ("TopK", [wide(2, 4), ints(2)], {"outputs": 2}),
        ("CenterCropPad", [wide(2, 4), ints(3, 2)], {}),
    ],
)
def test_gradients(op, xs, attributes):
    slopes(op, *xs, opset=24, **attributes)


def test_a_model_of_shapes_replays():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Concat", ["n", "minus"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["flat"]),
        helper.make_node("ConstantOfShape", ["s"], ["none"]),
        helper.make_node("Add", ["x", "none"], ["same"]),
        helper.make_node("Range", ["from", "until", "by"], ["places"]),
        helper.make_node("Gather", ["flat", "places"], ["some"], axis=1),
    ]
    known = {"zero": ints(0), "minus": ints(-1), "from": np.array(1), "until": np.array(9)}
    known["by"] = np.array(3)
    replays(model(nodes, {"x": X}, ["some", "same"], known), X)


def test_sizes_that_depend_on_values_are_read_each_time():
    rep = sonnx.prepare(one("NonZero", [X]))
    for x in (X > 0, X > 1, X > 2, X > 0):
        found = rep.run([x.astype(np.float32)])[0]
        np.testing.assert_array_equal(found, np.stack(np.nonzero(x)))


def test_places_in_a_scalar():
    constant = helper.make_node("Constant", [], ["x"], value_int=3)
    node = helper.make_node("NonZero", ["x"], ["y"])
    for proto, given in (
        (one("NonZero", [np.float32(3)]), [np.float32(3)]),
        (model([constant, node], {}, ["y"]), []),
    ):
        assert sonnx.prepare(proto).run(given)[0].shape == (0, 1)


def test_ranges_of_integers_that_are_only_stored():
    i, more = ([np.int16(n) for n in of] for of in ((1, 7, 1), (-3, 2, 1)))
    rep = sonnx.prepare(one("Range", i))
    for given in (i, i, i, more):
        (got,) = rep.run(given)
        assert got.dtype == np.int16 and got.tolist() == list(range(given[0], given[1]))


def test_sizes_that_depend_on_values_are_not_recorded_in_training():
    net = sonnx.SONNXModel(one("NonZero", [X]))
    with pytest.raises(GraphError, match="argwhere: the size of the result depends on values"):
        net.compile([Tensor(data=X)], is_train=True, use_graph=True)


def test_zeros_keep_extents_or_are_extents():
    assert run("Reshape", X[:, :0], ints(0, 0, 7), allowzero=1).shape == (0, 0, 7)
    assert run("Reshape", X[:0], ints(0, -1)).shape == (0, 20)
    (y,) = sonnx.SONNXModel(one("Reshape", [X, ints(0, -1)])).forward(
        Tensor(data=X), Tensor(data=ints(0, -1), dtype="int64")
    )
    np.testing.assert_array_equal(to_numpy(y), X.reshape(3, -1))


@pytest.mark.parametrize(
    ("op", "xs", "attributes", "want"),
    [
        ("Reshape", [X, ints(7, -1)], {}, r"Reshape: got \(7, -1\) for shape \(3, 4, 5\)"),
        ("Reshape", [X, ints(-1, -1)], {}, r"Reshape: got \[-1, -1\], want .* one -1 at most"),
        ("Reshape", [X, ints(0, -1)], {"allowzero": 1}, "Reshape: .*not beside a 0"),
        ("Tile", [X, ints(2)], {}, r"Tile: got repeats \(2,\) for shape"),
        ("GatherElements", [X, ints([[[9]]])[0]], {"axis": 0}, "take_along_axis: .*index 9"),
        ("GatherElements", [X[:1], ints(0, 0)[:, None, None]], {"axis": 1}, "GatherElements: got"),
        ("TensorScatter", [X, X, ints(1)], {"axis": 0}, "TensorScatter: got axis 0"),
        ("TensorScatter", [X, X, ints(1, 0, 0)], {"opset": 24}, "scatter: .*index"),
        ("ScatterND", [X, ints([0]), X[0]], {"reduction": "mean"}, "scatter_nd: got reduction"),
    ],
)
def test_refusals_name_the_operator(op, xs, attributes, want):
    attributes = {"opset": 24, **attributes}
    with pytest.raises(ValueError, match=want):
        run(op, *xs, **attributes)
