"""Training and functions on a GPU, held against the CPU: an emulated one, which builds for tests
have (`--features emulate`), or the machine's where `SINGA_RS_DEVICE` is set and empty."""

import os
import warnings

import numpy as np
import pytest
import step_models
from singa_rs import _core, autograd, device, layer, module, opt, tensor
from singa_rs.compat import optimizer as of_singa

is_real = os.environ.get("SINGA_RS_DEVICE") == ""
started = device.create_cuda_gpu if is_real else getattr(_core, "emulated_gpu", None)
pytestmark = pytest.mark.skipif(started is None, reason="a build without an emulated GPU")
RNG = np.random.default_rng(3)


@pytest.fixture
def gpu():
    return started()


def _images(classes=3):
    return RNG.normal(size=(4, 2, 8, 8)).astype(np.float32), RNG.integers(0, classes, 4, np.int32)


def _rows(width=5):
    return RNG.normal(size=(6, width)).astype(np.float32), RNG.integers(0, 3, 6, np.int32)


def _steps(width=4):
    return RNG.normal(size=(3, 5, width)).astype(np.float32), RNG.integers(0, 3, 3, np.int32)


def _conv():
    return step_models.Net(
        opt.Adam(0.01),
        layer.Conv2d(4, 3, padding=1),
        layer.BatchNorm2d(),
        layer.ReLU(),
        layer.MaxPool2d(2),
        layer.Conv2d(6, 3, padding=1, group=2),
        layer.AvgPool2d(2),
        layer.Flatten(),
        layer.Linear(3),
    )


def _mlp():
    net = step_models.Net(
        opt.SGD(opt.ExponentialDecay(0.1, 2, 0.5), momentum=0.9, weight_decay=1e-3, clip_norm=1.0),
        layer.Linear(16),
        layer.LayerNorm(16),
        layer.GELU(),
        layer.Linear(3),
    )
    return net


ROWS = _rows()
#: Name -> how a model is made, and its batch.
MODELS = {
    "mlp": (_mlp, _rows()),
    "conv": (_conv, _images()),
    "lstm": (step_models.Sequence, _steps()),
    "attention": (step_models.Attention, _steps(8)),
}


class Uneven(module.Module):
    """Results of several sizes, of one pass where a device has such passes."""

    def forward(self, x, s):
        a = s * 0.5
        return a + 1.0, x * a


def test_results_of_several_sizes(gpu):
    x, s = (tensor.from_numpy(np.float32(one), gpu) for one in ([1, 2, 3], [4]))
    model = Uneven()
    model.compile([x, s], is_train=False)
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            made = [y.to_numpy().tolist() for y in model(x, s)]
            assert made == [[3.0], [2.0, 4.0, 6.0]]


def trained(name, to, use_graph, steps=4):
    """The losses of some steps, and the model."""
    make, arrays = MODELS[name]
    to.set_seed(0)
    device.get_default_device().set_seed(0)
    model = make()
    x, y = (tensor.from_numpy(array, to) for array in arrays)
    model.compile([x], is_train=True, use_graph=use_graph)
    return [float(model.train_one_batch(x, y)[1]) for _ in range(steps)], model


@pytest.mark.parametrize("name", MODELS)
def test_models_train_as_on_the_cpu(name, gpu):
    want, _ = trained(name, device.get_default_device(), use_graph=True)
    got, model = trained(name, gpu, use_graph=True)
    np.testing.assert_allclose(got, want, rtol=2e-4)
    assert {one.device for one in model.get_states().values()} == {gpu}
    assert model.optimizer.step_counter.device == gpu


@pytest.mark.parametrize("name", MODELS)
def test_replays_have_the_bits_of_eager_steps(name, gpu):
    want, eager = trained(name, gpu, use_graph=False)
    got, replayed = trained(name, gpu, use_graph=True)
    assert got == want
    for a, b in zip(eager.get_states().values(), replayed.get_states().values(), strict=True):
        np.testing.assert_array_equal(a.to_numpy(), b.to_numpy())


def _attention(*xs):
    return autograd.scaled_dot_product_attention(*xs, is_causal=True)


def _floats(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _embedding(w):
    return autograd.embedding(tensor.from_numpy(np.array([1, 4, 1, 0, 4, 1]), w.device), w)


#: Title -> a function, its arguments, and their dtype: so large that kernels cut them into parts.
LARGE = {
    "rows of attention": (_attention, [_floats(1, 2, 3000, 2)] * 3, "float32"),
    "rows that share keys": (
        _attention,
        [_floats(1, 2, 3000, 2), _floats(1, 1, 3000, 2), _floats(1, 1, 3000, 2)],
        "bfloat16",
    ),
    "heads of attention": (_attention, [_floats(1, 3, 2050, 2)] * 3, "float32"),
    "channels": (lambda x: layer.BatchNorm2d()(x), [_floats(2, 3, 100, 90)], "float32"),
    "rows": (autograd.layer_norm, [_floats(600, 5), _floats(5), _floats(5)], "float32"),
    "long entries": (_embedding, [_floats(5, 33000)], "float32"),
    "transposed": (lambda x: tensor.contiguous(x.T) * 2.0, [_floats(70, 90)], "float32"),
}


@pytest.mark.parametrize("title", LARGE)
def test_large_tensors_are_cut(title, gpu):
    function, arrays, dtype = LARGE[title]

    def computed(to):
        xs = [tensor.from_numpy(array, to, dtype) for array in arrays]
        for x in xs:
            x.requires_grad = x.stores_grad = True
        with autograd._training_scope(True):
            y = function(*xs)
            of_xs = autograd.gradients(autograd.reduce_sum(y * y, None, 0), xs=xs)
        return [one.as_type("float32").to_numpy() for one in (y, *of_xs)]

    least = 2e-5 if dtype == "float32" else 2e-2
    for a, b in zip(computed(gpu), computed(None), strict=True):
        np.testing.assert_allclose(a, b, rtol=least, atol=least * np.abs(b).max())


def test_arrays_are_arguments_of_a_step(gpu):
    make, (x, y) = MODELS["mlp"]
    model = make()
    model.compile([tensor.from_numpy(x, gpu)], is_train=True, use_graph=True)
    losses = [float(model.train_one_batch(x, y)[1]) for _ in range(4)]
    other = float(model.train_one_batch(x * 0, y)[1])
    assert losses[3] < losses[0]
    assert other != losses[3]


def test_gradients_flow_through_a_move(gpu):
    x = tensor.from_numpy(np.array([1.0, 2.0], np.float32))
    x.requires_grad = x.stores_grad = True
    with autograd._training_scope(True):
        y = autograd.reduce_sum(x.to(gpu) * 3.0, None, 0)
        (found,) = autograd.gradients(y, xs=[x])
    assert y.device == gpu
    assert found.device == x.device
    np.testing.assert_array_equal(found.to_numpy(), [3, 3])


@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_gradients_flow_through_a_copy_on_the_cpu(where, gpu):
    x = tensor.from_numpy(np.ones(2, np.float32), gpu if where == "gpu" else None)
    x.requires_grad = x.stores_grad = True
    with autograd._training_scope(True):
        y = tensor.to_host(x)
        (found,) = autograd.gradients(autograd.reduce_sum(y * 3.0, None, 0), xs=[x])
    assert y.device == device.get_default_device()
    assert not y.shares_block(x)
    np.testing.assert_array_equal(found.to_numpy(), [3, 3])


def test_tensors_move(gpu):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = tensor.from_numpy(array)
    x.to_device(gpu)
    assert x.device == gpu
    np.testing.assert_array_equal(x.T.cpu().to_numpy(), array.T)
    x.to_host()
    assert x.device == device.get_default_device()
    half = tensor.from_numpy(array, gpu, "bfloat16")
    np.testing.assert_array_equal(half.T.to_numpy(), array.T)
    assert float(tensor.from_numpy(array, gpu)[1, 2]) == 5


def test_two_devices_in_one_operation_are_refused(gpu):
    x, y = tensor.zeros(2, device=gpu), tensor.zeros(2)
    with pytest.raises(device.DeviceError, match=r"all tensors must be on Device\(cuda, \d+\)"):
        _ = x + y


def test_a_step_is_on_one_device(gpu):
    model, other = step_models.Net(opt.SGD(0.1), layer.Linear(3)), tensor.zeros((1,))
    model.forward = lambda x: model.layers(x) + other.to(gpu)
    x, y = (tensor.from_numpy(array, gpu) for array in _rows())
    with pytest.raises(_core.GraphError, match="on one device"):
        model.compile([x], is_train=True, use_graph=True)
        model.train_one_batch(x, y)


class Lent:
    """An array of another library on a GPU, which is asked for with these options."""

    def __init__(self, tensor):
        self.tensor, self.options = tensor, {}

    def __dlpack__(self, **options):
        self.options = options
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Claimed(Lent):
    """One that says it is on the CPU."""

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


def test_memory_is_shared_with_other_libraries(gpu):
    x = tensor.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3), gpu) * 2
    lent = Lent(x.T)
    y = tensor.from_dlpack(lent)
    assert (x.__dlpack_device__()[0], y.device, y.shape) == (2, gpu, (3, 2))
    assert lent.options["stream"] > 2  # smaller numbers are CUDA's own streams
    y += 1.0
    np.testing.assert_array_equal(x.to_numpy(), [[1, 3, 5], [7, 9, 11]])
    x *= 2.0
    del x, lent
    np.testing.assert_array_equal(y.to_numpy(), [[2, 14], [6, 18], [10, 22]])


def test_labels_that_another_library_writes_are_checked(gpu):
    """They have no version that tells when."""
    make, (x, y) = MODELS["mlp"]
    model, x, labels = make(), tensor.from_numpy(x, gpu), tensor.from_numpy(y, gpu)
    model.compile([x], is_train=True, use_graph=True)
    theirs = tensor.from_dlpack(Lent(labels))
    for _ in range(3):
        model(x, labels)
    theirs.copy_from_numpy(np.full_like(y, 9))
    with pytest.raises(ValueError, match="index 9 is out of range"):
        model(x, labels)


@pytest.mark.skipif(not is_real, reason="PyTorch shares no memory with an emulated GPU")
def test_pytorch_shares_memory(gpu):
    torch = pytest.importorskip("torch")
    x = tensor.from_numpy(np.arange(4, dtype=np.float32), gpu) + 1.0
    there = torch.from_dlpack(x)
    there *= 2
    torch.cuda.synchronize()
    np.testing.assert_array_equal(x.to_numpy(), [2, 4, 6, 8])
    back = tensor.from_dlpack(there.double() + 1)
    np.testing.assert_array_equal((back * 2.0).to_numpy(), [6, 10, 14, 18])


def test_memory_is_lent_to_its_own_device_alone(gpu):
    x = tensor.zeros(2, device=gpu)
    with pytest.raises(BufferError, match=r"on Device\(cuda, \d+\) .* t.to\(device\)"):
        x.__dlpack__(dl_device=(1, 0))
    with pytest.raises((BufferError, RuntimeError)):  # NumPy's own
        np.from_dlpack(x)
    with pytest.raises(BufferError, match="of kind 2, want the 1 that"):
        _core.from_dlpack(Claimed(x))


def test_memory_is_returned(gpu):
    gpu.trim()
    before = gpu.memory()["allocated"]
    model = trained("conv", gpu, use_graph=True)
    assert gpu.memory()["allocated"] > before
    del model
    gpu.trim()
    assert gpu.memory()["allocated"] <= before + 4096


def test_a_gpu_says_which_libraries_it_lacks(monkeypatch):
    """So that nobody wonders why products are slow."""
    found = {"name": "GPU", "capability": (9, 0), "processors": 1, "free": 2**30, "total": 2**31}
    monkeypatch.setattr(device, "_gpu", lambda op, number: number)
    monkeypatch.setattr(_core, "gpu_properties", lambda gpu: {**found, "libraries": ["cuDNN"]})
    assert device.device_query(0).endswith(
        "; without cuBLASLt, which singa-rs[cuda12] or [cuda13] brings"
    )
    monkeypatch.undo()
    assert set(_core.gpu_properties(started())["libraries"]) <= {"cuBLASLt", "cuDNN"}


def test_other_addresses_and_contents_are_seen_by_captured_steps(gpu):
    """A step is captured for the addresses of its arguments, and labels are checked once for
    their contents: neither may outlive them."""
    make, (x, y) = MODELS["mlp"]
    trained_by, refusals = {}, set()
    for use_graph in (False, True):
        gpu.set_seed(0)
        model = make()
        batches = [(tensor.from_numpy(x * k, gpu), tensor.from_numpy(y, gpu)) for k in (1, 2, 3)]
        model.compile([batches[0][0]], is_train=True, use_graph=use_graph)
        losses = [float(model(*batches[k])[1]) for k in (0, 0, 0, 1, 1, 2, 0, 1, 2, 2)]
        batches[2][0].copy_from_numpy(x * 5)
        losses.append(float(model(*batches[2])[1]))
        batches[2][1].copy_from_numpy(np.full_like(y, 9))
        with pytest.raises(ValueError, match="(index|label) 9") as refused:
            model(*batches[2])
        refusals.add(refused.type)
        batches[2][1].copy_from_numpy(y)
        losses.append(float(model(*batches[2])[1]))
        trained_by[use_graph] = losses
    assert trained_by[True] == trained_by[False]
    assert len(refusals) == 1


#: Every optimizer, with numbers that matter.
OPTIMIZERS = {
    "SGD": lambda: opt.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adadelta": lambda: opt.Adadelta(1.0),
    "AdaGrad": lambda: opt.AdaGrad(0.1),
    "RMSProp": lambda: opt.RMSProp(0.01),
    "Adam": lambda: opt.Adam(opt.CosineDecay(0.05, 10), clip_value=0.1),
    "AdamW": lambda: opt.AdamW(opt.ExponentialDecay(0.05, 2, 0.5), weight_decay=0.1),
    "AMSGrad": lambda: opt.AMSGrad(0.05),
    "NAdam": lambda: opt.NAdam(0.05),
    "LAMB": lambda: opt.LAMB(0.05),
    "Muon": lambda: opt.Muon(0.05, params="*.W"),
}


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_follow_their_model(name, use_graph, gpu):
    """With their groups, schedules, averages and all that they hold."""

    def losses(to):
        device.get_default_device().set_seed(0)
        to.set_seed(0)
        optimizer = OPTIMIZERS[name]()
        optimizer.group("*.b", lr=opt.ExponentialDecay(0.02, 2, 0.5))
        net, average = step_models.Net(optimizer, layer.Linear(3)), opt.MovingAverage(0.9)
        x, y = (tensor.from_numpy(array, to) for array in ROWS)
        net.compile([x], is_train=True, use_graph=use_graph)
        seen = []
        for _ in range(4):
            seen.append(float(net.train_one_batch(x, y)[1]))
            average.update(net.get_params())
        averages = [one.to_numpy() for one in average.averages.values()]
        return seen, averages

    (got, averages), (want, others) = losses(gpu), losses(device.get_default_device())
    np.testing.assert_allclose(got, want, rtol=2e-4)
    for a, b in zip(averages, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Nesterov", "RMSProp", "AdaGrad", "Adam"])
def test_singa_s_optimizers_follow_parameters(name, gpu):
    def updated(to):
        made, grad = getattr(of_singa, name)(), tensor.from_numpy(np.full(3, 0.5, np.float32), to)
        value = tensor.from_numpy(np.array([1, 2, 3], np.float32), to)
        for step in range(3):
            made.apply_with_lr(0, 0.1, grad, value, "w", step)
        return value.to_numpy()

    np.testing.assert_allclose(updated(gpu), updated(None), rtol=1e-5)
