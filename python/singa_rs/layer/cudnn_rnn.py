"""SINGA's recurrent layer with flat weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import autograd
from ..tensor import Tensor
from .base import Layer
from .check import axes, below_one, count, flag, float_input, one_of
from .parameters import parameter
from .recurrent_base import bounded

if TYPE_CHECKING:
    from .typed import Given


class CudnnRNN(Layer):
    """A recurrent network of several layers whose weights are one flat parameter `W` in cuDNN's
    order (SINGA CudnnRNN, on every device); see `autograd.RNNHandle`."""

    def __init__(
        self,
        hidden_size: int,
        activation: str = "tanh",
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = True,
        dropout: float = 0,
        bidirectional: bool = False,
        rnn_mode: str = "lstm",
        use_mask: bool = False,
        return_sequences: bool = True,
    ) -> None:
        """`hidden_size`: units in each direction.

        Args:
            activation: "tanh" or "relu", of the mode "vanilla".
            num_layers: each takes the states of the one before.
            bias: whether there are biases.
            batch_first: whether inputs and results are (N, T, ...).
            dropout: the share of what layers hand on that is dropped in training.
            bidirectional: whether each layer also goes from the last step to the first.
            rnn_mode: "lstm", "gru", "vanilla", "tanh" or "relu".
            use_mask: whether calls give the lengths of rows.
            return_sequences: whether the result has the states of all steps, or of the last one.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        name = "CudnnRNN"
        self.hidden_size = count(hidden_size, f"{name}: hidden_size")
        self.activation = one_of(activation, f"{name}: activation", ("tanh", "relu"))
        self.num_layers = count(num_layers, f"{name}: num_layers")
        self.bias = flag(bias, f"{name}: bias")
        self.batch_first = flag(batch_first, f"{name}: batch_first")
        self.dropout = below_one(dropout, f"{name}: dropout")
        self.bidirectional = flag(bidirectional, f"{name}: bidirectional")
        modes = ("lstm", "gru", "vanilla", "tanh", "relu")
        self.rnn_mode = one_of(rnn_mode, f"{name}: rnn_mode", modes)
        self.use_mask = flag(use_mask, f"{name}: use_mask")
        self.return_sequences = flag(return_sequences, f"{name}: return_sequences")

    def _handle(self, x: Tensor) -> Any:
        mode = self.activation if self.rnn_mode == "vanilla" else self.rnn_mode
        return autograd.RNNHandle(
            x,
            self.hidden_size,
            ("relu", "tanh", "lstm", "gru").index(mode),
            self.num_layers,
            self.bias,
            self.dropout,
            self.bidirectional,
        )

    def initialize(
        self,
        x: Tensor,
        hx: Given | None = None,
        cx: Given | None = None,
        seq_lengths: Any = None,
    ) -> None:
        """Makes W."""
        float_input(x, "CudnnRNN")
        axes(x, "CudnnRNN", 3)
        self.handle = self._handle(x)
        shape = (self.handle.weights_size,)
        self.W = parameter(shape, x, bounded(self.hidden_size), "CudnnRNN: W")

    def forward(
        self,
        x: Tensor,
        hx: Given | None = None,
        cx: Given | None = None,
        seq_lengths: Any = None,
    ) -> Tensor:
        """(N, T, I), or (T, N, I) unless `batch_first`, -> the states (N, T, directions * H), or
        only those of the last step (N, directions * H).

        Args:
            x: the inputs.
            hx: the initial states (layers * directions, N, H); zeros if None.
            cx: the initial cell states, likewise.
            seq_lengths: the number of steps of each row, (N,) integers, with `use_mask`.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        float_input(x, "CudnnRNN")
        axes(x, "CudnnRNN", 3)
        x = autograd.transpose(x, (1, 0, 2)) if self.batch_first else x
        operator = autograd._RNN(self.handle, self.return_sequences, self.use_mask, seq_lengths)
        (y,) = operator(x, hx, cx, autograd.cast(self.W, x.dtype))
        is_turned = self.batch_first and self.return_sequences
        return autograd.transpose(y, (1, 0, 2)) if is_turned else y
