"""Random sessions with a compiled model, compared bit for bit with the same on an eager one."""

import warnings

import numpy as np
import pytest
from recorded import CPU, Net, batch, inputs, same, same_states
from singa_rs import autograd, layer, opt
from singa_rs.tensor import Tensor, from_numpy

#: What the sessions did, over all seeds.
SEEN = {"replays": 0, "graphs": 0, "eager": 0, "calls": 0}


class Holder:
    """An object that no recording inspects."""


class Wild(Net):
    """A model whose step depends on its attributes in many ways."""

    def __init__(self, traits):
        super().__init__()
        self.traits = frozenset(traits)
        self.flag, self.scale, self.word, self.n = False, 1.0, "a", 0
        self.stats = {"steps": 0, "cfg": [1, 2]}
        self.hidden, self.last, self.pair = Tensor((1, 6)), None, ()
        self.mask = from_numpy(np.ones((1, 6), np.float32))
        self.extra = [layer.Linear(6), layer.ReLU()]
        self.drop, self.rng = layer.Dropout(0.3), np.random.default_rng(0)
        self.holder = Holder()
        self.holder.bank = from_numpy(np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 6))

    def forward(self, x):
        if "extra" in self.traits:
            for one in self.extra:
                x = one(x)
        if "drop" in self.traits:
            x = self.drop(x)
        return super().forward(x * self.mask * self.scale)

    def train_one_batch(self, x, y, word="a"):
        self.n += 1
        self.stats["steps"] += 3
        bank = self.holder.bank
        if "writes" in self.traits:
            x *= 0.5
        if "moves" in self.traits:
            bank *= 0.9
        if "bank" in self.traits:
            x = x + (x @ bank.transpose()).max(axis=1, keepdims=True)
        if self.flag or word != self.word or self.stats["cfg"][0] != 1:
            x = x + 1
        if "hidden" in self.traits:
            self.hidden += x.mean(axis=0, keepdims=True)
            x = x + self.hidden
        out = self.forward(x)
        if FAIL.pop("now", False):
            raise KeyError("on purpose")
        loss = self.loss(out, y)
        if "drawn" in self.traits:
            loss = loss * float(self.rng.random())
        self.optimizer(loss)
        if "kept" in self.traits:
            self.last = out
        if "pair" in self.traits:
            self.pair = (loss, out)
        return (out, loss) if "both" in self.traits else {"loss": loss, "word": word}


FAIL = {}
#: What a step may do, and how likely it is to do so.
TRAITS = {"extra": 0.5, "drop": 0.5, "hidden": 0.5, "kept": 0.5, "pair": 0.5, "both": 0.5}
TRAITS |= {"bank": 0.5, "writes": 0.2, "moves": 0.1, "drawn": 0.15}


def noise(rng, shape):
    return rng.normal(size=shape).astype(np.float32)


def changes(rng):
    """A change that a user may make to a model between two calls, as a function of the model."""
    value, shape = float(rng.integers(1, 4)) / 2, (1, 6)
    array, label = noise(rng, shape), str(rng.choice(["a", "b"]))
    weights = noise(rng, (6, 5))
    return [
        lambda m: setattr(m, "flag", not m.flag),
        lambda m: setattr(m, "scale", value),
        lambda m: setattr(m, "word", label),
        lambda m: setattr(m, "n", 10),
        lambda m: m.stats["cfg"].__setitem__(0, int(value * 2)),
        lambda m: m.stats.pop("more", None) or m.stats.update(more=1),
        lambda m: m.hidden.set_value(value),
        lambda m: setattr(m, "last", None),
        lambda m: setattr(m, "mask", from_numpy(array)),
        lambda m: setattr(m.mask, "data", from_numpy(array)),
        lambda m: m.mask.copy_from(array),
        lambda m: m.fc1.W.copy_from(weights),
        lambda m: setattr(m.fc1.W, "data", from_numpy(weights)),
        lambda m: setattr(m.fc2.W, "requires_grad", not m.fc2.W.requires_grad),
        lambda m: setattr(m.optimizer, "lr", value / 10),
        lambda m: setattr(m.optimizer, "weight_decay", 0.01 * (value > 1)),
        lambda m: setattr(m.optimizer, "momentum", 0.9 * (value > 1)),
        lambda m: setattr(m, "optimizer", opt.Adam(0.01)),
        lambda m: m.extra.pop() if len(m.extra) > 1 else m.extra.append(layer.ReLU()),
        lambda m: m.set_params({"fc2.b": np.full(3, value, np.float32)}),
        lambda m: setattr(m.norm, "eps", 1e-5 * value),
        lambda m: m.plan(from_numpy(batch()[0]), from_numpy(batch()[1])),
        lambda m: m.plan(from_numpy(batch()[0]), from_numpy(batch()[1])),
    ]


class Session:
    """Makes the same calls to two models."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        traits = {trait for trait, chance in TRAITS.items() if self.rng.random() < chance}
        if traits & {"writes", "moves"}:  # a step that cannot be recorded is called twice
            traits.discard("drawn")
        every = [None, None, 5][self.rng.integers(3)]
        self.models = []
        for use_graph in (True, False):
            CPU.set_seed(seed)
            model = Wild(traits)
            model.compile(inputs(), use_graph=use_graph, check_every=every)
            [state.to_numpy() for state in model.get_states().values()]
            model.held = from_numpy(noise(np.random.default_rng(seed), (4, 6)))
            self.models.append(model)
        self.held = []
        self.batches = [self.draw(rows) for rows in (4, 4, 3)]

    def draw(self, rows):
        return noise(self.rng, (rows, 6)), self.rng.integers(0, 3, rows).astype(np.int32)

    def arguments(self):
        """The arguments of a call: a function of the model."""
        x, y = self.batches[self.rng.integers(3)]
        what, rows = self.rng.random(), slice(0, len(x))
        if what < 0.1:
            return lambda m: (m.holder.bank[rows], from_numpy(y))
        if what < 0.15:
            return lambda m: (m.held[rows], from_numpy(y))
        if what < 0.5:
            x = self.draw(len(x))[0]
        if self.rng.random() < 0.3:
            return lambda m: (x, y)
        return lambda m: (from_numpy(x), from_numpy(y))

    def both(self, call):
        """Calls each model, with the same random numbers."""
        seed, results = int(self.rng.integers(1000)), []
        for model in self.models:
            CPU.set_seed(seed)
            results.append(call(model))
        same(*(list(r.items()) if isinstance(r, dict) else r for r in results))
        same_states(*self.models)
        SEEN["calls"] += 1
        return results[0]

    def step(self):
        args = self.arguments()
        kwargs = {"word": "b"} if self.rng.random() < 0.1 else {}
        if self.rng.random() < 0.06:
            self.fail(args)
        result = self.both(lambda m: m.train_one_batch(*args(m), **kwargs))
        tensors = [t for t in result if isinstance(t, Tensor)]
        self.held += [(t, t.to_numpy()) for t in tensors if self.rng.random() < 0.5]
        recorded, eager = self.models
        assert (recorded.n, recorded.stats) == (eager.n, eager.stats)
        for name in ("last", "pair", "hidden", "held"):
            same(getattr(recorded, name), getattr(eager, name))
        same(recorded.holder.bank, eager.holder.bank)

    def fail(self, args):
        """The call fails while it is recorded, and leaves the model as it was."""
        model = self.models[0]
        if any(function.eager for function in model._graphs.all()):
            return
        before = (model.n, dict(model.stats), model.last, model.pair)
        FAIL["now"] = True
        with pytest.raises(KeyError):
            model.train_one_batch(*args(model), word="fails")
        assert before == (model.n, model.stats, model.last, model.pair)

    def evaluate(self):
        x = from_numpy(self.draw(int(self.rng.integers(2, 5)))[0])
        for model in self.models:
            model.eval()
        for _ in range(self.rng.integers(1, 4)):
            self.both(lambda m: m(x))
        for model in self.models:
            model.train()

    def run(self, actions):
        for _ in range(actions):
            what = self.rng.random()
            if what < 0.15:
                chosen = changes(self.rng)[self.rng.integers(23)]
                for model in self.models:
                    chosen(model)
            elif what < 0.2:
                self.evaluate()
            else:
                self.step()
        for tensor, value in self.held:
            assert tensor.to_numpy().tobytes() == value.tobytes()
        functions = self.models[0]._graphs.all()
        SEEN["replays"] += sum(entry.runs for f in functions for entry in f.entries)
        SEEN["graphs"] += sum(len(f.entries) for f in functions)
        SEEN["eager"] += any(f.eager for f in functions)


@pytest.mark.parametrize("seed", range(40))
def test_session(seed):
    autograd.training = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        Session(seed).run(60)


def test_the_sessions_really_replayed():
    if not SEEN["calls"]:
        pytest.skip("the sessions were not run")
    assert SEEN["calls"] > 1500 and SEEN["replays"] > SEEN["calls"] / 5
    assert SEEN["graphs"] > 60 and 0 < SEEN["eager"] < 40
