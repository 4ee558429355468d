"""Functions that are made of operations: against NumPy, with gradients against differences, of
views, recorded, and refusing what does not fit."""

import math
import warnings

import numpy as np
import pytest
from numeric import vjp
from recorded import replays, same
from singa_rs import autograd, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

S = (3, 4, 5)
PLACES = np.random.default_rng(1).integers(-4, 4, (3, 2, 5))
SIGNS = np.random.default_rng(2).normal(size=S) > 0


def double(array, dtype="float64"):
    return from_numpy(np.asarray(array), dtype=dtype)


def sample(shape=S):
    """Distinct numbers, none near 0."""
    count = math.prod(shape)
    values = np.linspace(0.3, 2.0, count) * np.where(np.arange(count) % 3, 1, -1)
    return np.random.default_rng(3).permutation(values).reshape(shape)


def logsumexp(x, axis=None, keepdims=False):
    most = x.max(axis=axis, keepdims=True)
    made = np.log(np.exp(x - most).sum(axis=axis, keepdims=True)) + most
    return made if keepdims else made.squeeze(axis)


def filled(x, value):
    return np.where(SIGNS, value, x)


#: What is called on a tensor, and on an array.
SMOOTH = {
    "var": (lambda t: t.var(), lambda x: x.var()),
    "var-axis": (lambda t: t.var(1, ddof=1), lambda x: x.var(1, ddof=1)),
    "var-axes": (lambda t: t.var((0, -1), True), lambda x: x.var((0, 2), keepdims=True)),
    "var-none": (lambda t: t.var(()), lambda x: x.var(())),
    "std": (lambda t: autograd.std(t, ddof=1.5), lambda x: x.std(ddof=1.5)),
    "std-axis": (lambda t: t.std(-1, True), lambda x: x.std(-1, keepdims=True)),
    "norm": (lambda t: t.norm(), np.linalg.norm),
    "norm-1": (lambda t: t.norm(1, 1), lambda x: np.linalg.norm(x, 1, 1)),
    "norm-2": (lambda t: t.norm(2, 0, True), lambda x: np.linalg.norm(x, 2, 0, True)),
    "norm-3": (lambda t: t.norm(3, -1), lambda x: np.linalg.norm(x, 3, -1)),
    "norm-inf": (lambda t: t.norm(math.inf, 2), lambda x: np.linalg.norm(x, np.inf, 2)),
    "norm-least": (lambda t: t.norm(-math.inf, 2), lambda x: np.linalg.norm(x, -np.inf, 2)),
    "norm-fro": (lambda t: t.norm("fro", (0, 1)), lambda x: np.linalg.norm(x, "fro", (0, 1))),
    "norm-columns": (lambda t: t.norm(1, (0, 2)), lambda x: np.linalg.norm(x, 1, (0, 2))),
    "norm-rows": (
        lambda t: t.norm(math.inf, (2, 1), True),
        lambda x: np.linalg.norm(x, np.inf, (2, 1), True),
    ),
    "logsumexp": (lambda t: t.logsumexp(), logsumexp),
    "logsumexp-axes": (lambda t: t.logsumexp((0, 2), True), lambda x: logsumexp(x, (0, 2), True)),
    "logsumexp-last": (lambda t: autograd.logsumexp(t, -1), lambda x: logsumexp(x, -1)),
    "log_softmax": (lambda t: t.log_softmax(1), lambda x: x - logsumexp(x, 1, True)),
    "flip": (lambda t: t.flip(), np.flip),
    "flip-axes": (lambda t: t.flip((0, -1)), lambda x: np.flip(x, (0, 2))),
    "roll": (lambda t: t.roll(7), lambda x: np.roll(x, 7)),
    "roll-axis": (lambda t: t.roll(-1, 1), lambda x: np.roll(x, -1, 1)),
    "roll-axes": (lambda t: t.roll((4, -2), (0, 2)), lambda x: np.roll(x, (4, -2), (0, 2))),
    "roll-same": (lambda t: t.roll(1, (0, 1)), lambda x: np.roll(x, 1, (0, 1))),
    "outer": (lambda t: t[0, 0].outer(t[:, 1]), lambda x: np.outer(x[0, 0], x[:, 1])),
    "diagonal": (lambda t: t.diagonal(), np.diagonal),
    "diagonal-above": (lambda t: t.diagonal(1, 1, 2), lambda x: np.diagonal(x, 1, 1, 2)),
    "diagonal-below": (lambda t: t.diagonal(-1, 2, 0), lambda x: np.diagonal(x, -1, 2, 0)),
    "diagonal-beyond": (lambda t: t.diagonal(9), lambda x: np.diagonal(x, 9)),
    "trace": (lambda t: t.trace(), np.trace),
    "trace-offset": (lambda t: t.trace(-1, 1, 2), lambda x: np.trace(x, -1, 1, 2)),
    "tril": (lambda t: t.tril(), np.tril),
    "tril-offset": (lambda t: autograd.tril(t, -1), lambda x: np.tril(x, -1)),
    "triu": (lambda t: t.triu(1), lambda x: np.triu(x, 1)),
    "diff": (lambda t: t.diff(), np.diff),
    "diff-twice": (lambda t: t.diff(2, 1), lambda x: np.diff(x, 2, 1)),
    "diff-often": (lambda t: t.diff(9, 0), lambda x: np.diff(x, 9, 0)),
    "pow": (lambda t: t.pow(3), lambda x: x**3),
    "masked_fill": (lambda t: t.masked_fill(from_numpy(SIGNS), 7), lambda x: filled(x, 7)),
    "masked_fill-value": (
        lambda t: t.masked_fill(from_numpy(SIGNS), t[0, 0, 0]),
        lambda x: filled(x, x[0, 0, 0]),
    ),
    "nan_to_num": (lambda t: t.nan_to_num(), np.nan_to_num),
    "take": (lambda t: t.take([[1, -2], [1, 0]]), lambda x: np.take(x, [[1, -2], [1, 0]])),
    "take-axis": (lambda t: t.take([3, 0, 3], 1), lambda x: np.take(x, [3, 0, 3], 1)),
    "index_select": (lambda t: t.index_select(2, [1, 1, 4]), lambda x: x[:, :, [1, 1, 4]]),
    "take_along_axis": (
        lambda t: t.take_along_axis(PLACES, 1),
        lambda x: np.take_along_axis(x, PLACES, 1),
    ),
    "take_along_axis-wide": (
        lambda t: t[:, :, :1].take_along_axis(from_numpy(PLACES[:1]), 1),
        lambda x: np.take_along_axis(np.broadcast_to(x[:, :, :1], S), PLACES[:1].repeat(3, 0), 1),
    ),
    "take_along_axis-flat": (
        lambda t: t.take_along_axis(np.array([3, -1, 3]), None),
        lambda x: np.take_along_axis(x, np.array([3, -1, 3]), None),
    ),
    "sort-flat": (lambda t: t.sort(None)[0], lambda x: np.sort(x, None)),
    "sort-down": (lambda t: autograd.sort(t, 1, True)[0], lambda x: -np.sort(-x, 1)),
    "topk": (lambda t: t.topk(2)[0], lambda x: -np.sort(-x)[..., :2]),
    "cumsum-flat": (lambda t: t.cumsum(), np.cumsum),
    "cumprod-flat": (lambda t: t[0].cumprod(), lambda x: np.cumprod(x[0])),
    "meshgrid": (
        lambda t: autograd.meshgrid(t[0, 0], t[0, :, 1], t[1, 2, :2])[1],
        lambda x: np.meshgrid(x[0, 0], x[0, :, 1], x[1, 2, :2])[1],
    ),
    "meshgrid-ij": (
        lambda t: autograd.meshgrid(t[0, 0], t[0, :, 1], indexing="ij")[0],
        lambda x: np.meshgrid(x[0, 0], x[0, :, 1], indexing="ij")[0],
    ),
    "einsum": (
        lambda t: tensor.einsum("...ij,...kj->...ik", t, t[:1]),
        lambda x: np.einsum("...ij,...kj->...ik", x, x[:1]),
    ),
    "einsum-implicit": (
        lambda t: tensor.einsum("i...,i...", t, t[:, 0]),
        lambda x: np.einsum("i...,i...", x, x[:, 0]),
    ),
    "einsum-extents-of-1": (
        lambda t: tensor.einsum("ijk,jl->il", t, t[0, :1, :3]),
        lambda x: np.einsum("ijk,jl->il", x, x[0, :1, :3]),
    ),
    "einsum-last": (
        lambda t: tensor.einsum("ij...->...i", t),
        lambda x: np.einsum("ij...->...i", x),
    ),
}
SPECIAL = np.array([[0.0, np.nan, np.inf], [-np.inf, -0.0, -3.0]])
FLAT = {
    "isnan": (lambda t: t.isnan(), np.isnan),
    "isinf": (lambda t: t.isinf(), np.isinf),
    "isfinite": (lambda t: autograd.isfinite(t), np.isfinite),
    "isclose": (lambda t: t.isclose(t * 1.000001), lambda x: np.isclose(x, x * 1.000001)),
    "isclose-nan": (
        lambda t: t.isclose(t + 1, equal_nan=True),
        lambda x: np.isclose(x, x + 1, equal_nan=True),
    ),
    "any": (lambda t: autograd.any(t, 0), lambda x: x.any(0)),
    "all": (lambda t: autograd.all(t), lambda x: x.all()),
    "any-no-axes": (lambda t: autograd.any(t, axis=()), lambda x: np.any(x, axis=())),
    "all-no-axes": (lambda t: t.all((), True), lambda x: np.all(x, axis=(), keepdims=True)),
    "argsort": (lambda t: t.argsort(), lambda x: np.argsort(x, kind="stable")),
    "argsort-flat": (lambda t: t.argsort(None), lambda x: np.argsort(x, None, kind="stable")),
}


@pytest.fixture
def training():
    autograd.training = True
    yield
    autograd.training = False


def check(got, want, tolerance=1e-12):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.to_numpy(), want, tolerance, tolerance)


@pytest.mark.parametrize("name", SMOOTH)
def test_values(name):
    of_tensor, of_array = SMOOTH[name]
    x = sample()
    check(of_tensor(double(x)), of_array(x))
    view = double(np.ascontiguousarray(x.T)).transpose()
    check(of_tensor(view), of_array(x))
    check(of_tensor(double(x, "float32")), of_array(x.astype("float32")), 1e-5)
    for dtype, tolerance in (("float16", 2e-2), ("bfloat16", 1e-1)):
        made = of_tensor(double(x, dtype))
        assert made.dtype.name == dtype
        check(
            made.as_type("float64"),
            of_array(double(x, dtype).as_type("float64").to_numpy()),
            tolerance,
        )


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name, training):
    of_tensor, of_array = SMOOTH[name]
    x, shape = sample(), np.shape(of_array(sample()))
    weights = np.cos(np.arange(math.prod(shape))).reshape(shape)
    want = vjp(of_array, [x], 0, [weights], 1e-3)
    for t in (double(x), double(np.ascontiguousarray(x.T))):
        t.stores_grad = True
        y = of_tensor(t if t.shape == S else t.transpose())
        got = autograd.gradients((y * double(weights)).sum())[t].to_numpy()
        np.testing.assert_allclose(got if got.shape == S else got.T, want, 1e-7, 1e-7)


@pytest.mark.parametrize("name", FLAT)
def test_conditions_and_places(name, training):
    of_tensor, of_array = FLAT[name]
    with np.errstate(invalid="ignore"):
        for x in (SPECIAL, np.arange(-3, 3).reshape(2, 3), SPECIAL[:, :0]):
            made = of_tensor(from_numpy(x))
            assert not made.requires_grad
            np.testing.assert_array_equal(made.to_numpy(), of_array(x))


class Step(module.Module):
    """A step that calls one function, with a parameter before and after it."""

    def __init__(self, function):
        super().__init__()
        self.function, self.w = function, from_numpy(sample())
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.01)

    def forward(self, x):
        return self.function(self.w * x)

    def train_one_batch(self, x):
        y = self.forward(x)
        y = autograd.cast(y, "float32")
        self.optimizer((y * y).sum() + self.w.sum())
        return y


@pytest.mark.parametrize("name", [*SMOOTH, *FLAT])
def test_recorded(name):
    models = [Step({**SMOOTH, **FLAT}[name][0]) for _ in range(2)]
    x = from_numpy(np.ones(S, np.float32))
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([x], use_graph=use_graph)
    for i in range(4):
        x = from_numpy(sample()[:, ::-1] * (i + 1))
        same(*(model.train_one_batch(x) for model in models))
        same(models[0].w, models[1].w)
    assert replays(models[0]) > 0


def test_the_gradient_of_products_with_zeros(training):
    for x in ([2.0, 0.0, 3.0, 0.5], [0.0, 2.0, 0.0, 3.0], [0.0] * 4, [1.0, 2.0, 3.0, 0.0]):
        for exclusive in (False, True):
            for reverse in (False, True):

                def product(x, exclusive=exclusive, reverse=reverse):
                    x = x[::-1] if reverse else x
                    made = np.cumprod(np.concatenate([[1.0], x[:-1]]) if exclusive else x)
                    return made[::-1] if reverse else made

                t, weights = double(x), np.array([1.0, -2.0, 3.0, 0.5])
                t.stores_grad = True
                y = t.cumprod(0, exclusive, reverse)
                np.testing.assert_allclose(y.to_numpy(), product(np.array(x)))
                got = autograd.gradients((y * double(weights)).sum())[t].to_numpy()
                np.testing.assert_allclose(
                    got, vjp(product, [np.array(x)], 0, [weights]), atol=1e-9
                )


def test_gradients_at_zero_are_zero(training):
    for function in (Tensor.std, Tensor.norm, lambda t: t.norm(3, 0)):
        t = double(np.zeros(4))
        t.stores_grad = True
        assert autograd.gradients(function(t))[t].tolist() == [0] * 4


def test_equal_elements_keep_their_order(training):
    x = np.array([2.0, 1.0, 2.0, np.nan, 1.0, -np.inf])
    values, places = double(x).sort()
    assert places.tolist() == [5, 1, 4, 0, 2, 3] and math.isnan(values[-1].item())
    values, places = double(x).sort(descending=True)
    assert places.tolist() == [3, 0, 2, 1, 4, 5] and math.isnan(values[0].item())
    assert double(x).topk(3)[1].tolist() == [3, 0, 2]
    assert double(x).topk(3, largest=False)[1].tolist() == [5, 1, 4]
    assert double(x).topk(0)[0].shape == (0,)
    assert not places.requires_grad and places.dtype == tensor.int64


def test_special_values():
    t = double([math.inf, -math.inf, math.nan, 1e308])
    np.testing.assert_array_equal(t.nan_to_num().to_numpy(), np.nan_to_num(t.to_numpy()))
    assert t.nan_to_num(nan=1, posinf=2, neginf=3).tolist() == [2, 3, 1, 1e308]
    for dtype, most in (("float16", 65504), ("bfloat16", 3.3895313892515355e38)):
        assert double([math.inf], dtype).nan_to_num().as_type("float64").item() == most
    infinite = double([-math.inf, -math.inf])
    assert infinite.logsumexp().item() == -math.inf
    assert double([math.inf, 1.0]).logsumexp().item() == math.inf
    assert math.isnan(double([math.nan, 1.0]).logsumexp().item())
    assert double([1000.0, 1000.0]).logsumexp().item() == 1000 + math.log(2)
    assert double(np.zeros((0, 2))).logsumexp(0).tolist() == [-math.inf] * 2
    assert math.isnan(double([1.0]).var(ddof=1).item())
    assert double([1.0, 2.0]).var(ddof=2).item() == math.inf
    assert math.isnan(double(np.zeros(0)).std().item())


def test_half_precision_is_summed_in_float32():
    x = np.full(4000, 200.0, np.float16)
    x[::2] = 100
    assert from_numpy(x).var().item() == 2500 and from_numpy(x).std().item() == 50
    assert from_numpy(x[:8]).norm().item() == np.float16(np.linalg.norm(x[:8].astype("f")))


def test_integers_and_bools():
    x = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
    t = from_numpy(x)
    for made, want in (
        (t.var(0), x.var(0)),
        (t.norm(), np.linalg.norm(x)),
        (t.tril(), np.tril(x)),
        (t.diff(), np.diff(x)),
        (t.trace(), np.trace(x)),
        (t.cumsum(0), np.cumsum(x, 0)),
        (t.outer(t[0]), np.outer(x, x[0])),
        (t.flip(0), x[::-1]),
        ((t > 0).diff(), np.diff(x > 0)),
        ((t > 0).cumsum(1), np.cumsum(x > 0, 1)),
        (t.masked_fill(t > 0, -1), np.where(x > 0, -1, x)),
        (t.sort(0, True)[0], x[::-1]),
        (t.nan_to_num(), x),
        (tensor.einsum("...j,...j", t, t), (x * x).sum(1)),
    ):
        check(made, np.asarray(want), 1e-6)
        assert made.dtype.is_float == (np.asarray(want).dtype.kind == "f")


def test_allclose():
    x = sample()
    assert double(x).allclose(x) and autograd.allclose(double(x), double(x + 1e-9))
    assert not double(x).allclose(double(x + 1e-3)) and double(x).allclose(x + 1e-3, atol=1e-2)
    assert not double(SPECIAL).allclose(SPECIAL)
    assert double(SPECIAL).allclose(SPECIAL, equal_nan=True) is True


T = lambda: double(sample())  # noqa: E731
FLAGS = lambda: from_numpy(SIGNS)  # noqa: E731


def test_a_mask_may_have_more_axes():
    x, mask = from_numpy(np.arange(3.0)), np.eye(3)[:2].astype(bool)
    assert autograd.masked_fill(x, mask, 9.0).tolist() == [[9, 1, 2], [0, 9, 2]]
    with pytest.raises(ValueError, match="masked_fill_: got a result"):
        x.masked_fill_(mask, 9.0)


REFUSED = {
    "var: got axes": lambda: T().var(3),
    "std: ddof": lambda: T().std(ddof="x"),
    "norm: got ord": lambda: T().norm(0.5, 1),
    "norm: got ord 0.5": lambda: T()[0].norm(0.5),
    "norm: got ord .nuc.": lambda: T().norm("nuc"),
    "norm: ord": lambda: T().norm("max"),
    "logsumexp: got axes": lambda: T().logsumexp((0, 0)),
    "flip: got axes": lambda: T().flip(3),
    "roll: got 2 shifts": lambda: T().roll((1, 2), 0),
    "roll: got axes": lambda: T().roll(1, 5),
    "diagonal: got axes": lambda: T().diagonal(0, 1, 1),
    "tril: got shape": lambda: T()[0, 0].tril(),
    "triu: k": lambda: T().triu(0.5),
    "meshgrid: got shape": lambda: autograd.meshgrid(T()),
    "meshgrid: got indexing": lambda: autograd.meshgrid(indexing="yx"),
    "diff: got n": lambda: T().diff(-1),
    "diff: got axes": lambda: T().diff(1, 3),
    "masked_fill: got a mask of float64": lambda: T().masked_fill(T(), 1),
    "masked_fill: got a mask of shape": lambda: T().masked_fill(FLAGS()[:, :, :2], 1),
    "masked_fill: got a value": lambda: T().masked_fill(FLAGS(), T()),
    "index_select: got indices": lambda: T().index_select(0, [[1]]),
    "gather.*out of range": lambda: T().take([99]),
    "take_along_axis.*out of range": lambda: T().take_along_axis(PLACES + 3, 1),
    "take_along_axis: got indices": lambda: T().take_along_axis([1, 2], 1),
    "take_along_axis: got axes": lambda: T().take_along_axis(PLACES, 3),
    "topk.*no more than": lambda: T().topk(6),
    "topk: got k": lambda: T().topk(-1),
    "sort: got axes": lambda: T().sort(3),
    "argsort: got axes": lambda: T().argsort(3),
    "cumsum": lambda: T().cumsum(3),
    "einsum: got": lambda: tensor.einsum("...ijkl", T()),
    "einsum: got .* differ": lambda: tensor.einsum("...,...", T(), T()[:, :2]),
    "eye": lambda: tensor.eye(-1),
    "linspace: got": lambda: tensor.linspace(0, math.inf),
    "randint: got": lambda: tensor.randint(3, 3),
    "rand": lambda: tensor.rand(2, dtype="int32"),
    "randperm": lambda: tensor.randperm(-1),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with warnings.catch_warnings(), pytest.raises((ValueError, TypeError), match=text):
        REFUSED[text]()


def test_values_that_a_dtype_cannot_hold():
    for call in (
        lambda: from_numpy(np.arange(3)).masked_fill(from_numpy(np.ones(3, bool)), 0.5),
        lambda: tensor.ones(3, dtype="float16").masked_fill(from_numpy(np.ones(3, bool)), 1e6),
        lambda: tensor.ones(3, dtype="float16").nan_to_num(posinf=1e6),
        lambda: tensor.randint(0, 300, 3, dtype="int8"),
    ):
        with pytest.raises((ValueError, TypeError), match="cannot|hold"):
            call()
