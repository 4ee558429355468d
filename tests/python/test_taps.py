"""`Module.tap`: values and gradients inside a step, read after it, bitwise equal to eager."""

import pytest
from recorded import B, Net, batch, inputs, pair, replays, same_states, step
from singa_rs import layer, module, opt
from singa_rs.tensor import from_numpy
from tap_models import Inside, equal, tapped

#: Names that can be tapped in `Net`, in training mode.
LAYERS = ("fc1", "norm", "fc2")


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


def test_it_is_added_and_removed():
    """A tap makes another graph; without it the previous graph is replayed again."""
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
    assert model._graphs.fast_path is not None, "the short way of a call is open"


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
    """The lifetimes of a step's intermediates: name and first operation -> role and last one."""
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
    assert only[0] == "matmul_chain float32 32x64"
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
