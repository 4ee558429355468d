"""Random steps that read, replace, write and hand on tensors in attributes and containers, and
random programs that set them in between: graphs do what eager steps do."""

import collections
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import Net, batch, pair, same
from singa_rs import autograd
from singa_rs.tensor import Tensor, from_numpy

NAMES = ("a", "b", "c")
ROWS, WIDTH, STEPS = 4, 5, 14


def full(value):
    return from_numpy(np.full((ROWS, WIDTH), value, np.float32))


def read(model, y, one, other):
    return autograd.tanh(y + getattr(model, one) * 0.5 - getattr(model, other) * 0.25)


def replaced(model, y, one, other):
    setattr(model, one, (y * 0.9 + getattr(model, other)).detach())
    return y


def moved(model, y, one, other):
    setattr(model, one, getattr(model, other))
    return y


def written(model, y, one, other):
    getattr(model, one).copy_from(getattr(model, other) * 0.5 + y.detach())
    return y


def viewed(model, y, one, other):
    setattr(model, one, getattr(model, other)[:, :])
    return y + getattr(model, one)[1:2] * 0.3


def in_list(model, y, one, other):
    y = y + model.row[0] * 0.1
    model.row[1] = getattr(model, one)
    model.row = [model.row[1], y.detach()]
    return y


def in_tuple(model, y, one, other):
    first, second = model.pair
    model.pair = (second, (y + first).detach())
    return y * second


def in_dictionary(model, y, one, other):
    model.table[one] = (model.table[one] * 0.5 + y).detach()
    return y + model.table[other]


def in_turn(model, y, one, other):
    model.latest.append(y.detach())
    return y - model.latest[0]


def now_and_then(model, y, one, other):
    model.n += 1
    if model.n % 3 == 0:
        setattr(model, one, getattr(model, other))
    return y


ACTIONS = [
    read, read, replaced, replaced, moved, written, viewed, in_list, in_tuple, in_dictionary,
    in_turn, now_and_then,
]  # fmt: skip


def between(model, what, one, other):
    """What the program does between two steps."""
    value = getattr(model, other)
    if what == "new":
        setattr(model, one, full(0.3))
    elif what == "other":
        setattr(model, one, value)
    elif what == "copy":
        setattr(model, one, value.clone())
    elif what == "written":
        value *= 0.5
    elif what == "from the list":
        setattr(model, one, model.row[1])
    elif what == "into the list":
        model.row[0] = value
    elif what == "pair":
        model.pair = (value, full(0.1))


actions = st.tuples(st.sampled_from(ACTIONS), st.sampled_from(NAMES), st.sampled_from(NAMES))
CHANGES = ["new", "other", "copy", "written", "from the list", "into the list", "pair"]
changes = st.tuples(
    st.integers(3, STEPS), st.sampled_from(CHANGES), st.sampled_from(NAMES), st.sampled_from(NAMES)
)


def looks(value):
    """The tensors in a value, as bytes."""
    if isinstance(value, Tensor):
        return value.to_numpy().tobytes()
    values = value.values() if isinstance(value, dict) else value
    return [looks(one) for one in values]


@settings(deadline=None, max_examples=60)
@given(st.lists(actions, min_size=1, max_size=5), st.lists(changes, max_size=5))
def test_random_programs(steps, changed):
    class Drawn(Net):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = full(0.0), full(0.1), full(0.2)
            self.row, self.pair = [full(0.2), full(0.3)], (full(0.4), full(0.5))
            self.table = {name: full(0.1) for name in NAMES}
            self.latest, self.n = collections.deque([full(0.1), full(0.2)], maxlen=2), 0

        def forward(self, x):
            return self.fc2(self.fc1(x))

        def train_one_batch(self, x, y):
            found = read(self, self.fc1(x), "a", "b")
            for act, one, other in steps:
                found = act(self, found, one, other)
            loss = self.loss(self.fc2(found), y)
            self.optimizer(loss)
            # What no step of the drawn ones reads would show the latest run.
            self.a = (self.a + self.b + self.c).detach() * 0.3
            return loss

    models, data = pair(Drawn), [batch() for _ in range(STEPS)]
    held = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, (x, y) in enumerate(data):
            made = [model(x, y) for model in models]
            same(*made)
            held.append((made, [looks(one) for one in made]))
            for names in (NAMES, ("row", "pair", "table", "latest")):
                assert len({str(looks([getattr(m, n) for n in names])) for m in models}) == 1
            for at, *what in changed:
                if at == i:
                    [between(model, *what) for model in models]
    for made, seen in held:
        assert [looks(one) for one in made] == seen
