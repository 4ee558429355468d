"""Losses of margins and likelihoods, and their terms in NumPy, float64, as in `loss_cases`."""

import math

import numpy as np
from singa_rs import autograd

RNG = np.random.default_rng(6)
N, C = 6, 5
ROWS, PAIR = [(N, C)], [(N, C), (N, C)]
LABELS = np.array([1, 0, 4, 2, 2, 3])
WEIGHT = np.linspace(0.5, 2, C)
SIGNS = np.where(RNG.random((N, C)) > 0.5, 1.0, -1.0)
KNOWN = (SIGNS > 0).astype(float)
SETS = np.array(
    [[1, 3, -1, 0, 2], [-1, 2, 2, 2, 2], [4, 3, 2, 1, 0], [2, -1, -1, -1, -1], [0, 0, 4, -1, 1],
     [3, 2, 1, -1, -1]]
)  # fmt: skip
COUNTS = RNG.integers(0, 7, (N, C)).astype(float)


def options(function, *more, **named):
    return lambda *xs, reduction="mean": function(*xs, *more, reduction=reduction, **named)


def hinge(x):
    return np.maximum(x, 0)


def multi(x, p, margin, weight=None):
    rows = []
    for one, label in zip(x, LABELS, strict=True):
        terms = [hinge(margin - one[label] + v) ** p for i, v in enumerate(one) if i != label]
        rows.append(sum(terms) / C * (1 if weight is None else weight[label]))
    return np.array(rows)


def multilabel(x):
    rows = []
    for one, places in zip(x, SETS, strict=True):
        ends = np.flatnonzero(places == -1)
        right = list(places[: ends[0]] if ends.size else places)
        others = [i for i in range(C) if i not in right]
        rows.append(sum(hinge(1 - one[j] + one[i]) for j in right for i in others) / C)
    return np.array(rows)


def entropy(x, t, weight=1.0):
    return weight * (t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x))


def stirling(t):
    safe = np.where(t > 1, t, 1)
    made = safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe)
    return np.where(t > 1, made, 0)


def gaussian(x, t, var, eps=1e-6):
    var = np.maximum(var, eps)
    return 0.5 * (np.log(var) + (x - t) ** 2 / var)


def manhattan(a, b):
    return (a - b).abs().sum(-1)


def distanced(a, b, c, swap, p):
    near, far, other = (np.linalg.norm(u - v + (1e-6 if p == 2 else 0), p, -1)
                        for u, v in ((a, b), (a, c), (b, c)))  # fmt: skip
    return hinge(near - (np.minimum(far, other) if swap else far) + 0.7)


TRIPLET = autograd.triplet_margin_with_distance_loss
#: As in `loss_cases`: a loss, the shapes of its inputs, their range, the terms.
CASES = {
    "ranking margin": (
        lambda a, b, reduction="mean": autograd.margin_ranking_loss(a, b, SIGNS, 0.3, reduction),
        PAIR, 2, lambda a, b: hinge(0.3 - SIGNS * (a - b)),
    ),
    "ranking margin of three": (
        options(autograd.margin_ranking_loss, margin=0.3), [(N, C)] * 3, 2,
        lambda a, b, t: hinge(0.3 - t * (a - b)),
    ),
    "soft margin of two": (
        autograd.soft_margin_loss, PAIR, 3, lambda x, t: np.logaddexp(0, -t * x)
    ),
    "multilabel soft margin of two": (
        autograd.multilabel_soft_margin_loss, PAIR, (0, 1), lambda x, t: entropy(x, t).mean(1)
    ),
    "hinge": (
        options(autograd.hinge_embedding_loss, SIGNS, 0.8), ROWS, 2,
        lambda x: np.where(SIGNS > 0, x, hinge(0.8 - x)),
    ),
    "hinge of 0 and 1": (
        options(autograd.hinge_embedding_loss, KNOWN), ROWS, 2,
        lambda x: np.where(SIGNS > 0, x, hinge(1 - x)),
    ),
    "soft margin": (
        options(autograd.soft_margin_loss, SIGNS), ROWS, 3, lambda x: np.logaddexp(0, -SIGNS * x)
    ),
    "multilabel soft margin": (
        options(autograd.multilabel_soft_margin_loss, KNOWN), ROWS, 3,
        lambda x: entropy(x, KNOWN).mean(1),
    ),
    "weighted multilabel soft margin": (
        options(autograd.multilabel_soft_margin_loss, KNOWN, WEIGHT), ROWS, 3,
        lambda x: entropy(x, KNOWN, WEIGHT).mean(1),
    ),
    "multi margin": (
        options(autograd.multi_margin_loss, LABELS), ROWS, 2, lambda x: multi(x, 1, 1.0)
    ),
    "squared multi margin": (
        options(autograd.multi_margin_loss, LABELS, 2, 0.7, WEIGHT), ROWS, 2,
        lambda x: multi(x, 2, 0.7, WEIGHT),
    ),
    "multilabel margin": (
        options(autograd.multilabel_margin_loss, SETS), ROWS, 2, multilabel
    ),
    **{
        f"distance {swap}": (
            options(TRIPLET, None, 0.7, swap), [(N, C)] * 3, 2,
            lambda a, b, c, swap=swap: distanced(a, b, c, swap, 2),
        )
        for swap in (False, True)
    },
    "distance of one's own": (
        options(TRIPLET, manhattan, 0.7), [(N, C)] * 3, 2,
        lambda a, b, c: distanced(a, b, c, False, 1),
    ),
    "poisson of logarithms": (
        options(autograd.poisson_nll_loss), PAIR, (0, 5), lambda x, t: np.exp(x) - t * x
    ),
    "poisson": (
        options(autograd.poisson_nll_loss, COUNTS, False, eps=0.01), ROWS, (0.2, 4),
        lambda x: x - COUNTS * np.log(x + 0.01),
    ),
    "full poisson": (
        options(autograd.poisson_nll_loss, full=True), PAIR, (1.1, 5),
        lambda x, t: np.exp(x) - t * x + stirling(t),
    ),
    "full poisson of few": (
        options(autograd.poisson_nll_loss, COUNTS, full=True), ROWS, 2,
        lambda x: np.exp(x) - COUNTS * x + stirling(COUNTS),
    ),
    "gaussian": (
        autograd.gaussian_nll_loss, [(N, C)] * 3, (0.3, 2), lambda x, t, v: gaussian(x, t, v)
    ),
    "gaussian, a variance for each row": (
        options(autograd.gaussian_nll_loss, full=True), [(N, C), (N, C), (N,)], (0.3, 2),
        lambda x, t, v: gaussian(x, t, v[:, None]) + 0.5 * math.log(2 * math.pi),
    ),
    "gaussian, columns": (
        options(autograd.gaussian_nll_loss, eps=0.2), [(N, C), (N, C), (N, 1)], (0.3, 2),
        lambda x, t, v: gaussian(x, t, v, 0.2),
    ),
    "gaussian, a number": (
        options(autograd.gaussian_nll_loss, 0.7), PAIR, 2, lambda x, t: gaussian(x, t, 0.7)
    ),
    "probabilities": (
        options(autograd.bce_loss, KNOWN, WEIGHT), ROWS, (0.1, 0.9),
        lambda x: -WEIGHT * (KNOWN * np.log(x) + (1 - KNOWN) * np.log(1 - x)),
    ),
}  # fmt: skip

X = np.zeros((2, 3), np.float32)
#: As in `test_losses`: the error, what it says, the call.
BAD = [
    (ValueError, "got shapes", lambda x: autograd.margin_ranking_loss(x, x[:1], X)),
    (ValueError, "margin:", lambda x: autograd.margin_ranking_loss(x, x, X, float("nan"))),
    (ValueError, "hinge_embedding_loss: got", lambda x: autograd.hinge_embedding_loss(x, X[:1])),
    (ValueError, "soft_margin_loss", lambda x: autograd.soft_margin_loss(x, X, "avg")),
    (ValueError, "3 classes", lambda x: autograd.multilabel_soft_margin_loss(x, X, [1.0])),
    (ValueError, "p 3", lambda x: autograd.multi_margin_loss(x, [0, 1], 3)),
    (ValueError, "label 3 for 3", lambda x: autograd.multi_margin_loss(x, [0, 3])),
    (ValueError, "a class for each row", lambda x: autograd.multi_margin_loss(x, [0])),
    (ValueError, r"want \(N, C\)", lambda x: autograd.multi_margin_loss(x[None], [0, 1])),
    (ValueError, "out of range", lambda x: autograd.multilabel_margin_loss(x, X + 3)),
    (ValueError, "out of range", lambda x: autograd.multilabel_margin_loss(x, X - 2)),
    (ValueError, "for softmax_cross_entropy", lambda x: autograd.cross_entropy(x, [0, 1])),
    (ValueError, "want equal", lambda x: autograd.multilabel_margin_loss(x, [0])),
    (TypeError, "want a callable", lambda x: TRIPLET(x, x, x, 3)),
    (TypeError, "from distance_function", lambda x: TRIPLET(x, x, x, lambda a, b: 3)),
    (ValueError, "margin: got -1", lambda x: TRIPLET(x, x, x, None, -1)),
    (ValueError, "eps", lambda x: autograd.poisson_nll_loss(x, X, eps=0)),
    (TypeError, "full", lambda x: autograd.poisson_nll_loss(x, X, full=1)),
    (ValueError, "variances", lambda x: autograd.gaussian_nll_loss(x, X, X[0])),
    (ValueError, "bce_loss", lambda x: autograd.bce_loss(x, X[:1])),
]  # fmt: skip
