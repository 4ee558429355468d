"""What steps may do with numbers that change, and how these may change."""

import copy
import json
import math
import pickle
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from recorded import CPU
from singa_rs import autograd, layer, module, opt
from singa_rs.tensor import Tensor, from_numpy, full

X = np.linspace(0.1, 1, 8, dtype=np.float32).reshape(4, 2)
SETTINGS = {"epoch": 0}
LOG = []


def _matched(n):
    match n:
        case 0:
            return 1
        case 3 | 4:
            return 2
        case int() if n > 6:
            return 3
        case _:
            return 4


def _unless_it_fails(compute):
    try:
        return compute()
    except (ArithmeticError, ValueError, TypeError):
        return -1.0


def _doubled(n, times):
    for _ in range(times):
        n = n + n
    return n


#: What a step may do with a number `n` and a tensor `x`.
USES = {
    "division by zero": lambda x, n: x * _unless_it_fails(lambda: 6 // (n % 3)),
    "doubled often": lambda x, n: x * (2 if _doubled(n, 40) > 9**9 else 3),
    "overflow": lambda x, n: x * _unless_it_fails(lambda: float(1.5 ** (n * 500) > 2)),
    "negative shift": lambda x, n: x * _unless_it_fails(lambda: 1 << (2 - n)),
    "complex root": lambda x, n: x * _unless_it_fails(lambda: int((3.0 - n) ** 0.5 > 1) + 1),
    "rests of two types": lambda x, n: x * int(n % 2) + float(n % 2.0),
    "NumPy array of it": lambda x, n: x * (2 if np.array([n, 300]).dtype.kind == "i" else 3),
    "narrowed": lambda x, n: x * float(np.array([n + 250]).astype(np.uint8)[0]),
    "product": lambda x, n: x * n,
    "product from the left": lambda x, n: n * x,
    "power": lambda x, n: x**n,
    "base": lambda x, n: (n + 1) ** x,
    "maximum": lambda x, n: autograd.maximum(x, n),
    "clip": lambda x, n: x.clip(0, n),
    "shape": lambda x, n: x.reshape((n % 2 + 1, -1)).sum() * x,
    "filled": lambda x, n: x + full((2,), n),
    "axis": lambda x, n: x + x.sum(axis=n % 2).sum(),
    "index": lambda x, n: x[n % 4] + x,
    "slice": lambda x, n: x[: n % 4 + 1].sum() + x,
    "range": lambda x, n: sum([x for _ in range(n)], x),
    "arange": lambda x, n: x * float(np.arange(n + 1).sum()),
    "NumPy number": lambda x, n: x * np.float32(n),
    "NumPy array": lambda x, n: x * float((np.ones(2) + n).sum()),
    "text": lambda x, n: x * len(f"{n}" + str(n) + f"{n}"),
    "JSON": lambda x, n: x * len(json.dumps(n)),
    "cosine": lambda x, n: x * math.cos(n),
    "phases": lambda x, n: x * (n // 3),
    "minimum of Python": lambda x, n: x * min(n, 5),
    "float first": lambda x, n: x * (1.5 if 3.5 < n else 0.5 - n),
    "comparison as a number": lambda x, n: x * ((n > 3) * 2.0),
    "truth": lambda x, n: x if n else x + 1,
    "and": lambda x, n: (n % 3 and 1) + x,
    "quotient and rest": lambda x, n: x * divmod(7, n + 1)[0] * divmod(n, 3)[1],
    "chain": lambda x, n: x * 2 if 2 < n <= 6 else x,
    "list": lambda x, n: x * [1, 2, 3][n % 3],
    "dictionary": lambda x, n: x * {0: 1, 1: 5}[n % 2],
    "key": lambda x, n: x * len({n: 1, 2: 1}),
    "modular power": lambda x, n: x * pow(n, 2, 5),
    "sorted": lambda x, n: x * sorted([3, n, 1])[1],
    "class": lambda x, n: x * (2 if isinstance(n, int) else 3),
    "copies": lambda x, n: x * (copy.copy(n) + copy.deepcopy([n])[0]),
    "pickle": lambda x, n: x * pickle.loads(pickle.dumps(n)),
    "attribute": lambda x, n: x * n.real,
    "in a tuple": lambda x, n: x * 2 if n in (2, 5) else x,
    "in a set": lambda x, n: x * 2 if n in {2, 5} else x,
    "in a range": lambda x, n: x * 2 if n in range(3, 6) else x,
    "fraction": lambda x, n: x * float(Fraction(n, 3)),
    "rounded": lambda x, n: x * (round(n / 3) + math.floor(n * 0.4) + math.ceil(n / 5)),
    "bits": lambda x, n: x * ((n & 3 | 4) ^ 1) + (1 << n) - (~n),
    "decay": lambda x, n: x * 0.9 ** (n // 3),
    "nothing": lambda x, n: x * (2 if n is None or n == None or n == "a" else 1),  # noqa: E711
    "match": lambda x, n: x * _matched(n),
    "function of a list": lambda x, n: [autograd.relu, autograd.tanh][n % 2](x),
    "square root of NumPy": lambda x, n: x * float(np.sqrt(n)),
    "sum": lambda x, n: x * (sum([n, n]) + math.fsum([n, 1]) + math.gcd(n, 6)),
    "closure": lambda x, n: (LOG.append(lambda: n), x)[1],
}
#: How it changes in each step.
CHANGES = {
    "plus one": lambda n: n + 1,
    "plus two": lambda n: n + 2,
    "around": lambda n: (n + 1) % 4,
    "started anew": lambda n: 0 if n >= 4 else n + 1,
    "alternating": lambda n: 1 - n,
    "wild": lambda n: n * 2 % 7 + 1,
}


class Using(module.Module):
    """Uses a number in a step that trains a layer, and changes it."""

    def __init__(self, use, change):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(2), opt.SGD(0.1, momentum=0.5)
        self.use, self.change, self.n = use, change, 0
        self.other, self.given = 0, SimpleNamespace(n=0)

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x):
        n = self.n
        loss = (self.use(self.fc(x), n) ** 2).mean()
        self.optimizer(loss)
        self.n = self.change(self.n)
        return loss


def replays(model):
    """How often graphs of a model were replayed."""
    return sum(entry.graph.runs for f in model._graphs.all() for entry in f.entries)


def plain(value):
    return value.to_numpy() if isinstance(value, Tensor) else value


def same(made, want):
    """Checks values for equality, of each bit but the sign of NaN."""
    assert type(made) is type(want) or np.isscalar(want)
    assert np.array_equal(made, want, equal_nan=not isinstance(want, str))


def alike(make, session):
    """Runs a session with a graph and eagerly, compares what it shows, and returns the model that
    has graphs."""
    seen, models = [], []
    for use_graph in (True, False):
        CPU.set_seed(1)
        SETTINGS["epoch"] = 0
        model = make()
        model.compile([from_numpy(X)], is_train=True, use_graph=use_graph)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            seen.append([plain(one) for one in session(model)])
        seen[-1] += [state.to_numpy() for state in model.get_states().values()]
        models.append(model)
    for made, want in zip(*seen, strict=True):
        same(made, want)
    return models[0]


def steps(count, before=None):
    """A session of so many steps, before each of which `before(model, i)` is called."""

    def session(model):
        for i in range(count):
            if before is not None:
                before(model, i)
            yield model(from_numpy(X + i % 3))
            yield model.n
            assert type(model.n) in (int, float) and type(model.other) is int

    return session
