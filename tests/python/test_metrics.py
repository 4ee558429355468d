"""Metrics against scikit-learn's, on random cases with ties, whole and in batches."""

import warnings

import numpy as np
import pytest
from singa_rs import metric
from singa_rs.errors import DTypeError, ShapeError
from singa_rs.tensor import bfloat16, from_numpy

sk = pytest.importorskip("sklearn.metrics")
SEEDS = range(12)
AVERAGED = {
    "precision": (metric.PrecisionScore, sk.precision_score),
    "recall": (metric.RecallScore, sk.recall_score),
    "f1": (metric.F1Score, sk.f1_score),
}
REGRESSION = {
    "mean_absolute_error": (metric.MeanAbsoluteError, sk.mean_absolute_error),
    "mean_squared_error": (metric.MeanSquaredError, sk.mean_squared_error),
    "r2": (metric.R2Score, sk.r2_score),
}


def in_batches(one, outputs, targets, rng):
    """The metric of all rows, in batches of random sizes, the second time around."""
    one.update(outputs[:3], targets[:3])
    one.reset()
    cuts = np.sort(rng.integers(0, len(outputs) + 1, 3))
    for made, right in zip(np.split(outputs, cuts), np.split(targets, cuts), strict=True):
        one.update(from_numpy(made, dtype=made.dtype), right)
    return one.compute()


def classes(seed, count=None):
    """Scores with ties, and classes, some of which may not occur."""
    rng = np.random.default_rng(seed)
    rows, count = int(rng.integers(8, 60)), count or int(rng.integers(2, 7))
    scores = rng.integers(0, 4, (rows, count)).astype(np.float32) / 4
    return rng, scores, rng.integers(0, max(2, count - seed % 2), rows).astype(np.int32)


# ---- classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_accuracy(seed):
    rng, scores, targets = classes(seed)
    want = sk.accuracy_score(targets, scores.argmax(1))
    assert metric.accuracy(scores, targets) == want
    assert metric.accuracy(scores.argmax(1), targets[:, None]) == want
    assert in_batches(metric.Accuracy(), scores, targets, rng) == pytest.approx(want, rel=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_top_k_accuracy_ties_included(seed):
    rng, scores, targets = classes(seed, 5)
    for k in (1, 2, 3):
        want = sk.top_k_accuracy_score(targets, scores, k=k, labels=range(5))
        assert metric.top_k_accuracy(scores, targets, k) == want
        assert in_batches(metric.TopKAccuracy(k), scores, targets, rng) == want
    earlier_first = metric.Accuracy(2)
    earlier_first.update(np.float32([[1, 1, 1]]), np.int32([0]))
    assert earlier_first.compute() == 1 and metric.top_k_accuracy([[1, 1, 1]], [0], 2) == 0


def test_labels_with_fractions_are_no_classes():
    for labels in (np.full(2, 0.5), np.array([np.nan, 1.0])):
        with pytest.raises(ValueError, match="got labels with fractions, want classes from 0"):
            metric.Accuracy().evaluate(np.eye(2), labels)
    assert metric.Accuracy().evaluate(np.eye(2), np.array([0.0, 0.0])) == 0.5
    with pytest.raises(ValueError, match="got class 2, want 0 to 1 as scored"):
        metric.Accuracy(2).update(np.eye(2), np.array([0, 2]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", AVERAGED)
def test_averages_over_classes(name, seed):
    rng, scores, targets = classes(seed)
    cls, theirs = AVERAGED[name]
    made = scores.argmax(1)
    for average in ("micro", "macro"):
        want = theirs(targets, made, average=average, zero_division=0)
        assert getattr(metric, name)(scores, targets, average) == pytest.approx(want, rel=1e-14)
        got = in_batches(cls(average), made, targets, rng)
        assert got == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", AVERAGED)
def test_binary(name, seed):
    rng, scores, targets = classes(seed, 2)
    cls, theirs = AVERAGED[name]
    logits = scores[:, 1] - scores[:, 0]
    want = theirs(targets, logits > 0, zero_division=0)
    ours = getattr(metric, name)
    assert ours(logits, targets, threshold=0) == pytest.approx(want, rel=1e-14)
    assert ours(logits > 0, targets == 1) == pytest.approx(want, rel=1e-14)
    got = in_batches(cls(threshold=0.5), logits[:, None] + 0.5, targets[:, None], rng)
    assert got == pytest.approx(want, rel=1e-14)


def test_a_denominator_of_zero_counts_as_zero():
    never, always = np.zeros(4, int), np.ones(4, int)
    assert metric.precision(never, always) == metric.recall(always, never) == 0
    assert metric.f1(never, never) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_confusion_matrix(seed):
    rng, scores, targets = classes(seed)
    width = scores.shape[1]
    want = sk.confusion_matrix(targets, scores.argmax(1), labels=range(width))
    assert np.array_equal(metric.confusion_matrix(scores, targets), want)
    got = in_batches(metric.ConfusionMatrix(), scores, targets, rng)
    assert np.array_equal(got, want) and got.dtype == np.int64
    wide = metric.confusion_matrix(scores.argmax(1), targets, classes=9)
    assert wide.shape == (9, 9) and np.array_equal(wide[:width, :width], want)


def test_each_place_of_a_picture_is_a_row():
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, (2, 4, 5))
    flat = scores.transpose(0, 2, 3, 1).reshape(-1, 3)
    want = metric.confusion_matrix(flat, targets.ravel())
    assert np.array_equal(metric.confusion_matrix(scores, targets), want)
    assert metric.accuracy(scores, targets) == np.trace(want) / want.sum()


def test_scores_of_narrow_floats():
    scores = from_numpy(np.float32([[1, 2, 0], [3, 1, 1]])).as_type(bfloat16)
    assert metric.accuracy(scores, np.array([1, 2])) == 0.5
    assert metric.top_k_accuracy(scores, np.array([1, 2]), 2) == 1
    assert metric.roc_auc(scores[:, 0], np.array([0, 1])) == 1


# ---- the area under the curve --------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_roc_auc_ties_included(seed):
    rng, scores, targets = classes(seed, 2)
    targets[:2] = 0, 1
    want = sk.roc_auc_score(targets, scores[:, 1])
    assert metric.roc_auc(scores[:, 1], targets) == pytest.approx(want, rel=1e-13)
    got = in_batches(metric.ROCAUC(), scores[:, 1:], targets[:, None], rng)
    assert got == pytest.approx(want, rel=1e-13)
    pair = np.stack([1 - scores[:, 1], scores[:, 1]], 1)
    assert metric.roc_auc(pair, targets) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_roc_auc_of_several_classes(seed):
    rng, scores, targets = classes(seed, 4)
    targets[:4] = range(4)
    scores = (scores + 0.25).astype(np.float64)
    scores /= scores.sum(1, keepdims=True)
    want = sk.roc_auc_score(targets, scores, multi_class="ovr", labels=range(4))
    assert metric.roc_auc(scores, targets) == pytest.approx(want, rel=1e-13)
    assert in_batches(metric.ROCAUC(), scores, targets, rng) == pytest.approx(want, rel=1e-13)


# ---- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", REGRESSION)
def test_regression(name, seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(4, 50)), int(rng.integers(1, 4)))
    right = rng.normal(1e4, 1, shape)  # far from 0, where sums of squares would cancel
    made = right + rng.normal(0, 0.5, shape)
    cls, theirs = REGRESSION[name]
    want = theirs(right, made)
    assert getattr(metric, name)(made, right) == pytest.approx(want, rel=1e-9)
    assert in_batches(cls(), made, right, rng) == pytest.approx(want, rel=1e-9)
    one = getattr(metric, name)(made[:, :1], right[:, 0])
    assert one == pytest.approx(theirs(right[:, 0], made[:, 0]), rel=1e-9)


def test_r2_of_targets_that_do_not_vary():
    right = np.array([[0.25, 1.0], [0.25, 2.0], [0.25, 4.0]])
    for made in (right, right + [[0.5, 0]], right + [[0, 0.5]]):
        assert metric.r2(made, right) == pytest.approx(sk.r2_score(right, made))
    one = metric.R2Score()
    for rows in (right[:1], right[1:]):
        one.update(rows, rows)
    assert one.compute() == 1


def test_nan_propagates_from_numbers():
    right = np.array([1.0, 2.0, np.nan])
    for name in REGRESSION:
        assert np.isnan(getattr(metric, name)(right, np.arange(3.0)))
        assert np.isnan(getattr(metric, name)(np.arange(3.0), right))


# ---- errors --------------------------------------------------------------------------------------

X, Y = np.float32([[1, 2, 3], [3, 2, 1]]), np.int32([2, 0])
REFUSED = {
    "accuracy": [
        ((X, Y.astype(float)), DTypeError, "Accuracy: got targets of float64, want integers"),
        ((X, -Y), ValueError, "class -2"),
        ((X, Y + 1), ValueError, "Accuracy: got class 3, want 0 to 2 as scored"),
        ((X[:, 0], Y, 0.5), ValueError, "class 2, want 0 to 1"),
        ((X, Y[:1]), ShapeError, r"outputs \(2, 3\) and targets \(1,\)"),
        ((X[:, 0], Y), ValueError, "want a threshold: 0 for logits"),
        ((X[:, :1], Y), ValueError, "want a threshold: 0 for logits"),
        ((X, Y, 0.5), ValueError, "threshold 0.5 for a score for each class"),
        ((Y, Y, 0.5), ValueError, "threshold 0.5 for classes"),
        ((X * np.nan, Y), ValueError, "NaN"),
        (("no", Y), TypeError, "Accuracy"),
        ((X[:0], Y[:0]), ValueError, "no rows"),
    ],
    "precision": [
        ((X, Y), ValueError, "class 2 for average='binary', want 0 and 1, or 'micro' or 'macro'"),
        ((X, Y, "weighted"), ValueError, "PrecisionScore: average: got 'weighted'"),
        ((X, Y + 1, "micro"), ValueError, "class 3, want 0 to 2 as scored"),
        ((Y, Y + 10**8, "micro"), ValueError, "class 100000002, want"),
        ((X[:0], Y[:0], "micro"), ValueError, "no rows"),
    ],
    "confusion_matrix": [
        ((Y, Y, 2), ValueError, "got class 2, want 0 to 1"),
        ((Y, Y + 20000), ValueError, "class 20002, want 0 to 9999"),
        ((Y, Y, 0), ValueError, "ConfusionMatrix: classes: got 0"),
    ],
    "top_k_accuracy": [
        ((X, Y, 4), ShapeError, r"want \(N, 4 or more\)"),
        ((X, Y + 1, 2), ValueError, "class 3"),
        ((X, Y, 0), ValueError, "TopKAccuracy: k"),
    ],
    "roc_auc": [
        ((X, Y), ValueError, "no probabilities, want sums of 1"),
        ((X[:, 0], Y * 0), ValueError, "0 rows of class 1 of 2, want both"),
        ((X[:, 0], Y), ValueError, "class 2, want 0 to 1"),
        ((X[:, 0] * np.nan, Y), ValueError, "NaN"),
        ((X, Y[:1]), ShapeError, r"outputs \(2, 3\)"),
    ],
    "mean_squared_error": [
        ((X, X[:, :1]), ShapeError, r"outputs \(2, 3\) and targets \(2, 1\), want one shape"),
        ((1.0, 2.0), ShapeError, "want one shape with rows"),
        ((X[:0], X[:0]), ValueError, "no rows"),
    ],
    "r2": [((X[:1], X[:1]), ValueError, "R2Score: got 1 rows, want at least 2")],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    for arguments, kind, message in REFUSED[name]:
        with pytest.raises(kind, match=message), warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(metric, name)(*arguments)


def test_a_refused_batch_leaves_the_metric_as_it_was():
    one = metric.F1Score("macro")
    one.update(X, Y)
    before = one.compute()
    with pytest.raises(ValueError, match="class 5"):
        one.update(X, Y + 3)
    assert one.compute() == before == 1


def test_metrics_of_ones_own_add_up_rows():
    class Error(metric.Metric):
        def forward(self, x, y):
            return abs(np.asarray(x) - y)

    one = Error()
    for batch in ([1.0, 2.0], [6.0]):
        one.update(batch, 0)
    assert one.compute() == 3
    one.reset()
    with pytest.raises(ValueError, match="Error: got no rows"):
        one.compute()


@pytest.mark.parametrize("top_k", [1, 2])
def test_accuracy_refuses_what_is_no_class_and_no_score(top_k):
    one = metric.Accuracy(top_k)
    with pytest.raises(ValueError, match="Accuracy: got targets with class -1"):
        one.update([[1.0, 2, 3]], [-1])
    with pytest.raises(ValueError, match="Accuracy: got outputs with NaN"):
        one.update([[1.0, np.nan, 3]], [1])
    with pytest.raises(DTypeError, match="Accuracy: got targets of float"):
        one.update([[1.0, 2, 3]], [1.0])
    with pytest.raises(ValueError, match="Accuracy: got labels with class -1"):
        one.forward([[1.0, 2, 3]], [-1])
    with pytest.raises(ValueError, match="no rows"):
        one.compute()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: metric.Recall(0), "Recall: top_k: got 0"),
        (lambda: metric.ConfusionMatrix(10**9), "ConfusionMatrix: classes: got 10.*at most 10000"),
        (lambda: metric.ConfusionMatrix(10**12), "ConfusionMatrix: classes: got 10.*at most"),
        (lambda: metric.F1Score(np.array(["macro", "micro"])), "F1Score: average: got ndarray of"),
    ],
)
def test_wrong_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
