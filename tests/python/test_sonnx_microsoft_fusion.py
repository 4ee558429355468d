"""What onnxruntime's optimizer joins: activations, products, convolutions, normalised sums."""

import numpy as np
import pytest
from microsoft_models import agrees, theirs
from onnx_models import real, replays
from singa_rs import sonnx

X, ROW = real(2, 5, 8), real(8)
IDS, KINDS = (np.random.default_rng(1).integers(0, n, (2, 5), np.int32) for n in (11, 2))
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
TABLES = real(11, 8), real(7, 8), real(2, 8)


def test_activations():
    agrees("Gelu", X)
    agrees("BiasGelu", X, ROW)
    agrees("FastGelu", X)
    agrees("FastGelu", X, ROW)
    agrees("QuickGelu", X)
    agrees("QuickGelu", X, alpha=0.7)


def test_a_bias_and_what_is_skipped():
    xs = X, ROW, real(2, 5, 8, seed=1)  # onnxruntime has no kernel for processors
    (got,) = sonnx.prepare(theirs("BiasAdd", xs)).run(xs)
    np.testing.assert_allclose(got, sum(xs), 1e-6)


@pytest.mark.parametrize("op", ["FusedMatMul", "TransposeMatMul"])
@pytest.mark.parametrize(("a", "b"), [((4, 6), (6, 3)), ((2, 3, 4, 6), (3, 6, 5)), ((6,), (6, 3))])
def test_products(op, a, b):
    a, b = real(*a), real(*b)
    agrees(op, a, b, alpha=0.25)
    turned = [np.ascontiguousarray(x.swapaxes(-1, -2)) if x.ndim > 1 else x for x in (a, b)]
    agrees(op, *turned, transA=1, transB=1)
    agrees(op, a, turned[1], transB=1, alpha=-3.0)


@pytest.mark.parametrize(("turn_a", "turn_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_products_of_rows_that_stand_first(turn_a, turn_b):
    a = real(6, 2, 3, 4) if turn_a else real(4, 2, 3, 6)
    b = real(5, 2, 3, 6) if turn_b else real(6, 2, 3, 5)
    both = {"transBatchA": 1, "transBatchB": 1}
    agrees("FusedMatMul", a, b, transA=turn_a, transB=turn_b, alpha=0.5, **both)
    flat = np.moveaxis(b, 0, 2)
    agrees("FusedMatMul", a, flat, transA=turn_a, transB=turn_b, transBatchA=1)


ACTIVATIONS = {
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "LeakyRelu": {"alpha": 0.3},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_convolutions(name):
    x, w, z = real(2, 4, 6, 7), real(6, 2, 3, 3), real(2, 6, 3, 7)
    params = list(ACTIVATIONS[name].values())
    settings = {"activation": name, "group": 2, "strides": [2, 1], "pads": [1, 1, 1, 1]}
    settings |= {"activation_params": params} if params else {}
    agrees("FusedConv", x, w, real(6), z, **settings)
    agrees("FusedConv", x, w, None, z, **settings)
    agrees("FusedConv", x, w, real(6), **settings)


def test_other_activations():
    x, w = real(2, 4, 6, 7), real(6, 4, 3, 3)
    agrees("FusedConv", x, w, activation="Clip", activation_params=[-0.5, 1.5])
    agrees("FusedConv", x, w)
    a, b, c = real(4, 6), real(3, 6), real(3)
    named = {"activation_alpha": 1.5, "activation_gamma": 0.5}
    agrees("FusedGemm", a, b, c, transB=1, activation="Selu", **named)
    for name in ("Elu", "ThresholdedRelu"):
        agrees("FusedGemm", a, b, c, transB=1, activation=name, activation_alpha=0.7)
    for name in ("Softplus", "Softsign"):
        agrees("FusedGemm", a, b, c, transB=1, activation=name)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_products(name):
    a, b, c = real(4, 6), real(3, 6), real(3)
    named = {f"activation_{k}": v for k, v in ACTIVATIONS[name].items()}
    settings = {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": name, **named}
    agrees("FusedGemm", a, b, c, **settings)
    agrees("FusedGemm", a, b, **settings)


def test_activations_that_are_refused():
    xs = real(4, 6), real(6, 3)
    with pytest.raises(NotImplementedError, match="FusedGemm: got activation 'Sin', want one of"):
        sonnx.prepare(theirs("FusedGemm", xs, activation="Sin")).run(xs)
    with pytest.raises(ValueError, match="FusedGemm: got parameters none of activation 'Elu'"):
        sonnx.prepare(theirs("FusedGemm", xs, activation="Elu")).run(xs)
    with pytest.raises(ValueError, match=r"FusedConv: got activation_params \(\), want 2 for 'Cl"):
        images = real(1, 2, 4, 4), real(3, 2, 3, 3)
        sonnx.prepare(theirs("FusedConv", images, activation="Clip")).run(images)


# ---- normalised sums -----------------------------------------------------------------------------

SUMS = {"outputs": 4, "unnamed": (1, 2)}


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_sums(kind):
    x, skip, gamma, beta, bias = (
        x.astype(kind) for x in (X, real(2, 5, 8, seed=1), ROW, real(8, seed=1), real(8, seed=2))
    )
    near = {"rtol": 1e-2, "atol": 1e-2} if kind == np.float16 else {}
    for rest in ([], [beta], [beta, bias], [None, bias]):
        agrees("SkipLayerNormalization", x, skip, gamma, *rest, epsilon=1e-3, **SUMS, **near)
    for other in (skip[:1], skip[0]):
        agrees("SkipLayerNormalization", x, other, gamma, beta, **near)
    for rest in ([], [bias]):
        agrees("SkipSimplifiedLayerNormalization", x, skip, gamma, *rest, **SUMS, **near)
    simple = {"domain": "", **near}
    agrees("SimplifiedLayerNormalization", x, gamma, epsilon=1e-3, **simple)
    agrees("SimplifiedLayerNormalization", x, real(5, 8).astype(kind), axis=1, **simple)


def test_means_are_refused():
    xs = X, X, ROW
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        with pytest.raises(NotImplementedError, match=f"{op}: got mean y1, want none"):
            sonnx.prepare(theirs(op, xs, outputs=2)).run(xs)


def test_embeddings():
    words, places, kinds = TABLES
    row = ROW, real(8, seed=1)
    op, at = "EmbedLayerNormalization", np.array([[3, 0, 2, 1, 6]], np.int32)
    agrees(op, IDS, KINDS, words, places, kinds, *row, MASK, outputs=2)
    agrees(op, IDS, None, words, places, None, *row, outputs=2, epsilon=1e-2)
    agrees(op, IDS, None, words, places, None, *row, MASK, outputs=3)
    for ids in (at, np.concatenate([at, at[:, ::-1]])):
        agrees(op, IDS, KINDS, words, places, kinds, *row, None, ids, outputs=2)


@pytest.mark.parametrize("mask", [None, MASK])
def test_quantised_embeddings(mask):
    rng = np.random.default_rng(2)
    five = [rng.integers(0, 256, x.shape, np.uint8) for x in (*TABLES, ROW, ROW)]
    scales = [np.float32(x) for x in (0.02, 0.03, 0.01, 0.05, 0.04)]
    zeros = [np.uint8(x) for x in (120, 90, 60, 3, 130)]
    given = [np.asarray(x) for x in (*five, *scales, *zeros)]
    op = "QEmbedLayerNormalization"
    agrees(op, IDS, KINDS, *given[:5], mask, *given[5:], outputs=2, atol=1e-4)
    for at in (2, 7, 12):
        given[at] = None
    agrees(op, IDS, None, *given[:5], mask, *given[5:], outputs=2, atol=1e-4)


def test_replays():
    replays(theirs("SkipLayerNormalization", (X, X[::-1].copy(), ROW), **SUMS), X, X, ROW)
    replays(theirs("FusedMatMul", (X, X), transB=1, alpha=0.5), X, X)
