"""Makes tensors of any dtype and layout from NumPy arrays, reads them back, compares."""

from collections.abc import Callable, Sequence

import numpy as np
from cases.base import DEVICE, Case, Shape
from singa_rs import _core, autograd, tensor

# Tolerances by dtype: the relative error, and the absolute error of results near 1.
TOLERANCE = {"float64": 1e-11, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
# Gradient references are finite differences, accurate to about 1e-9.
DIFFERENCE = 2e-8


def to_handle(array: np.ndarray, dtype: str) -> _core.Handle:
    """A row-major tensor; NumPy has no bfloat16, so that dtype is made by a cast."""
    if dtype == "bfloat16":
        return _core.Op("cast", dtype=dtype)(
            _core.from_numpy(np.asarray(array, np.float32), DEVICE)
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return _core.from_numpy(np.asarray(array).astype(dtype, order="C"), DEVICE)


def to_array(handle: _core.Handle) -> np.ndarray:
    """The values: float64 for any float dtype, else the dtype itself."""
    array = handle.to_numpy()
    return array.astype(np.float64) if handle.dtype.is_float else array


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array's values, rounded to `dtype`."""
    return to_array(to_handle(array, dtype))


# ---- layouts: each makes a view with the array's values and a memory layout of its own -----------


def junk(shape: Shape, dtype: str) -> np.ndarray:
    """Filler between the elements of a view, which exposes a kernel that reads it."""
    return np.full(shape, np.nan if "float" in dtype else 1)


def transposed(array: np.ndarray, dtype: str) -> _core.Handle:
    """Column-major."""
    axes = tuple(reversed(range(array.ndim)))
    return to_handle(array.transpose(axes), dtype).view_permute(axes)


def stepped(array: np.ndarray, dtype: str) -> _core.Handle:
    """Every second element along each axis, from the second one on."""
    base = junk(tuple(2 * n + 1 for n in array.shape), dtype)
    base[tuple(slice(1, 2 * n, 2) for n in array.shape)] = array
    return to_handle(base, dtype).view_slice([(1, n, 2) for n in array.shape])


def negative(array: np.ndarray, dtype: str) -> _core.Handle:
    """Backwards along each axis."""
    base = to_handle(np.flip(array), dtype)
    return base.view_slice([(max(n - 1, 0), n, -1) for n in array.shape])


def inner(array: np.ndarray, dtype: str) -> _core.Handle:
    """The inner part of a larger array."""
    base = junk(tuple(n + 2 for n in array.shape), dtype)
    base[tuple(slice(1, n + 1) for n in array.shape)] = array
    return to_handle(base, dtype).view_slice([(1, n, 1) for n in array.shape])


def channels_last(array: np.ndarray, dtype: str) -> _core.Handle:
    """The second axis is innermost in memory."""
    if array.ndim < 3:
        return transposed(array, dtype)
    back = (0, array.ndim - 1, *range(1, array.ndim - 1))
    return to_handle(np.moveaxis(array, 1, -1), dtype).view_permute(back)


def expanded(array: np.ndarray, dtype: str) -> _core.Handle:
    """Axes along which values repeat are stored once, with stride 0."""
    once = array
    for axis in range(array.ndim):
        first = once.take([0], axis) if once.shape[axis] else once
        if np.array_equal(np.broadcast_to(first, once.shape), once, equal_nan="float" in dtype):
            once = first
    return to_handle(once, dtype).view_expand(array.shape)


Layout = Callable[[np.ndarray, str], _core.Handle]
LAYOUTS: tuple[Layout, ...] = (transposed, stepped, negative, inner, channels_last, expanded)


# ---- running a case ------------------------------------------------------------------------------


def inputs(
    case: Case, dtype: str, samples: Sequence[np.ndarray], layout: Layout = to_handle
) -> list[_core.Handle]:
    """The inputs of the operation that belong to samples."""
    with np.errstate(all="ignore"):
        arrays = case.derive(*samples) if case.derive else samples
    return [layout(a, kind) for a, kind in zip(arrays, case.input_dtypes(dtype), strict=True)]


class Run:
    """A case on one dtype: its inputs, outputs and expected outputs."""

    def __init__(
        self,
        case: Case,
        dtype: str,
        *,
        shapes: tuple[Shape, ...] | None = None,
        layout: Layout = to_handle,
        change: Callable[[list[np.ndarray]], None] | None = None,
    ):
        self.case, self.dtype = case, dtype
        samples = case.sample(dtype, shapes)
        if change is not None:
            change(samples)
        kinds = case.sample_dtypes(dtype)
        self.samples = [rounded(a, kind) for a, kind in zip(samples, kinds, strict=True)]
        self.inputs = inputs(case, dtype, self.samples, layout)
        self.before = [to_array(x) for x in self.inputs]
        outputs = case.op(*self.inputs)
        if case.updates:
            assert outputs is None
            self.outputs = tuple(self.inputs[i] for i in case.updates)
        else:
            self.outputs = outputs if isinstance(outputs, tuple) else (outputs,)

    def check(self) -> None:
        """Checks shapes, dtypes and values, and that the inputs are unchanged."""
        got = [to_array(y) for y in self.outputs]
        self.check_inputs_unchanged()
        names = [y.dtype.name for y in self.outputs]
        assert names == self.case.output_dtypes(self.dtype, len(names))
        if self.case.check is not None:
            self.case.check(self.before, got)
            return
        want = expected(self.case, self.samples)
        assert len(got) == len(want)
        for g, w, name in zip(got, want, names, strict=True):
            compare(g, np.asarray(w), name, self)

    def check_inputs_unchanged(self) -> None:
        """An operation changes no input but those that it declares to update."""
        for i, (x, before) in enumerate(zip(self.inputs, self.before, strict=True)):
            if i not in self.case.updates:
                np.testing.assert_array_equal(to_array(x), before, f"input {i} was changed")


#: By case and samples, what is expected: layouts and dtypes share samples.
_EXPECTED: dict[tuple, tuple] = {}
#: How large samples may be to be remembered, bytes.
_LARGE = 1 << 14


def expected(case: Case, samples: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The outputs of a case's reference."""
    key = (id(case), *((a.dtype.str, a.shape, a.tobytes()) for a in samples))
    if key not in _EXPECTED:
        with np.errstate(all="ignore"):
            found = case.reference(*samples)
        found = found if isinstance(found, tuple) else (found,)
        if sum(a.nbytes for a in samples) > _LARGE:
            return found
        _EXPECTED[key] = found
    return _EXPECTED[key]


# ---- gradients -----------------------------------------------------------------------------------


def tensors(case: Case, dtype: str, layout=None) -> list[tensor.Tensor]:
    """The case's inputs as tensors; those that have a gradient are parameters."""
    made = []
    kinds = case.sample_dtypes(dtype)
    for i, (array, kind) in enumerate(zip(case.sample(dtype), kinds, strict=True)):
        if layout is None:
            x = tensor.from_numpy(np.array(array, order="C"), DEVICE, kind)
        else:
            x = tensor.Tensor((), DEVICE, kind)
            x.rebind(layout(array, kind))
        x.requires_grad = x.stores_grad = i in case.differentiable()
        made.append(x)
    return made


def weights(shape) -> np.ndarray:
    """The upstream gradient: all elements are distinct and non-zero."""
    return np.linspace(0.5, 1.5, int(np.prod(shape)), dtype=np.float64).reshape(shape)


def weighted(y: tensor.Tensor) -> tensor.Tensor:
    """A loss with these weights as the gradient of a result."""
    scale = tensor.from_numpy(weights(y.shape), y.device, y.dtype)
    scale.requires_grad = False
    return autograd.reduce_sum(autograd.mul(y, scale), axes=None, keepdims=0)


# ---- comparing -----------------------------------------------------------------------------------


def compare(got: np.ndarray, want: np.ndarray, dtype: str, run: Run) -> None:
    """Equal within the dtype's precision; exactly for integers and bool.

    A result may be of a wider dtype than the inputs, but is not more exact than they are.
    """
    assert got.shape == want.shape
    if "float" not in dtype:
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    case, exact = run.case, TOLERANCE["float64"]
    tolerance = max(TOLERANCE[dtype], TOLERANCE.get(run.dtype, exact))
    if case.specials == () or case.family.endswith("_grad"):
        tolerance = max(tolerance, DIFFERENCE)
    tolerance *= case.scale
    want = overflow(want, dtype)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


def overflow(want: np.ndarray, dtype: str) -> np.ndarray:
    """Results beyond 65504 overflow in float16."""
    with np.errstate(over="ignore"):
        return want.astype(np.float16).astype(np.float64) if dtype == "float16" else want


def zeros(shapes: Sequence[Shape], dtypes: Sequence[str]) -> list[_core.Handle]:
    """Tensors to be refused."""
    return [_core.Handle(s, DEVICE, d) for s, d in zip(shapes, dtypes, strict=True)]
