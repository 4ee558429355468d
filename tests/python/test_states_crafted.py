"""Files of states that somebody made to do harm: refused in bounded time and memory."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
import warnings
import zipfile

import numpy as np
import pytest
from archives import npy, same, small, values, zipped
from onnx import ModelProto, StringStringEntryProto, TensorProto
from safetensors import safe_open
from safetensors.numpy import save_file
from singa_rs import CheckpointError, device

#: Seconds of this process, and bytes.
SECONDS, BYTES = 1.0, 64 << 20


def refused(path, match="", **options):
    """Whether a file is refused at once, with the model unchanged."""
    net = small()
    before, start = values(net), time.process_time()
    with pytest.raises(CheckpointError, match=match) as caught:
        net.load_states(path, **options)
    assert time.process_time() - start < SECONDS
    assert str(path) in str(caught.value)
    same(values(net), before)


# ---- safetensors ---------------------------------------------------------------------------------


def entry(shape=(3,), begin=0, end=12, dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def tensors(path, header, data=b"\0" * 12):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


HEADERS = {
    "overlap": ({"a": entry(), "b": entry(begin=8, end=20)}, 20),
    "same bytes": ({"a": entry(), "b": entry()}, 12),
    "gap": ({"a": entry(), "b": entry(begin=16, end=28)}, 28),
    "bytes behind": ({"a": entry()}, 13),
    "bytes missing": ({"a": entry()}, 11),
    "backwards": ({"a": entry(begin=12, end=0)}, 12),
    "huge shape": ({"a": entry((2**31, 2**31, 4))}, 12),
    "wraps to 12": ({"a": entry((2**62 + 3,))}, 12),
    "negative shape": ({"a": entry((-3,))}, 12),
    "negative twice": ({"a": entry((-3, -1))}, 12),
    "shape of floats": ({"a": entry((3.0,))}, 12),
    "shape of bools": ({"a": entry((True, 3))}, 12),
    "many axes": ({"a": entry((1,) * 65 + (3,))}, 12),
    "no shape": ({"a": {**entry(), "shape": None}}, 12),
    "float offsets": ({"a": {**entry(), "data_offsets": [0.0, 12.0]}}, 12),
    "three offsets": ({"a": {**entry(), "data_offsets": [0, 12, 12]}}, 12),
    "unknown dtype": ({"a": entry(dtype="F8_E4M3")}, 12),
    "dtype of a list": ({"a": {**entry(), "dtype": ["F32"]}}, 12),
    "more keys": ({"a": {**entry(), "more": 1}}, 12),
    "fewer keys": ({"a": {"dtype": "F32"}}, 12),
    "no object": ({"a": [1]}, 0),
    "a list": ([1, 2], 0),
    "metadata of numbers": ({"__metadata__": {"a": 1}, "a": entry()}, 12),
    "metadata of a list": ({"__metadata__": [], "a": entry()}, 12),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers(tmp_path, name):
    header, count = HEADERS[name]
    tensors(tmp_path / "s.safetensors", header, bytes(count))
    refused(tmp_path / "s.safetensors", "the safetensors file is damaged")


TEXTS = [
    b"{" + b'"a":' + b"[" * 100_000, b'{"a":' * 100_000, b'{"a":1,"a":2}', b"{", b"{}x", b"{\xff}",
    b'{"a":' + b"1" * 100_000 + b"}", b'{"a":' + b"[]," * 500_000 + b"[]}",
    b'{"a":{}' + b" " * (1 << 25), b'{"a":[' + b"1," * 4_000_000 + b"1]}",
    b'{"' + b"\\u0041" * 2_000_000 + b'":1}',
    b"{" + b",".join(b'"%d":{}' % i for i in range(300_000)) + b"}",
    b"{"
    + b",".join(
        b'"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(250_000)
    )
    + b"}",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_texts(tmp_path, text):
    tensors(tmp_path / "s.safetensors", text)
    refused(tmp_path / "s.safetensors", "damaged")


@pytest.mark.parametrize("length", [13, 2**31, 2**63, 2**64 - 1, 2**64 - 8])
def test_lengths(tmp_path, length):
    (tmp_path / "s.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}")
    refused(tmp_path / "s.safetensors", "its header would take")


# ---- ONNX ----------------------------------------------------------------------------------------


def model(*made, **more):
    graph = {"name": "g", "initializer": [TensorProto(**one) for one in made]}
    return ModelProto(ir_version=8, graph=graph, **more).SerializeToString()


def outside(location, offset="0", length="12"):
    held = {"location": location, "offset": offset, "length": length}
    pairs = [StringStringEntryProto(key=key, value=value) for key, value in held.items()]
    return {
        "name": "first.b",
        "dims": [3],
        "data_type": 1,
        "data_location": 1,
        "external_data": pairs,
    }


GOOD = {"name": "first.b", "dims": [3], "data_type": 1, "raw_data": bytes(12)}
MODELS = {
    "huge shape": model({**GOOD, "dims": [2**31, 2**31, 4]}),
    "wraps to 12": model({**GOOD, "dims": [2**62 + 3]}),
    "negative shape": model({**GOOD, "dims": [-3]}),
    "negative twice": model({**GOOD, "dims": [-3, -1]}),
    "many axes": model({**GOOD, "dims": [1] * 100_000 + [3]}),
    "too few bytes": model({**GOOD, "raw_data": bytes(11)}),
    "no bytes": model({**GOOD, "raw_data": b""}),
    "no type": model({**GOOD, "data_type": 0}),
    "strings": model({"name": "a", "dims": [1], "data_type": 8, "string_data": [b"x"]}),
    "complex": model({**GOOD, "data_type": 14}),
    "a name twice": model(GOOD, GOOD),
    "both kinds of elements": model({**GOOD, "float_data": [1, 2, 3]}),
    "another type": model({"name": "a", "dims": [1], "data_type": 6, "float_data": [1]}),
    "few integers": model({"name": "a", "dims": [2**40], "data_type": 6, "int32_data": [1]}),
    "no graph": ModelProto(ir_version=8).SerializeToString(),
    "two graphs": model(GOOD) + model(GOOD)[2:],
    "a group": b"\x0b\x0c",
    "field 0": b"\x00\x01",
    "no end": b"\xff" * 11,
    "open length": b"\x3a\xff\x01",
    "length of 2**63": b"\x3a" + b"\xff" * 9 + b"\x01",
    "text": b"hello there, this is no model",
    "many fields": b"\x08\x01" * 2_000_000,
    "many fields inside": b"\x3a\x80\x89\x7a" + b"\x0a\x00" * 1_000_000,
    "a long name": model({**GOOD, "name": "x" * 100_000}),
    "not UTF-8": model(GOOD).replace(b"first", b"fir\xff\xff"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(tmp_path, name):
    (tmp_path / "s.onnx").write_bytes(MODELS[name])
    refused(tmp_path / "s.onnx", "damaged")


PLACES = [
    "/etc/passwd", "../outside", "in/../../outside", "", ".", "..", "in/inside", "link", "missing",
    "folder", "pipe", "a\0b", "\\\\host\\x", "./data", "data/", "C:data\\x",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_elements_outside_of_the_folder(tmp_path, place):
    folder = tmp_path / "model"
    (folder / "in").mkdir(parents=True)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for path in (tmp_path / "outside", folder / "in" / "inside", folder / "data"):
        path.write_bytes(bytes(12))
    (folder / "link").symlink_to("../outside")
    (folder / "s.onnx").write_bytes(model(outside(place)))
    net = small()
    before = values(net)
    with pytest.raises(CheckpointError, match=r"load_states: .*model"):
        net.load_states(folder / "s.onnx")
    same(values(net), before)


@pytest.mark.parametrize(
    "offset, length",
    [("1", "12"), ("-1", "12"), ("0", "13"), ("0", "11"), ("0", "-12"), ("x", "12"), ("0", "1e1"),
     ("9" * 5000, "12"), (str(2**63), "12"), ("0", str(2**64)), ("١", "12"), (" 0", "12")],
)  # fmt: skip
def test_places_that_are_not_in_the_file(tmp_path, offset, length):
    (tmp_path / "data").write_bytes(bytes(12))
    (tmp_path / "s.onnx").write_bytes(model(outside("data", offset, length)))
    refused(tmp_path / "s.onnx", "damaged")


def test_elements_in_the_folder(tmp_path):
    (tmp_path / "data").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (tmp_path / "s.onnx").write_bytes(model(outside("data", "4")))
    net = small()
    with pytest.warns(UserWarning, match="only in the model"):
        net.load_states(tmp_path / "s.onnx")
    assert net.first.b.tolist() == [1, 2, 3]


# ---- npz -----------------------------------------------------------------------------------------


def header(shape, kind="<f4", version=(1, 0)):
    text = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + length + text


ARRAYS = {
    "huge shape": header((2**40,)) + bytes(12),
    "wraps to 12": header((2**62 + 3,)) + bytes(12),
    "negative shape": header((-3,)) + bytes(12),
    "objects": npy(np.array([{}]), allow_pickle=True),
    "strings": npy(np.array(["abc"])),
    "complex": npy(np.array([1j])),
    "wide": npy(np.longdouble([1, 2, 3])),
    "structured": npy(np.zeros(3, [("a", "f4")])),
    "version 3": header((3,), version=(3, 0)) + bytes(12),
    "a long header": b"\x93NUMPY\2\0" + (1 << 30).to_bytes(4, "little") + b" " * (1 << 26),
    "a deep header": header("(" * 5000 + ")" * 5000) + bytes(12),
    "no header": bytes(12),
    "nothing": b"",
}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(tmp_path, name, method):
    (tmp_path / "s.npz").write_bytes(zipped([("first.b.npy", ARRAYS[name])], method))
    refused(tmp_path / "s.npz", "damaged")


def test_zip_files(tmp_path):
    path, good = tmp_path / "s.npz", npy(np.zeros(3, np.float32))
    bomb = header((1 << 25,)) + bytes(1 << 27)
    path.write_bytes(zipped([("first.b.npy", bomb)]))
    refused(path, r"has shape \(33554432,\)")
    path.write_bytes(zipped([("first.b.npy", good), ("big.npy", bomb)]))
    refused(path, "unpack to")
    refused(path, "unpack to", transform=lambda name, array: array)
    refused(path, "unpack to", skip_mismatched=True)
    del bomb
    path.write_bytes(zipped([("first.b.npy", good), ("notes.txt", b"x")]))
    refused(path, "it is no array")
    many = ((f"{'y' * 60000}{i}.npy", b"") for i in range(40))
    path.write_bytes(zipped([("x.npy", good), *many]))
    refused(path, "its directory takes .* want at most")
    for name in ("../first.b.npy", "/first.b.npy"):
        path.write_bytes(zipped([(name, good)]))
        refused(path, "no state of the model")
    assert os.listdir(tmp_path) == ["s.npz"] and "first.b.npy" not in os.listdir(tmp_path.parent)


# ---- the states of a checkpoint ------------------------------------------------------------------

RANDOM = {"$object": "Device", "state": {"$array": "r"}}
ONE = {"$array": "x"}
TREES = {
    "a tensor that is missing": {"a": {"$array": "y"}},
    "a tensor that is named twice": {"a": ONE, "b": ONE},
    "a tensor that is named often": {"a": [ONE] * 200_000},
    "a number for a name": {"a": {"$array": 3}},
    "a list for a name": {"a": {"$array": []}},
    "another dtype": {"a": {"$tensor": "x"}},
    "an unknown form": {"a": {"$code": "print()"}},
    "a tuple of a number": {"a": {"$tuple": 3}},
    "an object without states": {"a": {"$object": "SGD"}},
    "a list": [1],
    "nothing": None,
}


def retold(net, path, tree):
    """Writes a checkpoint whose state file tells something else."""
    net.save(path)
    state = f"{path}.state.safetensors"
    with safe_open(state, "np") as held:
        metadata = held.metadata()
    text = tree if isinstance(tree, str) else json.dumps(tree)
    arrays = {"x": np.zeros(1 << 18, np.float32), "r": np.array([[2, 0], [5, 0]], np.uint64)}
    save_file(arrays, state, {**metadata, "singa_rs.state": text})


@pytest.mark.parametrize("name", TREES)
def test_states_of_checkpoints(tmp_path, name):
    net = small()
    retold(net, tmp_path / "net", {"state": TREES[name], "random": RANDOM})
    refused_checkpoint(net, tmp_path / "net")


@pytest.mark.parametrize(
    "tree",
    [
        {"state": {}}, {"random": RANDOM}, {"state": {}, "random": 3}, [], "", "{", "[" * 100_000,
        {"state": {}, "random": {**RANDOM, "$object": "SGD"}}, {"state": {}, "random": RANDOM},
        {"state": {}, "random": {**RANDOM, "state": {"$array": "x"}}},
    ],
)  # fmt: skip
def test_random_numbers_of_checkpoints(tmp_path, tree):
    net = small()
    retold(net, tmp_path / "net", tree)
    refused_checkpoint(net, tmp_path / "net")


def refused_checkpoint(net, path):
    dev = device.get_default_device()
    net.first.b.set_value(7)
    before, numbers, start = values(net), dev.get_rng_state(), time.process_time()
    with pytest.raises(CheckpointError, match="load: .*state"):
        net.load(path, include_state=True)
    assert time.process_time() - start < SECONDS
    same(values(net), before)
    np.testing.assert_array_equal(dev.get_rng_state(), numbers)
    net.load(path)
    assert net.first.b.tolist() != [7, 7, 7]


# ---- memory --------------------------------------------------------------------------------------


def test_all_of_it_in_little_memory(tmp_path):
    """In a process that has read a good file before."""
    for number, text in enumerate(TEXTS):
        tensors(tmp_path / f"{number}.safetensors", text)
    for name in ("many fields", "many fields inside", "many axes"):
        (tmp_path / f"{name}.onnx").write_bytes(MODELS[name])
    bomb = header((1 << 25,)) + bytes(1 << 27)
    (tmp_path / "bomb.npz").write_bytes(zipped([("big.npy", bomb)]))
    (tmp_path / "long.npz").write_bytes(zipped([("first.b.npy", ARRAYS["a long header"])]))
    (tmp_path / "good.npz").write_bytes(zipped([("first.b.npy", npy(np.zeros(3, np.float32)))]))
    code = "import sys, test_states_crafted as t; t.grows(sys.argv[1])"
    command = [sys.executable, "-c", code, tmp_path]
    here = os.path.dirname(__file__)
    done = subprocess.run(command, capture_output=True, text=True, cwd=here)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < BYTES


def grows(folder):
    """Prints by how much reading a folder's files raises the peak of this process's memory."""
    warnings.simplefilter("ignore")
    net = small()
    net.load_states(os.path.join(folder, "good.npz"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in sorted(os.listdir(folder)):
        with contextlib.suppress(CheckpointError):
            net.load_states(os.path.join(folder, name))
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
