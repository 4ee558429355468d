"""SINGA's recurrent layers, which take and return lists of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import autograd
from ..autograd.keywords import renamed
from ..errors import ShapeError
from ..tensor import Tensor
from .base import Layer
from .check import axes, float_input
from .parameters import normal, parameter


class PlainSteps(Layer):
    """What `RNN` and `LSTM` do with a list of steps: SINGA's parameters `Wx`, `Wh` and `b`, or, for
    each gate, `Wx_i`, `Wh_i`, `Bx_i`, `Bh_i`, ... They are brought together, and all steps are one
    operation."""

    #: What the names of the gates' parameters end in; one empty name if there are no gates.
    plain: ClassVar[tuple[str, ...]]
    #: The `step_forward` that is run for all steps at once.
    _joint: ClassVar[Any]
    #: SINGA's names of the arguments, and the names here.
    names: ClassVar[dict[str, str]]

    #: Parameters, where there are no gates.
    Wx: Tensor
    Wh: Tensor
    b: Tensor
    #: Attributes of the layer.
    input_size: int | None
    hidden_size: int
    num_layers: int
    bidirectional: bool
    proj_size: int
    nonlinearity: str

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters, for the arguments of `forward`."""
        super().initialize(*args, **renamed(type(self).__name__, kwargs, self.names))

    def _check_plain(self, xs: Sequence[Any]) -> None:
        name = type(self).__name__
        if self.num_layers > 1 or self.bidirectional or self.proj_size:
            got = "a list of steps, which is for one layer in one direction without a projection"
            raise ValueError(f"{name}: got {got}; pass a tensor (steps, rows, features)")
        if not xs:
            raise ShapeError(f"{name}: got no steps, want at least one")
        for x in xs:
            float_input(x, name)
            axes(x, name, 2)
            if x.shape != xs[0].shape or self.input_size not in (None, x.shape[1]):
                want = f"({xs[0].shape[0]}, {self.input_size or xs[0].shape[1]}) each"
                raise ShapeError(f"{name}: got a step of shape {x.shape}, want {want}")

    def _initialize_plain(self, xs: Sequence[Tensor]) -> None:
        """Makes SINGA's parameters."""
        self._check_plain(xs)
        x, units = xs[0], self.hidden_size
        self.input_size = x.shape[1]
        for gate in self.plain:
            for kind, rows in (("x", self.input_size), ("h", units)):
                fill = normal(2.0 / (rows + units))
                self._make(f"W{kind}", gate, (rows, units), x, fill)
                if gate:
                    self._make(f"B{kind}", gate, (units,), x, "zeros")
        if self.plain == ("",):
            self._make("b", "", (units,), x, "zeros")

    def _make(self, kind: str, gate: str, shape: tuple[int, ...], x: Tensor, fill: Any) -> None:
        name = f"{kind}_{gate}" if gate else kind
        setattr(self, name, parameter(shape, x, fill, f"{type(self).__name__}: {name}"))

    def _joined(self, kind: str) -> Tensor:
        """The parameters of a kind for all gates, in the engine's order."""
        return autograd.cat([getattr(self, f"{kind}_{gate}") for gate in self.plain], -1)

    def _plain(self, xs: Sequence[Tensor], state: Any) -> Any:
        """SINGA's results for its arguments."""
        if self.step_forward != self._joint:
            return self._stepped(xs, state)
        self._check_plain(xs)
        if not hasattr(self, "Wx" if self.plain == ("",) else "Wx_i"):
            name = type(self).__name__
            raise TypeError(f"{name}: got a list of steps, want a tensor, as in the first call")
        x, shape = autograd.stack(xs, 0), (xs[0].shape[0], self.hidden_size)
        if self.plain == ("",):
            y, h = autograd.rnn(
                x, self.Wx, self.Wh, self.b, _start(state, shape), activation=self.nonlinearity
            )
            return _list(y), h
        h0, c0 = (None, None) if state is None else state
        b = autograd.cat([self._joined("Bx"), self._joined("Bh")])
        starts = (_start(h0, shape), _start(c0, shape))
        y, h, c = autograd.lstm(
            x, self._joined("Wx"), self._joined("Wh"), b, *starts, gate_order="ifog"
        )
        return _list(y), h, c

    def _stepped(self, xs: Sequence[Tensor], state: Any) -> Any:
        """The same by a program's own `step_forward`."""
        is_pair = self.plain != ("",)
        weights = () if is_pair else (self.Wx, self.Wh, self.b)
        none = Tensor((xs[0].shape[0], self.hidden_size), xs[0].device, xs[0].dtype)
        given = state if is_pair and state is not None else (state,) * (1 + is_pair)
        states, ys = [none if one is None else one.clone() for one in given], []
        for x in xs:
            made = self.step_forward(x, *states, *weights)
            states = list(made) if is_pair else [made]
            ys.append(states[0])
        return ys, *states


def _start(t: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """An initial state, which may be broadcast. It is a copy: SINGA's programs keep the last state
    by writing it over the initial one before they go backward, which needs the initial one."""
    if t is None:
        return None
    return (t if t.shape == shape else autograd.expand(t, shape)).clone()


def _list(y: Tensor) -> list[Tensor]:
    return [y[t] for t in range(y.shape[0])]
