"""Layers called with one sample, without an axis for a batch, give what a batch of one gives."""

import numpy as np
import pytest
from layer_calls import close, normal
from recorded import replays, same, same_states
from singa_rs import ShapeError, autograd, layer, module, opt, set_seed, sonnx
from singa_rs.tensor import Tensor

#: Layers, an input, and the place of the batch's axis.
CASES = {
    "Linear": (lambda: layer.Linear(3, activation="TANH"), normal(5), 0),
    "Conv1d": (lambda: layer.Conv1d(2, 4, 3), normal(2, 6), 0),
    "Conv2d": (lambda: layer.Conv2d(4, 3, padding="same", activation="RELU"), normal(2, 6, 5), 0),
    "Conv3d": (lambda: layer.Conv3d(4, 2, group=2), normal(2, 3, 4, 3), 0),
    "ConvTranspose1d": (lambda: layer.ConvTranspose1d(4, 3, stride=2), normal(2, 6), 0),
    "ConvTranspose2d": (lambda: layer.ConvTranspose2d(4, 3), normal(2, 6, 5), 0),
    "ConvTranspose3d": (lambda: layer.ConvTranspose3d(4, 2), normal(2, 3, 4, 3), 0),
    "SeparableConv2d": (lambda: layer.SeparableConv2d(4, 3), normal(2, 6, 5), 0),
    "RNN": (lambda: layer.RNN(3, 4, 2, bidirectional=True), normal(5, 3), 1),
    "LSTM": (lambda: layer.LSTM(3, 4, 2), normal(5, 3), 1),
    "LSTM, batch first": (lambda: layer.LSTM(3, 4, batch_first=True, proj_size=2), normal(5, 3), 0),
    "GRU": (lambda: layer.GRU(None, 4), normal(5, 3), 1),
    "GRU of indices": (lambda: layer.GRU(6, 4), np.int32([5, 0, 3]), 1),
}


def flat(made):
    """The tensors of a result."""
    return [t for one in made for t in flat(one)] if isinstance(made, tuple) else [made]


@pytest.mark.parametrize("name", CASES)
def test_one_sample_is_a_batch_of_one(name):
    make, x, axis = CASES[name]
    one = make()
    alone = flat(one(Tensor(data=x)))
    places = [axis, *[1] * (len(alone) - 1)]
    for made, batch, place in zip(
        alone, flat(one(Tensor(data=np.expand_dims(x, axis)))), places, strict=True
    ):
        np.testing.assert_array_equal(made.to_numpy(), batch.to_numpy().squeeze(place))


class Net(module.Module):
    def __init__(self, make):
        super().__init__()
        self.part, self.optimizer = make(), opt.SGD(0.1)

    def forward(self, x):
        return flat(self.part(x))[0]

    def train_one_batch(self, x, _):
        y = self.forward(x)
        loss = (y * y).mean()
        self.optimizer(loss)
        return y, loss


def trained(make, x, use_graph):
    set_seed(1)
    net = Net(make)
    net.compile([Tensor(data=x)], use_graph=use_graph)
    return net, [net(Tensor(data=x), np.int32([0])) for _ in range(4)]


@pytest.mark.parametrize("name", CASES)
def test_recorded_steps_and_exported_models_take_one_sample(name):
    make, x, _ = CASES[name]
    (graph, made), (eager, want) = (trained(make, x, on) for on in (True, False))
    same(made, want)
    same_states(graph, eager)
    assert replays(graph) == 2
    graph.eval()
    y = graph(Tensor(data=x)).to_numpy()
    if name != "LSTM, batch first":  # ONNX has no projections
        model = sonnx.prepare(sonnx.model_proto(graph, [Tensor(data=x)]))
        close(model.run([Tensor(data=x)])[0].to_numpy(), y, 1e-6)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_states_of_one_sequence_have_no_axis_for_a_batch(kind):
    one, x = getattr(layer, kind)(3, 4, 2), Tensor(data=normal(5, 3))
    state = [Tensor(data=normal(2, 4)) for _ in range(2 if kind == "LSTM" else 1)]
    alone = flat(one(x, tuple(state) if kind == "LSTM" else state[0]))
    wide = [t.unsqueeze(1) for t in state]
    batch = flat(one(x.unsqueeze(1), tuple(wide) if kind == "LSTM" else wide[0]))
    for made, want in zip(alone, batch, strict=True):
        np.testing.assert_array_equal(made.to_numpy(), want.to_numpy().squeeze(1))
    with pytest.raises(ShapeError, match=rf"{kind}: got a state .*\(2, 1, 4\), want \(2, 4\)"):
        one(x, tuple(wide) if kind == "LSTM" else wide[0])
    with pytest.raises(ShapeError, match=rf"{kind}: got a state .*\(2, 4\), want \(2, 1, 4\)"):
        one(x.unsqueeze(1), tuple(state) if kind == "LSTM" else state[0])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_length_of_one_sequence_is_a_number(kind):
    one, x = getattr(layer, kind)(3, 4, 2, bidirectional=True), Tensor(data=normal(5, 3))
    want = flat(one(x, lengths=[3]))
    for length in (3, np.int64(3), np.array(3), Tensor(data=np.int32(3))):
        for made, other in zip(flat(one(x, lengths=length)), want, strict=True):
            np.testing.assert_array_equal(made.to_numpy(), other.to_numpy())
    with pytest.raises(ShapeError, match="lengths"):
        one(x, lengths=[3, 3])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("t", [np.int32(1), np.int32([1]), np.float32([0.2, 0.3, 0.5])], ids=str)
def test_losses_of_one_sample(reduction, t):
    x = normal(3)
    logs = x - np.log(np.exp(x).sum())
    want = -logs[1] if t.dtype == np.int32 else -(t * logs).sum()
    want = want if reduction == "none" else np.float32([want])
    autograd.training = True
    try:
        given = Tensor(data=x, stores_grad=True)
        made = layer.CrossEntropyLoss(reduction=reduction)(given, Tensor(data=t))
        slope = autograd.gradients(made.sum())[given].to_numpy()
    finally:
        autograd.training = False
    close(made.to_numpy(), want)
    close(slope, np.exp(logs) - (np.float32([0, 1, 0]) if t.dtype == np.int32 else t))
    if t.dtype == np.int32:
        close(layer.NLLLoss(reduction=reduction)(logs, t).to_numpy(), want)
