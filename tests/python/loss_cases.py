"""Losses and their terms in NumPy, float64."""

import math

import margin_cases
import numpy as np
from singa_rs import autograd

RNG = np.random.default_rng(5)
N, C = 6, 5
LABELS = np.array([1, 0, 4, 2, 2, 3])
SOME = np.array([1, -7, 4, 2, -7, 3])
WEIGHT = np.linspace(0.5, 2, C)
DEEP = RNG.integers(0, C, (N, 2, 3))
SHARES = RNG.uniform(0.1, 1, (N, C))
SIGNS = np.array([1, -1, 1, 1, -1, -1])
FACTORS = np.linspace(0.5, 1.5, N)[:, None]


def logs(x, axis=1):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def picked(x, t, weight=None, ignored=None, smoothing=0.0):
    """The terms of log probabilities (N, C, ...), and what their sum is divided by."""
    kept = np.ones(t.shape) if ignored is None else (t != ignored).astype(float)
    weight = np.ones(x.shape[1]) if weight is None else weight
    places = np.where(kept, t, 0)
    w = weight[places] * kept
    rows = -np.take_along_axis(x, places[:, None], 1)[:, 0] * w
    wide = weight.reshape(-1, *(1,) * (x.ndim - 2))
    spread = -(x * wide).sum(1) * kept
    return (1 - smoothing) * rows + smoothing / x.shape[1] * spread, w.sum()


def spread(x, t, smoothing=0.0, weight=1.0):
    t = t / t.sum(1, keepdims=True)
    t = (1 - smoothing) * t + smoothing / x.shape[1]
    return -(weight * t * logs(x)).sum(1)


def huber(d, delta):
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def cosine(a, b, axis=1):
    lengths = np.linalg.norm(a, axis=axis) * np.linalg.norm(b, axis=axis)
    return (a * b).sum(axis) / lengths


def softplus(x):
    return np.logaddexp(x, 0)


def triplet(a, b, c, p, margin, swap=False):
    near, far, other = (np.linalg.norm(u - v + 1e-6, p, -1) for u, v in ((a, b), (a, c), (b, c)))
    return np.maximum(near - (np.minimum(far, other) if swap else far) + margin, 0)


def options(function, *more, **named):
    return lambda *xs, reduction="mean": function(*xs, *more, reduction=reduction, **named)


ROWS, PAIR = [(N, C)], [(N, C), (N, C)]
CROSS, NLL = autograd.softmax_cross_entropy, autograd.nll_loss
#: A loss, the shapes of its inputs, the range they are drawn from, the terms, and their count.
CASES = {
    "cross entropy": (options(CROSS, LABELS), ROWS, 3, lambda x: picked(logs(x), LABELS)),
    "column": (options(CROSS, LABELS[:, None]), ROWS, 3, lambda x: picked(logs(x), LABELS)),
    "ignored": (
        options(CROSS, SOME, ignore_index=-7), ROWS, 3, lambda x: picked(logs(x), SOME, None, -7)
    ),
    "ignored class": (
        options(CROSS, LABELS, ignore_index=2), ROWS, 3,
        lambda x: picked(logs(x), LABELS, None, 2),
    ),
    "class weights": (
        options(CROSS, LABELS, weight=WEIGHT), ROWS, 3, lambda x: picked(logs(x), LABELS, WEIGHT)
    ),
    "smoothed": (
        options(CROSS, LABELS, label_smoothing=0.2), ROWS, 3,
        lambda x: picked(logs(x), LABELS, smoothing=0.2),
    ),
    "all options": (
        options(CROSS, SOME, weight=WEIGHT, ignore_index=-7, label_smoothing=0.2), ROWS, 3,
        lambda x: picked(logs(x), SOME, WEIGHT, -7, 0.2),
    ),
    "more axes": (options(CROSS, DEEP), [(N, C, 2, 3)], 3, lambda x: picked(logs(x), DEEP)),
    "last axis": (
        options(CROSS, DEEP, axis=-1), [(N, 2, 3, C)], 3,
        lambda x: picked(logs(np.moveaxis(x, -1, 1)), DEEP),
    ),
    "last axis, all options": (
        options(CROSS, DEEP, -1, weight=WEIGHT, ignore_index=1, label_smoothing=0.1),
        [(N, 2, 3, C)], 3,
        lambda x: picked(logs(np.moveaxis(x, -1, 1)), DEEP, WEIGHT, 1, 0.1),
    ),
    "shares": (options(CROSS, SHARES), ROWS, 3, lambda x: spread(x, SHARES)),
    "shares, options": (
        options(CROSS, SHARES, weight=WEIGHT, label_smoothing=0.1), ROWS, 3,
        lambda x: spread(x, SHARES, 0.1, WEIGHT),
    ),
    "shares, first axis": (
        options(CROSS, SHARES.T.copy(), axis=0), [(C, N)], 3, lambda x: spread(x.T, SHARES)
    ),
    "nll": (options(NLL, LABELS), ROWS, 3, lambda x: picked(x, LABELS)),
    "nll, options": (
        options(NLL, SOME, weight=WEIGHT, ignore_index=-7), ROWS, 3,
        lambda x: picked(x, SOME, WEIGHT, -7),
    ),
    "logits": (
        autograd.binary_cross_entropy_with_logits, PAIR, (0, 1),
        lambda x, t: t * softplus(-x) + (1 - t) * softplus(x),
    ),
    "weighted logits": (
        options(autograd.binary_cross_entropy_with_logits, weight=FACTORS, pos_weight=WEIGHT),
        PAIR, (0, 1),
        lambda x, t: FACTORS * (WEIGHT * t * softplus(-x) + (1 - t) * softplus(x)),
    ),
    "kl_div": (autograd.kl_div, PAIR, (0, 1), lambda x, t: t * (np.log(t) - x)),
    "kl_div of logarithms": (
        options(autograd.kl_div, log_target=True), PAIR, 2, lambda x, t: np.exp(t) * (t - x)
    ),
    "mse": (options(autograd.mse_loss, SHARES), ROWS, 3, lambda x: (x - SHARES) ** 2),
    "mse of two": (autograd.mse_loss, PAIR, 2, lambda x, t: (x - t) ** 2),
    "shares of two": (CROSS, PAIR, (0.1, 1), spread),
    "l1": (autograd.l1_loss, PAIR, 2, lambda x, t: np.abs(x - t)),
    "huber": (
        options(autograd.huber_loss, delta=0.7), PAIR, 2, lambda x, t: huber(np.abs(x - t), 0.7)
    ),
    "smooth l1": (
        options(autograd.smooth_l1_loss, beta=0.7), PAIR, 2,
        lambda x, t: huber(np.abs(x - t), 0.7) / 0.7,
    ),
    "smooth l1 of 0": (
        options(autograd.smooth_l1_loss, beta=0), PAIR, 2, lambda x, t: np.abs(x - t)
    ),
    "alike": (
        options(autograd.cosine_embedding_loss, SIGNS, 0.1), PAIR, 2,
        lambda a, b: np.where(SIGNS > 0, 1 - cosine(a, b), np.maximum(cosine(a, b) - 0.1, 0)),
    ),
    "alike or 0": (
        options(autograd.cosine_embedding_loss, SIGNS > 0), PAIR, 2,
        lambda a, b: np.where(SIGNS > 0, 1 - cosine(a, b), np.maximum(cosine(a, b), 0)),
    ),
    **{
        f"triplet {p} {swap}": (
            options(autograd.triplet_margin_loss, margin=0.8, p=p, swap=swap), [(N, C)] * 3, 2,
            lambda a, b, c, p=p, swap=swap: triplet(a, b, c, p, 0.8, swap),
        )
        for p in (1, 2, 3, math.inf)
        for swap in (False, True)
    },
    "triplet axes": (
        options(autograd.triplet_margin_loss), [(2, N, C)] * 3, 2,
        lambda a, b, c: triplet(a, b, c, 2, 1),
    ),
    **margin_cases.CASES,
}  # fmt: skip


def sample(shapes, bounds):
    """Numbers within bounds; a pair of bounds is that of the last input, the others are logits."""
    made = []
    for i, shape in enumerate(shapes):
        is_last = isinstance(bounds, tuple) and i == len(shapes) - 1
        most = 3 if isinstance(bounds, tuple) else bounds
        made.append(RNG.uniform(*(bounds if is_last else (-most, most)), shape))
    return made
