"""Operators in dtypes, and of mixed dtypes, that few models have."""

import numpy as np
import pytest
from onnx import AttributeProto, helper
from onnx_models import agrees, model, needs, real, run, there
from singa_rs import sonnx

STORED = ("int16", "uint16", "uint32", "uint64")
MOST = 2**64 - 1


@pytest.mark.parametrize("kind", STORED)
def test_elements_that_are_only_stored_are_written(kind):
    x = np.arange(3, 9, dtype=kind)
    x[0] = np.iinfo(kind).max
    indices, updates = np.array([1, -2]), np.array([np.iinfo(kind).max, 7], kind)
    agrees("ScatterElements", x, indices, updates)


@pytest.mark.parametrize("reduction", ["add", "mul"])
def test_bools_are_joined(reduction):
    x, i, u = np.array([0, 0, 1, 1], bool), np.array([0, 2]), np.array([1, 0], bool)
    agrees("ScatterElements", x, i, u, reduction=reduction)
    agrees("ScatterND", x, i[:, None], u, reduction=reduction)


@pytest.mark.parametrize("kind", STORED)
def test_windows_of_integers_are_added(kind):
    columns = np.arange(1, 9, dtype=kind).reshape(1, 2, 4)
    got = run("Col2Im", columns, np.array([1, 5]), np.array([1, 2]))
    assert got.dtype == kind
    np.testing.assert_array_equal(got, np.array([[[[1, 2 + 5, 3 + 6, 4 + 7, 8]]]], kind))


@pytest.mark.parametrize(("op", "want"), [("ReduceMin", MOST), ("ReduceMax", 0)])
def test_extremes_of_no_elements(op, want):
    got = run(op, np.zeros((2, 0), np.uint64), np.array([1]), keepdims=0)
    assert got.dtype == np.uint64 and got.tolist() == [want, want]


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceLogSumExp", "ReduceL2"])
@pytest.mark.parametrize("opset", [7, 11])
def test_an_empty_attribute_of_axes_means_all(op, opset):
    x = real(2, 3)
    node = helper.make_node(op, ["x"], ["y"])
    node.attribute.append(helper.make_attribute("axes", [], attr_type=AttributeProto.INTS))
    proto = model([node], {"x": x}, ["y"], opset=opset)
    (got,), (want,) = sonnx.prepare(proto).run([x]), there(proto, [x])
    assert got.shape == want.shape == (1, 1)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@needs(23)
@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("settings", [{}, {"is_causal": 1}, {"is_causal": 1, "softcap": 2.0}])
def test_masks_of_integers_are_added_to_the_scores(kind, settings):
    q, k, v = (real(1, 2, 4, 8, seed=i) for i in range(3))
    mask = np.arange(16).reshape(4, 4) % 3
    got, want = (
        run("Attention", q, k, v, mask.astype(one), opset=23, **settings)
        for one in (kind, "float32")
    )
    np.testing.assert_allclose(got, want, rtol=1e-6)


@needs(23)
@pytest.mark.parametrize("settings", [{}, {"softcap": 2.0}])
def test_attention_has_the_dtype_of_its_queries(settings):
    q, k = (real(1, 2, 4, 8, seed=i).astype(np.float16) for i in range(2))
    got = run("Attention", q, k, real(1, 2, 4, 8, seed=2), opset=23, **settings)
    assert got.dtype == np.float16


def test_elements_of_a_grid_keep_their_dtype():
    x = np.arange(16, dtype=np.int32).reshape(1, 1, 4, 4)
    grid = np.array([[[[-0.75, -0.75], [0.75, -0.75], [0.0, 0.25]]]], np.float32)
    got = run("GridSample", x, grid, opset=20)
    want = run("GridSample", x.astype(np.float32), grid, opset=20)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, want.astype(np.int32))


@needs(23)
def test_root_mean_squares_have_the_dtype_of_the_scale():
    x, scale = real(2, 3, 4), real(4, seed=1)
    want = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    got = run("RMSNormalization", x.astype(np.float16), scale, opset=23)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want * scale, atol=5e-3)
    got = run("RMSNormalization", x, scale.astype(np.float16), opset=23)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, want * scale, atol=5e-3)


def test_shrunk_integers_are_rounded():
    """Where the mean of several is taken."""
    x = np.arange(32, dtype=np.uint8).reshape(1, 1, 4, 8) * 3
    scales = np.array([1, 1, 0.5, 0.5], np.float32)
    got = run("Resize", x, None, scales, mode="linear", antialias=1, opset=18)
    want = run("Resize", x.astype(np.float32), None, scales, mode="linear", antialias=1, opset=18)
    np.testing.assert_array_equal(got, np.floor(want + 0.5).astype(np.uint8))


def test_strings_that_match():
    x = np.array([["a1", "b"], ["", "a"]], object)
    got = run("RegexFullMatch", x, pattern=r"a\d?", opset=20)
    np.testing.assert_array_equal(got, [[True, False], [False, True]])
    assert got.dtype == bool
    with pytest.raises(ValueError, match=r"RegexFullMatch: got pattern '\('"):
        run("RegexFullMatch", x, pattern="(", opset=20)


@pytest.mark.parametrize("kind", STORED)
def test_elements_that_are_only_stored_are_chosen_where_a_graph_computes(kind):
    """What is recorded and replayed makes one operation of the comparison and the choice."""
    a, b = np.array([1, 5, 3], np.int32), np.array([2, 2, 3], np.int32)
    x, y = np.array([1, 2, 3], kind), np.array([7, np.iinfo(kind).max, 9], kind)
    nodes = [
        helper.make_node("Less", ["a", "b"], ["c"]),
        helper.make_node("Where", ["c", "x", "y"], ["z"]),
    ]
    net = sonnx.prepare(model(nodes, {"a": a, "b": b, "x": x, "y": y}, ["z"]))
    for _ in range(3):
        (z,) = net.run([a, b, x, y])
        assert z.dtype == kind
        np.testing.assert_array_equal(z, np.where(a < b, x, y))


@pytest.mark.parametrize("kind", STORED)
def test_one_hot_of_constants(kind):
    nodes = [helper.make_node("OneHot", ["i", "n", "v"], ["y"])]
    values = np.array([3, np.iinfo(kind).max], kind)
    constants = {"i": np.array([0, 2]), "n": np.array(3), "v": values}
    (y,) = sonnx.prepare(model(nodes, {}, ["y"], constants)).run([])
    np.testing.assert_array_equal(y, np.where(np.eye(3)[[0, 2]] > 0, values[1], values[0]))


@pytest.mark.parametrize(("opset", "kind"), [(7, "float32"), (9, "float32"), (10, "bool")])
def test_what_dropout_keeps(opset, kind):
    x = real(3, 4)
    y, kept = run("Dropout", x, outputs=2, opset=opset, ratio=0.3)
    np.testing.assert_array_equal(y, x)
    assert kept.dtype == kind and kept.all()


@pytest.mark.parametrize(("stash", "kind"), [(1, "float32"), (16, "bfloat16")])
@pytest.mark.parametrize("of", ["float64", "float32", "float16"])
def test_statistics_of_rows_have_the_type_that_is_asked_for(of, stash, kind):
    x = real(3, 8).astype(of)
    y, mean, inverse = run("LayerNormalization", x, x[0], outputs=3, stash_type=stash)
    assert (y.dtype, mean.dtype.name, inverse.dtype.name) == (of, kind, kind)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean.astype(float)[:, 0], wide.mean(1), atol=5e-3)
    np.testing.assert_allclose(inverse.astype(float)[:, 0], wide.std(1) ** -1, rtol=1e-2)


def test_weights_keep_their_dtype_when_the_rate_has_another():
    rate, count = np.array(0.1), np.array(0)
    x, g, h = (real(3, seed=i) for i in range(3))
    options = {"domain": "ai.onnx.preview.training", "epsilon": 1e-3}
    made = run("Adagrad", rate, count, x, g, h * h, outputs=2, **options)
    want = run("Adagrad", rate.astype(np.float32), count, x, g, h * h, outputs=2, **options)
    for a, b in zip(made, want, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_array_equal(a, b)
