"""Keys and values kept from step to step of a generation."""

from __future__ import annotations

from typing import Any

from .. import autograd
from ..autograd.precision import current
from ..device import Device
from ..tensor import Tensor, float32, int64
from .check import count


class KeyValueCache:
    """The keys and values of the tokens that a `MultiHeadAttention` has seen, up to a fixed number.

    The position is in a tensor, so that a recorded step of a generation serves for all positions.
    A cache is for evaluation: no gradient flows through it.
    """

    def __init__(
        self,
        batch: int,
        heads: int,
        capacity: int,
        width: int,
        device: Device | None = None,
        dtype: Any = float32,
    ) -> None:
        """`batch`: the number of sequences.

        Args:
            heads: the heads of keys and values.
            capacity: the most tokens of a sequence.
            width: that of a head.
            device: where the tensors are; the default device if None. A model that holds the cache
                takes it along when it moves.
            dtype: that of keys and values.

        Raises:
            TypeError, ValueError: sizes that are not ints from 1.
        """
        sizes = {"batch": batch, "heads": heads, "capacity": capacity, "width": width}
        shape = tuple(count(n, f"KeyValueCache: {name}") for name, n in sizes.items())
        if device is not None and not isinstance(device, Device):
            raise TypeError(f"KeyValueCache: got device {device!r:.80}, want a Device")
        #: (batch, heads, capacity, width); zeros after the position.
        self.keys = Tensor(shape, device, dtype, requires_grad=False)
        self.values = Tensor(shape, device, dtype, requires_grad=False)
        #: The number of tokens so far, (1,), int64.
        self.position = Tensor((1,), device, int64, requires_grad=False)

    @property
    def capacity(self) -> int:
        """The most tokens of a sequence."""
        return self.keys.shape[2]

    def write(self, k: Tensor, v: Tensor) -> None:
        """Keeps the keys and values of the next tokens, (batch, heads, L, width), at the position;
        in mixed precision they are converted to the dtype of the cache.

        Raises:
            ValueError: more tokens than there is room for.
            ShapeError, DTypeError: tensors that do not fit.
            GraphError: tensors with a gradient.
        """
        for own, x in ((self.keys, k), (self.values, v)):
            if (
                current() is not None
                and x.dtype.is_float
                and x.dtype.itemsize <= own.dtype.itemsize
            ):
                x = x.as_type(own.dtype)
            autograd.tensor_scatter(own, x, self.position)

    def advance(self, tokens: int) -> None:
        """Moves the position forward."""
        self.position += tokens

    def clear(self) -> None:
        """Begins new sequences."""
        self.position.set_value(0)
