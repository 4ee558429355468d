"""`y.creator.backward(dy.data)`: what SINGA's functions give if they are differentiated by hand."""

import numpy as np
import pytest
from singa_rs import autograd as tape
from singa_rs import tensor
from singa_rs.compat.singa import autograd
from singa_rs.tensor import from_numpy

RNG = np.random.default_rng(11)
WEIGHTS = RNG.uniform(0.1, 0.9, (2, 3))
WIDE, SHARES, POSITIVE = (-2, 2), (0.1, 0.9), (0.3, 2)
PLACES, UPDATES = from_numpy(np.array([[0, -1, 2]])), from_numpy(np.array([[1.0, 2, 3]]))
HANDLE = autograd.ConvHandle(2, padding=1)

#: Functions, the shapes of their inputs, and between which numbers these are.
CASES = {
    "abs": (autograd.abs, [(2, 3)], WIDE),
    "add": (autograd.add, [(2, 3), (3,)], WIDE),
    "add_bias": (lambda x, b: autograd.add_bias(x, b, 1), [(2, 3), (2,)], WIDE),
    "binary_cross_entropy": (lambda x: autograd.binary_cross_entropy(x, WEIGHTS), [(2, 3)], SHARES),
    "cat": (lambda a, b: autograd.cat([a, b], 1), [(2, 3), (2, 2)], WIDE),
    "clip": (lambda x: autograd.clip(x, -0.5, 0.5), [(2, 3)], WIDE),
    "conv2d": (lambda *t: autograd.conv2d(HANDLE, *t), [(1, 2, 3, 3), (3, 2, 2, 2), (3,)], WIDE),
    "conv2d without bias": (
        lambda *t: autograd.conv2d(HANDLE, *t), [(1, 2, 3, 3), (3, 2, 2, 2)], WIDE
    ),
    "cossim": (autograd.cossim, [(2, 3), (2, 3)], WIDE),
    "cross_entropy": (lambda x: autograd.cross_entropy(x, WEIGHTS), [(2, 3)], SHARES),
    "depth_to_space": (lambda x: autograd.depth_to_space(x, 2), [(1, 8, 2, 3)], WIDE),
    "div": (autograd.div, [(2, 3), (3,)], POSITIVE),
    "elu": (lambda x: autograd.elu(x, 0.7), [(2, 3)], WIDE),
    "erf": (autograd.erf, [(2, 3)], WIDE),
    "expand": (lambda x: autograd.expand(x, [2, 1, 6]), [(3, 1)], WIDE),
    "flatten": (lambda x: autograd.flatten(x, 1), [(2, 3, 2)], WIDE),
    "gather": (lambda x: autograd.gather(x, 1, [[0, 1], [2, -1]]), [(2, 4)], WIDE),
    "gemm": (
        lambda *t: autograd.gemm(*t, 1.5, 0.5, 1, 1), [(3, 2), (4, 3), (4,)], WIDE
    ),
    "globalaveragepool": (autograd.globalaveragepool, [(2, 3, 4, 4)], WIDE),
    "globalaveragepool last": (
        lambda x: autograd.globalaveragepool(x, "channel_last"), [(2, 4, 4, 3)], WIDE
    ),
    "hardsigmoid": (autograd.hardsigmoid, [(2, 3)], WIDE),
    "identity": (autograd.identity, [(2, 3)], WIDE),
    "leakyrelu": (lambda x: autograd.leakyrelu(x, 0.1), [(2, 3)], WIDE),
    "matmul": (autograd.matmul, [(2, 3), (3, 4)], WIDE),
    "matmul of matrix and vector": (autograd.matmul, [(2, 3), (3,)], WIDE),
    "matmul of vector and matrix": (autograd.matmul, [(3,), (3, 4)], WIDE),
    "matmul of matrices and vector": (autograd.matmul, [(2, 4, 3), (3,)], WIDE),
    "matmul of vector and matrices": (autograd.matmul, [(3,), (2, 3, 4)], WIDE),
    "matmul of vectors": (autograd.matmul, [(3,), (3,)], WIDE),
    "max": (autograd.max, [(2, 3), (2, 3), (2, 3)], WIDE),
    "max of one": (autograd.max, [(2, 3)], WIDE),
    "mean": (autograd.mean, [(2, 3), (2, 3), (2, 3)], WIDE),
    "min": (autograd.min, [(2, 3), (2, 3)], WIDE),
    "mse_loss": (lambda x: autograd.mse_loss(x, WEIGHTS), [(2, 3)], WIDE),
    "mul": (autograd.mul, [(2, 3), (3,)], WIDE),
    "pad": (lambda x: autograd.pad(x, "constant", [0, 1, 2, 0], 1.5), [(2, 3)], WIDE),
    "pad edge": (lambda x: autograd.pad(x, "edge", [0, 1, 1, 0]), [(2, 3)], WIDE),
    "pad reflect": (lambda x: autograd.pad(x, "reflect", [0, 1, 1, 0]), [(2, 3)], WIDE),
    "pow": (autograd.pow, [(2, 3), (2, 3)], POSITIVE),
    "prelu": (autograd.prelu, [(3,), (2, 1)], WIDE),
    "ranking_loss": (autograd.ranking_loss, [(4,), (4,)], WIDE),
    "reciprocal": (autograd.reciprocal, [(2, 3)], POSITIVE),
    "reduce_mean": (lambda x: autograd.reduce_mean(x, None, 1), [(2, 3)], WIDE),
    "reduce_sum": (lambda x: autograd.reduce_sum(x, [1], 0), [(2, 3)], WIDE),
    "reshape": (lambda x: autograd.reshape(x, (0, -1)), [(2, 3, 2)], WIDE),
    "round": (autograd.round, [(2, 3)], WIDE),
    "scatter_elements": (
        lambda x: autograd.scatter_elements(x, PLACES, UPDATES), [(3, 3)], WIDE
    ),
    "selu": (autograd.selu, [(2, 3)], WIDE),
    "sign": (autograd.sign, [(2, 3)], WIDE),
    "slice": (lambda x: autograd.slice(x, [1, -1], [3, 0], [0, 2], [1, -2]), [(4, 3, 5)], WIDE),
    "softmax": (lambda x: autograd.softmax(x, 1), [(2, 3, 2)], WIDE),
    "softmax_cross_entropy": (
        lambda x: autograd.softmax_cross_entropy(x, WEIGHTS), [(2, 3)], WIDE
    ),
    "softplus": (autograd.softplus, [(2, 3)], WIDE),
    "space_to_depth": (lambda x: autograd.space_to_depth(x, 2, "CRD"), [(1, 2, 4, 6)], WIDE),
    "squeeze": (autograd.squeeze, [(2, 1, 3)], WIDE),
    "sub": (autograd.sub, [(3,), (2, 3)], WIDE),
    "sum": (autograd.sum, [(2, 3), (2, 3)], WIDE),
    "tile": (lambda x: autograd.tile(x, [2, 3]), [(2, 3)], WIDE),
    "transpose": (lambda x: autograd.transpose(x, (1, 0)), [(2, 3)], WIDE),
    "unsqueeze": (lambda x: autograd.unsqueeze(x, [0, 2]), [(2, 3)], WIDE),
    "upsample": (lambda x: autograd.upsample(x, "nearest", [1, 1, 2, 2]), [(1, 2, 2, 3)], WIDE),
    "where": (lambda a, b: autograd.where(a, b, [[True, False, True]]), [(2, 3), (2, 3)], WIDE),
}  # fmt: skip


@pytest.fixture(autouse=True)
def training():
    with tape._training_scope(True):
        yield


@pytest.mark.parametrize("name", CASES)
def test_by_hand_as_by_the_tape(name):
    """One raw gradient for each input, of its shape."""
    function, shapes, bounds = CASES[name]
    inputs = [from_numpy(RNG.uniform(*bounds, shape)) for shape in shapes]
    for x in inputs:
        x.stores_grad = True
    y = function(*inputs)
    dy = from_numpy(RNG.uniform(0.5, 1.5, y.shape))
    made = y.creator.backward(dy.data)
    made = made if isinstance(made, tuple) else (made,)
    found = tape.gradients((y * dy).sum())
    assert len(made) == len(inputs)
    for got, x in zip(made, inputs, strict=True):
        assert got.shape() == x.shape and got.data_type() == tensor.float32
        np.testing.assert_array_equal(got.to_numpy(), found[x].to_numpy())


def test_several_results_take_a_gradient_each():
    x = from_numpy(np.arange(6.0))
    parts = autograd.split(x, 0, (2, 4))
    grads = [from_numpy(np.full(n, v)).data for n, v in ((2, 1.0), (4, 2.0))]
    assert parts[1].creator.backward(*grads).tolist() == [1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize("name", ["mse_loss", "softmax_cross_entropy", "cross_entropy"])
def test_a_loss_is_differentiated_without_a_gradient(name):
    function, shapes, bounds = CASES[name]
    x = from_numpy(RNG.uniform(*bounds, shapes[0]))
    one = from_numpy(np.ones(1))
    by_hand = function(x).creator.backward()
    assert by_hand.shape() == x.shape
    assert by_hand.tolist() == function(x).creator.backward(one.data).tolist()
