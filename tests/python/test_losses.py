"""Losses against NumPy in float64: values, gradients, dtypes, views, recordings, bad input."""

import itertools
import math

import margin_cases
import numpy as np
import pytest
from loss_cases import CASES, CROSS, LABELS, NLL, RNG, SHARES, SIGNS, WEIGHT, C, N, cosine, sample
from recorded import replays
from singa_rs import DTypeError, ShapeError, autograd, layer, module, opt, tensor
from singa_rs.tensor import from_numpy


def expected(case, arrays, reduction):
    made = case[3](*arrays)
    terms, total = made if isinstance(made, tuple) else (made, made.size)
    if reduction == "none":
        return terms
    return np.array([terms.sum() / (total if reduction == "mean" else 1)])


def taken(arrays, dtype="float64"):
    made = [from_numpy(np.array(a), dtype=dtype) for a in arrays]
    for x in made:
        x.stores_grad = True
    return made


each_case = pytest.mark.parametrize("name", CASES)
each_reduction = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


@each_case
@each_reduction
def test_values_and_gradients(name, reduction, training):
    case = CASES[name]
    arrays = sample(case[1], case[2])
    want = expected(case, arrays, reduction)
    inputs = taken(arrays)
    y = case[0](*inputs, reduction=reduction)
    assert y.shape == want.shape and y.dtype == tensor.float64
    np.testing.assert_allclose(y.to_numpy(), want, rtol=1e-6, atol=1e-9)
    weights = RNG.uniform(0.5, 1.5, want.shape)
    found = autograd.gradients((y * from_numpy(weights, dtype="float64")).sum())
    for i, x in enumerate(inputs):
        got, step = found[x].to_numpy(), 1e-6
        for place in [tuple(RNG.integers(0, n) for n in x.shape) for _ in range(6)]:
            sides = []
            for sign in (step, -step):
                moved = [a.copy() for a in arrays]
                moved[i][place] += sign
                sides.append((expected(case, moved, reduction) * weights).sum())
            want_slope = (sides[0] - sides[1]) / (2 * step)
            np.testing.assert_allclose(got[place], want_slope, rtol=1e-5, atol=1e-6)


@pytest.fixture
def training():
    autograd.training = True
    yield
    autograd.training = False


@each_case
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_shorter_floats(name, dtype):
    case = CASES[name]
    arrays = [from_numpy(a, dtype=dtype) for a in sample(case[1], case[2])]
    held = [a.as_type("float64").to_numpy() for a in arrays]
    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    for reduction in ("mean", "sum", "none"):
        y = case[0](*arrays, reduction=reduction)
        assert y.dtype == arrays[0].dtype
        got, want = y.as_type("float64").to_numpy(), expected(case, held, reduction)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@each_case
def test_views(name):
    case = CASES[name]
    arrays = sample(case[1], case[2])
    turned = [from_numpy(a.T.copy(), dtype="float64").transpose() for a in arrays]
    plain = [from_numpy(a, dtype="float64") for a in arrays]
    for reduction in ("mean", "none"):
        got, want = (case[0](*xs, reduction=reduction).to_numpy() for xs in (turned, plain))
        np.testing.assert_allclose(got, want, rtol=1e-12)


class Trained(module.Module):
    """Learns a loss's inputs."""

    def __init__(self, case, arrays):
        super().__init__()
        self.case, self.optimizer = case, opt.SGD(0.1)
        self.x = taken(arrays, "float32")

    def forward(self, factor):
        return [x * factor for x in self.x]

    def train_one_batch(self, factor):
        xs = self.forward(factor)
        terms, loss = self.case[0](*xs, reduction="none"), self.case[0](*xs)
        self.optimizer(loss)
        return loss, terms


@each_case
def test_replay_has_the_bits_of_eager_execution(name):
    case = CASES[name]
    arrays = sample(case[1], case[2])
    factors = [from_numpy(np.float32([f])) for f in (1, 0.9, 0.8, 0.7, 0.6)]
    runs = []
    for use_graph in (True, False):
        model = Trained(case, arrays)
        model.compile([factors[0]], use_graph=use_graph)
        runs.append([[t.to_numpy() for t in model.train_one_batch(f)] for f in factors])
        if use_graph:
            assert replays(model)
        runs[-1].append([p.to_numpy() for p in model.get_params().values()])
    for one, other in zip(*runs, strict=True):
        assert [a.tobytes() for a in one] == [a.tobytes() for a in other]


# ---- the ends of their ranges --------------------------------------------------------------------


def test_large_logits_and_perfect_predictions(training):
    (x,) = taken([[[1e4, -1e4, 0], [-1e4, 0, 1e4]]])
    for named in ({}, {"ignore_index": 9}, {"weight": np.ones(3)}):
        assert CROSS(x, [0, 2], **named).tolist() == [0]
        assert CROSS(x, [1, 2], reduction="none", **named).tolist() == [2e4, 0]
    grad = autograd.gradients(CROSS(x, [1, 2], reduction="sum"))[x]
    assert grad.tolist() == [[1, -1, 0], [0, 0, 0]]
    (x,) = taken([[800.0, -800, 30, -30]])
    y = autograd.binary_cross_entropy_with_logits(x, [1.0, 1, 1, 0], reduction="none")
    np.testing.assert_allclose(y.tolist(), [0, 800, math.exp(-30), math.exp(-30)], rtol=1e-12)
    grad = autograd.gradients(y.sum())[x]
    np.testing.assert_allclose(
        grad.tolist(), [0, -1, -math.exp(-30), math.exp(-30)], rtol=1e-6, atol=1e-300
    )


def test_impossible_classes_that_are_not_the_label_cost_nothing(training):
    (x,) = taken([[[0.0, -np.inf, 1.0]]])
    loss = NLL(x, [2])
    assert loss.tolist() == [-1] and autograd.gradients(loss)[x].tolist() == [[0, 0, -1]]


def test_targets_without_a_gradient_leave_the_loss_one_operation(training):
    x, t = taken([SHARES, SHARES[::-1]])
    t.stores_grad = False
    for name, loss in ("MeanSquareError", autograd.mse_loss), ("SoftMaxCrossEntropy", CROSS):
        assert type(loss(x, t).creator).__name__ == name
        t.stores_grad = True
        want = loss(x, t * 1)
        assert autograd.gradients(want)[t].shape == t.shape
        t.stores_grad = False
        np.testing.assert_allclose(loss(x, t).tolist(), want.tolist(), rtol=1e-14)


def test_zero_probabilities_have_no_divergence(training):
    (x,) = taken([[-np.inf, -1.0]])
    loss = autograd.kl_div(x, [0.0, 1.0], "sum")
    assert loss.tolist() == [1] and autograd.gradients(loss)[x].tolist() == [0, -1]
    rows = from_numpy(np.log(SHARES), dtype="float64")
    want = (SHARES * (np.log(SHARES) - np.log(0.5))).sum() / N
    half = from_numpy(np.full((N, C), np.log(0.5)), dtype="float64")
    got = autograd.kl_div(half, np.exp(rows.to_numpy()), "batchmean")
    np.testing.assert_allclose(got.tolist(), [want], rtol=1e-12)


def test_vectors_without_a_direction(training):
    a, b = taken([np.zeros((2, 3)), np.ones((2, 3))])
    y = autograd.cosine_similarity(a, b)
    found = autograd.gradients(y.sum())
    assert y.tolist() == [0, 0] and np.isfinite(found[a].to_numpy()).all()
    assert found[b].tolist() == np.zeros((2, 3)).tolist()
    same = autograd.triplet_margin_loss(a, a, b, eps=0)
    assert np.isfinite(autograd.gradients(same)[a].to_numpy()).all()


def test_certain_probabilities(training):
    (x,) = taken([[0.0, 1.0, 0.0, 1.0, 1e-60]])
    y = autograd.bce_loss(x, [0.0, 1.0, 1.0, 0.0, 1.0], reduction="none")
    assert y.tolist() == [0, 0, 100, 100, 100]
    assert autograd.gradients(y.sum())[x].tolist() == [1, -1, -1e12, 1e12, -1e12]
    assert math.isnan(autograd.bce_loss(from_numpy(np.float32([-0.1])), [1.0]).item())


@pytest.mark.parametrize("scale", [0.5, 1e-3, 1e6])
def test_pairs_of_many_labels(scale, training):
    """Each pair by itself, with ties at the margin and labels that are given twice."""
    x = np.round(RNG.normal(size=(20, 9)), 1) * scale
    t = RNG.integers(-1, 9, (20, 9))
    (scores,) = taken([x])
    loss = autograd.multilabel_margin_loss(scores, t, "none")
    want, slopes = np.zeros(20), np.zeros((20, 9))
    for n, places in enumerate(t):
        ends = [*np.flatnonzero(places == -1), 9]
        right = list(places[: ends[0]])
        for j, i in itertools.product(right, set(range(9)) - set(right)):
            over = 1 - x[n, j] + x[n, i]
            if over > 0:
                want[n] += over / 9
                slopes[n, j], slopes[n, i] = slopes[n, j] - 1 / 9, slopes[n, i] + 1 / 9
    np.testing.assert_allclose(loss.to_numpy(), want, rtol=1e-12, atol=1e-9 * scale)
    found = autograd.gradients(loss.sum())[scores].to_numpy()
    np.testing.assert_allclose(found, slopes, rtol=1e-12, atol=1e-12)


INF = np.inf
ENDLESS = {(INF, 0, 1): 0, (0, INF, 1): INF, (-INF, 0, 1): INF, (0, -INF, 1): 2 / 3}


@pytest.mark.parametrize("row", [*ENDLESS, (np.nan, 0, 0), (0, 0, np.nan)])
def test_margins_of_scores_that_are_not_finite(row):
    made = autograd.multilabel_margin_loss(from_numpy(np.array([row])), [[0, -1, -1]]).item()
    np.testing.assert_allclose(made, ENDLESS.get(row, np.nan), rtol=1e-6)


def test_second_derivatives_of_margins_are_zero(training):
    (x,) = taken([[[0.1, 0.4, 0.2]]])
    loss = autograd.multilabel_margin_loss(x * x, [[1, -1, 0]])
    (slope,) = autograd.gradients(loss, [x], create_graph=True)
    (found,) = autograd.gradients(slope.sum(), [x])
    np.testing.assert_allclose(found.to_numpy(), np.array([[1, -2, 1]]) * 2 / 3, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cosine_similarity(axis, training):
    a, b = sample([(4, 3), (4, 3)], 2)
    x, y = taken([a, b])
    np.testing.assert_allclose(
        autograd.cosine_similarity(x, y, axis).tolist(), cosine(a, b, axis), rtol=1e-12
    )
    one = autograd.cosine_similarity(x, y[:1], 1)
    np.testing.assert_allclose(one.tolist(), cosine(a, b[:1], 1), rtol=1e-12)


def test_rows_that_do_not_count():
    x = from_numpy(RNG.normal(size=(2, 3)))
    named = {"ignore_index": 7}
    assert CROSS(x, [7, 7], reduction="none", **named).tolist() == [0, 0]
    assert CROSS(x, [7, 7], reduction="sum", **named).tolist() == [0]
    assert math.isnan(CROSS(x, [7, 7], **named).item())


def test_no_elements():
    empty = from_numpy(np.zeros((0, 3), np.float32))
    none = np.zeros(0, np.int32)
    for call in (CROSS, NLL):
        for named in ({}, {"ignore_index": 3}, {"weight": np.ones(3)}):
            assert call(empty, none, reduction="sum", **named).tolist() == [0]
            assert not call(empty, none, reduction="none", **named).numel
            assert math.isnan(call(empty, none, **named).item())
    for shape in ((2, 3, 0), (2, 3, 0, 4), (0, 3, 2)):
        rows = (shape[0], *shape[2:])
        maps, labels = from_numpy(np.zeros(shape, np.float32)), np.zeros(rows, np.int32)
        for call in (CROSS, NLL):
            for named in ({}, {"ignore_index": 3}, {"weight": np.ones(3)}):
                assert call(maps, labels, reduction="none", **named).shape == rows
                assert call(maps, labels, reduction="sum", **named).tolist() == [0]
        assert CROSS(maps, maps, reduction="none").shape == rows
        assert CROSS(maps, labels, reduction="none", label_smoothing=0.1).shape == rows
    calls = [
        lambda r: autograd.l1_loss(empty, empty, r),
        lambda r: autograd.mse_loss(empty, empty, r),
        lambda r: autograd.kl_div(empty, empty, r),
        lambda r: autograd.triplet_margin_loss(empty, empty, empty, reduction=r),
        lambda r: autograd.binary_cross_entropy_with_logits(empty, empty, reduction=r),
        lambda r: autograd.multilabel_margin_loss(empty, np.zeros((0, 3), np.int32), r),
        lambda r: autograd.gaussian_nll_loss(empty, empty, 1.0, reduction=r),
    ]
    for call in calls:
        assert call("sum").tolist() == [0] and not call("none").numel
        assert math.isnan(call("mean").item())
    of_singa = (autograd.cross_entropy, autograd.binary_cross_entropy, autograd.ranking_loss)
    for mean in (*of_singa, lambda x, t: autograd.kl_div(x, t, "batchmean")):
        assert math.isnan(mean(empty, empty).item())


def test_the_mean_of_no_elements_leads_back(training):
    for call in (autograd.mse_loss, autograd.cross_entropy, autograd.l1_loss):
        x = from_numpy(np.zeros((0, 3)), dtype="float64")
        x.stores_grad = True
        assert autograd.gradients(call(x, np.zeros((0, 3))))[x].shape == (0, 3)


# ---- bad input -----------------------------------------------------------------------------------

X = np.zeros((2, 3), np.float32)
BAD = [
    (ValueError, "label 3", lambda x: CROSS(x, [0, 3], reduction="sum")),
    (ValueError, "range", lambda x: CROSS(x, [0, -1], reduction="sum")),
    (ValueError, "range", lambda x: CROSS(x, [0, -1], ignore_index=-2)),
    (ValueError, "label -3 for 3 classes.*range", lambda x: NLL(x, [0, -3])),
    (
        ValueError,
        "label -3 .*ignore_index -100",
        lambda x: CROSS(x, [-100, -3], ignore_index=-100),
    ),
    (ValueError, "label 7 .*not given", lambda x: CROSS(x, [0, 7], reduction="sum")),
    (ValueError, "mse_loss: got reduction", lambda x: autograd.mse_loss(x, X, "avg")),
    (ShapeError, "mse_loss", lambda x: autograd.mse_loss(x, X[:1], "sum")),
    (ShapeError, r"^mse_loss: got shapes .*want equal$", lambda x: layer.MSELoss()(x, X[:1])),
    (ShapeError, "kl_div.*batchmean", lambda x: autograd.kl_div(x[0, 0], X[0, 0], "batchmean")),
    (ValueError, "0.5", lambda x: NLL(x, [0, 0.5])),
    (ShapeError, "nll_loss", lambda x: NLL(x, [0, 1, 2])),
    (ShapeError, "softmax_cross_entropy", lambda x: CROSS(x, [0, 1, 2])),
    (ShapeError, "3 classes", lambda x: CROSS(x, [0, 1], weight=[1.0, 2.0])),
    (ValueError, "ignore_index", lambda x: CROSS(x, X, ignore_index=1)),
    (ValueError, "label_smoothing", lambda x: CROSS(x, [0, 1], label_smoothing=1.5)),
    (ValueError, "reduction 'avg'", lambda x: CROSS(x, [0, 1], reduction="avg")),
    (ValueError, "axes", lambda x: CROSS(x, [0, 1], 2)),
    (TypeError, "ignore_index", lambda x: NLL(x, [0, 1], ignore_index="0")),
    (DTypeError, "bool", lambda x: NLL(x, np.array([True, False]))),
    (ShapeError, "l1_loss", lambda x: autograd.l1_loss(x, X[:1])),
    (ShapeError, "weight", lambda x: autograd.binary_cross_entropy_with_logits(x, X, X[None])),
    (ValueError, "delta", lambda x: autograd.huber_loss(x, X, delta=0)),
    (ValueError, "beta", lambda x: autograd.smooth_l1_loss(x, X, beta=-1)),
    (ValueError, "batchmean", lambda x: autograd.kl_div(x, X, "batch")),
    (TypeError, "log_target", lambda x: autograd.kl_div(x, X, log_target=1)),
    (ShapeError, "axis 1", lambda x: autograd.cosine_similarity(x, x[:, :2])),
    (ValueError, "eps", lambda x: autograd.cosine_similarity(x, x, eps=0)),
    (ShapeError, r"\(N,\)", lambda x: autograd.cosine_embedding_loss(x, x, X)),
    (ValueError, "margin", lambda x: autograd.cosine_embedding_loss(x, x, [1, 1], 2)),
    (ShapeError, "triplet", lambda x: autograd.triplet_margin_loss(x, x, x[:1])),
    (ValueError, "p:", lambda x: autograd.triplet_margin_loss(x, x, x, p=0.5)),
    *margin_cases.BAD,
]


@pytest.mark.parametrize(("error", "says", "call"), BAD)
def test_refused(error, says, call):
    with pytest.raises(error, match=says):
        call(from_numpy(X))


# ---- layers --------------------------------------------------------------------------------------

MORE = {"weight": np.float32(WEIGHT), "ignore_index": 2, "reduction": "sum"}
LAYERS = [
    (layer.SoftMaxCrossEntropy(label_smoothing=0.1, **MORE), CROSS, (LABELS,),
     {"label_smoothing": 0.1, **MORE}),
    (layer.NLLLoss(**MORE), NLL, (LABELS,), MORE),
    (layer.BCEWithLogitsLoss(pos_weight=np.float32(WEIGHT), reduction="sum"),
     autograd.binary_cross_entropy_with_logits, (SHARES,),
     {"pos_weight": np.float32(WEIGHT), "reduction": "sum"}),
    (layer.KLDivLoss("batchmean", True), autograd.kl_div, (SHARES, "batchmean", True), {}),
    (layer.L1Loss("sum"), autograd.l1_loss, (SHARES, "sum"), {}),
    (layer.SmoothL1Loss("sum", 0.3), autograd.smooth_l1_loss, (SHARES, "sum", 0.3), {}),
    (layer.HuberLoss("sum", 0.3), autograd.huber_loss, (SHARES, "sum", 0.3), {}),
    (layer.CosineSimilarity(0, 1e-3), autograd.cosine_similarity, (SHARES, 0, 1e-3), {}),
    (layer.CosineEmbeddingLoss(0.2, "sum"), autograd.cosine_embedding_loss,
     (SHARES, SIGNS, 0.2, "sum"), {}),
    (layer.TripletMarginLoss(0.2, 1, 1e-3, True, "sum"), autograd.triplet_margin_loss,
     (SHARES, SHARES[::-1].copy(), 0.2, 1, 1e-3, True, "sum"), {}),
]  # fmt: skip


@pytest.mark.parametrize(("made", "function", "more", "named"), LAYERS)
def test_layers_pass_their_options_on(made, function, more, named):
    x = from_numpy(RNG.normal(size=(N, C)).astype(np.float32))
    given = [from_numpy(m) if isinstance(m, np.ndarray) else m for m in more]
    inputs = [one for one in given if isinstance(one, tensor.Tensor)]
    assert made(x, *inputs).tolist() == function(x, *given, **named).tolist()


def test_weights_are_states():
    made = layer.SoftMaxCrossEntropy(weight=WEIGHT)
    assert list(made.get_states()) == ["weight"] and not made.get_params()
    with pytest.raises(ValueError, match="NLLLoss: reduction"):
        layer.NLLLoss(reduction="avg")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_weights_of_classes_give_the_same_number_whatever_made_them(smoothing):
    """Also where a class of weight 0 is impossible."""
    autograd.training = True
    x = from_numpy(np.array([[0, 1, -np.inf], [2, -np.inf, 0]], np.float32))
    if smoothing:
        x = x.clip(-50, 50)
    t = from_numpy(np.array([[0.5, 0.5, 0], [1, 0, 0]], np.float32))
    plain = autograd.softmax_cross_entropy(x, t, label_smoothing=smoothing).item()
    made = autograd.softmax_cross_entropy(x, t * 0.5 + t * 0.5, label_smoothing=smoothing).item()
    autograd.training = False
    np.testing.assert_allclose(made, plain, rtol=1e-6)


@pytest.mark.parametrize("labels", [[0, -100, 2], [-100] * 3])
def test_second_derivatives_beside_rows_to_ignore(labels):
    autograd.training = True
    x = from_numpy(np.array([[0, 1, 2], [np.nan, 0, 1], [2, 0, 1]], np.float32))
    x.stores_grad = True
    loss = autograd.softmax_cross_entropy(x, np.array(labels), ignore_index=-100)
    (slope,) = autograd.gradients(loss, xs=[x], create_graph=True)
    (second,) = autograd.gradients((slope[::2] ** 2.0).sum(), xs=[x])
    autograd.training = False
    assert np.isfinite(second.numpy()[::2]).all() and np.isfinite(slope.numpy()).all()
