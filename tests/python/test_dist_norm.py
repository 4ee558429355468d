"""Batch normalisation over the batches of several processes against that of one."""

import numpy as np
import pytest
from singa_rs import autograd, dist, layer, tensor
from singa_rs.data import DataLoader
from singa_rs.dist.functional import all_reduce
from singa_rs.errors import GraphError, ShapeError
from singa_rs.module import Module

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
#: The rows of each rank's part of a batch.
EVEN, UNEVEN = {2: (4, 4), 3: (3, 3, 3)}, {2: (1, 6), 3: (5, 1, 2)}
SHAPES = [(3,), (3, 5), (3, 4, 4), (3, 2, 3, 2)]


def values(shape, seed):
    return (np.random.default_rng(seed).normal(size=shape) * 2 + 5).astype(np.float32)


class Norm(Module):
    """Returns the gradients of x, scale and bias of a weighted sum of the outputs."""

    def __init__(self, make):
        self.norm = make()

    def forward(self, x):
        return self.norm(x)

    def train_one_batch(self, x, weights):
        y = self.forward(x)
        leaves = [x, self.norm.scale, self.norm.bias]
        return y, *autograd.gradients(autograd.reduce_sum(y * weights), leaves)


def trained(make, x, weights, graph):
    """Outputs and gradients of the last of four steps, and the running averages."""
    own = tensor.Tensor(data=x, requires_grad=True)
    model = Norm(make)
    model.compile([own], is_train=True, use_graph=graph)
    for _ in range(4):
        made = model(own, tensor.from_numpy(weights))
    norm = model.norm
    return [t.to_numpy() for t in (*made, norm.running_mean, norm.running_var)]


def _parts(rows, shape):
    """Eager and recorded, of this rank's rows."""
    start = sum(rows[: dist.rank()])
    own = slice(start, start + rows[dist.rank()])
    x, weights = (values((sum(rows), *shape), seed)[own] for seed in (1, 2))
    return [trained(layer.SyncBatchNorm, x, weights, graph) for graph in (False, True)]


def close(made, want):
    np.testing.assert_allclose(made, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("rows", [EVEN[2], EVEN[3], UNEVEN[2], UNEVEN[3]], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parts_of_a_batch_are_normalised_as_the_whole(rows, shape):
    found = dist.spawn(_parts, len(rows), (rows, shape), timeout=TIMEOUT)
    x, weights = (values((sum(rows), *shape), seed) for seed in (1, 2))
    kinds = {1: layer.BatchNorm1d, 2: layer.BatchNorm1d, 3: layer.BatchNorm2d, 4: layer.BatchNorm3d}
    y, dx, dscale, dbias, mean, var = trained(kinds[len(shape)], x, weights, False)
    for eager, recorded in found:
        for a, b in zip(eager, recorded, strict=True):
            np.testing.assert_array_equal(a, b)
        close(eager[4], mean)
        close(eager[5], var)
        np.testing.assert_array_equal(eager[4:], found[0][0][4:])
    ranks = [eager for eager, _ in found]
    close(np.concatenate([rank[0] for rank in ranks]), y)
    close(np.concatenate([rank[1] for rank in ranks]), dx)
    close(sum(rank[2] for rank in ranks), dscale)
    close(sum(rank[3] for rank in ranks), dbias)


def test_alone_it_is_batch_normalisation():
    x, weights = values((6, 3, 4, 4), 1), values((6, 3, 4, 4), 2)
    made = trained(layer.SyncBatchNorm, x, weights, True)
    for one, other in zip(made, trained(layer.BatchNorm2d, x, weights, True), strict=True):
        np.testing.assert_array_equal(one, other)


def _evaluated():
    norm, x = layer.SyncBatchNorm(), tensor.from_numpy(values((4, 3), dist.rank()))
    with autograd._training_scope(True):
        norm(x)
    return norm(x).to_numpy(), norm.running_mean.to_numpy(), norm.running_var.to_numpy()


def test_in_evaluation_running_averages_count():
    for rank, (y, mean, var) in enumerate(dist.spawn(_evaluated, 2, timeout=TIMEOUT)):
        close(y, (values((4, 3), rank) - mean) / np.sqrt(var + 1e-5))


OPTIONS = {"momentum": None, "affine": False}


def _with_options(kind, options, x):
    """The outputs of two steps and one in evaluation, and the states."""
    norm = getattr(layer, kind)(**options)
    with autograd._training_scope(True):
        made = [norm(tensor.from_numpy(x * scale)) for scale in (1, 3)]
    made.append(norm(tensor.from_numpy(x)))
    return [t.to_numpy() for t in (*made, *norm.get_states().values())]


def _part_with_options(options):
    own = slice(4 * dist.rank(), 4 * dist.rank() + 4)
    return _with_options("SyncBatchNorm", options, values((8, 3, 5), 1)[own])


@pytest.mark.parametrize("untracked", [False, True])
def test_options_are_those_of_one_process(untracked):
    options = {**OPTIONS, "track_running_stats": not untracked}
    ranks = dist.spawn(_part_with_options, 2, (options,), timeout=TIMEOUT)
    want = _with_options("BatchNorm1d", options, values((8, 3, 5), 1))
    for i in range(2 if untracked else 3):  # in evaluation a batch has statistics of its own
        close(np.concatenate([rank[i] for rank in ranks]), want[i])
    for rank in ranks:
        assert len(rank) == len(want) == (3 if untracked else 6)
        for one, other in zip(rank[3:], want[3:], strict=True):
            close(one, other)


def _halves(dtype):
    """Of 16 bits, and of twice as many in the same values."""
    x = tensor.from_numpy(values((4, 3, 5), dist.rank())).as_type(dtype)
    with autograd._training_scope(True):
        made = layer.SyncBatchNorm()(x)
        wide = layer.SyncBatchNorm()(x.as_type("float32"))
    return made.dtype.name, made.as_type("float32").to_numpy(), wide.to_numpy()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_have_statistics_of_32(dtype):
    for name, made, wide in dist.spawn(_halves, 2, (dtype,), timeout=TIMEOUT):
        assert name == dtype
        np.testing.assert_allclose(made, wide, atol=2e-2)


def _mixed(amp):
    x, weights = values((4, 3, 5), dist.rank()), values((4, 3, 5), 2)
    model = Norm(layer.SyncBatchNorm)
    own = tensor.Tensor(data=x, requires_grad=True)
    model.compile([own], is_train=True, use_graph=True, amp=amp)
    return [model(own, tensor.from_numpy(weights))[0].as_type("float32").to_numpy() for _ in "1234"]


def test_mixed_precision():
    found = dist.spawn(_mixed, 2, ("bfloat16",), timeout=TIMEOUT)
    wide = dist.spawn(_mixed, 2, (None,), timeout=TIMEOUT)
    for made, want in zip(found, wide, strict=True):
        np.testing.assert_allclose(made, want, atol=3e-2)


def _empty():
    x = tensor.from_numpy(values((4, 3), 0))
    norm = layer.SyncBatchNorm()
    norm.initialize(x)
    with autograd._training_scope(True):
        norm(x[:0])


def test_a_rank_without_values():
    with pytest.raises(dist.RankError, match=r"SyncBatchNorm: got shape \(0, 3\), want values"):
        dist.spawn(_empty, 2, timeout=TIMEOUT)
    with pytest.raises(ShapeError, match="SyncBatchNorm: got shape"):
        layer.SyncBatchNorm()(tensor.zeros((3,)))


def _summed():
    """A sum over ranks of x, weighted by the rank; its value, gradient, and refusals."""
    x = tensor.Tensor(data=values((4,), dist.rank()), requires_grad=True)
    with autograd._training_scope(True):
        y = all_reduce(x * x)
        loss = autograd.reduce_sum(y) * (dist.rank() + 1.0)
        with pytest.raises(GraphError, match="copy, which has no gradient here"):
            autograd.gradients(loss, [x], create_graph=True)
        (grad,) = autograd.gradients(loss, [x])
    return x.to_numpy(), y.to_numpy(), grad.to_numpy()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_flow_through_sums_over_ranks(n):
    found = [_summed()] if n == 1 else dist.spawn(_summed, n, timeout=TIMEOUT)
    total = sum(x * x for x, _, _ in found)
    for x, y, grad in found:
        np.testing.assert_allclose(y, total, rtol=1e-6)
        np.testing.assert_allclose(grad, 2 * x * sum(range(1, n + 1)), rtol=1e-6)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="all_reduce: got ndarray, want a Tensor"):
        all_reduce(np.ones(2))


def _last_rows(size, graph, rows):
    """The states and gradients of two epochs of batches that end with fewer rows than ranks."""
    loader = DataLoader((values((rows, 3), 5),), 6 // size, ranks=(dist.rank(), dist.size()))
    model = Norm(layer.SyncBatchNorm if size > 1 else layer.BatchNorm1d)
    found = []
    for _ in "12":
        for (x,) in loader:
            if not found:
                model.compile([x], is_train=True, use_graph=graph)
            weights = x.detach() * (loader.weight / size / x.shape[0])
            _, _, scale, bias = model(x, weights)
            found.append([dist.all_reduce(one.clone()).to_numpy() for one in (scale, bias)])
    model(*[tensor.from_numpy(values((2, 3), dist.rank() * (size > 1)))] * 2)
    return found, [model.norm.running_mean.to_numpy(), model.norm.running_var.to_numpy()]


@pytest.mark.parametrize("graph", [False, True])
def test_rows_of_another_rank_do_not_count(graph):
    want, _ = _last_rows(1, False, 8)
    for found, _ in dist.spawn(_last_rows, 3, (3, graph, 8), timeout=TIMEOUT):
        for made, one in zip(found, want, strict=True):
            for a, b in zip(made, one, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    (_, states), *others = dist.spawn(_last_rows, 3, (3, graph, 7), timeout=TIMEOUT)
    assert np.isfinite(states).all()  # of a batch of one row, too
    assert all(np.array_equal(one, states) for _, one in others)
