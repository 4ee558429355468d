"""Arguments of a recorded step, in whose place stand-ins are passed while it is recorded."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from recorded import Net, batch, copy, evaluated, pair, replays, same, step, tensor
from singa_rs import autograd, module
from singa_rs.errors import GraphError
from singa_rs.tensor import Tensor, from_numpy


def test_what_the_step_returns_or_keeps_shows_the_arguments():
    seen = []

    class Echo(module.Module):
        def forward(self, x, rest):
            seen.append((x, x[0]))
            return {"x": x, "view": rest[0][1], "rest": rest, "sum": x + rest[0]}

    model = Echo()
    model.eval()
    model.graph(True)
    for i in range(4):
        x, y = tensor(2, 3), tensor(2, 3)
        made = model(x, [y, None])
        assert made["x"] is x and made["rest"][0] is y and made["rest"][1] is None
        assert made["view"].shares_block(y)
        x.set_value(i)
        same(made["view"], y[1])
        if i < 2:
            assert seen[i][0].shares_block(x) and seen[i][1].shares_block(x)
            same(list(seen[i]), [x, x[0]])
    assert len(seen) == 2


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_argument_kept_in_attributes():
    class Leaving(Net):
        def __init__(self):
            super().__init__()
            self.last, self.seen, self.pair = None, {"x": None, "view": None}, ()

        def forward(self, x):
            self.seen["x"], self.seen["view"] = x, x[0]
            self.last, self.pair = x, (x, 1)
            return super().forward(x)

    recorded, eager = pair(Leaving)
    for model in (recorded, eager):
        model.eval()
    xs = [tensor(4, 6) for _ in range(3)]
    for x in (xs[0], xs[0], xs[0], xs[0], xs[1], xs[2], xs[0], xs[1]):
        step(recorded, eager, x)
        assert recorded.last is x and recorded.seen["x"] is x
        same((recorded.seen["view"], recorded.pair), (x[0], (x, 1)))


def test_in_place_writes_arrive():
    class Writing(Net):
        def train_one_batch(self, x, y):
            x *= 0.5
            x[0] = x[1]
            return super().train_one_batch(x, y)

    recorded, eager = pair(Writing)
    for _ in range(6):
        x, y = tensor(4, 6), from_numpy(batch()[1])
        mine, other = copy(x), copy(x)
        view, version = mine[0], mine.version
        same(recorded(mine, y), eager(other, y))
        same((mine, view), (other, x[1] * 0.5))
        assert mine.version > version
    assert replays(recorded) == 4


Batch = namedtuple("Batch", "x y")


def test_trees_of_arguments():
    bank = tensor(4, 6)

    class Taking(Net):
        def train_one_batch(self, given, *, options):
            x, y = given["x"][0], given["rest"].y
            out, loss = super().train_one_batch(x * options["scale"] + bank, y)
            return {"out": out, "given": given, **options}

    recorded, eager = pair(Taking)
    for i in range(8):
        y = from_numpy(batch()[1])
        x = bank if i % 4 == 1 else tensor(4, 6)
        given = OrderedDict(x=[x, None], rest=Batch((), y))
        options = {"scale": 1.0 + i // 4, "word": "a"}
        mine, other = (model(given, options=options) for model in (recorded, eager))
        same(mine["out"], other["out"])
        assert mine["word"] == "a" and mine["scale"] == options["scale"]
        assert type(mine["given"]) is OrderedDict and mine["given"]["x"][0] is x
        assert type(mine["given"]["rest"]) is Batch and mine["given"]["rest"].y is y
    assert replays(recorded) == 4


def test_arrays():
    kept = []

    class Keeping(Net):
        def train_one_batch(self, given, y):
            kept.append(given["x"][0])
            return super().train_one_batch(given["x"][0], y)

    recorded, eager = pair(Keeping)
    x, y = batch()
    for i in range(5):
        x[:], y[:] = batch()
        value = x.copy()
        same(recorded({"x": (x,)}, y), eager({"x": (from_numpy(x),)}, from_numpy(y)))
        x[:] = 0
        if i < 2:
            assert kept[0].to_numpy().tobytes() == value.tobytes()
        kept.clear()
    assert replays(recorded) == 3


# ---- what an argument looks like -----------------------------------------------------------------


@pytest.mark.parametrize("use_graph", [True, False])
def test_an_argument_looks_the_same_inside(use_graph):
    class Mine(Tensor):
        pass

    seen = []

    class Looking(module.Module):
        def forward(self, *xs):
            for x in xs:
                flags = (x.requires_grad, x.stores_grad, x.is_dummy(), x.grad)
                seen.append((type(x), flags, x.name, x.shape, x.strides, x.dtype, x.tag))
            return xs[0] + 1

    model = Looking()
    model.eval()
    model.graph(use_graph)
    xs = [Tensor((2, 3), requires_grad=False, name="first"), Tensor((2, 3)), Mine((2, 3))]
    xs += [Tensor((2, 3), stores_grad=True), tensor(6, 4)[1:].transpose()]
    xs[1].grad = tensor(2, 3)
    for i, x in enumerate(xs):
        x.tag = f"tag {i}"
    model(*xs)
    for x, inside in zip(xs, seen, strict=True):
        flags = (x.requires_grad, x.stores_grad, x.is_dummy(), x.grad)
        assert inside == (type(x), flags, x.name, x.shape, x.strides, x.dtype, x.tag)


@pytest.mark.parametrize("use_graph", [True, False])
def test_marks_that_the_step_makes_on_an_argument(use_graph):
    class Marking(module.Module):
        def forward(self, x):
            x.name, x.tag, x.requires_grad = "marked", 3, False
            return x + 1

    model = Marking()
    model.eval()
    model.graph(use_graph)
    x = tensor(2, 3)
    model(x)
    assert (x.name, x.tag, x.requires_grad) == ("marked", 3, False)


def test_gradient_of_an_argument():
    class Sensitivity(module.Module):
        def train_one_batch(self, x):
            x.stores_grad = True
            loss = autograd.reduce_sum(x * x * x, axes=None, keepdims=0)
            [(leaf, grad)] = autograd.backward(loss)
            assert leaf is x
            return grad

    recorded = Sensitivity()
    recorded.graph(True)
    recorded.train()
    for _ in range(5):
        x = tensor(2, 3)
        made = recorded(x).to_numpy()
        np.testing.assert_allclose(made, 3 * x.to_numpy() ** 2, rtol=1e-5)
    assert replays(recorded) == 3


# ---- effects that no graph can repeat ------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_list_that_the_step_changes():
    class Appending(module.Module):
        n = 0

        def forward(self, x, found):
            self.n += 1
            found.append(x * 2)
            found[0] = x
            return x + 1

    recorded, eager = evaluated(Appending)
    for _ in range(6):
        x, mine, other = tensor(4, 6), [None], [None]
        same(recorded.forward(x, mine), eager.forward(x, other))
        assert mine[0] is x
        same(mine, other)
        assert recorded.n == eager.n
    assert "changes a list or dictionary" in recorded.explain()


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_argument_that_the_step_rebinds():
    class Pointing(module.Module):
        def forward(self, x, at):
            if at == "new":
                x.data = x + 1
            else:
                x.data = x.reshape((3, 2))
            return x * 2

    recorded, eager = evaluated(Pointing)
    for at in ("new", "same") * 3:
        x = tensor(2, 3)
        mine, other = copy(x), copy(x)
        same(recorded(mine, at), eager(other, at))
        same(mine, other)
    assert "rebinds an argument" in recorded.explain()


@pytest.mark.parametrize("times", [0, 1, 3])
def test_failure_while_recording_leaves_everything(times):
    kept = []

    class Failing(Net):
        fails = False

        def __init__(self):
            super().__init__()
            self.last, self.n = None, 0

        def train_one_batch(self, x, rest):
            self.n += 1
            self.last = x
            x += 1
            x.name, x.tag = "changed", 1
            rest.append(x)
            kept.append(x[0])
            if fails:
                raise KeyError("on purpose")
            rest.pop()
            self.last = None
            return super().train_one_batch(x, rest[0])

    recorded, eager = pair(Failing)
    fails = False
    for _ in range(times):
        x, y = tensor(4, 6), from_numpy(batch()[1])
        same(recorded(copy(x), [y]), eager(copy(x), [y]))
    fails = True
    x, y = tensor(3, 6), from_numpy(batch(3)[1])
    value, rest, version = x.to_numpy(), [y], x.version
    name, n, states = x.name, recorded.n, {k: copy(v) for k, v in recorded.get_states().items()}
    kept.clear()
    with pytest.raises(KeyError):
        recorded(x, rest)
    assert x.to_numpy().tobytes() == value.tobytes() and x.version == version
    assert x.name == name and not hasattr(x, "tag")
    assert rest == [y] and recorded.last is None and recorded.n == n
    for key, state in recorded.get_states().items():
        same(state, states[key])
    same(kept[0], x[0])
    fails = False
    for _ in range(4):
        x = tensor(4, 6)
        y = from_numpy(batch()[1])
        same(recorded(copy(x), [y]), eager(copy(x), [y]))


def test_value_of_an_argument_that_the_step_reads():
    class Reading(module.Module):
        def forward(self, x):
            return x * x.to_numpy().max()

    model = Reading()
    model.eval()
    model.graph(True)
    with pytest.raises(GraphError, match="only recorded, at the call that got it as an argument"):
        model(tensor(2, 3))
