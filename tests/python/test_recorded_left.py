"""What steps leave in attributes, dictionaries, lists and objects: a tensor of each call's own."""

from collections import defaultdict, namedtuple

import numpy as np
import pytest
from recorded import Net, batch, pair, replays, same, step
from singa_rs import autograd, layer
from singa_rs.errors import GraphError
from singa_rs.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")


class Plain(namedtuple("Plain", "value")):
    """A named tuple whose constructor takes something else."""

    def __new__(cls, value):
        return super().__new__(cls, value * 1)


class Noting(Net):
    """Leaves its loss in a way of a subclass."""

    def __init__(self):
        super().__init__()
        self.d, self.last, self.n = {}, None, 0

    def train_one_batch(self, x, y):
        out, loss = super().train_one_batch(x, y)
        self.n += 1
        self.leave(out, loss)
        return loss


class NewKey(Noting):
    def leave(self, out, loss):
        self.d["z"] = loss


class Alternating(Noting):
    def leave(self, out, loss):
        if self.n % 3 == 0:
            self.d = {"q": [out]}
        elif self.n % 3 == 1:
            self.d["z"] = loss


class Ordered(Noting):
    def leave(self, out, loss):
        self.d["z"], self.d["a"] = loss, out.mean()


class Reordered(Noting):
    def leave(self, out, loss):
        self.d.pop("z", None)
        self.d["a"] = out.mean()
        self.d["z"] = loss


class Mixed(Noting):
    def leave(self, out, loss):
        if self.n == 1:
            self.d = {}
        self.d["loss"], self.d["mean"], self.d["weight"] = loss.detach(), out.detach().mean(), 0.1


class Summing(Noting):
    """Reads what it leaves, in the order of the keys."""

    def forward(self, x):
        found = enumerate(self.d.values())
        return super().forward(x) * sum((place * one for place, one in found), 1.0)

    def leave(self, out, loss):
        self.d["loss"], self.d["weight"] = loss.detach(), 0.1
        self.d["mean"] = out.detach().mean()


class BesideObjects(Noting):
    def leave(self, out, loss):
        self.last = loss
        self.d = defaultdict(list, loss=loss)
        self.items = [loss, self.optimizer]


class Shared(Noting):
    def leave(self, out, loss):
        self.last, self.d = loss, {"loss": loss}
        self.other = self.d


class InNamedTuple(Noting):
    def leave(self, out, loss):
        self.last = Plain(loss)


class OnAParameter(Noting):
    def leave(self, out, loss):
        self.fc1.W.last = loss


class OnTheClass(Noting):
    held = None

    def leave(self, out, loss):
        type(self).held = loss


KINDS = [
    NewKey, Alternating, Ordered, Reordered, Mixed, Summing, BesideObjects, Shared, InNamedTuple,
    OnAParameter, OnTheClass,
]  # fmt: skip


def values(model):
    """What the model holds, with the order of its items."""
    held = [model.last, *model.d.values(), getattr(model.fc1.W, "last", None), model.n]
    tensors = [x for one in held for x in (one if isinstance(one, (list, tuple)) else [one])]
    return [*model.d, *(x for x in tensors if not isinstance(x, np.ndarray))]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_left(kind):
    models = pair(kind)
    for i in range(15):
        step(*models, *batch())
        same(*map(values, models))
        if kind is NewKey and i % 2:
            for model in models:
                model.d = {}
    assert replays(models[0]) >= 4 or kind is Reordered


def test_each_call_leaves_its_own_beside_what_cannot_be_made_anew():
    models, kept = pair(BesideObjects), ([], [])
    for _ in range(8):
        step(*models, *batch())
        for model, own in zip(models, kept, strict=True):
            own.append(model.last)
    same(*kept)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, left: autograd.mse_loss(x, left),
        lambda x, left: _copied(x * 0, left).sum(),
        lambda x, left: _added(x * 0, left).sum(),
    ],
)
def test_no_gradient_is_lost_through_what_is_left(use):
    class Leaving(Noting):
        def leave(self, out, loss):
            self.last = self.fc1(self.x)

        def train_one_batch(self, x, y):
            self.x = x
            return super().train_one_batch(x, y)

    recorded, _ = pair(Leaving)
    for _ in range(5):
        recorded(*batch())
    weight = layer.Parameter(np.ones((4, 5), np.float32))
    with pytest.raises(GraphError), autograd._training_scope(True):
        autograd.backward(use(weight * 1, recorded.last))


def _copied(x, left):
    x.copy_from(left)
    return x


def _added(x, left):
    x += left
    return x


def _part(x, value):
    x[0:2] = value[0:2]
    return x


@pytest.mark.parametrize("write", [_copied, _added, _part])
@pytest.mark.parametrize("made", [lambda x: x * 0.5, lambda x: x.clone()])
def test_data_of_an_earlier_step_takes_values_and_no_gradients(write, made):
    class Writing(Noting):
        def forward(self, x):
            out = super().forward(x)
            return out if self.last is None else write(self.last, out * 1) + out

        def leave(self, out, loss):
            self.last = made(out.detach())

    models = pair(Writing)
    for _ in range(8):
        step(*models, *batch())
    assert replays(models[0]) >= 3


class Options(dict):
    """A dictionary with attributes."""


def test_attributes_of_a_dictionary_among_the_arguments():
    class Marking(Net):
        def train_one_batch(self, x, y, options):
            options.done = True
            return super().train_one_batch(x, y)

    for model in pair(Marking):
        for _ in range(5):
            options = Options(a=1)
            model(*batch(), options)
            assert options.done


def test_named_tuples_with_attributes_as_results():
    class Named(namedtuple("Named", "loss")):
        pass

    class Returning(Net):
        def train_one_batch(self, x, y):
            made = Named(super().train_one_batch(x, y)[1])
            made.more = 5
            return made

    for model in pair(Returning):
        for _ in range(5):
            assert model(*batch()).more == 5


def test_a_tensor_that_nothing_has_left_is_gone():
    recorded, eager = pair(Ordered)
    for _ in range(6):
        step(recorded, eager, *batch())
    recorded.d.clear()
    eager.d.clear()
    step(recorded, eager, *batch())
    assert isinstance(recorded.d["a"], Tensor) and list(recorded.d) == ["z", "a"]
