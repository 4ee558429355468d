"""Names, attributes and arguments that SINGA's programs use of layers and tensors."""

import copy
import pickle

import numpy as np
import pytest
from onnx import helper
from singa_rs import autograd, layer, model, tensor
from singa_rs.compat import singa
from singa_rs.tensor import Tensor, from_numpy

X = np.random.default_rng(3).standard_normal((2, 2, 5, 5)).astype(np.float32)


class Scale(layer.Layer):
    """Names its parameter as SINGA's layers do."""

    def initialize(self, x):
        made = Tensor((1,), stores_grad=True, name=self.name + layer.Layer.sep + "W")
        self.W = made.set_value(2)

    def forward(self, x):
        return x * self.W


class Net(model.Model):
    def __init__(self):
        super().__init__()
        self.one, self.more = Scale(), [Scale()]
        self.made = layer.Sequential(layer.Linear(2), Scale())
        self.names = self.one.name, self.more[0].name, self.made[1].name

    def forward(self, x):
        return self.made(self.more[0](self.one(x)))


def test_a_layers_name_is_its_path():
    net = Net()
    assert net.names == ("one", "more.0", "made.1")
    assert (net.name, Scale().name, net.made.name) == ("Net", "Scale", "made")
    net.compile([tensor.random((3, 4))], is_train=False, use_graph=False)
    assert {"one.W", "more.0.W", "made.1.W"} < net.get_params().keys()
    assert (net.one.name, net.more[0].name, net.made[1].name) == net.names
    alone = net.one
    del net.one
    net.other = alone
    assert alone.name == "other"
    assert copy.deepcopy(net).made.name == pickle.loads(pickle.dumps(net)).made.name == "made"
    assert "name" not in dict(net._watched())


def test_what_a_layer_calls_name_is_its_own():
    class Named(layer.Layer):
        def __init__(self):
            self.name, self.sep = "mine", "/"

        def forward(self, x):
            return x

    class Computed(layer.Layer):
        @property
        def name(self):
            return self.missing

    class Holds(layer.Layer):
        def __init__(self):
            self.name = layer.Linear(2)
            self.register_layers({"sep": layer.Linear(2)})

        def forward(self, x):
            return self.sep(self.name(x))

    assert (Named().name, Named().sep) == ("mine", "/")
    assert (Scale().sep, layer.Layer.sep) == (".", ".")
    with pytest.raises(AttributeError, match="'name'|'missing'"):
        _ = Computed().name
    holds = Holds()
    holds(tensor.random((2, 3)))
    assert holds.get_params().keys() == {"name.W", "name.b", "sep.W", "sep.b"}


POOLS = {"Pooling2d": 2, "MaxPool2d": 2, "AvgPool2d": 2, "MaxPool1d": 1, "AvgPool1d": 1}


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("module", [layer, singa.layer])
def test_padding_may_be_none_where_it_follows(module, mode):
    made = [(module.Conv2d, (3, 3))] + [(getattr(module, name), (2, 2)) for name in POOLS]
    for kind, sizes in made:
        y = kind(*sizes, padding=None, pad_mode=mode)(from_numpy(X))
        assert y.shape == kind(*sizes, pad_mode=mode)(from_numpy(X)).shape
        with pytest.raises(TypeError, match="padding: got None, want an int"):
            kind(*sizes, padding=None)


def test_paddings_are_told():
    L = singa.layer
    cases = [
        (L.Conv2d(2, 3, padding=1), (1, 1), (0, 0, 0, 0)),
        (L.Conv2d(2, 3, padding=(2, 1)), (2, 1), (0, 0, 0, 0)),
        (L.MaxPool2d(3, 2, (1, 0, 0, 1)), (0, 0), (1, 0, 0, 1)),
        (L.AvgPool2d(2, 2, pad_mode="SAME_UPPER"), (0, 0), (0, 1, 0, 1)),
        (L.Pooling2d(2, 2, pad_mode="SAME_LOWER"), (0, 0), (1, 0, 1, 0)),
        (L.MaxPool1d(3, 2, 1), (0, 1), (0, 0, 0, 0)),
        (L.SeparableConv2d(2, 3, padding=1), (1, 1), (0, 0, 0, 0)),
    ]
    for one, padding, odd in cases:
        one(from_numpy(X))
        assert (one.padding, one.odd_padding) == (padding, odd)
        assert one.pad_mode == one.window.pad_mode
    one.padding = 7  # a program's own
    assert one.padding == 7
    with pytest.raises(AttributeError, match="'no_such'"):
        _ = one.no_such


def test_a_cell_of_ones_own():
    class Cell(singa.layer.RNN_Base):
        def __init__(self, units):
            super().__init__()
            self.fc = layer.Linear(units)

        def step_forward(self, x, h):
            return autograd.tanh(self.fc(x) + h)

        def forward(self, xs, h):
            for x in xs:
                h = self.step_forward(x, h)
            return h

    cell = Cell(2)
    assert cell([tensor.random((3, 4))] * 2, tensor.zeros((3, 2))).shape == (3, 2)
    assert cell.get_params().keys() == {"fc.W", "fc.b"}
    assert isinstance(singa.layer.LSTM(3, 2), singa.layer.RNN_Base)
    with pytest.raises(TypeError, match="hidden_size"):
        singa.layer.RNN_Base(3)
    assert singa.autograd.RNN_Base is singa.layer.RNN_Base
    assert (autograd.RNN, autograd.LSTM) == (layer.RNN, layer.LSTM)


def test_the_shape_of_a_reshape_is_named():
    t = from_numpy(X)
    assert t.reshape(shape=(4, 25)).shape == t.reshape(4, -1).shape == (4, 25)
    assert t.reshape(shape=100).shape == (100,)
    with pytest.raises(TypeError, match="reshape: got both extents and shape"):
        t.reshape(4, shape=(4, 25))


def test_get_op_computes_a_node():
    given = from_numpy(X[0, 0])
    op = singa.sonnx.get_op(helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2))
    for one, want in zip(op(given), np.split(X[0, 0], [3], axis=1), strict=True):
        np.testing.assert_array_equal(one.to_numpy(), want)
    given.stores_grad = True
    with autograd._training_scope(True):
        (y,) = singa.sonnx.get_op(helper.make_node("Relu", ["x"], ["y"]))(given)
        grads = autograd.gradients(y.sum())
    np.testing.assert_array_equal(grads[given].to_numpy(), X[0, 0] > 0)
    with pytest.raises(NotImplementedError, match="NoSuch"):
        singa.sonnx.get_op(helper.make_node("NoSuch", ["x"], ["y"]))(given)
