"""`compile(exact=False)`: what is replaced, and how close the results stay."""

import json
import math

import numpy as np
import pytest
from recorded import CPU
from singa_rs import autograd, layer, module, opt, tensor

RNG = np.random.default_rng(17)


def names(graph):
    return [node["name"] for node in json.loads(graph.to_json())["nodes"]]


class Residual(module.Module):
    """Two normalised convolutions next to a shortcut."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (layer.Conv2d(16, 3, padding=1, bias=b) for b in (False, True))
        self.norms = [layer.BatchNorm2d(), layer.BatchNorm2d()]
        self.flatten, self.out = layer.Flatten(), layer.Linear(5)
        self.loss, self.optimizer = layer.SoftMaxCrossEntropy(), opt.SGD(lr=0.05)

    def forward(self, x):
        h = autograd.relu(self.norms[0](self.first(x)))
        h = autograd.relu(autograd.add(self.norms[1](self.second(h)), h))
        return self.out(self.flatten(h))

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def models(make, given, is_train, *options):
    """Models with the same parameters, each compiled with other options."""
    made = []
    for option in options:
        CPU.set_seed(9)
        model = make()
        model.compile(given, is_train=is_train, use_graph=True, **option)
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


def test_batch_normalisation_is_folded_into_convolutions():
    x = tensor.from_numpy(RNG.normal(size=(8, 16, 9, 9)).astype(np.float32))
    y = tensor.from_numpy(RNG.integers(0, 5, 8).astype(np.int32))
    exact, folded = models(Residual, [x], True, {}, {"exact": False})
    for _ in range(3):
        for _ in range(3):  # the averages and weights change
            [model(x, y) for model in (exact, folded)]
        folded.set_states({k: v.to_numpy() for k, v in exact.get_states().items()})
        [model.eval() for model in (exact, folded)]
        for _ in range(3):
            want, got = (model(x).to_numpy() for model in (exact, folded))
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        [model.train() for model in (exact, folded)]
    graphs = [model.graphs[-1] for model in (exact, folded)]
    assert "normalize" in names(graphs[0]) and "normalize" not in names(graphs[1])
    assert graphs[1].constants[2] == 3, "once for each time that it was trained"


class Dense(module.Module):
    """A normalised dense layer."""

    def __init__(self):
        super().__init__()
        self.hidden, self.norm = layer.Linear(96), layer.BatchNorm2d()

    def forward(self, x):
        return autograd.relu(self.norm(self.hidden(x)))


def test_batch_normalisation_is_folded_into_dense_layers():
    x = tensor.from_numpy(RNG.normal(size=(64, 80)).astype(np.float32))
    exact, folded = models(Dense, [x], False, {}, {"exact": False})
    for value in (0.5, 2.0):
        for model in (exact, folded):
            model.norm.running_var.set_value(value)
            model.hidden.b.set_value(value - 1)
        for _ in range(3):
            want, got = (model(x).to_numpy() for model in (exact, folded))
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert "normalize" in names(exact.graphs[-1]) and "normalize" not in names(folded.graphs[-1])


class Embedded(module.Module):
    """A dense layer behind an embedding."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = layer.Embedding(50, 24), layer.Linear(96)

    def forward(self, x):
        return autograd.tanh(self.out(self.embed(x)))


def test_dense_layers_of_embeddings_are_gathered_from_a_table_of_products():
    x = tensor.from_numpy(RNG.integers(0, 50, (4, 40)).astype(np.int32))
    exact, folded = models(Embedded, [x], False, {}, {"exact": False})
    for value in (0.5, 2.0):
        for model in (exact, folded):
            model.embed.W.set_value(value)
        for _ in range(3):
            want, got = (model(x).to_numpy() for model in (exact, folded))
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert names(folded.graphs[-1]) == ["gather", "tanh"]
    with pytest.raises(ValueError, match="gather.*index 50 is out of range"):
        folded(tensor.from_numpy(np.full((4, 40), 50, np.int32)))


class Scaled(module.Module):
    """A convolution whose channels are scaled and shifted, as older files spell normalisation."""

    def __init__(self, groups=1, bias=True):
        super().__init__()
        self.conv = layer.Conv2d(16, 3, padding=1, bias=bias, group=groups)
        self.one = [tensor.from_numpy(RNG.normal(size=(16, 1, 1)).astype(np.float32)) for _ in "ab"]
        self.all = tensor.from_numpy(np.array([3.0], np.float32))

    def forward(self, x):
        y = autograd.add(self.one[0], autograd.mul(self.conv(x), self.one[1]))
        return autograd.sub(autograd.div(y, self.all), self.one[1])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 4, 16])
def test_factors_and_terms_of_channels_are_folded_into_convolutions(groups, bias):
    x = tensor.from_numpy(RNG.normal(size=(2, 16, 40, 40)).astype(np.float32))
    exact, folded = models(lambda: Scaled(groups, bias), [x], False, {}, {"exact": False})
    folded.one, folded.all = exact.one, exact.all
    for value in (0.5, 2.0):
        exact.one[1].set_value(value)
        for _ in range(3):
            want, got = (model(x).to_numpy() for model in (exact, folded))
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert names(folded.graphs[-1])[-1] in ("packed", "conv2d")
    assert "chain" in names(exact.graphs[-1])


#: So many that results are too large for softmax to be fused with others for being short.
CLASSES = 400


class Likelihood(module.Module):
    """A classifier with its loss in separate operations."""

    def __init__(self, joint=False):
        super().__init__()
        self.out, self.optimizer, self.joint = layer.Linear(CLASSES), opt.SGD(lr=0.5), joint

    def forward(self, x):
        return self.out(x)

    def train_one_batch(self, x, t):
        p = autograd.softmax(self.forward(x))
        if self.joint:
            loss = autograd.cross_entropy(p, t)
        else:
            loss = autograd.negative(autograd.reduce_sum(autograd.mul(autograd.log(p), t)))
        self.optimizer(loss)
        return loss


def batch():
    x = tensor.from_numpy(RNG.normal(size=(12, 5)).astype(np.float32))
    labels = np.eye(CLASSES, dtype=np.float32)[RNG.integers(0, CLASSES, 12)]
    return x, tensor.from_numpy(labels)


def test_the_logarithm_of_softmax_is_one_operation():
    x, t = batch()
    exact, near = models(Likelihood, [x], True, {}, {"exact": False})
    for _ in range(5):
        want, got = (model(x, t).to_numpy() for model in (exact, near))
        np.testing.assert_allclose(got, want, rtol=1e-5)
    for name, value in exact.get_params().items():
        np.testing.assert_allclose(
            near.get_params()[name].to_numpy(), value.to_numpy(), rtol=1e-4, atol=1e-5
        )
    assert {"softmax", "softmax_grad"} <= set(names(exact.graphs[-1]))
    assert {"log_softmax", "log_softmax_grad"} <= set(names(near.graphs[-1]))
    assert not {"softmax", "softmax_grad", "log_grad"} & set(names(near.graphs[-1]))


@pytest.mark.parametrize("classes", [2, 5, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_logarithms_are_as_near_as_documented(classes, dtype):
    logits = (RNG.normal(size=(40, classes)) * 12).astype(dtype)
    dl = RNG.normal(size=(40, classes)).astype(dtype)
    found = []
    autograd.set_training(True)
    for way in (lambda x: autograd.log(autograd.softmax(x)), autograd.log_softmax):
        x = tensor.from_numpy(logits, dtype=np.dtype(dtype).name)
        x.requires_grad = x.stores_grad = True
        y = way(x)
        [(_, dx)] = autograd.backward(y, tensor.from_numpy(dl, dtype=x.dtype))
        found.append((y.to_numpy().astype(np.float64), dx.to_numpy().astype(np.float64)))
    unit = (classes + 16) * np.finfo(dtype).eps / 2
    (apart, dx_apart), (log, dx_joint) = found
    normal = log > np.log(np.finfo(dtype).tiny)
    size = np.maximum(1, np.abs(log))
    assert (np.abs(apart - log) <= unit * size)[normal].all()
    slack = np.abs(dl) + np.exp(log) * size * np.abs(dl).sum(1, keepdims=True)
    rows = normal.all(1)
    assert rows.any() and (np.abs(dx_apart - dx_joint) <= unit * slack)[rows].all()


def test_no_probability_is_lost():
    x, t = batch()
    [near] = models(Likelihood, [x], True, {"exact": False})
    far = tensor.from_numpy(1e4 * x.to_numpy())
    for _ in range(4):
        loss = near(far, t)
    assert np.isfinite(loss.to_numpy()).all()


def test_singas_cross_entropy_of_softmax_keeps_every_bit():
    x, t = batch()
    exact, near = models(lambda: Likelihood(joint=True), [x], True, {}, {"exact": False})
    for _ in range(5):
        want, got = (model(x, t).to_numpy() for model in (exact, near))
        np.testing.assert_array_equal(got, want)
    assert "log_softmax" not in names(near.graphs[-1])


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_folded_follows_its_parameters(exact):
    x = tensor.from_numpy(RNG.normal(size=(2, 16, 9, 9)).astype(np.float32))
    replayed, eager = models(Residual, [x], False, {"exact": exact}, {})
    eager.graph(False)
    for scale in (1.0, 0.5, -2.0):
        for model in (replayed, eager):
            model.norms[0].scale.set_value(scale)
            model.norms[1].running_var.set_value(abs(scale))
        for _ in range(3):
            got, want = replayed(x).to_numpy(), eager(x).to_numpy()
            np.testing.assert_allclose(
                got, want, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-4
            )


@pytest.mark.parametrize(
    ("dtype", "compute", "given"),
    [
        ("float16", lambda x: x.sinc(), (30000.0,)),
        ("bfloat16", lambda x: x.sinc(), (23.0,)),
        ("bfloat16", lambda a, b: a.logaddexp(b), (-0.578125, -0.8203125)),
        ("bfloat16", autograd.logaddexp2, (-0.55078125, -1.6640625)),
        ("float16", autograd.addcmul, (-1.0, 1.0009765625, 0.9990234375)),
        ("bfloat16", autograd.addcdiv, (-0.33398438, 1.0, 3.0)),
        ("float16", lambda a, b: a.lerp(b, 0.5), (-50000.0, 60000.0)),
        ("float16", lambda x: x.around(2), (46944.0,)),
        ("bfloat16", lambda x: x.log1p(), (3.515625,)),
        ("float16", lambda x: x.rsqrt(), (3e-8,)),
        ("bfloat16", autograd.gelu_tanh, (-3.4,)),
        ("bfloat16", autograd.mish, (-3.4,)),
        ("bfloat16", autograd.celu, (-0.01,)),
        ("bfloat16", autograd.tanhshrink, (0.1,)),
        ("bfloat16", autograd.hardswish, (-2.9,)),
        ("bfloat16", lambda x, y: autograd.glu(autograd.cat([x, y])), (1.7, 0.3)),
        ("bfloat16", lambda x, y: x.atan2(y), (1.7, 0.3)),
        ("bfloat16", lambda x, y: autograd.polyval([0.3, -1.7, 1.1], x * 1.0), (1.7, 0.3)),
        ("bfloat16", lambda x, y: x.add(y, alpha=1.1), (-1.7, 1.3)),
    ],
)
def test_functions_of_several_operations_round_once(dtype, compute, given):
    short = [tensor.from_numpy(np.array([v], np.float32)).as_type(dtype) for v in given]
    wide = [x.as_type("float32") for x in short]
    made = compute(*short)
    assert made.dtype.name == dtype
    assert made.as_type("float32").item() == compute(*wide).as_type(dtype).as_type("float32").item()


@pytest.mark.parametrize("of", [autograd.median, autograd.nanmedian, autograd.quantile])
def test_medians_of_far_and_near_ends(of):
    """Neither a distance nor a sum overflows, and no digit is lost in the middle."""
    for dtype, ends, want in (
        ("float32", (-3e38, 3e38), 0.0),
        ("float32", (3e38, 3.2e38), np.float32(3.1e38)),
        ("float32", (-1, 1 + 2**-23), 2**-24),
        ("bfloat16", (-1, 1.0078125), 0.00390625),
        ("bfloat16", (-255, 1), -127),
        ("float64", (5e-324, 5e-324), 5e-324),
        ("float32", (-math.inf, 1), -math.inf),
        ("float32", (-1, math.inf), math.inf),
    ):
        x = tensor.from_numpy(np.array(ends), dtype=dtype)
        made = of(x, 0.5) if of is autograd.quantile else of(x)
        assert (made.dtype.name, made.item()) == (dtype, want)


def test_many_terms_of_a_logarithm_of_a_sum():
    x = tensor.from_numpy(np.zeros(70001), dtype="float16")
    assert autograd.logsumexp(x).item() == np.float16(np.log(70001))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_several_operations_round_once(dtype):
    short = tensor.from_numpy(np.linspace(-3.4, 2.0, 28, dtype=np.float32)).as_type(dtype)
    wide = short.as_type("float32")
    autograd.training = True
    try:
        for x in (short, wide):
            x.requires_grad_(True)
        made = [autograd.gradients(autograd.gelu_tanh(x).sum())[x] for x in (short, wide)]
    finally:
        autograd.training = False
    got, want = (g.as_type(dtype).as_type("float32").to_numpy() for g in made)
    np.testing.assert_array_equal(got, want)
