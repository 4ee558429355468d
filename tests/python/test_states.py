"""Saving and loading states, and setting them."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
from singa_rs import CheckpointError, ShapeError, layer, module, tensor
from singa_rs.tensor import Tensor

X = np.random.default_rng(0).standard_normal((2, 3, 6, 6)).astype(np.float32)


class Net(module.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv = layer.Conv2d(width, 3)
        self.norm = layer.BatchNorm2d()
        self.blocks = [layer.Flatten(), layer.Linear(2)]

    def forward(self, x):
        x = self.norm(self.conv(x))
        for block in self.blocks:
            x = block(x)
        return x


NAMES = ["conv.W", "conv.b", "norm.scale", "norm.bias", "norm.running_mean", "norm.running_var"]
NAMES += ["blocks.1.W", "blocks.1.b"]


def trained():
    net = Net()
    net(X)  # in training mode: updates the running averages
    return net


def values(net):
    return {name: t.to_numpy() for name, t in net.get_states().items()}


def same(a, b):
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def singa_zip(path, arrays, auxiliary=(), attributes=None):
    """A file as SINGA writes it."""
    numbers = {"float32": 0, "float16": 1, "int32": 2}
    attributes = attributes or {
        name: {
            "state_type": int(name in auxiliary),
            "shape": a.shape,
            "dtype": numbers[a.dtype.name],
        }
        for name, a in arrays.items()
    }
    npz = io.BytesIO()
    np.savez(npz, **arrays)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tensor_dict.npz", npz.getvalue())
        archive.writestr("states_attr.json", json.dumps(attributes))


def test_round_trip(tmp_path):
    path = tmp_path / "states"
    net, other = trained(), trained()
    extra = {"epoch": Tensor(data=np.int32([3])), "half": Tensor((2,), dtype=tensor.float16)}
    net.save_states(path, extra)
    assert os.listdir(tmp_path) == ["states"]
    kept = other.get_states()
    auxiliary = other.load_states(fpath=str(path))
    same(values(other), values(net))
    assert all(other.get_states()[name] is t for name, t in kept.items())
    assert list(auxiliary) == ["epoch", "half"]
    assert auxiliary["epoch"].to_numpy() == [3]
    assert auxiliary["half"].dtype == tensor.float16


def test_what_is_written_is_what_singa_reads(tmp_path):
    net = trained()
    net.save_states(tmp_path / "s.zip", {"epoch": Tensor(data=np.int32([3]))})
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        assert sorted(archive.namelist()) == ["states_attr.json", "tensor_dict.npz"]
        assert all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
        attributes = json.loads(archive.read("states_attr.json"))
        arrays = np.load(io.BytesIO(archive.read("tensor_dict.npz")))
    assert sorted(attributes) == sorted(arrays.files) == sorted([*NAMES, "epoch"])
    assert attributes["conv.W"] == {"state_type": 0, "shape": [4, 3, 3, 3], "dtype": 0}
    assert attributes["epoch"] == {"state_type": 1, "shape": [1], "dtype": 2}
    np.testing.assert_array_equal(arrays["conv.W"], net.conv.W.to_numpy())


def test_file_of_singa(tmp_path):
    net = trained()
    arrays = {name: np.full_like(a, i) for i, (name, a) in enumerate(values(net).items())}
    singa_zip(tmp_path / "s", {**arrays, "epoch": np.int32([7])}, {"epoch"})
    auxiliary = net.load_states(tmp_path / "s")
    same(values(net), arrays)
    assert list(auxiliary) == ["epoch"] and auxiliary["epoch"].to_numpy() == [7]


def test_other_dtypes_survive(tmp_path):
    class Holder(module.Module):
        def __init__(self):
            super().__init__()
            self.a = Tensor(data=np.float64([0.1]), dtype=tensor.float64)
            self.b = Tensor(data=np.int64([2**40]), dtype=tensor.int64)
            self.c = Tensor((2,), dtype=tensor.bfloat16).set_value(1.5)
            self.file = Tensor((0, 3))

    first, second = Holder(), Holder()
    for t in second.get_states().values():
        t.set_value(0)
    first.save_states(tmp_path / "s", {"aux": first.c})
    auxiliary = second.load_states(tmp_path / "s")
    same(values(second), values(first))
    assert auxiliary["aux"].dtype == tensor.bfloat16


def test_load_before_the_first_call(tmp_path):
    net, fresh = trained(), Net()
    net.save_states(tmp_path / "s")
    fresh.load_states(tmp_path / "s")
    for one in (net, fresh):
        one.eval()
    np.testing.assert_array_equal(fresh(X).to_numpy(), net(X).to_numpy())
    same(values(fresh), values(net))


def test_load_before_the_first_call_checks_shapes(tmp_path):
    trained().save_states(tmp_path / "s")
    wide = Net(width=5)
    wide.load_states(tmp_path / "s")
    with pytest.raises(CheckpointError, match=r"conv\.W"):
        wide(X)


def test_part_of_a_model(tmp_path):
    class Outer(module.Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()

        def forward(self, x):
            return self.inner(x)

    outer, lone = Outer(), trained()
    outer(X)
    outer.inner.save_states(tmp_path / "s")
    lone.load_states(tmp_path / "s")
    same(values(lone), {k.removeprefix("inner."): v for k, v in values(outer).items()})
    trained().save_states(tmp_path / "s")
    outer.inner.load_states(tmp_path / "s")
    fresh = Outer()
    fresh.inner.load_states(tmp_path / "s")
    fresh(X)
    np.testing.assert_array_equal(fresh.inner.conv.W.to_numpy(), outer.inner.conv.W.to_numpy())


def test_names_that_differ_are_listed_once(tmp_path):
    net = trained()
    arrays = values(net)
    del arrays["conv.b"]
    singa_zip(tmp_path / "s", {**arrays, "head.W": np.zeros(3, np.float32)})
    with pytest.warns(UserWarning, match=r"file: head\.W; only in the model: conv\.b") as caught:
        net.load_states(tmp_path / "s")
    assert len(caught) == 1
    singa_zip(tmp_path / "s", {"head.W": np.zeros(3, np.float32)})
    with pytest.raises(CheckpointError, match=r"no state of the model.*head\.W"):
        net.load_states(tmp_path / "s")


def test_shape_that_differs_changes_nothing(tmp_path):
    net = trained()
    before = values(net)
    arrays = {name: a + 1 for name, a in before.items()}
    arrays["blocks.1.b"] = np.zeros(5, np.float32)
    singa_zip(tmp_path / "s", arrays)
    with pytest.raises(CheckpointError, match=r"blocks\.1\.b"):
        net.load_states(tmp_path / "s")
    same(values(net), before)


def damaged(path, how):
    net = trained()
    net.save_states(path)
    raw = path.read_bytes()
    if how == "truncated":
        path.write_bytes(raw[: len(raw) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "no zip":
        path.write_bytes(b"hello")
    elif how == "flipped":
        middle = len(raw) // 2
        path.write_bytes(raw[:middle] + bytes([raw[middle] ^ 0xFF]) + raw[middle + 1 :])
    elif how == "no arrays":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("states_attr.json", "{}")
    elif how == "no json":
        singa_zip(path, {"conv.W": np.zeros(1, np.float32)})
        with zipfile.ZipFile(path) as archive:
            arrays = archive.read("tensor_dict.npz")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tensor_dict.npz", arrays)
            archive.writestr("states_attr.json", "{")
    elif how == "array missing":
        attributes = {"conv.W": {"state_type": 0, "shape": [1], "dtype": 0}}
        singa_zip(path, {"other": np.zeros(1, np.float32)}, attributes=attributes)
    elif how == "pickle":
        attributes = {"conv.W": {"state_type": 0, "shape": [1], "dtype": 0}}
        singa_zip(path, {"conv.W": np.array([{}], object)}, attributes=attributes)
    elif how == "shape":
        attributes = {"conv.W": {"state_type": 0, "shape": [2], "dtype": 0}}
        singa_zip(path, {"conv.W": np.zeros(1, np.float32)}, attributes=attributes)
    elif how == "dtype":
        attributes = {"conv.W": {"state_type": 1, "shape": [1], "dtype": 99}}
        singa_zip(path, {"conv.W": np.zeros(1, np.float32)}, attributes=attributes)
    elif how == "missing":
        path.unlink()
    return net


HOWS = ["truncated", "empty", "no zip", "flipped", "no arrays", "no json", "array missing"]
HOWS += ["pickle", "shape", "dtype", "missing"]


@pytest.mark.parametrize("how", HOWS)
def test_damaged_file(tmp_path, how):
    path = tmp_path / "states.zip"
    net = damaged(path, how)
    before = values(net)
    with pytest.raises(CheckpointError, match=r"states\.zip"):
        net.load_states(path)
    same(values(net), before)
    assert how != "missing" or issubclass(CheckpointError, ValueError)


def test_missing_file_is_also_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        trained().load_states(tmp_path / "none")


def test_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path, net = tmp_path / "s", trained()
    net.save_states(path)
    os.chmod(path, 0o640)
    before = path.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array", fail)
        with pytest.raises(OSError, match="disk full"):
            net.save_states(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["s"]
    net.save_states(path)
    assert os.listdir(tmp_path) == ["s"] and os.stat(path).st_mode & 0o777 == 0o640


def test_wrong_saves(tmp_path):
    with pytest.raises(CheckpointError, match="Conv2d"):
        Net().save_states(tmp_path / "s")
    with pytest.raises(CheckpointError, match="conv.W"):
        trained().save_states(tmp_path / "s", {"conv.W": Tensor((1,))})
    with pytest.raises(TypeError, match="epoch"):
        trained().save_states(tmp_path / "s", {"epoch": 3})
    with pytest.raises(OSError):
        trained().save_states(tmp_path / "no" / "such" / "folder")
    assert os.listdir(tmp_path) == []


# ---- set_params, set_states --------------------------------------------------------------------


def test_set_in_place():
    net = trained()
    weight, mean = net.conv.W, net.norm.running_mean
    given = {"conv.W": np.ones((4, 3, 3, 3)), "norm.running_mean": Tensor((4,)).set_value(2)}
    net.set_states({**given, "nobody": np.zeros(1)})
    assert (weight.to_numpy() == 1).all() and (mean.to_numpy() == 2).all()
    assert net.conv.W is weight
    net.set_params({"norm.running_mean": np.zeros(4), "conv.b": np.full(4, 3.0)})
    assert (mean.to_numpy() == 2).all() and (net.conv.b.to_numpy() == 3).all()


def test_names_match_exactly():
    class Two(module.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv10 = layer.Linear(1), layer.Linear(1)

        def forward(self, x):
            return self.conv1(x) + self.conv10(x)

    net = Two()
    net(np.ones((1, 2), np.float32))
    net.set_params({"conv10.b": np.ones(1), "conv1": np.zeros(1)})
    assert net.conv10.b.to_numpy() == [1] and net.conv1.b.to_numpy() == [0]


def test_names_relative_to_a_layer_of_a_model():
    net = trained()
    net.conv.set_params({"b": np.full(4, 2.0)})
    assert (net.conv.b.to_numpy() == 2).all()
    net.conv.set_params({"conv.b": np.full(4, 3.0), "norm.bias": np.full(4, 3.0)})
    assert (net.conv.b.to_numpy() == 3).all() and (net.norm.bias.to_numpy() == 0).all()


def test_wrong_values_change_nothing():
    net = trained()
    before = values(net)
    with pytest.raises(ShapeError, match=r"blocks\.1\.b"):
        net.set_states({"conv.b": np.ones(4), "blocks.1.b": np.ones(3)})
    with pytest.raises(TypeError, match=r"conv\.b"):
        net.set_params({"conv.W": np.ones((4, 3, 3, 3)), "conv.b": 1.0})
    with pytest.raises(ShapeError, match=r"conv\.b"):
        net.set_params({"conv.b": np.ones((4, 1))})  # of the same size
    same(values(net), before)
    with pytest.raises(ValueError, match="first call"):
        Net().set_params({"conv.b": np.ones(4)})
