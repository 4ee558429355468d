"""SINGA 1.x's recurrent layers, by themselves and in a net."""

import numpy as np
import pytest
from nets import batch
from singa_rs import autograd, tensor
from singa_rs.compat import layer, loss
from singa_rs.compat.net import FeedForwardNet
from singa_rs.errors import GraphError, ShapeError

T, N, FEATURES, H = 5, 3, 4, 2
MODES = {"lstm": 2, "gru": 1, "tanh": 1, "relu": 1}


def made(mode: str, both: bool, dropout: float = 0.0) -> layer.RNN:
    """Two layers with drawn weights."""
    one = layer.RNN("r", H, mode, dropout, 2, "linear", both, input_sample_shape=(FEATURES,))
    (weight,) = one.param_values()
    weight.copy_from(batch(*weight.shape) * 0.4)
    return one


def inputs(one: layer.RNN, is_zero: bool) -> tuple[list, list]:
    """The inputs of all steps, and the initial states."""
    shape, many = (2 * one._handle.ways, N, H), MODES[one.rnn_mode]
    steps = [batch(N, FEATURES, seed=10 + t) for t in range(T)]
    given = [batch(*shape, seed=30 + i) for i in range(many)]
    return steps, [tensor.Tensor() for _ in given] if is_zero else given


@pytest.mark.parametrize("is_zero", [True, False], ids=["zeros", "states"])
@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("mode", MODES)
def test_results_and_gradients_are_those_of_the_handle(mode, both, is_zero):
    one = made(mode, both)
    (steps, states), (weight,) = inputs(one, is_zero), one.param_values()
    ys = one.forward(True, [*steps, *states])
    assert len(ys) == T + MODES[mode]
    dys = [batch(*y.shape, seed=50 + i) for i, y in enumerate(ys)]
    dxs, (dw,) = one.backward(True, dys)

    x = tensor.from_numpy(np.stack([step.to_numpy() for step in steps]))
    leaves = [x, weight, *(() if is_zero else states)]
    for leaf in leaves:
        leaf.stores_grad = leaf.requires_grad = True
    with autograd._training_scope(True):
        given = [None] * 2 if is_zero else [*states, None][:2]
        want = autograd._RNN(one._handle).run(x, *given, weight)
        total = sum((want[0][t] * dys[t]).sum() for t in range(T))
        total = total + sum((y * dy).sum() for y, dy in zip(want[1:], dys[T:], strict=True))
        grads = autograd.gradients(total)
    for t in range(T):
        np.testing.assert_array_equal(ys[t].to_numpy(), want[0].to_numpy()[t])
        got = dxs[t].to_numpy()
        np.testing.assert_allclose(got, grads[x].to_numpy()[t], rtol=1e-4, atol=1e-5)
    for y, last in zip(ys[T:], want[1:], strict=True):
        np.testing.assert_array_equal(y.to_numpy(), last.to_numpy())
    np.testing.assert_allclose(dw.to_numpy(), grads[weight].to_numpy(), rtol=1e-4, atol=1e-5)
    for state, grad in zip(states, dxs[T:], strict=True):
        if is_zero:
            assert grad.is_empty()
        else:
            want_ = grads[state].to_numpy()
            np.testing.assert_allclose(grad.to_numpy(), want_, rtol=1e-4, atol=1e-5)


def test_the_last_states_continue_a_sequence():
    one = made("lstm", both=False)
    steps, states = inputs(one, is_zero=True)
    whole = one.forward(False, [*steps, *states])
    *_, h, c = one.forward(False, [*steps[:2], *states])
    rest = one.forward(False, [*steps[2:], h, c])
    for y, want in zip(rest, whole[2:], strict=True):
        np.testing.assert_allclose(y.to_numpy(), want.to_numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_of_last_states_may_be_left_out():
    one = made("lstm", both=False)
    steps, states = inputs(one, is_zero=True)
    ys = one.forward(True, [*steps, *states])
    zeros = [tensor.zeros(y.shape) for y in ys[T:]]
    _, (want,) = one.backward(True, [*ys[:T], *zeros])
    one.forward(True, [*steps, *states])
    _, (got,) = one.backward(True, [*ys[:T], tensor.Tensor(), tensor.Tensor()])
    np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())


@pytest.mark.parametrize(("kind", "mode"), [(layer.LSTM, "lstm"), (layer.GRU, "gru")])
def test_named_kinds(kind, mode):
    one = kind("r", H, 0.1, 2, "linear", True, {"init": "constant", "value": 0.5}, (FEATURES,))
    same = layer.RNN("r", H, mode, 0.1, 2, "linear", True, None, (FEATURES,))
    assert (one.rnn_mode, one.dropout, one.num_stacks, one.bidirectional) == (mode, 0.1, 2, True)
    assert one.param_names() == ["r/weight"]
    assert one.param_values()[0].shape == same.param_values()[0].shape
    assert set(one.param_values()[0].to_numpy()) == {0.5}
    assert one.get_output_sample_shape() == (2 * H,)


def test_in_a_net():
    net = FeedForwardNet(loss.SquaredError())
    net.add(layer.GRU("gru", H, input_sample_shape=(FEATURES,)))
    one = net.layers[0]
    steps = [batch(N, FEATURES, seed=t) for t in range(T)]
    ys = net.forward(True, {"gru": [*steps, tensor.Tensor()]})
    assert len(ys) == T + 1
    rows = list(net.backward({"gru": [*ys[:T], tensor.Tensor()]}, output=["gru"]))
    one.forward(True, [*steps, tensor.Tensor()])
    dxs, (dw,) = one.backward(True, [*ys[:T], tensor.Tensor()])
    np.testing.assert_array_equal(rows[0][2][0].to_numpy(), dw.to_numpy())
    for got, want in zip(rows[0][3]["gru"], dxs, strict=True):
        np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())


@pytest.mark.parametrize(
    ("kind", "match", "call"),
    [
        (ValueError, "RNN 'r': rnn_mode: got 'elman'", lambda: layer.RNN("r", 2, "elman")),
        (ValueError, "LSTM 'r': input_mode: got 'skip', want one of linear",
         lambda: layer.LSTM("r", 2, input_mode="skip")),
        (ShapeError, "LSTM 'r': got a sample of", lambda: layer.LSTM(
            "r", 2, input_sample_shape=(2, 3))),
        (GraphError, "RNN 'r': forward: got 2 tensors, want a list of inputs and 2 initial states",
         lambda: made("lstm", False).forward(True, [batch(N, FEATURES), tensor.Tensor()])),
        (ShapeError, r"RNN 'r': got a state of shape \(1, 3, 2\), want \(2, 3, 2\), or \(\)",
         lambda: made("gru", False).forward(True, [batch(N, FEATURES), batch(1, N, H)])),
        (ShapeError, "RNN 'r': got steps of different numbers of rows",
         lambda: made("gru", False).forward(
             True, [batch(2, FEATURES), batch(1, FEATURES), tensor.Tensor()])),
        (GraphError, "RNN 'r': backward: call forward in training first",
         lambda: made("gru", False).backward(True, [])),
    ],
)  # fmt: skip
def test_wrong_calls(kind, match, call):
    with pytest.raises(kind, match=match):
        call()


def test_a_gradient_for_each_result():
    one = made("gru", both=False)
    steps, states = inputs(one, is_zero=True)
    ys = one.forward(True, [*steps, *states])
    with pytest.raises(GraphError, match="RNN 'r': backward: got 5 tensors, want 6 gradients"):
        one.backward(True, ys[:T])
