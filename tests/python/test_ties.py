"""Values and gradients where functions have ties, kinks, zeros and infinities."""

import itertools

import numpy as np
import pytest
from scenarios import from_numpy64, leaf
from singa_rs import autograd
from singa_rs.tensor import from_numpy

INF = np.inf


@pytest.fixture(autouse=True)
def _training():
    autograd.training = True


def slopes(made, *tensors):
    return [one.tolist() for one in autograd.gradients(made.sum(), list(tensors))]


@pytest.mark.parametrize("function", [autograd.logaddexp, autograd.logaddexp2])
def test_second_derivatives_of_sums_of_exponentials(function):
    """By finite differences of the first derivative, at a tie and beside it."""
    scale = 1.0 if function is autograd.logaddexp else np.log(2)
    for apart in (0.0, 1e-3, 2.0):
        a, b = leaf(1.0), leaf(1.0 + apart)
        (first,) = autograd.gradients(function(a, b).sum(), [a], create_graph=True)
        share = 1 / (1 + np.exp(apart * scale))
        np.testing.assert_allclose(first.item(), share, rtol=1e-12)
        want = scale * share * (1 - share)
        made = slopes(first, a, b)
        np.testing.assert_allclose(made, [[want], [-want]], rtol=1e-9)


def test_sums_of_infinite_exponentials():
    a, b = from_numpy64(np.array([INF, -INF, INF, 0])), from_numpy64(np.array([INF, -INF, 1, -INF]))
    assert autograd.logaddexp(a, b).tolist() == [INF, -INF, INF, 0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_row_that_is_masked_whole_has_no_gradient(dtype):
    x = from_numpy(np.array([[-INF, -INF], [-INF, 1], [1, 1]]), dtype=dtype)
    x.stores_grad = True
    (made,) = slopes(x.logsumexp(1), x)
    np.testing.assert_allclose(made, [[0, 0], [0, 1], [0.5, 0.5]], rtol=1e-2)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_beside_nan_pass_the_gradient_on(name):
    """As in PyTorch: a gradient of 0 would hide that the result is NaN."""
    function, nan = getattr(autograd, name), np.nan
    a, b = leaf(nan, 1.0, nan, 2.0), leaf(1.0, nan, nan, 2.0)
    assert slopes(function(a, b), a, b) == [[1, 1, 1, 0.5]] * 2
    for number, want in ((1.0, [1, 0.5, 1, float(name == "maximum")]), (nan, [1] * 4)):
        assert slopes(function(a, number), a) == slopes(function(number, a), a) == [want]


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extremes_of_rows_with_nan_have_its_gradient(name):
    x = from_numpy64(np.array([[np.nan, 1, np.nan], [2, 2, 2], [np.nan, INF, -INF]]))
    x.stores_grad = True
    made = getattr(autograd, name)(x, 1, False)
    assert slopes(made, x) == [[[0.5, 0, 0.5], [1 / 3] * 3, [1, 0, 0]]]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fp", [*itertools.product([1.0, 2.5, INF, -INF, np.nan], repeat=3)])
def test_interpolation_beside_infinities(fp):
    x = np.array([-INF, 0, 1, 1.25, 2, 2.5, 3, 4, INF, np.nan])
    made = autograd.interp(from_numpy64(x), [1, 2, 3], np.array(fp))
    np.testing.assert_allclose(made.to_numpy(), np.interp(x, [1, 2, 3], fp))


def test_interpolation_at_a_point_has_the_slope_of_the_next_stretch():
    x, values = leaf(1.0, 2.0, 3.0), leaf(1.0, 3.0, 4.0)
    made = autograd.interp(x, [1, 2, 3], values)
    assert slopes(made, x, values) == [[2, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    ("function", "log", "outside"),
    [(autograd.xlogy, np.log, -1.0), (autograd.xlog1py, np.log1p, -2.0)],
)
def test_the_factor_of_a_logarithm_gets_a_gradient_at_zero(function, log, outside):
    a, b = leaf(0.0, 0.0, 2.0), leaf(0.5, outside, 0.5)
    made = function(a, b)
    assert made.tolist()[:2] == [0, 0]
    np.testing.assert_allclose(slopes(made, a)[0], [log(0.5), 0, log(0.5)])
    assert function(leaf(0.0), leaf(INF)).tolist() == [0]


@pytest.mark.parametrize("known", [True, False], ids=["quantile", "nanquantile"])
@pytest.mark.parametrize("values", [[-INF, -INF], [INF, INF], [-INF, 1, INF], [-INF, 2], [1, INF]])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_quantiles_beside_infinities(known, values, share):
    function = autograd.quantile if known else autograd.nanquantile
    place = share * (len(values) - 1)
    low, high = values[int(place)], values[int(np.ceil(place))]
    part = place - int(place)
    # No part of the way from an infinity to a number leaves it.
    want = low if low in (-INF, high) else low + (high - low) * part if part else low
    given = values if known else [*values, np.nan]
    x = leaf(*given)
    assert function(x, share).item() == want
    if np.isfinite(want):
        assert np.isfinite(slopes(function(x, share), x)[0]).all()


def test_the_slope_of_prelu_at_zero():
    x, slope = leaf(-1.0, 0.0, 2.0), leaf(0.25)
    assert slopes(autograd.prelu(x, slope), x, slope) == [[0.25, 0.25, 1], [-1]]


FIRSTS = {
    "all": ((3, 3), 1, {}, [[1, 0, 0], [0, 0, 0], [0, 0, 0]]),
    "uneven": ((3, 3), 2, {}, [[1, 1, 0], [1, 1, 0], [0, 0, 0]]),
    "line": ((4,), 2, {}, [1, 0, 1, 0]),
    "uneven line": ((5,), 2, {}, [1, 0, 1, 0, 0]),
    "rows first": ((3, 4), 1, {(0, 3): 1, (1, 0): 1}, [[0, 0, 0, 1], [0] * 4, [0] * 4]),
    "rows first, uneven": ((3, 3), (1, 2), {(0, 1): 1, (1, 0): 1}, [[0, 2, 0], [0] * 3, [0] * 3]),
    "NaN": ((3, 3), 2, {(1, 1): np.nan, (2, 2): INF}, [[0, 0, 0], [0, 4, 0], [0, 0, 0]]),
    "NaN first": ((4,), 1, {(1,): np.nan, (3,): np.nan}, [0, 1, 0, 0]),
    "NaN, even": ((2, 2), 1, {(0, 1): np.nan, (1, 0): np.nan}, [[0, 1], [0, 0]]),
    "volume": ((2, 2, 3), (1, 1, 2), {}, [[[1, 1, 0], [0] * 3], [[0] * 3, [0] * 3]]),
}


@pytest.mark.parametrize("name", FIRSTS)
def test_the_first_maximum_of_adaptive_windows_gets_the_gradient(name):
    shape, size, values, want = FIRSTS[name]
    array = np.zeros((1, 1, *shape))
    for place, value in values.items():
        array[0, 0][place] = value
    x = from_numpy64(array)
    x.requires_grad = True
    made = autograd.adaptive_max_pool(x, (size,) * len(shape) if isinstance(size, int) else size)
    assert slopes(made, x) == [[[want]]]


def test_second_derivatives_of_adaptive_maxima():
    x = leaf(1.0, 4.0, 3.0, 2.0, 0.0)
    made = autograd.adaptive_max_pool(x.reshape(1, 1, 5), 2)
    (first,) = autograd.gradients((made**3).sum(), [x], create_graph=True)
    assert slopes(first, x) == [[0, 24, 18, 0, 0]]


def test_what_losses_raise_to_a_bound_gets_the_gradient_of_the_bound():
    x, t = leaf(0.5, 1.0), leaf(0.0, 0.2)
    for far in (1e-8, 0.0, -1e8):
        var = leaf(far, 0.5)
        made = autograd.gaussian_nll_loss(x, t, var, eps=0.1, reduction="sum")
        want = (np.log(0.1) + 2.5 + np.log(0.5) + 1.28) / 2
        np.testing.assert_allclose(made.item(), want, rtol=1e-12)
        np.testing.assert_allclose(slopes(made, var), [[5 - 12.5, 1 - 1.28]], rtol=1e-12)
    a, b = leaf(3.0, 4.0), leaf(0.1, 0.2)
    made = autograd.cosine_similarity(a, b, 0, 0.5)
    np.testing.assert_allclose(made.item(), 1.1 / 2.5, rtol=1e-12)
    # d(a b / (|a| length)) / db, where length is 0.5 and changes as |b| does.
    want = np.array([3.0, 4.0]) / 2.5 - 1.1 / (5 * 0.25) * np.array([0.1, 0.2]) / np.hypot(0.1, 0.2)
    np.testing.assert_allclose(slopes(made, b), [want], rtol=1e-12)
    assert slopes(autograd.cosine_similarity(a, leaf(0.0, 0.0), 0), a) == [[0, 0]]
    nothing = leaf(0.0, 0.0)
    np.testing.assert_allclose(
        slopes(autograd.cosine_embedding_loss(nothing, a, 1), nothing), [[-0.6e6, -0.8e6]]
    )


def test_probabilities_that_are_wholly_wrong_get_a_gradient():
    x, t = leaf(0.0, 1.0, 0.5), from_numpy64(np.array([1.0, 0, 1]))
    made = autograd.bce_loss(x, t, reduction="none")
    np.testing.assert_allclose(made.tolist(), [100, 100, np.log(2)])
    np.testing.assert_allclose(slopes(made, x)[0], [-1e12, 1e12, -2])


def test_elements_at_the_bounds_of_intervals():
    x = np.array([-0.6, -0.6, -0.6, 0.2], np.float32)
    counts, edges = autograd.histogram(from_numpy(x), 5, (-1.0, 1.0))
    want, bounds = np.histogram(x, 5, (-1.0, 1.0))
    assert counts.tolist() == want.tolist()
    np.testing.assert_allclose(edges.to_numpy(), bounds, rtol=1e-6)
    assert autograd.histc(
        from_numpy(np.array([-0.2, 0.2, -0.6], np.float32)), 5, -1, 1
    ).tolist() == [
        1,
        0,
        1,
        1,
        0,
    ]  # as in PyTorch


def test_logarithms_of_small_bfloat16_numbers():
    x = from_numpy(np.float32([1e-30, 1e-20, 1e3]), dtype="bfloat16")
    assert autograd.log10(x).as_type("float32").tolist() == [-30, -20, 3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logarithms_of_denormal_numbers(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([tiny, 7 * tiny, 100, 1e-3], dtype)
    made = autograd.log10(from_numpy(x, dtype=dtype)).to_numpy()
    np.testing.assert_allclose(made, np.log10(x.astype(np.float64)), rtol=2 * np.finfo(dtype).eps)
    assert made[2] == 2


def test_axes_that_there_are_not():
    a, b = from_numpy64(np.ones((2, 3))), from_numpy64(np.ones((2, 3)))
    for axes in (-1, 3, 2**33):
        with pytest.raises(ValueError, match="axes"):
            autograd.tensordot(a, b, axes)
    with pytest.raises(ValueError, match="axis"):
        autograd.mode(a, 0.5)


def test_angles_of_infinite_points():
    """An infinite coordinate changes nothing, as in PyTorch."""
    for dtype in ("float64", "float32"):
        y, x = leaf(INF, -INF, 1.0, dtype=dtype), leaf(0.0, 1.0, -INF, dtype=dtype)
        dy, dx = slopes(autograd.atan2(y, x), y, x)
        assert dy[:2] == [0, 0] and dx[2] == 0


@pytest.mark.parametrize("of_tensor", [False, True])
def test_lerp_reaches_both_ends(of_tensor):
    """From the middle on by the distance from the end, as in PyTorch."""
    a, b = leaf(1e20, INF, -1e308, 2.0), leaf(1.0, 0.0, 1e308, 4.0)
    for w, want in ((0.0, a), (1.0, b)):
        made = autograd.lerp(a, b, from_numpy64(np.full(4, w)) if of_tensor else w)
        assert made.tolist()[::3] == want.tolist()[::3]
    weights = from_numpy64(np.array(0.75)) if of_tensor else 0.75
    assert autograd.lerp(a, b, weights).tolist()[1:] == [INF, -INF, 3.5]
    weight = leaf(0.25, 0.5, 0.75)
    c, d = leaf(1.0, 1.0, 1.0), leaf(3.0, 3.0, 3.0)
    made = slopes(autograd.lerp(c, d, weight), c, d, weight)
    assert made == [[0.75, 0.5, 0.25], [0.25, 0.5, 0.75], [2, 2, 2]]


@pytest.mark.parametrize(
    "function, least",
    [
        (lambda x: autograd.xlogy(x, x), 0),
        (lambda x: autograd.xlogy(x, x - 1), 1),
        (lambda x: autograd.xlog1py(x, x), -1),
        (autograd.acosh, 1),
    ],
)
def test_no_gradient_where_a_function_is_not_taken(function, least):
    x = leaf(least - 3.0, least - 2.5, least + 0.5)
    (made,) = slopes(autograd.where(x > least, function(x), 0.0), x)
    assert made[:2] == [0, 0]
    assert made[2:] == slopes(function(x[2:]), x)[0][2:]


def test_second_derivatives_beside_a_gradient_of_zero():
    """A gradient of 0 that is differentiated itself is not cut off."""
    a, b, dy = leaf(2.0), leaf(3.0), leaf(0.0)
    (made,) = autograd.gradients((autograd.xlogy(a, b) * dy).sum(), [a], create_graph=True)
    np.testing.assert_allclose(slopes(made, dy)[0], np.log(3), rtol=1e-12)


@pytest.mark.parametrize(
    "function, x",
    [
        (autograd.softshrink, [-0.5, -0.2, 0.0, 0.5]),
        (autograd.hardswish, [-INF, -9.0, -3.0]),
        (lambda x: x ** from_numpy64(np.array([0.0])), [0.0, -2.0, 3.0]),
    ],
)
@pytest.mark.parametrize("dy", [INF, np.nan])
def test_flat_parts_have_no_gradient_whatever_comes_in(function, x, dy):
    x = leaf(*x)
    assert slopes(function(x) * dy, x) == [[0] * x.numel]


@pytest.mark.parametrize("x", [*itertools.product([2.0, 0.0, INF, np.nan], repeat=3)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_products_beside_zeros_keep_what_is_not_finite(x):
    t = leaf(*x)
    if 0 in x:
        want = [np.prod(np.delete(x, i)) for i in range(3)]
        np.testing.assert_array_equal(slopes(autograd.reduce_prod(t), t)[0], want)


@pytest.mark.parametrize(
    "x, want",
    [
        ((2, 0, np.nan), (np.nan, np.nan, 0)),
        ((0, 0, np.nan), (np.nan, np.nan, 0)),
        ((0, 0, INF), (np.nan, np.nan, 0)),
        ((INF, 2, 0), (3, INF, INF)),
        ((INF, 0, 0), (1, INF, np.nan)),
        ((np.nan, 0, 3), (1, np.nan, np.nan)),
    ],
)
def test_running_products_beside_zeros(x, want):
    t = leaf(*map(float, x))
    np.testing.assert_array_equal(slopes(autograd.cumprod(t, 0), t)[0], want)
