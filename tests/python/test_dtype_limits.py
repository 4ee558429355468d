"""Numbers at the limits of their dtypes: rounded once and correctly, or refused."""

import math

import numpy as np
import pytest
from singa_rs import _core, autograd, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

TIE = 1 + 2**-11  # halfway between two float16 numbers
ABOVE = [TIE + 2**-40, -(TIE + 2**-40), TIE - 2**-40, 2**-25 + 2**-60, 65520.0 - 2**-30]


@pytest.mark.parametrize("value", [TIE, *ABOVE])
def test_halves_are_the_nearest(value):
    want = np.float16(np.float64(value))
    made = [
        tensor.full((1,), value, dtype="float16"),
        from_numpy(np.array([value]), dtype="float64").as_type("float16"),
        Tensor((1,), dtype="float16").set_value(value),
    ]
    for one in made:
        assert one.to_numpy()[0] == want, (one, want)


def test_numbers_round_whatever_the_program_asks_numpy_to_raise():
    tiny, ones = np.array([1e-300]), tensor.ones((1,))
    for dtype in ("float32", "float16", "bfloat16"):
        t = tensor.zeros((1,), dtype=dtype)
        with np.errstate(all="raise"):
            from_numpy(tiny, dtype=dtype)
            tensor.full((1,), 1e-300, dtype=dtype)
            t.copy_from(tiny)
            t.set_value(1e-300)
            t[0] = 1e-300
            t.masked_fill(t == 0, 1e-300)
            assert (ones * tiny).item() == (ones * 1e-300).item() == t.item() == 0
            with pytest.raises(_core.DTypeError, match="cannot hold"):
                from_numpy(np.array([1e300]), dtype=dtype)


@pytest.mark.parametrize(
    "value, want",
    [
        (2**62 + 2**54 + 1, 2.0**62 + 2.0**55),
        (2**62 + 2**54, 2.0**62),
        (-(2**62 + 2**54 + 1), -(2.0**62) - 2.0**55),
        (-(2**63), -(2.0**63)),
        (3, 3.0),
    ],
)
def test_integers_round_once_into_bfloat16(value, want):
    made = from_numpy(np.array([value]), dtype="int64").as_type("bfloat16")
    assert made.as_type("float64").item() == want


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_acosh_below_one_is_none(dtype):
    values = np.array([-1e300, -1e30, -1e16, -1e8, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 1e30])
    with np.errstate(all="ignore"):
        x = from_numpy(values, dtype="float64").as_type(dtype)
        made = autograd.acosh(x).as_type("float64").to_numpy()
        want = np.arccosh(x.as_type("float64").to_numpy())
    assert np.array_equal(np.isnan(made), np.isnan(want))
    np.testing.assert_allclose(made, want, rtol=0.01)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("value", [-1e30, 1e30, 1e16, 0.0])
def test_softmax_cross_entropy_of_equal_logits(value, dtype):
    x = from_numpy(np.full((1, 2), value)).as_type(dtype)
    x.stores_grad = True
    autograd.training = True
    try:
        loss = autograd.softmax_cross_entropy(x, np.array([0]))
        ((_, dx),) = autograd.backward(loss)
        soft = autograd.softmax_cross_entropy(x, from_numpy(np.ones((1, 2))).as_type(dtype))
    finally:
        autograd.training = False
    for one in (loss, soft):
        assert one.as_type("float64").item() == pytest.approx(math.log(2), rel=1e-2)
    assert dx.as_type("float64").to_numpy().tolist() == [[-0.5, 0.5]]


@pytest.mark.parametrize(
    "dtype, fill",
    [
        ("float32", lambda t: t.uniform(-1e39, 1e39)),
        ("float32", lambda t: t.gaussian(0.0, 1e39)),
        ("float32", lambda t: t.gaussian(-1e39, 1.0)),
        ("float16", lambda t: t.uniform(0.0, 1e5)),
        ("float16", lambda t: t.uniform(-1e5, 0.0)),
    ],
)
def test_bounds_that_the_dtype_does_not_hold(dtype, fill):
    t = tensor.ones((6,), dtype=dtype)
    with pytest.raises(ValueError, match="random.*finite in its dtype"):
        fill(t)
    assert t.to_numpy().tolist() == [1.0] * 6
    assert np.isfinite(Tensor((6,), dtype="float64").uniform(-1e39, 1e39).to_numpy()).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: opt.Adam(0.1, beta_2=0.99999999),
        lambda: opt.Adam(0.1, beta_1=1 - 1e-12),
        lambda: opt.Adam(0.1, epsilon=1e-50),
        lambda: opt.RMSProp(0.1, rho=0.99999999),
        lambda: opt.SGD(1e-50),
        lambda: opt.SGD(1e39),
    ],
)
def test_hyperparameters_that_float32_does_not_hold(make):
    with pytest.raises(ValueError, match="in float32"):
        make()
