"""Functions that are compositions of operations: values against NumPy in float64, gradients against
differences, other dtypes and layouts, bad input, and the bits of recordings."""

import math

import numpy as np
import pytest
import window_cases
from cases import references as ref
from harness import DEVICE, weighted, weights
from numeric import vjp
from singa_rs import DTypeError, ShapeError, autograd
from singa_rs.record.tracing import trace
from singa_rs.tensor import Tensor

EPS = 1e-3
RNG = np.random.default_rng(5)
SEEN = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
ADDED = np.where(RNG.random((2, 1, 3, 4)) < 0.3, -np.inf, RNG.normal(size=(2, 1, 3, 4)))
HEADS = ((2, 4, 3, 6), (2, 4, 4, 6), (2, 4, 4, 5))
GROUPED = ((2, 4, 3, 6), (2, 2, 4, 6), (2, 2, 4, 5))


def held(array, like):
    """A tensor that takes no part in gradients; floats have the dtype of another one."""
    made = Tensor(data=array, dtype="bool" if array.dtype == bool else like.dtype)
    made.requires_grad = False
    return made


def attention(mask=None, **options):
    """The function and its reference, with one mask."""

    def function(q, k, v):
        given = None if mask is None else held(mask, q)
        return autograd.scaled_dot_product_attention(q, k, v, given, **options)

    return function, lambda q, k, v: ref.attention(q, k, v, mask, **options)


def sinusoids(x):
    table, width = np.zeros(x.shape[-2:]), x.shape[-1]
    angles = ref.positions(*x.shape[-2:], first=3)
    table[:, ::2], table[:, 1::2] = np.sin(angles), np.cos(angles)[:, : width // 2]
    return x + table


def pooled(x, name, sizes):
    return getattr(autograd, f"adaptive_{name}_pool")(x, sizes)


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


#: Name: the function of tensors, the reference, the shapes.
CASES = {
    "back_broadcast": (
        lambda x: autograd.back_broadcast(
            (5, *x.shape), (x.shape[0], 1, 4), autograd.stack([x] * 5)
        ),
        lambda x: 5 * x.sum(1, keepdims=True),
        ((2, 3, 4),),
    ),
    "gelu_tanh": (autograd.gelu_tanh, tanh_gelu, ((3, 5),)),
    "mish": (autograd.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), ((3, 5),)),
    "hardswish": (
        autograd.hardswish,
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        ((3, 5),),
    ),
    "layer_norm": (
        lambda x: autograd.layer_norm(x, eps=EPS),
        lambda x: ref.layer_norm(x, np.ones(x.shape[-1]), eps=EPS),
        ((2, 3, 5),),
    ),
    "rms_norm": (
        lambda x: autograd.rms_norm(x, eps=EPS),
        lambda x: ref.rms_norm(x, eps=EPS),
        ((2, 3, 5),),
    ),
    "group_norm": (
        lambda x, s, b: autograd.group_norm(x, 3, s, b, EPS),
        lambda x, s, b: ref.group_norm(x, 3, s, b, eps=EPS),
        ((2, 6, 2, 3), (6,), (6,)),
    ),
    "group_norm-rows": (
        lambda x: autograd.group_norm(x, 2, eps=EPS),
        lambda x: ref.group_norm(x, 2, eps=EPS),
        ((3, 8),),
    ),
    "group_norm-ones": (
        lambda x: autograd.group_norm(x, 3, eps=EPS),
        lambda x: 0 * x,
        ((2, 3, 1),),
    ),
    "instance_norm": (
        lambda x, s, b: autograd.instance_norm(x, s, b, EPS),
        lambda x, s, b: ref.group_norm(x, 3, s, b, eps=EPS),
        ((2, 3, 5), (3,), (3,)),
    ),
    **{
        f"adaptive_{name}_pool-{sizes}-{len(shape)}": (
            lambda x, name=name, sizes=sizes: pooled(x, name, sizes),
            lambda x, over=over, sizes=sizes: ref.adaptive_pool(
                x, [n if m is None else m for m, n in zip(sizes, x.shape[2:], strict=True)], over
            ),
            (shape,),
        )
        for name, over in (("avg", np.mean), ("max", np.max))
        for shape, sizes in (
            ((2, 2, 6, 4), (3, 2)),
            ((2, 2, 5, 7), (3, 4)),
            ((1, 2, 3, 6), (None, 4)),
            ((2, 2, 2, 3), (4, 1)),
            ((2, 3, 7), (3,)),
            ((2, 3, 6), (2,)),
            ((1, 2, 3, 4, 5), (2, 2, 3)),
        )
    },
    "attention": (*attention(), HEADS),
    "attention-scale": (*attention(scale=0.3), HEADS),
    "attention-matrices": (
        lambda q, k, v: autograd.scaled_dot_product_attention(q, k, v),
        lambda q, k, v: ref.attention(q[None], k[None], v[None])[0],
        ((3, 6), (4, 6), (4, 5)),
    ),
    "attention-causal": (*attention(is_causal=True), HEADS),
    "attention-grouped": (*attention(is_causal=True), GROUPED),
    "attention-seen": (*attention(SEEN), GROUPED),
    "attention-seen-causal": (*attention(SEEN, is_causal=True), HEADS),
    "attention-added": (*attention(ADDED), HEADS),
    "attention-never": (*attention(np.full((3, 4), -np.inf)), HEADS),
    "sinusoidal_positions": (
        lambda x: autograd.sinusoidal_positions(x, 3),
        sinusoids,
        ((2, 4, 6),),
    ),
    "sinusoidal_positions-odd": (
        lambda x: autograd.sinusoidal_positions(x, 3),
        sinusoids,
        ((4, 5),),
    ),
    "rotary_embedding": (
        lambda x: autograd.rotary_embedding(x, 2),
        lambda x: ref.rotary(x, 2),
        ((2, 2, 4, 6),),
    ),
    "rotary_embedding-interleaved": (
        lambda x: autograd.rotary_embedding(x, interleaved=True, base=100),
        lambda x: ref.rotary(x, base=100, interleaved=True),
        ((3, 4),),
    ),
    "rotary_embedding-positions": (
        lambda x: autograd.rotary_embedding(x, held(np.arange(2, 6), Tensor((1,), dtype="int32"))),
        lambda x: ref.rotary(x, 2),
        ((2, 4, 6),),
    ),
    **window_cases.CASES,
}
each = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def training():
    with autograd._training_scope(True):
        yield


def samples(name):
    """Distinct values, in random order."""
    rng = np.random.default_rng(len(name))
    spread = [np.linspace(-2, 2, math.prod(s)) + 0.011 for s in CASES[name][2]]
    pairs = zip(spread, CASES[name][2], strict=True)
    return [rng.permutation(values).reshape(shape) for values, shape in pairs]


def tensors(arrays, dtype):
    made = [Tensor(data=a, dtype=dtype) for a in arrays]
    for one in made:
        one.stores_grad = True
    return made


def with_gradients(function, xs):
    """The result of a function, and the gradients of a weighted sum of it."""
    y = function(*xs)
    found = autograd.gradients(weighted(y))
    return [y, *(found[x] for x in xs)]


@each
def test_against_numpy(name):
    function, reference, _ = CASES[name]
    arrays = samples(name)
    got = [t.to_numpy() for t in with_gradients(function, tensors(arrays, "float64"))]
    want = reference(*arrays)
    np.testing.assert_allclose(got[0], want, rtol=1e-9, atol=1e-9)
    for i, found in enumerate(got[1:]):
        step = 1e-5 if "max" in name else 2e-3
        expected = vjp(reference, arrays, i, [weights(want.shape)], step)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@each
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrower_dtypes(name, dtype):
    function = CASES[name][0]
    arrays = [t.as_type("float64").to_numpy() for t in tensors(samples(name), dtype)]
    error = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 0.15}[dtype]
    made = with_gradients(function, tensors(arrays, dtype))
    wide = with_gradients(function, tensors(arrays, "float64"))
    for got, want in zip(made, wide, strict=True):
        assert got.dtype.name == dtype
        want = want.to_numpy()
        size = max(np.abs(want).max(), 1.0)
        got = got.as_type("float64").to_numpy()
        np.testing.assert_allclose(got / size, want / size, atol=error)


@each
def test_of_views(name):
    function = CASES[name][0]
    arrays = samples(name)
    want = function(*tensors(arrays, "float64")).to_numpy()
    views = [Tensor(data=np.ascontiguousarray(a.T), dtype="float64").transpose() for a in arrays]
    np.testing.assert_allclose(function(*views).to_numpy(), want, rtol=1e-12, atol=1e-12)


@each
def test_of_no_samples(name):
    function, _, shapes = CASES[name]
    if len(shapes[0]) < 3 or "added" in name or "conv" in name or "unpool" in name:
        pytest.skip("the first axis is not one of samples")
    empty = [(0, *shape[1:]) if len(shape) > 1 else shape for shape in shapes]
    y = function(*(Tensor(shape, dtype="float64") for shape in empty))
    assert y.shape[0] == 0 and y.to_numpy().size == 0


@each
def test_recorded(name):
    """As recorded, rewritten and replayed, forward and backward have the bits of eager."""
    function, xs = CASES[name][0], tensors(samples(name), "float32")
    want = [t.to_numpy().tobytes() for t in with_gradients(function, xs)]
    recording = trace(DEVICE, [], lambda: tuple(with_gradients(function, xs))).recording
    for options in ({"rewrite": False}, {}):
        graph = recording.graph(**options)
        for _ in range(2):
            assert [t.to_numpy().tobytes() for t in graph.run([])] == want, options


def of(*shape, dtype="float32"):
    return Tensor(shape, dtype=dtype)


Q, SDPA = (2, 4, 3, 6), autograd.scaled_dot_product_attention
BAD = {
    "back_broadcast: got x of": (
        ShapeError,
        lambda: autograd.back_broadcast((2, 3), (3,), of(3, 2)),
    ),
    **{
        rf"back_broadcast: got x_shape \({shape}": (
            ShapeError,
            lambda shape=shape: autograd.back_broadcast((2, 3), eval(f"({shape})"), of(2, 3)),
        )
        for shape in ("2,", "2, 1, 1", "1, 2")
    },
    "layer_norm: got a bias": (ValueError, lambda: autograd.layer_norm(of(2, 3), None, of(3))),
    "rms_norm: axis": (TypeError, lambda: autograd.rms_norm(of(2, 3), of(3), "x")),
    r"rms_norm: got \(2,\)": (ShapeError, lambda: autograd.rms_norm(of(2, 3), of(2))),
    "rms_norm: eps": (ValueError, lambda: autograd.rms_norm(of(2, 3), eps=-1)),
    "group_norm: num_groups": (ValueError, lambda: autograd.group_norm(of(2, 6), 0)),
    "group_norm.*4 equal": (ShapeError, lambda: autograd.group_norm(of(2, 6, 2), 4)),
    "group_norm.*several": (ValueError, lambda: autograd.group_norm(of(1, 6), 6)),
    "group_norm.*dtype": (
        DTypeError,
        lambda: autograd.group_norm(of(2, 6), 2, of(6, dtype="float64")),
    ),
    "instance_norm.*several": (ValueError, lambda: autograd.instance_norm(of(2, 6, 1))),
    r"instance_norm.*\(5,\)": (ShapeError, lambda: autograd.instance_norm(of(2, 6, 2), of(5))),
    "adaptive_avg_pool: output": (ValueError, lambda: autograd.adaptive_avg_pool(of(1, 2, 3), 0)),
    "adaptive_avg_pool.*want less": (
        ValueError,
        lambda: autograd.adaptive_avg_pool(of(1, 2, 3), 10**30),
    ),
    "adaptive_max_pool.*element": (
        ShapeError,
        lambda: autograd.adaptive_max_pool(of(1, 2, 0), 1),
    ),
    "adaptive_avg_pool.*size": (
        ShapeError,
        lambda: autograd.adaptive_avg_pool(of(2, 3), (1, 1)),
    ),
    "attention.*as wide": (ShapeError, lambda: SDPA(of(*Q), of(2, 4, 5, 7), of(2, 4, 5, 7))),
    "attention.*multiple of 3": (ShapeError, lambda: SDPA(of(*Q), of(2, 3, 5, 6), of(2, 3, 5, 6))),
    "attention.*each": (ShapeError, lambda: SDPA(of(6), of(6), of(6))),
    r"attention.*mask \(3, 5\)": (
        ShapeError,
        lambda: SDPA(of(*Q), of(*Q), of(*Q), of(3, 5, dtype="bool")),
    ),
    "attention.*int32": (
        DTypeError,
        lambda: SDPA(of(*Q), of(*Q), of(*Q), of(3, 3, dtype="int32")),
    ),
    "dropout": (ValueError, lambda: SDPA(of(*Q), of(*Q), of(*Q), dropout=1.0)),
    "sinusoidal_positions: base": (
        ValueError,
        lambda: autograd.sinusoidal_positions(of(2, 3), 0, 0.0),
    ),
    "sinusoidal_positions: offset": (
        ValueError,
        lambda: autograd.sinusoidal_positions(of(2, 3), -1),
    ),
    "rotary_embedding.*even": (ShapeError, lambda: autograd.rotary_embedding(of(2, 3))),
    "rotary_embedding.*positions": (
        ShapeError,
        lambda: autograd.rotary_embedding(of(2, 4), of(3, dtype="int32")),
    ),
    **window_cases.BAD,
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input(message):
    error, call = BAD[message]
    with pytest.raises(error, match=message):
        call()


def test_attention_drops_weights_in_training_only():
    q = Tensor(data=np.ones((1, 1, 1, 4), np.float32))
    v = Tensor(data=np.ones((1, 1, 400, 1), np.float32))
    k = Tensor((1, 1, 400, 4))
    made = [SDPA(q, k, v, dropout=0.5).item() for _ in range(8)]
    assert len(set(made)) > 1 and abs(np.mean(made) - 1) < 0.15
    with autograd._training_scope(False):
        assert abs(SDPA(q, k, v, dropout=0.5).item() - 1) < 1e-5


def test_padding_that_is_not_finite_is_masked():
    """Scores of masked keys do not matter, whatever they are."""
    q, k = RNG.normal(size=(1, 1, 2, 4)), RNG.normal(size=(1, 1, 3, 4))
    v, mask = RNG.normal(size=(1, 1, 3, 4)), np.array([True, True, False])
    k[..., 2, :] = np.inf
    xs = tensors([q, k, v], "float64")
    y = SDPA(*xs, held(mask, xs[0]))
    want = ref.attention(q, k[..., :2, :], v[..., :2, :])
    np.testing.assert_allclose(y.to_numpy(), want, rtol=1e-12)
