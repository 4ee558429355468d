"""Models of files: read one long tensor at a time, whatever way the file is written in."""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper
from onnx_models import model, real
from singa_rs import CheckpointError, sonnx
from singa_rs.module.checkpoint.onnx_reading import GRAPH_INITIALIZER, MODEL_GRAPH, TENSOR_RAW
from singa_rs.module.checkpoint.wire import field, number
from singa_rs.sonnx import reading
from singa_rs.sonnx.arrays import element_of, from_array
from singa_rs.sonnx.order import order_of

#: Long enough to be left out of an outline, of an odd number of bytes with what stands before.
LONG = 3001


def declared(nodes, x, constants=()):
    """A model whose output has the type that the checker wants."""
    made = model(nodes, {"x": x}, ["y"], constants)
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", element_of(x.dtype), ["n"]))
    return made


def product(w):
    """A model that multiplies its input by a constant."""
    return declared([helper.make_node("Mul", ["x", "w"], ["y"])], np.ones(1, w.dtype), {"w": w})


def written(tmp_path, raw):
    path = tmp_path / "net.onnx"
    path.write_bytes(raw)
    return path


def times(path, x):
    rep = sonnx.prepare(path)
    for _ in range(3):
        (y,) = rep.run([x])
    return y


@pytest.fixture
def whole(monkeypatch):
    """The files that are checked or parsed as a whole."""
    seen, check, load = [], onnx.checker.check_model, onnx.load

    def checked(given, *args, **kwargs):
        seen.extend(["checked"] if isinstance(given, (str, os.PathLike)) else [])
        return check(given, *args, **kwargs)

    def loaded(*args, **kwargs):
        seen.append("parsed")
        return load(*args, **kwargs)

    monkeypatch.setattr(onnx.checker, "check_model", checked)
    monkeypatch.setattr(onnx, "load", loaded)
    return seen


@pytest.mark.parametrize("shift", range(4))
def test_elements_at_any_place_of_the_file(tmp_path, whole, shift):
    proto, w = product(real(LONG)), real(LONG)
    proto.producer_name = "p" * shift
    y = times(written(tmp_path, proto.SerializeToString()), np.float32([2]))
    np.testing.assert_array_equal(y, 2 * w)
    assert whole == []


@pytest.mark.parametrize(
    "dtype", ["float16", "float64", "int8", "int32", "int64", "uint8", "bool", "bfloat16", "int4"]
)
def test_elements_of_every_width(tmp_path, dtype):
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    w = np.arange(20001).astype(np.int8).astype(kind)
    nodes = [
        helper.make_node("Cast", ["w"], ["c"], to=1),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    proto = declared(nodes, np.zeros(1, np.float32), {"w": w})
    y = times(written(tmp_path, proto.SerializeToString()), np.zeros(1, np.float32))
    np.testing.assert_array_equal(y, w.astype(np.float32))


def test_constants_within_nodes_and_bodies(tmp_path, whole):
    w = real(LONG)
    inner = helper.make_graph(
        [
            helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(w)),
            helper.make_node("Add", ["c", "own"], ["z"]),
        ],
        "body",
        [],
        [helper.make_tensor_value_info("z", 1, [LONG])],
        [numpy_helper.from_array(w, "own")],
    )
    nodes = [
        helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("If", ["b"], ["i"], then_branch=inner, else_branch=inner),
        helper.make_node("Mul", ["x", "i"], ["y"]),
    ]
    path = written(tmp_path, declared(nodes, np.ones(1, np.float32)).SerializeToString())
    np.testing.assert_allclose(times(path, np.float32([3])), 6 * w, 1e-6)
    assert whole == []


def test_a_model_does_not_depend_on_its_file(tmp_path):
    """Neither parameters do, nor constants that stay on the host."""
    places, w = np.arange(LONG)[::-1].copy(), real(LONG)
    nodes = [helper.make_node("Gather", ["w", "i"], ["g"]), helper.make_node("Mul", "xg", ["y"])]
    proto = declared(nodes, np.ones(1, np.float32), {"w": w, "i": places})
    path = written(tmp_path, proto.SerializeToString())
    rep = sonnx.prepare(path)
    with open(path, "rb+") as file:  # this very file, not another one of its name
        file.write(bytes(path.stat().st_size))
        file.truncate(10)
    for _ in range(3):
        np.testing.assert_array_equal(rep.run([np.float32([2])])[0], 2 * w[::-1])


@pytest.mark.parametrize("kind", ["symlink", "hardlink"])
def test_a_file_behind_a_link(tmp_path, whole, kind):
    path = written(tmp_path, product(real(LONG)).SerializeToString())
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.onnx"
    link.symlink_to(path) if kind == "symlink" else os.link(path, link)
    np.testing.assert_array_equal(times(link, np.float32([2])), 2 * real(LONG))
    assert whole == []


def test_elements_in_other_files(tmp_path, whole):
    """Such files are checked as a whole, since their folder matters, and read tensor by tensor."""
    proto = product(real(LONG))
    external_data_helper.convert_model_to_external_data(proto, location="net.data")
    path = tmp_path / "net.onnx"
    onnx.save(proto, str(path))
    assert path.stat().st_size < 4096
    np.testing.assert_array_equal(times(path, np.float32([2])), 2 * real(LONG))
    assert whole == ["checked"]


def test_elements_that_are_missing_from_other_files(tmp_path):
    proto = product(real(LONG))
    external_data_helper.convert_model_to_external_data(proto, location="net.data")
    onnx.save(proto, str(tmp_path / "net.onnx"))
    (tmp_path / "net.data").write_bytes(bytes(100))
    with pytest.raises(CheckpointError):
        sonnx.prepare(tmp_path / "net.onnx")


@pytest.mark.parametrize("dims", [[LONG + 1], [LONG - 1], [-1], [2**40], [-1, -LONG], [0], []])
def test_constants_of_another_size_are_refused_as_in_the_whole_file(tmp_path, dims):
    proto = product(real(LONG))
    proto.graph.initializer[0].dims[:] = dims
    path = written(tmp_path, proto.SerializeToString())
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        with pytest.raises(CheckpointError) as found:
            sonnx.prepare(path)
        assert str(found.value).endswith(f"{path}: no model of ONNX, or damaged: {error}")
    else:
        with pytest.raises(CheckpointError):
            sonnx.prepare(path)


def test_what_the_checker_refuses_besides(tmp_path):
    proto = product(real(LONG))
    proto.graph.node[0].op_type = "Nothing"
    path = written(tmp_path, proto.SerializeToString())
    with pytest.raises(onnx.checker.ValidationError) as want:
        onnx.checker.check_model(str(path))
    with pytest.raises(CheckpointError) as found:
        sonnx.prepare(path)
    assert str(found.value).endswith(f"{path}: no model of ONNX, or damaged: {want.value}")


def assembled(tensor):
    """A model's bytes around those of a tensor."""
    proto = product(real(1))
    del proto.graph.initializer[:]
    graph = proto.graph.SerializeToString() + field(GRAPH_INITIALIZER, len(tensor)) + tensor
    proto.ClearField("graph")
    return proto.SerializeToString() + field(MODEL_GRAPH, len(graph)) + graph


def test_elements_that_occur_twice(tmp_path):
    """The last ones count, as in every message."""
    w = real(LONG)
    bare = from_array(w, "w")
    bare.ClearField("raw_data")
    raws = [field(TENSOR_RAW, w.nbytes) + one.tobytes() for one in (w + 1, w)]
    path = written(tmp_path, assembled(bare.SerializeToString() + raws[0] + raws[1]))
    np.testing.assert_array_equal(times(path, np.float32([1])), w)


def test_a_graph_in_two_parts(tmp_path):
    """Messages that occur twice are merged."""
    w, proto = real(LONG), product(real(LONG))
    constant = proto.graph.initializer[0].SerializeToString()
    del proto.graph.initializer[:]
    more = field(GRAPH_INITIALIZER, len(constant)) + constant
    raw = proto.SerializeToString() + field(MODEL_GRAPH, len(more)) + more
    np.testing.assert_array_equal(times(written(tmp_path, raw), np.float32([1])), w)


def test_fields_of_later_versions(tmp_path):
    w = real(LONG)
    raw = assembled(from_array(w, "w").SerializeToString() + number(1000, 7))
    np.testing.assert_array_equal(times(written(tmp_path, raw), np.float32([1])), w)


def test_groups_are_read_as_a_whole(tmp_path, whole):
    """A way of writing that the outline does not know: a field that begins and ends (3, 4)."""
    w = real(LONG)
    group = bytes([15 << 3 | 3, 15 << 3 | 4])
    raw = product(w).SerializeToString() + group
    np.testing.assert_array_equal(times(written(tmp_path, raw), np.float32([1])), w)
    assert whole == ["checked", "parsed"]


def test_a_name_that_no_file_knows():
    """A tensor cannot say that it is in the model's file."""
    names = {reading.Source()._name for _ in range(3)}
    assert len(names) == 3 and min(map(len, names)) == 32


@pytest.mark.skipif(sys.platform != "linux", reason="counts files in /proc")
def test_many_tensors_in_any_order(tmp_path, monkeypatch):
    """Few files are open meanwhile, and tensors that are far apart in the file are found."""
    monkeypatch.setattr(reading, "_PART", 1 << 16)
    monkeypatch.setattr(reading, "_PARTS", 8)
    rng = np.random.default_rng(0)
    constants = {f"w{i}": real(1500 + int(rng.integers(2000)), seed=i) for i in range(200)}
    nodes = [helper.make_node("Concat", [*constants, "x"], ["y"], axis=0)]
    proto = declared(nodes, np.ones(1, np.float32), constants)
    path, opened = written(tmp_path, proto.SerializeToString()), []
    source = reading.Source
    monkeypatch.setattr(
        source, "array", lambda self, *args, array=source.array: opened.append(
            len(os.listdir("/proc/self/fd"))
        ) or array(self, *args),
    )  # fmt: skip
    want = np.concatenate([*constants.values(), np.float32([5])])
    np.testing.assert_array_equal(times(path, np.float32([5])), want)
    assert len(opened) == 200 and max(opened) - opened[0] <= 8
    with open(path, "rb") as file:
        own, raw = reading.Source("", file), path.read_bytes()
        for begin in rng.integers(0, len(raw) - 5000, 40):
            assert bytes(own._mapped(file, int(begin), 5000)) == raw[begin : begin + 5000]


#: Prints by how many bytes the peak of a process grows when a model of 64 MiB is made ready, and
#: how many of them stay.
PROGRAM = """
import sys
from singa_rs import sonnx

def status(name):
    return next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith(name)) * 1024

sonnx.prepare(sys.argv[1])
before = status("VmRSS")
rep = sonnx.prepare(sys.argv[2])
print(status("VmHWM") - before, status("VmRSS") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_are_in_memory_once(tmp_path):
    size, count = 2 << 20, 16
    constants = {f"w{i}": np.full((size,), i, np.float32) for i in range(count)}
    nodes = [helper.make_node("Sum", ["x", *constants], ["y"])]
    large = declared(nodes, np.ones(1, np.float32), constants)
    (tmp_path / "large.onnx").write_bytes(large.SerializeToString())
    (tmp_path / "small.onnx").write_bytes(product(real(LONG)).SerializeToString())
    command = [sys.executable, "-c", PROGRAM, tmp_path / "small.onnx", tmp_path / "large.onnx"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, kept = map(int, done.stdout.split())
    weights = 4 * size * count
    assert (
        weights <= peak < 1.4 * weights
    )  # a part of 16 MiB is on the file's memory, and being copied
    assert kept < 1.2 * weights


@pytest.mark.filterwarnings("ignore:The onnxtxt format")
@pytest.mark.parametrize("end", ["json", "onnxtxt", "textproto", "pbtxt"])
def test_files_of_text(tmp_path, end):
    sonnx.export(lambda x: x * 2, tmp_path / f"net.{end}", [real(2, 3)])
    np.testing.assert_array_equal(times(tmp_path / f"net.{end}", real(2, 3)), real(2, 3) * 2)
    (tmp_path / f"bad.{end}").write_text("{ no")
    with pytest.raises(CheckpointError, match=f"bad.{end}"):
        sonnx.prepare(tmp_path / f"bad.{end}")


# ---- nodes in no order ---------------------------------------------------------------------------


def branch(name, of):
    """A body that reads values around it, whose nodes are not in order."""
    nodes = [helper.make_node("Add", ["t", "h"], ["z"]), helper.make_node(of, ["x"], ["t"])]
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("z", 1, ["n"])])


def shuffled(w):
    """A model of a function and two bodies, in all of which nodes stand before what they read."""
    nodes = [
        helper.make_node("Mul", ["i", "w"], ["y"]),
        helper.make_node("If", ["b"], ["i"], then_branch=branch("then", "Exp"),
                         else_branch=branch("else", "Abs")),
        helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("Twice", ["x"], ["h"], domain="own"),
    ]  # fmt: skip
    made = declared(nodes, np.ones(1, np.float32), {"w": w})
    inner = [helper.make_node("Add", "ac", "d"), helper.make_node("Neg", "a", "c")]
    plain, own = (helper.make_opsetid(name, version) for name, version in (("", 20), ("own", 1)))
    made.functions.append(helper.make_function("own", "Twice", ["a"], ["d"], inner, [plain]))
    made.opset_import.append(own)
    return made


@pytest.mark.parametrize("kind", ["proto", "file", "text"])
def test_nodes_that_are_not_in_order(tmp_path, whole, kind):
    w, x = real(LONG), np.float32([2])
    given = proto = shuffled(w)
    before = proto.SerializeToString()
    if kind != "proto":
        given = tmp_path / ("net.onnx" if kind == "file" else "net.onnxtxt")
        onnx.save(proto, str(given))
    np.testing.assert_allclose(times(given, x), np.exp(x) * w, 1e-6)
    assert proto.SerializeToString() == before
    assert whole == (["parsed"] if kind == "text" else [])


def test_nodes_that_are_not_in_order_beside_elements_in_other_files(tmp_path):
    """Where ONNX checks only whole files, the message says how the model is read all the same."""
    w, path, x = real(LONG), str(tmp_path / "net.onnx"), np.float32([2])
    onnx.save(shuffled(w), path, save_as_external_data=True, location="net.data")
    with pytest.raises(CheckpointError, match="(?s)topologically sorted.* Give what onnx.load"):
        sonnx.prepare(path)
    np.testing.assert_allclose(times(onnx.load(path), x), np.exp(x) * w, 1e-6)


def test_nodes_are_moved_no_further_than_needed():
    reads, made = ["x", "d", "x", "ab", "c"], ["a", "b", "c", "e", "d"]
    assert order_of("g", reads, made, "x") == [0, 2, 4, 1, 3]
    assert order_of("g", ["x", "ax", "y"], ["a", "b", "c"], "x") is None
    assert order_of("g", ["x", "x"], ["y", "x"], "x") is None  # reads the input before it is made
