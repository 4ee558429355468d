"""SINGA's interface to recurrent networks of several layers, whose weights are one flat tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .._core import ShapeError
from ..refusals import count, flag
from ..tensor import Tensor
from ..tensor.keys import Settings
from ..tensor.numbers import real, whole
from . import ops
from .index import as_indices, getitem
from .nn import dropout as drop
from .shape import cat, reshape, transpose
from .table import FUNCTIONS

#: By SINGA's number of the mode, which is cuDNN's.
_MODES = ("relu", "tanh", "lstm", "gru")
_GATES = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}


class _Place(NamedTuple):
    """One direction of one layer: its inputs, where its weights and its biases start."""

    inputs: int
    weights: int
    biases: int
    reverse: bool


class RNNHandle(Settings):
    """What a recurrent network needs besides tensors (SINGA CudnnRNNHandle, on every device).

    Args:
        x: (T, N, I), of which only the number of features is used.
        hidden_size: units in each direction.
        mode: 0, 1, 2 or 3: with the rectifier, the hyperbolic tangent, LSTM, GRU.
        num_layers: each takes the states of the one before.
        bias: whether there are biases.
        dropout: the share of what layers hand on that is dropped in training.
        bidirectional: whether each layer also goes from the last step to the first.

    The weights, `weights_size` of them, are in cuDNN's order: for each layer and direction the rows
    of all gates (i f g o; r z n) for the inputs, then for the state; behind them all biases, in the
    same order.

    Raises:
        ShapeError: an x that is not (T, N, I).
        TypeError, ValueError: an argument of another type or out of its range.
    """

    feature_size: int
    hidden_size: int
    mode: int
    num_layers: int
    bias: bool
    dropout: float
    bidirectional: bool

    def __init__(
        self,
        x: Tensor,
        hidden_size: int,
        mode: int = 0,
        num_layers: int = 1,
        bias: int | bool = 1,
        dropout: float = 0.0,
        bidirectional: int | bool = 0,
    ) -> None:
        if not isinstance(x, Tensor) or x.rank != 3:
            got = f"shape {x.shape}" if isinstance(x, Tensor) else type(x).__name__
            raise ShapeError(f"RNNHandle: x: got {got}, want a tensor (steps, rows, features)")
        counts = {"hidden_size": hidden_size, "num_layers": num_layers}
        for name, value in counts.items():
            count(whole(value, f"RNNHandle: {name}"), f"RNNHandle: {name}")
        count(whole(mode, "RNNHandle: mode"), "RNNHandle: mode", 0, 3)
        ratio = real(dropout, "RNNHandle: dropout")
        if not 0 <= ratio < 1:
            raise ValueError(f"RNNHandle: dropout: got {dropout}, want a number in [0, 1)")
        super().__init__(
            feature_size=x.shape[2],
            hidden_size=int(hidden_size),
            mode=int(mode),
            num_layers=int(num_layers),
            bias=flag(bias, "RNNHandle: bias"),
            dropout=ratio,
            bidirectional=flag(bidirectional, "RNNHandle: bidirectional"),
        )

    @property
    def cell(self) -> str:
        """The kind of cell."""
        return _MODES[self.mode]

    @property
    def ways(self) -> int:
        """The number of directions."""
        return 2 if self.bidirectional else 1

    @property
    def columns(self) -> int:
        """The rows of a layer's weights in one direction."""
        return _GATES[self.cell] * self.hidden_size

    def _inputs(self, layer: int) -> int:
        return self.ways * self.hidden_size if layer else self.feature_size

    @property
    def weights_size(self) -> int:
        """The number of all weights."""
        sizes = (self._inputs(i) + self.hidden_size for i in range(self.num_layers))
        return self.ways * self.columns * (sum(sizes) + 2 * self.bias * self.num_layers)

    def places(self) -> Iterator[_Place]:
        """Where the weights of each layer and direction start."""
        weights, pairs = 0, self.ways * self.num_layers
        biases = self.weights_size - 2 * self.bias * self.columns * pairs
        for layer in range(self.num_layers):
            for way in range(self.ways):
                yield _Place(self._inputs(layer), weights, biases, bool(way))
                weights += self.columns * (self._inputs(layer) + self.hidden_size)
                biases += 2 * self.columns


class _RNN:
    """A recurrent network (SINGA _RNN, on every device).

    Called with x (T, N, I), the initial states `hx` and cell states `cx`, each (layers *
    directions, N, H) or None, and the flat weights, it returns a tuple of one tensor: the states
    (T, N, directions * H), or only those of the last step (N, directions * H).
    """

    def __init__(
        self,
        handle: RNNHandle,
        return_sequences: bool = False,
        use_mask: bool = False,
        seq_lengths: Any = None,
    ) -> None:
        """`return_sequences`: whether the states of all steps are returned.

        Args:
            handle: see `RNNHandle`.
            use_mask: whether rows have the lengths given.
            seq_lengths: (N,) integers.

        Raises:
            TypeError: another handle, or a mask without lengths.
        """
        if not isinstance(handle, RNNHandle):
            raise TypeError(f"_RNN: got {type(handle).__name__}, want an RNNHandle")
        if use_mask and seq_lengths is None:
            raise TypeError("_RNN: got use_mask without seq_lengths, want both or neither")
        self.handle, self.return_sequences = handle, bool(return_sequences)
        self.lengths = seq_lengths if use_mask else None

    def __call__(self, x: Tensor, hx: Tensor | None, cx: Tensor | None, w: Tensor) -> tuple[Tensor]:
        """The states of all steps or of the last one."""
        y = self.run(x, hx, cx, w)[0]
        return (y if self.return_sequences else self._last(y),)

    def run(self, x: Tensor, hx: Tensor | None, cx: Tensor | None, w: Tensor) -> list[Tensor]:
        """The states of all steps, those of the last step of every layer and direction
        (layers * directions, N, H), and for LSTM their last cell states, likewise."""
        handle, y = self.handle, x
        size = (handle.weights_size,)
        if w.shape != size:
            raise ShapeError(f"_RNN: got weights of shape {w.shape}, want {size}")
        found: list[tuple[Tensor, ...]] = []
        for n, place in enumerate(handle.places()):
            if n and n % handle.ways == 0:
                y = self._joined(found[-handle.ways :])
                y = drop(y, handle.dropout) if handle.dropout else y
            starts = [None if s is None else getitem(s, n) for s in (hx, cx)]
            found.append(self._one(y, place, starts, w))
        last = (list(of_all) for of_all in list(zip(*found, strict=True))[1:])
        return [self._joined(found[-handle.ways :]), *[_stacked(states) for states in last]]

    @staticmethod
    def _joined(found: list[tuple[Tensor, ...]]) -> Tensor:
        """The states of a layer in all directions."""
        return found[0][0] if len(found) == 1 else cat([states[0] for states in found], -1)

    def _one(
        self, x: Tensor, place: _Place, starts: list[Tensor | None], w: Tensor
    ) -> tuple[Tensor, ...]:
        """The states of one layer in one direction, the last one, and the last cell state."""
        handle, columns = self.handle, self.handle.columns
        at = place.weights

        def matrix(first: int, rows: int) -> Tensor:
            part = getitem(w, slice(first, first + columns * rows))
            return transpose(reshape(part, (columns, rows)), (1, 0))

        W, R = matrix(at, place.inputs), matrix(at + columns * place.inputs, handle.hidden_size)
        biases = slice(place.biases, place.biases + 2 * columns)
        b = getitem(w, biases) if handle.bias else None
        way = {"lengths": self.lengths, "reverse": place.reverse}
        if handle.cell == "lstm":
            return FUNCTIONS["lstm"](x, W, R, b, *starts, gate_order="ifgo", **way)
        if handle.cell == "gru":
            more = {"linear_before_reset": True, "gate_order": "rzn", **way}
            return FUNCTIONS["gru"](x, W, R, b, starts[0], **more)
        return FUNCTIONS["rnn"](x, W, R, b, starts[0], activation=handle.cell, **way)

    def _last(self, y: Tensor) -> Tensor:
        """The states of each row's last step."""
        if self.lengths is None:
            return getitem(y, -1)
        lengths, rows = self.lengths, y.shape[1]
        lengths = as_indices(lengths, "_RNN: seq_lengths", y.device)
        row = ops.arange(rows, y)
        # A row without steps has zeros in all of them.
        last = (lengths.as_type("int64") - 1).clip(0, None)
        return getitem(reshape(y, (y.shape[0] * rows, y.shape[2])), last * rows + row)


def _stacked(states: list[Tensor]) -> Tensor:
    """States (N, H) along a new first axis."""
    return cat([reshape(one, (1, *one.shape)) for one in states], 0)


FUNCTIONS.update(RNNHandle=RNNHandle, _RNN=_RNN)
