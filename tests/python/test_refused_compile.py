"""A `compile` that is refused leaves the model as it was."""

import pytest
from recorded import CPU, B, Net, inputs
from singa_rs import autograd, module, tensor
from singa_rs.tensor import Placeholder


def told(model):
    """What a refused call must leave as it was."""
    flags = [(one.training, one._has_mode, one._device) for one in (model, model.inner)]
    states = {name: (id(t), t.to_numpy().tobytes()) for name, t in model.get_states().items()}
    kept = (model._graphs, model._amp, model._inputs, autograd.training)
    return flags, states, kept, model.fc1._initialized, sorted(vars(model))


class Nested(Net):
    def __init__(self, reads=False):
        super().__init__()
        self.inner, self.reads = module.Module(), reads

    def forward(self, x):
        made = super().forward(x)
        if self.reads:
            float(made.max())
        return made @ x if self.reads or x.shape[1] == 7 else made


@pytest.mark.parametrize("before", [None, {}, {"amp": "float16"}, {"use_graph": False}])
@pytest.mark.parametrize("amp", [None, "float16"])
@pytest.mark.parametrize("is_train", [False, True])
def test_a_refused_compile_changes_nothing(before, amp, is_train):
    model = Nested()
    model.inner.eval()
    if before is not None:
        model.compile(inputs(), is_train=not is_train, **before)
        model(*B) if model.training else model(B[0])
    now = told(model)
    with pytest.raises(ValueError, match=r"matmul|got shape \(4, 7\), want 6"):
        model.compile([Placeholder((4, 7))], is_train=is_train, amp=amp)
    assert told(model) == now
    out = model.forward(B[0])
    assert out.dtype is (tensor.float16 if (before or {}).get("amp") else tensor.float32)


def test_a_forward_on_zeros_that_fails_changes_nothing():
    model = Nested(reads=True)
    now = told(model)
    with pytest.raises(ValueError, match="matmul"):
        model.compile(inputs(), use_graph=False, amp="float16")
    assert told(model) == now and not model.get_states()


def weights_of(refused):
    CPU.set_seed(3)
    model = Nested(reads=True)
    if refused:
        with pytest.raises(ValueError, match="matmul"):
            model.compile(inputs(), use_graph=False)
    model.reads = False
    model.compile(inputs(), use_graph=False)
    return model.fc1.W.to_numpy()


def test_a_refused_compile_draws_no_numbers():
    assert (weights_of(True) == weights_of(False)).all()


def test_graphs_are_replayed_after_a_refused_compile():
    replayed = Net()
    replayed.compile(inputs(), is_train=False)
    for _ in range(3):
        replayed(B[0])
    want = replayed(B[0]).to_numpy()
    with pytest.raises(ValueError, match=r"got shape \(4, 7\), want 6"):
        replayed.compile([Placeholder((4, 7))])
    assert (replayed(B[0]).to_numpy() == want).all()
    assert "replayed 3 times" in replayed.explain()
