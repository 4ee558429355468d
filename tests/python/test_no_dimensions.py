"""Tensors of shape (), which have axis 0 and -1 as in PyTorch; and norms of singular values."""

import math

import numpy as np
import pytest
from singa_rs import ShapeError, autograd, linalg
from singa_rs.tensor import from_numpy

ALONG = {
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "prod": lambda x, axis: x.prod(axis, True),
    "amax": lambda x, axis: x.amax(axis),
    "max": lambda x, axis: x.max(dim=axis).values,
    "min": lambda x, axis: x.min(dim=axis, keepdim=True).values,
    "softmax": lambda x, axis: autograd.softmax(x, axis) * 3,
    "log_softmax": lambda x, axis: x.log_softmax(axis) + x,
    "logsumexp": lambda x, axis: x.logsumexp(axis),
    "cumsum": lambda x, axis: x.cumsum(axis),
    "cumprod": lambda x, axis: x.cumprod(axis),
    "cummax": lambda x, axis: x.cummax(axis).values,
    "logcumsumexp": lambda x, axis: x.logcumsumexp(axis),
    "sort": lambda x, axis: autograd.sort(x, axis).values,
    "nansum": lambda x, axis: x.nansum(axis),
    "sum of several": lambda x, axis: x.sum((axis,)),
    "norm": lambda x, axis: linalg.norm(x, None, axis),
    "norm 1": lambda x, axis: x.norm(1, (axis,), True),
    "norm inf": lambda x, axis: x.norm(math.inf, axis),
    "nanmin": lambda x, axis: x.nanmin(axis),
    "nanmax": lambda x, axis: x.nanmax(axis, True),
    "nanmedian": lambda x, axis: x.nanmedian(axis),
    "median": lambda x, axis: x.median(axis, True),
    "quantile": lambda x, axis: x.quantile(0.3, axis),
    "kthvalue": lambda x, axis: x.kthvalue(1, axis, True).values,
    "mode": lambda x, axis: x.mode(axis, True).values,
    "average": lambda x, axis: autograd.average(x, axis, 2.0),
    "topk": lambda x, axis: x.topk(1, axis=axis).values,
}


@pytest.fixture(autouse=True)
def training():
    with autograd._training_scope(True):
        yield


def leaf(array, dtype="float64"):
    made = from_numpy(np.asarray(array), dtype=dtype)
    made.requires_grad_(True)
    return made


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ALONG)
def test_a_tensor_without_dimensions_has_one_element_along_an_axis(name, axis):
    x = leaf(3.0)
    made = ALONG[name](x, axis)
    assert made.shape == () and made.item() == pytest.approx(3.0)
    slope = 0.0 if name == "softmax" else 1.0
    assert autograd.gradients(made)[x].item() == pytest.approx(slope)


@pytest.mark.parametrize("find", ["argmax", "argmin", "argsort", "nanargmax", "nanargmin"])
def test_its_place(find):
    for axis in (0, -1):
        made = getattr(leaf(3.0), find)(axis)
        assert made.shape == () and made.item() == 0


@pytest.mark.parametrize("name", ALONG)
def test_it_has_no_other_axis(name):
    with pytest.raises(ValueError, match="axes|axis"):
        ALONG[name](leaf(3.0), 1)


@pytest.mark.parametrize("name", ["var", "std"])
def test_its_spread(name):
    assert getattr(leaf(3.0), name)(0).item() == 0
    assert getattr(leaf(3.0), name)(-1, True).shape == ()


# ---- norms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ord", [2, -2, "nuc", 1, -1, math.inf, -math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, (0, 1), (2, 0)])
def test_norms_of_matrices(ord, keepdims, axis):
    array = np.random.default_rng(5).normal(size=(3, 4) if axis is None else (3, 4, 5))
    want = np.linalg.norm(array, ord, axis, keepdims)
    x = leaf(array)
    got = linalg.norm(x, ord, axis, keepdims)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-12)
    dy, step = autograd.gradients(got.sum())[x].to_numpy(), np.cos(array) * 1e-6
    ends = [np.linalg.norm(array + s * step, ord, axis).sum() for s in (1, -1)]
    assert (dy * step).sum() == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-6)


def test_counts_of_what_is_not_zero():
    array = np.array([[0.0, 2.0, -1.0], [0.0, 0.0, 3.0]])
    for dtype in ("float64", "bfloat16"):
        x = leaf(array, dtype)
        got = linalg.norm(x, 0, 1)
        assert got.dtype.name == dtype
        np.testing.assert_array_equal(got.as_type("float64").to_numpy(), [2, 1])
    np.testing.assert_array_equal(
        autograd.cdist(x, x, 0).as_type("float64").to_numpy(), [[0, 2], [2, 0]]
    )


@pytest.mark.parametrize("ord", ["nuc", 0.5, -1])
def test_orders_that_vectors_do_not_have(ord):
    with pytest.raises(ValueError, match="norm: got ord"):
        linalg.norm(leaf([1.0, 2.0]), ord)


# ---- arguments of PyTorch's ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_numbers_beyond_the_dtype_are_compared_exactly(dtype):
    x = from_numpy(np.array([1.0, np.inf, -np.inf, np.nan], np.float32)).as_type(dtype)
    for number in (1e300, -1e300):
        array = x.as_type("float64").to_numpy()
        for got, want in (
            (x < number, array < number),
            (x <= number, array <= number),
            (number < x, number < array),
            (x == number, array == number),
            (x != number, array != number),
        ):
            np.testing.assert_array_equal(got.to_numpy(), want)


def test_scaled_sums_in_place():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    made = x * 1.0
    made.add_(y, alpha=2).sub_([1.0, 1.0], alpha=0.5)
    np.testing.assert_array_equal(made.to_numpy(), [6.5, 11.5])
    grads = autograd.gradients(made.sum())
    np.testing.assert_array_equal([grads[t].to_numpy() for t in (x, y)], [[1, 1], [2, 2]])
    np.testing.assert_array_equal(x.sub(y, alpha=-1).to_numpy(), [4.0, 7.0])
    np.testing.assert_array_equal(x.subtract(y, alpha=2).to_numpy(), [-5.0, -8.0])
    with pytest.raises(TypeError, match="add: alpha: got None"):
        x.add(y, alpha=None)


def test_all_elements_dropped():
    x = leaf([1.0, np.inf, np.nan])
    y = autograd.dropout(x, 1.0)
    assert (y.to_numpy() == 0).all()
    assert (autograd.gradients(y.sum())[x].to_numpy() == 0).all()


SCATTERS = {
    "scatter": lambda x, i, u: x.scatter(1, i, u),
    "scatter_add": lambda x, i, u: x.scatter_add(1, i, u),
    "scatter_reduce": lambda x, i, u: x.scatter_reduce(1, i, u, "amax", False),
    "scatter_": lambda x, i, u: (x * 1.0).scatter_(1, i, u),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_more_updates_than_indices(name):
    x, updates = leaf(np.zeros((2, 3))), leaf(np.arange(1.0, 13.0).reshape(3, 4))
    made = SCATTERS[name](x, [[2, 0]], updates)
    np.testing.assert_array_equal(made.to_numpy(), [[2, 0, 1], [0, 0, 0]])
    want = np.zeros((3, 4))
    want[0, :2] = 1
    np.testing.assert_array_equal(autograd.gradients(made.sum())[updates].to_numpy(), want)
    with pytest.raises(ShapeError, match="got updates of shape"):
        SCATTERS[name](x, [[2, 0]], leaf(np.zeros((2, 1))))


def test_probabilities_that_are_no_numbers():
    drawn = autograd.bernoulli(from_numpy(np.array([np.nan, 1.0, -1.0, 2.0])))
    np.testing.assert_array_equal(drawn.to_numpy(), [np.nan, 1, 0, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_scaling_by_powers_of_two(dtype):
    n = 130 if dtype == "float32" else 1030
    for power in (n, -n, 3):
        x = leaf([1.5], dtype)
        dy = from_numpy(np.ldexp(np.ones(1, dtype), -power // 2), dtype=dtype)
        got = autograd.gradients(x.ldexp([power]), dy)[x].to_numpy()
        np.testing.assert_array_equal(got, np.ldexp(dy.to_numpy(), power))


@pytest.mark.parametrize(("dtype", "bits"), [("float32", "uint32"), ("float64", "uint64")])
def test_scaling_by_powers_of_two_and_its_gradient_round_once(dtype, bits):
    draw, least = np.random.default_rng(2), np.finfo(dtype).minexp
    array = draw.integers(0, np.iinfo(bits).max, 4000, bits).view(dtype)
    array = array[np.isfinite(array)]
    for power in (least - 1, least - 20, 2 * least, 2 * least - 9, 2 - 2 * least, -least + 3):
        x = leaf(array, dtype)
        y = x.ldexp(power)
        dx = autograd.gradients(y, x.detach())[x]
        with np.errstate(over="ignore", under="ignore"):
            want = np.ldexp(array, power)
        np.testing.assert_array_equal(y.to_numpy(), want)
        np.testing.assert_array_equal(dx.to_numpy(), want)


def test_the_gradient_of_the_power_of_two():
    x, n = leaf([1.5, -2.0]), leaf([[1.0], [0.5]])
    slope = x.to_numpy() * 2 ** n.to_numpy() * np.log(2)
    (dn,) = autograd.gradients(x.ldexp(n).sum(), [n], create_graph=True)
    np.testing.assert_allclose(dn.to_numpy(), slope.sum(1, keepdims=True), rtol=1e-6)
    found = autograd.gradients(dn.sum())
    second = np.log(2) * slope.sum(1, keepdims=True)
    np.testing.assert_allclose(found[n].to_numpy(), second, rtol=1e-6)
    np.testing.assert_allclose(found[x].to_numpy(), slope.sum(0) / x.to_numpy(), rtol=1e-6)


def test_second_derivatives_of_scaling_by_powers_of_two():
    x = leaf([1.5, -2.0])
    (dx,) = autograd.gradients((x.ldexp([3, -1]) ** 2).sum(), [x], create_graph=True)
    np.testing.assert_array_equal(dx.to_numpy(), [192.0, -1.0])
    np.testing.assert_array_equal(autograd.gradients(dx.sum())[x].to_numpy(), [128.0, 0.5])
