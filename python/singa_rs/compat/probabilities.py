"""Softmax's gradient, and the cross entropy of probabilities, of raw tensors, as SINGA's operators
compute them by hand."""

from __future__ import annotations

from typing import Any

from .. import autograd, errors, tensor
from ..autograd import ops
from ..autograd.classification import checked
from ..autograd.index import as_indices
from ..errors import ShapeError
from . import rules
from .raw import RawTensor, raw

__all__ = ["CrossEntropyFwd", "SoftMaxBackward", "SoftmaxCrossEntropyBwd"]

#: The smallest probability whose logarithm is taken: that of float32, as in SINGA.
_LEAST = 2.0**-126


def SoftMaxBackward(dy: tensor.Tensor, axis: int, y: tensor.Tensor) -> RawTensor:
    """The gradient of `SoftMax(x, axis)`, given that of its result, and the result `y`.

    Raises:
        ShapeError: different shapes.
        ValueError: an axis that `y` does not have.
    """
    if dy.shape != y.shape:
        raise ShapeError(f"SoftMaxBackward: got shapes {dy.shape}, {y.shape}, want one shape")
    return raw(rules.SoftMax(axis).of_result(dy, y).detach())


def CrossEntropyFwd(p: tensor.Tensor, t: Any) -> RawTensor:
    """The cross entropy of each row of probabilities (N, C) and `t`, of shape (N,).

    Args:
        p: the result of softmax; logarithms are of at least the smallest float32.
        t: as many elements as rows: class indices. Else (N, C): weights, each row divided by its
            sum.

    Raises:
        ValueError: a class index out of range or not whole.
        ShapeError: shapes that do not fit.
    """
    weights = _weights("CrossEntropyFwd", p, t)
    logs = tensor.log(autograd.clip(p.detach(), _LEAST))
    return raw(0 - (weights * logs).sum(1))


def SoftmaxCrossEntropyBwd(p: tensor.Tensor, t: Any) -> RawTensor:
    """The gradient of the sum of `CrossEntropyFwd(SoftMax(x), t)` with respect to x.

    Args:
        p: the result of softmax, (N, C).
        t: see `CrossEntropyFwd`.

    Raises:
        ValueError: a class index out of range or not whole.
        ShapeError: shapes that do not fit.
    """
    return raw(p.detach() - _weights("SoftmaxCrossEntropyBwd", p, t))


def _weights(name: str, p: tensor.Tensor, t: Any) -> tensor.Tensor:
    """What each class of each row counts: together 1."""
    target = tensor.as_tensor(t, p.device).detach()
    if p.rank != 2 or (target.shape != p.shape and target.numel != p.shape[0]):
        shapes = f"{p.shape}, {target.shape}"
        want = "(N, C) and one class index for each row, or a weight for each class"
        raise ShapeError(f"{name}: got shapes {shapes}, want {want}")
    if target.shape == p.shape and p.shape[1] > 1:
        weights = ops.convert(target, p.dtype)
        return weights / weights.sum(1, keepdims=True)
    places = ops.op("places", of="cross_entropy", size=None)(as_indices(target, name, p.device))
    column = ops.reshape(checked("cross_entropy", places, p.shape[1]), (p.shape[0], 1))
    every = ops.arange(p.shape[1], p)
    return ops.cast(ops.op("binary", f="eq")(column, every), p.dtype)


errors.name_functions(globals(), {"as_indices", "checked", "raw"})
