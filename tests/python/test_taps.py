"""`Module.tap`: values and gradients inside a step, read after it, replayed as eager to the bit."""

import copy as copies
import gc
import json
import weakref

import numpy as np
import pytest
from recorded import B, Net, batch, evaluated, inputs, pair, replays, same, same_states, step
from singa_rs import autograd, layer, module, opt
from singa_rs.autograd.tape import watched_leaves
from singa_rs.tensor import Tensor, from_numpy

#: Of `Net`, in training: what can be tapped by name.
LAYERS = ("fc1", "norm", "fc2")


class Inside(Net):
    """Taps a tensor in the middle of its step."""

    def forward(self, x):
        hidden = self.norm(self.fc1(x))
        self.tap(hidden, "hidden", grad=True)
        return self.fc2(hidden * 2)


def tapped(cls=Net, *args, **options):
    """A compiled and an eager model, and a function that taps both alike."""
    models = pair(cls, *args, **options)
    for model in models:
        model.get_params()
    return models, lambda *a, **k: [model.tap(*a, **k) for model in models]


def equal(taps):
    recorded, eager = taps
    for mine, its in ((recorded.value, eager.value), (recorded.grad, eager.grad)):
        assert (mine is None) == (its is None)
        if mine is not None:
            same(mine, its)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_output_and_its_gradient(name):
    models, tap = tapped()
    taps = tap(name, grad=True)
    seen = set()
    for _ in range(6):
        step(*models, *batch())
        equal(taps)
        assert taps[0].value.shape == taps[0].grad.shape
        seen.add(taps[0].value.to_numpy().tobytes() + taps[0].grad.to_numpy().tobytes())
    assert len(seen) == 6 and replays(models[0]) >= 4


def test_all_at_once_with_a_parameters_gradient():
    models, tap = tapped()
    taps = [tap(name, grad=True) for name in LAYERS] + [tap("fc1.W"), tap("fc2.b")]
    for _ in range(5):
        step(*models, *batch())
        for one in taps:
            equal(one)
    weights = taps[3][0]
    assert weights.value is None and weights.grad.shape == models[0].fc1.W.shape
    assert replays(models[0]) >= 3


def test_a_tensor_tapped_inside_the_step():
    models, _ = tapped(Inside)
    for _ in range(5):
        step(*models, *batch())
        taps = [model.taps["hidden"] for model in models]
        equal(taps)
        assert taps[0].grad is not None
    assert replays(models[0]) >= 3


def test_the_value_alone_and_the_gradient_alone():
    models, tap = tapped()
    values, grads = tap("fc1"), tap("norm", value=False, grad=True)
    for _ in range(4):
        step(*models, *B)
        equal(values), equal(grads)
    assert values[0].grad is None and grads[0].value is None and grads[0].grad is not None


def test_what_is_read_is_never_overwritten():
    (model, _), _ = tapped()
    tap, seen = model.tap("fc1"), []
    for _ in range(6):
        model(*batch())
        seen.append((tap.value, tap.value.to_numpy().tobytes()))
    assert all(value.to_numpy().tobytes() == bits for value, bits in seen)
    assert len({bits for _, bits in seen}) == 6


def test_it_comes_and_goes():
    """A tap is another graph; without it the graph from before is replayed again."""
    models, tap = tapped()
    for _ in range(3):
        step(*models, *B)
    (plain,) = models[0].graphs
    with models[0].tap("fc1") as mine, models[1].tap("fc1") as its:
        for _ in range(3):
            step(*models, *B)
            equal((mine, its))
        assert len(models[0].graphs) == 2
    assert mine.value is None and not models[0].taps
    before, history = plain.runs, len(models[0].graphs)
    for _ in range(3):
        step(*models, *B)
    assert plain.runs == before + 3 and len(models[0].graphs) == history
    same_states(*models)


def test_off_it_is_as_if_it_never_was():
    plain, (model, _) = pair(Net)[0], pair(Net)
    model.get_params()
    model.tap("fc1", grad=True).remove()
    for one in (plain, model):
        for _ in range(4):
            one(*B)
    first, second = (one.graphs[0].data() for one in (plain, model))
    assert first == second
    assert model._graphs.shortcut is not None, "the short way of a call is open"


# ---- memory --------------------------------------------------------------------------------------


class Deep(module.Module):
    """A perceptron of five layers."""

    def __init__(self):
        super().__init__()
        self.layers = [layer.Linear(64, activation="TANH") for _ in range(4)] + [layer.Linear(3)]
        self.loss, self.optimizer = layer.SoftMaxCrossEntropy(), opt.SGD(lr=0.1)

    def forward(self, x):
        for one in self.layers:
            x = one(x)
        return x

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def lifetimes(model):
    """Of what the step makes within it: who makes it, and how many operations it lasts."""
    data = model.graphs[0].data()
    blocks = data["blocks"]
    return {
        (block["name"], block["first"]): (block["role"], block["last"])
        for block in blocks
        if block["role"] in ("temporary", "slot") and block["first"] is not None
    }


def test_only_what_is_tapped_lives_longer():
    x, y = batch(rows=32)
    found, plans = [], []
    for name in (None, "layers.1"):
        model = Deep()
        model.compile(inputs(32))
        if name:
            model.tap(name)
        plans.append(model.plan(from_numpy(x), from_numpy(y)))
        for _ in range(3):
            model(x, y)
        found.append(lifetimes(model))
    without, with_tap = found
    changed = {k for k in without.keys() | with_tap.keys() if without.get(k) != with_tap.get(k)}
    (only,) = changed
    assert only[0] == "chain float32 32x64"
    assert (without[only][0], with_tap[only][0]) == ("temporary", "slot")
    size = 32 * 64 * 4
    assert plans[1].accounts["results"] == plans[0].accounts["results"] + size
    assert plans[0].arena_bytes - size <= plans[1].arena_bytes <= plans[0].arena_bytes
    others = {"results", "arena"}
    assert all(plans[0].accounts[k] == v for k, v in plans[1].accounts.items() if k not in others)


def test_the_memory_of_the_last_step_is_used_again():
    (model, _), _ = tapped()
    tap = model.tap("fc1", grad=True)
    for _ in range(4):
        model(*B)
    places = set()
    for _ in range(6):
        model(*B)
        places.add((tap.value.block_id, tap.grad.block_id))
    assert len(places) == 1


# ---- where else steps run ------------------------------------------------------------------------


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
    with pytest.warns(RuntimeWarning, match="without a graph"):
        for _ in range(8):
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
    class Outer(module.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.optimizer = Inside(), opt.SGD(lr=0.1)
            self.loss = layer.SoftMaxCrossEntropy()

        def forward(self, x):
            return self.inner.forward(x)

        def train_one_batch(self, x, y):
            loss = self.loss(self.forward(x), y)
            self.optimizer(loss)
            return loss

    models, tap = tapped(Outer)
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


# ---- edges ---------------------------------------------------------------------------------------


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


def test_a_tapped_gradient_that_goes_on_in_place():
    """Sums of gradients are written in place only where nobody watches them."""

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
        np.testing.assert_allclose(models[0].taps["h"].grad.to_numpy(), want, rtol=1e-5)
        np.testing.assert_allclose(params[0].grad.to_numpy(), want, rtol=1e-5)
        equal([model.taps["h"] for model in models])
        equal(params)


def test_a_copy_has_no_taps():
    (model, _), _ = tapped()
    model.tap("fc1")
    other = copies.deepcopy(model)
    assert not other.taps and not other.fc1._node.taps


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
        (Tensor((2, 2)), ValueError, "without a name"),
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


def test_a_layer_that_answers_no_tensor():
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
