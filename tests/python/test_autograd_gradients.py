"""Gradients of the functions that are composed of several operations or of views."""

import numpy as np
import pytest
from singa_rs import GraphError, ShapeError, tensor
from singa_rs import autograd as ag
from singa_rs.tensor import from_numpy

RNG = np.random.default_rng(0)
PLACES = from_numpy(np.array([[0, 1], [1, 2]]))
T = RNG.uniform(0.1, 0.9, (2, 3))


@pytest.fixture(autouse=True)
def training():
    ag.training = True
    yield
    ag.training = False


def in_place(x, b):
    h = x * 2
    h += b
    v = h[0]
    v *= 3
    h[1] = b * b
    w = h.reshape((6,))
    h -= 1
    return w * w + h.reshape((6,))


def in_place_of_parts(x, b):
    a, c = ag.split(x + 0, 0, [1, 1])
    h = ag.cat([a, c], 0)
    first, second = ag.split(h, 0, [1, 1])
    first += b
    return h * second * first


def overwritten(x):
    h = x * 1
    h[0] += 1
    h[:, 1] = 0
    h.copy_from(x * x)
    h.T()[0] *= 2
    return h


# function, shapes of the inputs, and the range that they are drawn from.
CASES = {
    "broadcast": (lambda a, b: a * b / (a - b * 3) + ag.pow(a, b), [(2, 1, 3), (4, 1)], (0.5, 2)),
    "numbers": (lambda a: (a + 2) * 3 - 2 + (2 - a) / 3 + 2 / a + a**3 + 2**a, [(2, 3)], (0.5, 2)),
    "remainder": (lambda a, b: a % b + a % 0.7 + 0.9 % a, [(4,), (4,)], (0.72, 0.88)),
    "extremes": (lambda a, b: ag.max(a, b, a * b) + ag.maximum(a, 0.3), [(2, 3), (3,)], (-2, 2)),
    "sum": (ag.sum, [(2, 3), (2, 3), (3,)], (-2, 2)),
    "mean": (ag.mean, [(2, 3), (2, 3)], (-2, 2)),
    "matmul 1 2": (ag.matmul, [(3,), (3, 4)], (-2, 2)),
    "matmul 2 1": (ag.matmul, [(2, 3), (3,)], (-2, 2)),
    "matmul 1 1": (ag.matmul, [(3,), (3,)], (-2, 2)),
    "matmul 3 2": (ag.matmul, [(2, 3, 4), (4, 2)], (-2, 2)),
    "matmul 1 3": (ag.matmul, [(4,), (5, 4, 2)], (-2, 2)),
    "matmul 4 3": (ag.matmul, [(2, 1, 3, 4), (5, 4, 2)], (-2, 2)),
    "gemm": (lambda a, b, c: ag.gemm(a, b, c, 0.5, 2.0), [(2, 3), (3, 4), (1, 4)], (-2, 2)),
    "gemm T": (lambda a, b: ag.gemm(a, b, None, 0.5, 2.0, 1, 1), [(3, 2), (4, 3)], (-2, 2)),
    "add_bias": (ag.add_bias, [(2, 3), (3,)], (-2, 2)),
    "add_bias 1": (lambda x, b: ag.add_bias(x, b, 1), [(2, 3), (2,)], (-2, 2)),
    "prelu": (ag.prelu, [(2, 3), (3,)], (-2, 2)),
    "prelu of a larger slope": (ag.prelu, [(1, 4, 1, 3), (2, 1, 5, 3)], (-2, 2)),
    "prelu of more axes": (ag.prelu, [(3,), (2, 1)], (-2, 2)),
    "cossim": (ag.cossim, [(2, 3), (2, 3)], (-2, 2)),
    "reduce_sum": (lambda x: ag.reduce_sum(x, [0, -1], 1), [(2, 3, 2)], (-2, 2)),
    "reduce_mean": (lambda x: ag.reduce_mean(x, 1, 0), [(2, 3, 2)], (-2, 2)),
    "reduce_max": (lambda x: ag.reduce_max(x, [0, 2], 0), [(2, 3, 2)], (-2, 2)),
    "reduce_min": (lambda x: ag.reduce_min(x), [(2, 3, 2)], (-2, 2)),
    "reduce_prod": (lambda x: ag.reduce_prod(x, 1), [(2, 3, 2)], (-2, 2)),
    "no axes": (lambda x: ag.reduce_mean(x, []) * ag.reduce_max(x, []), [(2, 3)], (-2, 2)),
    "reshape": (lambda x: ag.reshape(ag.transpose(x), (0, -1)), [(2, 3, 4)], (-2, 2)),
    "flatten": (lambda x: ag.flatten(x, 2), [(2, 3, 4)], (-2, 2)),
    "squeeze": (lambda x: ag.unsqueeze(ag.squeeze(x), [0, -1]), [(2, 1, 4)], (-2, 2)),
    "transpose": (lambda x: ag.transpose(x, (2, 0, 1)), [(2, 3, 4)], (-2, 2)),
    "slice": (lambda x: ag.slice(x, [1, -1], [3, 0], [0, 2], [1, -2]), [(4, 3, 5)], (-2, 2)),
    "index": (lambda x: x[::-1, None, 1, ..., :2], [(3, 2, 4)], (-2, 2)),
    "index array": (lambda x: x[1:, [0, 1, 0], 0], [(2, 3, 2)], (-2, 2)),
    "gather": (lambda x: ag.gather(x, 1, [[0, 2], [-1, 0]]), [(2, 3)], (-2, 2)),
    "embedding": (lambda w: ag.embedding(PLACES, w), [(3, 2)], (-2, 2)),
    "split": (lambda x: ag.mul(*ag.split(x, 1, [2, 2])), [(2, 4)], (-2, 2)),
    "cat": (lambda a, b: ag.cat([a, b, a], -1), [(2, 3), (2, 1)], (-2, 2)),
    "stack": (lambda a, b: ag.stack([a, b], 1), [(2, 3), (2, 3)], (-2, 2)),
    "expand": (lambda x: ag.expand(x, [2, 1, 6]), [(3, 1)], (-2, 2)),
    "tile": (lambda x: ag.tile(x, [2, 1, 3]), [(2, 2)], (-2, 2)),
    "repeat": (lambda x: x.repeat(2, 1), [(2, 3)], (-2, 2)),
    "repeat each": (lambda x: x.repeat([1, 0, 2], 1), [(2, 3)], (-2, 2)),
    "upsample": (lambda x: ag.upsample(x, "nearest", [1, 1, 2.0, 3]), [(1, 2, 2, 2)], (-2, 2)),
    "pad constant": (lambda x: ag.pad(x, "constant", [1, 3, 2, 4], 0.5), [(3, 2)], (-2, 2)),
    "pad reflect": (lambda x: ag.pad(x, "reflect", [1, 3, 2, 4]), [(3, 2)], (-2, 2)),
    "pad edge": (lambda x: ag.pad(x, "edge", [1, 0, 2, 0]), [(3, 2)], (-2, 2)),
    "depth_to_space": (lambda x: ag.depth_to_space(x, 2, "DCR"), [(1, 8, 2, 3)], (-2, 2)),
    "depth_to_space CRD": (lambda x: ag.depth_to_space(x, 2, "CRD"), [(1, 8, 2, 3)], (-2, 2)),
    "space_to_depth": (lambda x: ag.space_to_depth(x, 2), [(1, 2, 4, 6)], (-2, 2)),
    "where": (lambda a, b: ag.where(a, b, [[True], [False]]), [(2, 3), (3,)], (-2, 2)),
    "globalaveragepool": (ag.globalaveragepool, [(2, 3, 2, 2)], (-2, 2)),
    "pool last": (lambda x: ag.globalaveragepool(x, "channel_last"), [(2, 2, 2, 3)], (-2, 2)),
    "mse_loss": (lambda x: ag.mse_loss(x, T), [(2, 3)], (-2, 2)),
    "cross_entropy": (lambda x: ag.cross_entropy(x, T), [(2, 3)], (0.1, 0.9)),
    "binary_cross_entropy": (lambda x: ag.binary_cross_entropy(x, T), [(2, 3)], (0.1, 0.9)),
    "ranking_loss": (lambda p, n: ag.ranking_loss(p, n, 0.3), [(2, 3), (2, 3)], (-2, 2)),
    "softmax_cross_entropy": (lambda x: ag.softmax_cross_entropy(x, T), [(2, 3)], (-2, 2)),
    "labels": (lambda x: ag.softmax_cross_entropy(x, np.array([2, 0])), [(2, 3)], (-2, 2)),
    "dropout": (lambda x: ag.dropout(x, 0.3, seed=3), [(4, 5)], (-2, 2)),
    "tensordot": (lambda a, b: tensor.tensordot(a, b, ([0], [1])), [(2, 3), (4, 2)], (-2, 2)),
    "einsum": (lambda a, b: tensor.einsum("kij,kih->kjh", a, b), [(2, 3, 4), (2, 3, 5)], (-2, 2)),
    "diagonal": (lambda a: tensor.einsum("iji->j", a), [(3, 2, 3)], (-2, 2)),
    "cast": (lambda x: (x.as_type("float32") * 2.0).as_type("float64"), [(2, 3)], None),
    "clone": (lambda x: x.clone() * x, [(2, 3)], (-2, 2)),
    "in place": (in_place, [(2, 3), (3,)], (-2, 2)),
    "in place of parts": (in_place_of_parts, [(2, 3), (3,)], (-2, 2)),
    "overwritten": (overwritten, [(2, 3)], (-2, 2)),
}  # fmt: skip


def run(function, arrays, weights):
    """The inputs, and the weighted sum of the function's result."""
    inputs = [from_numpy(a, dtype="float64") for a in arrays]
    for x in inputs:
        x.stores_grad = True
    y = function(*inputs)
    if weights is None:
        return y.shape
    return inputs, ag.reduce_sum(y * weights, None, 0)


def difference(function, arrays, weights, i, step=1e-5):
    """The gradient with respect to input `i`, by finite differences."""
    made = np.zeros_like(arrays[i])
    for place in np.ndindex(arrays[i].shape):
        sides = []
        for sign in (step, -step):
            moved = [a.copy() for a in arrays]
            moved[i][place] += sign
            sides.append(run(function, moved, weights)[1].item())
        made[place] = (sides[0] - sides[1]) / (2 * step)
    return made


@pytest.mark.parametrize("name", CASES)
def test_against_differences(name):
    function, shapes, bounds = CASES[name]
    # Eighths survive the round trip through float32.
    draw = (lambda s: RNG.integers(-16, 16, s) / 8.0) if bounds is None else None
    arrays = [draw(s) if draw else RNG.uniform(*bounds, s) for s in shapes]
    weights = RNG.uniform(0.5, 1.5, run(function, arrays, None))
    inputs, loss = run(function, arrays, weights)
    found = ag.gradients(loss)
    for i, x in enumerate(inputs):
        want = difference(function, arrays, weights, i, 0.125 if draw else 1e-5)
        assert found[x].shape == x.shape and found[x].dtype == tensor.float64
        np.testing.assert_allclose(found[x].to_numpy(), want, rtol=1e-5, atol=1e-7)


def test_power_at_zero():
    x = from_numpy(np.zeros(1))
    x.stores_grad = True
    for exponent, slope in ((0, 0), (1, 1), (2, 0)):
        for y in (x**exponent, ag.pow(x, from_numpy(np.array([float(exponent)])))):
            assert ag.gradients(y)[x].tolist() == [slope]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_powers_of_zero(dtype):
    """The limits: constant above 0, no slope at 0, falling from infinity below (PyTorch's)."""
    t = from_numpy(np.array([[-1.0, 0.0, 2.0, np.nan]]), dtype=dtype)
    t.stores_grad = True
    want = [[-np.inf, 0.0, 0.0, np.nan]]
    for base in (0.0, from_numpy(np.zeros(1), dtype=dtype), from_numpy(np.zeros(4), dtype=dtype)):
        np.testing.assert_array_equal(
            ag.gradients((base**t).sum())[t].as_type("float64").tolist(), want
        )


def test_a_product_of_zeros():
    x = from_numpy(np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]))
    x.stores_grad = True
    found = ag.gradients(ag.reduce_prod(x, 1, 0).sum())
    assert found[x].tolist() == [[6, 0, 0], [0, 0, 0]]


def test_ties_share_the_gradient():
    x = from_numpy(np.array([1.0, 1.0, 0.0]))
    x.stores_grad = True
    assert ag.gradients(x.max())[x].tolist() == [0.5, 0.5, 0]


def test_losses_have_one_element_and_one_dimension():
    x = from_numpy(np.full((2, 3), 0.5))
    losses = [
        ag.mse_loss(x, T),
        ag.cross_entropy(x, T),
        ag.binary_cross_entropy(x, T),
        ag.ranking_loss(x, x),
        ag.softmax_cross_entropy(x, T),
        ag.softmax_cross_entropy(x, np.array([[0], [2]])),
    ]
    assert [loss.shape for loss in losses] == [(1,)] * 6
    want = -(T * np.log(0.5 + 1e-4)).sum() / 2
    np.testing.assert_allclose(losses[1].item(), want, rtol=1e-6)
    for call in (ag.mse_loss, ag.cross_entropy, ag.binary_cross_entropy):
        with pytest.raises(ValueError, match="want equal"):
            call(x, np.ones(2))


def test_labels_are_checked():
    x = tensor.zeros((2, 3))
    for labels in ([0, 3], [-1, 0]):
        with pytest.raises(ValueError):
            ag.softmax_cross_entropy(x, np.array(labels))
    with pytest.raises(ValueError):
        ag.gather(x, 1, [3])


def test_functions_of_places():
    hot = ag.onehot(-1, from_numpy(np.array([0.0, 2, -1])), np.array([3]), np.array([0.0, 5.0]))
    assert hot.tolist() == [[5, 0, 0], [0, 0, 5], [0, 0, 5]]
    assert ag.onehot(0, [0, 1], 2, (0, 1)).dtype == tensor.int32
    assert ag.nonzero(from_numpy(np.array([[1, 0], [1, 1]]))).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert ag.shape(tensor.zeros((2, 3))).tolist() == [2, 3]
    assert ag.constant_of_shape(from_numpy(np.array([2, 3])), 1.0).tolist() == [[1] * 3] * 2


def test_scatter_elements():
    x, updates = from_numpy(np.zeros((3, 3))), from_numpy(np.array([[1.0, 1.1, 1.2]]))
    x.stores_grad = True
    y = ag.scatter_elements(x, from_numpy(np.array([[0, -1, 2]])), updates)
    np.testing.assert_allclose(y.to_numpy()[[0, 2, 2], [0, 1, 2]], [1, 1.1, 1.2], rtol=1e-6)
    grad = ag.gradients(y.sum())[x]
    assert grad.tolist() == [[0, 1, 1], [1, 1, 1], [1, 0, 0]]
    with pytest.raises(ValueError, match="scatter_elements"):
        ag.scatter_elements(x, np.array([[3]]), np.array([[1.0]]))


@pytest.mark.parametrize("dy", [2, 0.5, np.float32(0.5), np.int64(3), np.array(0.25)])
def test_a_number_is_the_gradient_of_a_loss(dy):
    """SINGA's programs scale a loss so."""
    x = from_numpy(T)
    x.stores_grad = True
    losses = [lambda: ag.mse_loss(x, T + 1), lambda: (x * x).sum()]
    for loss in losses:
        want = ag.gradients(loss())[x].to_numpy() * float(dy)
        found = [
            ag.gradients(loss(), dy)[x],
            dict(ag.backward(loss(), dy))[x],
            ag.gradients(loss(), dy, xs=x),
            ag.gradients(loss(), dy, create_graph=True)[x],
        ]
        for one in found:
            np.testing.assert_allclose(one.to_numpy(), want, rtol=1e-6)
    by_hand = losses[0]().creator.backward(dy)
    np.testing.assert_allclose(by_hand.to_numpy(), -2 / 6 * float(dy), rtol=1e-5)
    with pytest.raises(ShapeError, match=r"dy of shape \(\), want \(2, 3\)"):
        ag.backward(x * x, dy)


def test_operators_that_were_not_called_say_so():
    x = from_numpy(T)
    op = ag.Sigmoid()
    op.forward(x)
    with pytest.raises(GraphError, match=r"not recorded; call op\(x\)\[0\] or its function"):
        op.backward(x)
    x.stores_grad = True
    loss = ag.mse_loss(x, T)
    list(ag.backward(loss))
    with pytest.raises(GraphError, match="compute the loss again"):
        loss.creator.backward()
    ag.training = False
    with pytest.raises(GraphError, match="training must be True"):
        op.backward(x)


def test_assigned_gradients_have_the_tensor_s_shape():
    x = from_numpy(np.ones(3, np.float32))
    x.stores_grad = True
    assert x.grad is None
    with pytest.raises(ShapeError, match=r"grad: got shape \(2,\) for a tensor of \(3,\)"):
        x.grad = from_numpy(np.ones(2, np.float32))
    with pytest.raises(TypeError, match="grad: got ndarray, want a Tensor or None"):
        x.grad = np.ones(3)
    x.grad = from_numpy(np.ones(3, np.float32))
    (x * x).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    del x.grad
    assert x.grad is None
