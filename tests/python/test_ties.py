"""Values and gradients where functions have ties, kinks, zeros and infinities."""

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
