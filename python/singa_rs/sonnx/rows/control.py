"""Control flow: bodies that are run by a condition, or once for each round of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import autograd
from ...tensor import Tensor
from ...tensor.creation import copied
from ..body import Body
from ..parts import key_of
from ..running import Frame
from ..table import reads
from ..values import is_text, to_tensor
from .arranging import padded
from .sequences import joined, tensor


def holds(condition: Any) -> bool:
    """Whether a condition of one element on the host holds."""
    return bool(np.ravel(condition)[0])


@reads("If", raw=True)
def if_(cond: Any, *, then_branch: Body, else_branch: Body, frame: Frame) -> tuple[Any, ...]:
    """One of two bodies."""
    return tuple(frame.call(then_branch if holds(frame.read_small(cond)) else else_branch))


# ---- Loop ----------------------------------------------------------------------------------------


@reads("Loop", raw=True)
def loop(
    trips: Any, going: Any, *state: Any, body: Body, before: Body | None = None, frame: Frame
) -> tuple[Any, ...]:  # fmt: skip
    """A body for a number of rounds, for as long as a condition holds: the values that go from one
    round to the next, then those of all rounds, stacked. `before` is as in `hoisted`."""
    limit = None if trips is None else int(np.ravel(frame.read(trips))[0])
    carried, rounds, fixed = list(state), [], []
    goes = going is None or holds(frame.read(going))
    reads = frame.reads
    while goes and (limit is None or len(rounds) < limit):
        # As long as nothing is read, rounds are recorded one after the other, each with its number.
        is_apart = frame.reads > reads and frame.stretches is not None
        round_ = np.array(len(rounds), np.int64)
        given = copied(round_, frame.device) if is_apart else round_
        if before is not None and not rounds:
            fixed = frame.call(before, [given, np.array(goes), *carried])
        going, *found = frame.call(body, [given, np.array(goes), *carried, *fixed])
        goes = holds(frame.read(going))
        now, stacked = found[: len(state)], found[len(state) :]
        if is_apart:
            pairs = zip(carried, now, strict=True)
            now = [b if isinstance(b, Tensor) else _moved(a, b, frame) for a, b in pairs]
        carried = now
        rounds.append(stacked)
    count = len(body.outputs) - 1 - len(state)
    made = (_over_rounds(rounds, i, body, 1 + len(state) + i, frame) for i in range(count))
    return *carried, *made


def _moved(before: Any, now: Any, frame: Frame) -> Any:
    """A value of a round: one on the host that has changed goes to the device, since what is on the
    host is part of a body's recording."""
    if not isinstance(now, (np.ndarray, np.generic)) or is_text(now):
        return now
    is_same = isinstance(before, (np.ndarray, np.generic)) and key_of(before) == key_of(now)
    return now if is_same else to_tensor(now, frame.device)


def _over_rounds(rounds: list[list[Any]], i: int, body: Body, output: int, frame: Frame) -> Any:
    """The values of a body's output in all rounds; without a round an empty one as declared."""
    if rounds:
        return joined([one[i] for one in rounds], 0, frame, is_new=True)
    kind = body.kinds[output] if body.kinds else None
    if kind is None:
        name = body.outputs[output]
        raise ValueError(f"Loop: got no round, want a declared type of the output {name!r}")
    dtype, extents = kind
    return tensor(np.zeros((0, *extents), dtype), frame)


# ---- Scan ----------------------------------------------------------------------------------------


@reads("Scan", since=9, raw=True)
def scan(
    *values: Any, body: Body, num_scan_inputs: int, scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None, before: Body | None = None, frame: Frame,
) -> tuple[Any, ...]:  # fmt: skip
    """A body for each slice of sequences: the final states, then the outputs of all rounds.
    `before` is as in `hoisted`."""
    count = len(values) - num_scan_inputs
    state, sequences = list(values[:count]), values[count:]
    axes, turned = (
        one or (0,) * len(sequences) for one in (scan_input_axes, scan_input_directions)
    )
    every = [
        _slices(tensor(x, frame), axis, bool(back))
        for x, axis, back in zip(sequences, axes, turned, strict=True)
    ]
    rounds, fixed = [], []
    for given in zip(*every, strict=True):
        if before is not None and not rounds:
            fixed = frame.call(before, [*state, *given])
        found = frame.call(body, [*state, *given, *fixed])
        state = found[:count]
        rounds.append(found[count:])
    zeros = (0,) * (len(body.outputs) - count)
    places = zip(scan_output_axes or zeros, scan_output_directions or zeros, strict=True)
    made = (
        joined([one[i] for one in (rounds[::-1] if back else rounds)], axis, frame, is_new=True)
        for i, (axis, back) in enumerate(places)
    )
    return *state, *made


def _slices(x: Tensor, axis: int, back: bool) -> Sequence[Tensor]:
    """The slices along an axis, in the opposite order if `back`."""
    found = autograd.unbind(x, axis)
    if not found:
        raise ValueError(f"Scan: got shape {x.shape}, want a slice along axis {axis} at least")
    return found[::-1] if back else found


@reads("Scan", since=8, raw=True)
def scan_of_batch(
    lengths: Any, *values: Any, body: Body, num_scan_inputs: int,
    directions: Sequence[int] | None = None, before: Body | None = None, frame: Frame,
) -> tuple[Any, ...]:  # fmt: skip
    """A scan of each sample of a batch, (N, T, ...), by its own length."""
    given = [tensor(x, frame) for x in values]
    count, size = len(given) - num_scan_inputs, given[0].shape[0]
    steps = given[count].shape[1]
    sizes = [steps] * size if lengths is None else [int(n) for n in np.ravel(frame.read(lengths))]
    samples = []
    for i, length in enumerate(sizes):
        parts = [x[i] if at < count else x[i][:length] for at, x in enumerate(given)]
        how = {"num_scan_inputs": num_scan_inputs, "scan_input_directions": directions}
        found = scan(*parts, body=body, before=before, **how, frame=frame)
        samples.append([*found[:count], *(_longer(y, steps, frame) for y in found[count:])])
    return tuple(joined(list(ys), 0, frame, is_new=True) for ys in zip(*samples, strict=True))


def _longer(y: Any, steps: int, frame: Frame) -> Tensor:
    """Zeros behind the steps of a sample."""
    y = tensor(y, frame)
    return padded(y, [0] * y.rank + [steps - y.shape[0]] + [0] * (y.rank - 1))
