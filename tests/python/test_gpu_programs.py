"""What programs need not say on a GPU: seeds, arrays, numbers, positions, parameters and moments go
where the model or the tensor is. Held against the CPU, as in `test_gpu.py`."""

import os
import warnings

import numpy as np
import onnx
import pytest
import singa_rs
from singa_rs import _core, autograd, device, dist, layer, module, opt, sonnx, tensor

is_real = os.environ.get("SINGA_RS_DEVICE") == ""
pytestmark = pytest.mark.skipif(
    not (is_real or hasattr(_core, "emulated_gpu")), reason="a build without an emulated GPU"
)
RNG = np.random.default_rng(5)
X, LABELS = RNG.normal(size=(8, 6)).astype(np.float32), np.arange(8) % 3
A, INTS = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[0, 1, 0], [1, 0, 1]])
CPU = device.get_default_device()


@pytest.fixture
def gpu(monkeypatch):
    if not is_real:
        monkeypatch.setenv("SINGA_RS_DEVICE", "emulated")
    return device.create_cuda_gpu()


def on(to, array):
    return tensor.from_numpy(np.asarray(array), to, str(np.asarray(array).dtype))


def plain(value):
    """What was computed, without where; only tensors on one device."""
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value.to_numpy().tolist()


def places(value):
    if isinstance(value, (tuple, list)):
        return set().union(*map(places, value))
    return {value.device}


def check(function, gpu):
    """A function of a device gives the same on a GPU as on the CPU, and gives it there."""
    made = function(gpu)
    assert places(made) == {gpu}
    np.testing.assert_allclose(plain(made), plain(function(CPU)), rtol=1e-5)


class Net(module.Module):
    def __init__(self, optimizer=None):
        super().__init__()
        self.linear, self.loss = layer.Linear(3), layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(0.1) if optimizer is None else optimizer

    def forward(self, x):
        return self.linear(x)

    def train_one_batch(self, x, y):
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def compiled(to, make=Net, **options):
    CPU.set_seed(0)
    to.set_seed(0)
    model = make()
    model.compile([on(to, X)], **options)
    return model


def losses(model, to, steps=3):
    return [model(on(to, X), on(to, LABELS)).item() for _ in range(steps)]


# ---- seeds ---------------------------------------------------------------------------------------


def drawn(to):
    linear = layer.Linear(2)
    linear(tensor.ones((1, 2), device=to))
    return tensor.rand(3, device=to).tolist(), linear.W.tolist()


@pytest.mark.parametrize("seeding", [singa_rs.set_seed, dist.set_seed])
def test_a_seed_reaches_all_devices(seeding, gpu):
    for to in (CPU, gpu):
        found = []
        for seed in (7, 7, 8):
            seeding(seed)
            found.append(drawn(to))
        assert found[0] == found[1] != found[2]


def test_a_seed_reaches_devices_made_later(gpu, monkeypatch):
    singa_rs.set_seed(7)
    want = drawn(gpu)
    monkeypatch.setattr(device._Seeding, "gpus", ())
    singa_rs.set_seed(7)
    assert drawn(device.create_cuda_gpu()) == want
    assert drawn(device.create_cuda_gpu()) != want  # which is not made once more


# ---- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [(X, LABELS), [(X, LABELS)]], ids=["arrays", "batches"])
def test_fit_takes_arrays(data, gpu):
    def figures(to):
        size = 4 if isinstance(data, tuple) else None
        model = compiled(to)
        rows = model.fit(data, 2, (X, LABELS), batch_size=size, shuffle=False, progress=False).rows
        return [[row[name] for name in ("loss", "val_loss")] for row in rows]

    np.testing.assert_allclose(figures(gpu), figures(CPU), rtol=1e-4)


def test_models_are_saved_and_exported(gpu, tmp_path):
    model = compiled(gpu, is_train=False)
    want = model(on(gpu, X)).to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(tmp_path / "saved")
    model.export(tmp_path / "array.onnx", [X], dynamic={"x": {0: "n"}})
    model.export(tmp_path / "tensor.onnx", [on(gpu, X)])
    for name in ("saved", "array", "tensor"):
        found = sonnx.prepare(onnx.load(tmp_path / f"{name}.onnx"), device=gpu)
        np.testing.assert_allclose(found.run([on(gpu, X)])[0].to_numpy(), want, rtol=1e-5)


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


# ---- functions -----------------------------------------------------------------------------------

#: Positions, and what takes them.
POSITIONS = {
    "nonzero": lambda x: x[:, autograd.nonzero(x[0] > 0)[0]],
    "argwhere": lambda x: autograd.index_select(x, 1, autograd.argwhere(x[0] > 0)[:, 0]),
    "tril_indices": lambda x: x[tuple(tensor.tril_indices(2, device=x.device))],
    "triu_indices": lambda x: x[tuple(tensor.triu_indices(2, device=x.device))],
    "unique": lambda x: autograd.unique(x, True, True, True)[1],
    "shape": autograd.shape,
    "constant_of_shape": lambda x: autograd.constant_of_shape(autograd.shape(x)),
    "meshgrid": lambda x: autograd.meshgrid([1, 2], x[0]),
}
#: Numbers, bools, lists and arrays beside a tensor.
BESIDE = {
    "where, numbers": lambda x: autograd.where(x > 2, 1.0, 0.0),
    "where, an array": lambda x: autograd.where(x > 2, A, 0.0),
    "mask & True": lambda x: (x > 2) & True,
    "mask.maximum(False)": lambda x: (x > 2).maximum(False),
    "ints.maximum(True)": lambda x: on(x.device, INTS).maximum(True),
    "take_along_dim": lambda x: autograd.take_along_dim(x, np.array([[0, 5]])),
    "bincount": lambda x: autograd.bincount(on(x.device, INTS[0]), weights=[0.1] * 3),
    "ravel_multi_index": lambda x: autograd.ravel_multi_index(
        [[1, 0, 1], on(x.device, INTS[0])], (2, 3)
    ),
    "hstack": lambda x: autograd.hstack([A.tolist(), x]),
    "dot": lambda x: x.dot([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("function", [*POSITIONS.values(), *BESIDE.values()],
                         ids=[*POSITIONS, *BESIDE])  # fmt: skip
def test_results_are_where_the_tensor_is(function, gpu):
    check(lambda to: function(on(to, A)), gpu)


SEQUENCES = {
    "tri": lambda to: tensor.tri(2, 3, device=to),
    "linspace": lambda to: tensor.linspace(0, 1, 3, device=to),
    "logspace": lambda to: tensor.logspace(0, 1, 3, device=to),
    "geomspace": lambda to: tensor.geomspace(1, 2, 3, device=to),
    "tril_indices": lambda to: tensor.tril_indices(2, device=to)[0],
}


class Shifted(module.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        return x + self.make(x.device)


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_part_of_steps(name, gpu):
    def made(to):
        model, x = Shifted(SEQUENCES[name]), on(to, A)
        model.compile([x], is_train=False)
        return [model(x) for _ in range(3)]

    check(made, gpu)


def test_tensors_are_written_from_another_device(gpu):
    there, here = tensor.zeros((2, 3), gpu), tensor.zeros((2, 3))
    for dtype in ("float32", "float64", "int32"):
        array = A.astype(dtype)
        there.copy_from(on(CPU, array))
        here.copy_from(on(gpu, array + 1))
        assert (plain(there), plain(here)) == (A.tolist(), (A + 1).tolist())
    with pytest.raises(_core.ShapeError):
        _core.Op("copy").into([tensor.zeros((4, 3))], [there])
    assert plain(there) == A.tolist()
