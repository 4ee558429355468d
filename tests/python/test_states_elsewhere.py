"""States that other libraries have written."""

import json
import os
import pickle
import zipfile

import numpy as np
import onnx
import pytest
from archives import ROW, same, small, values
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from singa_rs import CheckpointError, autograd, layer, module
from singa_rs.tensor import Tensor, from_numpy


def changed(net):
    """The model's states, each plus one."""
    return {name: one + 1 for name, one in values(net).items()}


def as_onnx(path, arrays, made=numpy_helper.from_array):
    graph = helper.make_graph([], "g", [], [], [made(a, name) for name, a in arrays.items()])
    onnx.save(helper.make_model(graph), path)


def spelled(array, name):
    """A tensor whose elements are numbers rather than raw bytes."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor(name, kind, array.shape, array.reshape(-1))


WRITE = {
    "s.safetensors": lambda path, arrays: save_file(arrays, path),
    "without an end": lambda path, arrays: save_file(arrays, path),
    "s.onnx": as_onnx,
    "spelled.onnx": lambda path, arrays: as_onnx(path, arrays, spelled),
    "s.npz": lambda path, arrays: np.savez(path, **arrays),
    "packed.npz": lambda path, arrays: np.savez_compressed(path, **arrays),
}


@pytest.mark.parametrize("name", WRITE)
def test_files_of_each_format(tmp_path, name):
    net, path = small(), tmp_path / name
    wanted = changed(net)
    WRITE[name](path, {name: np.ascontiguousarray(one) for name, one in wanted.items()})
    assert net.load_states(path, strict=True) == {}
    same(values(net), wanted)
    WRITE[name](path, {"first.b": np.zeros(3, np.float32), "more": np.ones(2, np.float32)})
    with pytest.raises(CheckpointError, match="only in the file: more; only in the model: first.W"):
        net.load_states(path, strict=True)
    same(values(net), wanted)
    with pytest.warns(UserWarning, match="only in the file: more; only in the model") as caught:
        net.load_states(path)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert values(net)["first.b"].tolist() == [0, 0, 0]
    WRITE[name](path, {"first.b": np.zeros(4, np.float32)})
    with pytest.raises(CheckpointError, match=r"'first\.b' has shape \(4,\), the model's \(3,\)"):
        net.load_states(path)
    with pytest.warns(UserWarning, match=r"only in the model: .*'first\.b' has shape"):
        net.load_states(path, skip_mismatched=True)


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool"]
)
def test_dtypes_are_converted_or_kept(tmp_path, name, dtype):
    class Held(module.Module):
        def __init__(self, kind):
            super().__init__()
            self.held = Tensor((2, 3), dtype=kind, requires_grad=False)

    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    WRITE[name](tmp_path / name, {"held": array})
    for kind in (dtype, "float32", "float64"):
        net = Held(kind)
        net.load_states(tmp_path / name)
        assert net.held.dtype.name == kind
        np.testing.assert_array_equal(net.held.to_numpy(), array)


def test_brain_floats(tmp_path):
    values = np.array([1.5, -2.0, np.inf], np.float32)
    net = module.Module()
    net.held = Tensor((3,), dtype="bfloat16", requires_grad=False)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    header = b'{"held":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]}}'
    raw = len(header).to_bytes(8, "little") + header + bits.tobytes()
    (tmp_path / "s.safetensors").write_bytes(raw)
    as_onnx(
        tmp_path / "s.onnx",
        {"held": bits},
        lambda a, n: TensorProto(
            name=n, dims=a.shape, data_type=TensorProto.BFLOAT16, raw_data=a.tobytes()
        ),
    )
    for name in ("s.safetensors", "s.onnx"):
        net.held.set_value(0)
        net.load_states(tmp_path / name)
        assert net.held.tolist() == values.tolist()


# ---- names and layouts ---------------------------------------------------------------------------


class Torch(module.Module):
    """A model that PyTorch has, too: conv, bn1, fc."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn1 = layer.Conv2d(2, 3, bias=False), layer.BatchNorm2d()
        self.fc = layer.Linear(4)

    def forward(self, x):
        return self.fc(autograd.flatten(autograd.relu(self.bn1(self.conv(x)))))


def test_a_state_dictionary_of_pytorch(tmp_path):
    rng, net = np.random.default_rng(0), Torch()
    x = from_numpy(rng.normal(size=(1, 1, 5, 5)).astype(np.float32))
    net.eval()
    net(x)
    shapes = {
        "conv.weight": (2, 1, 3, 3), "bn1.weight": 2, "bn1.bias": 2, "bn1.running_mean": 2,
        "bn1.running_var": 2, "fc.weight": (4, 18), "fc.bias": 4,
    }  # fmt: skip
    given = {name: rng.uniform(0.5, 1, shape).astype("f4") for name, shape in shapes.items()}
    path = tmp_path / "net.safetensors"
    save_file({**given, "bn1.num_batches_tracked": np.array(7)}, path)
    net.load_states(
        path,
        rename=[
            (r"num_batches_tracked$", None),
            (r"(bn\d)\.weight$", r"\1.scale"),
            (r"\.weight$", ".W"),
            (r"(?<!bn\d)\.bias$", ".b"),
        ],
        transform=lambda name, array: array.T if name.endswith("fc.W") else array,
        strict=True,
    )
    found = values(net)
    np.testing.assert_array_equal(found["fc.W"], given["fc.weight"].T)
    np.testing.assert_array_equal(found["bn1.scale"], given["bn1.weight"])
    np.testing.assert_array_equal(found["bn1.bias"], given["bn1.bias"])


def test_pytorch_counts_the_batches_of_averages_of_all(tmp_path):
    x = from_numpy(np.float32([[1, 2], [3, 5]]))
    norm, path = layer.BatchNorm1d(momentum=None), tmp_path / "norm.safetensors"
    net = module.Module()
    net.norm = norm
    norm(x)
    given = {"running_mean": np.float32([4, 8]), "running_var": np.float32([1, 1])}
    given |= {"scale": np.float32([1, 1]), "bias": np.float32([0, 0])}
    save_file(
        {f"norm.{k}": v for k, v in {**given, "num_batches_tracked": np.array(3)}.items()}, path
    )
    net.load_states(path, strict=True)
    with autograd._training_scope(True):
        norm(x)
    np.testing.assert_allclose(norm.running_mean.to_numpy(), [(3 * 4 + 2) / 4, (3 * 8 + 3.5) / 4])
    assert norm.num_batches_tracked.item() == 4


RENAMES = {
    "a dictionary": {"x.w": "first.W", "drop": None},
    "a function": lambda name: {"x.w": "first.W", "drop": None}.get(name, name),
    "patterns": [("^x", "first"), ("w$", "W"), ("rop", None)],
}


@pytest.mark.parametrize("rename", RENAMES)
@pytest.mark.parametrize("name", WRITE)
def test_renaming(tmp_path, rename, name):
    net = small()
    wanted = changed(net)
    given = {**wanted, "drop": np.zeros(3, np.float32)}
    given["x.w"] = given.pop("first.W")
    rename = RENAMES[rename]
    WRITE[name](tmp_path / name, given)
    net.load_states(tmp_path / name, rename, strict=True)
    same(values(net), wanted)
    turned = {"first.W": lambda a: a * 2, "no such": None}
    net.load_states(tmp_path / name, rename, turned, strict=True)
    np.testing.assert_array_equal(values(net)["first.W"], wanted["first.W"] * 2)


def test_renaming_leaves_auxiliary_states_of_singas_files(tmp_path):
    net, other = small(), small()
    wanted = changed(net)
    net.set_states(wanted)
    net.save_states(tmp_path / "s.zip", {"epoch": from_numpy(ROW)})
    assert list(other.load_states(tmp_path / "s.zip", lambda name: name)) == ["epoch"]
    same(values(other), wanted)


def test_wrong_names_and_layouts(tmp_path):
    net, path = small(), tmp_path / "s.npz"
    before = values(net)
    np.savez(path, **before)

    def refused(error, match, *args):
        with pytest.raises(error, match=f"load_states: .*{match}"):
            net.load_states(path, *args)
        same(values(net), before)

    refused(CheckpointError, "'first.W' and 'first.b' become 'x'", lambda name: "x")
    refused(TypeError, "rename: got 3 for 'first.W'", lambda name: 3)
    for wrong in (3, [3], [("a",)], [("(", "b")], [("a", r"\9")], ["abc"], [(1, "a")]):
        refused(TypeError, "rename: got .*, want a dictionary", wrong)
    for wrong in (3, [np.transpose], "T"):
        refused(TypeError, "transform: got", None, wrong)
    refused(TypeError, "transform: got int for 'first.W'", None, lambda name, array: 3)
    refused(CheckpointError, "has shape", None, lambda name, array: array.T)
    with pytest.raises(ZeroDivisionError):
        net.load_states(path, lambda name: 1 / 0)


# ---- pickles -------------------------------------------------------------------------------------

LINE = r"safetensors\.torch\.save_file\(torch\.load\('.*', map_location='cpu', weights_only=True\)"


def test_files_of_pytorch_are_refused_with_the_line_that_converts_them(tmp_path):
    net = small()
    before = values(net)
    ran = []

    class Runs:
        def __reduce__(self):
            return ran.append, (1,)

    made = pickle.dumps(Runs())
    contents = {"old": made, "noise": b"\1\2\3", "empty": b"", "text": b"hello there, this is"}
    for suffix in ("pt", "pth", "bin"):
        for name, content in contents.items():
            path = tmp_path / f"{name}.{suffix}"
            path.write_bytes(content)
            with pytest.raises(CheckpointError, match=LINE):
                net.load_states(path)
        path = tmp_path / f"new.{suffix}"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("new/data.pkl", made)
        with pytest.raises(CheckpointError, match=LINE):
            net.load_states(path)
        with pytest.raises(CheckpointError, match="no such file"):
            net.load_states(tmp_path / f"missing.{suffix}")
    os.rename(tmp_path / "new.pt", tmp_path / "states")
    with pytest.raises(CheckpointError, match=LINE):
        net.load_states(tmp_path / "states")
    net.save_states(tmp_path / "own.bin")  # the name does not matter
    net.load_states(tmp_path / "own.bin")
    same(values(net), before)
    assert not ran


# ---- names that say something else ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["s.onnx", "s.safetensors", "s.npz", "s.json"])
def test_singas_zip_may_have_any_name(tmp_path, name):
    net = small()
    wanted = values(net)
    net.save_states(tmp_path / name, {"epoch": from_numpy(np.ones(1, np.float32))})
    net.first.W.set_value(3.0)
    assert list(net.load_states(tmp_path / name, strict=True)) == ["epoch"]
    same(values(net), wanted)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=f"{name}: the zip file is damaged"):
        net.load_states(tmp_path / name)


def test_an_index_of_shards_is_refused_and_the_shards_are_read(tmp_path):
    net = small()
    wanted, names = changed(net), {}
    for number, (name, one) in enumerate(wanted.items()):
        names[name] = f"model-{number}.safetensors"
        save_file({name: np.ascontiguousarray(one)}, tmp_path / names[name])
    index = tmp_path / "model.safetensors.index.json"
    for text in (json.dumps({"metadata": {}, "weight_map": names}), ' {\n "weight_map": {}}'):
        index.write_text(text)
        with pytest.raises(CheckpointError, match="index.json: is JSON, .* one after another"):
            net.load_states(index)
    for shard in names.values():
        with pytest.warns(UserWarning, match="only in the model"):
            net.load_states(tmp_path / shard)
    same(values(net), wanted)
    header = json.dumps({"__metadata__": {"x": ""}}).encode().ljust(ord("{"))
    (tmp_path / "none").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(CheckpointError, match="none: (?!is JSON)"):
        net.load_states(tmp_path / "none")


def test_unknown_keywords_are_told_the_known_ones(tmp_path):
    net = small()
    for call in (net.load, net.save, net.load_states, net.save_states):
        name = call.__name__
        with pytest.raises(TypeError, match=rf"^{name}\(\) got .* 'strct'; want f?path, .*"):
            call(tmp_path / "s", strct=True)
