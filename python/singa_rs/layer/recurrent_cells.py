"""Single steps of recurrent networks, for loops written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .. import autograd, tensor
from ..errors import ShapeError
from ..tensor import Tensor
from .base import Layer
from .check import count, count_or_none, flag, one_of
from .parameters import parameter
from .recurrent_base import bounded, indices_or_floats

if TYPE_CHECKING:
    from .typed import Given


class _Cell(Layer):
    """Parameters `W` (inputs, gates * units), `R` (units, gates * units) and `b`, with the biases
    of the inputs, then those of the state; gates in ONNX's order."""

    gates: ClassVar[int] = 1

    def __init__(self, input_size: int | None, hidden_size: int, bias: bool = True) -> None:
        """`input_size`: features of an input; None takes those of the first.

        Args:
            hidden_size: units.
            bias: whether there are biases.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = type(self).__name__
        self.input_size = count_or_none(input_size, f"{name}: input_size")
        self.hidden_size = count(hidden_size, f"{name}: hidden_size")
        self.bias = flag(bias, f"{name}: bias")

    def _check(self, x: Any) -> Tensor:
        name = type(self).__name__
        x = indices_or_floats(x, name, 2)
        if x.dtype.is_float and self.input_size not in (None, x.shape[1]):
            raise ShapeError(f"{name}: got shape {x.shape}, want {self.input_size} on axis 1")
        if not x.dtype.is_float and self.input_size is None:
            raise ValueError(f"{name}: got integers, want an input_size for them")
        return x

    def initialize(self, x: Any, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters."""
        x, name = self._check(x), type(self).__name__
        like = x if x.dtype.is_float else Tensor((0,), x.device, tensor.float32)
        self.input_size = x.shape[1] if x.dtype.is_float else self.input_size
        units, columns = self.hidden_size, self.gates * self.hidden_size
        fill = bounded(units)
        self.W = parameter((self.input_size, columns), like, fill, f"{name}: W")
        self.R = parameter((units, columns), like, fill, f"{name}: R")
        if self.bias:
            self.b = parameter((2 * columns,), like, fill, f"{name}: b")

    def _arguments(self, x: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        x = self._check(x)
        return autograd.unsqueeze(x, 0), self.W, self.R, getattr(self, "b", None), *state


class RNNCell(_Cell):
    """One step of `RNN` (PyTorch RNNCell)."""

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
    ) -> None:
        """`input_size`: features of an input; None takes those of the first.

        Args:
            hidden_size: units.
            bias: whether there are biases.
            nonlinearity: "tanh" or "relu".

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(input_size, hidden_size, bias)
        self.nonlinearity = one_of(nonlinearity, "RNNCell: nonlinearity", ("tanh", "relu"))

    def forward(self, x: Tensor, state: Given | None = None) -> Tensor:
        """(N, I) and the state (N, H), zeros if None -> the new state.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        given = self._arguments(x, (state,))
        return autograd.rnn(*given, activation=self.nonlinearity)[1]


class LSTMCell(_Cell):
    """One step of `LSTM` (PyTorch LSTMCell)."""

    gates = 4

    def forward(self, x: Tensor, state: tuple[Given, Given] | None = None) -> tuple[Tensor, Tensor]:
        """(N, I) and the state and cell state (N, H), zeros if None -> the new ones.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        state = (None, None) if state is None else state  # type: ignore[assignment]
        if not isinstance(state, (list, tuple)) or len(state) != 2:
            raise TypeError(f"LSTMCell: got {type(state).__name__}, want a pair of states")
        _, h, c = autograd.lstm(*self._arguments(x, state))
        return h, c


class GRUCell(_Cell):
    """One step of `GRU` (PyTorch GRUCell)."""

    gates = 3

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        bias: bool = True,
        linear_before_reset: bool = True,
    ) -> None:
        """`input_size`: features of an input; None takes those of the first.

        Args:
            hidden_size: units.
            bias: whether there are biases.
            linear_before_reset: whether the reset is behind the candidate's product.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(input_size, hidden_size, bias)
        self.linear_before_reset = flag(linear_before_reset, "GRUCell: linear_before_reset")

    def forward(self, x: Tensor, state: Given | None = None) -> Tensor:
        """(N, I) and the state (N, H), zeros if None -> the new state.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        given = self._arguments(x, (state,))
        return autograd.gru(*given, linear_before_reset=self.linear_before_reset)[1]
