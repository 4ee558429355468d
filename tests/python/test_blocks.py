"""Functions whose results are small beside the product of their arguments' extents take memory and
time by these results, and give the same values however their work is cut."""

import sys

import numpy as np
import pytest
from recorded import CPU
from singa_rs import autograd
from singa_rs.autograd import blocks, running
from singa_rs.record.tracing import trace
from singa_rs.tensor import Tensor, from_numpy

RNG = np.random.default_rng(0)


@pytest.fixture
def small(monkeypatch):
    """Blocks and pieces of a few elements."""
    monkeypatch.setattr(blocks, "BLOCK", 24)
    monkeypatch.setattr(running, "BLOCK", 24)
    monkeypatch.setattr(running, "_PIECE", 2)
    monkeypatch.setattr(running, "_PIECES", 4)


def leaf(*shape):
    made = Tensor(data=RNG.normal(size=shape), dtype="float64")
    made.stores_grad = True
    return made


SETS = np.array([[1, 3, -1, 0, 2], [-1, 2, 2, 2, 2], [4, 3, 2, 1, 0], [0, 0, 4, -1, 1]])
CASES = {
    "convolve": (autograd.convolve, (9,), (7,)),
    "convolve in equal pieces": (autograd.convolve, (6,), (8,)),
    "convolve of the short": (lambda a, v: autograd.convolve(a, v, "same"), (2,), (11,)),
    "correlate": (autograd.correlate, (5,), (11,)),
    "cdist": (autograd.cdist, (7, 3), (4, 3)),
    "cdist of stacks": (lambda a, b: autograd.cdist(a, b, 1.5), (2, 1, 5, 2), (3, 4, 2)),
    "cdist of nothing": (autograd.cdist, (0, 3), (4, 3)),
    "pdist": (autograd.pdist, (9, 3)),
    "pdist of one": (lambda x: autograd.pdist(x, 1), (1, 3)),
    "multilabel": (lambda x: autograd.multilabel_margin_loss(x, SETS, "none"), (4, 5)),
}


def computed(function, xs):
    with autograd._training_scope(True):
        y = function(*xs)
        found = autograd.gradients((y * y).sum()) if y.numel else {}
        return (y, *(found[x] for x in xs if x in found))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_do_not_depend_on_the_cut(name, request):
    function, *shapes = CASES[name]
    xs = [leaf(*shape) for shape in shapes]
    whole = [t.to_numpy() for t in computed(function, xs)]
    request.getfixturevalue("small")
    parts = [t.to_numpy() for t in computed(function, xs)]
    assert len(whole) == len(parts)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    graph = trace(CPU, [], lambda: computed(function, xs)).recording.graph()
    for a, b in zip(graph.run([]), parts, strict=True):
        np.testing.assert_array_equal(a.to_numpy(), b)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_convolve_exactly(small, dtype):
    info = np.iinfo(dtype)
    a, v = (RNG.integers(info.min, info.max, n, dtype, True) for n in (40, 23))
    got = autograd.convolve(Tensor(data=a, dtype=dtype), Tensor(data=v, dtype=dtype))
    assert got.dtype.name == dtype
    want = np.convolve(a.astype(object), v.astype(object))
    wrapped = [int(n) & 0xFFFFFFFFFFFFFFFF for n in want]
    np.testing.assert_array_equal(got.to_numpy(), np.array(wrapped, np.uint64).astype(dtype))


def test_convolutions_keep_what_is_not_finite_in_its_place(small):
    a, v = RNG.normal(size=20), RNG.normal(size=9)
    a[5], a[15] = np.nan, np.inf
    got = autograd.convolve(Tensor(data=a, dtype="float64"), Tensor(data=v, dtype="float64"))
    np.testing.assert_allclose(got.to_numpy(), np.convolve(a, v), rtol=1e-12)


def test_long_vectors():
    a, v = (RNG.normal(size=n).astype(np.float32) for n in (30_000, 20_011))
    got = autograd.convolve(from_numpy(a), from_numpy(v)).to_numpy()
    np.testing.assert_allclose(got, np.convolve(a, v), atol=1e-2)
    x = RNG.integers(0, 50, 300_000)
    counts = np.bincount(x)
    values, places = autograd.mode(Tensor(data=x, dtype="int32"))
    assert values.item() == counts.argmax()
    assert places.item() == np.flatnonzero(x == counts.argmax())[-1]
    weights = from_numpy(np.ones(200_000, np.float32))
    drawn = weights.multinomial(200_000, True).to_numpy()
    assert 0 <= drawn.min() < 100 and 199_900 < drawn.max() < 200_000
    shares = np.linspace(0, 1, 2001)
    numbers = RNG.normal(size=5000)
    for function in (autograd.quantile, autograd.nanquantile):
        got = function(Tensor(data=numbers, dtype="float64"), shares).to_numpy()
        np.testing.assert_allclose(got, np.quantile(numbers, shares), rtol=1e-12)


def test_the_mode_of_what_is_not_a_number():
    x = np.array([[np.nan] * 3, [np.nan, 1, np.nan], [2, np.nan, 1], [0.0, 1, -0.0]], np.float32)
    values, places = from_numpy(x).mode()
    np.testing.assert_array_equal(values.to_numpy(), [np.nan, 1, 1, 0])
    assert places.tolist() == [2, 1, 2, 2]


def test_no_shares():
    x = from_numpy(np.ones((2, 3), np.float32))
    assert x.quantile([], 1).shape == (0, 2)
    assert x.nanquantile([], (0, 1), True).shape == (0, 1, 1)


def status(name):
    with open("/proc/self/status") as lines:
        return next(int(one.split()[1]) / 1024 for one in lines if one.startswith(name))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "function",
    [
        lambda: autograd.cdist(Tensor((700, 300)), Tensor((700, 300))),
        lambda: autograd.pdist(Tensor((700, 300))),
        lambda: autograd.multilabel_margin_loss(Tensor((300, 400)), np.zeros((300, 400), int)),
        lambda: autograd.convolve(Tensor((6000,)), Tensor((6000,))),
        lambda: autograd.convolve(Tensor((6000,), dtype="int32"), Tensor((2000,), dtype="int32")),
    ],
    ids=["cdist", "pdist", "multilabel", "convolve", "convolve of integers"],
)
def test_peaks_are_far_below_the_product_of_extents(function):
    CPU.trim()
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # forgets the greatest size
    before = status("VmRSS")
    function()
    assert status("VmHWM") - before < 120  # MiB, of 90 to 560 for one product
