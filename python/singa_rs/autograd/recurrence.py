"""The recurrence of a layer in one direction, and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..tensor import Tensor
from . import ops
from .ops import Tensors
from .rule import Rule


class Form(NamedTuple):
    """The attributes of the engine's operation."""

    #: "tanh", "relu", "lstm", "gru" or "linear_gru".
    cell: str
    reverse: bool = False
    peepholes: bool = False
    projection: bool = False
    lengths: bool = False

    @property
    def is_lstm(self) -> bool:
        """Whether there is a cell state."""
        return self.cell == "lstm"

    @property
    def is_gru(self) -> bool:
        """Whether it is a gated recurrent unit of either kind."""
        return self.cell in ("gru", "linear_gru")


class Recurrence(Rule):
    """All steps of a recurrent network in one direction, behind the product of its inputs: one
    operation (`rnn`, `lstm`, `gru`).

    Inputs are that product with the biases (T, N, gates), the weights of the state, then those
    named by `more`, in this order: "state", "cell", "bias", "peepholes", "projection". Results are
    the states (T, N, P), the last state and, of an LSTM, the last cell state.
    """

    def __init__(self, form: Form, more: Sequence[str], lengths: Tensor | None) -> None:
        self.form, self.more, self.lengths = form, tuple(more), lengths

    def forward(self, *xs: Tensor) -> Tensors:
        given, weight, form = xs[0], xs[1], self.form
        origins = {name: f"x{i}" for i, name in enumerate(("given", "weight", *self.more))}
        held = dict(zip(origins, xs, strict=True))
        self.starts = "state" in held
        rows = given.shape[1:2]
        units = given.shape[-1] // (4 if form.is_lstm else 3) if form.is_lstm or form.is_gru else 0
        if not self.starts:
            held["state"] = ops.full((*rows, *weight.shape[:1]), 0, given)
        if form.is_lstm and "cell" not in held:
            held["cell"] = ops.full((*rows, units), 0, given)
        if form.cell == "linear_gru" and "bias" not in held:
            held["bias"] = ops.full((units,), 0, given)
        if self.lengths is not None:
            held["lengths"] = self.lengths
        order = ("given", "weight", "state", "cell", "bias", "peepholes", "projection", "lengths")
        found = ops.op("recurrent", **form._asdict())(*(held[n] for n in order if n in held))
        count = 3 if form.is_lstm else 2
        ys, kept = found[:count], found[count:]
        self.kept = self._kept(held, origins, ys, kept)
        return ys

    def _kept(
        self, held: dict[str, Tensor], origins: dict[str, str], ys: Tensors, kept: Tensors
    ) -> dict[str, tuple[str, Tensor]]:
        """What backward needs, by name, each with its origin."""
        found = {"states": ("y0", ys[0])}
        found.update((name, ("", t)) for name, t in zip(("gates", "cells"), kept, strict=False))
        needed = ("weight", "state", "cell", "peepholes", "projection", "lengths")
        names = (name for name in needed if name in held)
        found.update((name, (origins.get(name, "constant"), held[name])) for name in names)
        return found

    def keep(self, xs: Tensors, ys: Tensors) -> None:
        kept = self.__dict__.pop("kept")
        self.names = tuple(kept)
        self.come_from = tuple(origin for origin, _ in kept.values())
        self.save(*(t for _, t in kept.values()))

    def origins(self) -> Sequence[str]:
        """What each saved tensor is."""
        return self.come_from

    def gradients(self, dys: Tensors, wanted: Sequence[bool]) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs."""
        saved = {name: self.load(i) for i, name in enumerate(self.names)}
        given = ("gates", "states", "state", "cells", "cell", "weight")
        skipped = {"states", "state"} if self.form.is_lstm else set()
        if not self.form.is_gru:
            skipped |= {"state"}
        order = [n for n in given if n in saved and n not in skipped]
        order += [n for n in ("peepholes", "projection", "lengths") if n in saved]
        op = ops.op("recurrent_grad", **self.form._asdict())
        made = list(op(*dys, *(saved[name] for name in order)))
        found = {"given": made.pop(0), "state": made.pop(0)}
        if self.form.is_lstm:
            found["cell"] = made.pop(0)
        back = Back(self.form, self.starts, saved, found["given"], made)
        rest = {"weight": back.weight, "bias": back.bias, "peepholes": back.peepholes}
        rest["projection"] = back.projection
        names = ("given", "weight", *self.more)
        return tuple(
            (found[name] if name in found else rest[name]()) if want else None
            for name, want in zip(names, wanted, strict=True)
        )


def _rows(x: Tensor) -> Tensor:
    """(T, N, C) -> (T * N, C)."""
    steps, rows, columns = x.shape
    return ops.reshape(x, (steps * rows, columns))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """The sum over all steps and rows of the products of a feature of each."""
    return ops.matmul(ops.swap(_rows(a)), _rows(b))


class Back:
    """The gradients of the weights, from those of the gates: products over all steps."""

    def __init__(
        self, form: Form, starts: bool, saved: dict[str, Tensor], given: Tensor, made: list[Tensor]
    ) -> None:
        self.form, self.starts, self.saved, self.given, self.made = form, starts, saved, given, made

    def _before(self, name: str, first: str) -> Tensor:
        """The state of the step before each step, (T, N, ...)."""
        all_, start = self.saved[name], self.saved[first]
        steps, rows, columns = all_.shape
        if not steps:
            return all_
        start = ops.reshape(start, (1, rows, columns))
        join = ops.op("concat", axis=0)
        if not self.form.reverse:
            return join(start, ops.part(all_, 0, 0, steps - 1))
        before = join(ops.part(all_, 0, 1, steps), start)
        if not self.form.lengths:
            return before
        time = ops.arange(steps, all_, start=1)
        lengths = ops.reshape(self.saved["lengths"], (1, rows, 1))
        is_first = ops.op("binary", f="eq")(ops.reshape(time, (steps, 1, 1)), lengths)
        return ops.where(is_first, start, before)

    def _of_state(self) -> Tensor:
        """The gradient of the weights of the state, where it starts from zeros."""
        states, d = self.saved["states"], self.given
        steps = states.shape[0]
        if steps < 2:
            return ops.full((states.shape[-1], d.shape[-1]), 0, d)
        early, late = (0, steps - 1), (1, steps)
        ends = (late, early) if self.form.reverse else (early, late)
        return _product(ops.part(states, 0, *ends[0]), ops.part(d, 0, *ends[1]))

    def weight(self) -> Tensor:
        """The gradient of the weights of the state."""
        if not self.form.is_gru:
            if not self.starts:
                return self._of_state()
            return _product(self._before("states", "state"), self.given)
        units = self.given.shape[-1] // 3
        before = self._before("states", "state")
        gates = _product(before, ops.part(self.given, 2, 0, 2 * units))
        if self.form.cell == "linear_gru":
            candidate = _product(before, self.made[0])
        else:
            reset = ops.part(self.saved["gates"], 2, units, 2 * units)
            candidate = _product(
                ops.mul(reset, before), ops.part(self.given, 2, 2 * units, 3 * units)
            )
        return ops.op("concat", axis=1)(gates, candidate)

    def bias(self) -> Tensor:
        """The gradient of the bias of a GRU's candidate."""
        return ops.reduce_op("sum", (0, 1), False)(self.made[0])

    def peepholes(self) -> Tensor:
        """The gradient of the peepholes of the input, output and forget gates."""
        before, cells = self._before("cells", "cell"), self.saved["cells"]
        units = cells.shape[-1]
        sums = (
            ops.reduce_op("sum", (0, 1), False)(
                ops.mul(ops.part(self.given, 2, at, at + units), cell)
            )
            for at, cell in ((0, before), (units, cells), (2 * units, before))
        )
        return ops.op("concat", axis=0)(*sums)

    def projection(self) -> Tensor:
        """The gradient of the projection."""
        return _product(*self.made)
