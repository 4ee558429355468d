"""Losses of classes: cross entropy of logits, negative log likelihood, and their options."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .._core import ShapeError
from ..shown import misgiven
from ..tensor import Tensor
from ..tensor.numbers import as_array, whole, within
from . import ops
from .along import take_along_axis
from .casting import floating
from .index import Where, as_indices, gather
from .loss import SoftMaxCrossEntropy, target_of
from .order import is_traced
from .reduce import as_axes, log_softmax, reduce_sum
from .rule import Rule
from .shape import plain_reshape, transpose
from .table import public
from .terms import check_reduction, like, reduced, wide


class _Labels(NamedTuple):
    """Class indices of rows, of the shape of the logits without the axis of the classes."""

    #: The classes, 0 in rows to ignore.
    places: Tensor
    #: Whether each row counts; None if all do.
    counts: Tensor | None


def _is_labels(x: Tensor, shape: tuple[int, ...], along: int) -> bool:
    """Whether targets of a shape are one class index for each row of the logits."""
    without, single = x.shape[:along] + x.shape[along + 1 :], list(x.shape)
    single[along] = 1
    return shape == without or shape == tuple(single)


def labels_of(name: str, x: Tensor, t: Any, along: int, ignored: int | None) -> _Labels:
    """Checks class indices when they are used, and finds their places."""
    rows, classes = x.shape[:along] + x.shape[along + 1 :], x.shape[along]
    of = "nll_loss" if name == "nll_loss" else "cross_entropy"
    places = ops.op("places", of=of, size=None)(as_indices(t, name, x.device))
    given, counts = ops.reshape(places, rows), None
    places = given
    if ignored is not None:
        counts = ops.scalar_op("ne", ignored)(given)
        places = ops.where(counts, given, ops.full((), 0, given))
    try:
        places = checked(of, places, classes)
    except ValueError:
        raise _no_class(name, given, classes, ignored) from None
    return _Labels(places, counts)


def column(places: Tensor, along: int) -> Tensor:
    """One index for each row, with extent 1 for the classes."""
    return ops.reshape(places, (*places.shape[:along], 1, *places.shape[along:]))


def _no_class(name: str, labels: Tensor, classes: int, ignored: int | None) -> ValueError:
    """The error of the first label that is no class."""
    array = labels.to_numpy().ravel()
    wrong = array[((array < 0) | (array >= classes)) & (array != ignored)]
    also = "and ignore_index is not given" if ignored is None else f"or ignore_index {ignored}"
    want = f"a class in the range from 0 to {classes - 1}, {also}"
    return ValueError(f"{name}: got label {wrong[0]} for {classes} classes, want {want}")


def checked(of: str, places: Tensor, size: int) -> Tensor:
    """Indices of an axis, for an operation; they must be in it when they are used, and none counts
    from the end."""
    return ops.op("places", of=of, size=size, wraps=False)(places)


def _only(flags: Tensor, x: Tensor) -> Tensor:
    """`x` where flags hold, else 0."""
    return Where(flags)(x, ops.full((), 0, x))[0]


def class_weights(name: str, weight: Any, x: Tensor, along: int) -> Tensor | None:
    """One weight for each class."""
    if weight is None:
        return None
    made = like(f"{name}: weight", weight, x)
    if made.shape != (x.shape[along],):
        want = f"one for each of {x.shape[along]} classes"
        raise ShapeError(f"{name}: got weights of shape {made.shape}, want {want}")
    return made


def _row_weights(labels: _Labels, weight: Tensor | None, x: Tensor) -> Tensor | None:
    """What each row counts: its class's weight, 0 if it is ignored; None if all count 1."""
    if weight is not None:
        own = gather(weight, 0, labels.places)
        return own if labels.counts is None else _only(labels.counts, own)
    return None if labels.counts is None else ops.cast(labels.counts, x.dtype)


def _along_classes(weight: Tensor, x: Tensor, along: int) -> Tensor:
    return plain_reshape(weight, (x.shape[along],) + (1,) * (x.rank - along - 1))


def _smoothed(
    x: Tensor, rows: Tensor, labels: _Labels, weight: Tensor | None, along: int, smoothing: float
) -> Tensor:
    """The terms of labels, of which a share is spread evenly over all classes."""
    every = x if weight is None else x * _along_classes(weight, x, along)
    spread = reduce_sum(every, along, 0)
    if labels.counts is not None:
        spread = _only(labels.counts, spread)
    return rows * (1 - smoothing) - spread * (smoothing / x.shape[along])


def _of_labels(
    name: str, x: Tensor, t: Any, along: int, options: _Options, smoothing: float = 0.0
) -> tuple[Tensor, Tensor | int]:
    """The terms of log probabilities given class indices, and what divides their sum."""
    labels = labels_of(name, x, t, along, options.ignored)
    weight = class_weights(name, options.weight, x, along)
    own = take_along_axis(x, column(labels.places, along), along)
    rows = 0 - plain_reshape(own, labels.places.shape)
    if labels.counts is not None:
        rows = _only(labels.counts, rows)
    counted = _row_weights(labels, weight, rows)
    if weight is not None:
        rows = rows * counted
    if smoothing:
        rows = _smoothed(x, rows, labels, weight, along, smoothing)
    return rows, rows.numel if counted is None else reduce_sum(counted, None, 0)


class _Options(NamedTuple):
    """What may change how classes count."""

    weight: Any
    ignored: int | None
    reduction: str


def _options(name: str, weight: Any, ignore_index: Any, reduction: Any) -> _Options:
    check_reduction(name, reduction)
    ignored = None if ignore_index is None else whole(ignore_index, f"{name}: ignore_index")
    return _Options(weight, ignored, reduction)


@public(precision="wide")
def nll_loss(
    x: Tensor,
    t: Any,
    axis: int = 1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of classes, given log probabilities (PyTorch nll_loss, ONNX
    NegativeLogLikelihoodLoss).

    Args:
        x: log probabilities, floats of shape (N, C), (N, C, d1, ...), or with the classes along
            another axis.
        t: class indices, of the shape of `x` without the axis, or with extent 1 there.
        axis: the axis of the classes.
        weight: one weight for each class, (C,). The mean is divided by the sum of the weights.
        ignore_index: the index of rows that do not count, also one that is no class. The mean is
            NaN if no row counts.
        reduction: "mean" or "sum", both of shape (1,), or "none", of the shape of `x` without the
            axis. 16-bit floats are summed in float32.

    Raises:
        ValueError: a class index out of range or with a fraction, when it is used; an unknown
            reduction; an axis that `x` does not have.
        ShapeError: shapes that do not fit.
    """
    name, options = "nll_loss", _options("nll_loss", weight, ignore_index, reduction)
    given, along = _logits(name, x, axis)
    if not _is_labels(given, _shape(name, t), along):
        raise _unfit(name, x, t, "one class index for each row")
    rows, total = _of_labels(name, wide(given), t, along, options)
    return reduced(rows, reduction, given.dtype, total)


def _logits(name: str, x: Any, axis: Any) -> tuple[Tensor, int]:
    """Logits of a float dtype, and the axis of their classes."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {misgiven(x)}")
    (along,) = as_axes(whole(axis, f"{name}: axis"), x.rank, name)
    return floating(x), along


def _shape(name: str, t: Any) -> tuple[int, ...]:
    return t.shape if isinstance(t, Tensor) else as_array(t, name).shape


def _unfit(name: str, x: Tensor, t: Any, want: str) -> ShapeError:
    return ShapeError(f"{name}: got shapes {x.shape}, {_shape(name, t)}, want {want}")


@public(SoftMaxCrossEntropy, precision="wide")
def softmax_cross_entropy(
    x: Tensor,
    t: Any,
    axis: int = 1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of softmax(x) with `t` (SINGA softmax_cross_entropy, PyTorch
    cross_entropy, ONNX SoftmaxCrossEntropyLoss).

    The mean, with `ignore_index`, too, is one operation without other options, which keeps two
    numbers a row for its gradient. A perfect prediction has the loss 0, unlike in `cross_entropy`,
    which takes probabilities.

    Args:
        x: logits, floats of shape (N, C), (N, C, d1, ...), or with the classes along another axis,
            such as (N, T, C) with axis -1.
        t: of the shape of `x` without the axis, or with extent 1 there: class indices. Else of the
            shape of `x`: weights of the classes in each row, divided by their sum, which get a
            gradient where an operation has made them, or where they store their gradient.
        axis: the axis of the classes.
        weight: one weight for each class, (C,). The mean over class indices is divided by the sum
            of the weights of their classes.
        ignore_index: the class index of rows that do not count, also one that is no class. The
            mean is NaN if no row counts.
        label_smoothing: the share of each target, from 0 to 1, that is spread evenly over all
            classes (Szegedy et al., 2016).
        reduction: "mean" over the rows or "sum", both of shape (1,), or "none", of the shape of
            `x` without the axis. 16-bit floats are summed in float32.

    Raises:
        ValueError: a class index out of range or with a fraction, when it is used; an option that
            does not fit.
        DTypeError: a weight that the dtype of `x` cannot hold.
        ShapeError: shapes that do not fit.
    """
    name = "softmax_cross_entropy"
    options = _options(name, weight, ignore_index, reduction)
    smoothing = within(label_smoothing, f"{name}: label_smoothing", 0, 1)
    given, along = _logits(name, x, axis)
    is_labels = _is_labels(given, _shape(name, t), along)
    if not is_labels and _shape(name, t) != given.shape:
        is_last = _shape(name, t) == given.shape[:-1]
        hint = "; axis=-1 where the classes are along the last axis" if is_last else ""
        want = f"one class index for each row, or a weight for each logit{hint}"
        raise _unfit(name, x, t, want)
    if not is_labels and options.ignored is not None:
        raise ValueError(f"{name}: got ignore_index {ignore_index} and weights, want class indices")
    is_fused = weight is None and reduction == "mean" and not smoothing
    if is_fused and (is_labels or not is_traced(t)):
        try:
            return _fused(given, t, along, is_labels, options.ignored)
        except ValueError:
            if is_labels:  # which names the label
                labels_of(name, given, t, along, options.ignored)
            raise
    logs = log_softmax(wide(given), along)
    if is_labels:
        rows, total = _of_labels(name, logs, t, along, options, smoothing)
    else:
        rows = _of_weights(name, logs, t, along, options, smoothing)
        total = rows.numel
    return reduced(rows, reduction, given.dtype, total)


def _fused(x: Tensor, t: Any, along: int, is_labels: bool, ignored: int | None) -> Tensor:
    """The mean over the rows by one operation, on the classes as the last axis of two."""
    if x.rank == 2 and along == 1:
        return SoftMaxCrossEntropy(t, ignored)(x)[0]
    classes = x.shape[along]
    if is_labels:
        t = as_indices(t, "softmax_cross_entropy", x.device)
        t = ops.reshape(t, (x.numel // max(classes, 1),))
    else:
        t = _rows(like("softmax_cross_entropy", t, x).detach(), along)
    return SoftMaxCrossEntropy(t, ignored)(_rows(x, along))[0]


def _rows(x: Tensor, along: int) -> Tensor:
    """The classes as the last axis of two."""
    order = [*range(along), *range(along + 1, x.rank), along]
    moved = x if along == x.rank - 1 else transpose(x, order)
    classes = x.shape[along]
    return plain_reshape(moved, (x.numel // max(classes, 1), classes))


class _Known(Rule):
    """Log probabilities, but 0 for impossible classes of weight 0, which are ignored altogether."""

    keeps = constants = ("none",)

    def forward(self, logs: Tensor, t: Tensor) -> Tensor:
        is_zero, is_least = ops.scalar_op("eq", 0)(t), ops.scalar_op("eq", -math.inf)(logs)
        self.none = ops.op("binary", f="and")(is_zero, is_least)
        return ops.where(self.none, ops.full((), 0, logs), logs)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, None]:
        """`dy` of the others."""
        return ops.where(self.load(0), ops.full((), 0, dys[0]), dys[0]), None


def _of_weights(
    name: str, logs: Tensor, t: Any, along: int, options: _Options, smoothing: float
) -> Tensor:
    """The terms of log probabilities given a weight for each class and row."""
    t = target_of(t, like(name, t, logs))
    logs, t = _Known()(logs, t)[0], t / reduce_sum(t, along, 1)
    if smoothing:
        t = t * (1 - smoothing) + smoothing / logs.shape[along]
    weight = class_weights(name, options.weight, logs, along)
    if weight is not None:
        t = t * _along_classes(weight, logs, along)
    return 0 - reduce_sum(logs * t, along, 0)
