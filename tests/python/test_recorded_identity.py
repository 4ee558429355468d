"""A graph notices which of several objects a model holds, and what a step does with it."""

import math

import numpy as np
import pytest
from scenarios import Fit, Step, X, hold, x
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import from_numpy

pytestmark = pytest.mark.filterwarnings("ignore:.*runs eagerly")
GLOBAL = {}


def made(forward, **attributes):
    """A class of models with this forward pass; attributes are made by functions."""

    class Made(Step):
        def __init__(self):
            super().__init__()
            for name, make in attributes.items():
                setattr(self, name, make())

    Made.forward = forward
    return Made


def switched(change, count=3):
    """A session in which something changes after `count` calls."""

    def session(model):
        for _ in range(count):
            model(x())
        change(model)
        return [model(x()), model(x())]

    return session


# ---- which object an attribute holds -------------------------------------------------------------


def test_a_layer_without_state_is_replaced():
    model = made(lambda self, x: self.act(x), act=layer.ReLU)
    hold(model, switched(lambda m: setattr(m, "act", layer.Tanh())))


def test_layers_change_places():
    model = made(lambda self, x: self.acts[0](x), acts=lambda: [layer.ReLU(), layer.Sigmoid()])
    hold(model, switched(lambda m: m.acts.reverse()))


def test_another_of_two_layers_that_are_held():
    heads = {"a": lambda: layer.Linear(1), "b": lambda: layer.Linear(1)}
    model = made(lambda self, x: self.active(x), **heads)

    def session(m):
        m.active = m.b
        m(x())
        m.active = m.a
        return switched(lambda m: setattr(m, "active", m.b))(m)

    hold(model, session)


def test_another_of_two_dictionaries_that_are_held():
    def config():
        return {"a": {"s": 1.0}, "b": {"s": 2.0}}

    class Configured(Step):
        def __init__(self):
            super().__init__()
            self.all = config()
            self.now = self.all["a"]

        def forward(self, x):
            return x * self.now["s"]

    hold(Configured, switched(lambda m: setattr(m, "now", m.all["b"])))


def test_the_step_itself_takes_another_list():
    class Choosing(Step):
        def __init__(self):
            super().__init__()
            self.a, self.b = [1.0], [2.0]
            self.now = self.a

        def forward(self, x, which):
            self.now = self.a if which == "a" else self.b
            return x * self.now[0]

    def session(m):
        return [m(x(), which) for which in "aabbbaaa"] + [m.now is m.a]

    hold(Choosing, session)


def test_another_of_two_optimizers_that_are_held():
    class Two(Fit):
        def __init__(self):
            super().__init__()
            self.both = {"slow": opt.SGD(0.001), "fast": opt.SGD(1.0)}
            self.optimizer = self.both["slow"]

    def session(m):
        switched(lambda m: setattr(m, "optimizer", m.both["fast"]))(m)
        return [m.fc.W, m.both["fast"].get_states()["step_counter"]]

    hold(Two, session)


def test_another_of_two_tensors_is_returned():
    model = made(
        lambda self, x: (x * 2.0, self.now),
        a=x,
        b=lambda: from_numpy(X + 5),
        now=x,
    )
    hold(model, switched(lambda m: setattr(m, "now", m.b)))


def test_two_attributes_are_one_tensor():
    class Asking(Step):
        def __init__(self):
            super().__init__()
            self.a, self.b = x(), x()
            self.now = self.a

        def forward(self, x):
            return x * (2.0 if self.now is self.a else 3.0)

    hold(Asking, switched(lambda m: setattr(m, "now", m.b)))


HOUR = np.dtype("m8[h]", metadata={"zone": 1})
RECORD, BYTES = np.dtype([("a", "<i4")]), b"\1\0\0\0"


@pytest.mark.parametrize(
    ("use", "first", "second"),
    [
        (lambda r: r.stop, range(0, 3, 2), range(0, 4, 2)),
        (lambda d: d / np.timedelta64(1, "s"), np.timedelta64(1, "s"), np.timedelta64(1, "m")),
        (lambda d: d.dtype.metadata is None, np.timedelta64(1, "h"), np.array(1, HOUR)[()]),
        (lambda d: d.item().year, np.datetime64(1, "Y"), np.datetime64(1, "D")),
        (lambda v: v.dtype.names is None, np.void(BYTES), np.frombuffer(BYTES, RECORD)[0]),
        (lambda v: v["a"], np.array((1,), [("a", "O")])[()], np.array((2,), [("a", "O")])[()]),
        (lambda f: math.copysign(1, f), math.nan, -math.nan),
        (lambda c: math.copysign(1, c.real), complex(math.nan, 1), complex(-math.nan, 1)),
    ],
)
@pytest.mark.parametrize("place", ["argument", "attribute", "global"])
def test_values_that_are_nearly_equal(place, use, first, second):
    """They compare equal, or have the same bits."""

    class Using(Step):
        def forward(self, x, given):
            values = {"argument": given, "attribute": self.given, "global": GLOBAL["value"]}
            return x * float(use(values[place]))

    def session(m):
        made = []
        for value in [first] * 4 + [second] * 3:
            m.given = GLOBAL["value"] = value
            made.append(m(x(), value if place == "argument" else None))
        return made

    hold(Using, session)


# ---- which object is passed ----------------------------------------------------------------------


def test_an_argument_that_the_model_holds():
    class Starting(Step):
        def __init__(self):
            super().__init__()
            self.start = from_numpy(X * 0)

        def forward(self, x, h):
            return x * 2.0 if h is self.start else x * h

    def session(m):
        given = [m.start] * 4 + [None] * 4 + [m.start] * 2
        return [m(x(), x() if h is None else h) for h in given]

    hold(Starting, session)


def test_a_step_that_remembers_its_argument():
    class Remembering(Step):
        def __init__(self):
            super().__init__()
            self.last, self.count = None, 0

        def forward(self, x):
            if x is not self.last:
                self.last, self.count = x, self.count + 1
            return x * 2.0

    def session(m):
        batch = x()
        return [m(one) for one in (batch, batch, batch, x(), x(), batch)] + [m.count]

    hold(Remembering, session)


def test_one_tensor_given_twice():
    def session(m):
        batch = x()
        given = [(batch, batch)] * 4 + [(batch, batch[0:4]), (batch, x())] * 3
        return [m(*pair) for pair in given]

    hold(made(lambda self, a, b: a * (2.0 if a is b else 3.0)), session)


class Batch(dict):
    """Has attributes besides its items."""


def test_attributes_of_containers_that_are_given():
    def session(m):
        batch = Batch(x=x())
        shown = []
        for batch.scale in (1.0, 1.0, 1.0, 2.0, 2.0):
            shown.append(m(batch))
        return shown

    hold(made(lambda self, b: b["x"] * b.scale), session)


# ---- the mode ------------------------------------------------------------------------------------


def test_the_program_assigns_training_before_forward():
    class Normal(module.Module):
        def __init__(self):
            super().__init__()
            self.norm = layer.BatchNorm2d()

        def forward(self, x):
            return self.norm(x)

    def session(m):
        m(x())
        m.eval()
        for _ in range(3):
            m(x())
        autograd.training = True
        return [m(x()), m.forward(x()), m.norm.running_mean]

    hold(Normal, session)


# ---- numbers, gradients, names -------------------------------------------------------------------


def test_a_number_that_follows_a_counter():
    class Following(Step):
        def __init__(self):
            super().__init__()
            self.n = self.last = 0

        def forward(self, x):
            self.n += 1
            self.last = self.n
            return x * 2.0

    def session(m):
        switched(lambda m: setattr(m, "n", 0))(m)
        return [m.n, m.last]

    hold(Following, session)


class Collecting(Fit):
    """Leaves gradients, and updates nothing."""

    def train_one_batch(self, x):
        loss = self.loss_of(x)
        loss.backward()
        return loss


@pytest.mark.parametrize("first", range(6))
def test_gradients_that_are_collected_after_a_while(first):
    """They are reset before each step at first, and then before every other one."""

    def session(m):
        shown = []
        for i in range(10):
            if i < first or i % 2 == 0:
                for p in m.get_params().values():
                    p.grad = None
            m(x())
            shown.append(m.fc.W.grad.clone())
        return shown

    hold(Collecting, session)


def test_gradients_not_read_in_between():
    def session(m):
        m(x())
        for i in range(7):
            if i < 3:
                m.fc.W.grad = m.fc.b.grad = None
            m(x())
        return [m.fc.W.grad]

    hold(Collecting, session)


def test_a_parameter_gets_another_path():
    class Named(Fit):
        def train_one_batch(self, x):
            loss = self.loss_of(x)
            for p, d in autograd.backward(loss):
                if p.name.startswith("fc."):
                    self.optimizer.apply(p.name, p, d)
            return loss

    class Around(module.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

    def session(m):
        for _ in range(3):
            m(x())
        around = Around(m)
        around.get_params()
        m(x())
        return [m.fc.W, m(x())]

    hold(Named, session)
