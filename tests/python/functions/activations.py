"""Activations that are compositions."""

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table

S = (3, 4, 5)
table = Table()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    made = np.exp(x - x.max(axis, keepdims=True))
    return made / made.sum(axis, keepdims=True)


def shrunk(x, bound):
    return np.sign(x) * np.maximum(np.abs(x) - bound, 0)


CASES = {
    "celu": (
        lambda x: autograd.celu(x, 0.7),
        lambda x: np.maximum(0, x) + np.minimum(0, 0.7 * np.expm1(x / 0.7)),
    ),
    "glu": (lambda x: autograd.glu(x, 1), lambda x: x[:, :2] * sigmoid(x[:, 2:])),
    "hardshrink": (
        lambda x: autograd.hardshrink(x, 0.6),
        lambda x: np.where(np.abs(x) > 0.6, x, 0),
    ),
    "softshrink": (lambda x: autograd.softshrink(x, 0.6), lambda x: shrunk(x, 0.6)),
    "tanhshrink": (autograd.tanhshrink, lambda x: x - np.tanh(x)),
    "logsigmoid": (autograd.logsigmoid, lambda x: np.log(sigmoid(x))),
    "softmin": (lambda x: autograd.softmin(x, 1), lambda x: softmax(-x, 1)),
    "threshold": (lambda x: autograd.threshold(x, 0.3, 7), lambda x: np.where(x > 0.3, x, 7)),
    "hardtanh": (lambda x: autograd.hardtanh(x, -0.5, 1.2), lambda x: np.clip(x, -0.5, 1.2)),
    "relu6": (lambda x: autograd.relu6(x * 5), lambda x: np.clip(x * 5, 0, 6)),
    "rrelu": (
        lambda x: autograd.rrelu(x, 0.25, 0.25),
        lambda x: np.where(x < 0, x * 0.25, x),
    ),
}
for _name, (_tensors, _arrays) in CASES.items():
    _empty = ((3, 4, 0),) if _name not in ("softmin",) else ()
    table.add(_name, _tensors, _arrays, S, step=1e-5, halves=_name != "threshold", empty=_empty)


def of(*shape):
    return Tensor(shape)


def weights(*values):
    return Tensor(data=np.array(values, np.float32))


REFUSED = {
    "celu: got alpha 0": (ValueError, lambda: autograd.celu(of(2), 0)),
    "glu: got shape": (ShapeError, lambda: autograd.glu(of(2, 3))),
    "hardshrink: lambd": (ValueError, lambda: autograd.hardshrink(of(2), -1)),
    "softshrink: lambd": (ValueError, lambda: autograd.softshrink(of(2), float("nan"))),
    "threshold: value": (TypeError, lambda: autograd.threshold(of(2), 1, "x")),
    "hardtanh: got 1 to 0": (ValueError, lambda: autograd.hardtanh(of(2), 1, 0)),
    "rrelu: got slopes": (ValueError, lambda: autograd.rrelu(of(2), 1, 0)),
    "gumbel_softmax: got tau 0": (ValueError, lambda: autograd.gumbel_softmax(of(2), 0)),
    "gumbel_softmax: got axes": (ValueError, lambda: autograd.gumbel_softmax(of(2), axis=1)),
    "multinomial: got shape": (ShapeError, lambda: of(2, 2, 2).multinomial(1)),
    "multinomial: got 3 samples of 2": (ValueError, lambda: of(2).multinomial(3)),
    "multinomial: got a weight": (ValueError, lambda: weights(1, -1, 3).multinomial(2)),
    "multinomial: .* no weight": (ValueError, lambda: weights(0, 0).multinomial(2, True)),
    "multinomial: got a .*NaN": (ValueError, lambda: weights(1, np.nan).multinomial(2)),
}
