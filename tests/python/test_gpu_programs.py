"""What programs need not say on a GPU: seeds, arrays, numbers and positions go where the model or
the tensor is. Held against the CPU, as in `test_gpu.py`."""

import warnings

import numpy as np
import onnx
import pytest
import singa_rs
from gpu_nets import CPU, INTS, LABELS, A, X, check, compiled, needs_gpu, on, plain, started
from singa_rs import _core, autograd, device, dist, layer, module, sonnx, tensor

pytestmark = needs_gpu


@pytest.fixture
def gpu(monkeypatch):
    return started(monkeypatch)


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
    "x[mask]": lambda x: x[on(CPU, A > 2)],
    "x[indices]": lambda x: x[:, on(CPU, INTS)],
    "x[indices, indices]": lambda x: x[on(CPU, INTS[0]), on(CPU, INTS[0])],
    "x[mask] = number": lambda x: _put(x, on(CPU, A > 2), 7.0),
    "x[mask of rows] = row": lambda x: _put(x, on(CPU, A[:, 0] > 2), [7.0, 8.0, 9.0]),
    "x[indices] = array": lambda x: _put(x, on(CPU, INTS[0]), A[:1]),
    "CrossEntropyLoss": lambda x: layer.CrossEntropyLoss(weight=[1, 2, 3])(x, on(x.device, [0, 2])),
    "NLLLoss": lambda x: layer.NLLLoss(weight=[1, 2, 3])(-x, on(x.device, [0, 2])),
    "BCELoss": lambda x: layer.BCELoss(weight=[1.0, 2.0, 3.0])(x / 9, x / 8),
    "BCEWithLogitsLoss": lambda x: layer.BCEWithLogitsLoss([0.5], [1.0, 2.0, 3.0])(x, x / 8),
    "MultiMarginLoss": lambda x: layer.MultiMarginLoss(weight=[1.0, 2.0, 3.0])(
        x, on(x.device, [0, 2])
    ),
    "MultiLabelSoftMarginLoss": lambda x: layer.MultiLabelSoftMarginLoss([1.0, 2.0, 3.0])(
        x, on(x.device, (A > 2).astype("f4"))
    ),
}


def _put(x, key, value):
    x[key] = value
    return x


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
