"""Creating tensors: from NumPy and other libraries, filled with a value, or random."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .. import device as devices
from .._core import Device, DType, Handle, ShapeError
from ..shown import misgiven
from .dtypes import bfloat16, float32, float64, incoming, int32, int64, name_of, to_storage
from .numbers import as_array, number, real, whole, wholes
from .placing import More, arranged, is_dtype, located, placed
from .takers import tensors_only

if TYPE_CHECKING:
    from . import Tensor

Shape = int | Sequence[int]


def as_shape(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple of ints; one int means one dimension."""
    return wholes(shape, "shape")


def extents_of(given: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape given as several numbers, or as one sequence of them."""
    return as_shape(given[0] if len(given) == 1 else given)


def from_numpy(np_array: np.ndarray, dev: Device | None = None, dtype: Any = None) -> Tensor:
    """A new tensor with a copy of an array (SINGA from_numpy).

    float64 becomes float32 and int64 int32 unless `dtype` is given.

    Raises:
        TypeError: anything but a NumPy array.
        DTypeError: a type that tensors do not support, or a value that the dtype cannot hold.
    """
    if not isinstance(np_array, np.ndarray):
        raise TypeError(f"from_numpy: {misgiven(np_array, 'a NumPy array')}")
    if dev is not None:
        placed("from_numpy", dev)
    np_array = as_array(np_array, "from_numpy")
    want = incoming(np_array) if dtype is None else _core.dtype(dtype)
    device = located(dev)
    if name_of(np_array.dtype) == want.name:
        return _core.from_numpy(np_array, device)
    return _stored(to_storage("from_numpy", np_array, want), want, device)


#: A new tensor on a device with a copy of an array in the NumPy type of a dtype.
copied = _core.from_numpy


def _stored(array: np.ndarray, dtype: DType, device: Device) -> Tensor:
    """A tensor with a copy of an array of the NumPy type that stores its dtype."""
    made = _core.from_numpy(array, device)
    return _core.Op("cast", dtype="bfloat16")(made) if dtype == bfloat16 else made


@lru_cache(maxsize=1024, typed=True)
def _number(value: float, sign: float, dtype: DType) -> np.ndarray:
    """A Python number in the NumPy type that stores a dtype. Zeros differ in `sign` alone.

    Raises:
        DTypeError: a number that the dtype cannot hold.
    """
    return to_storage("from_numpy", as_array(value, "as_tensor"), dtype)


def as_tensor(value: Any, dev: Device | None = None, dtype: DType | None = None) -> Tensor:
    """`value` itself if it is a tensor, else a new tensor made from a number, list or array.

    `dtype` applies to new tensors; without it the rules of `from_numpy` apply.
    """
    if isinstance(value, Handle):
        return value
    if dtype is not None and type(value) in (float, int):  # such as masks are filled with
        sign, want = 0.0 if value else math.copysign(1, value), _core.dtype(dtype)
        return _stored(_number(value, sign, want), want, located(dev))
    return from_numpy(as_array(value, "as_tensor"), dev, dtype)


def device_of(values: Iterable[Any]) -> Device | None:
    """The device of the first tensor among them; None without one."""
    return next((value.device for value in values if isinstance(value, Handle)), None)


def as_operand(value: Any, others: Iterable[DType], dev: Device | None = None) -> Tensor:
    """`as_tensor` of an operand whose `others` have these dtypes: integers wider than int32 stay
    int64 if the result is int64 or a float anyway, and floats keep their digits beside float64."""
    if isinstance(value, Handle):
        return value
    array = as_array(value, "as_tensor")
    return from_numpy(array, dev, _kept(array.dtype, others))


def _kept(have: np.dtype, others: Iterable[DType]) -> DType | None:
    """The dtype that an operand of NumPy's `have` keeps beside others; None for the usual one."""
    if have.kind == "f":
        return float64 if float64 in others else None
    is_wide = have.name in ("int64", "uint64", "uint32")
    return int64 if is_wide and any(x == int64 or x.is_float for x in others) else None


def from_dlpack(obj: Any) -> Tensor:
    """A tensor that shares the memory of another library's array, with its dtype."""
    made = _core.from_dlpack(obj)
    devices._noted(made.device)  # which may be one that nobody has asked for
    return made


@tensors_only("t")
def from_raw_tensor(t: Tensor) -> Tensor:
    """A tensor that shares the memory of `t` (SINGA wraps its C++ tensors this way)."""
    return t.alias()


def from_raw_tensors(tt: Sequence[Tensor]) -> list[Tensor]:
    """`from_raw_tensor` of each."""
    return [from_raw_tensor(t) for t in tt]


@tensors_only("t")
def to_numpy(t: Tensor) -> np.ndarray:
    """A fresh, writable, row-major copy; bfloat16 becomes float32 (SINGA to_numpy)."""
    return t.to_numpy()


def moved(t: Tensor, device: Device) -> Tensor:
    """A copy of `t` on a device."""
    made: Tensor = type(t)(t.shape, device, t.dtype)
    _core.Op("copy").into([t], [made])
    return made


def to_host(t: Tensor) -> Tensor:
    """A copy of `t` on the CPU, through which gradients flow."""
    return t.clone() if t.device == _core.cpu() else t.cpu()


def constant(value: Any, device: Device | None = None, dtype: Any = None) -> Tensor:
    """A tensor made from host data (number, list or array) that requires no gradient."""
    made = from_numpy(as_array(value, "constant"), device, dtype)
    made.requires_grad = False
    return made


def full(shape: Shape, value: float, device: Device | None = None, dtype: Any = float32) -> Tensor:
    """A tensor filled with `value`, which the dtype must be able to hold."""
    if is_dtype(device):
        device, dtype = None, device  # NumPy's order
    placed("full", device, "the value is the second argument: full((2, 3), 7.0)")
    return filled("full", shape, value, dtype, device)


def filled(
    op: str, shape: Shape, value: float, dtype: Any, device: Device | str | None = None
) -> Tensor:
    """`full` for the function `op`, which errors name.

    Raises:
        ShapeError: an extent that is negative, or 2**63 or more.
        ValueError: a value that the dtype cannot hold.
    """
    extents = as_shape(shape)
    if any(not 0 <= n < 2**63 for n in extents):
        raise ShapeError(f"{op}: got shape {extents}, want extents from 0 to 2**63 - 1")
    name, value = _core.dtype(dtype).name, number(value, op)
    to = located(device)
    return _core.Op("fill", device=to, value=value, shape=extents, dtype=name)()


def zeros(shape: Shape, *more: More, device: Device | None = None, dtype: Any = None) -> Tensor:
    """A tensor of zeros: `zeros((2, 3), device, dtype)`, by default on the CPU and in float32. The
    order of NumPy, `zeros((2, 3), dtype)`, and that of PyTorch, `zeros(2, 3)`, mean the same.

    Raises:
        TypeError: arguments in no such order.
        DeviceError: a device that this build does not have.
    """
    extents, device, dtype = arranged("zeros", shape, more, device, dtype)
    return filled("zeros", extents, 0, dtype, device)


def ones(shape: Shape, *more: More, device: Device | None = None, dtype: Any = None) -> Tensor:
    """A tensor of ones: `ones((2, 3), device, dtype)`, by default on the CPU and in float32. The
    order of NumPy, `ones((2, 3), dtype)`, and that of PyTorch, `ones(2, 3)`, mean the same.

    Raises:
        TypeError: arguments in no such order.
        DeviceError: a device that this build does not have.
    """
    extents, device, dtype = arranged("ones", shape, more, device, dtype)
    return filled("ones", extents, 1, dtype, device)


def zeros_like(t: Tensor) -> Tensor:
    """Zeros of the shape, device and dtype of `t`."""
    return full(t.shape, 0, t.device, t.dtype)


def ones_like(t: Tensor) -> Tensor:
    """Ones of the shape, device and dtype of `t`."""
    return full(t.shape, 1, t.device, t.dtype)


def full_like(t: Tensor, value: float) -> Tensor:
    """`value`, which the dtype must be able to hold, in the shape, device and dtype of `t`."""
    return filled("full_like", t.shape, value, t.dtype, t.device)


def eye(
    n: int, m: int | None = None, k: int = 0, device: Device | None = None, dtype: Any = float32
) -> Tensor:
    """A matrix of `n` rows and `m` columns, `n` by default, with ones on diagonal `k` and zeros
    elsewhere (NumPy eye)."""
    return compared("eye", "eq", (n, m), k, device, dtype)


def compared(
    op: str, f: str, sides: tuple[int, int | None], k: int, device: Device | None, dtype: Any
) -> Tensor:
    """A matrix of these sides with ones where a column is `f`, as "eq", diagonal `k`."""
    height, width = matrix_extents(op, *sides, dtype, device)
    k = max(-height, min(whole(k, f"{op}: k"), width))
    to = located(device)
    across = _core.Op("arange", device=to, start=0, step=1, count=width, dtype="int64")()
    down = _core.Op("arange", device=to, start=k, step=1, count=height, dtype="int64")()
    hits = _core.Op("binary", f=f)(across, down.view_reshape((height, 1)))
    return _core.Op("cast", dtype=_core.dtype(dtype).name)(hits)


def matrix_extents(
    op: str, n: int, m: int | None, dtype: Any, device: Device | None
) -> tuple[int, int]:
    """The rows and the columns of a matrix, `n` of each by default, of a size that there can be."""
    placed(op, device)
    extents = (whole(n, f"{op}: n"), whole(n if m is None else m, f"{op}: m"))
    return filled(op, extents, 0, dtype, device).shape


def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    device: Device | None = None,
    dtype: Any = float32,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is the last one if `endpoint`
    (NumPy linspace).

    Raises:
        ValueError: a negative `num`; bounds that are not finite.
        DTypeError: a number that the dtype cannot hold.
    """
    placed("linspace", device)
    ends = real(start, "linspace: start"), real(stop, "linspace: stop")
    count = whole(num, "linspace: num")
    if count < 0 or not all(map(math.isfinite, ends)):
        raise ValueError(f"linspace: got {ends}, num {count}, want finite numbers, num from 0")
    filled("linspace", (count,), 0, dtype, device)  # refuses what is too large
    return from_numpy(np.linspace(*ends, count, endpoint=bool(endpoint)), device, dtype)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    device: Device | None = None,
    dtype: Any = None,
) -> Tensor:
    """Evenly spaced numbers, as NumPy's arange; int32 for ints, else float32."""
    placed("arange", device)
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = (number(v, "arange") for v in (start, stop, step))
    is_whole = all(isinstance(v, int) for v in (start, stop, step))
    got = f"start {start}, stop {stop}, step {step}"
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        raise ValueError(f"arange: got {got}, want finite numbers and a step other than 0")
    count = -((start - stop) // step) if is_whole else (stop - start) / step
    if not count < 2**60:
        raise ValueError(f"arange: got {got}, want fewer than 2**60 numbers")
    count, default = max(0, math.ceil(count)), int32 if is_whole else float32
    name = _core.dtype(default if dtype is None else dtype).name
    to = located(device)
    return _core.Op("arange", device=to, start=start, step=step, count=count, dtype=name)()


def random(shape: Shape, device: Device | None = None) -> Tensor:
    """Float32 numbers drawn uniformly from [0, 1) (SINGA random)."""
    placed("random", device, "a shape is one argument: random((2, 3))")
    made = filled("random", shape, 0, float32, device)
    return made.uniform(0.0, 1.0)
