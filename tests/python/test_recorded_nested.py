"""Recorded models next to others: evaluation, models within models, threads."""

import gc
import threading
import time
import weakref

import pytest
from recorded import CPU, B, Counting, Net, batch, inputs, pair, replays, same, step
from singa_rs import autograd, layer, opt
from singa_rs.errors import GraphError
from singa_rs.tensor import from_numpy


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
            calls.append(x.copy())
            return x**3

        def backward(self, dy):
            return dy * 2

    class Hosted(Net):
        def train_one_batch(self, x, y):
            out = super().forward(Cube()(x)[0])
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


@pytest.mark.parametrize("rows", [4, 4096])
def test_two_threads_call_one_model(rows):
    recorded, eager = pair(Net)
    recorded.eval(), eager.eval()
    x = [batch(rows)[0] for _ in range(60)]
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


def test_a_thread_that_reads_parameters_before_their_first_use():
    class Watched(Net):
        is_watched = False

        def forward(self, x):
            y = super().forward(x)
            if self.is_watched:  # the tape has saved weights whose values are not made yet
                values = [one.to_numpy for one in self.get_params().values()]
                threads = [threading.Thread(target=read) for read in values * 2]
                for one in threads:
                    one.start()
                for one in threads:
                    one.join()
            return y

    _, eager = pair(Net)
    CPU.set_seed(3)
    recorded = Watched()
    recorded.compile(inputs())
    recorded.is_watched = True
    for _ in range(4):
        step(recorded, eager, *batch())


def test_a_compiled_model_called_by_a_host_operation():
    inner, _ = pair(Net)
    inner.eval()

    class Calling(autograd.Operator):
        host = True

        def infer(self, x):
            return x

        def forward(self, x):
            inner(x)
            return x

    class Outer(Net):
        def forward(self, x):
            return super().forward(Calling()(x)[0])

    recorded, eager = pair(Outer)
    with pytest.raises(GraphError, match="called from user code that a graph is running"):
        recorded(*batch())
    inner.graph(False)
    for _ in range(4):
        step(recorded, eager, *batch())
