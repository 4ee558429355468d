"""Functions that are made of operations: values against NumPy in float64, gradients against
differences, other dtypes and layouts, bad input, and the bits of recordings."""

import numpy as np
import pytest
from functions import EXACT, FUNCTIONS, REFUSED
from harness import DEVICE, weighted, weights
from numeric import vjp
from singa_rs import DTypeError, GraphError, autograd
from singa_rs.record.tracing import trace
from singa_rs.tensor import Tensor, as_tensor

each = pytest.mark.parametrize("fn", FUNCTIONS, ids=str)
smooth = pytest.mark.parametrize("fn", [fn for fn in FUNCTIONS if fn.smooth], ids=str)
#: The greatest errors of results near 1.
NARROW = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 0.15}


@pytest.fixture(autouse=True)
def training():
    with autograd._training_scope(True):
        yield


def tensors(arrays, dtype="float64"):
    made = [Tensor(data=a, dtype=dtype) for a in arrays]
    for one in made:
        one.stores_grad = True
    return made


def several(result):
    """A function's results, whether one or more."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def total(ys):
    """A weighted sum of those that have gradients."""
    return autograd.add_all(*(weighted(y) for y in ys if y.requires_grad))


def with_gradients(fn, xs):
    """The results of a function, and the gradients of a weighted sum of them."""
    ys = several(fn.of_tensors(*xs))
    if not fn.smooth:
        return ys
    found = autograd.gradients(total(ys))
    return [*ys, *(found[x] for x in xs)]


@each
def test_against_numpy(fn):
    arrays = fn.samples()
    got = several(fn.of_tensors(*tensors(arrays)))
    want = several(fn.of_arrays(*arrays))
    assert len(got) == len(want)
    for y, expected in zip(got, want, strict=True):
        assert y.shape == np.shape(expected)
        np.testing.assert_allclose(y.to_numpy(), expected, rtol=1e-9, atol=1e-9)
        if not fn.smooth:
            assert not y.requires_grad


@smooth
def test_gradients(fn):
    arrays = fn.samples()
    xs = tensors(arrays)
    ys = several(fn.of_tensors(*xs))
    found = autograd.gradients(total(ys))
    dys = [weights(y.shape) if y.requires_grad else None for y in ys]
    for i, x in enumerate(xs):
        reference = lambda *a: tuple(several(fn.of_arrays(*a)))  # noqa: E731
        expected = vjp(reference, arrays, i, dys, fn.step)
        np.testing.assert_allclose(found[x].to_numpy(), expected, fn.tolerance, fn.tolerance)


@each
@pytest.mark.parametrize("dtype", NARROW)
def test_narrower_dtypes(fn, dtype):
    arrays = [t.as_type("float64").to_numpy() for t in tensors(fn.samples(), dtype)]
    if fn.wide and dtype != "float32":
        with pytest.raises(DTypeError, match="cast first"):
            fn.of_tensors(*tensors(arrays, dtype))
        return
    made = with_gradients(fn, tensors(arrays, dtype))
    wide = with_gradients(fn, tensors(arrays))
    for got, want in zip(made, wide, strict=True):
        assert got.shape == want.shape
        assert got.dtype.name == dtype or not (fn.same_dtype and want.dtype.is_float)
        want, got = (t.as_type("float64").to_numpy() for t in (want, got))
        if fn.halves and want.size:
            size = max(np.abs(want).max(), 1.0)
            np.testing.assert_allclose(got / size, want / size, atol=fn.scale * NARROW[dtype])


@each
def test_of_views(fn):
    arrays = fn.samples()
    want = several(fn.of_tensors(*tensors(arrays)))
    views = [Tensor(data=np.array(a.T, order="C"), dtype="float64").transpose() for a in arrays]
    for got, expected in zip(several(fn.of_tensors(*views)), want, strict=True):
        np.testing.assert_allclose(got.to_numpy(), expected.to_numpy(), rtol=1e-12, atol=1e-12)


@each
def test_recorded(fn):
    """As recorded, rewritten and replayed, forward and backward have the bits of eager."""
    xs = tensors(fn.samples(), "float32")
    want = [t.to_numpy().tobytes() for t in with_gradients(fn, xs)]
    recording = trace(DEVICE, [], lambda: tuple(with_gradients(fn, xs))).recording
    for options in ({"rewrite": False}, {}):
        graph = recording.graph(**options)
        for _ in range(2):
            assert [t.to_numpy().tobytes() for t in graph.run([])] == want, options


@pytest.mark.parametrize("fn", [fn for fn in FUNCTIONS if fn.empty], ids=str)
def test_of_no_elements(fn):
    arrays = [np.zeros(shape) for shape in fn.empty]
    got = several(fn.of_tensors(*tensors(arrays)))
    with np.errstate(all="ignore"):
        want = several(fn.of_arrays(*arrays))
    for y, expected in zip(got, want, strict=True):
        assert y.shape == np.shape(expected)
        np.testing.assert_array_equal(y.to_numpy(), expected)


@pytest.mark.parametrize("name", EXACT)
def test_exactly(name):
    """Integers, bools and special values, in the dtype that NumPy gives, within a few ulps."""
    of_tensors, of_arrays = EXACT[name]
    for got, want in zip(several(of_tensors()), several(of_arrays()), strict=True):
        want, array = np.asarray(want), got.to_numpy()
        assert got.shape == want.shape
        assert want.dtype.kind == "f" or array.dtype == want.dtype
        ulps = 4 * np.finfo(array.dtype).eps if array.dtype.kind == "f" else 0
        np.testing.assert_allclose(array, want, ulps, ulps)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    error, call = REFUSED[text]
    with pytest.raises(error, match=text):
        call()


def test_sizes_that_depend_on_values_are_refused_in_recordings():
    x = Tensor(data=np.array([1.0, 0.0, 2.0]))
    calls = {
        "masked_select.*where": lambda: (x * 2).masked_select(x * 2 > 1),
        "unique.*sort": lambda: (x * 2).unique(),
        "argwhere.*where": lambda: (x * 2).argwhere(),
        "bincount.*length": lambda: (x * 2).bincount(),
        "histc.*min and max": lambda: (x * 2).histc(3),
    }
    for text, call in calls.items():
        assert isinstance(call(), Tensor)
        with pytest.raises(GraphError, match=f"{text}.*is only recorded"):
            trace(DEVICE, [], call)


def test_lists_of_recorded_tensors_are_refused_by_name():
    x = Tensor(data=np.array([1.0, 0.0, 2.0]))
    calls = {
        "as_tensor: got a list": lambda: as_tensor([x * 2, x * 2]),
        "add: got a tuple": lambda: x + (x * 2, x * 2),
        "embedding: indices: got a list": lambda: autograd.embedding([x * 1, x * 1], x.view(3, 1)),
    }
    for text, call in calls.items():
        assert call().shape[0] == 2
        with pytest.raises(GraphError, match=f"^{text} of tensors.*autograd.stack"):
            trace(DEVICE, [], call)


def test_the_gradient_of_distinct_values():
    (x,) = tensors([np.array([3.0, 1.0, 3.0, 2.0])])
    found = autograd.gradients(weighted(x.unique()))[x].to_numpy()
    first, second, third = weights((3,))
    assert found.tolist() == [third, first, 0.0, second]
