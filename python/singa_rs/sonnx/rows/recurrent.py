"""Recurrent layers: RNN, LSTM and GRU, in one direction or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor
from ..table import reads
from .steps import ACTIVATIONS, Cell, Steps, activation

#: The activations that the engine computes whole layers with.
_USUAL = {
    "RNN": (("tanh",), ("relu",)),
    "GRU": (("sigmoid", "tanh"),),
    "LSTM": (("sigmoid", "tanh", "tanh"),),
}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
Strings = Sequence[str] | None
Floats = Sequence[float] | None


class _Weights(NamedTuple):
    """The tensors of one direction, None for those that are left out."""

    w: Tensor
    r: Tensor
    b: Tensor | None
    h: Tensor | None
    c: Tensor | None
    p: Tensor | None


class _Layer(NamedTuple):
    """What the directions of a layer share."""

    op: str
    x: Tensor
    lengths: Tensor | None
    clip: float | None
    input_forget: bool
    linear: bool

    def run(self, one: _Weights, reverse: bool, functions: Sequence[Any]) -> tuple[Tensor, ...]:
        """The states of all steps and the last ones: the engine's where it has the functions."""
        w, r = (autograd.transpose(t, (1, 0)) for t in (one.w, one.r))
        names = tuple(name for name, *rest in functions if rest == [None, None])
        if self.clip is None and not self.input_forget and names in _USUAL[self.op]:
            return self._whole(one, w, r, reverse, names)
        cell = Cell(
            [activation(*given) for given in functions], self.clip, self.input_forget, self.linear
        )
        return Steps(self.op, cell, r, one.b, one.p).run(
            self.x, w, (one.h, one.c), self.lengths, reverse
        )

    def _whole(
        self, one: _Weights, w: Tensor, r: Tensor, reverse: bool, names: tuple[str, ...]
    ) -> tuple[Tensor, ...]:
        how = {"lengths": self.lengths, "reverse": reverse}
        if self.op == "RNN":
            return autograd.rnn(self.x, w, r, one.b, one.h, activation=names[0], **how)
        if self.op == "GRU":
            linear = self.linear
            return autograd.gru(self.x, w, r, one.b, one.h, linear_before_reset=linear, **how)
        return autograd.lstm(self.x, w, r, one.b, one.h, one.c, peepholes=one.p, **how)


def _functions(
    op: str, count: int, names: Strings, alphas: Floats, betas: Floats
) -> list[list[tuple[str, float | None, float | None]]]:
    """The activations of each direction, each with its parameters: those that have any take the
    next ones given."""
    usual = _USUAL[op][0]
    given = [one.lower() for one in names or usual * count]
    if op == "RNN":
        # Its default in ONNX names two also for one direction.
        given = given[:count]
    if len(given) != len(usual) * count or not set(given) <= set(ACTIVATIONS):
        want = f"{len(usual)} for each of {count} directions, of {', '.join(ACTIVATIONS)}"
        raise ValueError(f"{op}: got activations {given}, want {want}")
    first, second = iter(alphas or ()), iter(betas or ())
    every = []
    for name in given:
        takes = ACTIVATIONS[name].parameters
        alpha = next(first, None) if takes > 0 else None
        every.append((name, alpha, next(second, None) if takes > 1 else None))
    return [every[i : i + len(usual)] for i in range(0, len(every), len(usual))]


def _part(x: Tensor | None, i: int) -> Tensor | None:
    return None if x is None else x[i]


def _check_hidden(op: str, r: Tensor, hidden: int | None) -> None:
    if hidden is not None and r.shape[-1] != hidden:
        raise ShapeError(f"{op}: got recurrent weights {r.shape} for hidden_size {hidden}")


def _layer(
    op: str, x: Tensor, weights: Sequence[Tensor | None], lengths: Tensor | None, *,
    direction: str, layout: int, hidden_size: int | None, activations: Strings, alphas: Floats,
    betas: Floats, clip: float | None = None, input_forget: int = 0, linear: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """All directions of a layer, joined: (T, directions, N, H), then the last states, (directions,
    N, H); with a layout of 1 N comes first."""
    if direction not in _DIRECTIONS or layout not in (0, 1):
        want = f"{', '.join(_DIRECTIONS)}, and 0 or 1"
        raise ValueError(f"{op}: got direction {direction!r}, layout {layout}, want {want}")
    w, r, b, h, c, p = weights
    _check_hidden(op, r, hidden_size)
    if layout:
        x, h, c = (t if t is None else autograd.swapaxes(t, 0, 1) for t in (x, h, c))
    turned = _DIRECTIONS[direction]
    layer = _Layer(op, x, lengths, clip, bool(input_forget), bool(linear))
    functions = _functions(op, len(turned), activations, alphas, betas)
    found = []
    for i, reverse in enumerate(turned):
        one = _Weights(*(_part(t, i) for t in (w, r, b, h, c, p)))
        found.append(layer.run(one, reverse, functions[i]))
    states, *last = zip(*found, strict=True)
    y, ends = autograd.stack(states, 1), [autograd.stack(one, 0) for one in last]
    if layout:
        y, ends = autograd.transpose(y, (2, 0, 1, 3)), [autograd.swapaxes(t, 0, 1) for t in ends]
    return y, *ends


@reads("RNN", since=7)
def rnn(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: Floats = None,
    activation_beta: Floats = None, activations: Strings = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int | None = None, layout: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A recurrent layer."""
    return _layer(
        "RNN", x, (w, r, b, initial_h, None, None), sequence_lens, direction=direction,
        layout=layout, hidden_size=hidden_size, activations=activations, alphas=activation_alpha,
        betas=activation_beta, clip=clip,
    )  # fmt: skip


@reads("GRU", since=7)
def gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: Floats = None,
    activation_beta: Floats = None, activations: Strings = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int | None = None, layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A layer of gated recurrent units."""
    return _layer(
        "GRU", x, (w, r, b, initial_h, None, None), sequence_lens, direction=direction,
        layout=layout, hidden_size=hidden_size, activations=activations, alphas=activation_alpha,
        betas=activation_beta, clip=clip, linear=linear_before_reset,
    )  # fmt: skip


@reads("LSTM", since=7)
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
    activation_alpha: Floats = None, activation_beta: Floats = None, activations: Strings = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    input_forget: int = 0, layout: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A layer of long short-term memory."""
    return _layer(
        "LSTM", x, (w, r, b, initial_h, initial_c, p), sequence_lens, direction=direction,
        layout=layout, hidden_size=hidden_size, activations=activations, alphas=activation_alpha,
        betas=activation_beta, clip=clip, input_forget=input_forget,
    )  # fmt: skip
