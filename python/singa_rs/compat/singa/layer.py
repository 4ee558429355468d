"""SINGA's `layer`: `singa_rs.layer`, with SINGA's rules for softmax, batch normalisation, paddings
of four numbers, and for keywords that a constructor does not know."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from ... import layer as _layer
from ...tensor import Tensor
from .. import layer as _named
from . import autograd
from .names import names_of

# The layers of SINGA 1.x's nets have names of their own, except for a few.
globals().update({**names_of(_named), **names_of(_layer)})


def _without_further(layer: type, given: dict[str, Any]) -> dict[str, Any]:
    """The keywords that a layer's constructor knows; SINGA's constructors ignore all others."""
    known = inspect.signature(layer.__init__).parameters  # type: ignore[misc]
    further = [name for name in given if name not in known]
    if further:
        message = f"{layer.__name__}: ignores {', '.join(further)}, as SINGA does"
        warnings.warn(message, stacklevel=4)
    return {name: value for name, value in given.items() if name in known}


def _reordered(padding: Any) -> Any:
    """SINGA's (top, bottom, left, right) as `singa_rs` takes it, (top, left, bottom, right)."""
    if not isinstance(padding, (tuple, list)) or len(padding) != 4:
        return padding
    top, bottom, left, right = padding
    return top, left, bottom, right


def _padded(args: tuple[Any, ...], given: dict[str, Any], place: int) -> Any:
    """The arguments of a constructor whose padding is at this place, or a keyword."""
    args = (*args[:place], *map(_reordered, args[place : place + 1]), *args[place + 1 :])
    if "padding" in given:
        given = {**given, "padding": _reordered(given["padding"])}
    return args, given


class _Windowed:
    """What a layer with a window tells of its padding, unless the program assigns something else to
    these attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, _reordered(value) if name == "padding" else value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """`padding`, what both ends of an axis have, (vertical, horizontal); `odd_padding`,
            what an end has besides, (top, bottom, left, right); and `pad_mode`."""
            window = self.__dict__.get("window")
            if window is None or name not in ("odd_padding", "pad_mode", "padding"):
                return super().__getattr__(name)
            if name == "pad_mode":
                return window.pad_mode
            handle = self.__dict__.get("handle")  # which knows the padding for the last input
            top, left, bottom, right = window.pads if handle is None else handle.padding
            both = min(top, bottom), min(left, right)
            if name == "padding":
                return both
            return top - both[0], bottom - both[0], left - both[1], right - both[1]


class Linear(_layer.Linear):
    """`singa_rs.layer.Linear`; further keywords are ignored, with a warning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `singa_rs.layer.Linear`."""
        super().__init__(*args, **_without_further(_layer.Linear, kwargs))


class Conv2d(_Windowed, _layer.Conv2d):
    """`singa_rs.layer.Conv2d`; four paddings are (top, bottom, left, right), and further keywords
    are ignored, with a warning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `singa_rs.layer.Conv2d`."""
        args, kwargs = _padded(args, _without_further(_layer.Conv2d, kwargs), 4)
        super().__init__(*args, **kwargs)


class _Padded(_Windowed):
    """A constructor whose padding, of four numbers, is (top, bottom, left, right)."""

    #: Its place among the arguments.
    _place = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        args, kwargs = _padded(args, kwargs, self._place)
        super().__init__(*args, **kwargs)


class SeparableConv2d(_Padded, _layer.SeparableConv2d):
    """`singa_rs.layer.SeparableConv2d`; four paddings are (top, bottom, left, right)."""

    _place = 4


class Pooling2d(_Padded, _layer.Pooling2d):
    """`singa_rs.layer.Pooling2d`; four paddings are (top, bottom, left, right)."""


class MaxPool2d(_Padded, _layer.MaxPool2d):
    """`singa_rs.layer.MaxPool2d`; four paddings are (top, bottom, left, right)."""


class AvgPool2d(_Padded, _layer.AvgPool2d):
    """`singa_rs.layer.AvgPool2d`; four paddings are (top, bottom, left, right)."""


class MaxPool1d(_Windowed, _layer.MaxPool1d):
    """`singa_rs.layer.MaxPool1d`."""


class AvgPool1d(_Windowed, _layer.AvgPool1d):
    """`singa_rs.layer.AvgPool1d`."""


class BatchNorm2d(_layer.BatchNorm2d):
    """Batch normalisation of (N, C) or (N, C, H, W). The weight of the new batch in the
    running averages is 0.9 by default, as in SINGA."""

    def __init__(self, *args: Any, momentum: float = 0.9, eps: float = 1e-5) -> None:
        """As `singa_rs.layer.BatchNorm2d`."""
        super().__init__(*args, momentum=momentum, eps=eps)


class RNN_Base(_layer.RNN_Base):
    """`singa_rs.layer.RNN_Base`; without arguments the base of a cell of one's own (SINGA
    RNN_Base), which makes its parameters itself."""

    _is_bare = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `singa_rs.layer.RNN_Base`, or nothing."""
        if args or kwargs:
            self._is_bare = False
            super().__init__(*args, **kwargs)

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters of a layer whose sizes were given."""
        if not self._is_bare:
            super().initialize(*args, **kwargs)


for _kind in (_layer.RNN, _layer.LSTM, _layer.GRU):
    RNN_Base.register(_kind)


class SoftMax(_layer.SoftMax):
    """Softmax over the axes from `axis` on together (SINGA SoftMax)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis."""
        return autograd.softmax(x, self.axis)


class Dropout(_layer.Dropout):
    """`singa_rs.layer.Dropout`; that of SINGA 1.x's nets if a name is given first."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A layer of the one kind or the other."""
        return super().__new__(_named.Dropout if _is_name(args) else cls)


class Flatten(_layer.Flatten):
    """`singa_rs.layer.Flatten`; that of SINGA 1.x's nets if a name is given first."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A layer of the one kind or the other."""
        return super().__new__(_named.Flatten if _is_name(args) else cls)


def _is_name(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], str)


#: SINGA's name for the class of layer classes.
LayerMeta = type(_layer.Layer)
