"""What steps read of objects that the program changes between calls, and what they do not read."""

import contextvars
import operator
import random
import sys
import threading
import types
import warnings
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import replays
from scenarios import Fit, hold, x
from singa_rs import autograd, layer, module

CALLS = 12


class Phase(Enum):
    FIRST = 1
    SECOND = 2


@dataclass
class Kept:
    rows: list = field(default_factory=list)
    phase: Phase = Phase.FIRST


class Meter(dict):
    """Keeps running averages."""

    def __setitem__(self, key, value):
        super().__setitem__(key, 0.9 * self.get(key, value) + 0.1 * value)


class Setting:
    """A descriptor that keeps the value itself."""

    def __init__(self, value):
        self.value = value

    def __get__(self, owner, kind=None):
        return self.value

    def __set__(self, owner, value):
        self.value = value


WEIGHTS = {"a": 1.0}
WIDTH = contextvars.ContextVar("width", default=1.0)
LOCAL = threading.local()
LOCAL.scale = 1.0
criterion = autograd.abs
shape = SimpleNamespace
weight_of = WEIGHTS.get


class Config:
    act = staticmethod(autograd.abs)


def scaled(reads, change, make=lambda: SimpleNamespace(value=None, n=0)):
    """Compares sessions of a step whose loss is multiplied by what `reads` returns of an object,
    which `change(object, i)` changes before call i."""

    class Scaled(Fit):
        def __init__(self):
            super().__init__()
            self.kept = make()

        def loss_of(self, x):
            return super().loss_of(x) * reads(self.kept)

    def session(model):
        made = []
        for i in range(CALLS):
            change(model.kept, i)
            made.append(model(x()))
        return made

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it may stay eager
        hold(Scaled, session)


READS = {
    "text": (
        lambda o: 2.0 if o.value == "b" else 1.0,
        lambda o, i: setattr(o, "value", "aab"[i % 3]),
    ),
    "NumPy number": (
        lambda o: 2.0 if o.value > 5 else 1.0,
        lambda o, i: setattr(o, "value", np.float64(i)),
    ),
    "flag and counter": (
        lambda o: 2.0 if o.value and o.n >= 5 else 1.0,
        lambda o, i: (setattr(o, "value", i % 2 == 0), setattr(o, "n", i)),
    ),
    "new attribute": (
        lambda o: 2.0 if hasattr(o, "late") else 1.0,
        lambda o, i: setattr(o, "late", i) if i > 5 else setattr(o, "value", str(i)),
    ),
    "all attributes": (
        lambda o: float(len(vars(o))),
        lambda o, i: setattr(o, f"a{i // 2}", None),
    ),
}


@pytest.mark.parametrize("how", READS)
def test_attributes_that_code_reads(how):
    scaled(*READS[how])


class Told:
    """Reads its attribute in methods that code does not name as they are called."""

    def __init__(self):
        self.value = "a"
        self.table = [self.told]

    def told(self):
        return 2.0 if self.value == "b" else 1.0

    def __hidden(self):
        return self.told()

    def hidden(self):
        return self.__hidden()

    shown = property(lambda self: 2.0 if self.value == "b" else 1.0)
    other = told

    @property
    def kept(self):
        return 1.0

    @kept.setter
    def kept(self, scale):
        self.scale = scale * (2.0 if self.value == "b" else 1.0)


class Of:
    def __init__(self, of):
        self.scale = 2.0 if of.value == "b" else 1.0


KINDS = {"of": Of}
FORM = "{.value}"
the_value = operator.attrgetter("value")


def _set(told):
    told.kept = 1.5
    return told.scale


WAYS = {
    "table of methods": lambda o: o.table[0](),
    "private method": lambda o: o.hidden(),
    "property of a lambda": lambda o: o.shown,
    "another name": lambda o: o.other(),
    "setter": _set,
    "constructor": lambda o: KINDS["of"](o).scale,
    "getter": lambda o: 2.0 if the_value(o) == "b" else 1.0,
    "text": lambda o: 2.0 if FORM.format(o) == "b" else 1.0,
}


@pytest.mark.parametrize("way", WAYS)
def test_attributes_that_methods_read(way):
    scaled(WAYS[way], lambda o, i: setattr(o, "value", "aab"[i % 3]), Told)


def test_lengths_that_code_reads():
    scaled(lambda o: 2.0 if len(o.rows) >= 5 else 1.0, lambda o, i: o.rows.append(i), Kept)


def test_members_of_an_enumeration():
    scaled(
        lambda o: 2.0 if o.phase is Phase.SECOND else 1.0,
        lambda o, i: setattr(o, "phase", Phase(1 + i // 3 % 2)),
        Kept,
    )


def test_a_number_that_follows_from_a_length():
    class Counting(Fit):
        def __init__(self):
            super().__init__()
            self.log, self.seen = Kept(), 0

        def train_one_batch(self, x):
            self.seen = len(self.log.rows)
            return super().train_one_batch(x)

    def session(model):
        for i in range(6):
            model.log.rows.append(i)
            model(x())
        return [model.seen]

    hold(Counting, session)


@pytest.mark.parametrize("where", ["outside", "closure"])
def test_a_history_that_code_only_appends_to_is_no_part_of_the_key(where):
    history = []

    class Logging(Fit):
        def __init__(self):
            super().__init__()
            self.log = Kept()

        def loss_of(self, x):
            loss = super().loss_of(x)
            if where == "closure":
                history.append("step")
            return loss

    model = Logging()
    model.graph(True)
    for i in range(8):
        model.log.rows.append(i)
        model(x())
    assert replays(model) >= 5


@pytest.mark.parametrize(
    ("reads", "change"),
    [
        (lambda o: WEIGHTS["a"], lambda o, i: WEIGHTS.update(a=1.0 + i // 4)),
        (lambda o: weight_of("a"), lambda o, i: WEIGHTS.update(a=1.0 + i // 4)),
        (lambda o: WIDTH.get(), lambda o, i: WIDTH.set(1.0 + i // 4)),
        (lambda o: LOCAL.scale, lambda o, i: setattr(LOCAL, "scale", 1.0 + i // 4)),
        (lambda o: o.scale, lambda o, i: setattr(o, "scale", 1.0 + i // 4)),
    ],
    ids=["dictionary", "its method", "context variable", "of a thread", "descriptor"],
)
def test_values_behind_objects(reads, change):
    class Described:
        scale = Setting(1.0)

    scaled(reads, change, Described)


def test_draws_by_a_method_that_is_kept():
    scaled(
        lambda o: o.coin(), lambda o, i: None, lambda: SimpleNamespace(coin=random.Random(2).random)
    )


def test_dictionaries_with_methods_of_their_own():
    class Metered(Fit):
        def __init__(self):
            super().__init__()
            self.meter, self.n = Meter(rows=1.0), 1

        def loss_of(self, x):
            self.n += 1
            return super().loss_of(x) * (2.0 if self.meter["rows"] + self.n > 4 else 1.0)

    def session(model):
        made = []
        for i in range(CALLS):
            model.meter["rows"] = float(i)
            made += [model(x()), model.meter["rows"], model.n]
        return made

    hold(Metered, session)


@pytest.fixture
def _restored():
    before = criterion, shape, Config.__dict__["act"]
    yield
    globals().update(criterion=before[0], shape=before[1])
    Config.act = before[2]


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(
    ("reads", "change"),
    [
        (
            lambda x: criterion(x),
            lambda: globals().update(criterion=autograd.square),
        ),
        (
            lambda x: x * len(shape.__name__),
            lambda: globals().update(shape=types.MappingProxyType),
        ),
        (
            lambda x: Config.act(x),
            lambda: setattr(Config, "act", staticmethod(autograd.square)),
        ),
    ],
    ids=["function", "class", "static method"],
)
def test_things_of_libraries_that_are_replaced(reads, change):
    before = criterion, shape, Config.__dict__["act"]

    class Reading(Fit):
        def loss_of(self, x):
            return reads(super().loss_of(x))

    def session(model):
        globals().update(criterion=before[0], shape=before[1])
        Config.act = before[2]
        made = [model(x()) for _ in range(4)]
        change()
        return made + [model(x()) for _ in range(4)]

    hold(Reading, session)


def test_a_program_whose_module_is_named_like_one_of_python(tmp_path, monkeypatch):
    (tmp_path / "chunk.py").write_text("SCALE = 1.0\n\n\ndef scale():\n    return SCALE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "chunk", raising=False)
    name = "chunk" if "chunk" in sys.stdlib_module_names else "code"
    if name == "code":
        (tmp_path / "chunk.py").rename(tmp_path / "code.py")
        monkeypatch.delitem(sys.modules, "code", raising=False)
    from singa_rs.record import programs

    programs.is_program.cache_clear()
    made = __import__(name)

    def change(_, i):
        made.SCALE = 1.0 + i // 4

    try:
        scaled(lambda o: made.scale(), change)
    finally:
        sys.modules.pop(name)
        programs.is_program.cache_clear()


def test_a_counter_of_another_model():
    class Sampler(module.Module):
        def __init__(self, of):
            super().__init__()
            self.of = of

        def forward(self, x):
            return self.of.fc(x) * (100.0 if self.of.n >= 5 else 1.0)

    class Counting(Fit):
        n = 0

        def train_one_batch(self, x):
            self.n += 1
            return super().train_one_batch(x)

    def session(model):
        sampler, made = Sampler(model), []
        sampler.graph(model.graph_mode)
        sampler.eval()
        for _ in range(8):
            made += [model(x()), sampler(x())]
        return made

    hold(Counting, session)


def test_a_layer_that_leaves_a_list_leaves_the_model():
    class Chain(Fit):
        def __init__(self):
            super().__init__()
            self.chain = [layer.Linear(2), layer.Linear(2)]

        def forward(self, x):
            for one in self.chain:
                x = one(x)
            return self.fc(x)

    model = Chain()
    model.graph(True)
    for _ in range(4):
        model(x())
    held = model.chain.pop()
    assert set(model.get_params()) == {"chain.0.W", "chain.0.b", "fc.W", "fc.b"}
    assert model(x()).shape == (1,) and held.W is not None
