"""FeedForwardNet: training, evaluation and prediction, plain and recorded; its optimizers."""

import copy
import math
import pickle

import numpy as np
import pytest
from nets import IMAGES, LABELS, batch, branched, filled, perceptron, two_ends, values
from singa_rs import autograd, device, opt, tensor
from singa_rs import loss as means
from singa_rs.compat import layer, loss, metric, optimizer
from singa_rs.compat.net import FeedForwardNet
from singa_rs.errors import GraphError, ShapeError

OPTIMIZERS = {
    "SGD": lambda: optimizer.SGD(lr=0.1),
    "momentum": lambda: optimizer.SGD(lr=0.1, momentum=0.9, weight_decay=1e-2),
    "Nesterov": lambda: optimizer.Nesterov(lr=0.05, constraint=optimizer.L2Constraint(1e-3)),
    "RMSProp": lambda: optimizer.RMSProp(lr=0.01),
    "AdaGrad": lambda: optimizer.AdaGrad(lr=0.1),
    "Adam": lambda: optimizer.Adam(lr=0.01),
}


# ---- plain and recorded --------------------------------------------------------------------------


def run(name: str, use_graph: bool) -> tuple[list, FeedForwardNet]:
    """Everything that steps of each kind tell, to the bit."""
    device.get_default_device().SetRandSeed(3)
    net, found = branched(), []
    net.compile(OPTIMIZERS[name](), use_graph=use_graph)
    for step in range(4):
        grads, figures = net.train(IMAGES, LABELS)
        found += [figures, [grad.to_numpy().tobytes() for grad in grads]]
        found += [net.train_on_batch(IMAGES, LABELS, 0, step), net.evaluate(IMAGES, LABELS)]
        found += [net.predict(IMAGES).to_numpy().tobytes(), values(net)]
    return found, net


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_recorded_steps_have_the_bits_of_plain_ones(name):
    plain, _ = run(name, use_graph=False)
    recorded, net = run(name, use_graph=True)
    assert recorded == plain
    assert net.explain().count("replayed 2 times") == 4
    assert "equal to the operations as recorded, to the bit" in net.explain()


def test_the_rate_is_part_of_no_recording():
    net = perceptron()
    net.compile(optimizer.SGD(lr=lambda epoch: 0.1 / (1 + epoch), momentum=0.5))
    other = perceptron()
    other.compile(optimizer.SGD(momentum=0.5), use_graph=False)
    x, y = batch(4, 6), tensor.from_numpy(np.array([0, 1, 2, 0], np.int32))
    for epoch in range(8):
        net.train_on_batch(x, y, epoch, epoch)
        other.train_on_batch(x, y, epoch, epoch, lr=0.1 / (1 + epoch))
    assert values(net) == values(other)
    assert net.explain().count("graph ") == 1 and "replayed 6 times" in net.explain()


def test_a_smaller_batch_and_inputs_by_name_are_recorded_too():
    net = FeedForwardNet(loss.SquaredError())
    a = net.add(layer.Dummy("a", (2,)), [])
    b = net.add(layer.Dense("b", 2, input_sample_shape=(3,)), [])
    net.add(layer.Merge("sum"), [a, b])
    filled(net)
    net.compile(optimizer.SGD(lr=0.1))
    for rows in (4, 4, 4, 3, 3, 3, 4):
        x = {"a": batch(rows, 2), "b": batch(rows, 3)}
        told, _ = net.train_on_batch(x, batch(rows, 2, seed=9))
        assert math.isfinite(told)
    assert net.explain().count("graph ") == 2


def test_a_change_of_an_attribute_is_noticed():
    net = branched()
    net.compile()
    for _ in range(4):
        net.evaluate(IMAGES, LABELS)
    net.layers[1].momentum = 0.5  # of no effect in evaluation, but a change
    net.layers[2].mode = "tanh"
    want = branched()
    want.layers[2].mode = "tanh"
    assert net.evaluate(IMAGES, LABELS) == want.evaluate(IMAGES, LABELS)


def test_a_change_of_one_of_many_layers_is_noticed():
    net, plain = FeedForwardNet(), FeedForwardNet()
    for one in (net, plain):
        one.add(layer.Activation("0", input_sample_shape=(3,)))
        for i in range(1, 1100):
            one.add(layer.Dummy(str(i)) if i % 500 else layer.Activation(str(i)))
    net.compile()
    x = batch(2, 3)
    for _ in range(3):
        net.predict(x)
    for one in (net, plain):
        one.layers[1000].mode = "sigmoid"
    np.testing.assert_array_equal(net.predict(x).to_numpy(), plain.predict(x).to_numpy())
    assert "attribute 1000.mode changed from 'relu' to 'sigmoid'" in net.explain()


def test_a_refused_step_changes_nothing_and_a_failed_one_names_what_it_wrote():
    net = branched()
    net.compile(optimizer.SGD(lr=0.1))
    before = values(net)
    with pytest.raises(ShapeError, match=r"Conv2D 'conv': got a batch of shape \(8, 3, 12, 11\)"):
        net.train_on_batch(IMAGES[..., 1:], LABELS)
    assert values(net) == before
    with pytest.raises(ValueError, match="already written in this step: bn/mean, bn/var$"):
        net.train_on_batch(IMAGES, LABELS + 2)
    after = dict(zip(net.param_names(), values(net), strict=True))
    for name, one in zip(net.param_names(), before, strict=True):
        assert (after[name] == one) == (name not in ("bn/mean", "bn/var"))
    net.train_on_batch(IMAGES, LABELS)
    assert values(net) != before


def test_a_net_within_a_recording_by_hand():
    net, dev = perceptron(), device.get_default_device()
    x, y = batch(4, 6), tensor.from_numpy(np.array([0, 1, 2, 0], np.int32))
    want = perceptron()
    want.compile(optimizer.SGD(lr=0.1), use_graph=False)
    sgd = optimizer.SGD()
    sgd.begin(0, 0.1)

    def step():
        out = net.forward(True, x)
        net.loss.forward(True, out, y)
        for names, params, grads, _ in net.backward(net.loss.backward() / 4.0):
            for name, value, grad in zip(names, params, grads, strict=True):
                sgd.update(0, grad, value, name)

    with dev.record() as graph:
        step()
    for _ in range(3):
        graph.run()
        want.train_on_batch(x, y)
    assert values(net) == values(want)


# ---- what steps tell -----------------------------------------------------------------------------


def test_train_tells_mean_gradients_in_the_order_of_parameters():
    net, x = perceptron(), batch(4, 6)
    y = tensor.from_numpy(np.array([0, 1, 2, 0], np.int32))
    grads, (mean, accuracy) = net.train(x, y)
    assert [grad.shape for grad in grads] == [value.shape for value in net.param_values()]
    out = net.forward(True, x)
    leaf = out.detach()
    leaf.stores_grad = leaf.requires_grad = True
    with autograd._training_scope(True):
        want = autograd.softmax_cross_entropy(leaf, y)
        dy = autograd.gradients(want)[leaf]
    assert mean == pytest.approx(want.item(), rel=1e-6)
    assert accuracy == np.mean(out.to_numpy().argmax(1) == y.to_numpy())
    for (_, _, told, _), first in zip(net.backward(dy), (2, None, 0), strict=True):
        for i, grad in enumerate(told):
            np.testing.assert_allclose(
                grads[first + i].to_numpy(), grad.to_numpy(), rtol=1e-5, atol=1e-7
            )


def test_predict_is_softmax():
    net, x = perceptron(), batch(4, 6)
    made = net.predict(x).to_numpy()
    np.testing.assert_allclose(made.sum(1), np.ones(4), rtol=1e-6)
    e = np.exp(net.forward(False, x).to_numpy())
    np.testing.assert_allclose(made, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_fit_learns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200).astype(np.int32)
    x = (np.eye(3, 6, dtype=np.float32)[y] * 3 + rng.normal(size=(200, 6))).astype(np.float32)
    net = perceptron()
    net.compile(optimizer.SGD(lr=0.1, momentum=0.9))
    told = net.fit(x, y, 32, epochs=6, val_split=0.2, seed=0)
    assert len(told) == 6 and told[-1].loss < 0.4 * told[0].loss
    assert told[-1].val_metric > 0.9 and told[-1].val_loss < told[0].val_loss
    again = perceptron()
    again.compile(optimizer.SGD(lr=0.1, momentum=0.9), use_graph=False)
    assert again.fit(x, y, 32, epochs=6, val_split=0.2, seed=0) == told
    assert values(again) == values(net)


@pytest.mark.parametrize(
    ("kind", "match", "call"),
    [
        (TypeError, "loss: got singa_rs.loss.SquaredError, a mean; want compat.loss.SquaredError",
         lambda: FeedForwardNet(means.SquaredError())),
        (TypeError, "optimizer: got singa_rs.opt.sgd.SGD, want one of compat.optimizer",
         lambda: perceptron().compile(opt.SGD())),
        (GraphError, "train: the net has no loss", lambda: two_ends().train(IMAGES, LABELS)),
        (GraphError, "evaluate: the net has neither", lambda: two_ends().evaluate(IMAGES, LABELS)),
        (GraphError, r"the net has several outputs \(sum, all\)",
         lambda: two_ends().predict({"a": batch(4, 2), "b": batch(4, 3)})),
        (GraphError, "train_on_batch: call compile with an optimizer",
         lambda: perceptron().train_on_batch(batch(4, 6), LABELS[:4])),
        (ValueError, "got no lr",
         lambda: ready(optimizer.SGD()).train_on_batch(batch(4, 6), LABELS[:4])),
        (ValueError, "Adam: got step -1", lambda: ready(optimizer.Adam(lr=1)).train_on_batch(
            batch(4, 6), LABELS[:4], step=-1)),
        (ValueError, "fit: got 4 rows of x and 3 of y",
         lambda: ready(optimizer.SGD(lr=1)).fit(np.zeros((4, 6)), LABELS[:3], 2)),
        (ValueError, "fit: val_split: got 1", lambda: ready(optimizer.SGD(lr=1)).fit(
            np.zeros((4, 6)), LABELS[:4], 2, val_split=1)),
    ],
)  # fmt: skip
def test_wrong_calls(kind, match, call):
    with pytest.raises(kind, match=match):
        call()


def ready(by: optimizer.Optimizer) -> FeedForwardNet:
    net = perceptron()
    net.compile(by)
    return net


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


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"]
)
def test_copies_go_on_by_themselves(copied):
    net = perceptron()
    net.compile(optimizer.SGD(lr=0.1, momentum=0.9))
    x, y = batch(4, 6), LABELS[:4] % 3
    for _ in range(4):
        net.train_on_batch(x, y)
    other, before = copied(net), values(net)
    for _ in range(4):
        other.train_on_batch(x, y)
    assert values(net) == before != values(other)
    for _ in range(4):
        net.train_on_batch(x, y)
    assert values(net) == values(other)
    assert "replayed 2 times" in other.explain()


def test_a_layer_that_is_added_later_is_noticed():
    net, want = perceptron(), perceptron()
    net.compile()
    x = batch(4, 6)
    for _ in range(4):
        net.predict(x)
    for one in (net, want):
        one.add(layer.Activation("more", "tanh"))
    np.testing.assert_array_equal(net.predict(x).to_numpy(), want.predict(x).to_numpy())
