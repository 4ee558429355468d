"""Positions that are sorted, written and padded on the host: onnxruntime finds the same ones."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import model, one, run, there
from singa_rs import sonnx
from singa_rs.sonnx import folding


def agrees(op, *xs, outputs=1, opset=18, **attributes):
    """Asserts that a node of constants, which is folded, gives what onnxruntime gives."""
    names, found = [f"x{i}" for i in range(len(xs))], [f"y{i}" for i in range(outputs)]
    xs = [np.asarray(x) for x in xs]
    node = helper.make_node(op, names, found, **attributes)
    folded = model([node], {}, found, dict(zip(names, xs, strict=True)), opset=opset)
    want = there(one(op, xs, outputs=outputs, opset=opset, **attributes), xs)
    for a, b in zip(sonnx.prepare(folded).run([]), want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


@pytest.fixture(params=range(3))
def rng(request, monkeypatch):
    """Random numbers; onnx's reference is not asked."""
    monkeypatch.setattr(folding, "_referred", None)
    return np.random.default_rng(request.param)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_of_equal_elements_the_first_is_taken(rng, largest, axis):
    x = rng.integers(0, 4, (7, 33))
    for k in (0, 3, x.shape[axis]):
        agrees("TopK", x, [k], outputs=2, axis=axis, largest=largest)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, -1])
def test_updates_of_elements(rng, reduction, axis):
    x, updates = rng.integers(-9, 9, (4, 6)), rng.integers(-9, 9, (4, 3))
    indices = rng.integers(-4, 4, (4, 3))
    if reduction == "none":  # of which onnxruntime may take any
        indices = np.argsort(rng.random((4, 4)), axis=0)[:, :3]
        indices = indices if axis == 0 else np.argsort(rng.random((4, 4)), axis=1)[:, :3] - 6
    agrees("ScatterElements", x, indices, updates, axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_updates_of_slices(rng, reduction):
    x, updates = rng.integers(-9, 9, (6, 3)), rng.integers(-9, 9, (4, 3))
    indices = rng.permutation(6)[:4, None] if reduction == "none" else rng.integers(-6, 6, (4, 1))
    agrees("ScatterND", x, indices, updates, reduction=reduction)


@pytest.mark.parametrize("settings", [{}, {"axis": 0}, {"axis": 1}])
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_distinct_elements(rng, settings, is_sorted):
    x = rng.integers(0, 3, (5, 2))
    agrees("Unique", x, outputs=4, sorted=is_sorted, **settings)


def test_distinct_strings():
    values, first, inverse, counts = run(
        "Unique", np.array(["b", "a", "b"], object), outputs=4, sorted=0
    )
    assert list(values) == ["b", "a"]
    assert [list(one) for one in (first, inverse, counts)] == [[0, 1], [0, 1, 0], [2, 1]]


def test_padding(rng):
    x = rng.integers(-9, 9, (3, 5))
    agrees("Pad", x, [1, 2, 0, 3], 7)
    agrees("Pad", x, [1, -2, 0, -1])
    agrees("Pad", x, [1, 2, 2, 3], mode="reflect")
    agrees("Pad", x, [1, 2, 2, 3], mode="edge")
    constants = {"x": x, "p": np.array([2, 1]), "v": np.array(7), "a": np.array([-1])}
    node = helper.make_node("Pad", list(constants), ["y"])
    (y,) = sonnx.prepare(model([node], {}, ["y"], constants)).run([])
    np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (2, 1)), constant_values=7))


def test_one_number_may_be_a_list_of_it():
    agrees("CumSum", np.arange(4), np.array([0]))
    agrees("OneHot", np.array([1, 2]), np.array([4]), np.array([0, 1]))


def test_what_does_not_fit_is_refused():
    x, at = np.arange(4), np.array([1])
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="mean")
    with pytest.raises(ValueError, match="ScatterElements: got reduction .mean., want one of none"):
        sonnx.prepare(model([node], {}, ["y"], {"x": x, "i": at, "u": at})).run([])
    with pytest.raises(ValueError, match="TopK: got k 5 for 4 elements, want at most as many"):
        node = helper.make_node("TopK", ["x", "k"], ["y", "i"])
        sonnx.prepare(model([node], {}, ["y"], {"x": x, "k": np.array([5])})).run([])
