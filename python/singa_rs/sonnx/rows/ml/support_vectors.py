"""Support vector machines."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from .... import autograd
from ....autograd.casting import cast, floating
from ....tensor import Tensor, float32, int64
from ...running import Frame
from ...table import reads
from .features import DOMAIN, table
from .scores import both, labelled, transformed


class Kernel(NamedTuple):
    """A kernel by its name and its parameters."""

    kind: str
    gamma: float
    coef0: float
    degree: float

    def __call__(self, x: Tensor, vectors: Any) -> Tensor:
        """Its values for rows (N, F) and vectors (V, F): (N, V)."""
        v = _like(x, np.reshape(vectors, (-1, x.shape[1])))
        if self.kind == "RBF":
            distance = x.unsqueeze(1) - v
            return autograd.exp(autograd.reduce_sum(distance * distance, -1, 0) * -self.gamma)
        dot = autograd.matmul(x, v.transpose())
        if self.kind == "LINEAR":
            return dot
        moved = dot * self.gamma + self.coef0
        return autograd.tanh(moved) if self.kind == "SIGMOID" else moved**self.degree


def _kernel(kind: str, params: Any) -> Kernel:
    if kind not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        raise ValueError(f"got kernel_type {kind!r}, want 'LINEAR', 'POLY', 'RBF' or 'SIGMOID'")
    return Kernel(kind, *(params or (0.0, 0.0, 0.0)))


def _like(x: Tensor, values: Any) -> Tensor:
    """Numbers in the dtype of `x`."""
    return table(np.asarray(values, x.dtype.name), x)


def _weighted(kernels: Tensor, weights: Any, offsets: Any) -> Tensor:
    """Sums of kernels (N, V) with weights (S, V), and offsets (S,)."""
    return _product(kernels, np.transpose(weights)) + _like(kernels, offsets)


def _product(x: Tensor, values: Any) -> Tensor:
    return autograd.matmul(x, _like(x, values))


@reads("SVMRegressor", domain=DOMAIN)
def svm_regressor(
    x: Tensor, *, coefficients: Any, rho: Any, support_vectors: Any = (), n_supports: int = 0,
    kernel_type: str = "LINEAR", kernel_params: Any = (), one_class: int = 0,
    post_transform: str = "NONE",
) -> Tensor:  # fmt: skip
    """A weighted sum of kernels (N, 1), in float32; of one class only whether it is positive, as 1
    or -1."""
    x = floating(x)
    if n_supports:
        kernels = _kernel(kernel_type, kernel_params)(x, support_vectors)
        score = _weighted(kernels, [coefficients], rho[:1])
    else:
        score = _weighted(x, [coefficients], rho[:1])
    if one_class:
        return autograd.where(score > 0, 1.0, cast(score, float32) * 0.0 - 1.0)
    return cast(transformed(score, post_transform), float32)


class Machine(NamedTuple):
    """A classifier's attributes, as arrays."""

    kernel: Kernel
    coefficients: np.ndarray
    vectors: np.ndarray
    counts: tuple[int, ...]
    rho: np.ndarray
    prob_a: np.ndarray
    prob_b: np.ndarray

    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of classes that are told apart."""
        return list(itertools.combinations(range(len(self.counts)), 2))

    def weights(self) -> np.ndarray:
        """The weights of all support vectors (pairs, V): those of another class have 0."""
        total, starts = sum(self.counts), np.cumsum([0, *self.counts])
        given = self.coefficients.reshape(-1, total)
        made = np.zeros((len(self.pairs()), total))
        for at, (i, j) in enumerate(self.pairs()):
            for own, other in ((i, j - 1), (j, i)):
                part = slice(starts[own], starts[own + 1])
                made[at, part] = given[other, part]
        return made

    def scores(self, x: Tensor) -> Tensor:
        """The scores of all pairs (N, pairs)."""
        return _weighted(self.kernel(x, self.vectors), self.weights(), self.rho)

    def votes(self, scores: Tensor) -> Tensor:
        """How many pairs each class wins (N, classes)."""
        won = np.zeros((2, scores.shape[1], len(self.counts)))
        for at, (i, j) in enumerate(self.pairs()):
            won[0, at, i] = won[1, at, j] = 1
        is_first = cast(scores > 0, scores.dtype)
        return _product(is_first, won[0]) + _product(1.0 - is_first, won[1])

    def probabilities(self, scores: Tensor) -> Tensor:
        """The probabilities of all classes (N, classes) from those of the pairs (Platt, 2000)."""
        a, b = _like(scores, self.prob_a), _like(scores, self.prob_b)
        first = autograd.clip(autograd.sigmoid(-(scores * a + b)), 1e-7, 1 - 1e-7)
        classes = len(self.counts)
        sides = [[None] * classes for _ in range(classes)]
        for at, (i, j) in enumerate(self.pairs()):
            sides[i][j], sides[j][i] = first[:, at], 1.0 - first[:, at]
        none = first[:, 0] * 0.0
        rows = [autograd.stack([none if r is None else r for r in row], 1) for row in sides]
        return coupled(autograd.stack(rows, 1))


def coupled(r: Tensor) -> Tensor:
    """The probabilities of classes (N, k) from those of each against each (N, k, k), by the second
    method of Wu, Lin and Weng (2004): rounds of it until a row changes little, as in libsvm."""
    k = r.shape[1]
    across = autograd.swapaxes(r, 1, 2)
    own = autograd.reduce_sum(across * across, 2, 0)
    q = _like(r, np.eye(k)) * own.unsqueeze(1) - across * r
    p = autograd.reduce_sum(q * 0.0, 2, 0) + 1.0 / k
    for _ in range(max(100, k)):
        qp = autograd.matmul(q, p.unsqueeze(2)).squeeze(2)
        error = autograd.reduce_max(autograd.abs(qp - _dot(p, qp)), 1, 1)
        p = autograd.where(error < 0.005 / k, p, _round(q, p, qp))
    return p


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return autograd.reduce_sum(a * b, 1, 1)


def _round(q: Tensor, p: Tensor, qp: Tensor) -> Tensor:
    """One step for each class in turn."""
    k, whole = p.shape[1], _dot(p, qp)
    for t in range(k):
        at, diagonal = qp[:, t : t + 1], q[:, t, t : t + 1]
        step = (whole - at) / diagonal
        grown = step + 1.0
        whole = (whole + step * (step * diagonal + at * 2.0)) / (grown * grown)
        moved = np.zeros((1, k))
        moved[0, t] = 1
        p = (p + step * _like(p, moved)) / grown
        qp = (qp + step * q[:, t]) / grown
    return p


@reads("SVMClassifier", domain=DOMAIN)
def svm_classifier(
    x: Tensor, *, coefficients: Any, rho: Any, support_vectors: Any = (),
    vectors_per_class: Any = (), classlabels_ints: Any = (), classlabels_strings: Any = (),
    kernel_type: str = "LINEAR", kernel_params: Any = (), prob_a: Any = (), prob_b: Any = (),
    post_transform: str = "NONE", frame: Frame,
) -> tuple[Any, Tensor]:  # fmt: skip
    """The label of each row, and scores in float32: probabilities if there are `prob_a`, else those
    of the pairs of classes."""
    x, labels = floating(x), classlabels_strings or classlabels_ints
    arrays = [np.asarray(one, np.float64) for one in (coefficients, support_vectors)]
    parameters = [np.asarray(one, np.float64) for one in (rho, prob_a, prob_b)]
    kernel = _kernel(kernel_type, kernel_params)
    machine = Machine(kernel, *arrays, tuple(vectors_per_class), *parameters)
    if not vectors_per_class:
        scores = _weighted(x, arrays[0].reshape(max(len(labels), 1), -1), rho[:1])
        choice = scores
    else:
        scores = machine.scores(x)
        choice = machine.votes(scores)
        scores = machine.probabilities(scores) if len(prob_a) else scores
    at = _chosen(choice, len(labels), len(rho))
    made = _presented(scores, len(labels), len(rho), post_transform)
    known = labels if len(labels) > 1 or len(rho) > 1 else (0, 1)
    return labelled(at, known, frame), cast(made, float32)


def _chosen(choice: Tensor, labels: int, pairs: int) -> Tensor:
    """The place of the label: that of the greatest vote or score; of one class, whether there is a
    vote for it."""
    if pairs == 1 and labels != 2:
        return cast(autograd.reduce_max(choice, 1, 0) > 0, int64)
    return autograd.argmax(choice, 1)


def _presented(scores: Tensor, labels: int, pairs: int, how: str) -> Tensor:
    if scores.shape[1] > 1:
        return transformed(scores, how)
    return both(scores, how) if pairs == 1 and labels == 2 else scores
