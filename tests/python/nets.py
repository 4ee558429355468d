"""Nets of SINGA 1.x for the tests."""

import numpy as np
from singa_rs import tensor
from singa_rs.compat import layer, loss, metric
from singa_rs.compat.net import FeedForwardNet

IMAGES = np.random.default_rng(1).normal(size=(8, 3, 12, 12)).astype(np.float32)
LABELS = np.arange(8, dtype=np.int32) % 4


def filled(net: FeedForwardNet, seed: int = 0) -> FeedForwardNet:
    """The net with drawn weights; averages as they begin."""
    rng = np.random.default_rng(seed)
    for name, value in zip(net.param_names(), net.param_values(), strict=True):
        if not name.endswith(("/mean", "/var")):
            value.copy_from_numpy((rng.normal(size=value.shape) * 0.1).astype(np.float32))
    return net


def perceptron() -> FeedForwardNet:
    """Three layers in a row, of samples (6,)."""
    net = FeedForwardNet(loss.SoftmaxCrossEntropy(), metric.Accuracy())
    net.add(layer.Dense("hidden", 5, input_sample_shape=(6,)))
    net.add(layer.Activation("tanh", "tanh"))
    net.add(layer.Dense("out", 3))
    return filled(net)


def branched() -> FeedForwardNet:
    """Convolutions with a shortcut, of `IMAGES`: most kinds of layers."""
    net = FeedForwardNet(loss.SoftmaxCrossEntropy(), metric.Accuracy())
    net.add(layer.Conv2D("conv", 4, 3, input_sample_shape=(3, 12, 12)))
    net.add(layer.BatchNormalization("bn"))
    net.add(layer.Activation("relu"))
    split = net.add(layer.Split("split", 2))
    side = net.add(layer.Conv2D("side", 4, 3, use_bias=False), split)
    net.add(layer.Merge("merge"), [side, split])
    net.add(layer.MaxPooling2D("pool", 2, 2, "valid"))
    net.add(layer.Dropout("drop", 0.3))
    net.add(layer.Flatten("flat"))
    net.add(layer.Dense("dense", 4))
    return filled(net)


def two_ends() -> FeedForwardNet:
    """Two inputs, `a` (2,) and `b` (3,), and two outputs, `sum` (1,) and `all` (5,)."""
    net = FeedForwardNet()
    a = net.add(layer.Dummy("a", (2,)), [])
    b = net.add(layer.Dense("b", 3, input_sample_shape=(3,)), [])
    net.add(layer.Concat("joined", 1), [a, b])
    split = net.add(layer.Split("split", 2))
    net.add(layer.Dense("sum", 1), split)
    net.add(layer.Dummy("all"), split)
    return filled(net)


def batch(*shape: int, seed: int = 3) -> tensor.Tensor:
    """A drawn tensor."""
    return tensor.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def values(net: FeedForwardNet) -> list[bytes]:
    """The bits of all parameters."""
    return [value.to_numpy().tobytes() for value in net.param_values()]
