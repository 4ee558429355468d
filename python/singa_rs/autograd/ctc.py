"""Connectionist temporal classification: sequences of labels without their places in time."""

from __future__ import annotations

import functools
import math
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import binary, ops, unary  # noqa: F401 - their rows are in the table then
from .casting import floating
from .classification import checked
from .index import Where, as_indices, gather
from .shape import cat, reshape
from .table import FUNCTIONS, public
from .terms import check_reduction, flag, reduced, wide

#: The logarithm of what is as good as impossible; differences of such numbers stay finite.
_NEVER = -1e30
_NAMES = ("exp", "log", "clip", "add", "maximum")
_exp, _log, _clip, _add, _maximum = (FUNCTIONS[name] for name in _NAMES)


@public(precision="wide")
def ctc_loss(
    x: Tensor,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log probability of sequences of labels, over all their alignments with time
    (Graves et al., 2006; PyTorch ctc_loss).

    An alignment gives each step of time a label or a blank; equal labels in succession count once
    unless a blank is between them. Computed forward in time from logarithms, a few operations a
    step.

    Args:
        x: log probabilities, (T, N, C), as from `log_softmax`. 16-bit floats are computed in
            float32.
        targets: labels, (N, S); what is after a sequence's length is not read, but is a class.
        input_lengths: the steps of each sequence, (N,), to T.
        target_lengths: the labels of each sequence, (N,), to S.
        blank: the class that is no label.
        reduction: "mean" of the losses divided by their target's length (at least 1) or "sum", both
            of shape (1,); or "none", (N,).
        zero_infinity: whether the loss of a target that no alignment has is 0 instead of infinity.
            Its gradient is 0.

    Raises:
        ValueError: a label or length out of its range, when it is used; an unknown reduction.
        ShapeError: shapes that do not fit, or the mean of no sequences.
    """
    name = "ctc_loss"
    check_reduction(name, reduction)
    zero = flag(zero_infinity, f"{name}: zero_infinity")
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: got {type(x).__name__}, want a Tensor")
    if x.rank != 3 or not x.shape[0] or not x.shape[2]:
        raise ShapeError(f"{name}: got shape {x.shape}, want (T, N, C), T and C at least 1")
    blank = whole(blank, f"{name}: blank")
    if not 0 <= blank < x.shape[2]:
        raise ValueError(f"{name}: blank: got {blank}, want a class from 0 to {x.shape[2] - 1}")
    given = floating(x)
    labels, steps, counts = _sequences(name, x, targets, input_lengths, target_lengths)
    logs = wide(given)
    states, skips = _states(labels, blank)
    last = _forward(_emitted(logs, states), skips, steps)
    losses = _at_the_end(last, counts, zero)
    if reduction == "mean":
        least = ops.scalar_op("maximum", 1)(counts)
        losses = losses / ops.cast(least, losses.dtype)
    return reduced(name, losses, reduction, given.dtype)


def _sequences(
    name: str, x: Tensor, targets: Any, input_lengths: Any, target_lengths: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Checked labels, and lengths of inputs and targets, int64."""
    made = [as_indices(t, name, x.device) for t in (targets, input_lengths, target_lengths)]
    time, batch, classes = x.shape
    rows = {t.shape[:1] for t in made}
    if [t.rank for t in made] != [2, 1, 1] or rows != {(batch,)}:
        shapes = ", ".join(str(t.shape) for t in (x, *made))
        raise ShapeError(f"{name}: got shapes {shapes}, want (T, N, C), (N, S), (N,), (N,)")
    sizes = (classes, time + 1, made[0].shape[1] + 1)
    labels, steps, counts = (
        checked("ctc_loss", t, size) for t, size in zip(made, sizes, strict=True)
    )
    return labels, steps, counts


def _states(labels: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """The labels with a blank before, between and after them, (N, 2 S + 1); and which may be
    entered from the label before, skipping the blank between."""
    batch, count = labels.shape
    blanks = ops.full((batch, count, 1), blank, labels)
    pairs = cat([blanks, ops.reshape(labels, (batch, count, 1))], 2)
    states = cat([ops.reshape(pairs, (batch, 2 * count)), ops.full((batch, 1), blank, labels)], 1)
    before = cat([ops.full((batch, 2), blank, labels), states], 1).view_slice(
        [(0, batch, 1), (0, 2 * count + 1, 1)]
    )
    is_label = ops.scalar_op("ne", blank)(states)
    return states, ops.op("binary", f="and")(is_label, ops.op("binary", f="ne")(states, before))


def _emitted(logs: Tensor, states: Tensor) -> Tensor:
    """The log probability of each state at each step, (T, N, 2 S + 1)."""
    time, batch, classes = logs.shape
    starts = ops.op(
        "arange", device=logs.device, start=0, step=classes, count=batch, dtype="int64"
    )()
    places = ops.add(states, ops.reshape(starts, (batch, 1)))
    return gather(reshape(logs, (time, batch * classes)), 1, places)


def _forward(emitted: Tensor, skips: Tensor, steps: Tensor) -> Tensor:
    """The log probability of being in each state after each sequence's last step, (N, 2 S + 1)."""
    time, batch, count = emitted.shape
    emitted = _clip(emitted, _NEVER, None)
    never = ops.full((), _NEVER, emitted)
    edge = ops.full((batch, 2), _NEVER, emitted)
    others = ops.full((batch, count - 1), _NEVER, emitted)
    reached = cat([ops.full((batch, 1), 0, emitted), others], 1)
    steps = ops.reshape(steps, (batch, 1))
    for t in range(time):
        before = cat([edge, reached], 1)
        skipped = Where(skips)(before[:, :count], never)[0]
        moved = _log_of_sum(reached, before[:, 1 : count + 1], skipped) + emitted[t]
        reached = Where(ops.scalar_op("gt", t)(steps))(moved, reached)[0]
    return reached


def _log_of_sum(*xs: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials, from which the largest is split off."""
    most = functools.reduce(_maximum, (x.detach() for x in xs))
    return most + _log(functools.reduce(_add, (_exp(x - most) for x in xs)))


def _at_the_end(reached: Tensor, counts: Tensor, zero: bool) -> Tensor:
    """The losses: of the last label and of the blank behind it."""
    batch, width = reached.shape
    starts = ops.op(
        "arange", device=reached.device, start=0, step=width, count=batch, dtype="int64"
    )()
    flat, double = reshape(reached, (batch * width,)), ops.scalar_op("mul", 2)(counts)
    blank = gather(flat, 0, ops.add(starts, double))
    place = ops.scalar_op("maximum", 0)(ops.scalar_op("sub", 1)(double))
    never = ops.full((), _NEVER, reached)
    label = gather(flat, 0, ops.add(starts, place))
    label = Where(ops.scalar_op("gt", 0)(counts))(label, never)[0]
    found = _log_of_sum(blank, label)
    impossible = ops.scalar_op("lt", _NEVER / 10)(found)
    none = ops.full((), 0 if zero else math.inf, reached)
    return Where(impossible)(none, 0 - found)[0]
