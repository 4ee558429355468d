"""Changes to classes, modules, globals and other objects that a step's code reads are noticed."""

import functools
import sys
import types

import numpy as np
import pytest
from scenarios import Step, hold, x
from singa_rs import autograd, module
from singa_rs.tensor import from_numpy

SCALE = 1.0


class Settings:
    scale = 1.0

    class Inner:
        scale = 1.0


package, config = types.ModuleType("made_up"), types.ModuleType("made_up.config")
package.config, config.SCALE = config, 1.0
sys.modules["made_up"], sys.modules["made_up.config"] = package, config


class Tools:
    @staticmethod
    def scale():
        return SCALE

    @classmethod
    def of_class(cls):
        return SCALE


class Holder:
    def __init__(self):
        self.scale = SCALE


class Callee:
    def __call__(self):
        return SCALE


def scaled(function):
    @functools.wraps(function)
    def wrapper(self):
        return function(self) * SCALE

    return wrapper


@autograd.no_grad()
def helper():
    return SCALE


@functools.singledispatch
def dispatched(_):
    return SCALE


class Reading(Step):
    def __init__(self):
        super().__init__()
        self.settings, self.config = Settings, config

    def forward(self, x):
        return x * self.scale()


def importing(self):
    from made_up.config import SCALE as scale

    return scale


class Decorated(Reading):
    @scaled
    def scale(self):
        return 1.0


READS = {
    "class in an attribute": lambda self: self.settings.scale,
    "module in an attribute": lambda self: self.config.SCALE,
    "nested class": lambda self: Settings.Inner.scale,
    "module of a package": lambda self: package.config.SCALE,
    "import": importing,
    "static method": lambda self: Tools.scale(),
    "class method": lambda self: Tools.of_class(),
    "initialiser": lambda self: Holder().scale,
    "call of an object": lambda self: Callee()(),
    "decorated function": lambda self: helper(),
    "dispatched function": lambda self: dispatched(1),
}


def assign(value):
    global SCALE
    SCALE = Settings.scale = Settings.Inner.scale = config.SCALE = value


def session(model):
    assign(1.0)
    shown = [model(x()) for _ in range(4)]
    assign(2.0)
    shown += [model(x()) for _ in range(2)]
    assign(1.0)
    return shown


@pytest.mark.parametrize("name", READS)
def test_what_code_reads_is_noticed(name):
    hold(type("Reads", (Reading,), {"scale": READS[name]}), session)


def test_what_a_decorator_reads_is_noticed():
    hold(Decorated, session)


# ---- names that did not exist before -------------------------------------------------------------


class Base:
    __slots__ = ()
    scale = 1.0


def fresh_class(**attributes):
    return type("Fresh", (Base,), {"__slots__": ("k", "__dict__"), **attributes})


class Scaling(Step):
    def __init__(self):
        super().__init__()
        self.c = fresh_class()()

    def forward(self, x):
        c = self.c
        return x * c.scale * getattr(c, "k", 1.0) * getattr(c, "z", 1.0)


def fill(model):
    model.c.k = 2.0


def extend_class(model):
    type(model.c).z = 2.0


def override(model):
    type(model.c).scale = 2.0


def replace_attributes(model):
    model.c.__dict__ = {"scale": 2.0}


def replace_class(model):
    model.c.__class__ = fresh_class(scale=3.0)


def change_after(change):
    def session(model):
        for _ in range(4):
            model(x())
        change(model)
        return [model(x()), model(x())]

    return session


#: Python 3.10 replaces the class of no object whose attributes have been replaced.
REPLACED = [replace_class] if sys.version_info >= (3, 11) else []
CHANGES = (fill, extend_class, override, replace_attributes, *REPLACED)


@pytest.mark.parametrize("change", CHANGES)
def test_new_names_are_noticed(change):
    hold(Scaling, change_after(change))


class Later(Step):
    def forward(self, x):
        try:
            return x * LATE  # noqa: F821 - it is made later
        except NameError:
            return x


def test_a_global_that_is_made_later():
    try:
        hold(Later, change_after(lambda m: globals().update(LATE=2.0)))
    finally:
        globals().pop("LATE", None)


class Node:
    """An object of a user's class."""


def test_new_attributes_of_an_object_that_was_exchanged():
    class Nested(Step):
        def __init__(self):
            super().__init__()
            self.o = Node()
            self.o.config = Node()

        def forward(self, x):
            return x * getattr(self.o.config, "scale", 1.0)

    def session(m):
        m(x())
        m.o.config = Node()
        for _ in range(3):
            m(x())
        m.o.config = Node()
        m.o.config.scale = 2.0
        return [m(x())]

    hold(Nested, session)


# ---- several objects of one name -----------------------------------------------------------------


def spaces():
    """Two modules with the same global names, each with a function that reads them."""
    made = []
    for name in ("twin_a", "twin_b"):
        one = types.ModuleType(name)
        exec("SCALE = 1.0\nCFG = {'a': 1.0}\ndef f(): return SCALE * CFG['a']", one.__dict__)
        made.append(one)
    return made


SCALING = {
    "number": lambda one: setattr(one, "SCALE", 5.0),
    "dictionary": lambda one: setattr(one, "CFG", {"a": 5.0}),
    "item": lambda one: one.CFG.update(a=5.0),
}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("change", SCALING)
def test_globals_of_one_name_in_two_modules(change, which):
    made = []

    def make():
        made[:] = spaces()
        forward = {"forward": lambda self, x: x * made[0].f() * made[1].f()}
        functions = {"f": staticmethod(made[0].f), "g": staticmethod(made[1].f)}
        return type("Twins", (Step,), {**forward, **functions})()

    hold(make, change_after(lambda m: SCALING[change](made[which])))


class Narrow(Base):
    scale = 2.0


class OfClass(Step):
    def forward(self, x):
        return x * Narrow.scale


def test_an_attribute_that_hides_that_of_the_base():
    try:
        hold(OfClass, change_after(lambda m: setattr(Narrow, "scale", 3.0)))
    finally:
        Narrow.scale = 2.0


def test_two_classes_of_one_name():
    class Two(Step):
        def __init__(self):
            super().__init__()
            self.a, self.b = fresh_class(scale=1.0)(), fresh_class(scale=1.0)()

        def forward(self, x):
            return x * self.a.scale * self.b.scale

    for name in "ab":
        hold(Two, change_after(lambda m, name=name: setattr(type(getattr(m, name)), "scale", 5.0)))


# ---- imports -------------------------------------------------------------------------------------

RELATIVE = {
    "a name of a module": "from .config import SCALE",
    "a module": "from . import config; SCALE = config.SCALE",
    "two dots": "from ..outer.config import SCALE",
}


@pytest.mark.parametrize("name", RELATIVE)
def test_imports_within_a_package(name):
    outer, settings = types.ModuleType("outer"), types.ModuleType("outer.config")
    outer.config, settings.SCALE, outer.__path__ = settings, 1.0, []
    package = "outer.inner" if name == "two dots" else "outer"
    line = RELATIVE[name].replace("..outer.config", "..config")
    made = {"__name__": "outer.model", "__package__": package}
    exec(f"def forward(self, x):\n    {line}\n    return x * SCALE", made)
    sys.modules.update({"outer": outer, "outer.config": settings, "outer.inner": outer})

    def session(m):
        settings.SCALE = 1.0
        return change_after(lambda m: setattr(settings, "SCALE", 2.0))(m)

    try:
        hold(type("Importing", (Step,), {"forward": made["forward"]}), session)
    finally:
        for known in ("outer", "outer.config", "outer.inner"):
            del sys.modules[known]


CACHE = types.SimpleNamespace(last=None)


def test_a_tensor_that_a_step_sets_outside_is_that_of_the_latest_call():
    """Also where two shapes have graphs of their own."""

    class Caching(module.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            return x

        def train_one_batch(self, x):
            CACHE.last = (x * 2).detach()
            return x + 1

    found = {}
    for use_graph in (False, True):
        CACHE.last, model = None, Caching()
        model.compile([from_numpy(np.zeros((4, 2), np.float32))], use_graph=use_graph)
        found[use_graph] = []
        for i in range(12):
            model(from_numpy(np.full(((4, 2)[i % 2], 2), i, np.float32)))
            found[use_graph].append(CACHE.last.numpy().tolist())
    assert found[True] == found[False]
