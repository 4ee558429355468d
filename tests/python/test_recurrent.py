"""Recurrent networks: functions, layers, cells and SINGA's layers, against loops in NumPy."""

import numpy as np
import pytest
from cases.recurrent import Form
from layer_calls import close, normal
from singa_rs import DTypeError, ShapeError, autograd, device, layer, module, opt
from singa_rs.tensor import Tensor

T, N, F, H = 5, 3, 4, 6
GATES = {"rnn": 1, "lstm": 4, "gru": 3}
CELLS = {"rnn": "tanh", "lstm": "lstm", "gru": "gru"}
LENGTHS = [2, 5, 0]


@pytest.fixture(autouse=True)
def training():
    autograd.training = True
    yield
    autograd.training = False


def tensors(*arrays):
    return [Tensor(data=a, dtype=str(a.dtype), stores_grad=True) for a in arrays]


def wide(*shape, size=0.5):
    return size * normal(*shape).astype(np.float64)


def reference(kind, x, W, R, b, h0, c0=None, *, linear=False, lengths=None, reverse=False):
    """All results, with the biases of the inputs, then of the state; gates in ONNX's order."""
    first, second = np.split(b, 2)
    cell = "linear_gru" if linear else CELLS[kind]
    form = Form(cell, reverse=reverse, lengths=lengths is not None)
    given = x @ W + first
    more = [h0, *([c0] if kind == "lstm" else [])]
    if linear:
        units = R.shape[0]
        given[..., : 2 * units] += second[: 2 * units]
        more.append(second[2 * units :])
    else:
        given = given + second
    more += [np.array(lengths)] if lengths is not None else []
    return form.results(given, R, *more)


def weights(kind, inputs=F):
    columns = GATES[kind] * H
    return [wide(inputs, columns), wide(H, columns), wide(2 * columns)]


def states(kind):
    return [wide(N, H) for _ in range(2 if kind == "lstm" else 1)]


WAYS = [{}, {"reverse": True}, {"lengths": LENGTHS}, {"reverse": True, "lengths": LENGTHS}]
KINDS = ["rnn", "lstm", "gru", "linear"]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_functions(kind, way):
    more = {"linear_before_reset": True} if kind == "linear" else {}
    name = "gru" if kind == "linear" else kind
    x, given, start = wide(T, N, F), weights(name), states(name)
    ys = getattr(autograd, name)(*tensors(x, *given, *start), **more, **way)
    want = reference(name, x, *given, *start, linear=bool(more), **way)
    for y, w in zip(ys, want, strict=True):
        close(y.to_numpy(), w, 1e-12)


@pytest.mark.parametrize("name, order, places", [
    ("lstm", "ifgo", (0, 2, 3, 1)), ("lstm", "ifco", (0, 2, 3, 1)), ("lstm", "ofic", (1, 2, 0, 3)),
    ("gru", "rzn", (1, 0, 2)), ("gru", "hzr", (2, 0, 1)),
])  # fmt: skip
def test_gate_orders(name, order, places):
    """The same weights with the columns of their gates in another order give the same."""
    x, given = wide(T, N, F), weights(name)
    own = [np.split(a, GATES[name] * (2 if a.ndim == 1 else 1), -1) for a in given]
    moved = [
        np.concatenate([a[i + at] for at in range(0, len(a), len(places)) for i in places], -1)
        for a in own
    ]
    for linear in ({}, {"linear_before_reset": True})[: 1 + (name == "gru")]:
        function = getattr(autograd, name)
        xs = tensors(x, *moved)
        want = function(*tensors(x, *given), **linear)
        got = function(*xs, gate_order=order, **linear)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())
        grads = autograd.gradients(autograd.reduce_sum(got[0] * got[0]))
        assert all(np.abs(grads[one].to_numpy()).min() > 0 for one in xs[1:])


def test_one_bias_is_the_sum_of_two():
    x, (W, R, b) = wide(T, N, F), weights("lstm")
    one, two = (autograd.lstm(*tensors(x, W, R, bias))[0] for bias in (sum(np.split(b, 2)), b))
    close(one.to_numpy(), two.to_numpy(), 1e-12)


@pytest.mark.parametrize("kind", GATES)
def test_integers_are_rows_of_the_weights(kind):
    x = np.random.default_rng(1).integers(0, F, (T, N))
    given = tensors(*weights(kind))
    some, all_ = Tensor(data=x), Tensor(data=np.eye(F)[x], dtype="float64")
    for bias in (given[2:], []):
        made = [getattr(autograd, kind)(one, *given[:2], *bias)[0] for one in (some, all_)]
        close(made[0].to_numpy(), made[1].to_numpy(), 1e-12)
        grads = [autograd.gradients(autograd.reduce_sum(y * y)) for y in made]
        for one in (*given[:2], *bias):
            close(grads[0][one].to_numpy(), grads[1][one].to_numpy(), 1e-11)
    with pytest.raises(ValueError, match="index 9"):
        getattr(autograd, kind)(Tensor(data=x * 0 + 9), *given)


def test_peepholes_and_projection():
    form = Form("lstm", peepholes=True, projection=True, reverse=True)
    x, W, R, p, projection = wide(T, N, F), wide(F, 24), wide(2, 24), wide(18), wide(6, 2)
    h0, c0 = wide(N, 2), wide(N, H)
    ys = autograd.lstm(
        *tensors(x, W, R), h0=tensors(h0)[0], c0=tensors(c0)[0], peepholes=tensors(p)[0],
        projection=tensors(projection)[0], reverse=True,
    )  # fmt: skip
    for y, w in zip(ys, form.results(x @ W, R, h0, c0, p, projection), strict=True):
        close(y.to_numpy(), w, 1e-12)


# ---- layers --------------------------------------------------------------------------------------


def looped(one, cells, x, state=None):
    """The states by a loop of cells with the layer's parameters, layer by layer."""
    ways = ("", "_reverse") if one.bidirectional else ("",)
    y, last = list(x), []
    for i in range(one.num_layers):
        found = []
        for way in ways:
            cell = cells()
            place = len(last)
            at = [None if s is None else Tensor(data=s[place]) for s in state or ()]
            h = None if not at else tuple(at) if len(at) == 2 else at[0]
            cell(Tensor(data=y[0]))
            names = [n for n in "WRb" if hasattr(cell, n)]
            cell.set_params({n: getattr(one, f"{n}_l{i}{way}") for n in names})
            made = []
            for step in reversed(y) if way else y:
                h = cell(Tensor(data=step), h)
                made.append((h[0] if isinstance(h, tuple) else h).to_numpy())
            last.append([t.to_numpy() for t in (h if isinstance(h, tuple) else (h,))])
            found.append(made[::-1] if way else made)
        y = [np.concatenate(parts, -1) for parts in zip(*found, strict=True)]
    return np.stack(y), [np.stack(kind) for kind in zip(*last, strict=True)]


LAYERS = {
    "RNN": (layer.RNN, layer.RNNCell),
    "LSTM": (layer.LSTM, layer.LSTMCell),
    "GRU": (layer.GRU, layer.GRUCell),
}
OPTIONS = [{}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True}]
OPTIONS += [{"bias": False}, {"batch_first": True, "bidirectional": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_loops_of_cells(name, options):
    kind, cell = LAYERS[name]
    one, x = kind(F, H, **options), normal(T, N, F)
    given = x.swapaxes(0, 1).copy() if "batch_first" in options else x
    places = options.get("num_layers", 1) * (2 if "bidirectional" in options else 1)
    start = [normal(places, N, H) for _ in range(2 if name == "LSTM" else 1)]
    for state in (None, start):
        held = None if state is None else [Tensor(data=s) for s in state]
        y, last = one(Tensor(data=given), held if name == "LSTM" or held is None else held[0])
        bias = options.get("bias", True)
        want, want_last = looped(one, lambda bias=bias: cell(None, H, bias), x, state)
        close(y.to_numpy(), want.swapaxes(0, 1) if "batch_first" in options else want)
        for t, w in zip(last if isinstance(last, tuple) else (last,), want_last, strict=True):
            close(t.to_numpy(), w)
    assert list(one.get_params())[0] == "W_l0" and len(one.get_params()) == places * (2 + bias)


@pytest.mark.parametrize("name", LAYERS)
def test_lengths_are_those_of_rows_alone(name):
    one, x = LAYERS[name][0](F, H, 2, bidirectional=True), normal(T, N, F)
    y, last = one(Tensor(data=x), lengths=LENGTHS)
    for n, length in enumerate(LENGTHS):
        assert not y.to_numpy()[length:, n].any()
        if length:
            alone, end = one(Tensor(data=x[:length, n : n + 1]))
            close(y.to_numpy()[:length, n], alone.to_numpy()[:, 0])
            pairs = zip(*(s if isinstance(s, tuple) else (s,) for s in (last, end)), strict=True)
            for got, want in pairs:
                close(got.to_numpy()[:, n], want.to_numpy()[:, 0])


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_no_rows(name):
    made, cell = getattr(layer, name)(F, H, 2, bidirectional=True), getattr(layer, f"{name}Cell")
    (x,) = tensors(np.zeros((T, 0, F), np.float32))
    y, last = made(x)
    first = last[0] if name == "LSTM" else last
    assert (y.shape, first.shape) == ((T, 0, 2 * H), (4, 0, H))
    found = autograd.gradients(y.sum())
    assert found[x].shape == x.shape and not found[made.W_l0].numpy().any()
    step = cell(F, H)(x[0])
    assert (step[0] if name == "LSTM" else step).shape == (0, H)


def test_lengths_out_of_range_are_refused():
    x, given = wide(T, N, F), weights("lstm")
    for lengths, error in (([1, 6, 2], "length 6"), ([1, -1, 2], "length -1")):
        with pytest.raises(ValueError, match=error):
            autograd.lstm(*tensors(x, *given), lengths=lengths)
    with pytest.raises(ShapeError, match="lengths"):
        autograd.lstm(*tensors(x, *given), lengths=[1, 2])
    with pytest.raises(DTypeError, match="lengths"):
        autograd.lstm(*tensors(x, *given), lengths=Tensor(data=np.ones(3)))


def test_projected_states():
    one, x = layer.LSTM(F, H, 2, proj_size=2, bidirectional=True), Tensor(data=normal(T, N, F))
    y, (h, c) = one(x)
    assert (y.shape, h.shape, c.shape) == ((T, N, 4), (4, N, 2), (4, N, H))
    close(y.to_numpy()[-1, :, :2], h.to_numpy()[2])
    close(y.to_numpy()[0, :, 2:], h.to_numpy()[3])
    again = one(x, (h, c))[0]
    assert np.abs(again.to_numpy() - y.to_numpy()).max() > 1e-3


def test_dropout_is_between_layers_and_in_training():
    x = Tensor(data=normal(T, N, F))
    one, single = layer.GRU(F, H, 2, dropout=0.5), layer.GRU(F, H, dropout=0.5)
    a, b, c, d = (net(x)[0].to_numpy() for net in (one, one, single, single))
    assert (a != b).any() and (c == d).all()
    autograd.training = False
    np.testing.assert_array_equal(one(x)[0].to_numpy(), one(x)[0].to_numpy())


@pytest.mark.parametrize("name", LAYERS)
def test_an_embedding_is_multiplied_once(name):
    """Values and gradients are those of embedding first, whichever product is the smaller one."""
    table = layer.Embedding(7, F)
    one = LAYERS[name][0](F, H, batch_first=True, embedding=table)
    for shape in ((3, 5), (1, 2)):
        x = Tensor(data=np.random.default_rng(2).integers(0, 7, shape).astype(np.int32))
        ys = [one(x)[0], one(table(x))[0]]
        close(ys[0].to_numpy(), ys[1].to_numpy())
        grads = [autograd.gradients(autograd.reduce_sum(y * y)) for y in ys]
        for t in (*one.get_params().values(), table.W):
            close(grads[0][t].to_numpy(), grads[1][t].to_numpy(), 1e-4)
    assert "embedding.W" in one.get_params()


def test_integers_are_one_hot_inputs():
    one = layer.LSTM(7, H)
    x = np.random.default_rng(2).integers(0, 7, (T, N))
    y = one(Tensor(data=x))[0].to_numpy()
    close(y, one(Tensor(data=np.eye(7, dtype=np.float32)[x]))[0].to_numpy())
    with pytest.raises(ValueError, match="LSTM: .*input_size"):
        layer.LSTM(None, H)(Tensor(data=x))


class Tagger(module.Module):
    """Two layers in both directions with lengths and states that are kept."""

    def __init__(self, kind):
        super().__init__()
        self.net = LAYERS[kind][0](F, H, 2, bidirectional=True, dropout=0.2)
        self.head, self.optimizer = layer.Linear(2), opt.AdamW(1e-2)

    def forward(self, x, lengths):
        return self.head(self.net(x, lengths=lengths)[0])

    def train_one_batch(self, x, lengths, y):
        loss = autograd.mse_loss(self.forward(x, lengths), y)
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("amp", [None, "bfloat16"])
@pytest.mark.parametrize("kind", LAYERS)
def test_replay_equals_eager(kind, amp):
    found, x = [], normal(T, N, F)
    for how in ({}, {"use_graph": True}, {"use_graph": True, "graph_alg": "parallel"}):
        device.get_default_device().set_seed(5)
        model = Tagger(kind)
        model.compile([Tensor(data=x), Tensor(data=np.int32(LENGTHS))], amp=amp, **how)
        y = np.ones((T, N, 2), np.float32)
        lengths = [np.int32(LENGTHS), np.int32([5, 5, 1])]
        found.append([model.train_one_batch(x, lengths[i % 2], y).item() for i in range(6)])
        if how:
            assert len(model.graphs) == 1
            with pytest.raises(ValueError, match="length 9"):
                model.train_one_batch(x, np.int32([9, 1, 1]), y)
    assert found[0] == found[1] == found[2] and found[0][-1] < found[0][0]


def test_a_layer_is_a_few_operations():
    """All steps are one operation, whatever their number."""
    counts = []
    for steps in (4, 40):
        model = Tagger("LSTM")
        x, lengths = normal(steps, N, F), np.int32([1, 2, 3])
        model.compile([Tensor(data=x), Tensor(data=lengths)], use_graph=True)
        for _ in range(3):
            model.train_one_batch(x, lengths, np.ones((steps, N, 2), np.float32))
        counts.append(model.graphs[0].nodes)
    assert counts[0] == counts[1]


# ---- bad input -----------------------------------------------------------------------------------


def of(*shape, dtype="float32"):
    return Tensor(shape, dtype=dtype)


def net(*args, **options):
    return layer.LSTM(F, H, *args, **options)


GOOD = (of(T, N, F), of(F, 24), of(H, 24))
BAD = {
    "lstm: x: got shape": (ShapeError, lambda: autograd.lstm(of(T, N, 5), *GOOD[1:])),
    "lstm: R: got shape": (ShapeError, lambda: autograd.lstm(*GOOD[:2], of(5, 24))),
    "lstm: W: got shape": (ShapeError, lambda: autograd.lstm(GOOD[0], of(F, 23), GOOD[2])),
    "lstm: b: got shape": (ShapeError, lambda: autograd.lstm(*GOOD, of(23))),
    "lstm: h0: got shape": (ShapeError, lambda: autograd.lstm(*GOOD, None, of(N, 5))),
    "lstm: c0: got dtype": (
        DTypeError,
        lambda: autograd.lstm(*GOOD, None, None, of(N, H, dtype="float64")),
    ),
    "lstm: peepholes": (ShapeError, lambda: autograd.lstm(*GOOD, peepholes=of(17))),
    "lstm: projection": (ShapeError, lambda: autograd.lstm(*GOOD, projection=of(5, H))),
    "lstm: gate_order": (ValueError, lambda: autograd.lstm(*GOOD, gate_order="ifg")),
    "gru: W: got shape": (ShapeError, lambda: autograd.gru(GOOD[0], of(F, 4), of(1, 4))),
    "rnn: activation": (ValueError, lambda: autograd.rnn(*GOOD, activation="sin")),
    "rnn: W: got dtype": (DTypeError, lambda: autograd.rnn(GOOD[0], of(F, dtype="int32"), of(H))),
    "LSTM: proj_size": (ValueError, lambda: net(proj_size=H)),
    "LSTM: num_layers": (ValueError, lambda: net(0)),
    "LSTM: nonlinearity": (ValueError, lambda: net(nonlinearity="relu")),
    "LSTM: embedding": (TypeError, lambda: net(embedding=3)),
    "got 8 .*at most 7": (TypeError, lambda: layer.LSTM(F, H, 1, True, False, 0.0, False, 8)),
    "got 9 .*at most 8": (TypeError, lambda: layer.LSTM(F, H, "tanh", 1, True, False, 0, False, 8)),
    "LSTM: got shape .*want 4 on axis -1": (ShapeError, lambda: net()(of(T, N, 5))),
    "LSTM: got a state": (ShapeError, lambda: net()(GOOD[0], (of(N, H), None))),
    "LSTM: .*pair": (TypeError, lambda: net()(GOOD[0], of(1, N, H))),
    "CudnnRNN: rnn_mode": (ValueError, lambda: layer.CudnnRNN(2, rnn_mode="x")),
    "RNNHandle: mode": (ValueError, lambda: autograd.RNNHandle(GOOD[0], 2, 4)),
    "_RNN: .*weights": (
        ShapeError,
        lambda: autograd._RNN(autograd.RNNHandle(GOOD[0], 2))(GOOD[0], None, None, of(3)),
    ),
    "GRUCell: got shape": (ShapeError, lambda: layer.GRUCell(5, 2)(of(N, F))),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_bad_input(message):
    error, call = BAD[message]
    with pytest.raises(error, match=message):
        call()
