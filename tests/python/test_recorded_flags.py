"""Flags of a model's tensors, changed between calls: freezing a parameter takes effect wherever it
is held and however it is trained."""

import numpy as np
import pytest
from recorded import copy, evaluated, replays, same, tensor
from singa_rs import GraphError, autograd, device, layer, module, opt
from singa_rs.tensor import Tensor, from_numpy

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 6


class Holder:
    """An object of a user's class."""


def by_call(model, loss):
    model.optimizer(loss)


def by_pairs(model, loss):
    for p, g in autograd.backward(loss):
        model.optimizer.apply(p.name, p, g)
    model.optimizer.step()


def by_gradients(model, loss):
    """Gradients are set to zero instead of None, so a frozen parameter keeps one."""
    loss.backward()
    for p in model.get_params().values():
        if p.grad is not None:
            model.optimizer.apply(p.name, p, p.grad)
            p.grad.set_value(0.0)
    model.optimizer.step()


def by_flag(model, loss):
    loss.backward()
    p = HELD[model.where][1](model)
    if p.stores_grad:
        p -= p.grad * 0.1


UPDATES = (by_call, by_pairs, by_gradients, by_flag)


def hold(model, p):
    model.p = p


def hold_in_list(model, p):
    model.parts = [p]


def hold_in_object(model, p):
    model.holder = Holder()
    model.holder.p = p


def hold_in_layer(model, p):
    model.fc = layer.Linear(3)


HELD = {
    "attribute": (hold, lambda model: model.p),
    "list": (hold_in_list, lambda model: model.parts[0]),
    "object": (hold_in_object, lambda model: model.holder.p),
    "layer": (hold_in_layer, lambda model: model.fc.W),
}


class Trained(module.Module):
    """A product with a parameter that is held in one of several ways."""

    def __init__(self, where, update):
        super().__init__()
        self.where, self.update = where, update
        self.q = from_numpy(np.full(3, 0.25, np.float32))
        self.q.stores_grad = True
        HELD[where][0](self, tensor(3))
        if where != "layer":
            HELD[where][1](self).stores_grad = True
        self.optimizer = opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        if self.where == "layer":
            return self.fc(x) * self.q
        return x * HELD[self.where][1](self) * self.q

    def train_one_batch(self, x):
        out = self.forward(x)
        loss = autograd.reduce_mean(out * out).reshape((1,))
        self.update(self, loss)
        return loss


def trained(where, update):
    """The same model with a graph and without."""
    models = []
    for use_graph in (True, False):
        np.random.seed(0)
        model = Trained(where, update)
        model.compile([from_numpy(X)], use_graph=use_graph)
        models.append(model)
    recorded, eager = models
    for name, state in eager.get_states().items():
        state.copy_from(recorded.get_states()[name])
    HELD[where][1](eager).copy_from(HELD[where][1](recorded))
    return models


@pytest.mark.parametrize("flag", ["stores_grad", "requires_grad"])
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("where", HELD)
def test_a_parameter_that_is_frozen_and_thawed(where, update, flag):
    models = recorded, eager = trained(where, update)
    for value in (True, False, True, False):
        for model in models:
            setattr(HELD[where][1](model), flag, value)
        for _ in range(4):
            same(recorded(from_numpy(X)), eager(from_numpy(X)))
            shown = [(HELD[where][1](model), model.q) for model in models]
            same(*shown)
            gradients = [HELD[where][1](model).grad for model in models]
            assert (gradients[0] is None) == (gradients[1] is None)
            if gradients[0] is not None:
                same(*gradients)
    assert replays(recorded) >= 8


def test_a_state_that_becomes_a_parameter():
    """A tensor that has no gradient yet, and gets one."""
    models = recorded, eager = trained("attribute", by_gradients)
    for model in models:
        model.p.stores_grad = False
    for i in range(10):
        if i == 5:
            for model in models:
                model.p.stores_grad = True
        same(recorded(from_numpy(X)), eager(from_numpy(X)))
        same(recorded.p, eager.p)


class Louder(Tensor):
    """A user's subclass of Tensor."""

    def relu(self):
        return autograd.relu(self) * 2.0


def test_a_tensor_of_another_class_on_the_same_memory():
    class Asking(module.Module):
        def __init__(self):
            super().__init__()
            self.t = from_numpy(X)

        def forward(self, x):
            return self.t.relu() + x

    recorded, eager = evaluated(Asking)
    for i in range(12):
        for model in (recorded, eager):
            if i % 4 == 0:
                plain = model.t.alias() if i != 4 else model.t.copy()
                plain.__class__ = Louder if i == 4 else Tensor
                model.t = plain
        same(recorded(from_numpy(X)), eager(from_numpy(X)))


def test_whether_an_operation_made_an_attribute():
    class Asking(module.Module):
        def forward(self, x):
            return x * (2.0 if self.h.is_dummy() else 3.0)

    recorded, eager = evaluated(Asking)
    autograd.training = True
    made = autograd.relu(from_numpy(X))
    autograd.training = False
    for i in range(12):
        recorded.h = eager.h = made if i // 4 % 2 else made.detach()
        same(recorded(from_numpy(X)), eager(from_numpy(X)))
    assert replays(recorded, "forward") > 4


class Drawing(module.Module):
    """Draws numbers, and then calls a layer in every second step."""

    def __init__(self, noisy=True):
        super().__init__()
        self.noise, self.n, self.noisy = tensor(2, 3), 0, noisy
        self.fc = layer.Linear(2)

    def forward(self, x):
        if self.noisy:
            self.noise.gaussian(0.0, 1.0)
        return self.fc(x * self.noise) if self.n % 2 else x * self.noise

    def train_one_batch(self, x):
        self.n += 1
        return self.forward(x)


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("noisy", [True, False])
def test_numbers_drawn_before_a_layer_is_made(noisy):
    """Numbers are drawn in program order, so parameters start as they do eagerly."""
    made = []
    for use_graph in (True, False):
        device.get_default_device().set_seed(5)
        model = Drawing(noisy)
        model.noise.copy_from_numpy(X)
        model.compile([from_numpy(X)], use_graph=use_graph)
        made.append([(model(from_numpy(X)), copy(model.noise)) for _ in range(6)])
        made[-1] += [model.fc.W, Tensor((4,)).uniform(0.0, 1.0)]
    same(*made)


def test_numbers_drawn_before_a_layer_is_made_in_a_recording_by_hand():
    model, dev = Drawing(), device.get_default_device()
    model.n = 1
    with pytest.raises(GraphError, match="record: state is initialised at random after the step"):
        with dev.record():
            model.forward(from_numpy(X))
    model.forward(from_numpy(X))
    with dev.record() as graph:
        made = model.forward(from_numpy(X))
    graph.run()
    assert np.isfinite(made.to_numpy()).all()


class Alternating(module.Module):
    """Trains one of two layers at a time; the step decides which."""

    def __init__(self, decide):
        super().__init__()
        self.a, self.b = layer.Linear(4), layer.Linear(2)
        self.optimizer, self.decide, self.n = opt.SGD(0.1, momentum=0.9), decide, 0

    def forward(self, x):
        return self.b(autograd.tanh(self.a(x)))

    def train_one_batch(self, x):
        self.n += 1
        self.decide(self)
        out = self.forward(x)
        loss = autograd.reduce_mean(out * out).reshape((1,))
        self.optimizer(loss)
        return loss


def freeze(one, flag):
    for p in one.get_params().values():
        p.requires_grad = flag


def in_turns(model):
    freeze(model.a, model.n % 2 == 1)


def after_a_while(model):
    freeze(model.a, model.n > 6)


def by_two_rules(model):
    freeze(model.b, model.n % 3 == 0)
    model.a.W.requires_grad = not model.a.W.requires_grad


@pytest.mark.parametrize("decide", [in_turns, after_a_while, by_two_rules])
def test_a_step_that_freezes_parameters(decide):
    models = []
    for use_graph in (True, False):
        device.get_default_device().set_seed(0)
        models.append(Alternating(decide))
        models[-1].compile([from_numpy(X)], use_graph=use_graph)
    recorded, eager = models
    for i in range(50):
        if i == 30:
            for model in models:
                model.b.W.requires_grad = not model.b.W.requires_grad
        same(recorded(from_numpy(X)), eager(from_numpy(X)))
        states = [model.get_states() for model in models]
        same(*(list(one.values()) for one in states))
        flags = [[p.requires_grad for p in one.values()] for one in states]
        assert flags[0] == flags[1]
    assert replays(recorded) >= 10
    assert decide is after_a_while or "sets requires_grad of a.W to True" in recorded.explain()


def test_what_freezing_changes_is_named():
    model = Alternating(lambda model: None)
    model.compile([from_numpy(X)])
    for flag in (True, True, False):
        freeze(model.b, flag)
        model(from_numpy(X))
    assert "attribute b.W changed requires_grad from True to False" in model.explain()
