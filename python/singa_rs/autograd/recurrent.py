"""Recurrent networks of one layer in one direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import DTypeError, ShapeError, int64
from ..shown import misgiven
from ..tensor import Tensor
from . import ops
from .index import as_indices, embedding, getitem
from .matmul import matmul
from .recurrence import Form, Recurrence
from .shape import cat, plain_reshape
from .table import public

#: The engine's gates, which are ONNX's, and other letters for them.
_LSTM, _GRU = "iofc", "zrh"
_LETTERS = {"lstm": {"g": "c"}, "gru": {"u": "z", "n": "h"}}


def _tensor(value: Any, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{what}: {misgiven(value)}")
    return value


def _fits(t: Tensor, shape: tuple[int, ...], like: Tensor, what: str) -> Tensor:
    """A tensor of this shape, in the dtype of another."""
    if _tensor(t, what).shape != shape:
        raise ShapeError(f"{what}: got shape {t.shape}, want {shape}")
    if t.dtype != like.dtype:
        raise DTypeError(f"{what}: got dtype {t.dtype.name}, want {like.dtype.name}")
    return t


def _columns(t: Tensor, places: Sequence[int], count: int) -> Tensor:
    """Some of `count` equal parts of the last axis, in this order."""
    units = t.shape[-1] // count
    return cat([getitem(t, (..., slice(i * units, (i + 1) * units))) for i in places], -1)


class _Gates:
    """How the gates of the caller's weights are brought into the engine's order."""

    def __init__(self, name: str, own: str, order: Any) -> None:
        given = str(order)
        letters = _LETTERS.get(name, {})
        found = "".join(letters.get(one, one) for one in given)
        if sorted(found) != sorted(own):
            raise ValueError(f"{name}: gate_order: got {order!r}, want the letters {own!r}")
        self.count = len(own)
        self.places = None if found == own else [found.index(one) for one in own]

    def ordered(self, t: Tensor, times: int = 1) -> Tensor:
        """Columns for each gate, `times` over."""
        if self.places is None:
            return t
        every = [i * self.count + place for i in range(times) for place in self.places]
        return _columns(t, every, times * self.count)


class _Call:
    """The arguments that `rnn`, `lstm` and `gru` share, checked."""

    def __init__(
        self, name: str, gates: _Gates, x: Tensor, W: Tensor, R: Tensor, projected: bool = False
    ) -> None:
        self.name, self.gates = name, gates
        for what, t, rank in (("W", W, 2), ("R", R, 2)):
            if not _tensor(t, f"{name}: {what}").dtype.is_float:
                raise DTypeError(f"{name}: {what}: got dtype {t.dtype.name}, want a float dtype")
            if t.rank != rank:
                want = "(rows, gates * units)"
                raise ShapeError(f"{name}: {what}: got shape {t.shape}, want {want}")
        columns = W.shape[1]
        self.units, rest = divmod(columns, gates.count)
        if rest:
            want = f"columns for {gates.count} gates"
            raise ShapeError(f"{name}: W: got shape {W.shape}, want {want}")
        self.state = R.shape[0] if projected else self.units
        _fits(R, (self.state, columns), W, f"{name}: R")
        self._check_input(_tensor(x, f"{name}: x"), W)
        self.steps, self.rows = x.shape[:2]
        self.x, self.W, self.R = x, gates.ordered(W), gates.ordered(R)

    def _check_input(self, x: Tensor, W: Tensor) -> None:
        if x.dtype.is_float:
            if x.rank != 3 or x.shape[2] != W.shape[0]:
                want = f"(steps, rows, {W.shape[0]}), or (steps, rows) integers"
                raise ShapeError(f"{self.name}: x: got shape {x.shape}, want {want}")
            if x.dtype != W.dtype:
                got = f"dtypes {x.dtype.name} and {W.dtype.name}"
                raise DTypeError(f"{self.name}: got {got} for x and W, want equal ones")
        elif x.rank != 2:
            raise ShapeError(f"{self.name}: x: got shape {x.shape}, want (steps, rows) of integers")

    def biases(self, b: Tensor | None, apart: bool) -> tuple[Tensor | None, Tensor | None]:
        """The bias of all gates, and that of the product of a GRU's candidate if it is `apart`."""
        if b is None:
            return None, None
        columns, what = self.W.shape[1], f"{self.name}: b"
        if _tensor(b, what).shape not in ((columns,), (2 * columns,)):
            want = f"({columns},), or ({2 * columns},) with the biases of the state"
            raise ShapeError(f"{what}: got shape {b.shape}, want {want}")
        _fits(b, b.shape, self.W, what)
        if b.shape == (columns,):
            return self.gates.ordered(b), None
        both = self.gates.ordered(b, 2)
        first, second = getitem(both, slice(0, columns)), getitem(both, slice(columns, None))
        if not apart:
            return first + second, None
        split = 2 * self.units
        gates = getitem(first, slice(0, split)) + getitem(second, slice(0, split))
        given = cat([gates, getitem(first, slice(split, None))])
        return given, getitem(second, slice(split, None))

    def given(self, bias: Tensor | None) -> Tensor:
        """The product of the inputs for all steps at once; of integers, rows of the weights."""
        shape = (self.steps, self.rows, self.W.shape[1])
        if not self.x.dtype.is_float:
            return embedding(self.x, self.W if bias is None else self.W + bias)
        x = plain_reshape(self.x, (self.steps * self.rows, self.W.shape[0]))
        y = matmul(x, self.W)
        return plain_reshape(y if bias is None else y + bias, shape)

    def first(self, h0: Tensor | None, c0: Tensor | None = None) -> dict[str, Tensor]:
        """The initial states, if there are any."""
        found = {}
        for name, what, t, columns in (
            ("state", "h0", h0, self.state),
            ("cell", "c0", c0, self.units),
        ):
            if t is not None:
                found[name] = _fits(t, (self.rows, columns), self.W, f"{self.name}: {what}")
        return found

    def lengths(self, lengths: Any) -> Tensor | None:
        """The number of steps of each row, int64."""
        if lengths is None:
            return None
        found = as_indices(lengths, f"{self.name}: lengths", self.x.device)
        if found.dtype.is_float:
            raise DTypeError(f"{self.name}: lengths: got {found.dtype.name}, want integers")
        if found.shape != (self.rows,):
            want = f"({self.rows},)"
            raise ShapeError(f"{self.name}: lengths: got shape {found.shape}, want {want}")
        return ops.cast(found, int64)

    def run(self, form: Form, given: Tensor, more: dict[str, Tensor], lengths: Any) -> Any:
        """The states, the last one and, of an LSTM, the last cell state."""
        found = self.lengths(lengths)
        form = form._replace(lengths=found is not None)
        return Recurrence(form, tuple(more), found)(given, self.R, *more.values())


@public(precision="short")
def rnn(
    x: Tensor,
    W: Tensor,  # ONNX's names
    R: Tensor,
    b: Tensor | None = None,
    h0: Tensor | None = None,
    *,
    activation: str = "tanh",
    lengths: Any = None,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """All steps of a recurrent layer: `h = tanh(x W + h R + b)` (Elman, 1990; ONNX RNN, PyTorch
    RNN).

    Args:
        x: (T, N, I), or integers (T, N): row `i` of W stands for the product of a one-hot input.
        W: (I, H); for an embedding `E` of integers, `E @ W`.
        R: (H, H).
        b: (H,), or (2 H,): the biases of the inputs, then of the state.
        h0: (N, H); zeros if None.
        activation: "tanh" or "relu".
        lengths: the number of steps of each row, (N,) integers; all of them if None.
        reverse: whether it goes from a row's last step to its first.

    Returns:
        The states (T, N, H), zeros from a row's length on, and the last one (N, H).

    Raises:
        ShapeError, DTypeError: tensors that do not fit.
        ValueError: another activation; a length below 0 or above T; integers out of range.
    """
    if activation not in ("tanh", "relu"):
        raise ValueError(f"rnn: activation: got {activation!r}, want 'tanh' or 'relu'")
    call = _Call("rnn", _Gates("rnn", "h", "h"), x, W, R)
    given = call.given(call.biases(b, False)[0])
    return call.run(Form(activation, bool(reverse)), given, call.first(h0), lengths)


@public(precision="short")
def lstm(
    x: Tensor,
    W: Tensor,  # ONNX's names
    R: Tensor,
    b: Tensor | None = None,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
    *,
    peepholes: Tensor | None = None,
    projection: Tensor | None = None,
    lengths: Any = None,
    reverse: bool = False,
    gate_order: str = "iofc",
) -> tuple[Tensor, Tensor, Tensor]:
    """All steps of a layer of long short-term memory (Hochreiter and Schmidhuber, 1997; ONNX LSTM,
    PyTorch LSTM):
    `c = f * c + i * g`, `h = o * tanh(c)`, with `i`, `o`, `f` the sigmoid and `g` the hyperbolic
    tangent of `x W + h R + b`.

    Args:
        x: (T, N, I), or integers (T, N): row `i` of W stands for the product of a one-hot input.
        W: (I, 4 H); for an embedding `E` of integers, `E @ W`.
        R: (H, 4 H); (P, 4 H) with a projection.
        b: (4 H,), or (8 H,): the biases of the inputs, then of the state.
        h0: (N, H), or (N, P); zeros if None.
        c0: (N, H); zeros if None.
        peepholes: (3 H,): weights by which the input, output and forget gates also see the cell
            state, each unit its own; the output gate sees the new one.
        projection: (H, P): `h = (o * tanh(c)) @ projection` (Sak et al., 2014).
        lengths: the number of steps of each row, (N,) integers; all of them if None.
        reverse: whether it goes from a row's last step to its first.
        gate_order: the gates as the columns of W, R and b have them: ONNX's "iofc", PyTorch's
            "ifgo" or any other; "g" is "c".

    Returns:
        The states (T, N, H or P), zeros from a row's length on, the last one (N, H or P), and the
        last cell state (N, H).

    Raises:
        ShapeError, DTypeError: tensors that do not fit.
        ValueError: other gates; a length below 0 or above T; integers out of range.
    """
    call = _Call("lstm", _Gates("lstm", _LSTM, gate_order), x, W, R, projection is not None)
    units, more = call.units, call.first(h0, c0)
    if peepholes is not None:
        more["peepholes"] = _fits(peepholes, (3 * units,), W, "lstm: peepholes")
    if projection is not None:
        more["projection"] = _fits(projection, (units, call.state), W, "lstm: projection")
    form = Form("lstm", bool(reverse), peepholes is not None, projection is not None)
    return call.run(form, call.given(call.biases(b, False)[0]), more, lengths)


@public(precision="short")
def gru(
    x: Tensor,
    W: Tensor,  # ONNX's names
    R: Tensor,
    b: Tensor | None = None,
    h0: Tensor | None = None,
    *,
    linear_before_reset: bool = False,
    lengths: Any = None,
    reverse: bool = False,
    gate_order: str = "zrh",
) -> tuple[Tensor, Tensor]:
    """All steps of a layer of gated recurrent units (Cho et al., 2014; ONNX GRU, PyTorch GRU):
    `h = (1 - z) * n + z * h`, with `z` and `r` the sigmoid of `x W + h R + b` and `n` the
    hyperbolic tangent of the same with `r * h` in place of `h`.

    Args:
        x: (T, N, I), or integers (T, N): row `i` of W stands for the product of a one-hot input.
        W: (I, 3 H); for an embedding `E` of integers, `E @ W`.
        R: (H, 3 H).
        b: (3 H,), or (6 H,): the biases of the inputs, then of the state.
        h0: (N, H); zeros if None.
        linear_before_reset: whether `n` has `r * (h R + b)` instead, as PyTorch's and cuDNN's.
        lengths: the number of steps of each row, (N,) integers; all of them if None.
        reverse: whether it goes from a row's last step to its first.
        gate_order: the gates as the columns of W, R and b have them: ONNX's "zrh", PyTorch's "rzn"
            or any other; "u" is "z", "n" is "h".

    Returns:
        The states (T, N, H), zeros from a row's length on, and the last one (N, H).

    Raises:
        ShapeError, DTypeError: tensors that do not fit.
        ValueError: other gates; a length below 0 or above T; integers out of range.
    """
    call = _Call("gru", _Gates("gru", _GRU, gate_order), x, W, R)
    linear = bool(linear_before_reset)
    bias, apart = call.biases(b, linear)
    more = call.first(h0)
    if apart is not None:
        more["bias"] = apart
    form = Form("linear_gru" if linear else "gru", bool(reverse))
    return call.run(form, call.given(bias), more, lengths)
