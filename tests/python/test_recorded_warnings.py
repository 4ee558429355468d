"""Warnings as errors: a call whose warning is raised has done nothing, or fails like any step."""

import warnings

import numpy as np
import pytest
from recorded import CPU, B, inputs, same_states
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import from_numpy

X = B[0]


class Differing(module.Module):
    """Each of its recordings differs."""

    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(3), opt.SGD(0.1)
        self.factor, self.n = 1.0, 0

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x, log=None):
        self.factor *= 0.9
        self.n += 1
        loss = autograd.reduce_mean(self.fc(x) * self.factor).reshape((1,))
        self.optimizer(loss)
        return loss


class Logging(Differing):
    """No graph can do what it does to its argument."""

    def train_one_batch(self, x, log):
        log.append(self.n)
        return super().train_one_batch(x)


class Deciding(Differing):
    """Each call has another argument."""

    def train_one_batch(self, x, n):
        return super().train_one_batch(x * float(n))


CASES = {
    Differing: lambda model, i: model(from_numpy(X)),
    Logging: lambda model, i: model(from_numpy(X), []),
    Deciding: lambda model, i: model(from_numpy(X), i),
}


def look(model):
    states = {name: state.to_numpy().tobytes() for name, state in model.get_states().items()}
    return model.factor, model.n, model.optimizer.get_states()["step_counter"], states


def made(cls, use_graph):
    CPU.set_seed(3)
    model = cls()
    model.compile(inputs(), use_graph=use_graph)
    return model


@pytest.mark.parametrize("cls", CASES)
def test_giving_up_recording(cls):
    """The warning comes before the call has done anything, and only once: the next runs eagerly."""
    recorded, eager = made(cls, True), made(cls, False)
    raised = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(40):
            before = look(recorded)
            try:
                got = CASES[cls](recorded, i)
            except RuntimeWarning as warning:
                assert "runs eagerly from now on" in str(warning)
                raised += 1
                assert look(recorded) == before
                got = CASES[cls](recorded, i)
            assert got.item() == CASES[cls](eager, i).item()
            assert look(recorded) == look(eager)
    assert raised == 1 and "runs eagerly" in recorded.explain()
    same_states(recorded, eager)


@pytest.mark.parametrize("cls", CASES)
def test_giving_up_recording_with_a_mere_warning(cls):
    recorded, eager = made(cls, True), made(cls, False)
    with pytest.warns(RuntimeWarning, match="runs eagerly from now on") as told:
        for i in range(40):
            assert CASES[cls](recorded, i).item() == CASES[cls](eager, i).item()
            assert look(recorded) == look(eager)
    assert len(told) == 1


class Inner(module.Module):
    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(3)

    def forward(self, x):
        return self.fc(x)


class Outer(module.Module):
    """Trains through a module in evaluation mode, which triggers a warning."""

    def __init__(self):
        super().__init__()
        self.norm, self.inner, self.optimizer = layer.BatchNorm2d(), Inner(), opt.SGD(0.1)

    def forward(self, x):
        return self.inner(self.norm(x))

    def train_one_batch(self, x):
        out = self.forward(x * 1)
        self.optimizer(autograd.reduce_mean(out * out).reshape((1,)))
        return out


def test_a_warning_inside_of_a_step_fails_the_step():
    model = Outer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.compile(inputs())
        model.inner.eval()
    before = {name: one.to_numpy() for name, one in model.get_states().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with pytest.raises(UserWarning, match="in evaluation"):
                model(from_numpy(X))
    after = model.get_states()
    assert all(np.array_equal(before[name], one.to_numpy()) for name, one in after.items())
