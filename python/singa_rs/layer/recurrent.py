"""Recurrent networks of several layers in one direction or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

from .. import autograd
from ..autograd.keywords import spelt
from ..tensor import Tensor
from .check import flag, one_of
from .linear import Embedding
from .recurrent_base import RNN_Base
from .steps import PlainSteps

if TYPE_CHECKING:
    from .typed import Given


class RNN(PlainSteps, RNN_Base):
    """Recurrent layers: `h = tanh(x W + h R + b)` (Elman, 1990; ONNX RNN, PyTorch RNN).

    Given a list of steps, it is SINGA's layer: see `forward`.
    """

    plain: ClassVar[tuple[str, ...]] = ("",)
    names: ClassVar[dict[str, str]] = {"xs": "x", "h0": "state"}

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        embedding: Embedding | None = None,
    ) -> None:
        """`input_size`: features of an input; None takes those of the first.

        Args:
            hidden_size: units in each direction.
            num_layers: each takes the states of the one before.
            nonlinearity: "tanh" or "relu".
            bias: whether there are biases.
            batch_first: whether inputs and results are (N, T, ...).
            dropout: the share of what layers hand on that is dropped in training.
            bidirectional: whether each layer also goes from the last step to the first.
            embedding: the rows of its table are the inputs for integers (N, T); without one,
                integers below `input_size` stand for one-hot inputs.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        options = (num_layers, bias, batch_first, dropout, bidirectional, embedding)
        super().__init__(input_size, hidden_size, *options)
        self.nonlinearity = one_of(nonlinearity, "RNN: nonlinearity", ("tanh", "relu"))

    @overload
    def forward(
        self, x: Tensor, state: Tensor | None = None, lengths: Any = None
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def forward(
        self, xs: Sequence[Tensor], h0: Tensor | None = None
    ) -> tuple[list[Tensor], Tensor]: ...
    @spelt(names, "RNN")
    def forward(self, x: Any, state: Tensor | None = None, lengths: Any = None) -> Any:
        """(T, N, I) -> the states of the last layer (T, N, directions * H), and the last states of
        all layers (layers * directions, N, H), which is also the shape of `state`, the initial
        ones, zeros if None. One sequence (T, I) has no N anywhere.
        `lengths`: see `autograd.rnn`; a number for one sequence.

        SINGA's call, `layer([x_1, ..., x_T], h_0)` with (N, I) and (N, H), returns a list of the
        states and the last one; there these are `xs` and `h0`.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        if isinstance(x, (list, tuple)):
            return self._plain(x, state)
        return self._run(x, (state,), lengths)

    def _step(self, place: tuple[int, str], x: Tensor, starts: Sequence[Any], lengths: Any) -> Any:
        W, R, b = self._weight(place, x), self._of("R", place), self._of("b", place)
        way = {"lengths": lengths, "reverse": bool(place[1])}
        return autograd.rnn(x, W, R, b, *starts, activation=self.nonlinearity, **way)

    if TYPE_CHECKING:  # of overloaded methods, a protocol knows the first form alone

        @overload
        def __call__(
            self, x: Given, state: Given | None = None, lengths: Any = None
        ) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self, xs: Sequence[Given], h0: Given | None = None
        ) -> tuple[list[Tensor], Tensor]: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Calls `forward`."""

    def step_forward(
        self,
        x: Tensor,
        h: Tensor,
        Wx: Tensor,  # SINGA's names
        Wh: Tensor,
        b: Tensor,
    ) -> Tensor:
        """One step: (N, I) and (N, H) -> (N, H)."""
        y = autograd.add_bias(autograd.matmul(x, Wx) + autograd.matmul(h, Wh), b)
        return autograd.relu(y) if self.nonlinearity == "relu" else autograd.tanh(y)

    _joint = step_forward


class LSTM(PlainSteps, RNN_Base):
    """Layers of long short-term memory (Hochreiter and Schmidhuber, 1997; ONNX LSTM, PyTorch LSTM).

    Given a list of steps, it is SINGA's layer: see `forward`.
    """

    gates = 4
    plain: ClassVar[tuple[str, ...]] = ("i", "f", "o", "g")
    names: ClassVar[dict[str, str]] = {"xs": "x", "h0_c0": "state"}

    @overload
    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        nonlinearity: str = "tanh",
        proj_size: int = 0,
        embedding: Embedding | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        nonlinearity: str,
        /,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        proj_size: int = 0,
        embedding: Embedding | None = None,
    ) -> None: ...
    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        *args: Any,
        nonlinearity: str = "tanh",
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        embedding: Embedding | None = None,
    ) -> None:
        """`LSTM(inputs, units, num_layers, bias, batch_first, dropout, bidirectional)` as in
        PyTorch, or as in SINGA with `nonlinearity`, which is "tanh", before `num_layers`.

        Args:
            input_size: features of an input; None takes those of the first.
            hidden_size: units in each direction.
            nonlinearity: "tanh".
            num_layers: each takes the states of the one before.
            bias: whether there are biases.
            batch_first: whether inputs and results are (N, T, ...).
            dropout: the share of what layers hand on that is dropped in training.
            bidirectional: whether each layer also goes from the last step to the first.
            proj_size: the features of states if they are projected (Sak et al., 2014), parameters
                `P_l<i>`; 0 if not.
            embedding: the rows of its table are the inputs for integers (N, T); without one,
                integers below `input_size` stand for one-hot inputs.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        options: tuple[Any, ...] = (num_layers, bias, batch_first, dropout, bidirectional)
        given = len(args) + 2
        if args and isinstance(args[0], str):
            nonlinearity, *args = args  # type: ignore[assignment]
        if len(args) > len(options):
            most = given - len(args) + len(options)
            raise TypeError(f"LSTM: got {given} arguments in order, want at most {most}")
        options = (*args, *options[len(args) :], embedding, proj_size)
        super().__init__(input_size, hidden_size, *options)
        self.nonlinearity = one_of(nonlinearity, "LSTM: nonlinearity", ("tanh",))

    @overload
    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None, lengths: Any = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
    @overload
    def forward(
        self, xs: Sequence[Tensor], h0_c0: tuple[Tensor, Tensor] | None = None
    ) -> tuple[list[Tensor], Tensor, Tensor]: ...
    @spelt(names, "LSTM")
    def forward(self, x: Any, state: Any = None, lengths: Any = None) -> Any:
        """(T, N, I) -> the states of the last layer (T, N, directions * H), and a pair: the last
        states and the last cell states of all layers, (layers * directions, N, H) each. `state` is
        such a pair, the initial ones, zeros if None. One sequence (T, I) has no N anywhere.
        `lengths`: see `autograd.lstm`; a number for one sequence.

        SINGA's call, `layer([x_1, ..., x_T], (h_0, c_0))` with (N, I) and (N, H), returns a list of
        the states, the last one and the last cell state; c_0 may be (N, 1). There these are `xs`
        and `h0_c0`.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        if isinstance(x, (list, tuple)):
            return self._plain(x, state)
        y, h, c = self._run(x, _pair(state, "LSTM"), lengths)
        return y, (h, c)

    def _step(self, place: tuple[int, str], x: Tensor, starts: Sequence[Any], lengths: Any) -> Any:
        W, R, b = self._weight(place, x), self._of("R", place), self._of("b", place)
        way = {"lengths": lengths, "reverse": bool(place[1])}
        return autograd.lstm(x, W, R, b, *starts, projection=self._of("P", place), **way)

    if TYPE_CHECKING:  # as in `RNN`

        @overload
        def __call__(
            self, x: Given, state: tuple[Given, Given] | None = None, lengths: Any = None
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
        @overload
        def __call__(
            self, xs: Sequence[Given], h0_c0: tuple[Given, Given] | None = None
        ) -> tuple[list[Tensor], Tensor, Tensor]: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Calls `forward`."""

    def step_forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One step of SINGA's layer: (N, I), (N, H) and (N, H) -> the new state and cell state."""

        def gate(name: str) -> Tensor:
            sums = [
                autograd.add_bias(autograd.matmul(of, getattr(self, f"W{kind}_{name}")), bias)
                for of, kind in ((x, "x"), (h, "h"))
                for bias in (getattr(self, f"B{kind}_{name}"),)
            ]
            return sums[0] + sums[1]

        i, f, o = (autograd.sigmoid(gate(name)) for name in "ifo")
        c = f * c + i * autograd.tanh(gate("g"))
        return o * autograd.tanh(c), c

    _joint = step_forward


def _pair(state: Any, name: str) -> tuple[Tensor | None, Tensor | None]:
    if state is None:
        return None, None
    if not isinstance(state, (list, tuple)) or len(state) != 2:
        raise TypeError(f"{name}: got a state of {type(state).__name__}, want a pair of tensors")
    return tuple(state)  # type: ignore[return-value]


class GRU(RNN_Base):
    """Layers of gated recurrent units (Cho et al., 2014; ONNX GRU, PyTorch GRU)."""

    gates = 3

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        linear_before_reset: bool = True,
        embedding: Embedding | None = None,
    ) -> None:
        """`input_size`: features of an input; None takes those of the first.

        Args:
            hidden_size: units in each direction.
            num_layers: each takes the states of the one before.
            bias: whether there are biases.
            batch_first: whether inputs and results are (N, T, ...).
            dropout: the share of what layers hand on that is dropped in training.
            bidirectional: whether each layer also goes from the last step to the first.
            linear_before_reset: whether the reset is behind the candidate's product, as PyTorch's
                and cuDNN's; ONNX's default is before it.
            embedding: the rows of its table are the inputs for integers (N, T); without one,
                integers below `input_size` stand for one-hot inputs.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        options = (num_layers, bias, batch_first, dropout, bidirectional, embedding)
        super().__init__(input_size, hidden_size, *options)
        self.linear_before_reset = flag(linear_before_reset, "GRU: linear_before_reset")

    def forward(
        self, x: Tensor, state: Given | None = None, lengths: Any = None
    ) -> tuple[Tensor, Tensor]:
        """(T, N, I) -> the states of the last layer (T, N, directions * H), and the last states of
        all layers (layers * directions, N, H), which is also the shape of `state`, the initial
        ones, zeros if None. One sequence (T, I) has no N anywhere.
        `lengths`: see `autograd.gru`; a number for one sequence.

        Raises:
            ShapeError, DTypeError: tensors that do not fit.
        """
        y, h = self._run(x, (state,), lengths)
        return y, h

    def _step(self, place: tuple[int, str], x: Tensor, starts: Sequence[Any], lengths: Any) -> Any:
        W, R, b = self._weight(place, x), self._of("R", place), self._of("b", place)
        way = {"lengths": lengths, "reverse": bool(place[1])}
        linear = self.linear_before_reset
        return autograd.gru(x, W, R, b, *starts, linear_before_reset=linear, **way)
