"""Recurrent layers step by step: for activations, bounds and couplings that the engine's whole
layers do not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import autograd
from ...tensor import Tensor, full

Function = Callable[[Tensor], Tensor]


class _Activation(NamedTuple):
    """A function with up to two parameters."""

    run: Callable[..., Tensor]
    #: Their defaults; None for one that has to be given.
    usual: tuple[float | None, ...] = ()

    @property
    def parameters(self) -> int:
        """How many parameters it has."""
        return len(self.usual)


#: ONNX's activations of recurrent layers, by their names in lower case.
ACTIVATIONS = {
    "relu": _Activation(lambda x: autograd.relu(x)),
    "tanh": _Activation(lambda x: autograd.tanh(x)),
    "sigmoid": _Activation(lambda x: autograd.sigmoid(x)),
    "affine": _Activation(lambda x, a, b: x * a + b, (1.0, 0.0)),
    "leakyrelu": _Activation(lambda x, a: autograd.leakyrelu(x, a), (0.01,)),
    "thresholdedrelu": _Activation(lambda x, a: autograd.where(x > a, x, 0.0), (1.0,)),
    "scaledtanh": _Activation(lambda x, a, b: autograd.tanh(x * b) * a, (None, None)),
    "hardsigmoid": _Activation(lambda x, a, b: autograd.clip(x * a + b, 0.0, 1.0), (0.2, 0.5)),
    "elu": _Activation(lambda x, a: autograd.elu(x, a), (1.0,)),
    "softsign": _Activation(lambda x: autograd.softsign(x)),
    "softplus": _Activation(lambda x: autograd.softplus(x)),
}


def activation(name: str, alpha: float | None, beta: float | None) -> Function:
    """An activation with its parameters.

    Raises:
        ValueError: one is missing that has no default.
    """
    run, usual = ACTIVATIONS[name]
    given = [own if one is None else one for own, one in zip(usual, (alpha, beta), strict=False)]
    if None in given:
        raise ValueError(f"activation {name}: got parameters {given}, want both")
    return lambda x: run(x, *given)


class Cell(NamedTuple):
    """How one step is computed."""

    functions: Sequence[Function]
    clip: float | None
    input_forget: bool
    linear: bool

    def bounded(self, x: Tensor) -> Tensor:
        """The input of an activation."""
        return x if self.clip is None else autograd.clip(x, -self.clip, self.clip)

    def at(self, i: int, x: Tensor) -> Tensor:
        """Activation `i`."""
        return self.functions[i](self.bounded(x))


class Steps:
    """All steps of a layer in one direction, one after the other.

    Args:
        op: "RNN", "GRU" or "LSTM".
        r: (H, gates * H).
        b: (2 * gates * H,), the biases of the inputs and of the state, or None.
        p: (3 * H,), the peepholes of an LSTM, or None.
    """

    def __init__(self, op: str, cell: Cell, r: Tensor, b: Tensor | None, p: Tensor | None) -> None:
        self.cell, self.r, self.p, self.units = cell, r, p, r.shape[0]
        self.step = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[op]
        self.has_cell = op == "LSTM"
        wide = r.shape[1]
        self.biases = None if b is None else autograd.split(b, 0, [wide, wide])

    def run(
        self, x: Tensor, w: Tensor, first: tuple[Tensor | None, Tensor | None],
        lengths: Tensor | None, reverse: bool,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """The states (T, N, H), zeros from a row's length on, and the last state and cell state."""
        steps, rows = x.shape[:2]
        given = autograd.matmul(x, w)
        if self.biases is not None:
            given = given + self.biases[0]
        shape = (rows, self.units)
        zeros = full(shape, 0, dtype=x.dtype)
        state = tuple(zeros if one is None else one for one in first[: 1 + self.has_cell])
        found: list[Any] = [None] * steps
        for t in reversed(range(steps)) if reverse else range(steps):
            new = self.step(given[t], *state)
            if lengths is None:
                state, found[t] = new, new[0]
                continue
            counts = (lengths > t).reshape((rows, 1))
            state = tuple(autograd.where(counts, a, b) for a, b in zip(new, state, strict=True))
            found[t] = autograd.where(counts, new[0], 0.0)
        states = autograd.stack(found, 0) if steps else full((0, *shape), 0, dtype=x.dtype)
        return states, *state

    def _gates(self, x: Tensor, count: int) -> tuple[Tensor, ...]:
        return autograd.split(x, -1, [self.units] * count)

    def _of_state(self, h: Tensor) -> Tensor:
        made = autograd.matmul(h, self.r)
        return made if self.biases is None else made + self.biases[1]

    def _rnn(self, x: Tensor, h: Tensor) -> tuple[Tensor]:
        return (self.cell.at(0, x + self._of_state(h)),)

    def _gru(self, x: Tensor, h: Tensor) -> tuple[Tensor]:
        zx, rx, nx = self._gates(x, 3)
        zh, rh, nh = self._gates(self._of_state(h), 3)
        update, reset = self.cell.at(0, zx + zh), self.cell.at(0, rx + rh)
        if self.cell.linear:
            candidate = nx + reset * nh
        else:
            weight = self._gates(self.r, 3)[2]
            candidate = nx + autograd.matmul(reset * h, weight)
            if self.biases is not None:
                candidate = candidate + self._gates(self.biases[1], 3)[2]
        return ((1 - update) * self.cell.at(1, candidate) + update * h,)

    def _lstm(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, o, f, g = self._gates(x + self._of_state(h), 4)
        if self.p is not None:
            pi, po, pf = self._gates(self.p, 3)
            i, f = i + pi * c, f + pf * c
        keep_in = self.cell.at(0, i)
        forget = 1 - keep_in if self.cell.input_forget else self.cell.at(0, f)
        c = forget * c + keep_in * self.cell.at(1, g)
        out = self.cell.at(0, o if self.p is None else o + po * c)
        return out * self.cell.functions[2](c), c
