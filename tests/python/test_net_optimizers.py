"""SINGA 1.x's optimizers, losses and metrics."""

import math

import numpy as np
import pytest
from nets import LABELS, batch, perceptron, values
from singa_rs import tensor
from singa_rs.compat import layer, loss, metric, optimizer
from singa_rs.compat.net import FeedForwardNet
from singa_rs.errors import GraphError

# ---- optimizers ----------------------------------------------------------------------------------


def by_numpy(name: str, p: np.ndarray, grads: list[np.ndarray], lrs: list[float]) -> np.ndarray:
    """SINGA 1.x's formulas in float64."""
    h = v = 0.0
    for t, (g, lr) in enumerate(zip(grads, lrs, strict=True), start=1):
        if name == "SGD":
            h = 0.9 * h + lr * g
            p = p - h
        elif name == "Nesterov":
            before, h = h, 0.9 * h + lr * g
            p = p - (1.9 * h - 0.9 * before)
        elif name == "RMSProp":
            h = 0.9 * h + 0.1 * g * g
            p = p - lr * g / np.sqrt(h + 1e-8)
        elif name == "AdaGrad":
            h = h + g * g
            p = p - lr * g / np.sqrt(h + 1e-8)
        else:
            h, v = 0.9 * h + 0.1 * g, 0.999 * v + 0.001 * g * g
            alpha = lr * math.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            p = p - alpha * h / (np.sqrt(v) + 1e-8)
    return p


@pytest.mark.parametrize("name", ["SGD", "Nesterov", "RMSProp", "AdaGrad", "Adam"])
def test_formulas(name):
    rng = np.random.default_rng(0)
    start, *grads = (rng.normal(size=(4, 5)).astype(np.float32) for _ in range(7))
    lrs = [0.1, 0.1, 0.01, 0.01, 0.2, 0.2]
    made = getattr(optimizer, name)(**({"momentum": 0.9} if name == "SGD" else {}))
    p = tensor.from_numpy(start)
    for step, (grad, lr) in enumerate(zip(grads, lrs, strict=True)):
        g = tensor.from_numpy(grad)
        assert made.apply_with_lr(step // 2, lr, g, p, "p", step) is p
        np.testing.assert_array_equal(g.to_numpy(), grad)
    want = by_numpy(name, start.astype(np.float64), grads, lrs)
    np.testing.assert_allclose(p.to_numpy(), want, rtol=2e-5, atol=2e-6)


def test_specifications_multiply_and_replace():
    net = FeedForwardNet()
    specs = {"init": "constant", "value": 2, "lr_mult": 0.5, "decay_mult": 3}
    limits = {"init": "constant", "value": 2, "regularizer": 0.25, "constraint": 0.125}
    net.add(layer.Dense("a", 1, W_specs=specs, b_specs=limits, input_sample_shape=(1,)))
    sgd = optimizer.SGD(lr=1.0, weight_decay=0.1)
    net.compile(sgd)
    w, b = net.param_values()
    assert w.item() == b.item() == 2
    grad = tensor.from_numpy(np.array([[1.0]], np.float32))
    sgd.apply(0, grad, w, "a/weight")
    sgd.apply(0, grad.reshape((1,)), b, "a/bias")
    assert w.item() == pytest.approx(2 - 0.5 * (1 + 0.3 * 2))
    assert b.item() == pytest.approx(2 - (0.125 + 0.25 * 2))
    assert grad.item() == 1


def test_a_gradient_below_the_threshold_stays():
    grad = tensor.from_numpy(np.array([0.3, 0.4], np.float32))
    assert optimizer.L2Constraint(0.25).apply(0, grad, grad) is grad
    np.testing.assert_allclose(grad.to_numpy(), [0.3, 0.4], rtol=1e-6)
    optimizer.L2Constraint(0.125).apply(0, grad, grad)
    np.testing.assert_allclose(grad.to_numpy(), [0.15, 0.2], rtol=1e-6)
    zero = tensor.zeros((3,))
    np.testing.assert_array_equal(optimizer.L2Constraint(1).apply(0, zero, zero).to_numpy(), 0)


class Later(optimizer.Regularizer):
    """A regularizer of a program that depends on the epoch."""

    def apply(self, epoch, value, grad, step=-1):
        grad += float(epoch)
        return grad


def test_a_regularizer_of_a_program_knows_the_epoch_in_recorded_steps():
    nets = [perceptron(), perceptron()]
    for net, use_graph in zip(nets, (True, False), strict=True):
        net.compile(optimizer.SGD(lr=0.1, regularizer=Later()), use_graph=use_graph)
        for epoch in range(3):
            for _ in range(4):
                net.train_on_batch(batch(4, 6), LABELS[:4] % 3, epoch)
    assert values(nets[0]) == values(nets[1])


def test_wrong_optimizers():
    with pytest.raises(ValueError, match="SGD: got weight_decay and regularizer"):
        optimizer.SGD(weight_decay=0.1, regularizer=optimizer.L2Regularizer(0.1))
    with pytest.raises(ValueError, match="SGD.apply: got no lr"):
        optimizer.SGD().apply(0, tensor.ones((1,)), tensor.ones((1,)), "p")
    with pytest.raises(TypeError, match="register: got Tensor and ParamSpec"):
        optimizer.SGD().register(tensor.ones((1,)), perceptron().param_specs()[0])
    with pytest.raises(TypeError, match="Adam: got an unknown argument 'momentum'"):
        optimizer.Adam(momentum=0.9)


# ---- losses and metrics --------------------------------------------------------------------------


def test_losses_are_per_sample_and_gradients_of_their_sum():
    x, y = batch(4, 3), np.array([0, 2, 1, 1], np.int32)
    z, labels = x.to_numpy().astype(np.float64), tensor.from_numpy(y)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    f = loss.SoftmaxCrossEntropy()
    np.testing.assert_allclose(
        f.forward(True, x, labels).to_numpy(), -np.log(p[range(4), y]), rtol=1e-5
    )
    np.testing.assert_allclose(f.backward().to_numpy(), p - np.eye(3)[y], rtol=1e-5, atol=1e-6)

    truth = tensor.from_numpy(np.eye(3, dtype=np.float32)[y])
    f = loss.SquaredError()
    np.testing.assert_allclose(
        f.forward(True, x, truth).to_numpy(), (z - np.eye(3)[y]) ** 2 / 2, rtol=1e-5
    )
    np.testing.assert_allclose(f.backward().to_numpy(), z - np.eye(3)[y], rtol=1e-5)

    f, s = loss.SigmoidCrossEntropy(), 1 / (1 + np.exp(-z))
    want = -(np.eye(3)[y] * np.log(s) + (1 - np.eye(3)[y]) * np.log(1 - s))
    np.testing.assert_allclose(f.forward(True, x, truth).to_numpy(), want.mean(1), rtol=1e-5)
    np.testing.assert_allclose(f.backward().to_numpy(), s - np.eye(3)[y], rtol=1e-5, atol=1e-6)
    with pytest.raises(GraphError, match="SigmoidCrossEntropy.backward: call forward"):
        f.backward()


def test_metrics_return_tensors():
    x, y = batch(6, 4), np.arange(6, dtype=np.int32) % 4
    made = metric.Accuracy().forward(x, tensor.from_numpy(y))
    np.testing.assert_array_equal(tensor.to_numpy(made), x.to_numpy().argmax(1) == y)
    assert metric.Accuracy().evaluate(x, y) == made.mean().item()
