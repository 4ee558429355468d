"""Layers that pad, fold, gate and measure, against NumPy; parameters in lists; dropout for SELU."""

import copy

import numpy as np
import pytest
from chains import names
from gate_cases import CASES, CLASSES, IMAGES, ROWS
from layer_calls import call, close, normal
from recorded import replays
from singa_rs import DTypeError, ShapeError, autograd, layer, module, opt, tensor
from singa_rs.tensor import Tensor


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name):
    one, arrays, want = CASES[name]
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    close(call(copy.deepcopy(one), *arrays), want(*wide), 2e-5)


def test_paddings_of_images_without_a_batch():
    one = layer.ReflectionPad2d((1, 0, 2, 1))
    close(call(one, IMAGES[0]), call(one, IMAGES)[0])


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("Constant", [1, 2, 0, 0, 0]),
        ("Reflection", [1, 2, 3, 2, 1]),
        ("Replication", [1, 2, 3, 3, 3]),
        ("Circular", [1, 2, 3, 1, 2]),
    ],
)
def test_negative_padding_crops(kind, want):
    x = np.arange(4, dtype=np.float32).reshape(1, 4)
    ends = (-1, -1) if kind == "Constant" else (-1, 0)
    close(call(getattr(layer, f"{kind}Pad1d")(ends), x), x[:, 1 : 4 + ends[1]])
    pads = (-1, 2) if kind != "Constant" else (-1, 3)
    made = call(getattr(layer, f"{kind}Pad1d")(pads), x[:, :3] if kind == "Constant" else x)
    close(made, np.float32([want]))
    images = getattr(layer, f"{kind}Pad2d")((-1, -2, 0, -1))
    close(call(images, IMAGES), IMAGES[..., :-1, 1:-2])


def test_bilinear():
    a, b = normal(4, 3), normal(4, 2)
    one = layer.Bilinear(5)
    y = call(one, a, b)
    assert names(one) == ["W", "b"] and one.W.shape == (5, 3, 2)
    assert (one.in1_features, one.in2_features) == (3, 2)
    close(y, np.einsum("ni,oij,nj->no", a, one.W.to_numpy(), b) + one.b.to_numpy())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_that_are_all_empty_lead_to_the_table(mode):
    for x, offsets in ((np.zeros(0, np.int32), np.int32([0, 0])), (np.zeros((2, 0)), None)):
        one = layer.EmbeddingBag(5, 3, mode)
        with autograd._training_scope(True):
            y = one(Tensor(data=x), None if offsets is None else Tensor(data=offsets))
            (slope,) = autograd.gradients(y.sum(), [one.W])
        assert y.tolist() == [[0] * 3] * 2 and slope.tolist() == [[0] * 3] * 5


def test_embedding_bag():
    one = layer.EmbeddingBag(6, 3)
    y = call(one, CLASSES[None])
    assert names(one) == ["W"]
    close(y, one.W.to_numpy()[CLASSES].mean(0, keepdims=True))
    close(one(Tensor(data=CLASSES), [0, 2]).to_numpy()[0], one.W.to_numpy()[[1, 0]].mean(0))
    with pytest.raises(ValueError, match="EmbeddingBag: padding_idx"):
        layer.EmbeddingBag(6, 3, padding_idx=6)
    for wrong in ([1, 2], [0, -1], [0, len(CLASSES) + 1]):
        with pytest.raises(ValueError, match="embedding_bag.*out of range"):
            one(Tensor(data=CLASSES), wrong)


def test_slopes_that_are_learned():
    one, x = layer.PReLU(3), Tensor(data=IMAGES)
    with autograd._training_scope(True):
        loss = one(x).sum()
        grads = dict(autograd.backward(loss))
    want = np.where(IMAGES < 0, IMAGES, 0).sum((0, 2, 3))
    (grad,) = grads.values()
    close(grad.to_numpy(), want)
    with pytest.raises(ShapeError, match="PReLU.*3 channels"):
        one(Tensor(data=ROWS))
    assert call(layer.PReLU(), np.float32(-2.0)) == -0.5


def test_dropout_that_keeps_mean_and_variance():
    x = np.asarray(normal(400, 300))
    one = layer.AlphaDropout(0.3)
    close(call(one, x), x)
    with autograd._training_scope(True):
        y, again = call(one, x), call(one, x)
    values, counts = np.unique(y, return_counts=True)
    dropped = y == values[counts.argmax()]
    assert abs(dropped.mean() - 0.3) < 0.01 and (y != again).any()
    assert abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.03


@pytest.mark.parametrize("function", [autograd.feature_alpha_dropout, autograd.feature_dropout])
def test_dropout_of_whole_channels(function):
    x = Tensor(data=np.ones((40, 50, 2, 3), np.float32))
    x.stores_grad = True
    assert function(x, 0.25) is x
    with autograd._training_scope(True):
        y = function(x, 0.25)
        slope = autograd.gradients(y.sum())[x].to_numpy()
    array = y.to_numpy()
    assert (array == array[:, :, :1, :1]).all()
    low, high = np.unique(array)
    assert abs((array == high).mean() - 0.75) < 0.05
    if function is autograd.feature_dropout:
        assert low == 0
        np.testing.assert_allclose(high, 4 / 3, 1e-6)
    assert (slope[array == low] == 0).all() and np.unique(slope).size == 2


@pytest.mark.parametrize("one, low, high", [
    (layer.Hardtanh(), -1, 1), (layer.Hardtanh(-2, 0.5), -2, 0.5), (layer.ReLU6(), 0, 6),
])  # fmt: skip
def test_no_gradient_at_bounds(one, low, high):
    middle = (low + high) / 2
    x = Tensor(data=np.array([low - 1, low, middle, high, high + 1], np.float32))
    x.stores_grad = True
    with autograd._training_scope(True):
        y = one(x)
        (slope,) = autograd.gradients(y.sum(), [x], create_graph=True)
    assert y.tolist() == [low, low, middle, high, high] and slope.tolist() == [0, 0, 1, 0, 0]


class Mixed(module.Module):
    """Parameters in lists and dictionaries."""

    def __init__(self):
        super().__init__()
        self.scales = layer.ParameterList([np.full(5, 0.5, np.float32), tensor.ones(5)])
        self.named = layer.ParameterDict({"shift": np.zeros(5, np.float32)})
        self.drop = layer.AlphaDropout(0.2)
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        for one in self.scales:
            x = x * one
        return self.drop(x + self.named["shift"])

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def test_parameters_in_lists_are_trained():
    x, y = Tensor(data=ROWS), Tensor(data=ROWS * 2 + 1)
    runs = []
    for use_graph in (True, False):
        net = Mixed()
        net.compile([x], use_graph=use_graph)
        x.device.SetRandSeed(5)
        losses = [net.train_one_batch(x, y).item() for _ in range(6)]
        assert losses[-1] < losses[0] and (not use_graph or replays(net))
        assert list(net.get_params()) == ["scales.0", "scales.1", "named.shift"]
        runs.append((losses, [p.tolist() for p in net.get_params().values()]))
    assert runs[0] == runs[1]
    other = Mixed()
    other.set_params(net.get_params())
    assert [p.tolist() for p in other.get_params().values()] == runs[0][1]
    fresh = copy.deepcopy(net)
    assert fresh.scales[0].tolist() == net.scales[0].tolist()
    assert fresh.scales[0] is not net.scales[0]


def test_lists_of_parameters():
    made = layer.ParameterList([np.zeros(2, np.float32)])
    made.append(tensor.ones(3)).extend([tensor.ones(1)])
    assert len(made) == 3 and [p.shape for p in made] == [(2,), (3,), (1,)]
    made[-1] = tensor.zeros(4)
    assert made[2].shape == (4,) and list(made.get_params()) == ["0", "1", "2"]
    with pytest.raises(IndexError):
        made[3]
    for wrong, error in ((3, TypeError), ("x", TypeError), ([None], TypeError)):
        with pytest.raises(error, match="ParameterList"):
            layer.ParameterList(wrong)
    with pytest.raises(DTypeError, match="ParameterList.*int32"):
        layer.ParameterList([np.zeros(2, np.int32)])


def test_dictionaries_of_parameters():
    made = layer.ParameterDict({"a": np.zeros(2, np.float32)})
    made["b"] = tensor.ones(3)
    made["a"] = tensor.ones(1)
    assert made.keys() == ("a", "b") and [p.shape for p in made.values()] == [(1,), (3,)]
    assert "a" in made and len(made) == 2 and [k for k, _ in made.items()] == list(made)
    del made["a"]
    assert list(made.get_params()) == ["b"]
    with pytest.raises(KeyError):
        made["a"]
    for key in ("a.b", "", "forward"):
        with pytest.raises(ValueError, match="without dots"):
            made[key] = tensor.ones(1)
    with pytest.raises(TypeError, match="want a mapping"):
        layer.ParameterDict([3])


REFUSED = {
    "CELU: alpha": (ValueError, lambda: layer.CELU(0)),
    "Hardtanh: got 1 to 0": (ValueError, lambda: layer.Hardtanh(1, 0)),
    "RReLU: got slopes": (ValueError, lambda: layer.RReLU(1, 0)),
    "Hardshrink: lambd": (ValueError, lambda: layer.Hardshrink(-1)),
    "PReLU: num_parameters": (ValueError, lambda: layer.PReLU(0)),
    "ZeroPad2d: padding: got 1.5": (TypeError, lambda: layer.ZeroPad2d(1.5)),
    "ZeroPad1d: got shape .* left out": (
        ShapeError,
        lambda: call(layer.ZeroPad1d((-7, 0)), np.zeros((1, 1, 6), np.float32)),
    ),
    "ZeroPad2d: padding: .* four": (ValueError, lambda: layer.ZeroPad2d((1, 2))),
    "ConstantPad1d: value": (TypeError, lambda: layer.ConstantPad1d(1, "x")),
    "ReflectionPad1d: got shape": (ShapeError, lambda: call(layer.ReflectionPad1d(1), IMAGES)),
    "Unfold: kernel_size": (ValueError, lambda: layer.Unfold(0)),
    "Fold: output_size": (TypeError, lambda: layer.Fold(1.5, 2)),
    "Bilinear: got 2 arguments": (TypeError, lambda: layer.Bilinear(2, 3)),
    "Bilinear: got shape": (ShapeError, lambda: call(layer.Bilinear(4, 5, 2), ROWS, ROWS)),
    "Softmax2d: got shape": (ShapeError, lambda: call(layer.Softmax2d(), ROWS)),
    "UpsamplingNearest2d: got shape": (
        ShapeError,
        lambda: call(layer.UpsamplingNearest2d(2), ROWS),
    ),
    "MultiMarginLoss: p": (ValueError, lambda: layer.MultiMarginLoss(3)),
    "TripletMarginWithDistanceLoss: distance_function": (
        TypeError,
        lambda: layer.TripletMarginWithDistanceLoss(3),
    ),
    "PoissonNLLLoss: eps": (ValueError, lambda: layer.PoissonNLLLoss(eps=0)),
    "AlphaDropout: ratio": (ValueError, lambda: layer.AlphaDropout(1)),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    error, make = REFUSED[text]
    with pytest.raises(error, match=text):
        make()
