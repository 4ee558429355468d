"""Layers that a function reaches have their parameters before it is traced: files hold them, and
never draw them."""

import numpy as np
import pytest
from onnx_models import real, there
from singa_rs import autograd, layer, module, sonnx, tensor
from test_sonnx_export import here

X = real(2, 4)
SHARED = layer.Linear(3)


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = layer.Linear(3), layer.Linear(2)

    def encode(self, x):
        return autograd.relu(self.body(x)) + 1

    def forward(self, x):
        return self.head(self.encode(x))


class Outside(module.Module):
    """A model that calls layers which it does not hold."""

    def __init__(self):
        super().__init__()
        other = layer.Linear(3)
        self.call = lambda x: other(x)

    def forward(self, x):
        return self.call(x) + SHARED(x)


def closure():
    own = layer.Sequential(layer.Linear(5), layer.ReLU(), layer.Linear(2))
    return lambda x: own(x)


def default():
    made = layer.Linear(3)
    return lambda x, own=made: own(x)


def in_a_container():
    held = {"all": [layer.Linear(3)]}
    return lambda x: held["all"][0](x)


def through_another_function():
    inner = closure()
    return lambda x: inner(x) * 2


MAKERS = [closure, default, in_a_container, through_another_function, Outside]


@pytest.mark.parametrize("dynamic", [None, {"x": [0]}])
@pytest.mark.parametrize("make", [*MAKERS, lambda: Net().encode], ids=lambda one: one.__name__)
def test_parameters_that_no_call_has_made(make, dynamic):
    function = make()
    proto = sonnx.model_proto(function, [X], dynamic=dynamic)
    assert len(proto.graph.initializer) >= 2
    assert not [node for node in proto.graph.node if node.op_type.startswith("Random")]
    (want,) = here(function, [X])
    for (got,) in (sonnx.prepare(proto).run([X]), there(proto, [X])):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dynamic", [None, {"x": [0]}])
def test_layers_that_the_call_makes_are_refused(dynamic):
    with pytest.raises(ValueError, match="export: a layer makes a parameter, of shape .*before"):
        sonnx.model_proto(lambda x: layer.Linear(3)(x), [X], dynamic=dynamic)


def test_random_numbers_that_are_no_parameters_are_written():
    def noisy(x):
        return x + tensor.zeros(x.shape).gaussian(0.0, 1.0)

    proto = sonnx.model_proto(noisy, [X])
    assert [node for node in proto.graph.node if node.op_type == "RandomNormalLike"]
