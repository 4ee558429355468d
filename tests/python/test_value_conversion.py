"""Values from outside: each is preserved, up to rounding from float to float, or refused."""

import warnings
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from singa_rs import _core, autograd, initializer, layer, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

DTYPES = [d.name for d in map(_core.dtype, "float32 float64 float16 bfloat16".split())]
DTYPES += ["int32", "int64", "int8", "uint8", "bool"]

masked = np.ma.array([1.0, 2.0], mask=[False, True])


class Strange:
    def __repr__(self):
        return "Strange()"


STRANGE = [
    1 + 2j,
    3 + 0j,
    np.complex64(1 + 1j),
    np.array([1 + 2j, 3]),
    np.array(2 + 1j),
    "3",
    b"3",
    np.str_("3"),
    np.array(["1.5", "2"]),
    np.array([b"1", b"2"]),
    np.array(["2020-01-01", "NaT"], "M8[D]"),
    np.datetime64("NaT"),
    np.datetime64("2020-01-01"),
    np.array([1, 2], "m8[s]"),
    np.timedelta64(5, "s"),
    np.timedelta64("NaT"),
    np.array([1, 2], object),
    np.array([Decimal("0.5"), None], object),
    np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")]),
    np.zeros(2, "V4"),
    masked,
    np.ma.masked,
    None,
    {},
    Strange(),
]
NUMBERS = [
    True,
    0,
    -0.0,
    1.5,
    -1,
    127,
    128,
    255,
    256,
    2049,
    65_520,
    2**24 + 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64,
    10**400,
    1e5,
    1e39,
    -1e300,
    1e-300,
    np.nan,
    np.inf,
    np.float16(0.1),
    np.float32(1e38),
    np.uint16(65_535),
    np.uint32(2**32 - 1),
    np.uint64(2**64 - 1),
    np.int64(-(2**40)),
    np.bool_(True),
    np.longdouble("1e4000"),
    np.longdouble("0.1"),
    np.array(3),
    np.array(0.1),
    ml_dtypes.bfloat16(1.5),
    Decimal("0.5"),
    Fraction(1, 3),
    [1, 0],
    [1.0, 0.5],
    [2**40, 1],
    [2**64, 1],
    [1e300, 0.0],
    [np.nan, 1.0],
    [True, False],
    np.array([1, 300], ">i2"),
    np.array([0.5, 1e30], ">f8"),
    np.array([1, 2], np.uint32),
    np.array([2**64 - 1, 0], np.uint64),
    np.array([0.1, 2], np.longdouble),
    np.array([1.5, 2], ml_dtypes.bfloat16),
    np.array([1.5, 2], ml_dtypes.float8_e4m3fn),
    np.ma.array([1.0, 0.0], mask=[False, False]),
    np.array([[1.0, 0.0]]).view(np.recarray),
]


def into(write):
    """A function that creates a tensor of two elements and writes a value to it."""

    def way(value, dtype):
        t = Tensor((2,), dtype=dtype)
        write(t, value)
        return t

    return way


def first(t, value):
    t[0] = value
    t[1] = value


def masked_places(t, value):
    t[np.array([True, True])] = value


def own(value):
    """A tensor of the value's own dtype."""
    array = np.asanyarray(value)
    return from_numpy(array, dtype=array.dtype)


def through_a_tensor(t, value):
    source = own(value)
    t.copy_from(source if source.shape == (2,) else source.reshape((1,)).expand((2,)))


def parameter(t, value):
    holder = layer.Linear(2, bias=False)
    t.stores_grad, holder.W = True, t
    array = np.asanyarray(value)
    holder.set_params({"W": array if array.shape == (2,) else array.reshape((1,)).repeat(2)})


WAYS = {
    "from_numpy": lambda v, d: from_numpy(np.asanyarray(v), dtype=d),
    "Tensor(data=)": lambda v, d: Tensor(data=v, dtype=d),
    "Tensor(data=) of a tensor": lambda v, d: Tensor(data=own(v), dtype=d),
    "constant": lambda v, d: tensor.constant(v, dtype=d),
    "full": lambda v, d: tensor.full((2,), v, dtype=d),
    "set_value": into(lambda t, v: t.set_value(v)),
    "initializer": into(initializer.constant),
    "copy_from_numpy": into(lambda t, v: t.copy_from_numpy(np.asanyarray(v))),
    "copy_from": into(lambda t, v: t.copy_from(v)),
    "copy_data": into(lambda t, v: t.copy_data(v)),
    "copy_from a tensor": into(through_a_tensor),
    "element": into(first),
    "slice": into(lambda t, v: t.__setitem__(slice(None), v)),
    "places": into(lambda t, v: t.__setitem__([0, 1], v)),
    "mask": into(masked_places),
    "set_params": into(parameter),
    "pad": lambda v, d: autograd.pad(Tensor((0,), dtype=d), "constant", (1, 1), v),
}


def is_kept(got, value):
    """Whether a tensor holds a value as exactly as its dtype allows."""
    value = np.asarray(value.tolist() if isinstance(value, np.ma.MaskedArray) else value)
    if value.dtype.kind == "V":
        value = value.astype(np.float64)
    name, found = got.dtype.name, got.to_numpy()
    value = value.reshape(found.shape) if value.size == found.size else value
    value = np.broadcast_to(value, found.shape)
    for g, v in zip(found.ravel().tolist(), value.ravel(), strict=True):
        if not got.dtype.is_float:
            if isinstance(v, (float, np.floating)) and not np.isfinite(v) or g != v:
                return False
            continue
        kind = {"bfloat16": ml_dtypes.bfloat16}.get(name, name)
        wide = v if isinstance(v, np.longdouble) else np.asarray(v).astype(np.float64)
        want = float(np.asarray(wide).astype(kind))
        if not (g == want or np.isnan(g) and np.isnan(want)):
            return False
        if np.isinf(want) and np.isfinite(wide):
            return False
        is_integer = np.asarray(v).dtype.kind in "iuO" and not isinstance(v, (float, Fraction))
        if is_integer and abs(int(v)) < 2**63 and int(g) != int(v):
            return False
    return True


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_non_numbers_are_refused(way, value):
    if value is None and way == "Tensor(data=)":
        return
    for dtype in DTYPES:
        with pytest.raises((TypeError, ValueError)):
            WAYS[way](value, dtype)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_numbers_are_kept_or_refused(way, value):
    for dtype in DTYPES:
        try:
            got = WAYS[way](value, dtype)
        except (TypeError, ValueError):
            continue
        assert got.dtype.name == dtype and is_kept(got, value), (dtype, got)


@pytest.mark.parametrize("way", WAYS)
def test_ordinary_numbers_are_accepted(way):
    value = np.ones(2) if way.startswith(("from", "copy", "set_params")) else 1
    for dtype in DTYPES:
        assert is_kept(WAYS[way](value, dtype), value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_non_numeric_operands_are_refused(value):
    t = tensor.ones((2,))
    for compute in (
        lambda: t + value,
        lambda: value * t,
        lambda: t < value,
        lambda: t.__iadd__(value),
        lambda: tensor.pow(t, value),
        lambda: autograd.where(t, value, [True, False]),
        lambda: autograd.mse_loss(t, value),
        lambda: autograd.matmul(t, value),
        lambda: autograd.leakyrelu(t, value),
        lambda: autograd.gather(t, 0, value),
        lambda: autograd.onehot(-1, value, 3),
        lambda: t.uniform(0.0, value),
        lambda: tensor.arange(value),
        lambda: autograd.unsqueeze(t, [value]),
        lambda: tensor.zeros([value]),
        lambda: opt.SGD(lr=value),
        lambda: opt.Adam(0.1, beta_1=value),
        lambda: layer.Dropout(value),
        lambda: layer.Linear(value),
    ):
        with pytest.raises((TypeError, ValueError)):
            compute()
    assert t.tolist() == [1, 1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [v for v in STRANGE if v is not None], ids=repr)
def test_non_numeric_bounds_and_factors_are_refused(value):
    t = tensor.ones((2, 2))
    for compute in (
        lambda: autograd.clip(t, value),
        lambda: t.clip(None, value),
        lambda: autograd.gemm(t, t, alpha=value),
        lambda: autograd.ranking_loss(t, t, value),
        lambda: t.gaussian(value, 1.0),
        lambda: autograd.reduce_sum(t, [value]),
        lambda: autograd.flatten(t, value),
    ):
        with pytest.raises((TypeError, ValueError, IndexError)):
            compute()


def test_integers_and_scalars_do_as_numpy_or_refuse():
    for dtype in ("int8", "uint8", "int32", "int64"):
        array = np.array([0, 1, 100], dtype)
        t = from_numpy(array, dtype=dtype)
        for number in (-1, 3, 127, 128, 255, 256, 2**31, 2**40, 2**63, 2**70):
            for compute in (
                lambda x, n: x + n,
                lambda x, n: n - x,
                lambda x, n: x * n,
                lambda x, n: x // n if n else x,
                lambda x, n: x % n,
            ):
                try:
                    got = compute(t, number).to_numpy()
                except ValueError:
                    continue
                with np.errstate(all="ignore"):
                    want = compute(array, number)
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)


def test_numbers_beyond_a_dtype():
    """Arithmetic is in float64, and rounded; what stores the number refuses it, by name."""
    t = tensor.ones((2,))
    half = t.as_type("float16")
    for made, want in ((t - 1e39, -np.inf), (half % 70_000, 1), (70_000 / half, np.inf)):
        assert made.tolist() == [want] * 2 and made.dtype in (t.dtype, half.dtype)
    assert (half / 1e5).tolist() == [float(np.float16(1e-5))] * 2
    half *= -1e5
    assert half.tolist() == [-np.inf] * 2 == (t * -np.inf).tolist()
    with pytest.raises(_core.DTypeError, match="^masked_fill: got values .* cannot hold"):
        half.masked_fill(t > 0, 1e300)
    with pytest.raises(ValueError, match=r"^full: .*got 1.000e300, want a number that float32"):
        tensor.full((2,), 1e300)


def test_equal_numbers_keep_their_kind_and_sign():
    """Numbers beside tensors are converted once: 0.0 and -0.0, and 1, 1.0 and True, are equal."""
    flags, x = tensor.ones((1,)) > 0, tensor.ones((1,))
    for name in ("float32", "float64", "float16", "bfloat16"):
        other = x.as_type(name)
        for value in (0.0, -0.0, 0, 1, 1.0, True, -0.0, 0.0, np.nan, -np.inf):
            made = autograd.where(flags, value, other)
            assert made.dtype == other.dtype
            np.testing.assert_array_equal(made.to_numpy(), [value])
            assert np.signbit(made.to_numpy()[0]) == np.signbit(value)
    for value in (1e39, -1e39):
        with pytest.raises(_core.DTypeError, match="^where: got values .* cannot hold"):
            autograd.where(flags, value, x)
        assert autograd.where(flags, value, x.as_type("float64")).item() == value


@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_what_rounds_to_infinity_is_refused(source, name):
    """Finite values at the limits of each dtype, alone and among others."""
    to = _core.dtype(name)
    limits = [65504, 65519.99, 65520, 3.3895e38, 3.3962e38, 3.40282347e38, 3.4028236e38, 1e300]
    with np.errstate(over="ignore"):
        values = np.array([*limits, np.inf, np.nan], np.longdouble).astype(source)
        stored = values.astype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    for value, made in zip(values, stored, strict=True):
        for array in (np.array([value]), np.array([1, -value], source)):
            if np.isinf(made) and np.isfinite(value):
                with pytest.raises(_core.DTypeError):
                    from_numpy(array, dtype=to)
            else:
                assert np.isfinite(from_numpy(array, dtype=to).to_numpy()).all() == np.isfinite(
                    made
                )


def test_conversions_in_a_recorded_step_are_checked_before_it():
    """Values that a step copies to a narrower tensor are checked in each replay."""

    class Keep(module.Module):
        def __init__(self):
            super().__init__()
            self.kept = Tensor((2,), dtype=tensor.float16)
            self.count = Tensor((1,))

        def forward(self, x):
            self.count += 1
            self.kept.copy_from(x)
            return self.kept * 1.0

    x, keep = tensor.ones((2,)), Keep()
    keep.compile([x], is_train=False)
    for value in (1.0, 2.0, 3.0, 4.0):
        assert keep(Tensor((2,)).set_value(value)).tolist() == [value, value]
    before = keep.count.tolist()
    with pytest.raises(TypeError, match=r"float16 can hold, not 70000"):
        keep(Tensor((2,)).set_value(70_000))
    assert keep.count.tolist() == before and keep.kept.tolist() == [4, 4]


def test_targets_keep_their_values():
    x = tensor.ones((2,)).as_type("float16")
    with pytest.raises(TypeError):
        autograd.mse_loss(x, np.array([1e5, 0.0]))
    with pytest.raises(TypeError):
        autograd.mse_loss(x, np.array([2049, 0]))


def test_host_operations_return_what_they_inferred():
    """A result that the dtype cannot hold is an error, not a different number."""

    class Answer(autograd.Operator):
        host = True

        def __init__(self, value, dtype):
            super().__init__()
            self.value, self.dtype = value, dtype

        def infer(self, x):
            return x.shape, self.dtype

        def forward(self, x):
            return np.full(x.shape, self.value)

    t = tensor.ones((2,))
    for value, dtype in ((1 + 2j, "float32"), (1.5, "int32"), (300, "int8"), ("a", "float32")):
        with pytest.raises((TypeError, ValueError)), warnings.catch_warnings(action="error"):
            Answer(value, dtype)(t)
    assert Answer(0.1, "float32")(t)[0].to_numpy()[0] == np.float32(0.1)
