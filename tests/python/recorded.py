"""Two models with the same parameters, one compiled and one eager, compared bit for bit."""

import numpy as np
from singa_rs import device, layer, module, opt
from singa_rs.tensor import Placeholder, Tensor, from_numpy

RNG = np.random.default_rng(7)
CPU = device.get_default_device()


def batch(rows=4, columns=6, classes=3):
    x = RNG.normal(size=(rows, columns)).astype(np.float32)
    return x, RNG.integers(0, classes, rows).astype(np.int32)


B = batch()


class Net(module.Module):
    """Two layers and batch statistics, trained with momentum."""

    def __init__(self):
        super().__init__()
        self.fc1 = layer.Linear(5, activation="RELU")
        self.norm = layer.BatchNorm2d()
        self.fc2 = layer.Linear(3)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(lr=0.1, momentum=0.9)

    def forward(self, x):
        return self.fc2(self.norm(self.fc1(x)))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


def tensor(*shape):
    return from_numpy(RNG.normal(size=shape).astype(np.float32))


def copy(x):
    return from_numpy(x.to_numpy())


def inputs(rows=4, columns=6):
    return [Placeholder((rows, columns), device=CPU)]


def pair(cls, *args, **options):
    """A compiled and an eager model with the same parameters."""
    made = []
    for use_graph in (True, False):
        CPU.set_seed(3)
        model = cls(*args)
        model.compile(inputs(), use_graph=use_graph, **(options if use_graph else {}))
        model.get_params()
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


def evaluated(cls, *args):
    """A recorded model and an eager one, in evaluation mode."""
    made = [cls(*args) for _ in range(2)]
    for model in made:
        model.eval()
    made[0].graph(True)
    return made


def same(a, b):
    """Asserts that two trees of results are bitwise equal."""
    if isinstance(a, Tensor):
        assert a.shape == b.shape and a.to_numpy().tobytes() == b.to_numpy().tobytes()
    elif isinstance(a, (tuple, list)):
        assert type(a) is type(b) and len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a == b


def same_states(recorded, eager):
    want = eager.get_states()
    for name, state in recorded.get_states().items():
        same(state, want[name])


def step(recorded, eager, *args, draws=False):
    """Calls each model once, and compares them; returns the compiled one's result."""
    results = []
    for model in (recorded, eager):
        if draws:
            CPU.set_seed(11)
        results.append(model(*args))
    same(*results)
    same_states(recorded, eager)
    return results[0]


def function(model, name="train_one_batch"):
    (found,) = (f for f in model._graphs.all() if f.name.endswith(name))
    return found


def replays(model, name="train_one_batch"):
    return sum(entry.runs for entry in function(model, name).entries)


class Counting(Net):
    """Counts its steps, and computes something else in every `every`-th or while `flag` is set."""

    def __init__(self, every=None):
        super().__init__()
        self.n, self.stats, self.every, self.flag = 0, {"steps": 0, "seen": [0, 5]}, every, False

    def train_one_batch(self, x, y):
        self.n += 1
        self.stats["steps"] += 2
        self.stats["seen"][0] -= 1
        if self.every is not None and self.n % self.every == 0 or self.flag:
            x = x * 2
        return super().train_one_batch(x, y)
