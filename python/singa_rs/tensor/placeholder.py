"""Tensors that have a shape and a dtype, but no value and no memory until they are filled."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import GraphError, ShapeError
from ..errors import called
from ..refusals import a_name, flag
from . import Tensor
from .creation import as_shape


class Placeholder(Tensor):
    """A tensor without a value: reading it raises GraphError.

    The first write (`copy_from`, `copy_from_numpy`, `copy_data`, `set_value`, a random fill,
    `data =`) makes it an ordinary tensor.
    """

    def __init__(
        self,
        shape: Any = (),
        device: Any = None,
        dtype: Any = _core.float32,
        data: Any = None,
        requires_grad: bool = True,
        stores_grad: bool = False,
        creator: Any = None,
        name: str | None = None,
    ) -> None:
        # Handle.__init__ is not called: the engine rejects a tensor that has no view.
        device = _core.cpu() if device is None else device
        self._meta = (as_shape(shape), device, _core.dtype(dtype))
        if not flag(requires_grad, "Placeholder: requires_grad"):
            self.requires_grad = False
        if stores_grad is not False:
            self.stores_grad = stores_grad
        if name is not None:
            self._name = a_name(name, "Placeholder: name")
        if data is not None:
            self.copy_from(data)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._meta[0]

    @shape.setter
    def shape(self, value: Any) -> None:
        shape = as_shape(value)
        if math.prod(shape) != self.numel:
            raise ShapeError(f"shape: got {shape} for {self.numel} elements, want one that fits")
        self._meta = (shape, *self._meta[1:])

    @property
    def device(self) -> _core.Device:
        """The device that it will be on."""
        return self._meta[1]

    @property
    def dtype(self) -> _core.DType:
        """The element type that it will have."""
        return self._meta[2]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements will take."""
        return self.numel * self.dtype.itemsize

    @property
    def is_allocated(self) -> bool:
        """Whether it has memory: never before it is filled."""
        return False

    def to_numpy(self) -> Any:
        """Raises GraphError: there is no value."""
        raise GraphError(f"to_numpy: got an unfilled {self!r}; fill it with copy_from first")

    def item(self) -> Any:
        """Raises GraphError: there is no value."""
        raise GraphError(f"item: got an unfilled {self!r}; fill it with copy_from first")

    def rebind(self, other: Tensor) -> None:
        """Gives it the value and the memory of `other`."""
        _core.Handle.rebind(self, other)
        del self._meta
        self.__class__ = Tensor

    def copy(self) -> Placeholder:
        """A separate Placeholder: there is no memory to share."""
        made = Placeholder(*self._meta)
        made.__dict__.update(self.__dict__)
        return made

    _shallow = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Placeholder:
        made = memo[id(self)] = self._shallow()
        return made

    def __reduce__(self) -> Any:
        return Placeholder, self._meta, self.__dict__

    def __repr__(self) -> str:
        return f"Placeholder({self.shape}, dtype={self.dtype.name})"


def _filling(name: str) -> Any:
    write = getattr(Tensor, name)

    def fill(self: Placeholder, *args: Any, **kwargs: Any) -> Any:
        value = Tensor(*self._meta)
        answer = write(value, *args, **kwargs)
        if answer is not None and answer is not value:
            return answer
        self.rebind(value)
        return self if answer is value else None

    fill.__wrapped__ = write  # type: ignore[attr-defined] - so that its signature is that one's
    return called(fill, name, write.__doc__)


_WRITES = ("copy_from_numpy", "copy_from", "copy_data", "set_value", "gaussian", "uniform")
for _name in (*_WRITES, "bernoulli"):
    setattr(Placeholder, _name, _filling(_name))
