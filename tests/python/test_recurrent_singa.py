"""SINGA's recurrent layers: lists of steps, and flat weights."""

import numpy as np
import pytest
from layer_calls import close, normal
from singa_rs import autograd, layer
from singa_rs.tensor import Tensor
from test_recurrent import LAYERS, LENGTHS, F, H, N, T, tensors, training

__all__ = ["training"]


def test_lists_of_steps():
    xs, h0 = tensors(*normal(T, N, F)), Tensor(data=normal(N, H))
    one = layer.RNN(F, H)
    ys, h = one(xs, h0)
    want = h0
    for y, x in zip(ys, xs, strict=True):
        want = one.step_forward(x, want, one.Wx, one.Wh, one.b)
        close(y.to_numpy(), want.to_numpy())
    assert isinstance(ys, list) and set(one.get_params()) == {"Wx", "Wh", "b"}
    close(h.to_numpy(), want.to_numpy())
    one, c0 = layer.LSTM(F, H), Tensor(data=normal(N, 1))
    ys, h, c = one(tuple(xs), (h0, c0))
    want = (h0, autograd.expand(c0, (N, H)))
    for y, x in zip(ys, xs, strict=True):
        want = one.step_forward(x, *want)
        close(y.to_numpy(), want[0].to_numpy())
    close(c.to_numpy(), want[1].to_numpy())
    names = {f"{kind}_{gate}" for kind in ("Wx", "Wh", "Bx", "Bh") for gate in "ifog"}
    assert set(one.get_params()) == names
    assert len(autograd.gradients(autograd.reduce_sum(h * c))) == 16 + T
    with pytest.raises(ValueError, match="LSTM: .*list"):
        layer.LSTM(F, H, 2)(xs)
    assert layer.LSTM(F, H, "tanh", 2, False).num_layers == 2


@pytest.mark.parametrize(("cls", "name"), [(layer.RNN, "h0"), (layer.LSTM, "h0_c0")])
def test_singas_names_of_arguments(cls, name):
    xs, h, c = tensors(*normal(T, N, F)), *tensors(*normal(2, N, H))
    state, one = (h if cls is layer.RNN else (h, c)), cls(F, H)
    ys, last, *_ = one(xs=xs, **{name: state})
    for got in (one(xs, **{name: state}), one.forward(x=xs, state=state), one(xs, state)):
        close(got[1].to_numpy(), last.to_numpy())
    other = cls(F, H)
    other.initialize(xs=xs, **{name: state})
    assert set(other.get_params()) == set(one.get_params()) and len(ys) == T
    for fresh in (one, cls(F, H)):
        with pytest.raises(TypeError, match=f"{cls.__name__}: got both xs and x"):
            fresh(xs=xs, x=xs)
        with pytest.raises(TypeError, match=f"{cls.__name__}: got both {name} and state"):
            fresh(xs, state=state, **{name: state})
        with pytest.raises(TypeError, match="'hx'"):
            fresh(xs, hx=state)


FLAT = [("lstm", "ifgo", "LSTM"), ("gru", "rzn", "GRU"), ("vanilla", "h", "RNN")]


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("mode, order, name", FLAT)
def test_flat_weights(mode, order, name, lengths):
    """The layer with flat weights is the one whose parameters are these, in cuDNN's order."""
    x, own = normal(N, T, F), {"lstm": "iofg", "gru": "zrn", "vanilla": "h"}[mode]
    options = {"num_layers": 2, "bidirectional": True, "batch_first": True}
    flat = layer.CudnnRNN(H, rnn_mode=mode, use_mask=lengths is not None, **options)
    one = LAYERS[name][0](F, H, **options)
    given = {"lengths": lengths}
    y, want = flat(Tensor(data=x), seq_lengths=lengths), one(Tensor(data=x), **given)[0]
    assert y.shape == want.shape
    at, parts = 0, flat.W.to_numpy()
    for kinds in (("W", "R"), ("b",)):
        for i in range(2):
            for way in ("", "_reverse"):
                for kind in kinds:
                    t = getattr(one, f"{kind}_l{i}{way}")
                    piece, at = parts[at : at + t.numel], at + t.numel
                    rows = piece.reshape(-1, len(order), H, *t.shape[:-1][:1])
                    rows = rows[:, [order.index(gate) for gate in own]]
                    t.copy_from(rows.reshape(-1) if kind == "b" else rows.reshape(-1, len(t)).T)
    assert at == len(parts) == flat.handle.weights_size
    want = one(Tensor(data=x), **given)[0].to_numpy()
    close(flat(Tensor(data=x), seq_lengths=lengths).to_numpy(), want)
    last = layer.CudnnRNN(
        H, rnn_mode=mode, use_mask=lengths is not None, return_sequences=False, **options
    )
    last(Tensor(data=x), seq_lengths=lengths)
    last.W.copy_from(flat.W)
    ends = [T] * N if lengths is None else lengths
    rows = np.stack([w[n - 1] if n else 0 * w[0] for w, n in zip(want, ends, strict=True)])
    close(last(Tensor(data=x), seq_lengths=lengths).to_numpy(), rows)


@pytest.mark.parametrize("start", [(N, H), (N, 1)])
@pytest.mark.parametrize("name", ["RNN", "LSTM"])
def test_the_last_state_is_written_over_the_first_before_going_backward(name, start):
    """As programs do that keep the state between batches; the gradient is of the first state."""
    shapes = [start] if name == "RNN" else [(N, H), start]
    one, xs, first = LAYERS[name][0](F, H), tensors(*normal(T, N, F)), [normal(*s) for s in shapes]

    def gradients(is_overwritten):
        states = tensors(*first)
        ys, *last = one(xs, states[0] if name == "RNN" else tuple(states))
        for state, new in zip(states, last, strict=True) if is_overwritten else ():
            state.copy_data(new if state.shape == new.shape else new[:, :1])
        loss = autograd.reduce_sum(autograd.cat(ys) * autograd.cat(ys))
        return [g.to_numpy().tobytes() for _, g in autograd.backward(loss)]

    assert gradients(True) == gradients(False)
