"""Layers that rearrange, join, add or drop values, or call other layers in sequence."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from .. import autograd, tensor
from ..tensor import Tensor
from .base import Layer
from .check import axes, below_one, count, float_input


class Flatten(Layer):
    """Joins the axes before `axis`, and those from it on, into two."""

    def __init__(self, axis: int = 1) -> None:
        super().__init__()
        self.axis = count(axis, "Flatten: axis", -64)

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> 2 axes."""
        return autograd.flatten(x, self.axis)


class Reshape(Layer):
    """Another shape, with -1 for a remaining extent and 0 for an unchanged one, as in ONNX."""

    def __init__(self, shape: Sequence[int] | None = None) -> None:
        """`shape`: the default for calls without one."""
        super().__init__()
        if shape is not None:
            shape = tuple(count(n, "Reshape: shape", -1) for n in shape)
        self.shape = shape

    def forward(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """`x` in the shape given here, else in the constructor.

        Raises:
            ValueError: none was given.
        """
        shape = self.shape if shape is None else shape
        if shape is None:
            raise ValueError("Reshape: got no shape, want one here or in the constructor")
        return autograd.reshape(x, shape)


class Add(Layer):
    """a + b."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Shapes broadcast."""
        return autograd.add(a, b)


class Cat(Layer):
    """Tensors concatenated along an axis."""

    def __init__(self, axis: int = 0) -> None:
        super().__init__()
        self.axis = count(axis, "Cat: axis", -64)

    def forward(self, xs: Sequence[Tensor]) -> Tensor:
        """A list or tuple of tensors whose shapes differ at most in the axis."""
        return autograd.cat(xs, self.axis)


class Dropping(Layer):
    """A layer that drops a share of its input while training."""

    def __init__(self, ratio: float = 0.5) -> None:
        """`ratio`: the share, from 0 to below 1.

        Raises:
            TypeError, ValueError: not a number, or out of this range.
        """
        super().__init__()
        self.ratio = below_one(ratio, f"{type(self).__name__}: ratio")


class Dropout(Dropping):
    """Zeroes a share of the values while training, and scales the others by 1 / (1 - ratio)
    (Srivastava et al., 2014)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.dropout(x, self.ratio)


class _ChannelDropout(Dropping):
    rank: ClassVar[int]

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, ...) with as many axes as the layer's name says.

        Raises:
            ShapeError: a different number of axes.
        """
        float_input(x, type(self).__name__)
        axes(x, type(self).__name__, self.rank)
        if not (autograd.training and self.ratio):
            return x
        ones = tensor.ones((*x.shape[:2], *(1,) * (x.rank - 2)), x.device, x.dtype)
        return x * autograd.dropout(ones, self.ratio)


class Dropout1d(_ChannelDropout):
    """Zeroes a share of the channels of (N, C, L) while training, each whole, and scales the
    others by 1 / (1 - ratio) (Tompson et al., 2015; PyTorch Dropout1d)."""

    rank = 3


class Dropout2d(_ChannelDropout):
    """Zeroes a share of the channels of (N, C, H, W) while training, each whole, and scales the
    others by 1 / (1 - ratio) (Tompson et al., 2015; PyTorch Dropout2d)."""

    rank = 4


class Dropout3d(_ChannelDropout):
    """Zeroes a share of the channels of (N, C, D, H, W) while training, each whole, and scales the
    others by 1 / (1 - ratio) (Tompson et al., 2015; PyTorch Dropout3d)."""

    rank = 5


class Identity(Layer):
    """The input itself, whatever arguments the layer is made with (PyTorch Identity)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes and ignores arguments."""
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.identity(x)


class Sequential(Layer):
    """Layers, or other callables, in sequence; each gets the result of the one before."""

    _order: tuple[str, ...] = ()

    def __init__(self, *steps: Callable[..., Any] | Mapping[str, Callable[..., Any]]) -> None:
        """Names are indices (`0.W`), or the keys of a single mapping.

        Raises:
            TypeError: a step that cannot be called.
        """
        super().__init__()
        single = steps[0] if len(steps) == 1 else None
        if isinstance(single, Mapping):
            named = {str(name): step for name, step in single.items()}
        else:
            if isinstance(single, (list, tuple)):
                steps = tuple(single)
            named = {str(index): step for index, step in enumerate(steps)}
        self._take(named)

    def _take(self, named: dict[str, Callable[..., Any]]) -> None:
        """Has these steps, and no others."""
        for name, step in named.items():
            if not callable(step):
                raise TypeError(f"Sequential: got {step!r} for step {name!r}, want a callable")
        for name in set(self._order) & set(self._layer_node.registered):
            delattr(self, name)
        self._functions = {}
        self._order = tuple(named)
        for name, step in named.items():
            if isinstance(step, Layer):
                self.register_layers({name: step})
            else:
                self._functions[name] = step

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return (self._step(name) for name in self._order)

    def __getitem__(self, index: int) -> Callable[..., Any]:
        return self._step(self._order[index])

    def __setitem__(self, index: int, step: Callable[..., Any]) -> None:
        name = self._order[operator.index(index)]
        self._take({**{one: self._step(one) for one in self._order}, name: step})

    def _step(self, name: str) -> Callable[..., Any]:
        function = self._functions.get(name)
        return getattr(self, name) if function is None else function

    def forward(self, *args: Any) -> Tensor:
        """The first step gets all arguments; without steps, the one argument is the result.

        The result is what the last step returns, which may be several tensors, as a recurrent
        layer's: checkers take it for one, which may be unpacked just so.
        """
        if not self._order:
            (result,) = args
            return result
        result = self[0](*args)
        for name in self._order[1:]:
            result = self._step(name)(result)
        return result
