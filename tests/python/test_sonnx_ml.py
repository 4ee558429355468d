"""Classical models and the preview domains, read from ONNX."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import agrees, model, one, real, replays, run
from singa_rs import sonnx

ML = {"domain": "ai.onnx.ml"}
X = real(7, 4)
ABSENT = np.where(np.abs(X) < 0.3, np.float32(np.nan), X)
TEXT = np.array([["a", "b"], ["zz", "c"]], object)


def floats(*shape):
    return real(*shape).ravel().tolist()


def grown(modes, trees=3, depth=3):
    """The nodes of random trees, and the names of their leaves."""
    rng, nodes = np.random.default_rng(1), []

    def grow(tree, left):
        number = sum(node[0] == tree for node in nodes)
        place = len(nodes)
        nodes.append((tree, number, 0, 0.0, "LEAF", 0, 0, 0))
        if left:
            split = float(np.float32(rng.standard_normal()))
            feature, mode = int(rng.integers(4)), str(rng.choice(modes))
            below = [nodes[grow(tree, left - 1)][1] for _ in range(2)]
            nodes[place] = (tree, number, feature, split, mode, *below, int(rng.integers(2)))
        return place

    for tree in range(trees):
        grow(tree, depth)
    names = (
        "treeids nodeids featureids values modes truenodeids falsenodeids missing_value_tracks_true"
    )
    columns = zip(*nodes, strict=True)
    made = {f"nodes_{name}": list(one) for name, one in zip(names.split(), columns, strict=True)}
    return made, [node[:2] for node in nodes if node[4] == "LEAF"]


def voting(leaves, count, kind):
    """Attributes by which each leaf votes for each target."""
    each = [leaf for leaf in leaves for _ in range(count)]
    made = {"treeids": [t for t, _ in each], "nodeids": [n for _, n in each]}
    made |= {"ids": list(range(count)) * len(leaves), "weights": floats(len(each))}
    return {f"{kind}_{name}": value for name, value in made.items()}


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(
    "modes", [["BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"], ["BRANCH_EQ", "BRANCH_LEQ"]]
)
def test_regression_trees(how, modes):
    nodes, leaves = grown(modes)
    votes = voting(leaves, 2, "target") | {"n_targets": 2, "aggregate_function": how}
    for x in (X, ABSENT):
        agrees("TreeEnsembleRegressor", x, **ML, **nodes, **votes, base_values=[0.5, -1.0])


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_classification_trees(transform):
    nodes, leaves = grown(["BRANCH_LEQ"])
    votes = voting(leaves, 3, "class")
    agrees(
        "TreeEnsembleClassifier", ABSENT, **ML, **nodes, **votes, outputs=2,
        classlabels_strings=["u", "v", "w"], post_transform=transform,
    )  # fmt: skip
    if transform != "SOFTMAX":  # which onnxruntime leaves out for two classes
        agrees(
            "TreeEnsembleClassifier", X, **ML, **nodes, **voting(leaves, 1, "class"), outputs=2,
            classlabels_int64s=[3, 8], post_transform=transform,
        )  # fmt: skip


def test_trees_replay_and_refuse_circles():
    nodes, leaves = grown(["BRANCH_LT"])
    votes = voting(leaves, 2, "target") | {"n_targets": 2}
    replays(one("TreeEnsembleRegressor", [X], **ML, **nodes, **votes), X)
    nodes["nodes_truenodeids"][0] = 0
    with pytest.raises(ValueError, match="TreeEnsembleRegressor: .* go round in circles"):
        run("TreeEnsembleRegressor", X, **ML, **nodes, **votes)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    shared = ML | {"kernel_type": kernel, "kernel_params": [0.4, 0.2, 3.0]}
    vectors = {"coefficients": floats(5), "support_vectors": floats(5, 4), "rho": [0.3]}
    agrees("SVMRegressor", X, **shared, **vectors, n_supports=5, rtol=1e-3)
    agrees("SVMRegressor", X, **shared, **vectors, n_supports=5, one_class=1)
    vectors = {"coefficients": floats(2, 6), "support_vectors": floats(6, 4), "rho": floats(3)}
    vectors |= {"vectors_per_class": [2, 3, 1], "classlabels_strings": ["u", "v", "w"]}
    agrees("SVMClassifier", X, **shared, **vectors, outputs=2, rtol=1e-3, atol=1e-4)
    odds = {"prob_a": floats(3), "prob_b": floats(3)}
    agrees("SVMClassifier", X, **shared, **vectors, **odds, outputs=2, rtol=1e-3, atol=1e-4)


def test_linear_models():
    weights = {"coefficients": floats(3, 4), "intercepts": floats(3)}
    agrees("LinearRegressor", X, **ML, **weights, targets=3)
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        settings = {"classlabels_strings": ["a", "b", "c"], "post_transform": transform}
        agrees("LinearClassifier", X, **ML, **weights, **settings, outputs=2)


def test_features():
    agrees("Scaler", X, **ML, offset=floats(4), scale=floats(4))
    agrees("Imputer", ABSENT, **ML, imputed_value_floats=floats(4), replaced_value_float=np.nan)
    agrees("FeatureVectorizer", X, X[:, :2], **ML, inputdimensions=[4, 2])
    agrees("ArrayFeatureExtractor", X, np.array([2, 0, 2]), **ML)
    for norm in ("L1", "L2"):
        agrees("Normalizer", X, **ML, norm=norm)
        agrees("Normalizer", np.zeros_like(X), **ML, norm=norm)


def test_labels():
    words = {"keys_strings": ["a", "b", "c"], "values_int64s": [5, 6, 2**40]}
    agrees("LabelEncoder", TEXT, **ML, **words, default_int64=-9)
    numbers = {"keys_int64s": [2, 2**40, 5], "values_strings": ["x", "y", "z"]}
    agrees("LabelEncoder", np.array([[5, 2**40, 0]]), **ML, **numbers)
    keys = {"keys_floats": [2.5, float("nan"), 1.0], "values_floats": [0.5, 0.25, 4.0]}
    got = run("LabelEncoder", np.array([1, np.nan, 3], np.float32), **ML, **keys)
    np.testing.assert_array_equal(got, np.array([4, 0.25, -0.0], np.float32))
    names = {"cats_strings": ["a", "b"], "cats_int64s": [1, 2]}
    agrees("CategoryMapper", TEXT, **ML, **names)
    agrees("CategoryMapper", np.array([[2, 7]]), **ML, **names, default_string="?")
    agrees("OneHotEncoder", TEXT, **ML, cats_strings=["a", "zz"])
    agrees("OneHotEncoder", np.array([3, 1, 9]), **ML, cats_int64s=[3, 2, 1])
    with pytest.raises(ValueError, match="OneHotEncoder: got an element that is in no category"):
        run("OneHotEncoder", np.array([3, 9]), **ML, cats_int64s=[3], zeros=0)


def test_maps():
    (rows,) = sonnx.prepare(one("ZipMap", [X[:2, :2]], **ML, classlabels_int64s=[4, 9])).run(
        [X[:2, :2]]
    )
    assert rows == [{4: float(a), 9: float(b)} for a, b in X[:2, :2]]
    words = helper.make_node(
        "DictVectorizer", ["x"], ["y"], **ML, string_vocabulary=["a", "c", "b"]
    )
    (made,) = sonnx.run_node(words, [{"a": 4, "b": 8}], opset_version=1)
    np.testing.assert_array_equal(made, [4, 0, 8])
    places = helper.make_node("CastMap", ["x"], ["y"], **ML, map_form="SPARSE", max_map=4)
    (made,) = sonnx.run_node(places, [{3: 0.5, 1: 2.0}], opset_version=1)
    np.testing.assert_array_equal(made, np.array([[0, 2, 0, 0.5]], np.float32))


def test_gradients_of_a_part_of_the_graph():
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("Sin", ["h"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["y"], keepdims=0),
        helper.make_node(
            "Gradient", ["x", "w"], ["dx", "dw"], xs=["x", "w"], y="y",
            domain="ai.onnx.preview.training",
        ),
    ]  # fmt: skip
    w = real(4)
    found = sonnx.prepare(model(nodes, {"x": X, "w": w}, ["dx", "dw"])).run([X, w])
    np.testing.assert_allclose(found[0], np.cos(X * w) * w, 1e-5, 1e-6)
    np.testing.assert_allclose(found[1], (np.cos(X * w) * X).sum(0), 1e-5, 1e-5)
