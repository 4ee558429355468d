"""Exported models: onnx's checker takes them, onnxruntime computes what they compute here, and a
dynamic axis may have any size."""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import needs, real, there
from singa_rs import autograd, layer, module, opt, sonnx, tensor
from singa_rs.errors import GraphError
from singa_rs.record.trees import flatten
from singa_rs.tensor import Placeholder, Tensor, to_numpy

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES))
A = autograd


def whole(*shape, high=9):
    return np.random.default_rng(shape).integers(1, high, shape).astype(np.int32)


class Layers(module.Module):
    """Layers one after another."""

    def __init__(self, *layers):
        super().__init__()
        self.body = layer.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


def here(model, arrays):
    """The results in evaluation."""
    autograd.training = False
    if isinstance(model, module.Module):
        model.eval()
    call = model.forward if isinstance(model, module.Module) else model
    found = []
    flatten(call(*(Tensor(data=x, dtype=x.dtype.name) for x in arrays)), found)
    return [to_numpy(one) for one in found]


def kinds(proto):
    """The operators in order, constants left out."""
    return [node.op_type for node in proto.graph.node if node.op_type != "Constant"]


def check(model, arrays, dynamic=None, others=(), **options):
    """Compares an exported model for its inputs, and for others of other sizes."""
    here(model, arrays)  # makes the parameters
    proto = sonnx.model_proto(model, arrays, dynamic=dynamic, **options)
    for given in (arrays, *others):
        want, got = here(model, given), there(proto, given)
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return proto


BATCH = {"x": {0: "batch"}}
STEPS = {"x": {0: "batch", 1: "time"}}

FUNCTIONS = {
    "reductions": lambda x: (
        A.reduce_sum(x, (1,), 0), A.mean(x, 1), A.reduce_max(x, (1, 2), 1), A.argmax(x, -1),
        A.std(x, 2), A.cumsum(x, 1), A.softmax(x, 1), A.log_softmax(x, 2), A.any(x > 1, 1),
        A.all(x > -9, 1), A.reduce_prod(x, (1,), 0), A.var(x, 1),
    ),
    "comparisons": lambda x: (
        x > 0.5, x <= 0, x != 1, (x > 0) & (x < 1), A.where(x > 0, x, -x), A.clip(x, -1, 1),
        x**2, 2 - x, x // 0.3, x % 0.3, A.maximum(x, x * x), ~(x > 0), A.minimum(x, -x),
    ),
    "indices": lambda x: (
        x[:, 1:3, ::2], x[..., ::-1], A.transpose(x, (2, 0, 1)), A.flatten(x), A.stack([x, x], 1),
        A.tile(x, (1, 2, 1)), *A.split(x, 1, [1, 3]), A.topk(x, 2), x[:, -1], x[:, None],
        A.tril(x), A.flip(x, 2), A.roll(x, 1, 1),
    ),
    "padding": lambda x: (
        A.pad(x, "constant", [0, 1, 2, 0, 3, 1], 1.5), A.pad(x, "reflect", [0, 1, 2, 0, 2, 1], 0),
    ),
    "products": lambda x: (A.einsum("bij,bkj->bik", x, x), A.matmul(x, x.transpose((0, 2, 1)))),
    "positions": lambda x: (A.rotary_embedding(x[..., :4]), A.sinusoidal_positions(x)),
    "norms": lambda x: (A.rms_norm(x), A.group_norm(x, 2), A.instance_norm(x)),
    "taken": lambda x: (A.take_along_axis(x, A.argsort(x, 1), 1), A.one_hot(A.argmax(x, 2), 5)),
}  # fmt: skip


NEWER = {"norms": needs(23)}


@pytest.mark.parametrize("name", [pytest.param(n, marks=NEWER.get(n, ())) for n in FUNCTIONS])
def test_functions(name):
    check(FUNCTIONS[name], [real(3, 4, 5)], BATCH, [[real(7, 4, 5)], [real(1, 4, 5)]])


ELEMENTWISE = """
    abs sign exp sqrt reciprocal ceil floor rounde round sin cos tan atan sinh cosh tanh asinh
    sigmoid relu softplus softsign erf gelu silu mish expm1 log1p square leakyrelu elu selu
    hardsigmoid hardswish gelu_tanh log2 exp2 rsqrt
""".split()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_element_by_element(name):
    x = np.linspace(0.1, 3, 12, dtype=np.float32).reshape(3, 4)
    check(getattr(autograd, name), [x])


NETWORKS = {
    "dense": (lambda: (layer.Linear(8), layer.ReLU(), layer.Linear(3)), (5,)),
    "images": (
        lambda: (
            layer.Conv2d(8, 3, padding=1), layer.BatchNorm2d(), layer.ReLU(), layer.MaxPool2d(2, 2),
            layer.Flatten(), layer.Dropout(0.5), layer.Linear(3),
        ),
        (3, 8, 8),
    ),
    "lines": (lambda: (layer.Conv1d(4, 6, 3, dilation=2), layer.AvgPool1d(2)), (4, 11)),
    "volumes": (lambda: (layer.Conv3d(4, 6, 3, stride=2),), (4, 5, 5, 5)),
    "transposed": (lambda: (layer.ConvTranspose2d(4, 3, 3, stride=2),), (4, 6, 6)),
    "adaptive": (lambda: (layer.AdaptiveAvgPool2d(1), layer.Flatten()), (4, 6, 6)),
    "enlarged": (lambda: (layer.Upsample(2), layer.Conv2d(2, 1)), (3, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_any_batch(name):
    layers, shape = NETWORKS[name]
    sizes = [[real(n, *shape)] for n in (7, 1)]
    check(Layers(*layers()), [real(4, *shape)], BATCH, sizes)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "make", [layer.BatchNorm2d, layer.InstanceNorm, lambda: layer.GroupNorm(2)]
)
def test_normalisations_of_16_bit_floats(make, dtype):
    """ONNX asks for one dtype of all inputs, or of x and the result."""
    model, x = Layers(make()).eval(), Tensor(data=real(2, 4, 3, 3), dtype=dtype)
    want = model(x)
    proto = sonnx.model_proto(model, [x])
    onnx.checker.check_model(proto, full_check=True)
    (got,) = sonnx.prepare(proto).run([x])
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())


@pytest.mark.parametrize("kind", [layer.RNN, layer.LSTM, layer.GRU])
@pytest.mark.parametrize("deep", [{}, {"num_layers": 2, "bidirectional": True}])
def test_recurrent_networks_of_any_length(kind, deep):
    net = kind(3, 5, batch_first=True, **deep)
    made = check(lambda x: net(x), [real(4, 7, 3)], STEPS, [[real(2, 9, 3)], [real(1, 1, 3)]])
    assert kinds(made).count(kind.__name__) == (4 if deep else 1) and "MatMul" not in kinds(made)


@needs(24)
def test_attention_and_normalisation_are_operators():
    net = Layers(layer.TransformerEncoderLayer(8, 2, 16), layer.RMSNorm(8))
    made = check(net, [real(2, 6, 8)], STEPS, [[real(3, 9, 8)]])
    found = set(kinds(made))
    assert {"Attention", "LayerNormalization", "RMSNormalization"} <= found
    assert not found & {"Softmax", "ReduceMean"}


@needs(24)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_a_mask(causal):
    mask = np.array([True, True, False, True, True, True])

    def attend(x):
        return A.scaled_dot_product_attention(
            x, x, x, mask=tensor.from_numpy(mask), is_causal=causal
        )

    check(attend, [real(2, 3, 6, 4)], BATCH, [[real(5, 3, 6, 4)]])


def test_embeddings_take_any_integers():
    net = Layers(layer.Embedding(10, 6))
    check(net, [whole(2, 3)], STEPS, [[whole(1, 5)]])


def test_writes_into_new_tensors():
    def padded(x):
        made = tensor.zeros((3, 6))
        made[:, 1:5] = x
        return made

    assert kinds(check(padded, [real(3, 4)])) == ["Pad"]


def file(name):
    """The module of an example, whose name another one may have."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def example(name, kind, **options):
    """A model of the examples, small."""
    return getattr(file(name), kind)(argparse.Namespace(lr=0.1, **options))


def in_words(name, kind, **options):
    return getattr(file(name), kind)(11, argparse.Namespace(lr=0.1, **options))


@needs(24)
def test_the_language_model_of_any_length():
    net = in_words("gpt", "GPT", width=16, heads=2, layers=2)
    check(net, [whole(2, 8)], STEPS, [[whole(3, 13)], [whole(1, 1)]])


def test_the_recurrent_language_model_of_any_length():
    net = in_words("char_lstm", "CharLSTM", width=16, layers=2)
    check(net, [whole(2, 8)], STEPS, [[whole(3, 13)]])


def test_the_network_of_pictures():
    net = example("unet", "UNet", width=4, levels=3)
    check(net, [real(2, 1, 16, 16)], BATCH, [[real(3, 1, 16, 16)]])


@needs(24)
def test_the_classifier_of_words():
    net = example("classify", "Classifier", width=16, heads=2, layers=1, dropout=0.1)
    length = file("classify").LENGTH
    check(net, [whole(2, length)], BATCH, [[whole(5, length)]])


@needs(24)
def test_the_translator():
    net = example("translate", "Translator", width=16, heads=2, layers=1, dropout=0.1)
    length = file("translate").LENGTH
    axes = {"x0": {0: "batch"}, "x1": {0: "batch", 1: "time"}}
    check(net, [whole(2, length), whole(2, 5)], axes, [[whole(4, length), whole(4, 3)]])


def test_the_digits():
    net = file("digits").Net(10, 8, opt.SGD(0.1))
    check(net, [real(4, 1, 8, 8)], BATCH, [[real(1, 1, 8, 8)]])


def test_random_codes_are_drawn_by_the_file():
    net = file("vae").VAE(12, argparse.Namespace(width=8, latent=2, lr=0.1))
    x = np.repeat(real(1, 12), 4, 0)
    want = here(net, [x])
    got = there(sonnx.model_proto(net, [x], dynamic=BATCH), [x])
    for i in (1, 2):  # mean and variance of the codes
        np.testing.assert_allclose(got[i], want[i], atol=1e-5)
    assert np.ptp(got[0], 0).max() > 1e-3


# ---- what is written ---------------------------------------------------------------------------


def test_names_axes_and_parameters(tmp_path):
    net = Layers(layer.Linear(3))
    net(tensor.zeros((2, 4)))
    net.export(
        tmp_path / "net.onnx", [Placeholder((2, 4))],
        input_names=["rows"], output_names=["scores"], dynamic={"rows": {0: "batch"}}, name="net",
    )  # fmt: skip
    proto = onnx.load(tmp_path / "net.onnx")
    (given,), (made,) = proto.graph.input, proto.graph.output
    assert (given.name, made.name, proto.graph.name) == ("rows", "scores", "net")
    dims = [d.dim_param or d.dim_value for d in made.type.tensor_type.shape.dim]
    assert dims == ["batch", 3]
    assert {"body.0.W", "body.0.b"} <= {one.name for one in proto.graph.initializer}


def test_folding_batch_normalisation():
    net = Layers(layer.Conv2d(4, 3), layer.BatchNorm2d(), layer.ReLU())
    autograd.training = True
    for seed in range(3):
        net.forward(Tensor(data=real(8, 3, 6, 6, seed=seed)))
    plain = check(net, [real(2, 3, 6, 6)], BATCH)
    folded = check(net, [real(2, 3, 6, 6)], BATCH, fold_batch_norm=True)
    assert kinds(plain) == ["Conv", "BatchNormalization", "Relu"]
    assert kinds(folded) == ["Conv", "Relu"]


def test_exporting_leaves_the_model_alone():
    net = Layers(layer.Linear(3), layer.BatchNorm1d(), layer.Dropout(0.5))
    net.train()
    net.forward(Tensor(data=real(4, 5)))
    before = {name: to_numpy(one) for name, one in net.get_states().items()}
    sonnx.model_proto(net, [real(4, 5)], dynamic=BATCH)
    assert net.training
    for name, one in net.get_states().items():
        np.testing.assert_array_equal(to_numpy(one), before[name])


def test_a_model_that_was_never_called():
    check(Layers(layer.Linear(3)), [real(2, 4)])
    net = Layers(layer.Linear(3))
    proto = sonnx.model_proto(net, [real(2, 4)])
    np.testing.assert_allclose(there(proto, [real(2, 4)])[0], here(net, [real(2, 4)])[0], atol=1e-6)


# ---- what is refused ---------------------------------------------------------------------------


def test_constants_of_an_axis_size_are_refused():
    def positions(x):
        return x + tensor.from_numpy(np.arange(x.shape[1], dtype=np.float32))

    with pytest.raises(ValueError, match="a constant of shape"):
        sonnx.model_proto(positions, [real(2, 6)], dynamic={"x": {1: "time"}})


def test_programs_that_depend_on_a_size_are_refused():
    def odd(x):
        return A.relu(x) if x.shape[0] % 3 else A.tanh(x)

    with pytest.raises(ValueError, match="got tanh for .* and relu for"):
        sonnx.model_proto(odd, [real(6, 2)], dynamic=BATCH)
    with pytest.raises(ValueError, match="does not|not whole|depend"):
        sonnx.model_proto(lambda x: x * x.shape[0] ** 0.5, [real(6, 2)], dynamic=BATCH)


def test_reading_a_value_is_refused():
    with pytest.raises(GraphError):
        sonnx.model_proto(lambda x: x * x.to_numpy().max(), [real(2, 2)])


def test_writing_into_parameters_is_refused():
    state = tensor.zeros((2, 2))
    state.to_numpy()

    def count(x):
        state.copy_from(x)
        return state

    with pytest.raises(ValueError, match="was there before"):
        sonnx.model_proto(count, [real(2, 2)])


@pytest.mark.parametrize(
    "options",
    [{"input_names": ["a", "b"]}, {"dynamic": {"z": {0: "n"}}}, {"dynamic": {"x": {5: "n"}}}],
)
def test_names_and_axes_that_do_not_fit(options):
    with pytest.raises(ValueError, match="export"):
        sonnx.model_proto(A.relu, [real(2, 2)], **options)


def test_code_of_the_user_is_refused():
    class Double(A.Operator):
        host = True

        def infer(self, x):
            return x

        def forward(self, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="host"):
        sonnx.model_proto(lambda x: Double()(x)[0], [real(2, 2)])


def test_operators_that_an_opset_does_not_have_are_refused():
    with pytest.raises(NotImplementedError, match="export: opset 22 has no RMSNormalization"):
        sonnx.model_proto(A.rms_norm, [real(3, 4)], opset=22)
