"""Mixed precision: what is computed in which type, the scale of the loss, skipped updates."""

from collections import namedtuple

import numpy as np
import pytest
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs.autograd.precision import Precision, precision_scope

SHORT = ("bfloat16", "float16")
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(8, 3, 8, 8)).astype(np.float32)
LABELS = RNG.integers(0, 5, 8).astype(np.int32)


class Net(module.Module):
    """Convolution, normalisations, attention and a loss; keeps what its parts return."""

    def __init__(self, optimizer):
        super().__init__()
        self.conv = layer.Conv2d(8, 3, padding=1)
        self.batch_norm, self.norm = layer.BatchNorm2d(), layer.LayerNorm(16)
        self.project, self.head = layer.Linear(16), layer.Linear(5)
        self.optimizer = optimizer
        self.dtypes = {}

    def forward(self, x):
        y = autograd.relu(self.batch_norm(self.conv(x)))
        y = self.norm(self.project(y.reshape((y.shape[0], 8, 64))))
        y = autograd.scaled_dot_product_attention(y, y, y)
        return self.head(y.mean(1))

    def train_one_batch(self, x, t):
        loss = autograd.softmax_cross_entropy(self.forward(x), t)
        self.optimizer(loss)
        return loss


def compiled(optimizer, **how):
    device.get_default_device().set_seed(3)
    model = Net(optimizer)
    model.compile([tensor.from_numpy(IMAGES)], **how)
    return model


def losses(model, steps=20):
    return [model.train_one_batch(IMAGES, LABELS).item() for _ in range(steps)]


class Typed(module.Module):
    """Returns the dtype of each function's result for a float32 input."""

    def forward(self, x):
        functions = {
            "matmul": autograd.matmul(x, x),
            "@": x @ x,
            "einsum": tensor.einsum("ij,jk->ik", x, x),
            "attention": autograd.scaled_dot_product_attention(x, x, x),
            "softmax": autograd.softmax(x @ x, 1),
            "exp": (x @ x).exp(),
            "**": (x @ x) ** 2,
            "sum": (x @ x).sum(),
            "norm": (x @ x).norm(),
            "layer_norm": autograd.layer_norm(x @ x),
            "loss": autograd.mse_loss(x @ x, x),
            "relu": autograd.relu(x @ x),
            "mixed": x @ x + x,
        }
        self.found = {name: y.dtype.name for name, y in functions.items()}
        return x


@pytest.mark.parametrize("amp", SHORT)
def test_products_are_short_and_sums_are_wide(amp):
    model = Typed()
    model.compile([tensor.from_numpy(np.eye(4, dtype=np.float32))], use_graph=False, amp=amp)
    model.eval()(tensor.from_numpy(np.eye(4, dtype=np.float32)))
    short = {"matmul", "@", "einsum", "attention", "relu"}
    assert {name for name, dtype in model.found.items() if dtype == amp} == short
    assert {dtype for name, dtype in model.found.items() if name not in short} == {"float32"}
    x = tensor.from_numpy(np.eye(2, dtype=np.float32))
    assert (x @ x).dtype == tensor.float32, "outside of the model nothing changes"


def test_float64_stays():
    model = Typed()
    x = tensor.from_numpy(np.eye(4), dtype="float64")
    model.compile([x], use_graph=False, amp="bfloat16")
    model.eval()(x)
    assert set(model.found.values()) == {"float64"}


def test_tensors_in_named_tuples_are_short_as_well():
    both = namedtuple("Both", "a b")(*[tensor.from_numpy(np.eye(2, dtype=np.float32))] * 2)
    with precision_scope(Precision(tensor.float16)):
        assert autograd.multi_dot(both).dtype == autograd.multi_dot(list(both)).dtype
        assert autograd.multi_dot(both).dtype == tensor.float16


@pytest.mark.parametrize("amp", SHORT)
@pytest.mark.parametrize("graph_alg", ["sequence", "parallel"])
def test_trains_like_float32_and_replays_to_the_bit(amp, graph_alg):
    full = losses(compiled(opt.AdamW(3e-3)))
    eager = losses(compiled(opt.AdamW(3e-3), use_graph=False, amp=amp))
    model = compiled(opt.AdamW(3e-3), graph_alg=graph_alg, amp=amp)
    assert losses(model) == eager
    np.testing.assert_allclose(eager, full, rtol=2e-2, atol=2e-2)
    assert {t.dtype for n, t in model.get_params().items()} == {tensor.float32}
    assert len(model.graphs) == 1 and eager[-1] < 0.8 * eager[0]


@pytest.mark.parametrize("amp", SHORT)
def test_the_plan_says_where_the_type_is_slow(amp):
    plan = compiled(opt.SGD(0.1), amp=amp).plan(IMAGES, LABELS)
    is_slow = not device.get_default_device().computes_in(amp)
    assert (f"amp: {amp} is converted to float32" in plan.summary()) == is_slow
    assert "amp" not in compiled(opt.SGD(0.1)).plan(IMAGES, LABELS).summary()
    assert device.get_default_device().computes_in("float32")


def test_the_scale_grows(monkeypatch):
    monkeypatch.setattr("singa_rs.opt.scaling._INTERVAL", 3)
    model = compiled(opt.SGD(0.0), amp="float16")
    model.loss_scale.factor.set_value(1)
    factors = []
    for _ in range(7):
        model.train_one_batch(IMAGES, LABELS)
        factors.append(model.loss_scale.factor.item())
    assert factors == [1, 1, 2, 2, 2, 4, 4]


def test_small_gradients_survive_in_float16():
    """Gradients below the smallest float16 move the weights as those of float32 do."""

    class Tiny(module.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.optimizer = layer.Linear(1, bias=False), opt.SGD(1e6)

        def forward(self, x):
            return self.linear(x)

        def train_one_batch(self, x):
            loss = autograd.mean(self.forward(x)) * 1e-8
            self.optimizer(loss)
            return loss

    x, moved = np.ones((4, 3), np.float32), []
    for amp in (None, "float16"):
        device.get_default_device().set_seed(0)
        model = Tiny()
        model.compile([tensor.from_numpy(x)], amp=amp)
        first = model.linear.W.to_numpy().copy()
        model.train_one_batch(x)
        moved.append(first - model.linear.W.to_numpy())
    np.testing.assert_allclose(moved[1], moved[0], rtol=1e-2)
    assert (moved[0] > 0).all()


class Sums(opt.SGD):
    """Adds up gradients, and updates nothing."""

    def __call__(self, loss):
        self.accumulate(loss)


def test_accumulated_gradients_are_unscaled():
    sums = []
    for amp in (None, "float16"):
        model = compiled(Sums(0.0), use_graph=False, amp=amp)
        model.train_one_batch(IMAGES, LABELS)
        (found,) = (v for k, v in model.optimizer.get_states().items() if k != "step_counter")
        sums.append(found["head.W"].to_numpy())
    np.testing.assert_allclose(sums[1], sums[0], atol=2e-2 * np.abs(sums[0]).max())


def test_the_scale_is_saved(tmp_path):
    model = compiled(opt.SGD(0.1), amp="float16")
    losses(model, 3)
    model.loss_scale.factor.set_value(512)
    model.save_states(tmp_path / "net.zip")
    other = compiled(opt.SGD(0.1), amp="float16")
    other.load_states(tmp_path / "net.zip")
    assert (other.loss_scale.factor.item(), other.loss_scale.updates.item()) == (512, 3)


def test_compiling_again_changes_the_precision():
    model = compiled(opt.SGD(0.1), amp="float16")
    losses(model, 3)
    model.compile([tensor.from_numpy(IMAGES)], amp=None)
    assert not hasattr(model, "loss_scale") and "amp" not in model.plan(IMAGES, LABELS).summary()
    assert model.eval()(IMAGES).dtype == tensor.float32


@pytest.mark.parametrize("amp", ["float32", "int8", 16, True])
def test_other_types_are_refused(amp):
    with pytest.raises(ValueError, match=f'compile: got amp={amp!r}, want "bfloat16"'):
        compiled(opt.SGD(0.1), amp=amp)


@pytest.mark.parametrize("short", SHORT)
def test_methods_compute_in_the_types_of_functions(short):
    class Probe(module.Module):
        def forward(self, x):
            y = x @ x
            return y.softmax(), y.log_softmax(), autograd.softmin(y), autograd.softmax(y)

    probe, x = Probe(), tensor.from_numpy(np.eye(4, dtype=np.float32))
    probe.compile([x], is_train=False, use_graph=False, amp=short)
    assert {made.dtype.name for made in probe(x)} == {"float32"}


class Halves(module.Module):
    """A parameter of float16, which the scale of the loss is beyond."""

    def __init__(self):
        super().__init__()
        self.w = tensor.from_numpy(np.full((4, 1), 0.5, np.float16))
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return x @ self.w

    def train_one_batch(self, x):
        loss = (self.forward(x).as_type("float32") ** 2).mean().reshape((1,))
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("use_graph", [False, True])
def test_gradients_in_float16_are_unscaled_in_float32(use_graph):
    x = tensor.from_numpy(np.eye(4, dtype=np.float16))
    losses = {}
    for amp in (None, "float16"):
        model = Halves()
        model.compile([x], amp=amp, use_graph=use_graph)
        losses[amp] = [model(x).numpy().item() for _ in range(8)]
    assert losses["float16"][-1] < 0.9 * losses["float16"][0]
    np.testing.assert_allclose(losses["float16"][-1], losses[None][-1], rtol=0.1)


def test_a_scaled_loss_without_any_gradient():
    model = compiled(opt.SGD(0.1), amp="float16")
    for parameter in model.get_params().values():
        parameter.requires_grad = False
    x, y = tensor.from_numpy(IMAGES), tensor.from_numpy(LABELS)
    assert np.isfinite(model(x, y).numpy()).all()


def test_check_finite_is_refused_beside_the_scale_of_losses():
    with pytest.raises(ValueError, match='amp="float16" and check_finite=True, want one of them'):
        compiled(opt.SGD(0.1), amp="float16", check_finite=True)


class Scaled(module.Module):
    """Has a parameter without axes."""

    def __init__(self, optimizer):
        self.scale = layer.Parameter(tensor.full((), 2.0))
        self.optimizer = optimizer

    def forward(self, x):
        return (x * self.scale).sum()

    def train_one_batch(self, x):
        loss = self.forward(x)
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("options", [{}, {"clip_norm": 1.0}, {"clip_value": 1.0}], ids=str)
@pytest.mark.parametrize("graph", [False, True])
def test_parameters_without_axes(options, graph):
    for amp in (None, *SHORT):
        model, x = Scaled(opt.SGD(0.25, **options)), tensor.full((4,), 1.0)
        model.compile([x], is_train=True, use_graph=graph, amp=amp)
        for _ in range(3):
            model(x)
        assert model.scale.shape == ()
        assert model.scale.item() == 2.0 - 3 * 0.25 * (1 if options else 4)
