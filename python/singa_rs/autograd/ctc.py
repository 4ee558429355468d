"""Connectionist temporal classification: sequences of labels without their places in time."""

from __future__ import annotations

import functools
import math
from typing import Any

from .._core import ShapeError
from ..refusals import strict_flag
from ..shown import misgiven
from ..tensor import Tensor
from ..tensor.numbers import whole
from . import binary, ops, unary  # noqa: F401 - their rows are in the table then
from .casting import floating
from .classification import checked
from .index import Where, as_indices, gather
from .shape import cat, reshape
from .table import FUNCTIONS, public
from .terms import check_reduction, reduced, wide

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
        x: log probabilities, (T, N, C), as from `log_softmax`, or (T, C) of one sequence. 16-bit
            floats are computed in float32.
        targets: labels, (N, S), or (S,) of one sequence; what is after a sequence's length is not
            read, but is a class. Or the labels of all sequences one after another, (M,), which
            takes the time of (N, min(M, T + 1)).
        input_lengths: the steps of each sequence, (N,), to T; () or (1,) of one sequence.
        target_lengths: the labels of each sequence, (N,), to S, or M in all; () or (1,) of one.
        blank: the class that is no label.
        reduction: "mean" of the losses divided by their target's length (at least 1) or "sum", both
            of shape (1,); or "none", (N,), () of one sequence.
        zero_infinity: whether the loss of a target that no alignment has is 0 instead of infinity.
            Its gradient is 0.

    Raises:
        ValueError: a label or length out of its range, or lengths that do not add up to M, when
            they are used; an unknown reduction.
        ShapeError: shapes that do not fit.
    """
    name = "ctc_loss"
    check_reduction(name, reduction)
    zero = strict_flag(zero_infinity, f"{name}: zero_infinity")
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {misgiven(x)}")
    if x.rank not in (2, 3) or not x.shape[0] or not x.shape[-1]:
        want = "(T, N, C) or (T, C), T and C at least 1"
        raise ShapeError(f"{name}: got shape {x.shape}, want {want}")
    blank = whole(blank, f"{name}: blank")
    if not 0 <= blank < x.shape[-1]:
        raise ValueError(f"{name}: blank: got {blank}, want a class from 0 to {x.shape[-1] - 1}")
    given = floating(x)
    labels, steps, counts = _sequences(name, x, targets, input_lengths, target_lengths)
    logs = wide(given if x.rank == 3 else given.unsqueeze(1))
    states, skips = _states(labels, blank)
    last = _forward(_emitted(logs, states), skips, steps)
    losses = _at_the_end(last, counts, zero)
    if reduction == "mean":
        least = ops.scalar_op("maximum", 1)(counts)
        losses = losses / ops.cast(least, losses.dtype)
    losses = losses if x.rank == 3 else reshape(losses, ())
    return reduced(losses, reduction, given.dtype)


def _sequences(
    name: str, x: Tensor, targets: Any, input_lengths: Any, target_lengths: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Checked labels, (N, S), and lengths of inputs and targets, int64."""
    made = [as_indices(t, name, x.device) for t in (targets, input_lengths, target_lengths)]
    batch, shapes = (x.shape[1] if x.rank == 3 else 1), [t.shape for t in made]
    if x.rank == 2:
        made = [_alone(t, rank) for t, rank in zip(made, (1, 0, 0), strict=True)]
    follow = made[0].rank == 1 and batch > 0
    rows = {t.shape[:1] for t in made[follow:]}
    if [t.rank for t in made] != [1 if follow else 2, 1, 1] or rows != {(batch,)}:
        all_shapes = ", ".join(map(str, (x.shape, *shapes)))
        want = "(T, N, C), (N, S) or (M,), (N,), (N,); or (T, C), (S,), (), ()"
        raise ShapeError(f"{name}: got shapes {all_shapes}, want {want}")
    sizes = (x.shape[-1], x.shape[0] + 1, made[0].shape[-1] + 1)
    labels, steps, counts = (
        checked("ctc_loss", t, size) for t, size in zip(made, sizes, strict=True)
    )
    return _in_rows(labels, counts, x.shape[0]) if follow else labels, steps, counts


def _alone(t: Tensor, rank: int) -> Tensor:
    """What belongs to one sequence, of `rank` axes, as that of a batch of one."""
    return ops.reshape(t, (1, *t.shape)) if t.rank == rank else t


def _in_rows(labels: Tensor, counts: Tensor, time: int) -> Tensor:
    """Labels of sequences one after another as rows, (N, S). As lengths are data, S is what they
    can be, but no more than one label beyond the time, which no alignment has."""
    batch, total = counts.shape[0], labels.shape[0]
    width = min(total, time + 1)
    ends = ops.op("scan", f="sum", axis=0, exclusive=False, reverse=False)(counts)
    left = ops.scalar_op("sub", total, True)(ops.part(ends, 0, batch - 1, batch))
    left = checked("ctc_loss", left, 1)
    starts = ops.add(ops.sub(ends, counts), left)
    places = ops.add(ops.reshape(starts, (batch, 1)), ops.arange(width, labels))
    if not total:
        return ops.cast(places, labels.dtype)
    return ops.op("gather", axis=0)(labels, ops.scalar_op("minimum", total - 1)(places))


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
    counts = ops.scalar_op("minimum", width // 2)(counts)
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
