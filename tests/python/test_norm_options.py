"""Normalisation with other options: averages of all batches, no parameters, no running averages,
groups of one value."""

import numpy as np
import pytest
from layer_calls import call, close, normal
from recorded import replays, same, same_states
from singa_rs import autograd, layer, module, opt, set_seed, sonnx, tensor
from singa_rs.tensor import Tensor

SHAPES = {"BatchNorm1d": (5, 3), "BatchNorm2d": (4, 3, 2, 5), "BatchNorm3d": (2, 3, 2, 2, 3)}
OPTIONS = [
    {"momentum": None},
    {"affine": False},
    {"track_running_stats": False},
    {"momentum": None, "affine": False, "track_running_stats": False},
    {"momentum": None, "affine": False},
]


def normalized(x, mean, var):
    view = (1, -1) + (1,) * (x.ndim - 2)
    return (x - mean.reshape(view)) / np.sqrt(var.reshape(view) + 1e-5)


def statistics(x):
    """Means, and biased and unbiased variances."""
    over, n = (0, *range(2, x.ndim)), x.size / x.shape[1]
    return x.mean(over), x.var(over), x.var(over) * n / (n - 1)


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_of_no_rows_leaves_the_averages(name):
    one, empty = getattr(layer, name)(3), np.zeros((0, *SHAPES[name][1:]), np.float32)
    with autograd._training_scope(True):
        call(one, normal(*SHAPES[name]))
        before = {key: t.to_numpy() for key, t in one.get_states().items()}
        x = Tensor(data=empty, stores_grad=True)
        y = one(x)
        found = autograd.gradients((y * y).sum())
    assert y.shape == empty.shape == found[x].shape
    assert not any(found[t].to_numpy().any() for t in (one.scale, one.bias))
    for key, t in one.get_states().items():
        np.testing.assert_array_equal(t.to_numpy(), before[key])


class Normed(module.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.dense, self.loss = layer.BatchNorm1d(3), layer.Linear(2), layer.MSELoss()
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return self.dense(self.norm(x))

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def test_steps_of_no_rows_replay():
    batches = [np.zeros((0, n), np.float32) for n in (3, 2)]
    nets = []
    for use_graph in (True, False):
        set_seed(1)
        nets.append(Normed())
        nets[-1].compile([Tensor(data=normal(4, 3))], use_graph=use_graph)
        before = {key: t.to_numpy() for key, t in nets[-1].get_states().items()}
        assert all(np.isnan(nets[-1](*map(tensor.from_numpy, batches)).item()) for _ in range(4))
        for key, t in nets[-1].get_states().items():
            np.testing.assert_array_equal(t.to_numpy(), before[key])
    assert replays(nets[0]) == 2


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_options_of_batch_norm(name, options):
    one, found = getattr(layer, name)(3, **options), []
    for i in range(3):
        x = normal(*SHAPES[name]) * (i + 1) + i
        found.append(statistics(x))
        with autograd._training_scope(True):
            close(call(one, x), normalized(x, *found[-1][:2]), 1e-4)
    mean, _, var = np.mean(found, 0)
    if "momentum" not in options:
        mean, var = 0, 1
        for batch, _, unbiased in found:
            mean, var = 0.9 * mean + 0.1 * batch, 0.9 * var + 0.1 * unbiased
    if "track_running_stats" in options:
        mean, var, _ = statistics(x)
    close(call(one, x), normalized(x, mean, var), 1e-4)
    want = [] if "affine" in options else ["scale", "bias"]
    if "track_running_stats" not in options:
        want += ["running_mean", "running_var", *["num_batches_tracked"] * ("momentum" in options)]
        close(one.running_mean.to_numpy(), mean)
        close(one.running_var.to_numpy(), var)
    assert list(one.get_states()) == want


class Net(module.Module):
    def __init__(self, norm):
        super().__init__()
        self.conv, self.norm, self.optimizer = layer.Conv2d(3, 3), norm, opt.SGD(0.1)

    def forward(self, x):
        return self.norm(self.conv(x))

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


X, Y = normal(4, 2, 6, 6), normal(4, 3, 4, 4)


def trained(norm, **options):
    set_seed(2)
    net = Net(norm)
    net.compile([X], **options)
    return net, [net(Tensor(data=X * (i + 1)), Tensor(data=Y)) for i in range(5)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_recorded_steps_and_files_of_batch_norm(options, tmp_path):
    graph, made = trained(layer.BatchNorm2d(**options))
    eager, want = trained(layer.BatchNorm2d(**options), use_graph=False)
    same(made, want)
    same_states(graph, eager)
    assert replays(graph) == 3
    graph.save(str(tmp_path / "net"))
    other = Net(layer.BatchNorm2d(**options))
    other.compile([X])
    other.load(str(tmp_path / "net"))
    same_states(graph, other)
    graph.eval(), other.eval()
    y = graph(Tensor(data=X))
    same(y, other(Tensor(data=X)))
    model = sonnx.prepare(sonnx.model_proto(graph, [Tensor(data=X)]))
    close(model.run([Tensor(data=X)])[0].to_numpy(), y.to_numpy())


@pytest.mark.parametrize("amp", ["float16", "bfloat16"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_mixed_precision_of_batch_norm(options, amp):
    (net, made), (_, want) = (trained(layer.BatchNorm2d(**options), amp=a) for a in (amp, None))
    for one, other in zip(made, want, strict=True):
        np.testing.assert_allclose(one.to_numpy(), other.to_numpy(), rtol=2e-2)
    assert {p.dtype.name for p in net.norm.get_states().values()} <= {"float32"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_dtypes_of_batch_norm(options, dtype):
    one, x = layer.BatchNorm2d(**options), Tensor(data=Y, dtype=dtype)
    with autograd._training_scope(True):
        y = one(x)
    assert y.dtype == x.dtype and one(x).dtype == x.dtype
    want = normalized(Y, *statistics(Y)[:2])
    np.testing.assert_allclose(y.as_type("float32").to_numpy(), want, atol=3e-2)
    wide = "float64" if dtype == "float64" else "float32"
    assert {p.dtype.name for p in one.get_states().values()} <= {wide}


def test_one_value_of_each_channel_has_no_statistics():
    one = layer.BatchNorm1d(track_running_stats=False)
    with pytest.raises(ValueError, match=r"BatchNorm1d: got .*\(1, 3\), want several values per"):
        call(one, normal(1, 3))


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 1), (2, 4, 1, 1)])
def test_groups_of_one_value(shape):
    one, x = layer.GroupNorm(4), Tensor(data=normal(*shape) * 100, stores_grad=True)
    with autograd._training_scope(True):
        grads = autograd.gradients((one(x) * 3).sum())
    one.set_params({"bias": normal(4)})
    close(call(one, x.to_numpy()), np.zeros(shape) + one.bias.to_numpy().reshape(shape[1:]), 0)
    assert not grads[x].to_numpy().any() and not grads[one.scale].to_numpy().any()
    close(grads[one.bias].to_numpy(), np.full(4, 3.0 * shape[0]), 0)
    with pytest.raises(ValueError, match="GroupNorm: .*want several values"):
        call(layer.GroupNorm(4), normal(1, 4))


@pytest.mark.parametrize("amp", ["float16", "bfloat16"])
@pytest.mark.parametrize("affine", [False, True])
def test_mixed_precision_of_groups_of_one_value(amp, affine):
    net = Net(layer.GroupNorm(12, affine=affine))
    net.conv = layer.Linear(12)
    x = normal(4, 5)
    net.compile([x], amp=amp)
    net.eval()
    assert net(Tensor(data=x)).dtype.name == "float32"
