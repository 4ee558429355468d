"""What a model holds goes where the model is, and stays there: parameters, caches, tensors in
containers and objects, moments. Held against the CPU, as in `test_gpu.py`."""

import pickle
from collections import deque

import numpy as np
import pytest
from gpu_nets import (
    CPU,
    LABELS,
    A,
    Net,
    X,
    check,
    compiled,
    losses,
    needs_gpu,
    on,
    started,
)
from singa_rs import _core, autograd, layer, module, opt, tensor

pytestmark = needs_gpu


@pytest.fixture
def gpu(monkeypatch):
    return started(monkeypatch)


class Scaled(Net):
    def __init__(self):
        super().__init__()
        self.scale = layer.Parameter(np.full(3, 0.5, np.float32))
        self.shift = tensor.ones(3)

    def forward(self, x):
        return self.linear(x) * self.scale + self.shift


class Listed(Net):
    def __init__(self):
        super().__init__()
        self.scales = layer.ParameterList([np.full(3, 0.5, np.float32)])

    def forward(self, x):
        return self.linear(x) * self.scales[0]


class Weighted(Net):
    def __init__(self):
        super().__init__()
        self.loss = layer.SoftMaxCrossEntropy(weight=[1.0, 2.0, 3.0])


class Numbered(Net):
    def __init__(self):
        super().__init__()
        self.places = layer.Sequential(layer.Embedding(9, 3))

    def forward(self, x):
        return self.linear(x) + self.places(np.arange(x.shape[0]))


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("make", [Scaled, Listed, Weighted, Numbered])
def test_compile_takes_along_what_the_model_holds(make, use_graph, gpu):
    model = compiled(gpu, make, use_graph=use_graph)
    want = losses(compiled(CPU, make, use_graph=use_graph), CPU)
    np.testing.assert_allclose(losses(model, gpu), want, rtol=1e-4)
    assert {one.device for one in model.get_states().values()} == {gpu}
    model.compile([on(CPU, X)], use_graph=use_graph)
    assert {one.device for one in model.get_states().values()} == {CPU}


class Writer(module.Module):
    """Writes, and keeps what it has read in a list."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = layer.Embedding(9, 8), layer.Linear(9)
        self.attend = layer.MultiHeadAttention(8, 2, rotary=True)
        self.caches = [layer.KeyValueCache(1, heads=2, capacity=6, width=4)]

    def forward(self, x):
        return self.head(self.attend(self.embed(x), is_causal=True, cache=self.caches[0]))


@pytest.mark.parametrize("use_graph", [False, True])
def test_caches_go_where_their_model_is(use_graph, gpu):
    def written(to):
        CPU.set_seed(0)
        to.set_seed(0)
        model, made = Writer(), [3]
        model.compile([on(to, [[3]])], is_train=False, use_graph=use_graph)
        model.caches[0].clear()
        for _ in range(5):
            made.append(model(np.array([made[-1:]])).to_numpy().argmax(-1).item())
        assert model.caches[0].keys.device == to
        return made

    assert written(gpu) == written(CPU)


class Held:
    """An object of the program."""

    def __init__(self):
        self.scale = tensor.ones(3)


class Carried(Net):
    """Keeps tensors in containers and objects, and replaces them."""

    def __init__(self):
        super().__init__()
        self.last, self.lately = [tensor.zeros((8, 3))], deque([tensor.zeros((8, 3))], 1)
        self.scales, self.held = {0: (tensor.ones(3),)}, Held()

    def forward(self, x):
        made = self.linear(x) * self.scales[0][0] * self.held.scale
        made = made + self.last[0] * 0.5 + self.lately[0]
        self.last[0], self.seen = made.detach(), autograd.tanh(made).detach()
        self.lately.append(self.seen * 0.1)
        return made


@pytest.mark.parametrize("use_graph", [False, True])
def test_tensors_in_containers_and_objects_move_along(use_graph, gpu):
    def went(*places):
        model = compiled(places[0], Carried, use_graph=use_graph)
        found = []
        for to in places:
            model.to_device(to)
            found += losses(model, to, 4)
        return found

    want = went(CPU, CPU, CPU)
    np.testing.assert_allclose(went(gpu, CPU, gpu), want, rtol=1e-4)


def test_shared_memory_and_gradients_stay_where_they_are(gpu):
    model, table = compiled(CPU), tensor.ones((3, 2))
    model.rows, model.own = [table[0], table[1]], [tensor.ones(2)]
    model.loss_so_far = [model.loss(model.linear(on(CPU, X)), on(CPU, LABELS))]
    model.to_device(gpu)
    found = [one.device for one in (*model.rows, *model.loss_so_far, *model.own)]
    assert found == [CPU, CPU, CPU, gpu]
    model.rows[0].set_value(2)
    assert table[0].tolist() == [2.0, 2.0]


def test_what_a_refused_compile_moved_moves_back(gpu):
    model = Carried()
    with pytest.raises(_core.ShapeError):
        model.compile([on(gpu, X[:3])])
    assert {model.last[0].device, model.held.scale.device} == {CPU}


class Inner(Net):
    def __init__(self):
        super().__init__()
        self.linear = compiled(CPU)

    def forward(self, x):
        return self.linear.forward(x)


def test_models_in_models_move_along(gpu):
    model = compiled(gpu, Inner)
    assert model.linear.device == gpu
    assert model.linear.forward(X).device == gpu


class Adding(Net):
    """Adds gradients up over two losses."""

    def train_one_batch(self, x, y):
        self.optimizer.accumulate(self.loss(self.forward(x), y) * 0.5)
        loss = self.loss(self.forward(x), y) * 0.5
        self.optimizer(loss)
        return loss


def _grouped():
    made = opt.Adam(opt.CosineDecay(0.05, 10))
    made.group("*.b", lr=0.01)
    return Net(made)


MOVED = {
    "momentum": lambda: Net(opt.SGD(0.1, momentum=0.9)),
    "NAdam": lambda: Net(opt.NAdam(0.05)),
    "groups": _grouped,
    "sums": lambda: Adding(opt.SGD(0.1, momentum=0.9)),
}


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("name", MOVED)
def test_moments_follow_their_model(name, use_graph, gpu):
    def went(first, then):
        model = compiled(first, MOVED[name], use_graph=use_graph)
        before = losses(model, first)
        model.to_device(then)
        made = before + losses(model, then)
        found = model.optimizer.get_named_states()
        assert {one.device for key, one in found.items() if "/" in key} == {then}
        assert all(one.name for one in found.values())
        return made

    want = went(CPU, CPU)
    for first, then in ((CPU, gpu), (gpu, CPU)):
        np.testing.assert_allclose(went(first, then), want, rtol=1e-4)


class Doubled(autograd.Operator):
    """An operation of the program's, whose gradient is an array."""

    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return np.full(dy.shape, 2, np.float32)


def test_gradients_may_be_arrays(gpu):
    x = on(gpu, A)
    x.requires_grad = x.stores_grad = True
    with autograd._training_scope(True):
        (found,) = autograd.gradients(Doubled()(x)[0].sum(), xs=[x])
    assert found.device == gpu


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_pickles_are_on_their_device_again(dtype, gpu):
    x = on(gpu, A).as_type(dtype)
    check(lambda to: pickle.loads(pickle.dumps(x.to(to))), gpu)
    model = compiled(gpu)
    want = losses(model, gpu, 1), losses(model, gpu, 1)
    copied = pickle.loads(pickle.dumps(compiled(gpu)))
    assert (losses(copied, gpu, 1), losses(copied, gpu, 1)) == want
