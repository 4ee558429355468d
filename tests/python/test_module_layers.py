"""Modules of layers that the user wrote."""

import abc
import threading
import time

import numpy as np
import pytest
from chains import ROW, chain, names
from singa_rs import autograd, layer, module, tensor
from singa_rs.tensor import Tensor


class Scale(layer.Layer):
    def __init__(self):
        self.early = 3  # before super().__init__()
        super().__init__()
        self.calls = 0

    def initialize(self, x):
        self.calls += 1
        self.factor = Tensor((1,), x.device, x.dtype, stores_grad=True)
        self.factor.set_value(2)
        self.seen = Tensor((1,), x.device, x.dtype)
        self.product = self.factor * x  # outside of a layer, this would be recorded

    def forward(self, x):
        self.result = autograd.mul(x, self.factor)
        return self.result


def test_user_layer():
    one = Scale()
    assert not one._initialized and one.early == 3
    with autograd._training_scope(True):
        one(Tensor(data=ROW))
        one(Tensor(data=ROW))
    assert one._initialized and one.calls == 1
    assert names(one) == ["factor"] and one.factor.name == "factor"
    assert one.product._creator is None and one.result._creator is not None
    assert one.product.name == "product" and one.result.name.startswith("Mul#")
    assert list(one.get_states()) == ["factor", "seen", "product"]  # `result` is made in forward
    one.initialize(Tensor(data=ROW))
    assert one.calls == 2


def test_initialize_by_hand_runs_once():
    one = Scale()
    one.initialize(Tensor(data=ROW))
    one(Tensor(data=ROW))
    assert one.calls == 1


def test_failed_initialisation_is_tried_again():
    dense = layer.Linear(2)
    with pytest.raises(TypeError):
        dense("x")
    assert not dense._initialized
    assert dense(Tensor(data=ROW)).shape == (2, 2)


def test_threads_share_one_initialisation():
    class Slow(Scale):
        def initialize(self, x):
            time.sleep(0.02)
            super().initialize(x)

    one, seen = Slow(), []
    threads = [
        threading.Thread(target=lambda: seen.append((one(Tensor(data=ROW)), one.factor)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.calls == 1 and all(factor is one.factor for _, factor in seen) and len(seen) == 4


def test_inputs_in_a_list():
    class Pair(layer.Layer):
        def initialize(self, xs):
            self.W = Tensor(xs[0].shape, xs[0].device, stores_grad=True)

        def forward(self, xs):
            return xs[0] + xs[1] + self.W

    pair = Pair()
    assert pair([Tensor((2, 3)), Tensor((2, 3))]).shape == (2, 3)


def test_methods_of_a_class_other_than_a_layer():
    class Mixin:
        def initialize(self, x):
            self.W = Tensor((3,), stores_grad=True)

        def forward(self, x):
            return x + self.W

    class Mixed(Mixin, module.Module):
        pass

    class Again(Mixed):
        def forward(self, x):
            return super().forward(x)

    for cls in (Mixed, Again):
        mixed = cls()
        assert mixed(ROW).shape == (2, 3) and names(mixed) == ["W"]


def test_given_name_of_a_tensor_is_kept():
    class Named(layer.Layer):
        def __init__(self):
            super().__init__()
            self.hx = Tensor((1,), name="memory", stores_grad=True)

        def forward(self, x):
            return x

    assert Named().hx.name == "memory" and names(Named()) == ["hx"]


def test_user_get_and_set_states():
    class Recurrent(layer.Layer):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(2)
            self.hold = lambda: self.hx
            object.__setattr__(self, "hx", Tensor((2,), name="hx"))

        def forward(self, x):
            return self.fc(x)

        def get_states(self):
            states = super().get_states()
            states["my." + self.hx.name] = self.hx
            return states

        def set_states(self, states):
            self.hx.copy_from(states["my." + self.hx.name])
            super().set_states(states)

    made = chain(lambda self: Recurrent(), ROW)
    states = {name: np.full(t.shape, 5.0) for name, t in made.get_states().items()}
    assert "my.hx" in states
    made.set_states(states)
    assert all((t.to_numpy() == 5).all() for t in made.get_states().values())


def test_device_and_dtype_checks():
    one = layer.ReLU()
    a, b = Tensor((2,), dtype=tensor.float64), Tensor((2,))
    one.device_check(a, b)
    one.dtype_check(a, b)
    assert b.dtype == tensor.float64
    with pytest.raises(TypeError, match="ReLU"):
        one.dtype_check(Tensor((2,), dtype=tensor.int32), b)


def test_layer_without_forward():
    with pytest.raises(NotImplementedError, match="Layer"):
        layer.Layer()(1)


def test_a_class_may_have_abstract_methods():
    class Base(module.Module, abc.ABC):
        @abc.abstractmethod
        def body(self, x): ...

        def forward(self, x):
            return self.body(x) * 2

    class Twice(Base):
        def body(self, x):
            return x * 2

    with pytest.raises(TypeError, match="abstract"):
        Base()
    assert Twice()(tensor.ones((1,))).tolist() == [4]
    made = type("Made", (Twice,), {})
    assert made.__module__ == __name__ and isinstance(made(), Base)


@pytest.mark.parametrize("name", ["_step", "_mode", "_node", "_device", "_inputs", "_amp"])
@pytest.mark.parametrize("use_graph", [True, False])
def test_programs_may_use_usual_names(name, use_graph):
    class Named(module.Module):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(2)
            setattr(self, name, None if name in ("_device", "_inputs", "_amp") else 0)

        def forward(self, x):
            return self.fc(x)

        def train_one_batch(self, x):
            return self.forward(x)

    model = Named()
    model.compile([ROW], use_graph=use_graph)
    assert [model(ROW).shape for _ in range(3)] == [(2, 2)] * 3 and len(model.get_params()) == 2
