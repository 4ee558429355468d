"""Attention in blocks: memory, blocks that are skipped, masks with gradients, caches."""

import copy
import pickle

import numpy as np
import pytest
from cases import references as ref
from harness import DEVICE
from recorded import replays, step
from singa_rs import GraphError, ShapeError, autograd, device, layer, module, opt, tensor
from singa_rs.record.tracing import trace
from singa_rs.tensor import Tensor, from_numpy
from wrong_calls import WRONG, check, hold, just

RNG = np.random.default_rng(3)
SDPA = autograd.scaled_dot_product_attention


@pytest.fixture
def training():
    autograd.training = True
    yield
    autograd.training = False


def random(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def arena(steps, **options):
    """The bytes of a planned step: forward and backward."""
    q, k, v = (Tensor(data=random(1, 2, steps, 16)) for _ in range(3))
    for x in (q, k, v):
        x.requires_grad = x.stores_grad = True

    def step():
        y = SDPA(q, k, v, **options)
        return tuple(grad for _, grad in autograd.backward(autograd.reduce_sum(y * y, None, 0)))

    return trace(DEVICE, [], step).recording.graph().arena_bytes


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"dropout": 0.2}])
def test_memory_is_linear_in_the_steps(training, options):
    small, large = (arena(steps, **options) for steps in (1024, 4096))
    scores = 2 * 4096 * 4096 * 4
    assert large < 5 * small and large < scores / 8


def test_blocks_that_are_masked_whole_are_skipped():
    """What a skipped block holds does not matter, not even times 0."""
    q, k, v = random(1, 1, 700, 8), random(1, 1, 700, 8), random(1, 1, 700, 8)
    v[..., 640:, :] = np.nan
    y = SDPA(*map(from_numpy, (q, k, v)), is_causal=True).to_numpy()
    assert np.isfinite(y[..., :384, :]).all() and np.isnan(y[..., 640:, :]).all()
    counts = from_numpy(np.array([512]), dtype="int64")
    y = SDPA(*map(from_numpy, (q, k, v)), lengths=counts).to_numpy()
    np.testing.assert_allclose(y, ref.attention(q, k[..., :512, :], v[..., :512, :]), atol=1e-5)


def test_the_gradient_of_a_mask_that_broadcasts(training):
    q, k, v = (Tensor(data=random(2, 2, 3, 4), dtype="float64") for _ in range(3))
    mask = Tensor(data=random(2, 1, 1, 3), dtype="float64")
    mask.requires_grad = mask.stores_grad = True
    found = autograd.gradients(autograd.reduce_sum(SDPA(q, k, v, mask) ** 2.0, None, 0))
    want = np.zeros(mask.shape)
    for place in np.ndindex(mask.shape):
        ends = []
        for shift in (1e-6, -1e-6):
            moved = mask.to_numpy().copy()
            moved[place] += shift
            ends.append((ref.attention(*(x.to_numpy() for x in (q, k, v)), moved) ** 2).sum())
        want[place] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(found[mask].to_numpy(), want, atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"mask": np.tri(3, 5, 1, bool)}, {"mask": random(2, 1, 3, 5)}],
    ids=["plain", "causal", "seen", "added"],
)
def test_gradients_of_gradients(training, options):
    arrays = [random(2, 4, 3, 4), random(2, 2, 5, 4), random(2, 2, 5, 3)]
    q, k, v = (Tensor(data=a, dtype="float64") for a in arrays)
    for x in (q, k, v):
        x.requires_grad = x.stores_grad = True
    given = dict(options)
    if "mask" in given:
        dtype = "bool" if given["mask"].dtype == bool else "float64"
        given["mask"] = Tensor(data=given["mask"], dtype=dtype, requires_grad=False)

    def penalty(create_graph):
        y = autograd.reduce_sum(SDPA(q, k, v, **given) ** 2.0, None, 0)
        slopes = autograd.gradients(y, [q, k, v], create_graph=create_graph)
        return autograd.add(
            *(autograd.reduce_sum(slope**2.0, None, 0) for slope in slopes[:2])
        ), slopes

    total, slopes = penalty(True)
    for again, plain in zip(slopes, penalty(False)[1], strict=True):
        np.testing.assert_allclose(again.to_numpy(), plain.to_numpy(), rtol=1e-9, atol=1e-11)
    found = autograd.gradients(total, [q, k, v])
    for x, grad in zip((q, k, v), found, strict=True):
        step = np.zeros(x.shape)
        step[0, 1, 2, 1] = 1e-5
        base, ends = x.to_numpy().copy(), []
        for sign in (1, -1):
            x.copy_from(base + sign * step)
            ends.append(penalty(False)[0].item())
        x.copy_from(base)
        np.testing.assert_allclose(
            grad.to_numpy()[0, 1, 2, 1], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-7
        )


def test_dropped_weights_have_no_second_gradient(training):
    q = Tensor(data=random(1, 1, 3, 4))
    q.requires_grad = q.stores_grad = True
    y = autograd.reduce_sum(SDPA(q, q, q, dropout=0.5), None, 0)
    with pytest.raises(GraphError, match="Attention.*attention_grad"):
        autograd.gradients(y, [q], create_graph=True)


def test_a_dropped_pattern_is_the_same_in_backward(training):
    """The gradient of each value is the sum of the weights it got."""
    q, k = Tensor(data=random(1, 2, 40, 4)), Tensor(data=random(1, 2, 80, 4))
    unit = np.broadcast_to(np.eye(80, dtype=np.float32), (1, 2, 80, 80))
    v = Tensor(data=unit.copy())
    v.requires_grad = v.stores_grad = True
    weights = SDPA(q, k, v, dropout=0.5)
    found = autograd.gradients(autograd.reduce_sum(weights, None, 0))[v].to_numpy()
    want = weights.to_numpy().sum(axis=-2)
    np.testing.assert_allclose(found[..., 0], want, rtol=1e-4, atol=1e-6)
    assert 0.4 < (weights.to_numpy() == 0).mean() < 0.6


# ---- caches --------------------------------------------------------------------------------------


class Speaker(module.Module):
    """Blocks of causal attention that keep their keys."""

    def __init__(self, tokens, kind):
        super().__init__()
        self.rotary = kind == "rotary"
        heads = {"kv_heads": 2, "rotary": True} if self.rotary else {}
        make = lambda: layer.MultiHeadAttention(16, 4, **heads)  # noqa: E731
        if kind == "blocks":
            make = lambda: layer.TransformerEncoderLayer(16, 4, 32, 0.0)  # noqa: E731
        self.blocks = layer.ModuleList([make(), make()])
        self.positions = layer.SinusoidalPositions()
        shared = 2 if self.rotary else 4
        self.caches = [layer.KeyValueCache(2, shared, tokens, 4) for _ in range(2)]

    def forward(self, x):
        if not self.rotary:
            x = self.positions(x, self.caches[0].position)
        for block, cache in zip(self.blocks, self.caches, strict=True):
            x = block(x, is_causal=True, cache=cache)
        return x

    def at_once(self, x):
        x = x if self.rotary else self.positions(x)
        for block in self.blocks:
            x = block(x, is_causal=True)
        return x


@pytest.mark.parametrize("kind", ["plain", "rotary", "blocks"])
@pytest.mark.parametrize("pieces", [(1,) * 12, (5, 1, 1, 5), (12,)], ids=len)
def test_token_by_token_is_as_all_at_once(kind, pieces):
    net = Speaker(12, kind)
    x = random(2, 12, 16)
    net.compile([from_numpy(x[:, :1])], is_train=False, use_graph=True)
    for cache in net.caches:
        cache.clear()
    ends = np.cumsum((0, *pieces))
    made = [
        net(from_numpy(np.ascontiguousarray(x[:, a:b]))).to_numpy()
        for a, b in zip(ends[:-1], ends[1:], strict=True)
    ]
    want = net.at_once(from_numpy(x)).to_numpy()
    np.testing.assert_allclose(np.concatenate(made, 1), want, rtol=1e-4, atol=2e-5)
    assert net.caches[0].position.item() == 12 == net.caches[1].position.item()
    with pytest.raises(ValueError, match="tensor_scatter.*got 12, want a position from 0 to 11"):
        net(from_numpy(np.ascontiguousarray(x[:, :1])))


def test_a_recorded_step_serves_all_positions():
    net = Speaker(30, "rotary")
    x = from_numpy(random(2, 1, 16))
    net.compile([x], is_train=False, use_graph=True)
    for cache in net.caches:
        cache.clear()
    for _ in range(12):
        net(x)
    assert len(net.graphs) == 1
    assert net.caches[0].position.item() == 12


@pytest.mark.parametrize("use_graph", [False, True])
def test_caches_of_floats_serve_mixed_precision(use_graph):
    x, made = random(2, 6, 16), []
    for dtype in ("float32", "bfloat16"):
        device.get_default_device().set_seed(0)
        net = Speaker(6, "rotary")
        net.caches = [layer.KeyValueCache(2, 2, 6, 4, dtype=dtype) for _ in net.caches]
        net.compile([from_numpy(x[:, :1])], False, use_graph, amp="bfloat16")
        for cache in net.caches:
            cache.clear()
        made.append([net(np.ascontiguousarray(x[:, i : i + 1])).tolist() for i in range(6)])
    assert made[0] == made[1]


def test_without_causality_all_tokens_so_far_are_seen():
    net = layer.MultiHeadAttention(8, 2)
    cache, x = layer.KeyValueCache(1, 2, 9, 4), random(1, 7, 8)
    first, rest = (from_numpy(np.ascontiguousarray(part)) for part in (x[:, :3], x[:, 3:]))
    net(first, cache=cache)
    got = net(rest, cache=cache).to_numpy()
    want = net(rest, from_numpy(x)).to_numpy()
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_misused_caches_are_refused(training):
    net, cache = layer.MultiHeadAttention(8, 2), layer.KeyValueCache(1, 2, 9, 4)
    x = from_numpy(random(1, 3, 8))
    with pytest.raises(GraphError, match="tensor_scatter.*gradient"):
        net(x, cache=cache)
    with pytest.raises(ValueError, match="a cache and keys"):
        net(x, x, cache=cache)
    autograd.training = False
    with pytest.raises(ShapeError, match="tensor_scatter"):
        net(from_numpy(random(2, 3, 8)), cache=cache)
    with pytest.raises(ValueError, match="KeyValueCache: capacity"):
        layer.KeyValueCache(1, 2, 0, 4)


def test_positions_of_tensors_are_those_of_ints():
    x, at = from_numpy(random(2, 4, 6)), from_numpy(np.array([1000]), dtype="int64")
    for function in (autograd.sinusoidal_positions, autograd.rotary_embedding):
        got, want = function(x, at).to_numpy(), function(x, 1000).to_numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    with pytest.raises(ShapeError, match="one integer"):
        autograd.sinusoidal_positions(x, tensor.zeros((2,)))


@pytest.mark.parametrize("way", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_caches_are_their_own(way):
    cache, x = layer.KeyValueCache(1, 2, 5, 3), from_numpy(random(1, 2, 2, 3))
    cache.write(x, x)
    cache.advance(2)
    other = way(cache)
    cache.clear()
    assert other.position.item() == 2 and cache.position.item() == 0
    np.testing.assert_array_equal(other.keys.to_numpy(), cache.keys.to_numpy())


def test_wrong_calls_of_caches():
    hold(layer.KeyValueCache, ["KeyValueCache"], [just(n) for n in (1, 2, 3, 4)])
    for wrong in WRONG:
        cache = layer.KeyValueCache(1, 2, 3, 4)
        check(["tensor_scatter"], cache.write, [wrong(), Tensor((1, 2, 1, 4))], {})


class Attending(module.Module):
    """A layer that is trained through attention with every optional input."""

    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(4), opt.SGD(0.1)

    def forward(self, x, mask, lengths, start):
        q, k = (rows.reshape((2, 1, 3, 4)) for rows in (self.fc(x), x))
        return SDPA(q, k, q, mask, is_causal=True, lengths=lengths, start=start)

    def train_one_batch(self, *given):
        out = self.forward(*given)
        loss = autograd.reduce_mean(out * out).reshape((1,))
        self.optimizer(loss)
        return out, loss


@pytest.mark.filterwarnings("error")
def test_a_recorded_step_with_every_optional_input_is_that_of_eager():
    given = [from_numpy(random(6, 4)), from_numpy(np.tri(3, 3, 1, bool))]
    given += [from_numpy(np.array(numbers), dtype="int64") for numbers in ([2, 3], [1, 0])]
    made = [Attending(), Attending()]
    for model, use_graph in zip(made, (True, False), strict=True):
        DEVICE.set_seed(5)
        model.compile(given, is_train=True, use_graph=use_graph)
    for _ in range(5):
        step(*made, *given)
    assert replays(made[0]) > 0
