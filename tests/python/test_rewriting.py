"""Rewritten graphs: what they replace, and that they keep every bit."""

import json

import numpy as np
import pytest
from recorded import CPU, step
from singa_rs import autograd, layer, module, opt, tensor


class Net(module.Module):
    """A convolution, batch normalisation and ReLU; intermediate results may be returned."""

    def __init__(self, shows):
        super().__init__()
        self.conv, self.norm = layer.Conv2d(6, 3, bias=False), layer.BatchNorm2d()
        self.pool, self.flatten, self.out = layer.MaxPool2d(2, 2), layer.Flatten(), layer.Linear(4)
        self.shows = shows
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(lr=0.1, momentum=0.9)

    def forward(self, x):
        z = self.norm(self.conv(x))
        return self.out(self.flatten(self.pool(autograd.relu(z)))), z

    def train_one_batch(self, x, labels):
        out, z = self.forward(x)
        loss = self.loss(out, labels)
        self.optimizer(loss)
        return (out, loss, z) if self.shows else (out, loss)


def models(make, x):
    """A compiled model and an eager one with the same parameters."""
    made = []
    for use_graph in (True, False):
        CPU.set_seed(5)
        model = make()
        model.compile([x], use_graph=use_graph)
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


@pytest.mark.parametrize("shows", [False, True])
def test_batch_norm_and_relu_are_fused_unless_the_value_between_is_used(shows):
    rng = np.random.default_rng(3)
    x = tensor.from_numpy(rng.normal(size=(4, 3, 9, 9)).astype(np.float32))
    labels = tensor.from_numpy(rng.integers(0, 4, 4).astype(np.int32))
    recorded, eager = models(lambda: Net(shows), x)
    for _ in range(5):
        step(recorded, eager, x, labels)
    names = {node["name"] for node in json.loads(recorded.graphs[-1].to_json())["nodes"]}
    assert ("batch_norm_relu_grad" in names) is not shows
    assert ("relu" in names) is shows


class Wide(module.Module):
    """Two dense layers, the first with a weight whose gradient is large."""

    def __init__(self, optimizer):
        super().__init__()
        self.first, self.second = layer.Linear(128), layer.Linear(4)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = optimizer

    def forward(self, x):
        return self.second(autograd.tanh(self.first(x)))

    def train_one_batch(self, x, labels):
        out = self.forward(x)
        loss = self.loss(out, labels)
        self.optimizer(loss)
        return out, loss


@pytest.mark.parametrize(
    "make",
    [
        lambda: opt.SGD(lr=0.1),
        lambda: opt.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
        lambda: opt.RMSProp(lr=0.01),
        lambda: opt.AdaGrad(lr=0.01),
        lambda: opt.Adam(lr=0.01),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_gradient_is_made_where_its_weight_is_updated(make, dtype):
    rng = np.random.default_rng(4)
    x = tensor.from_numpy(rng.normal(size=(24, 700)).astype(dtype))
    labels = tensor.from_numpy(rng.integers(0, 4, 24).astype(np.int32))
    recorded, eager = models(lambda: Wide(make()), x)
    for _ in range(4):
        step(recorded, eager, x, labels)
    nodes = json.loads(recorded.graphs[-1].to_json())["nodes"]
    assert [node["name"] for node in nodes].count("matmul_update") == 1
    assert recorded.graphs[-1].arena_bytes < 700 * 128 * np.dtype(dtype).itemsize


def names(model):
    """The operations of a model's last graph."""
    return [node["name"] for node in json.loads(model.graphs[-1].to_json())["nodes"]]


def batch(shape, dtype, classes=4):
    """Inputs and labels."""
    rng = np.random.default_rng(7)
    x = tensor.from_numpy(rng.normal(size=shape).astype(dtype))
    return x, tensor.from_numpy(rng.integers(0, classes, shape[0]).astype(np.int32))


class Tail(module.Module):
    """A convolution and dense layers, each followed by an activation."""

    def __init__(self, activation):
        super().__init__()
        self.conv, self.flatten = layer.Conv2d(16, 3, padding=1), layer.Flatten()
        self.pool = layer.AvgPool2d(4, 4)
        self.wide, self.out = layer.Linear(1200), layer.Linear(4)
        self.activation = activation
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(lr=0.05)

    def forward(self, x):
        z = self.flatten(self.pool(self.activation(self.conv(x))))
        return self.out(self.activation(self.wide(z)))

    def train_one_batch(self, x, labels):
        out = self.forward(x)
        loss = self.loss(out, labels)
        self.optimizer(loss)
        return out, loss


@pytest.mark.parametrize("activation", [autograd.relu, autograd.gelu, autograd.tanh])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_are_applied_to_blocks_of_products_and_convolutions(activation, dtype):
    x, labels = batch((300, 1, 16, 16), dtype)
    recorded, eager = models(lambda: Tail(activation), x)
    for _ in range(4):
        step(recorded, eager, x, labels)
    assert {"conv2d_chain", "matmul_chain"} <= set(names(recorded))


def test_infinities_and_nan_propagate():
    x, labels = batch((300, 1, 16, 16), np.float32)
    values = x.to_numpy()
    values[::7, 0, 3, 5], values[1::7, 0, 0, 0] = np.nan, np.inf
    x = tensor.from_numpy(values)
    recorded, eager = models(lambda: Tail(autograd.relu), x)
    for _ in range(3):
        step(recorded, eager, x, labels)
    assert "conv2d_chain" in names(recorded)


class Repeated(module.Module):
    """A layer that is used repeatedly, so its gradients are accumulated."""

    def __init__(self, width, times):
        super().__init__()
        self.again, self.out, self.times = layer.Linear(width), layer.Linear(4), times
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(lr=0.05)

    def forward(self, x):
        for _ in range(self.times):
            x = autograd.tanh(self.again(x))
        return self.out(x)

    def train_one_batch(self, x, labels):
        out = self.forward(x)
        loss = self.loss(out, labels)
        self.optimizer(loss)
        return out, loss


def test_gradients_are_collected_where_they_are_made():
    x, labels = batch((32, 512), np.float32)
    recorded, eager = models(lambda: Repeated(512, 6), x)
    for _ in range(4):
        step(recorded, eager, x, labels)
    assert names(recorded).count("matmul_chain") >= 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_exact_stays_within_rounding(dtype):
    # Neither short nor large enough to be computed in blocks, and deeper than blocks are meant for.
    x, labels = batch((600, 160), dtype)
    losses = {}
    for exact in (True, False):
        CPU.set_seed(5)
        model = Repeated(160, 3)
        model.compile([x], exact=exact)
        losses[exact] = [model(x, labels)[1].to_numpy() for _ in range(6)]
        assert ("matmul_add" in names(model)) is not exact
    np.testing.assert_allclose(losses[False], losses[True], rtol=1e3 * np.finfo(dtype).eps)


class Classifier(module.Module):
    """Probabilities and their cross entropy as two operations, as SINGA programs write them."""

    def __init__(self, classes):
        super().__init__()
        self.out = layer.Linear(classes)
        self.optimizer = opt.SGD(lr=0.5)

    def forward(self, x):
        return autograd.softmax(self.out(x))

    def train_one_batch(self, x, targets):
        p = self.forward(x)
        loss = autograd.cross_entropy(p, targets)
        self.optimizer(loss)
        return p, loss


# Short, and wide enough for a single pass over memory to pay off.
@pytest.mark.parametrize("shape", [(32, 10), (1100, 1000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_and_cross_entropy_are_one_pass_in_each_direction(shape, dtype):
    rows, classes = shape
    x, labels = batch((rows, 20), dtype, classes)
    targets = tensor.from_numpy(np.eye(classes, dtype=dtype)[labels.to_numpy()])
    recorded, eager = models(lambda: Classifier(classes), x)
    for _ in range(4):
        step(recorded, eager, x, targets)
    assert not {"softmax", "softmax_grad", "log", "div"} & set(names(recorded))


def test_products_read_transposed_operands_where_they_lie():
    rng = np.random.default_rng(1)
    joint = tensor.from_numpy(rng.normal(size=(4, 32, 96)).astype(np.float32))

    def attend(joint):
        parts = autograd.split(joint, 2, num_output=3)
        q, k, v = (
            autograd.transpose(autograd.reshape(p, (4, 32, 2, 16)), (0, 2, 1, 3)) for p in parts
        )
        scores = autograd.matmul(q, autograd.transpose(k, (0, 1, 3, 2)))
        return autograd.matmul(autograd.softmax(scores, 3), v)

    with CPU.record() as graph:
        heads = attend(joint)
    nodes = json.loads(graph.to_json())["nodes"]
    assert heads.shape == (4, 2, 32, 16)
    assert [node["name"] for node in nodes] == ["matmul", "softmax", "matmul"]


#: Functions of a condition and two tensors, whose operations on elements follow each other.
MOVED = {
    "where": lambda c, x, y: autograd.where(c, autograd.where(c, x, y), x),
    "cast": lambda c, x, y: (
        autograd.relu(autograd.cast(x, "float32")) + autograd.cast(y, "float32")
    ),
    "and back": lambda c, x, y: autograd.cast(autograd.cast(x, "float32") * 2.0, x.dtype),
    "scatter": lambda c, x, y: autograd.where(c, autograd.scatter(x, 0, _places(), y[:2]), x),
    "fill": lambda c, x, y: autograd.where(c, autograd.masked_fill(x, c, 1), y.clone()),
}


def _places():
    return tensor.from_numpy(np.array([1, 0], np.int32))


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64", "int8", "uint8", "int64"])
@pytest.mark.parametrize("name", MOVED)
def test_integers_of_each_type_are_moved_in_recorded_steps(name, dtype):
    class Moving(module.Module):
        def forward(self, c, x, y):
            return MOVED[name](c, x, y)

    arrays = np.array([1, 0, 1, 0], bool), np.arange(4, dtype=dtype), np.arange(5, 9, dtype=dtype)
    given = [tensor.from_numpy(one, dtype=one.dtype) for one in arrays]
    model = Moving()
    model.compile(given, is_train=False, use_graph=True)
    made = [model(*given).to_numpy() for _ in range(3)]
    want = MOVED[name](*given).to_numpy()
    assert all(one.dtype == want.dtype and np.array_equal(one, want) for one in made)
    assert model.graphs[0].runs


class Scaled(module.Module):
    """Rows with a factor and a shift of their own for each column, and a loss of squares."""

    def __init__(self, between):
        super().__init__()
        self.norm, self.between = layer.LayerNorm(affine=False), between
        self.factor, self.shift = (layer.Parameter(np.full(256, v, np.float32)) for v in (2, 1))
        self.optimizer = opt.SGD(lr=0.05)

    def forward(self, x):
        return self.between(self.norm(x)) * self.factor + self.shift

    def train_one_batch(self, x, want):
        out = self.forward(x)
        loss = ((out - want) ** 2).mean() + 1e-3 * autograd.abs(self.factor**3).sum()
        self.optimizer(loss)
        return out, loss


@pytest.mark.parametrize("between", [autograd.identity, autograd.gelu])
@pytest.mark.parametrize("rows", [40, 4001])
def test_reductions_fold_what_has_just_been_computed(between, rows):
    rng = np.random.default_rng(8)
    x, want = (tensor.from_numpy(rng.normal(size=(rows, 256)).astype(np.float32)) for _ in range(2))
    recorded, eager = models(lambda: Scaled(between), x)
    for _ in range(4):
        step(recorded, eager, x, want)
    # The loss and the factor's gradient.
    found = [name for name in names(recorded) if name.startswith("chain_")]
    assert len(found) == {40: 0, 4001: 2}[rows], names(recorded)
