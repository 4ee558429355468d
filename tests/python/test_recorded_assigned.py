"""Steps that are assigned to a class after its statement, or to a model, are recorded, too."""

import functools

import pytest
from scenarios import Fit, hold, x
from singa_rs import layer, module


def _step(self, x):
    loss = self.loss_of(x) * 2.0
    self.optimizer(loss)
    return loss


class Plain(module.Module):
    def forward(self, x):
        return x * 1.0


def to_the_class():
    made = type("Net", (Fit,), {})
    made.train_one_batch = _step
    return made()


def to_the_model():
    made = Fit()
    made.train_one_batch = _step.__get__(made)
    return made


def where_the_class_has_none():
    made = Plain()
    made.train_one_batch = (lambda self, x: x * 3.0).__get__(made)
    return made


@pytest.mark.parametrize("make", [to_the_class, to_the_model, where_the_class_has_none])
def test_a_step_is_assigned(make):
    models = []

    def made():
        models.append(make())
        return models[-1]

    hold(made, lambda model: [model(x()) for _ in range(5)])
    assert [graph.nodes for graph in models[0].graphs] and "replayed 3" in models[0].explain()
    assert models[0].plan(x()).peak_bytes >= 0


def test_forward_is_assigned():
    class Net(module.Module):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(2)

    Net.forward = lambda self, x: self.fc(x) * 2.0
    model = Net().eval()
    model.graph(True)
    for _ in range(4):
        model(x())
    assert len(model.graphs) == 1 and list(model.get_params()) == ["fc.W", "fc.b"]
    assert type("Of", (Net,), {}).forward is Net.forward  # wrapped once


def test_what_is_no_method_runs_eagerly():
    model = Plain()
    model.train_one_batch = lambda x: x * 3.0
    model.graph(True)
    assert model(x()).to_numpy().tolist() == (x() * 3.0).to_numpy().tolist()
    assert "train_one_batch is assigned and no method, so it runs eagerly" in model.explain()
    model.train_one_batch = functools.partial(_step, model)
    assert "want train_one_batch(self, ...)" in model.explain()


def test_other_methods_stay_as_they_are():
    model = Plain()
    method = model.forward
    model.before = method
    assert model.before is method
