"""What a program attaches to tensors besides their values: attributes, names, the tape."""

import numpy as np
import pytest
from recorded import evaluated, pair, replays, same, tensor
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor, from_numpy

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def marked(value, name="tag"):
    x = from_numpy(X)
    setattr(x, name, value)
    return x


class Scaled(module.Module):
    """Multiplies by a number that its argument carries."""

    def forward(self, x):
        return x * float(self.read(x))


READ = {
    "tag": (lambda x: x.tag, 2.0, 3.0),
    "name": (lambda x: len(x.name), "ab", "abc"),
    "more": (lambda x: x.more[0], [2.0], [3.0]),
}


@pytest.mark.parametrize("name", READ)
def test_an_attribute_of_an_argument_is_part_of_the_key(name):
    recorded, eager = evaluated(Scaled)
    recorded.read = eager.read = READ[name][0]
    for value in READ[name][1:] * 2:
        for _ in range(4):
            same(recorded(marked(value, name)), eager(marked(value, name)))
    assert replays(recorded, "forward") > 4


def test_an_attribute_that_goes_and_one_that_comes():
    recorded, eager = evaluated(Scaled)
    recorded.read = eager.read = lambda x: getattr(x, "tag", 5.0)
    for i in range(12):
        x = from_numpy(X) if i // 4 % 2 else marked(2.0)
        same(recorded(x), eager(x))


def test_arguments_without_attributes_replay_as_before():
    recorded, eager = evaluated(Scaled)
    recorded.read = eager.read = lambda x: 2.0
    for _ in range(5):
        x = from_numpy(X)
        x.requires_grad = True
        same(recorded(x), eager(x))
        assert x.name.startswith("Dummy#")
        same(recorded(x), eager(x))
    assert replays(recorded, "forward") == 8


@pytest.mark.parametrize("held", [False, True])
def test_the_gradient_of_a_tensor_other_than_a_parameter(held):
    class Reading(module.Module):
        def __init__(self):
            super().__init__()
            self.t = from_numpy(X)

        def forward(self, x):
            grad = (self.t if held else x).grad
            return x * 2 if grad is None else x * grad

    recorded, eager = evaluated(Reading)
    x, grads = from_numpy(X), [None, *(from_numpy(X + i) for i in range(2)), None]
    for i in range(16):
        for model in (recorded, eager):
            (model.t if held else x).grad = grads[i // 4]
        same(recorded(x), eager(x))


def test_whether_an_operation_made_an_argument():
    class Asking(module.Module):
        def forward(self, x):
            return x * (2.0 if x.is_dummy() else 3.0)

    recorded, eager = evaluated(Asking)
    autograd.training = True
    made = autograd.relu(from_numpy(X))
    autograd.training = False
    for i in range(12):
        x = made if i // 4 % 2 else from_numpy(X)
        same(recorded(x), eager(x))


SET = {
    "tag": lambda x: setattr(x, "tag", 3),
    "name": lambda x: setattr(x, "name", "seen"),
    "requires_grad": lambda x: setattr(x, "requires_grad", False),
    "stores_grad": lambda x: setattr(x, "stores_grad", True),
    "grad": lambda x: setattr(x, "grad", x),
}


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("name", SET)
def test_marks_that_a_step_makes_arrive_in_every_call(name):
    class Marking(module.Module):
        def forward(self, x):
            SET[name](x)
            return x + 1

    def looks(x):
        return x.__dict__.get("tag"), x._name, x.requires_grad, x.stores_grad, x.grad is None

    recorded, eager = evaluated(Marking)
    for _ in range(5):
        x, other = from_numpy(X), from_numpy(X)
        same(recorded(x), eager(other))
        assert looks(x) == looks(other) != looks(from_numpy(X))


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_attributes_of_results():
    class Telling(module.Module):
        def forward(self, x):
            y = x + 1
            y.scale = 2.0
            return y

    recorded, eager = evaluated(Telling)
    for _ in range(5):
        y, want = recorded(from_numpy(X)), eager(from_numpy(X))
        same(y, want)
        assert y.scale == want.scale == 2.0


def test_the_name_of_a_parameter_is_part_of_the_key():
    class Named(module.Module):
        def __init__(self):
            super().__init__()
            self.w = tensor(2, 3)
            self.w.name = "decayed"

        def forward(self, x):
            return x * (self.w if self.w.name == "decayed" else 2.0)

    recorded, eager = evaluated(Named)
    eager.w.copy_from(recorded.w)
    for i in range(8):
        for model in (recorded, eager):
            model.w.name = "decayed" if i < 4 else "plain"
        same(recorded(from_numpy(X)), eager(from_numpy(X)))


# ---- the tape ------------------------------------------------------------------------------------


class Writing(module.Module):
    """Adds a parameter to its argument in place."""

    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(3)
        self.w = from_numpy(np.full(6, 0.5, np.float32))
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        x += self.w
        return self.fc(x)

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = autograd.reduce_mean(out * out).reshape((1,))
        self.optimizer(loss)
        return out, loss


MADE = {
    "given": lambda x: x,
    "made": autograd.tanh,
    "a view": lambda x: x[:, :],
    "a view of what was made": lambda x: autograd.tanh(x).reshape(x.shape),
}


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("first", MADE)
@pytest.mark.parametrize("then", MADE)
def test_tensors_that_are_written_in_place(first, then):
    """Writes to results of operations are part of the tape, writes to other tensors are not."""
    recorded, eager = pair(Writing)
    for i in range(8):
        values = np.full((4, 6), i, np.float32) / 8
        made = []
        for model in (recorded, eager):
            x = MADE[first if i < 4 else then](from_numpy(values))
            made.append((*model(x, None), x, model.w))
        same(*made)


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_a_later_loss_of_what_a_step_has_written():
    """The tape leads from the loss to the parameter, which a graph would hide."""

    class Only(Writing):
        def train_one_batch(self, x, y):
            x += self.w
            return self.fc(x.detach())

    recorded, eager = pair(Only)
    for _ in range(4):
        gradients = []
        for model in (recorded, eager):
            x = autograd.tanh(from_numpy(np.ones((4, 6), np.float32)))
            model(x, None)
            model.w.grad = None
            autograd.reduce_sum(x * x).backward()
            gradients.append(model.w.grad)
        same(*gradients)


def test_unwritten_results_of_operations_are_replayed():
    class Reading(Writing):
        def forward(self, x):
            return self.fc(x + self.w)

    recorded, eager = pair(Reading)
    for i in range(12):
        x = MADE["made" if i % 2 else "given"](from_numpy(np.full((4, 6), i, np.float32)))
        same(recorded(x, None), eager(x, None))
    assert replays(recorded) == 8 and isinstance(recorded.w, Tensor)
