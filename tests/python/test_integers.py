"""Integers and bools: sums and products as wide as NumPy's, and undefined results."""

import operator

import numpy as np
import pytest
from singa_rs import autograd, tensor
from singa_rs.tensor import from_numpy

INTS = ("int8", "uint8", "int32", "int64")
KINDS = (*INTS, "bool")


def large(dtype, shape=(3, 40)):
    """Numbers so large that the sum of a few overflows the dtype."""
    if dtype == "bool":
        return np.random.default_rng(1).integers(0, 2, shape).astype(bool)
    most = min(np.iinfo(dtype).max, 2**40)
    return np.random.default_rng(1).integers(most // 2, most, shape).astype(dtype)


#: Name -> (NumPy's function, singa_rs's).
REDUCE = {
    "sum": (np.sum, lambda t, axis: t.sum(axis)),
    "tensor.sum": (np.sum, tensor.sum),
    "reduce_sum": (np.sum, lambda t, axis: autograd.reduce_sum(t, axis, 0)),
    "prod": (np.prod, lambda t, axis: t.prod(axis)),
    "reduce_prod": (np.prod, lambda t, axis: autograd.reduce_prod(t, axis, 0)),
    "max": (np.max, lambda t, axis: t.max(axis)),
    "min": (np.min, lambda t, axis: t.min(axis)),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", REDUCE)
def test_reductions_do_not_wrap_before_int64_does(name, dtype):
    function, ours = REDUCE[name]
    array = large(dtype)
    for axis in (None, 0, 1, (0, 1), ()):
        want = function(array, axis=axis)
        got = ours(from_numpy(array, dtype=dtype), axis)
        # Tensors have no uint64.
        kind = "int64" if want.dtype == np.uint64 else want.dtype.name
        assert got.dtype.name == kind
        np.testing.assert_array_equal(got.to_numpy(), want.astype(kind))


def test_rows_and_columns():
    array = large("int8")
    t = from_numpy(array)
    np.testing.assert_array_equal(tensor.sum_rows(t).to_numpy(), array.sum(0, keepdims=True))
    np.testing.assert_array_equal(tensor.sum_columns(t).to_numpy(), array.sum(1, keepdims=True))


@pytest.mark.parametrize("dtype", KINDS)
def test_sums_of_one_number(dtype):
    scalar = from_numpy(np.array(1), dtype=dtype)
    for t in (scalar.sum(), scalar.prod(), scalar.sum(())):
        assert t.dtype == tensor.int64 and t.item() == 1


@pytest.mark.parametrize("dtype", KINDS)
def test_means_and_norms(dtype):
    array = large(dtype)
    t, wide = from_numpy(array, dtype=dtype), array.astype(np.float64)
    np.testing.assert_allclose(t.mean().item(), array.mean(), rtol=1e-6)
    np.testing.assert_allclose(t.mean(0).to_numpy(), array.mean(0), rtol=1e-6)
    np.testing.assert_allclose(tensor.average(t), array.mean(), rtol=1e-6)
    np.testing.assert_allclose(t.l1(), np.abs(wide).mean(), rtol=1e-12)
    np.testing.assert_allclose(t.l2(), np.sqrt((wide**2).sum()) / wide.size, rtol=1e-12)
    least = from_numpy(np.array([np.iinfo("int8").min], np.int8))
    assert least.l1() == 128 and least.l2() == 128


def test_norms_of_half_precision_do_not_overflow():
    t = tensor.full((100,), 1000.0, dtype="float16")
    assert t.l1() == 1000 and t.l2() == 100


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("formula", ["ij->", "ij->i", "ij,ij->", "ij,kj->ik", "ij,j->i", "ij->ji"])
def test_products_wrap_as_numpy_s(formula, dtype):
    array = large(dtype)
    count = formula.partition("->")[0].count(",") + 1
    other = array if "j,j" not in formula else array[0]
    arrays = (array, other)[:count]
    tensors = [from_numpy(a, dtype=dtype) for a in arrays]
    with np.errstate(all="ignore"):
        want = np.einsum(formula, *arrays)
    got = tensor.einsum(formula, *tensors)
    assert got.dtype.name == want.dtype.name
    np.testing.assert_array_equal(got.to_numpy(), want)


@pytest.mark.parametrize("dtype", INTS)
def test_matrices_and_vectors_wrap_as_numpy_s(dtype):
    array = large(dtype)
    t = from_numpy(array, dtype=dtype)
    np.testing.assert_array_equal((t @ t.transpose()).to_numpy(), array @ array.T)
    np.testing.assert_array_equal((t[0] @ t[1]).to_numpy(), array[0] @ array[1])
    np.testing.assert_array_equal(tensor.tensordot(t, t).to_numpy(), np.tensordot(array, array))


@pytest.mark.parametrize("dtype", INTS)
def test_arithmetic_wraps_as_numpy_s(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    array = np.array([low, high, 0, 1, low + 1], dtype)
    t = from_numpy(array, dtype=dtype)
    with np.errstate(all="ignore"):
        for f in (np.abs, np.negative, np.square, np.sign):
            ours = getattr(tensor, f.__name__.replace("absolute", "abs"), lambda x: -x)
            np.testing.assert_array_equal(ours(t).to_numpy(), f(array))
        for f in (np.add, np.subtract, np.multiply, np.maximum, np.minimum):
            ours = {"subtract": "sub", "multiply": "mul"}.get(f.__name__, f.__name__)
            got = getattr(autograd, ours)(t, t.clone())
            np.testing.assert_array_equal(got.to_numpy(), f(array, array))


@pytest.mark.parametrize("dtype", INTS)
def test_operations_without_results_are_refused(dtype):
    t = from_numpy(np.array([1, 2]), dtype=dtype)
    zero = from_numpy(np.array([1, 0]), dtype=dtype)
    for compute in (lambda: t // zero, lambda: t % zero, lambda: t // 0, lambda: 3 % zero):
        with pytest.raises(ValueError):
            compute()
    for compute in (lambda: t**-1, lambda: 2 ** (zero - 2) if dtype != "uint8" else t**-2):
        with pytest.raises(ValueError):
            compute()


def test_cosines_of_integers():
    array = large("int8", (4, 5))
    wide = array.astype(np.float64)
    got = autograd.cossim(from_numpy(array), from_numpy(array[::-1].copy()))
    length = np.sqrt((wide**2).sum(1))
    want = (wide * wide[::-1]).sum(1) / (length * length[::-1])
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-6)


WIDE = np.array([2**40, -(2**35) - 1, 3])


@pytest.mark.parametrize("array", [WIDE, WIDE.tolist(), np.array([2**31, 2**32 - 1, 3], np.uint32)])
def test_arrays_beside_int64_hold_int64(array):
    """`from_numpy` would convert them to int32."""
    own = np.array([5, 6, 2**33])
    t, wide = from_numpy(own, dtype="int64"), np.asarray(array).astype(np.int64)
    same = {
        "add": (t + array, own + wide),
        "reflected": (array - t, wide - own),
        "compared": (t < array, own < wide),
        "in place": (t.clone().__iadd__(array), own + wide),
        "sum": (autograd.sum(t, np.asarray(array)), own + wide),
        "product": (t @ np.asarray(array), own @ wide),
        "cat": (autograd.cat([t, array]), np.concatenate([own, wide])),
        "stack": (autograd.stack([array, t]), np.stack([wide, own])),
        "where": (autograd.where(t, array, [True, False, False]), np.where([1, 0, 0], own, wide)),
    }
    for name, (got, want) in same.items():
        assert got.dtype.name == want.dtype.name, name
        np.testing.assert_array_equal(got.to_numpy(), want, name)


def test_wide_arrays_beside_other_dtypes():
    floats = from_numpy(np.ones(3), dtype="float64")
    np.testing.assert_array_equal((floats + WIDE).to_numpy(), WIDE + 1.0)
    for dtype in ("int32", "int8", "bool"):
        with pytest.raises(TypeError, match="int32 cannot hold"):
            from_numpy(np.ones(3), dtype=dtype) + WIDE
    assert (from_numpy(np.array([1, 2]), dtype="int32") + np.array([3, 4])).dtype == tensor.int32


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64 + 1, -(10**30), 10**400])
@pytest.mark.parametrize("dtype", KINDS)
def test_compared_with_numbers_beyond_int64(dtype, number):
    array = np.array([0, 1]) if dtype == "bool" else np.array([np.iinfo(dtype).max, 0])
    array = array.astype(dtype)
    t = from_numpy(array, dtype=dtype)
    for compare in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        want = [getattr(int(v), compare)(number) for v in array]
        assert getattr(t, compare)(number).tolist() == want


BOOLS = np.array([[True, False], [True, True]])


@pytest.mark.parametrize("sign", [operator.and_, operator.or_, operator.xor])
def test_bools_of_arrays_and_views_stay_masks(sign):
    t, other = from_numpy(BOOLS), BOOLS[::-1]
    for made in (sign(t, other), sign(other, t), sign(t, other.tolist())):
        assert made.dtype == tensor.bool_
        assert made.numpy().tolist() == sign(BOOLS, other).tolist()
    turned = sign(t, t.T)
    assert turned.dtype == tensor.bool_ and np.array_equal(turned.numpy(), sign(BOOLS, BOOLS.T))


def test_bools_are_not_counted_where_they_are_only_moved():
    t = from_numpy(BOOLS)
    for made in (
        autograd.cat([BOOLS, BOOLS]), autograd.cat([t, BOOLS]), autograd.maximum(t, BOOLS),
        autograd.max(t, t), autograd.block_diag(t, t), autograd.append(t, BOOLS),
        autograd.maximum(t, True), autograd.minimum(t, np.True_),
    ):  # fmt: skip
        assert made.dtype == tensor.bool_
    assert autograd.sum(t, t).dtype == tensor.int32


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_fmod_of_the_least_integer(dtype):
    least = np.iinfo(dtype).min
    a = np.array([-7, 5, least, least], dtype)
    b = np.array([least, least, 7, 100], dtype)
    assert from_numpy(a, dtype=dtype).fmod(from_numpy(b, dtype=dtype)).numpy().tolist() == [
        -7, 5, *np.fmod(a[2:], b[2:]).tolist()
    ]  # fmt: skip


#: Functions of integers and a number, which do not widen them.
BESIDE = {
    "clamp": lambda t, n: autograd.clamp(t, n, n),
    "clamp_min": autograd.clamp_min,
    "clamp_max": lambda t, n: t.clamp_max(n),
    "clamp_": lambda t, n: t.clone().clamp_(n),
    "fmod": autograd.fmod,
    "fmax": autograd.fmax,
    "fmin": autograd.fmin,
    "maximum": autograd.maximum,
    "remainder": autograd.remainder,
    "where": lambda t, n: autograd.where(t > 3, t, n),
    "where, first": lambda t, n: autograd.where(t > 3, n, t),
    "addcmul": lambda t, n: autograd.addcmul(t, t, n),
    "sum": lambda t, n: autograd.sum(n, t),
    "max": lambda t, n: autograd.max(n, t),
    "min": lambda t, n: autograd.min(n, t),
    "prelu": autograd.prelu,
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
@pytest.mark.parametrize("name", BESIDE)
def test_a_number_keeps_the_dtype_as_in_a_sum(name, dtype):
    t, compute = from_numpy(np.array([1, 3, 9]), dtype=dtype), BESIDE[name]
    assert compute(t, 2).dtype == t.dtype
    if name != "clamp_":
        assert compute(t, 2.5).dtype == tensor.float32
    most = np.iinfo(dtype).max
    beyond = most + 1 if dtype != "int64" else 2**63
    if name == "clamp_max":
        assert compute(t, beyond).tolist() == [1, 3, 9]
    else:
        with pytest.raises(ValueError, match=f"the number {beyond} does not fit {dtype}"):
            compute(t, beyond)


def test_a_number_of_numpy_keeps_the_dtype():
    t = from_numpy(np.array([1, 3, 9]), dtype="uint8")
    for name in ("clamp", "clamp_max", "fmod", "where", "fmax"):
        assert BESIDE[name](t, np.int64(2)).dtype == BESIDE[name](t, np.array(2)).dtype == t.dtype


def test_bounds_beyond_the_dtype_do_not_bind():
    t = from_numpy(np.array([0, 3, 255]), dtype="uint8")
    for made in (t.clamp(-1, 300), t.clamp(max=300), t.clamp_min(-(2**70)), t.clip(-1, 300)):
        assert made.dtype == t.dtype and made.tolist() == [0, 3, 255]


def test_floats_beside_float64_keep_their_digits():
    t = from_numpy(np.array([0.1, -0.3]), dtype="float64")
    for tenth in (0.1, np.float64(0.1), np.array([0.1, 0.1])):
        assert autograd.isclose(t, tenth, 0.0, 0.0).tolist() == [True, False]
        assert autograd.prelu(t, tenth).tolist() == [0.1, -0.3 * 0.1]
        assert autograd.add_all(t, tenth).tolist() == [0.2, -0.3 + 0.1]
    half = from_numpy(np.ones(2), dtype="float16")
    assert autograd.add_all(half, 0.5).dtype == autograd.max(half, half, 0.5).dtype == half.dtype
