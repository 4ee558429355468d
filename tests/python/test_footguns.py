"""What goes wrong with recorded steps elsewhere: here each is right, or noticed.

Every test trains two models from the same seed, one compiled and one eager, and holds their
results and parameters to each other, to the bit.
"""

import gc
import os
import signal
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs.errors import GraphError
from singa_rs.tensor import Placeholder, Tensor, from_numpy

RNG = np.random.default_rng(7)
CPU = device.get_default_device()


def batch(rows=4, columns=6, classes=3):
    x = RNG.normal(size=(rows, columns)).astype(np.float32)
    return x, RNG.integers(0, classes, rows).astype(np.int32)


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


def inputs(rows=4, columns=6):
    return [Placeholder((rows, columns), device=CPU)]


def pair(cls, *args, **options):
    """A compiled and an eager model of the same parameters."""
    made = []
    for use_graph in (True, False):
        CPU.set_seed(3)
        model = cls(*args)
        model.compile(inputs(), use_graph=use_graph, **(options if use_graph else {}))
        model.get_params()
        [state.to_numpy() for state in model.get_states().values()]
        made.append(model)
    return made


def same(a, b):
    """Whether two trees of results are equal to the bit."""
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
    """One call of each; the compiled one's result."""
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


# ---- arguments -----------------------------------------------------------------------------------


def test_new_argument_tensors():
    recorded, eager = pair(Net)
    for _ in range(6):
        x, y = batch()
        step(recorded, eager, from_numpy(x), from_numpy(y))
    assert replays(recorded) == 4 and len(recorded.graphs) == 1


def test_arguments_filled_again():
    recorded, eager = pair(Net)
    x, y = Placeholder((4, 6), device=CPU), Placeholder((4,), device=CPU, dtype=tensor.int32)
    for _ in range(6):
        bx, by = batch()
        x.copy_from(bx)
        y.copy_from(by)
        step(recorded, eager, x, y)
    assert replays(recorded) == 4


def test_unfilled_placeholder_is_refused():
    recorded, _ = pair(Net)
    y = Placeholder((4,), device=CPU, dtype=tensor.int32)
    with pytest.raises(GraphError, match="train_one_batch.*unfilled Placeholder"):
        recorded(from_numpy(batch()[0]), y)


def test_arrays_that_the_caller_reuses():
    recorded, eager = pair(Net)
    x, y = batch()
    kept = []
    for _ in range(6):
        x[:], y[:] = batch()
        out, _ = step(recorded, eager, x, y)
        kept.append((out, out.to_numpy()))
    x[:] = 0
    for out, value in kept:
        assert out.to_numpy().tobytes() == value.tobytes()
    assert replays(recorded) == 4


def test_smaller_last_batch():
    recorded, eager = pair(Net)
    for _ in range(4):
        for rows in (4, 4, 3):
            step(recorded, eager, *batch(rows))
    assert replays(recorded) == 12 - 2 * 2 and len(recorded.graphs) == 2


def test_strided_argument():
    recorded, eager = pair(Net)
    for _ in range(4):
        x, y = batch(6, 4)
        step(recorded, eager, from_numpy(x).transpose()[:4], from_numpy(y[:4]))


class Product(module.Module):
    """Writes into its first argument and reads the second."""

    def forward(self, a, b):
        a += 1
        return a * b, b


def test_same_tensor_as_two_arguments():
    recorded, eager = Product(), Product()
    recorded.eval()
    recorded.graph(True)
    eager.eval()
    for round_ in range(9):
        values = np.full((2, 3), round_, np.float32)
        results = []
        for model in (recorded, eager):
            a = from_numpy(values)
            b = a if round_ % 3 == 0 else from_numpy(values)
            b = a[:] if round_ % 3 == 1 else b
            results.append(model(a, b))
        same(*results)
    assert len(recorded.graphs) == 2  # a view of the whole argument is the same to a graph


def test_parameter_as_an_argument():
    class Scaled(Net):
        def train_one_batch(self, x, y):
            out = super().forward(x * self.fc1.b.sum())
            loss = self.loss(out, y)
            self.optimizer(loss)
            return out

        def forward(self, x, w=None):
            return super().forward(x if w is None else x @ w)

    recorded, eager = pair(Scaled)
    for model in (recorded, eager):
        model.eval()
    x = from_numpy(batch(4, 4)[0])
    free = from_numpy(RNG.normal(size=(4, 6)).astype(np.float32))
    for own in (False, False, False, True, True, True, False):
        results = []
        for model in (recorded, eager):
            w = model.fc1.W.transpose()[:4] if own else free
            if own:
                w = tensor.reshape(model.fc1.W, (5, 6))[:4]
            results.append(model.forward(x, w))
        same(*results)


def test_other_arguments_are_part_of_the_key():
    class Optional(Net):
        def train_one_batch(self, x, y, mode="full", scale=1.0):
            loss = self.loss(self.forward(x) * scale, y)
            if mode == "full":
                self.optimizer(loss)
            return loss, mode

    recorded, eager = pair(Optional)
    for _ in range(3):
        for mode, scale in (("full", 1.0), ("none", 1.0), ("full", 2.0), ("full", 1)):
            step(recorded, eager, *batch(), mode, scale)
    assert len(recorded.graphs) == 4


def test_requires_grad_of_an_argument():
    class Sensitivity(module.Module):
        def train_one_batch(self, x):
            y = autograd.reduce_sum(x * x, axes=None, keepdims=0)
            return y, y.requires_grad

    recorded = Sensitivity()
    recorded.graph(True)
    recorded.train()
    for _ in range(3):
        for flag in (True, False):
            x = from_numpy(batch()[0])
            x.requires_grad = flag
            assert recorded(x)[1] is flag


def test_a_result_that_is_an_argument_is_that_argument():
    class Echo(module.Module):
        def forward(self, x, pair):
            return {"x": x, "view": x[0], "pair": pair, "n": 3, "sum": x + pair[0]}

    recorded = Echo()
    recorded.graph(True)
    recorded.eval()
    for _ in range(4):
        x, y = (from_numpy(batch()[0]) for _ in range(2))
        answer = recorded(x, (y, None))
        assert answer["x"] is x and answer["pair"] == (y, None) and answer["n"] == 3
        assert answer["view"].shares_block(x)
        same(answer["sum"], x + y)


# ---- results -------------------------------------------------------------------------------------


def test_results_kept_in_a_list():
    recorded, eager = pair(Net)
    kept = []
    for _ in range(8):
        out, loss = step(recorded, eager, *batch())
        kept.append((out, loss, out.to_numpy(), loss.to_numpy()))
    for out, loss, *values in kept:
        assert out.to_numpy().tobytes() == values[0].tobytes()
        assert loss.to_numpy().tobytes() == values[1].tobytes()
    assert replays(recorded) == 6


class Keeping(Net):
    """Keeps its last output as an attribute."""

    def __init__(self):
        super().__init__()
        self.last, self.history = None, {}

    def train_one_batch(self, x, y):
        out, loss = super().train_one_batch(x, y)
        self.last = out
        self.history["loss"] = loss
        return out, loss


def test_result_also_kept_as_an_attribute():
    recorded, eager = pair(Keeping)
    kept = []
    for _ in range(8):
        out, _ = step(recorded, eager, *batch())
        kept.append((out, out.to_numpy()))
        same(recorded.last, out)
        same(recorded.history["loss"], eager.history["loss"])
    for out, value in kept:
        assert out.to_numpy().tobytes() == value.tobytes()
    assert replays(recorded) == 6


def test_kept_attribute_that_the_user_replaces():
    recorded, eager = pair(Keeping)
    for i in range(10):
        step(recorded, eager, *batch())
        same(recorded.last, eager.last)
        if i % 2:
            recorded.last = eager.last = None
        if i == 6:
            mine = Tensor((2, 2))
            recorded.last = eager.last = mine
    assert mine.to_numpy().tolist() == [[0, 0], [0, 0]]


def test_argument_kept_as_an_attribute():
    class Storing(Net):
        def train_one_batch(self, x, y):
            self.seen = x
            return super().train_one_batch(x, y)

    recorded, eager = pair(Storing)
    x, y = map(from_numpy, batch())
    for _ in range(4):
        step(recorded, eager, x, y)
    other = from_numpy(batch()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            step(recorded, eager, other, y)
            assert recorded.seen is other
        for _ in range(3):
            step(recorded, eager, x, y)
            assert recorded.seen is x


# ---- Python state --------------------------------------------------------------------------------


def test_hidden_state_in_an_attribute():
    class Recurrent(Net):
        def __init__(self):
            super().__init__()
            self.h = None

        def train_one_batch(self, x, y):
            if self.h is None:
                self.h = Tensor((4, 6)).set_value(0.5)
            self.h = autograd.tanh(self.h + x).detach()
            return super().train_one_batch(self.h, y)

    recorded, eager = pair(Recurrent)
    with pytest.warns(RuntimeWarning, match="train_one_batch.*without a graph"):
        for _ in range(8):
            step(recorded, eager, *batch())
            same(recorded.h, eager.h)
    assert "runs eagerly" in recorded.explain() and not recorded.graphs


def test_hidden_state_written_in_place():
    class Recurrent(Net):
        def __init__(self):
            super().__init__()
            self.h = Tensor((4, 6))

        def train_one_batch(self, x, y):
            self.h.copy_data(autograd.tanh(self.h + x))
            return super().train_one_batch(self.h, y)

    recorded, eager = pair(Recurrent)
    for i in range(8):
        step(recorded, eager, *batch())
        same(recorded.h, eager.h)
        if i == 4:
            recorded.h.set_value(0), eager.h.set_value(0)
    assert replays(recorded) == 6


class Counting(Net):
    """Counts its steps, and does something else now and then."""

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


def counts(model):
    return model.n, model.stats


def test_counters_go_on():
    recorded, eager = pair(Counting)
    for i in range(8):
        step(recorded, eager, *batch())
        assert counts(recorded) == counts(eager) == (i + 1, counts(eager)[1])
    assert replays(recorded) == 6
    recorded.n = eager.n = 100
    for _ in range(3):
        step(recorded, eager, *batch())
    assert counts(recorded) == counts(eager) and recorded.n == 103


def test_flag_between_steps():
    recorded, eager = pair(Counting)
    for i in range(16):
        recorded.flag = eager.flag = i // 4 % 2 == 1
        step(recorded, eager, *batch())
    assert len(recorded.graphs) == 2 and replays(recorded) == 12


def test_flag_set_within_the_step():
    class First(Net):
        first = True

        def train_one_batch(self, x, y):
            if self.first:
                self.first = False
                x = x * 0
            return super().train_one_batch(x, y)

    recorded, eager = pair(First)
    for _ in range(6):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_condition_on_a_counter():
    recorded, eager = pair(Counting, 2)
    with pytest.warns(RuntimeWarning, match=r"mul.*test_footguns.py:\d+|test_footguns.py"):
        for _ in range(8):
            step(recorded, eager, *batch())


def test_condition_that_shows_late_is_noticed_by_check_every():
    recorded, eager = pair(Counting, 4, check_every=3)
    for i in range(8):
        results = recorded(*B), eager(*B)
        if i < 3:
            same(*results)
    assert "not the same as the one before" in recorded.explain()
    assert recorded.n == eager.n == 8


def test_attribute_that_changes_every_step():
    recorded, eager = pair(Counting)
    with pytest.warns(RuntimeWarning, match="attribute flag2"):
        for i in range(40):
            recorded.flag2 = eager.flag2 = i
            step(recorded, eager, *batch())


def test_float_that_the_step_changes():
    class Decaying(Net):
        rate = 1.0

        def train_one_batch(self, x, y):
            self.rate *= 0.5
            return super().train_one_batch(x * self.rate, y)

    recorded, eager = pair(Decaying)
    with pytest.warns(RuntimeWarning, match="Decaying.train_one_batch"):
        for _ in range(7):
            step(recorded, eager, *batch())
    assert recorded.rate == eager.rate


def test_list_that_the_step_fills():
    class Logging(Net):
        def __init__(self):
            super().__init__()
            self.log = []

        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            self.log.append(loss)
            return out

    recorded, eager = pair(Logging)
    with pytest.warns(RuntimeWarning, match="attribute log"):
        for _ in range(7):
            step(recorded, eager, *batch())
    same(recorded.log, eager.log)


def test_masks_drawn_in_numpy():
    class Masking(Net):
        def train_one_batch(self, x, y):
            mask = from_numpy((self.rng.random((4, 6)) < 0.5).astype(np.float32))
            return super().train_one_batch(x * mask, y)

    recorded, eager = pair(Masking)
    recorded.rng, eager.rng = np.random.default_rng(0), np.random.default_rng(0)
    with pytest.warns(RuntimeWarning, match="test_footguns.py"):
        for _ in range(7):
            step(recorded, eager, *batch())


def test_constant_mask_is_baked_in():
    class Masking(Net):
        def train_one_batch(self, x, y):
            mask = from_numpy(np.eye(4, 6, dtype=np.float32))
            return super().train_one_batch(x * mask, y)

    recorded, eager = pair(Masking)
    for _ in range(5):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_array_in_an_attribute():
    class Masking(Net):
        def train_one_batch(self, x, y):
            return super().train_one_batch(x * from_numpy(self.mask), y)

    recorded, eager = pair(Masking)
    for i in range(9):
        if i % 3 == 0:
            recorded.mask = eager.mask = RNG.random((4, 6)).astype(np.float32)
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_function_in_an_attribute():
    class Activated(Net):
        act = staticmethod(autograd.relu)

        def train_one_batch(self, x, y):
            return super().train_one_batch(self.act(x), y)

    recorded, eager = pair(Activated)
    for i in range(9):
        if i % 3 == 0:
            recorded.act = eager.act = (autograd.tanh, autograd.sigmoid)[i % 2]
        step(recorded, eager, *batch())


def test_layer_replaced_between_steps():
    recorded, eager = pair(Net)
    for i in range(8):
        if i == 4:
            for model in (recorded, eager):
                CPU.set_seed(9)
                model.fc2 = layer.Linear(3)
        CPU.set_seed(10)
        results = recorded(*B)
        CPU.set_seed(10)
        same(results, eager(*B))
    same_states(recorded, eager)


B = batch()


# ---- optimizers and parameters -------------------------------------------------------------------


def test_learning_rate_between_steps():
    recorded, eager = pair(Net)
    for i in range(8):
        for model in (recorded, eager):
            model.optimizer.lr = 0.1 / (i + 1)
        step(recorded, eager, *batch())
    assert replays(recorded) == 6 and function(recorded).history.recordings == 2


def test_hyperparameter_that_changes_the_update():
    recorded, eager = pair(Net)
    for i in range(9):
        for model in (recorded, eager):
            model.optimizer.weight_decay = 0.01 if i >= 3 else 0
            model.optimizer.momentum = 0.0 if i >= 6 else 0.9
        step(recorded, eager, *batch())
    assert len(recorded.graphs) == 3


def test_schedule():
    recorded, eager = pair(Net)
    for model in (recorded, eager):
        model.optimizer.lr = opt.ExponentialDecay(0.1, 2, 0.5)
    for i in range(9):
        if i == 5:
            for model in (recorded, eager):
                model.optimizer.lr.decay_rate = 0.9
        step(recorded, eager, *batch())
        same(recorded.optimizer.lr_value, eager.optimizer.lr_value)
    assert recorded.optimizer.get_states()["step_counter"] == 9


@pytest.mark.parametrize("make", [opt.Adam, opt.AdamW, opt.RMSProp, opt.AdaGrad])
def test_other_optimizers(make):
    class Trained(Net):
        def __init__(self):
            super().__init__()
            self.optimizer = make(lr=0.01)

    recorded, eager = pair(Trained)
    for _ in range(5):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_parameters_written_between_steps():
    recorded, eager = pair(Net)
    for i in range(10):
        for model in (recorded, eager):
            if i == 3:
                model.fc1.W.copy_from(np.ones(model.fc1.W.shape, np.float32))
            if i == 5:
                model.set_params({"fc2.b": np.ones(3, np.float32)})
            if i == 7:
                model.fc1.W.data = from_numpy(np.full((6, 5), 0.5, np.float32))
        step(recorded, eager, *batch())


def test_parameter_frozen_between_steps():
    recorded, eager = pair(Net)
    for i in range(12):
        for model in (recorded, eager):
            model.fc1.W.requires_grad = i // 3 % 2 == 0
        before = recorded.fc1.W.to_numpy()
        step(recorded, eager, *batch())
        moved = bool((before != recorded.fc1.W.to_numpy()).any())
        assert moved == (i // 3 % 2 == 0)
    assert len(recorded.graphs) == 2


@pytest.mark.parametrize("zero", ["outside", "inside", "never"])
def test_gradients_left_in_parameters(zero):
    class Manual(Net):
        def train_one_batch(self, x, y):
            loss = self.loss(self.forward(x), y)
            if zero == "inside":
                self.forget()
            loss.backward()
            with autograd.no_grad():
                for p in self.get_params().values():
                    p -= 0.1 * p.grad
            return loss

        def forget(self):
            for p in self.get_params().values():
                p.grad = None

    recorded, eager = pair(Manual)
    for _ in range(8):
        for model in (recorded, eager):
            if zero == "outside":
                model.forget()
        step(recorded, eager, *batch())
        same(recorded.fc1.W.grad, eager.fc1.W.grad)
    assert replays(recorded) >= 3


# ---- several things at once ----------------------------------------------------------------------


def test_evaluation_between_training_steps():
    recorded, eager = pair(Net)
    for _ in range(6):
        for model in (recorded, eager):
            model.train()
        step(recorded, eager, *batch())
        for model in (recorded, eager):
            model.eval()
        for rows in (4, 2):
            step(recorded, eager, batch(rows)[0])
    assert replays(recorded) == 4 and replays(recorded, "forward") == 8


def test_forward_in_training_is_eager():
    recorded, _ = pair(Net)
    out = recorded.forward(from_numpy(batch()[0]))
    assert out.creator is not None and not out.is_dummy()


def test_two_models_interleaved():
    pairs = [pair(Net), pair(Net)]
    for _ in range(6):
        for one in pairs:
            step(*one, *batch())
    assert all(replays(recorded) == 4 for recorded, _ in pairs)


def test_one_optimizer_of_two_models():
    class Shared(Net):
        def __init__(self, optimizer):
            super().__init__()
            self.optimizer = optimizer

    optimizers = [opt.SGD(lr=0.1, momentum=0.9) for _ in range(2)]
    models = []
    for optimizer, use_graph in zip(optimizers, (True, False), strict=True):
        CPU.set_seed(3)
        made = [Shared(optimizer), Shared(optimizer)]
        for model in made:
            model.compile(inputs(), use_graph=use_graph)
            [p.to_numpy() for p in model.get_params().values()]
        models.append(made)
    for _ in range(5):
        for recorded, eager in zip(*models, strict=True):
            step(recorded, eager, *batch())


def test_a_deleted_model_gives_its_memory_back():
    recorded, _ = pair(Net)
    for _ in range(4):
        recorded(*batch())
    alive = weakref.ref(recorded)
    gc.disable()
    try:
        before = CPU.memory()["parameters"]
        size = sum(p.nbytes for p in recorded.get_params().values())
        del recorded
        assert alive() is None  # without the cycle collector's help
        assert CPU.memory()["parameters"] <= before - size
    finally:
        gc.enable()


def test_module_inside_a_module():
    class Outer(Net):
        def __init__(self):
            super().__init__()
            self.inner = Counting()

        def forward(self, x):
            return super().forward(x) + self.inner.forward(x)

        def train_one_batch(self, x, y):
            _, first = self.inner.train_one_batch(x, y)
            out, second = super().train_one_batch(x, y)
            return out, first, second

    recorded, eager = pair(Outer)
    recorded.inner.graph(True)
    for _ in range(6):
        step(recorded, eager, *batch())
    assert replays(recorded) == 4 and recorded.inner.n == eager.inner.n == 6
    assert not recorded.inner.graphs


def test_operator_on_the_host():
    class Cube(autograd.Operator):
        host = True

        def infer(self, x):
            return x

        def forward(self, x):
            self.calls.append(x.copy())
            return x**3

        def backward(self, dy):
            return dy * 2

    class Hosted(Net):
        def __init__(self):
            super().__init__()
            self.calls = []

        def train_one_batch(self, x, y):
            cube = Cube()
            cube.calls = calls
            out = super().forward(cube(x)[0])
            loss = self.loss(out, y)
            self.optimizer(loss)
            return loss

    calls = []
    recorded, eager = pair(Hosted)
    for i in range(6):
        x, y = batch()
        step(recorded, eager, x, y)
        assert len(calls) == 2 * (i + 1) and (calls[-1] == x).all() and (calls[-2] == x).all()
    assert replays(recorded) == 4


def test_dropout_draws_new_numbers():
    class Dropping(Net):
        def __init__(self):
            super().__init__()
            self.drop = layer.Dropout(0.5)

        def forward(self, x):
            return super().forward(self.drop(x))

    recorded, eager = pair(Dropping)
    masks = []
    results = []
    for model in (recorded, eager):
        CPU.set_seed(5)
        results.append([model(*B) for _ in range(6)])
    same(*results)
    masks = {out.to_numpy().tobytes() for out, _ in results[0]}
    assert len(masks) == 6 and replays(recorded) == 4


def test_a_prefetch_thread():
    recorded, eager = pair(Net)
    batches = [batch() for _ in range(12)]
    ready, done = [], threading.Event()

    def prefetch():
        for x, y in batches:
            ready.append((from_numpy(x) * 1.0, from_numpy(y)))
            time.sleep(0.001)
        done.set()

    thread = threading.Thread(target=prefetch)
    thread.start()
    for i, (x, y) in enumerate(batches):
        while len(ready) <= i:
            time.sleep(0.0005)
        results = recorded(*ready[i])
        same(results, eager(x, y))
    thread.join()
    assert done.is_set() and replays(recorded) == 10


def test_two_threads_call_one_model():
    recorded, eager = pair(Net)
    recorded.eval(), eager.eval()
    x = [batch()[0] for _ in range(40)]
    want = [eager(one).to_numpy() for one in x]
    got = [None] * len(x)

    def call(part):
        for i in range(part, len(x), 2):
            got[i] = recorded(x[i]).to_numpy()

    threads = [threading.Thread(target=call, args=(part,)) for part in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for one, other in zip(want, got, strict=True):
        assert one.tobytes() == other.tobytes()


# ---- failures ------------------------------------------------------------------------------------


class Failing(Counting):
    """Fails after its update in the calls of these numbers; stops before it in others."""

    def __init__(self, fails=()):
        super().__init__()
        self.h, self.fails, self.calls = None, fails, []

    def train_one_batch(self, x, y):
        out = self.forward(x)
        self.h = out
        self.n += 1
        if FAIL.pop("now", None):
            raise KeyError("on purpose")
        loss = self.loss(out, y)
        self.optimizer(loss)
        return loss


FAIL = {}


@pytest.mark.parametrize("when", [0, 1, 9])
def test_exception_in_a_call(when):
    """The failing call changes nothing; those after it do what they would have done."""
    recorded, eager = pair(Failing)
    for i in range(12):
        if i == when and i < 2:
            FAIL["now"] = True
            with pytest.raises(KeyError, match="on purpose"):
                recorded(*batch())
            assert recorded.n == eager.n == i and not autograd._mode.nodes
        if i == when and i >= 2:
            with pytest.raises(ValueError, match=r"index|class|label|range"):
                recorded(batch()[0], np.full(4, 77, np.int32))
            same_states(recorded, eager)
            assert recorded.n == eager.n
        step(recorded, eager, *batch())
        same(recorded.h, eager.h)
    assert replays(recorded) == 10


def test_exception_in_the_first_call_leaves_layers_as_they_were():
    model = Failing()
    model.train()
    model.graph(True)
    FAIL["now"] = True
    with pytest.raises(KeyError):
        model(*batch(4, 9))
    assert not model.fc1._initialized and not model.get_params() and model.h is None
    x, y = batch(4, 6)
    CPU.set_seed(4)
    out = model(x, y)
    CPU.set_seed(4)
    eager = Failing()
    eager.train()
    same(out, eager(x, y))
    same_states(model, eager)


def test_failure_on_the_host_names_what_was_written():
    class Picky(autograd.Operator):
        host = True

        def infer(self, x):
            return x

        def forward(self, x):
            if FAIL.pop("host", None):
                raise ZeroDivisionError("picky")
            return x

    class Hosted(Net):
        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            return Picky()(out)[0], loss

    recorded, eager = pair(Hosted)
    for i in range(6):
        if i == 4:
            FAIL["host"] = True
            with pytest.raises(ZeroDivisionError, match=r"picky.*already written.*fc1\.W"):
                recorded(*B)
            eager(*B)
        step(recorded, eager, *batch())


def test_value_read_while_recording():
    class Reading(Net):
        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            return out, loss.item()

    recorded, eager = pair(Reading)
    for _ in range(2):
        with pytest.raises(GraphError, match=r"item.*test_footguns\.py:\d+"):
            recorded(*batch())
    recorded.graph(False)
    step(recorded, eager, *batch())


def test_argument_read_while_recording():
    class Reading(Net):
        def train_one_batch(self, x, y):
            return super().train_one_batch(x * float(x.max()), y)

    recorded, _ = pair(Reading)
    with pytest.raises(GraphError, match="item"):
        recorded(*batch())


def test_kept_tensor_of_a_failed_call_is_gone():
    recorded, _ = pair(Failing)
    recorded(*batch())
    kept = recorded.h
    FAIL["now"] = True
    with pytest.raises(KeyError):
        recorded(*batch())
    assert recorded.h is kept


def test_interrupt():
    """Ctrl-C during a long call leaves everything usable."""
    recorded, eager = pair(Net)
    steps, stop = 0, threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    stop.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            recorded(*B)
            steps += 1
    stop.join()
    assert not autograd._mode.nodes and steps > 2
    recorded.set_states(eager.get_states())
    for buffers in (recorded.optimizer.moments, recorded.optimizer.moments):
        [buffer.set_value(0) for buffer in buffers.values()]
    recorded.optimizer.step_counter.set_value(0)
    for _ in range(4):
        step(recorded, eager, *batch())


def test_interrupt_while_recording():
    class Stopped(Net):
        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            if FAIL.pop("stop", None):
                raise KeyboardInterrupt
            return out, loss

    recorded, eager = pair(Stopped)
    for i in range(5):
        if i < 2:
            FAIL["stop"] = True
            with pytest.raises(KeyboardInterrupt):
                recorded(*batch())
            same_states(recorded, eager)
        step(recorded, eager, *batch())
