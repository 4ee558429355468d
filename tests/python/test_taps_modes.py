"""`Module.tap`: in evaluation, with other batches, in other ways, nested; and edge cases."""

import copy as copies
import gc
import json
import weakref

import numpy as np
import pytest
from recorded import B, Net, batch, evaluated, pair, same, step
from singa_rs import autograd, layer, module, opt
from singa_rs.autograd.tape import watched_leaves
from singa_rs.tensor import Tensor, from_numpy
from tap_models import Inside, Outer, equal, tapped


def test_evaluation_and_another_batch():
    models, tap = tapped()
    taps = tap("norm", grad=True)
    for rows in (4, 4, 4, 3, 3, 3, 4):
        step(*models, *batch(rows))
        equal(taps)
        assert taps[0].value.shape[0] == rows
    for model in models:
        model.eval()
    for _ in range(3):
        x = from_numpy(batch()[0])
        same(*(model(x) for model in models))
        equal(taps)
        assert taps[0].grad is None


def test_forward_alone_in_evaluation():
    models = evaluated(Net)
    x = from_numpy(B[0])
    for model in models:
        model(x)
    models[1].set_states(models[0].get_states())
    taps = [model.tap("fc1") for model in models]
    for _ in range(4):
        same(*(model(x) for model in models))
        equal(taps)


class Moody(Net):
    """Stays eager, as each recording differs."""

    n = 0

    def train_one_batch(self, x, y):
        self.n = self.n * 2 + 1
        return super().train_one_batch(x * float(self.n), y)


def test_a_function_that_stays_eager():
    models, tap = tapped(Moody)
    taps = tap("fc1", grad=True)
    with pytest.warns(RuntimeWarning, match="runs eagerly"):
        for _ in range(18):
            step(*models, *B)
            equal(taps)


def test_a_step_that_passes_by_another_way():
    class Switch(Net):
        is_on = True

        def forward(self, x):
            return self.fc2(self.norm(self.fc1(x)) if self.is_on else self.fc1(x))

    models, tap = tapped(Switch)
    taps = tap("norm")
    for is_on in (True, True, True, False, False, False, True):
        for model in models:
            model.is_on = is_on
        step(*models, *B)
        if is_on:
            equal(taps)


def test_nested_modules():
    models, tap = tapped(lambda: Outer(Inside()))
    taps = tap("inner.fc2", grad=True)
    same_place = [model.inner.tap("fc2", grad=True) for model in models]
    for _ in range(4):
        step(*models, *B)
        equal(taps), equal(same_place)
        same(taps[0].grad, same_place[0].grad)
        equal([model.inner.taps["hidden"] for model in models])


def test_two_taps_at_one_place():
    models, _ = tapped()
    with models[0].tap("fc1.W") as first:
        more = [models[0].tap(models[0].fc1.W), models[1].tap("fc1.W")]
        assert first.grad is None and models[0].taps["fc1.W"] is more[0]
        for _ in range(3):
            step(*models, *B)
            equal(more)
    assert models[0].taps["fc1.W"] is more[0], "the end of one that was replaced changes nothing"


def test_a_tapped_result_and_argument():
    class Echo(module.Module):
        def forward(self, x):
            self.tap(x, "x")
            y = x * 2
            self.tap(y, "y")
            return y

    models = evaluated(Echo)
    for _ in range(4):
        x = from_numpy(batch()[0])
        same(*(model(x) for model in models))
        assert np.array_equal(models[0].taps["x"].value.to_numpy(), x.to_numpy())
        equal([model.taps["y"] for model in models])


def test_a_tapped_gradient_accumulated_in_place():
    """Gradients are accumulated in place only where nothing taps them."""

    class Sums(module.Module):
        def __init__(self):
            super().__init__()
            self.w = Tensor(data=np.ones((4, 6), np.float32), requires_grad=True, stores_grad=True)
            self.optimizer = opt.SGD(lr=0.1, weight_decay=0.5)

        def forward(self, x):
            h = x + self.w
            self.tap(h, "h", grad=True)
            return (h + h * h + autograd.tanh(h)).sum()

        def train_one_batch(self, x):
            loss = self.forward(x)
            self.optimizer(loss)
            return loss

    models = pair(Sums)
    params = [model.tap("w") for model in models]
    for _ in range(5):
        x = batch()[0]
        before = models[0].w.to_numpy()
        step(*models, x)
        h = x + before
        want = 1 + 2 * h + 1 - np.tanh(h) ** 2
        np.testing.assert_allclose(models[0].taps["h"].grad.to_numpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(params[0].grad.to_numpy(), want, rtol=1e-5, atol=1e-6)
        equal([model.taps["h"] for model in models])
        equal(params)


def test_a_copy_has_no_taps():
    (model, _), _ = tapped()
    model.tap("fc1")
    other = copies.deepcopy(model)
    assert not other.taps and not other.fc1._layer_node.taps


def test_taps_keep_no_model_alive():
    (model, _), _ = tapped()
    tap = model.tap("fc1", grad=True)
    model.tap("fc1.W")
    for _ in range(4):
        model(*B)
    gone, parameter = weakref.ref(model), weakref.ref(model.fc1.W)
    del model, _
    gc.collect()
    assert gone() is None and tap.value is not None
    del tap
    gc.collect()
    assert parameter() is None and not watched_leaves


def test_the_graph_names_what_is_tapped(tmp_path):
    (model, _), _ = tapped()
    model.tap("fc2")
    for _ in range(3):
        model(*B)
    slots = [b for b in json.loads(model.graphs[0].to_json())["blocks"] if b["role"] == "slot"]
    assert slots and all("recorded.py" in block["line"] for block in slots)


@pytest.mark.parametrize(
    "what, error, match",
    [
        ("nothing", ValueError, "want one of fc1, fc1.W, fc1.b"),
        (3, TypeError, "want a name, a Layer or a Tensor"),
        (layer.Linear(3), ValueError, "want one of"),
        (Tensor((2, 2)), ValueError, "has no name"),
    ],
)
def test_what_cannot_be_tapped(what, error, match):
    (model, _), _ = tapped()
    with pytest.raises(error, match=match):
        model.tap(what)


def test_nothing_to_be_kept():
    (model, _), _ = tapped()
    with pytest.raises(ValueError, match="one of them"):
        model.tap("fc1", value=False)


def test_a_layer_that_returns_no_tensor():
    class Two(layer.Layer):
        def forward(self, x):
            return x, x

    class Model(module.Module):
        def __init__(self):
            super().__init__()
            self.two = Two()

        def forward(self, x):
            return self.two(x)[0]

    model = Model()
    model.eval()
    model(from_numpy(B[0]))
    model.tap(model.two)
    with pytest.raises(TypeError, match="tap 'two': got tuple"):
        model(from_numpy(B[0]))
