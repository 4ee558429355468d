"""Whatever a user can hold can be pickled and copied, and the copy works like the original."""

import copy
import pickle

import numpy as np
import pytest
from gate_cases import MADE
from layer_calls import normal
from singa_rs import (
    autograd,
    initializer,
    layer,
    module,
    opt,
)  # fmt: skip
from singa_rs.tensor import Tensor


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def oldest(value):
    return pickle.loads(pickle.dumps(value, 2))


WAYS = [pickled, oldest, copy.deepcopy, copy.copy]
each_way = pytest.mark.parametrize("way", WAYS)
each_deep_way = pytest.mark.parametrize("way", WAYS[:3])

IMAGES, ROWS, CLASSES = normal(2, 3, 8, 8), normal(4, 6), np.int32([0, 2, 1, 1])
NAMES = ["RELU", "SIGMOID", "TANH", "GELU", "SILU", "ELU", "SELU", "LEAKYRELU"]
NAMES += ["HARDSIGMOID", "SOFTPLUS", "SOFTSIGN"]
WINDOWS = [layer.MaxPool2d(2), layer.AvgPool2d(3, 1, 1), layer.Pooling2d(2, is_max=False)]
WINDOWS += [layer.MaxPool2d(3, pad_mode="SAME_UPPER"), layer.GlobalAvgPool2d()]
WINDOWS += [layer.ConvTranspose2d(2, 3, group=1), layer.LPPool2d(3, 2)]
LAYERS = {
    **{f"Linear, {name}": (layer.Linear(3, activation=name), [ROWS]) for name in NAMES},
    "Linear, lower case": (layer.Linear(3, activation="relu"), [ROWS]),
    "Linear, a function": (layer.Linear(3, activation=autograd.tanh), [ROWS]),
    "Linear, a layer": (layer.Linear(3, activation=layer.GELU()), [ROWS]),
    "Linear, initialisers": (layer.Linear(3, kernel_init="he_uniform", bias_init="ones"), [ROWS]),
    "Linear, a function for W": (layer.Linear(3, kernel_init=initializer.xavier), [ROWS]),
    "Gemm": (layer.Gemm(3, 0.5, 2.0), [ROWS]),
    "Embedding": (layer.Embedding(3, 4), [CLASSES]),
    "Embedding, uniform": (layer.Embedding(3, 4, "uniform"), [CLASSES]),
    "Embedding, by name": (layer.Embedding(3, 4, "zeros"), [CLASSES]),
    "Conv2d": (layer.Conv2d(2, 3, activation="RELU", padding=1), [IMAGES]),
    "Conv2d, same": (layer.Conv2d(2, 3, stride=2, pad_mode="SAME_LOWER"), [IMAGES]),
    "SeparableConv2d": (layer.SeparableConv2d(2, 3), [IMAGES]),
    "BatchNorm2d": (layer.BatchNorm2d(), [IMAGES]),
    **{
        type(one).__name__: (one, [IMAGES])
        for one in (
            layer.LayerNorm(axis=-2), layer.RMSNorm(), layer.GroupNorm(1), layer.Dropout2d(),
            layer.InstanceNorm(affine=True), layer.AdaptiveAvgPool2d(3), layer.PixelUnshuffle(2),
            layer.AdaptiveMaxPool2d((2, None)), layer.Upsample(2), layer.Identity(),
            layer.SyncBatchNorm(),
        )
    },
    **{
        type(one).__name__: (one, [normal(2, 3, 8)])
        for one in (
            layer.BatchNorm1d(), layer.Dropout1d(), layer.AdaptiveAvgPool1d(3),
            layer.AdaptiveMaxPool1d(3), layer.MultiHeadAttention(8, 2, kv_heads=1, rotary=True),
            layer.TransformerEncoderLayer(8, 2, 6), layer.SinusoidalPositions(),
            layer.RotaryPositions(), layer.Conv1d(2, 3, padding="same"), layer.GlobalAvgPool1d(),
            layer.ConvTranspose1d(2, 3, output_padding=1, stride=2, kernel_init="he_uniform"),
            layer.LPPool1d(2, 3),
        )
    },
    "TransformerDecoderLayer": (
        layer.TransformerDecoderLayer(8, 2, 6, norm_first=True), [normal(2, 3, 8), normal(2, 4, 6)]
    ),
    **{
        type(one).__name__: (one, [normal(2, 3, 4, 4, 4)])
        for one in (
            layer.BatchNorm3d(), layer.Dropout3d(), layer.AdaptiveAvgPool3d(2),
            layer.AdaptiveMaxPool3d(2), layer.Conv3d(2, 2), layer.ConvTranspose3d(2, 2, stride=2),
            layer.MaxPool3d(2, ceil_mode=True), layer.AvgPool3d(2, divisor_override=3),
            layer.LPPool3d(1, 2), layer.GlobalAvgPool3d(),
        )
    },
    **{
        type(one).__name__: (one, [normal(2, 3, 5)])
        for one in (
            layer.RNN(5, 4, 2, "relu"), layer.LSTM(5, 4, proj_size=2, bidirectional=True),
            layer.GRU(None, 4, batch_first=True, dropout=0.2), layer.CudnnRNN(4, num_layers=2),
        )
    },
    **{
        type(one).__name__: (one, [ROWS])
        for one in (layer.RNNCell(6, 4), layer.LSTMCell(6, 4), layer.GRUCell(None, 4))
    },
    "RNN, steps": (layer.RNN(6, 4), None),
    "PixelShuffle": (layer.PixelShuffle(2), [normal(2, 4, 3, 3)]),
    "Embedding, padding": (layer.Embedding(3, 4, padding_idx=-1), [CLASSES]),
    **{f"window {i}": (one, [IMAGES]) for i, one in enumerate(WINDOWS)},
    **{
        type(one).__name__: (one, [normal(*x), np.zeros(x, np.int64)])
        for one, x in (
            (layer.MaxUnpool1d(2), (2, 3, 4)), (layer.MaxUnpool2d(2), (2, 3, 2, 2)),
            (layer.MaxUnpool3d(2, 1), (2, 3, 2, 1, 2)),
        )
    },
    "MaxPool1d": (layer.MaxPool1d(2), [normal(2, 3, 8)]),
    "AvgPool1d": (layer.AvgPool1d(2), [normal(2, 3, 8)]),
    **{
        type(one).__name__: (one, [ROWS])
        for one in (
            layer.ReLU(), layer.Sigmoid(), layer.Tanh(), layer.GELU(), layer.SiLU(),
            layer.LeakyReLU(0.2), layer.ELU(0.5), layer.SELU(), layer.HardSigmoid(),
            layer.SoftPlus(), layer.SoftSign(), layer.Mish(), layer.Hardswish(), layer.SoftMax(),
            layer.Flatten(), layer.Dropout(),
            layer.Reshape((8, 3)),
        )
    },
    "Add": (layer.Add(), [ROWS, ROWS]),
    "Cat": (layer.Cat(1), None),
    "SoftMaxCrossEntropy": (layer.SoftMaxCrossEntropy(), [ROWS, CLASSES]),
    "MeanSquareError": (layer.MeanSquareError(), [ROWS, ROWS + 1]),
    "CrossEntropy": (layer.CrossEntropy(), [np.abs(ROWS), np.abs(ROWS)]),
    "BinaryCrossEntropy": (layer.BinaryCrossEntropy(), [np.abs(ROWS) / 9, np.abs(ROWS) / 9]),
    "RankingLoss": (layer.RankingLoss(0.3), [ROWS, ROWS + 1]),
    "NLLLoss": (layer.NLLLoss(reduction="sum"), [ROWS, CLASSES]),
    "BCEWithLogitsLoss": (layer.BCEWithLogitsLoss(), [ROWS, np.abs(ROWS)]),
    "KLDivLoss": (layer.KLDivLoss("batchmean"), [ROWS, np.abs(ROWS)]),
    "L1Loss": (layer.L1Loss("none"), [ROWS, ROWS + 1]),
    "SmoothL1Loss": (layer.SmoothL1Loss(beta=0.3), [ROWS, ROWS + 1]),
    "HuberLoss": (layer.HuberLoss(delta=0.3), [ROWS, ROWS + 1]),
    "CosineSimilarity": (layer.CosineSimilarity(-1), [ROWS, ROWS + 1]),
    "CosineEmbeddingLoss": (layer.CosineEmbeddingLoss(0.1), [ROWS, ROWS + 1, CLASSES]),
    "CTCLoss": (
        layer.CTCLoss(),
        [normal(4, 2, 3), np.int32([[1, 2], [2, 1]]), np.int32([4, 3]), np.int32([2, 1])],
    ),
    "TripletMarginLoss": (layer.TripletMarginLoss(p=1), [ROWS, ROWS + 1, 2 * ROWS]),
    "Sequential": (layer.Sequential(layer.Linear(3), layer.ReLU(), autograd.tanh), [ROWS]),
    "Sequential, named": (layer.Sequential({"a": layer.Linear(3), "b": layer.ELU()}), [ROWS]),
    **MADE,
}  # fmt: skip


def test_no_layer_is_forgotten():
    made = {type(one).__name__ for one, _ in LAYERS.values()}
    lists = {"ModuleDict", "ModuleList", "ParameterDict", "ParameterList"}
    others = {"KeyValueCache", "Layer", "Parameter", "RNN_Base"}
    assert made | others | lists == set(layer.__all__)


def call(one, arrays):
    if arrays is None:
        made = one([Tensor(data=ROWS), Tensor(data=ROWS)])
        return (made[0][-1] if isinstance(made, tuple) else made).to_numpy()
    made = one(*(Tensor(data=a) for a in arrays))
    return (made[0] if isinstance(made, tuple) else made).to_numpy()


def params(one):
    return {name: t.to_numpy() for name, t in one.get_states().items()}


@each_way
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, way):
    original, arrays = LAYERS[name]
    original = copy.deepcopy(original)
    fresh = way(original)
    call(fresh, arrays)  # before the original's first call, so it creates its own tensors
    assert way is copy.copy or not original.get_states()
    want = call(original, arrays)
    made = way(original)
    np.testing.assert_array_equal(call(made, arrays), want)
    assert list(made.get_states()) == list(original.get_states())
    for key, one in params(made).items():
        np.testing.assert_array_equal(one, original.get_states()[key].to_numpy())
    for key, one in made.get_params().items():
        assert (one is original.get_params()[key]) == (way is copy.copy)
        assert one.stores_grad and one.name == original.get_params()[key].name


class Net(module.Module):
    def __init__(self, optimizer=None):
        super().__init__()
        self.conv = layer.Conv2d(4, 3, activation="RELU")
        self.rest = [layer.BatchNorm2d(), layer.Flatten(), layer.Linear(3, activation="TANH")]
        self.optimizer = optimizer or opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        x = self.conv(x)
        for one in self.rest:
            x = one(x)
        return x

    def train_one_batch(self, x, y):
        out = self.forward(x)
        value = autograd.softmax_cross_entropy(out, y)
        self.optimizer(value)
        return out, value


LABELS = np.int32([0, 2])


def with_groups():
    made = opt.SGD(opt.Warmup(2, opt.OnPlateau(0.1)), 0.9, clip_norm=1.0)
    made.group("conv", lr=0.01, weight_decay=opt.LinearDecay(0.1, 3))
    return made


OPTIMIZERS = {
    "SGD": lambda: opt.SGD(0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda: opt.Adam(opt.ExponentialDecay(0.1, 2, 0.5, staircase=True)),
    "AdamW": lambda: opt.AdamW(),
    "groups": with_groups,
    "NAdam": lambda: opt.NAdam(0.01, weight_decay=0.1),
    "RMSProp, all": lambda: opt.RMSProp(0.01, momentum=0.9, centered=True),
    "RMSProp": lambda: opt.RMSProp(0.01),
    "AdaGrad": lambda: opt.AdaGrad(opt.Constant(0.1)),
}


def steps(net, count):
    return [net(IMAGES, LABELS)[1].item() for _ in range(count)]


@each_deep_way
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_copied_models_train_like_the_original(name, way):
    net = Net(OPTIMIZERS[name]())
    steps(net, 3)
    made = way(net)
    assert list(made.get_states()) == list(net.get_states())
    assert made.optimizer.get_states().keys() == net.optimizer.get_states().keys()
    before = params(net)
    got = steps(made, 3)
    for key, one in params(net).items():
        np.testing.assert_array_equal(one, before[key])
    assert got == steps(net, 3)
    assert set(made.optimizer.get_states()) == set(net.optimizer.get_states())


@each_deep_way
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_alone_remember_their_parameters(name, way):
    """A copy that is used with the original's parameters continues where the original was."""
    one, other = Net(OPTIMIZERS[name]()), Net(OPTIMIZERS[name]())
    one(IMAGES, LABELS)
    other.load = other(IMAGES, LABELS)
    other.set_states(one.get_states())
    other.optimizer.set_states(one.optimizer.get_states())
    steps(one, 2), steps(other, 2)
    other.optimizer = way(other.optimizer)
    assert steps(one, 3) == steps(other, 3)
    want, got = one.optimizer.get_states(), other.optimizer.get_states()
    assert {k: v if k == "step_counter" else list(v) for k, v in got.items()} == {
        k: v if k == "step_counter" else list(v) for k, v in want.items()
    }


def test_copied_optimizers_with_two_parameters_of_one_name():
    optimizer, grad = opt.SGD(0.1, momentum=0.9), Tensor((2,)).set_value(1)
    first, second = Tensor((2,)), Tensor((2,))
    for one in (first, second):
        optimizer.apply("W", one, grad)
    other = copy.deepcopy(optimizer)
    with pytest.raises(ValueError, match="2 parameters named 'W'"):
        other.apply("W", first, grad)
    different = Tensor((3,))
    other.apply("W", different, Tensor((3,)))
    assert sorted(other.moments) == ["W", "W#2", "W#3"]


def test_new_parameters_do_not_take_moments_in_use():
    optimizer, grad = opt.SGD(0.1, momentum=0.9), Tensor((2,)).set_value(1)
    held = {"W": Tensor((2,))}
    optimizer.apply("W", held["W"], grad)
    other, copied = copy.deepcopy((optimizer, held))
    other.apply("W", copied["W"], grad)
    other.apply("W", Tensor((2,)), grad)
    assert {name: m.tolist()[0] for name, m in other.moments.items()} == pytest.approx(
        {"W": 1.9, "W#2": 1}
    )


@each_deep_way
def test_values_that_wait_for_their_tensors(tmp_path, way):
    net, fresh = Net(), Net()
    steps(net, 2)
    net.save_states(tmp_path / "s")
    fresh.load_states(tmp_path / "s")
    fresh.optimizer.set_states(net.optimizer.get_states())
    fresh = way(fresh)
    assert steps(fresh, 3) == steps(net, 3)


@each_deep_way
def test_names_below_a_copied_model(way):
    class Helper:
        pass

    class Outer(module.Module):
        def __init__(self):
            super().__init__()
            self.helper = Helper()
            self.helper.fc = layer.Linear(2)
            self.inner = Net()
            self.register_layers({"named": layer.Linear(3)})

        def forward(self, x):
            return self.helper.fc(self.named(self.inner(x)))

    Helper.__qualname__, Outer.__qualname__ = "Helper", "Outer"
    globals().update(Helper=Helper, Outer=Outer)
    net = Outer()
    net.forward(IMAGES)
    made = way(net)
    assert list(made.inner.conv.get_params()) == ["inner.conv.W", "inner.conv.b"]
    assert list(made.get_params()) == list(net.get_params())
    assert "Linear_0.W" in made.get_params()
    made.helper.fc.W.set_value(1.0)
    assert (made.get_params()["Linear_0.W"].to_numpy() == 1).all()
    assert not (net.helper.fc.W.to_numpy() == 1).any()


def test_layers_that_move_to_another_model_are_renamed():
    net = Net()
    net.forward(IMAGES)
    for way in WAYS[:3]:
        other = module.Module()
        other.head = way(net.conv)
        assert [one.name for one in other.get_params().values()] == ["head.W", "head.b"]


def test_shallow_copies_share_tensors_but_not_their_names():
    net = Net()
    net.graph(True)
    net.tap_of = net.tap("conv")
    steps(net, 3)
    made = copy.copy(net)
    assert made.conv is net.conv and made._graphs is not net._graphs and made.taps == {}
    made.extra = layer.Linear(2)
    made.register_layers({"more": layer.ReLU()})
    assert not hasattr(net, "extra") and not hasattr(net, "more")
    assert made.graphs == [] and len(net.graphs) == 1
    steps(made, 4)
    assert made.graphs
