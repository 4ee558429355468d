"""Optimizers and parameters that change between recorded steps."""

import numpy as np
import pytest
from recorded import Net, batch, function, pair, replays, same, step
from singa_rs import autograd, opt
from singa_rs.tensor import from_numpy


def test_learning_rate_between_steps():
    recorded, eager = pair(Net)
    for i in range(8):
        for model in (recorded, eager):
            model.optimizer.lr = 0.1 / (i + 1)
        step(recorded, eager, *batch())
    assert replays(recorded) == 6 and function(recorded).history.recordings == 2


#: What steps tell of hyperparameters.
TELLS = {
    "itself": lambda optimizer: optimizer.lr,
    "number": lambda optimizer: float(optimizer.lr),
    "init_value": lambda optimizer: optimizer.lr.init_value,
    "text": lambda optimizer: f"{optimizer.lr} {optimizer.lr:.3f}",
    "tensor": lambda optimizer: optimizer.lr(optimizer.step_counter).reshape(()),
    "product": lambda optimizer: optimizer.lr * 2,
    "comparison": lambda optimizer: optimizer.lr < 0.07,
    "by name": lambda optimizer: getattr(optimizer, "lr"),  # noqa: B009
    "optimizer": repr,
    "group": lambda optimizer: optimizer._groups[0].lr,
    "of the optimizer": lambda optimizer: optimizer._groups[0].momentum.init_value,
    "decay": lambda optimizer: [optimizer.weight_decay],
}


def assign(optimizer, i):
    if i in (4, 6):
        optimizer.lr = 0.2 / i
    elif i == 8:
        optimizer.lr.init_value = 0.03
    elif i == 9:
        optimizer._groups[0].lr = optimizer.momentum = 0.25
    elif i == 10:
        optimizer.weight_decay = 0.02
    elif i == 11:
        optimizer.lr = opt.Constant(0.01)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("tell", TELLS)
def test_a_step_tells_of_hyperparameters(tell, keeps):
    class Telling(Net):
        def __init__(self):
            super().__init__()
            self.optimizer = opt.SGD(0.1, momentum=0.9, weight_decay=0.01)
            self.optimizer.group("fc1", lr=0.05)
            self.told = None

        def train_one_batch(self, x, y):
            super().train_one_batch(x, y)
            told = TELLS[tell](self.optimizer)
            if keeps:
                self.told = told
            return told

    models, told = pair(Telling), ([], [])
    for i in range(13):
        x, y = batch()
        for model, rows in zip(models, told, strict=True):
            assign(model.optimizer, i)
            rows.append((str(model(x, y)), str(model.told)))
    assert told[0] == told[1]


def test_hyperparameter_that_changes_the_update():
    recorded, eager = pair(Net)
    for i in range(9):
        for model in (recorded, eager):
            model.optimizer.weight_decay = 0.01 if i >= 3 else 0
            model.optimizer.momentum = 0.0 if i >= 6 else 0.9
        step(recorded, eager, *batch())
    assert len(recorded.graphs) == 3


def test_schedule():
    recorded, eager = pair(Net)
    for model in (recorded, eager):
        model.optimizer.lr = opt.ExponentialDecay(0.1, 2, 0.5)
    for i in range(9):
        if i == 5:
            for model in (recorded, eager):
                model.optimizer.lr.decay_rate = 0.9
        step(recorded, eager, *batch())
        same(recorded.optimizer.lr_value, eager.optimizer.lr_value)
    assert recorded.optimizer.get_states()["step_counter"] == 9


@pytest.mark.parametrize("make", [opt.Adam, opt.AdamW, opt.RMSProp, opt.AdaGrad])
def test_other_optimizers(make):
    class Trained(Net):
        def __init__(self):
            super().__init__()
            self.optimizer = make(lr=0.01)

    recorded, eager = pair(Trained)
    for _ in range(5):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_parameters_written_between_steps():
    recorded, eager = pair(Net)
    for i in range(10):
        for model in (recorded, eager):
            if i == 3:
                model.fc1.W.copy_from(np.ones(model.fc1.W.shape, np.float32))
            if i == 5:
                model.set_params({"fc2.b": np.ones(3, np.float32)})
            if i == 7:
                model.fc1.W.data = from_numpy(np.full((6, 5), 0.5, np.float32))
        step(recorded, eager, *batch())


def test_parameter_frozen_between_steps():
    recorded, eager = pair(Net)
    for i in range(12):
        for model in (recorded, eager):
            model.fc1.W.requires_grad = i // 3 % 2 == 0
        before = recorded.fc1.W.to_numpy()
        step(recorded, eager, *batch())
        moved = bool((before != recorded.fc1.W.to_numpy()).any())
        assert moved == (i // 3 % 2 == 0)
    assert len(recorded.graphs) == 2


@pytest.mark.parametrize("zero", ["outside", "inside", "never"])
def test_gradients_left_in_parameters(zero):
    class Manual(Net):
        def train_one_batch(self, x, y):
            loss = self.loss(self.forward(x), y)
            if zero == "inside":
                self.forget()
            loss.backward()
            with autograd.no_grad():
                for p in self.get_params().values():
                    p -= 0.1 * p.grad
            return loss

        def forget(self):
            for p in self.get_params().values():
                p.grad = None

    recorded, eager = pair(Manual)
    for _ in range(8):
        for model in (recorded, eager):
            if zero == "outside":
                model.forget()
        step(recorded, eager, *batch())
        same(recorded.fc1.W.grad, eager.fc1.W.grad)
    assert replays(recorded) >= 3
