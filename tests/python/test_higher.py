"""Gradients of gradients: every differentiable case, or its refusal."""

import numpy as np
import pytest
from cases.base import Case
from harness import tensors, weighted, weights
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs._core import GraphError
from test_gradients import DIFFERENTIABLE, gradients

#: Families that cannot be differentiated again: kernels compute their gradients as a whole.
REFUSED = {"recurrent"}
#: In how many random directions each input is moved.
DIRECTIONS = 3


@pytest.fixture(autouse=True)
def training():
    """Gradients are only recorded in training mode."""
    autograd.training = True
    yield
    autograd.training = False


def _wrt(case: Case, inputs: list[tensor.Tensor]) -> list[tensor.Tensor]:
    return [inputs[i] for i in case.differentiable()]


def first(case: Case, inputs: list[tensor.Tensor]) -> tuple[tensor.Tensor, ...]:
    """The gradients of sum(weights * case), recorded."""
    y = weighted(case.gradient(*inputs))
    return autograd.gradients(y, _wrt(case, inputs), create_graph=True)


def total(grads) -> tensor.Tensor:
    """The weighted sum of gradients."""
    parts = [autograd.reduce_sum(g * tensor.from_numpy(weights(g.shape)), None, 0) for g in grads]
    return autograd.add_all(*parts)


def second(case: Case, inputs: list[tensor.Tensor]) -> list[np.ndarray]:
    """The gradients of the weighted sum of the gradients."""
    y = total(first(case, inputs))
    found = autograd.gradients(y) if y.requires_grad and y.creator is not None else {}
    zero = [np.zeros(x.shape) for x in _wrt(case, inputs)]
    pairs = zip(_wrt(case, inputs), zero, strict=True)
    return [tensor.to_numpy(found[x]) if x in found else none for x, none in pairs]


def slope(case: Case, i: int, direction: np.ndarray, step: float) -> float:
    """How the weighted sum of the gradients grows as an input is moved in a direction: by finite
    differences of the gradients."""
    inputs = tensors(case, "float64")
    sample = tensor.to_numpy(inputs[i]).copy()

    def value(h: float) -> float:
        inputs[i].copy_from_numpy(np.asarray(sample + h * direction))
        return sum(float(np.sum(g * weights(g.shape))) for g in gradients(case, inputs))

    def central(h: float) -> float:
        return (value(h) - value(-h)) / (2 * h)

    return (4 * central(step / 2) - central(step)) / 3


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_every_case(case):
    if case.family in REFUSED:
        with pytest.raises(GraphError, match="cannot be differentiated again"):
            second(case, tensors(case, "float64"))
        return
    recorded = first(case, tensors(case, "float64"))
    plain = gradients(case, tensors(case, "float64"))
    for got, want in zip(recorded, plain, strict=True):
        np.testing.assert_allclose(tensor.to_numpy(got), want, rtol=1e-9, atol=1e-9)
    step = 1e-5 if "max" in str(case) or "min" in str(case) else 1e-3
    rng = np.random.default_rng(1)
    twice = second(case, tensors(case, "float64"))
    for i, got in zip(case.differentiable(), twice, strict=True):
        for _ in range(DIRECTIONS):
            direction = rng.uniform(-1, 1, got.shape)
            want = slope(case, i, direction, step)
            bound = 1e-5 * case.scale * (1 + abs(want))
            assert abs(np.sum(got * direction) - want) <= bound


def parameter(values, dtype="float64") -> tensor.Tensor:
    x = tensor.from_numpy(np.asarray(values, dtype), dtype=dtype)
    x.stores_grad = True
    return x


def test_derivatives_of_any_order():
    x = parameter([1.0, -2.0, 3.0])
    y = x**4
    for factor, power in ((4, 3), (12, 2), (24, 1), (24, 0)):
        y = autograd.gradients(autograd.sum(y), x, create_graph=True)
        np.testing.assert_allclose(y.to_numpy(), factor * x.to_numpy() ** power, rtol=1e-12)


def test_of_a_shared_extreme():
    """Of squared extremes: twice the gradient, by the share of each."""
    x, u = parameter([2.0, 5.0]), parameter([3.0, 2.0, 3.0])
    y = autograd.scatter_reduce(x, 0, np.array([0, 1, 0]), u, "amax")
    first = autograd.gradients(autograd.sum(y**2), [x, u], create_graph=True)
    assert [t.tolist() for t in first] == [[0, 10], [3, 0, 3]]
    found = autograd.gradients(autograd.sum(first[0]) + autograd.sum(first[1]), [x, u])
    assert [t.tolist() for t in found] == [[0, 2], [1, 0, 1]]


def test_of_scattered_products():
    """The product of others is left where one of the factors that meet is 0, and its slope."""
    x, u = parameter([2.0, 0.0, 3.0]), parameter([0.0, 5.0, 0.0, 4.0])
    y = autograd.scatter_reduce(x, 0, np.array([0, 1, 1, 2]), u, "prod")
    first = autograd.gradients(autograd.sum(y), [x, u], create_graph=True)
    assert [t.tolist() for t in first] == [[0, 0, 4], [2, 0, 0, 3]]
    found = autograd.gradients(autograd.sum(first[0]) + autograd.sum(first[1]), [x, u])
    for got, want in zip(found, ([1, 5, 1], [1, 0, 5, 1]), strict=True):
        np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-12)


def test_a_hessian_vector_product():
    """Of a quadratic form, whose Hessian is known, through the seed and through a product."""
    rng = np.random.default_rng(0)
    matrix, v = rng.normal(size=(4, 4)), rng.normal(size=4)
    x, a = parameter(rng.normal(size=4)), tensor.from_numpy(matrix, dtype="float64")
    y = autograd.sum(x * autograd.matmul(a, x))
    slope = autograd.gradients(y, x, create_graph=True)
    (found,) = autograd.gradients(slope, tensor.from_numpy(v, dtype="float64"), xs=[x])
    np.testing.assert_allclose(found.to_numpy(), (matrix + matrix.T) @ v, rtol=1e-12)


def test_gradients_flow_through_the_seed():
    x, seed = parameter([2.0, 3.0]), parameter([5.0, 7.0])
    slope = autograd.gradients(x * x, seed, xs=x, create_graph=True)
    np.testing.assert_array_equal(
        autograd.gradients(autograd.sum(slope), xs=seed).to_numpy(), [4, 6]
    )


def test_of_tensors_that_operations_made():
    x = parameter([1.0, 2.0])
    middle = x * 3.0
    y = autograd.sum(middle * middle * x)
    to_middle, to_x = autograd.gradients(y, [middle, x])
    np.testing.assert_array_equal(to_middle.to_numpy(), [6, 24])
    np.testing.assert_array_equal(to_x.to_numpy(), [27, 108])
    with pytest.raises(GraphError, match="already passed"):
        autograd.gradients(y, [x])


def test_without_a_list_every_parameter():
    x, w = parameter([1.0, 2.0]), parameter([3.0, 4.0])
    found = autograd.gradients(autograd.sum(x * x * w), create_graph=True)
    assert set(found) == {id(x), id(w)}
    again = autograd.gradients(autograd.sum(found[x]))
    np.testing.assert_array_equal(again[w].to_numpy(), [2, 4])
    np.testing.assert_array_equal(again[x].to_numpy(), [6, 8])


def test_results_own_their_memory():
    x, w = parameter([1.0]), parameter([2.0])
    a, b = autograd.gradients(x + w, [x, w])
    a += 1.0
    np.testing.assert_array_equal(b.to_numpy(), [1])
    assert not a.requires_grad


def test_of_maxima_and_back():
    """Of powers of the maxima of windows, in their places, in any memory order."""
    rng = np.random.default_rng(0)
    for order in ((0, 1, 2, 3), (0, 3, 1, 2)):
        x = parameter(rng.random((2, 4, 6, 4))).transpose(order)
        top, places = autograd.max_pool(x, 2, return_indices=True)
        y = autograd.max_unpool(top * top, places, 2)
        is_top, values = y.to_numpy() > 0, x.to_numpy()
        factor, power = 1, 2
        for _ in range(3):
            y = autograd.gradients(autograd.sum(y * y), x, create_graph=True)
            factor, power = 2 * power * factor**2, 2 * power - 1
            np.testing.assert_allclose(y.to_numpy(), is_top * factor * values**power, rtol=1e-9)
        assert is_top.sum() == top.numel


def test_what_does_not_lead_to_the_loss_is_named():
    x, other = parameter([1.0]), parameter([1.0])
    with pytest.raises(
        GraphError, match=r"gradients: xs\[1\], of shape \(1,\), does not lead to y"
    ):
        autograd.gradients(x * x, [x, other])
    with pytest.raises(TypeError, match="gradients: got .* for xs, want tensors"):
        autograd.gradients(x * x, xs=[1.0])


PRODUCTS = {
    "prod": lambda x: x.prod(1),
    "prod of all": lambda x: x.prod((1, 0), keepdims=True),
    "nanprod": autograd.nanprod,
    "nancumprod": autograd.nancumprod,
    "avg_pool": lambda x: autograd.avg_pool1d(x.unsqueeze(0), 2) ** 4,
    "local_response_norm": lambda x: autograd.local_response_norm(x.unsqueeze(2), 2),
    **{
        f"cumprod-{exclusive}-{reverse}": lambda x, how=(exclusive, reverse): x.cumprod(1, *how)
        for exclusive in (True, False)
        for reverse in (True, False)
    },
}


@pytest.mark.parametrize("zeros", [[], [2], [0, 3], [0, 1, 4]], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_of_products_with_zeros(name, zeros):
    """Of polynomials: central differences of the first and second derivatives along a line."""
    rng = np.random.default_rng(0)
    start, line = rng.uniform(0.5, 2, (1, 5)), rng.normal(size=(1, 5))
    start[0, zeros] = 0

    def slopes(at):
        x, v = parameter(start + at * line), parameter(line)
        y = PRODUCTS[name](x)
        found = [autograd.gradients(autograd.sum(y * y.detach() ** 0), x, create_graph=True)]
        for _ in range(2):
            found.append(autograd.gradients(autograd.sum(found[-1] * v), x, create_graph=True))
        return [one.to_numpy() for one in found]

    here, h = slopes(0.0), 1e-4
    for got, after, before in zip(here[1:], slopes(h), slopes(-h), strict=False):
        np.testing.assert_allclose(got, (after - before) / (2 * h), rtol=1e-5, atol=1e-6)
    x = parameter(start)
    plain = autograd.gradients(autograd.sum(PRODUCTS[name](x)), xs=x)
    np.testing.assert_allclose(here[0], plain.to_numpy(), rtol=1e-12, atol=1e-12)


FLAT = {
    "relu": autograd.relu,
    "leaky_relu": autograd.leaky_relu,
    "clamp": lambda x: x.clamp(-1, 1),
    "abs": autograd.abs,
    "power": lambda x: x**1,
    "product": lambda x: 3.0 * x,
    "cummax": lambda x: autograd.cummax(x, 0)[0],
}


@pytest.mark.parametrize("name", FLAT)
def test_of_pieces_of_lines(name):
    """Zeros: the slope is a function of the input, if a constant one."""
    x, other = parameter([0.5, -1.0, 2.0]), parameter([1.0])
    middle = x * 1.0
    slope = autograd.gradients(autograd.sum(FLAT[name](middle)), x, create_graph=True)
    again = autograd.gradients(autograd.sum(slope * slope), [x, middle], create_graph=True)
    assert [one.tolist() for one in again] == [[0, 0, 0]] * 2
    with pytest.raises(GraphError, match="does not lead to y"):
        autograd.gradients(autograd.sum(slope * slope), [other])


PIECES = {
    **{k: FLAT[k] for k in ("relu", "leaky_relu", "clamp", "abs")},
    **{k: getattr(autograd, k) for k in ("elu", "selu", "hardsigmoid", "hardswish", "softshrink")},
    "floor": autograd.floor,
    "fmod": lambda x: autograd.fmod(x, 2.0),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_are_selected(name):
    """An infinite gradient beside a slope of 0 as without the tape, signs of zeros included."""
    edges = [-np.inf, -3.0, -1.0, -0.0, 0.0, 0.25, 1.0, 9.0, np.inf, np.nan]
    x, factor = (tensor.from_numpy(g, dtype="float64") for g in np.meshgrid(edges, edges))
    x.requires_grad = True
    y = autograd.sum(PIECES[name](x) * factor)
    made = [autograd.gradients(y, xs=x, create_graph=flag).to_numpy() for flag in (True, False)]
    np.testing.assert_array_equal(*made)
    signs = [np.signbit(one) | np.isnan(one) for one in made]
    np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_slopes_far_out(name):
    x = parameter([-np.inf, np.inf])
    y = autograd.sum(getattr(autograd, name)(x))
    assert autograd.gradients(y, x, create_graph=True).tolist() == [0, 1]


def test_of_what_was_overwritten():
    x = parameter([1.0, 2.0])
    y = x * 1.0
    y[:] = 2.0
    assert autograd.gradients(autograd.sum(y * y), x, create_graph=True).tolist() == [0, 0]


WRITES = {
    "number": (lambda y, x: y.__setitem__(0, 2.0), lambda x: [0 * x[0], x[1], x[2]]),
    "part": (lambda y, x: y[0:2].mul_(3.0), lambda x: [3 * x[0], 3 * x[1], x[2]]),
    "view of a view": (lambda y, x: y[1:][1:].mul_(x[:1]), lambda x: [x[0], x[1], x[2] * x[0]]),
    "range": (lambda y, x: y.copy_from(x[1:], 1), lambda x: [x[0], x[1], x[2]]),
    "reshaped": (
        lambda y, x: y.reshape((3, 1))[1:].mul_(x[:1]),
        lambda x: [x[0], x[1] * x[0], x[2] * x[0]],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_of_writes_into_parts(name):
    write, values = WRITES[name]
    x = parameter([1.5, 2.0, 3.0])
    y = x * 1.0
    write(y, x)
    found, x_again = [], parameter([1.5, 2.0, 3.0])
    for at, made in ((x, y), (x_again, autograd.stack(values(x_again)))):
        slope = autograd.gradients(autograd.sum(made**3), at, create_graph=True)
        found.append([slope, autograd.gradients(autograd.sum(slope * slope), xs=at)])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got.to_numpy(), want.to_numpy(), rtol=1e-12)


class Twice(autograd.Operator):
    """A user's operation."""

    def forward(self, x):
        return x * 2.0

    def backward(self, dy):
        return dy * 2.0


def test_a_user_s_operation_is_refused_by_name():
    x = parameter([1.0])
    with pytest.raises(GraphError, match="Twice#.* cannot be differentiated again"):
        autograd.gradients(Twice()(x)[0], x, create_graph=True)
    assert autograd.gradients(Twice()(x)[0], xs=x).item() == 2


def test_a_changed_tensor_is_refused():
    x = parameter([1.0, 2.0])
    y = autograd.sum(x * x)
    x.set_value(3.0)
    with pytest.raises(GraphError, match="changed in place"):
        autograd.gradients(y, x, create_graph=True)


class Penalised(module.Module):
    """A critic whose gradient with respect to its inputs is drawn to length 1."""

    def __init__(self):
        super().__init__()
        self.layers = [layer.Linear(8), layer.Linear(1)]
        self.norm = layer.LayerNorm(8)
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        y = autograd.silu(self.norm(self.layers[0](x)))
        return self.layers[1](autograd.tanh(y))

    def train_one_batch(self, x):
        slope = autograd.gradients(autograd.sum(self.forward(x)), x, create_graph=True)
        length = (autograd.reduce_sum(slope * slope, 1, 0) + 1e-12).sqrt()
        loss = autograd.mean(autograd.square(length - 1.0))
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("graph_alg", ["sequence", "parallel"])
def test_recorded_to_the_bit(graph_alg):
    rng, runs = np.random.default_rng(0), []
    batches = rng.normal(size=(6, 5, 3)).astype(np.float32)
    for use_graph in (False, True):
        device.get_default_device().set_seed(1)
        model, x = Penalised(), tensor.from_numpy(batches[0])
        model.compile([x], use_graph=use_graph, graph_alg=graph_alg)
        runs.append([model.train_one_batch(batch).item() for batch in batches])
        assert len(model.graphs) == use_graph
    assert runs[0] == runs[1] and runs[0][-1] < runs[0][0]
