"""What layers of recurrent networks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import autograd, tensor
from ..errors import DTypeError, ShapeError
from ..shown import misgiven
from ..tensor import Tensor
from .base import Layer
from .check import axes, below_one, count, count_or_none, flag
from .linear import Embedding
from .parameters import parameter


def bounded(units: int) -> Callable[[Tensor], Any]:
    """An initialiser: uniform within 1 / sqrt(units) of 0 (PyTorch's)."""
    bound = 1 / math.sqrt(units)
    return lambda t: t.uniform(-bound, bound)


def indices_or_floats(x: Any, name: str, *ranks: int) -> Tensor:
    """Rejects what is neither a tensor of floats nor one of integers, which has one axis less."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {misgiven(x)}")
    if not (x.dtype.is_float or x.dtype.is_int):
        raise DTypeError(f"{name}: got dtype {x.dtype.name}, want floats or integers")
    axes(x, name, *(rank if x.dtype.is_float else rank - 1 for rank in ranks))
    return x


class RNN_Base(Layer):  # SINGA's name
    """What recurrent layers share (SINGA RNN_Base).

    Parameters of layer `i` are `W_l<i>` (inputs, gates * units), `R_l<i>` (state, gates * units)
    and `b_l<i>`, with the biases of the inputs, then those of the state; the other direction's end
    in `_reverse`. The gates stand in ONNX's order.
    """

    #: The number of gates.
    gates: ClassVar[int] = 1

    #: Those of the first layer; the others' are made by their names.
    W_l0: Tensor
    R_l0: Tensor
    b_l0: Tensor

    def __init__(
        self,
        input_size: int | None,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        embedding: Embedding | None = None,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.input_size = count_or_none(input_size, f"{name}: input_size")
        self.hidden_size = count(hidden_size, f"{name}: hidden_size")
        self.num_layers = count(num_layers, f"{name}: num_layers")
        self.bias = flag(bias, f"{name}: bias")
        self.batch_first = flag(batch_first, f"{name}: batch_first")
        self.dropout = below_one(dropout, f"{name}: dropout")
        self.bidirectional = flag(bidirectional, f"{name}: bidirectional")
        if embedding is not None and not isinstance(embedding, Embedding):
            raise TypeError(f"{name}: embedding: got {embedding!r}, want an Embedding")
        self.embedding = embedding
        self.proj_size = count(proj_size, f"{name}: proj_size", 0)
        if self.proj_size >= self.hidden_size:
            raise ValueError(f"{name}: proj_size: got {proj_size}, want less than {hidden_size}")

    @property
    def state_size(self) -> int:
        """The number of features of a state."""
        return self.proj_size or self.hidden_size

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _places(self) -> list[tuple[int, str]]:
        """The layers and directions, in the order of the states."""
        return [(i, way) for i in range(self.num_layers) for way in self._directions()]

    def _check(self, x: Any) -> Tensor:
        name = type(self).__name__
        x = indices_or_floats(x, name, 2, 3)
        wide = x.shape[-1] if x.dtype.is_float else self.input_size
        if x.dtype.is_float and self.input_size not in (None, wide):
            want = f"{self.input_size} on axis -1"
            raise ShapeError(f"{name}: got shape {x.shape}, want {want}")
        if not x.dtype.is_float and self.embedding is None and self.input_size is None:
            raise ValueError(f"{name}: got integers, want an input_size or an embedding for them")
        return x

    def initialize(self, x: Any, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters."""
        if isinstance(x, (list, tuple)):
            return self._initialize_plain(x)
        x = self._check(x)
        like, wide = x, self.input_size
        if x.dtype.is_float:
            wide = x.shape[-1]
        else:
            like = Tensor((0,), x.device, tensor.float32)
            wide = self.embedding.output_dim if self.embedding is not None else wide
        self.input_size = wide
        units, columns = self.hidden_size, self.gates * self.hidden_size
        fill = bounded(units)
        for i, way in self._places():
            rows = wide if i == 0 else self.state_size * len(self._directions())
            made = {"W": (rows, columns), "R": (self.state_size, columns)}
            if self.bias:
                made["b"] = (2 * columns,)
            if self.proj_size:
                made["P"] = (units, self.proj_size)
            for kind, shape in made.items():
                name = f"{kind}_l{i}{way}"
                setattr(self, name, parameter(shape, like, fill, f"{type(self).__name__}: {name}"))

    def _initialize_plain(self, xs: Sequence[Tensor]) -> None:
        raise TypeError(f"{type(self).__name__}: {misgiven(xs)}")

    def step_forward(self, *args: Any, **kwargs: Any) -> Any:
        """One step of a layer that takes lists of steps (SINGA step_forward)."""
        raise NotImplementedError(f"{type(self).__name__} takes no lists of steps")

    def _of(self, kind: str, place: tuple[int, str]) -> Tensor | None:
        return getattr(self, f"{kind}_l{place[0]}{place[1]}", None)

    def _step(self, place: tuple[int, str], x: Tensor, starts: Sequence[Any], lengths: Any) -> Any:
        """The states of a layer in one direction, and the last ones."""
        raise NotImplementedError

    def _run(self, x: Any, states: Sequence[Tensor | None], lengths: Any) -> tuple[Tensor, ...]:
        """The states of the last layer, then the last states of all layers, for each kind of state
        given."""
        x = self._check(x)
        if x.rank == (2 if x.dtype.is_float else 1):
            return self._run_one(x, states, lengths)
        y = self._time_first(x)
        starts, last = self._starts(x, states), []
        for i in range(self.num_layers):
            if i and self.dropout:
                y = autograd.dropout(y, self.dropout)
            found = [self._step((i, way), y, next(starts), lengths) for way in self._directions()]
            y = found[0][0] if len(found) == 1 else autograd.cat([one[0] for one in found], -1)
            last += [one[1:] for one in found]
        y = autograd.transpose(y, (1, 0, 2)) if self.batch_first else y
        return y, *(_stacked(kind) for kind in zip(*last, strict=True))

    def _run_one(
        self, x: Tensor, states: Sequence[Tensor | None], lengths: Any
    ) -> tuple[Tensor, ...]:
        """The same of one sequence, whose states and results have no axis for a batch."""
        self._check_states(states)
        given = [None if one is None else autograd.unsqueeze(one, 1) for one in states]
        axis = 0 if self.batch_first else 1
        y, *last = self._run(autograd.unsqueeze(x, axis), given, _length(lengths))
        return autograd.squeeze(y, axis), *(autograd.squeeze(one, 1) for one in last)

    def _time_first(self, x: Tensor) -> Tensor:
        """The inputs, steps first; the rows of an embedding for integers, unless it is multiplied
        by the weights."""
        if self.batch_first:
            x = autograd.transpose(x, (1, 0, *range(2, x.rank)))
        if not x.dtype.is_float and self.embedding is not None and not self._multiplies(x):
            return self.embedding(x)
        return x

    def _multiplies(self, x: Tensor) -> bool:
        """Whether the product of the embedding's table is smaller than that of the inputs."""
        table = self.embedding
        if table is None or x.dtype.is_float or x.numel < table.input_dim:
            return False
        if not table._initialized:
            table.initialize(x)
        return table.padding_idx is None

    def _weight(self, place: tuple[int, str], x: Tensor) -> Tensor:
        """The weights of the inputs; for indices, their products with the embedding's table."""
        W = self._of("W", place)
        if place[0] or x.dtype.is_float or self.embedding is None:
            return W
        return autograd.matmul(self.embedding.W, W)

    def _starts(self, x: Tensor, states: Sequence[Tensor | None]) -> Any:
        """The initial states of each layer and direction, in order."""
        self._check_states(states, x.shape[0 if self.batch_first else 1])
        for i in range(len(self._places())):
            yield [None if state is None else state[i] for state in states]

    def _check_states(self, states: Sequence[Any], *rows: int) -> None:
        """Rejects states of another shape than those of `rows` sequences, or of one alone."""
        name, sizes = type(self).__name__, (self.state_size, self.hidden_size)
        for state, size in zip(states, sizes, strict=False):
            if state is None:
                continue
            if not isinstance(state, Tensor):
                raise TypeError(f"{name}: got a state of {type(state).__name__}, want a Tensor")
            want = (len(self._places()), *rows, size)
            if state.shape != want:
                raise ShapeError(f"{name}: got a state of shape {state.shape}, want {want}")


def _length(length: Any) -> Any:
    """The number of steps of one sequence, as that of each of a batch."""
    if isinstance(length, Tensor):
        return autograd.unsqueeze(length, 0) if length.rank == 0 else length
    return [length] if length is not None and np.ndim(length) == 0 else length


def _stacked(states: Sequence[Tensor]) -> Tensor:
    if len(states) == 1:
        return autograd.unsqueeze(states[0], 0)
    return autograd.stack(states, 0)
