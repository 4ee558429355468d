"""Files of ONNX that nobody should trust: refused by one exception, in bounded memory."""

import time

import numpy as np
import onnx
import pytest
from mutations import mutated, peak
from onnx import TensorProto, helper, numpy_helper
from onnx_models import real
from singa_rs import CheckpointError, layer, module, sonnx
from test_mutations import BYTES, COUNT, SECONDS, SEED


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = layer.Conv2d(2, 3), layer.BatchNorm2d(), layer.GELU()
        self.flat, self.head = layer.Flatten(), layer.Linear(3)

    def forward(self, x):
        return self.head(self.flat(self.act(self.norm(self.conv(x)))))


def test_files_that_were_changed_at_random(tmp_path):
    raw = sonnx.model_proto(Net(), [real(2, 3, 4, 4)]).SerializeToString()
    path, counts = tmp_path / "net.onnx", [0, 0]
    path.write_bytes(raw)
    sonnx.prepare(path)
    kept = peak()
    for seed in range(SEED, SEED + COUNT):
        path.write_bytes(mutated(raw, np.random.default_rng(seed)))
        start = time.process_time()
        try:
            sonnx.prepare(path)
            counts[1] += 1
        except CheckpointError:
            counts[0] += 1
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        assert time.process_time() - start < SECONDS, seed
    assert peak() - kept < BYTES
    assert min(counts) > COUNT // 20


def info(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape or None)


def saved(tmp_path, nodes, constants=(), inputs=("x",), outputs=("y",)):
    graph = helper.make_graph(
        nodes, "g", [info(x, 2) for x in inputs], [info(y) for y in outputs], list(constants)
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "net.onnx"


CYCLES = {
    "two": [helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])],
    "one": [helper.make_node("Add", ["x", "b"], ["b"])],
    "after": [helper.make_node("Add", "xb", "a"), helper.make_node("Relu", "a", "b"),
              helper.make_node("Relu", "x", "c")],
}  # fmt: skip


@pytest.mark.parametrize("kind", CYCLES)
def test_cycles(tmp_path, kind):
    path, message = (
        saved(tmp_path, CYCLES[kind], outputs=("b",)),
        "g: no order of its nodes makes each of '",
    )
    with pytest.raises(CheckpointError, match=f"no model of ONNX, or damaged: {message}"):
        sonnx.prepare(path)
    with pytest.raises(ValueError, match=message):
        sonnx.prepare(onnx.load(path))


def test_values_that_are_made_twice_among_nodes_in_no_order(tmp_path):
    nodes = [helper.make_node("Add", "xa", "y"), *[helper.make_node("Relu", "x", "a")] * 2]
    path = saved(tmp_path, nodes)
    with pytest.raises(CheckpointError, match="g: got 'a' twice, among nodes in no order"):
        sonnx.prepare(path)
    with pytest.raises(ValueError, match="g: got 'a' twice, among nodes in no order"):
        sonnx.prepare(onnx.load(path))


@pytest.mark.parametrize("dims", [[2**40], [2**31, 2**31], [-1], [3]])
def test_constants_of_another_size_than_declared(tmp_path, dims):
    constant = numpy_helper.from_array(np.ones(2, np.float32), "w")
    del constant.dims[:]
    constant.dims.extend(dims)
    before = peak()
    with pytest.raises(CheckpointError):
        sonnx.prepare(saved(tmp_path, [helper.make_node("Add", ["x", "w"], ["y"])], [constant]))
    assert peak() - before < BYTES


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", "a/../../outside.bin"])
def test_data_outside_of_the_folder(tmp_path, location):
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(8))
    constant = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    constant.data_location = TensorProto.EXTERNAL
    constant.external_data.add(key="location", value=location)
    path = saved(folder, [helper.make_node("Add", ["x", "w"], ["y"])], [constant])
    with pytest.raises(CheckpointError):
        sonnx.prepare(path)


def test_data_behind_a_link(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(8))
    (folder / "data.bin").symlink_to(tmp_path / "outside.bin")
    constant = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    constant.data_location = TensorProto.EXTERNAL
    constant.external_data.add(key="location", value="data.bin")
    path = saved(folder, [helper.make_node("Add", ["x", "w"], ["y"])], [constant])
    with pytest.raises(CheckpointError):
        sonnx.prepare(path)


def field(number, content):
    """A field of a message, which has a length."""
    length, made = len(content), bytearray([number << 3 | 2])
    while length > 127:
        made.append(length & 127 | 128)
        length >>= 7
    return bytes(made) + bytes([length]) + content


def test_bodies_within_bodies(tmp_path):
    """Deeper than messages may be: graph, node, attribute, graph, and so on."""
    graph = b""
    for _ in range(1000):
        attribute = field(1, b"then_branch") + field(6, graph)
        graph = field(1, field(4, b"If") + field(5, attribute))
    (tmp_path / "net.onnx").write_bytes(bytes([8, 8]) + field(7, graph))
    with pytest.raises(CheckpointError):
        sonnx.prepare(tmp_path / "net.onnx")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        sonnx.prepare(tmp_path / "none.onnx")
