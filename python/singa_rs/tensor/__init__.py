# ruff: noqa: F401 - the names of other files are public here
"""Tensors: n-dimensional arrays of one dtype on a device (SINGA's `tensor`).

The functions of this module and Python's operators on tensors are differentiable, as those of
`autograd` are, which adds most of them; except where they write into a tensor.
"""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

from .. import _core, errors, notices
from .. import elsewhere as _elsewhere
from .._core import ShapeError
from ..refusals import a_name as _a_name
from ..refusals import flag as _flag
from . import placing
from .arrays import admission as _admission
from .conversion import CallableInt, Conversions, Size
from .creation import (
    arange,
    as_shape,
    as_tensor,
    constant,
    eye,
    from_dlpack,
    from_numpy,
    from_raw_tensor,
    from_raw_tensors,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    random,
    to_host,
    to_numpy,
    zeros,
    zeros_like,
)
from .creation import (
    moved as _moved,
)
from .dtypes import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    sizeof,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .gradient import grad as _grad
from .numbers import as_array
from .samples import (
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from .sequences import (
    empty,
    empty_like,
    geomspace,
    logspace,
    tri,
    tril_indices,
    triu_indices,
)
from .writing import (
    Writes,
    add_column,
    add_row,
    axpy,
    bernoulli,
    copy_data_to_from,
    copy_from_numpy,
    gaussian,
    uniform,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: `autograd` adds the functions that its rules give.
__all__ = [
    "CallableInt", "PlaceHolder", "Placeholder", "RawTensor", "Size", "Tensor", "add_column",
    "add_row", "arange", "as_tensor", "axpy", "bernoulli", "bfloat16", "bool_", "constant",
    "copy_data_to_from", "copy_from_numpy", "empty", "empty_like", "eye", "float16", "float32",
    "float64", "from_dlpack", "from_numpy", "from_raw_tensor", "from_raw_tensors", "full",
    "full_like", "gaussian", "geomspace", "int16", "int32", "int64", "int8", "linspace",
    "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random", "randperm", "sizeof", "to_host", "to_numpy", "tri",
    "tril_indices", "triu_indices", "uint16", "uint32", "uint64", "uint8", "uniform", "zeros",
    "zeros_like",
]  # fmt: skip


_numbers = itertools.count()


def _by_vector(name: str, assign: Callable[[Any, Any], Any], doc: str) -> Any:
    """A method that combines every column, or row, with a vector, in place."""
    is_column = name.endswith("column")

    def method(self: Tensor, v: Tensor) -> Tensor:
        return assign(self, v.reshape((v.numel, 1) if is_column else (1, v.numel)))

    axis, extent = ("column", "rows") if is_column else ("row", "columns")
    text = doc.format(v=f"`v` of shape ({extent},)", axis=axis)
    return errors.called(method, name, f"{text}, in place.")


def _placed(device: Any, shape: Any) -> _core.Device:
    placing.placed("Tensor", device, "a shape is one argument: Tensor((2, 3))")
    return placing.located(device)


class Tensor(Conversions, Writes, _core.Handle):
    """An n-dimensional array (SINGA Tensor).

    `Tensor(shape)` reads as zeros until it is written. With `data` (an array, a list, a number)
    the shape is that of the data, and float64 becomes float32 and int64 int32 unless a dtype is
    given, which must be able to hold the data. If `data` is a tensor, its memory is shared.

    Args:
        shape: extents.
        device: the CPU by default.
        dtype: one of this module's constants, a name, a NumPy or Python type; float32 by default.
        data: what the tensor holds.
        requires_grad: whether operations on it are recorded for backward.
        stores_grad: whether backward yields its gradient.
        creator: the operation that made it.
        name: `Dummy#k` by default, `Operator#k:i` for the output of an operation.
    """

    # Class attributes, so that results of operations get these values at no cost.
    requires_grad: bool = True
    grad = _grad
    #: `autograd.leaves` has more values.
    _stores_grad: int = False
    _creator: Any = None
    _source: Any = None
    #: Whether operations made it that a graph runs, through which no gradient flows back.
    _is_cut: bool = False
    #: For a view of a recorded tensor: that tensor, and the operation that took the view.
    _base: Any = None
    #: The views taken of a recorded tensor.
    _views: Any = ()
    _name: str | None = None
    #: What `name` returns if none was given.
    _default_name: str | None = None

    def __init__(
        self,
        shape: Any = (),
        device: Any = None,
        dtype: Any = None,
        data: Any = None,
        requires_grad: bool = True,
        stores_grad: bool = False,
        creator: Any = None,
        name: str | None = None,
    ) -> None:
        try:
            if device is not None and not isinstance(device, _core.Device):
                device = _placed(device, shape)
            if data is None:
                if type(shape) is not tuple and (values := placing.values_as_shape(shape)):
                    raise TypeError(
                        f"Tensor: got {values} for shape, want integers; a tensor of values is "
                        f"Tensor(data={shape!r:.60})"
                    )
                super().__init__(as_shape(shape), device, float32 if dtype is None else dtype)
            elif isinstance(data, _core.Handle):
                want = data.dtype if dtype is None else _core.dtype(dtype)
                same = data.dtype == want
                self.rebind(data if same else _core.Op("convert", dtype=want.name)(data))
            else:
                self.rebind(from_numpy(as_array(data, "Tensor"), device, dtype))
        except errors.FOREIGN as error:
            given = (self, shape, device, dtype, data)
            errors.reraise("Tensor", Tensor.__init__, given, {}, error)
        if requires_grad is not True and not _flag(requires_grad, "Tensor: requires_grad"):
            self.requires_grad = False
        if creator is not None:
            self._creator = creator
        if stores_grad is not False:
            self.stores_grad = stores_grad
        if name is not None:
            self._name = _a_name(name, "Tensor: name")

    __hash__ = object.__hash__

    # ---- properties ----------------------------------------------------------------------------

    @property
    def ndim(self) -> CallableInt:
        """The number of dimensions; may be called."""
        return CallableInt(self.rank)

    @property
    def size(self) -> Size:
        """The number of elements; may be called, with an axis for its extent."""
        made = Size(self.numel)
        made.shape = self.shape
        return made

    def memsize(self) -> int:
        """The size of the elements in bytes."""
        return self.nbytes

    def is_empty(self) -> bool:
        """Whether it has no elements. SINGA asks whether it has no axes."""
        return self.numel == 0

    def is_dummy(self) -> bool:
        """Whether no operation made it, and it has no name (SINGA is_dummy)."""
        return self._creator is None and self._name is None

    def is_transpose(self) -> bool:
        """Whether the elements are not in row-major order."""
        return not self.is_contiguous()

    @property
    def name(self) -> str:
        """The given name, else one derived from the operation and a number."""
        if self._name is not None:
            return self._name
        if self._default_name is None:
            made = f"Dummy#{next(_numbers)}" if self._creator is None else self._made_name()
            self._default_name = made
        return self._default_name

    @name.setter
    def name(self, value: str | None) -> None:
        self._name = _a_name(value, "name")

    @property
    def stores_grad(self) -> bool:
        """Whether backward yields the gradient of this tensor."""
        return bool(self._stores_grad)

    @stores_grad.setter
    def stores_grad(self, value: bool) -> None:
        value = _flag(value, "stores_grad")
        if self._stores_grad != value:
            _core.note_change()
            is_frozen = self._stores_grad is True and "_is_member" in self.__dict__
            self._stores_grad = 0 if is_frozen else value
        if value and self._creator is not None:
            self._retain()

    # ---- memory --------------------------------------------------------------------------------

    @property
    def data(self) -> Tensor:
        """A tensor on the same memory that is not recorded; assigning a tensor shares its memory.

        It has the methods of SINGA's raw tensors, and its shape may be called.
        """
        return _raw(self)

    @data.setter
    def data(self, value: Any) -> None:
        if type(value) is RawTensor and not self.rank and not self.is_allocated:
            self.__class__ = _FromRaw
        self.rebind(as_tensor(value, self.device))

    def detach(self) -> Tensor:
        """A tensor on the same memory that requires no gradient."""
        made = self.alias()
        made.requires_grad = False
        return made

    def copy(self) -> Tensor:
        """A tensor object on the same memory, with the same flags (SINGA: a shallow copy). NumPy's
        `copy` is `clone` here, of which the first call warns."""
        notices.once(
            "copy",
            "Tensor.copy: the copy shares its memory with the tensor, as in SINGA; clone() copies "
            "it, as NumPy's copy does, and copy.copy(t) shares it without this warning",
        )
        return self._shallow()

    def _shallow(self) -> Tensor:
        made = self.alias()
        made.__dict__.update(self.__dict__)
        made.__class__ = type(self)
        if self._creator is not None:
            self._shared(made)
        return made

    def deepcopy(self) -> Tensor:
        """`clone()`."""
        return self.clone()

    def reset_like(self, t: Tensor) -> None:
        """Gives this tensor new, zeroed memory with the shape, device and dtype of `t`."""
        made = _core.Handle(t.shape, t.device, t.dtype)
        self._parted()
        self.rebind(made)

    def to_type(self, dtype: Any) -> None:
        """Converts this tensor in place, into new memory unless it has the dtype; `as_type` makes
        a new tensor."""
        if self.dtype == _core.dtype(dtype):
            return
        made = (self.detach() if self._creator is None else self).as_type(dtype)
        self._parted(made._creator)
        self.rebind(made)

    def to_device(self, device: Any) -> None:
        """Moves this tensor to another device, in place; no gradient flows back through the move.
        `to` makes a new tensor, through which it does.

        Raises:
            TypeError: no device.
            DeviceError: there is no such device.
            GraphError: a step is being recorded, which runs on one device.
        """
        placing.placed("to_device", device)
        to = placing.located(device)
        if to != self.device:
            made = _moved(self.detach(), to)
            self._parted()
            self.rebind(made)

    def to_host(self) -> None:
        """Moves this tensor to the CPU, in place; `tensor.to_host(t)` makes a new one."""
        self.to_device(_core.cpu())

    # ---- SINGA's in-place arithmetic with a vector -------------------------------------------

    add_column = _by_vector("add_column", operator.iadd, "Adds {v} to every {axis}")
    add_row = _by_vector("add_row", operator.iadd, "Adds {v} to every {axis}")
    div_column = _by_vector("div_column", operator.itruediv, "Divides every {axis} by {v}")
    div_row = _by_vector("div_row", operator.itruediv, "Divides every {axis} by {v}")
    mult_column = _by_vector("mult_column", operator.imul, "Multiplies every {axis} by {v}")
    mult_row = _by_vector("mult_row", operator.imul, "Multiplies every {axis} by {v}")

    def l1(self) -> float:
        """The mean of the absolute values (SINGA divides the norm by the size)."""
        return float(self._as_float().abs().sum()) / self._count("l1")

    def l2(self) -> float:
        """The Euclidean norm divided by the number of elements, as in SINGA."""
        return float(self._as_float().square().sum()) ** 0.5 / self._count("l2")

    def _as_float(self) -> Tensor:
        """The values as float64, so that sums neither wrap nor overflow, without a gradient."""
        same = self.dtype == float64
        return self.detach() if same else self.detach().as_type(float64)

    def _count(self, op: str) -> int:
        if not self.numel:
            raise ShapeError(f"{op}: got shape {self.shape}, want at least one element")
        return self.numel

    if not TYPE_CHECKING:  # so that checkers refuse what tensors do not have

        def __getattr__(self, name: str) -> Any:
            raise _elsewhere.lacking(self, name, _elsewhere.of_tensor(name))


_core.set_tensor_class(Tensor)

# These derive from Tensor.
from ..compat.raw import FromRaw as _FromRaw  # noqa: E402
from ..compat.raw import RawTensor  # noqa: E402
from ..compat.raw import raw as _raw  # noqa: E402
from .placeholder import Placeholder  # noqa: E402

_elsewhere.closed(globals())

#: SINGA's spelling.
PlaceHolder = Placeholder

# Except those that the package itself calls for every operation.
errors.name_functions(globals(), {"as_shape", "as_tensor"}, _admission)
errors.name_methods(Writes, Conversions, Tensor, Placeholder, RawTensor, takes=_admission)
