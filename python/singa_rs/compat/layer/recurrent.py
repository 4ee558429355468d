"""Recurrent layers: all steps of several layers of cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ... import autograd
from ...errors import GraphError
from ...layer.check import below_one, count, flag, one_of
from ...tensor import Tensor, zeros
from .base import Layer, Shape

_MODES = ("relu", "tanh", "lstm", "gru")


class RNN(Layer):
    """A recurrent network (SINGA 1.x RNN, on every device). All weights are one parameter `weight`,
    in cuDNN's order (`autograd.RNNHandle`).

    `forward` takes the inputs of all steps, each (N, features), then the initial states and, for
    LSTM, the initial cell states, each (num_stacks * directions, N, hidden_size). It returns the
    states of all steps, each (N, directions * hidden_size), then the last states and cell states.
    `backward` takes a gradient for each of the results and returns one for each of the inputs.
    States, and gradients of the last ones, may be tensors of shape () for zeros.
    """

    def __init__(
        self,
        name: str,
        hidden_size: int,
        rnn_mode: str = "lstm",
        dropout: float = 0.0,
        num_stacks: int = 1,
        input_mode: str = "linear",
        bidirectional: bool = False,
        param_specs: Mapping[str, Any] | None = None,
        input_sample_shape: Any = None,
    ) -> None:
        """`hidden_size`: units in each direction.

        Args:
            rnn_mode: "lstm", "gru", "tanh" or "relu".
            dropout: the share of what layers hand on that is dropped in training.
            num_stacks: the number of layers.
            input_mode: "linear".
            bidirectional: whether each layer also goes from the last step to the first.
            param_specs: how the weights begin and are trained (`ParamSpec`); uniform from 0 to 1 by
                default, as in SINGA.
            input_sample_shape: (features,).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(name)
        self.hidden_size = count(hidden_size, self._where("hidden_size"))
        self.rnn_mode = one_of(rnn_mode, self._where("rnn_mode"), _MODES)
        self.dropout = below_one(dropout, self._where("dropout"))
        self.num_stacks = count(num_stacks, self._where("num_stacks"))
        one_of(input_mode, self._where("input_mode"), ("linear",))
        self.bidirectional = flag(bidirectional, self._where("bidirectional"))
        self._specify("weight", param_specs, init="uniform", low=0, high=1)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    @property
    def _states(self) -> int:
        """The number of kinds of states."""
        return 2 if self.rnn_mode == "lstm" else 1

    def _setup(self, shape: Shape) -> Shape:
        if len(shape) != 1:
            raise self._refuse(f"a sample of {shape}", "(features,)")
        mode = _MODES.index(self.rnn_mode)
        how = (self.num_stacks, True, self.dropout, self.bidirectional)
        x = zeros((1, 1, shape[0]))
        self._handle = autograd.RNNHandle(x, self.hidden_size, mode, *how)
        self._make("W", self.param_specs[0], (self._handle.weights_size,))
        return (self._handle.ways * self.hidden_size,)

    def _inputs(self, x: Any) -> list[Tensor]:
        """All steps in one tensor (T, N, features), and the states that are given."""
        least = self._states + 1
        if not isinstance(x, (list, tuple)) or len(x) < least:
            want = f"a list of inputs and {self._states} initial states"
            raise GraphError(self._where(f"forward: got {_kind(x)}, want {want}"))
        steps = [self._checked(one, self._in) for one in x[: -self._states]]
        rows = steps[0].shape[0]
        if any(one.shape[0] != rows for one in steps):
            raise self._refuse("steps of different numbers of rows", "one number")
        shape = (self.num_stacks * self._handle.ways, rows, self.hidden_size)
        self._extent, self._state_shape = (len(steps), rows), shape
        states = [self._state_of(one, shape) for one in x[-self._states :]]
        self._given = [one is not None for one in states]
        with autograd.no_grad():
            joined = autograd.reshape(autograd.cat(steps, 0), (len(steps), *steps[0].shape))
        return [joined, *[one for one in states if one is not None]]

    def _state_of(self, x: Any, shape: Shape) -> Tensor | None:
        """A state, or a gradient of one; None for zeros."""
        if not isinstance(x, Tensor):
            raise TypeError(self._where(f"got {type(x).__name__} for a state, want a Tensor"))
        if x.shape == () or x.is_empty():
            return None
        if x.shape != shape:
            raise self._refuse(f"a state of shape {x.shape}", f"{shape}, or () for zeros")
        return x

    def _compute(self, x: Tensor, *states: Tensor) -> Tensor:
        """All results in one row, since a stretch of the tape has one result."""
        given = iter(states)
        found = [next(given) if is_given else None for is_given in self._given]
        run = autograd._RNN(self._handle).run
        made = run(x, *found, *[None] * (2 - len(found)), self.W)
        return autograd.cat([autograd.reshape(one, (one.numel,)) for one in made], 0)

    @property
    def _shapes(self) -> list[Shape]:
        """The shapes of what the last `forward` has returned, all steps together first."""
        return [(*self._extent, *self._out), *[self._state_shape] * self._states]

    def _output(self, y: Tensor) -> list[Tensor]:
        made, start = [], 0
        with autograd.no_grad():
            for shape in self._shapes:
                end = start + math.prod(shape)
                made.append(autograd.reshape(y[start:end], shape))
                start = end
            return [*[made[0][step] for step in range(self._extent[0])], *made[1:]]

    def _only(self, dy: Any) -> Tensor:
        """The gradients of all results in one row."""
        many = self._extent[0] + self._states
        if not isinstance(dy, (list, tuple)) or len(dy) != many:
            raise GraphError(self._where(f"backward: got {_kind(dy)}, want {many} gradients"))
        steps = [super(RNN, self)._only(one) for one in dy[: -self._states]]
        of_states = [self._state_of(one, self._state_shape) for one in dy[-self._states :]]
        zero = zeros(self._state_shape, steps[0].device, steps[0].dtype)
        every = [*steps, *[zero if one is None else one for one in of_states]]
        with autograd.no_grad():
            return autograd.cat([autograd.reshape(one, (one.numel,)) for one in every], 0)

    def _told(self, grads: list[Tensor | None]) -> list[Tensor]:
        """The gradient of each step, and of each state, without elements if it was not given."""
        of_steps, *rest = grads
        of_states = iter(rest)
        states = [next(of_states) if is_given else None for is_given in self._given]
        empty = zeros((0,))
        with autograd.no_grad():
            steps = [None if of_steps is None else of_steps[t] for t in range(self._extent[0])]
        return [empty if one is None else one for one in (*steps, *states)]


class LSTM(RNN):
    """Long short-term memory (SINGA 1.x LSTM)."""

    _mode = "lstm"

    def __init__(
        self,
        name: str,
        hidden_size: int,
        dropout: float = 0.0,
        num_stacks: int = 1,
        input_mode: str = "linear",
        bidirectional: bool = False,
        param_specs: Mapping[str, Any] | None = None,
        input_sample_shape: Any = None,
    ) -> None:
        """As `RNN`."""
        how = (dropout, num_stacks, input_mode, bidirectional, param_specs, input_sample_shape)
        super().__init__(name, hidden_size, self._mode, *how)


class GRU(LSTM):
    """Gated recurrent units (SINGA 1.x GRU)."""

    _mode = "gru"


def _kind(x: Any) -> str:
    return f"{len(x)} tensors" if isinstance(x, (list, tuple)) else type(x).__name__
