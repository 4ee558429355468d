"""Files of states that were changed at random: loaded, or refused by CheckpointError with the model
unchanged, in bounded time and memory."""

import os
import shutil
import time
import warnings

import numpy as np
import onnx
import pytest
from archives import small, values
from mutations import SEEDS, mutated, mutated_header, mutated_inside, mutated_message, peak
from onnx import numpy_helper
from safetensors import SafetensorError, deserialize
from singa_rs import CheckpointError, snapshot
from singa_rs.module.checkpoint import safetensors_file
from snapshots import values_of

#: How many files of each kind are made; 20,000 is a thorough run.
COUNT = int(os.environ.get("SINGA_RS_MUTATIONS", "500"))
SEED = int(os.environ.get("SINGA_RS_SEED", "0"))
#: Seconds of this process, and bytes that all files together may take.
SECONDS, BYTES = 1.0, 64 << 20


def attempt(net, load, what):
    """Whether a file is loaded; if not, the model stays unchanged."""
    before, start = values(net), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load()
        is_loaded = True
    except CheckpointError:
        is_loaded = False
    except BaseException as error:
        raise AssertionError(f"{what}: {error!r}") from error
    assert time.process_time() - start < SECONDS, what
    if not is_loaded:
        after = values(net)
        assert all(after[name].tobytes() == one.tobytes() for name, one in before.items()), what
    return is_loaded


def changes(seed, change):
    """Numbers and changed files."""
    raw = (SEEDS / seed).read_bytes()
    for number in range(SEED, SEED + COUNT):
        yield (
            f"{seed}, {change.__name__}, seed {number}",
            change(raw, np.random.default_rng(number)),
        )


def hold(seed, change, path, load, net):
    """Changes a file in many ways; some are refused, and some are loaded."""
    shutil.copy(SEEDS / seed, path)
    load()
    kept, counts = peak(), [0, 0]
    for what, raw in changes(seed, change):
        path.write_bytes(raw)
        counts[attempt(net, load, what)] += 1
    assert peak() - kept < BYTES
    assert counts[0] > COUNT // 10


FILES = [
    ("stored.zip", mutated), ("stored.zip", mutated_inside), ("deflated.zip", mutated),
    ("deflated.zip", mutated_inside), ("stored.npz", mutated), ("stored.npz", mutated_inside),
    ("deflated.npz", mutated), ("deflated.npz", mutated_inside), ("states.safetensors", mutated),
    ("states.safetensors", mutated_header), ("states.onnx", mutated),
]  # fmt: skip


@pytest.mark.parametrize("seed, change", FILES)
def test_files_of_states(tmp_path, seed, change):
    net, path = small(), tmp_path / "in" / seed
    path.parent.mkdir()
    hold(seed, change, path, lambda: net.load_states(path), net)
    assert os.listdir(tmp_path) == ["in"] and os.listdir(path.parent) == [seed]


@pytest.mark.parametrize(
    "stem, end, change",
    [
        ("net", ".onnx", mutated),
        ("net", ".state.safetensors", mutated),
        ("net", ".state.safetensors", mutated_header),
        ("apart", ".onnx", mutated),
    ],
)
def test_checkpoints(tmp_path, stem, end, change):
    net = small()
    for seed in SEEDS.glob(f"{stem}.*"):
        shutil.copy(seed, tmp_path)
    names, path = sorted(os.listdir(tmp_path)), tmp_path / f"{stem}{end}"

    def load():
        net.load(tmp_path / stem, include_state=True)

    hold(path.name, change, path, load, net)
    assert sorted(os.listdir(tmp_path)) == names


@pytest.mark.parametrize("change", [mutated, mutated_message])
def test_snapshots(tmp_path, change):
    path = tmp_path / "snapshot.bin"
    hold(
        path.name,
        change,
        path,
        lambda: snapshot.Snapshot(tmp_path / path.stem, False).read(),
        small(),
    )
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("change", [mutated, mutated_message])
def test_snapshots_are_what_protocol_buffers_read(tmp_path, change):
    path, both = tmp_path / "snapshot.bin", 0
    for what, raw in changes(path.name, change):
        path.write_bytes(raw)
        try:
            found = snapshot.Snapshot(tmp_path / "snapshot", False).read()
        except CheckpointError:
            continue
        wanted = values_of(raw)
        assert found.keys() == wanted.keys(), what
        assert all(one.to_numpy().tobytes() == wanted[n].tobytes() for n, one in found.items()), (
            what
        )
        both += 1
    assert both > COUNT // 100


@pytest.mark.parametrize("change", [mutated, mutated_header])
def test_what_the_package_refuses_is_refused(change):
    both = 0
    for what, raw in changes("states.safetensors", change):
        try:
            wanted = {name: one["data"] for name, one in deserialize(raw)}
        except SafetensorError:
            wanted = None
        try:
            found = safetensors_file.parse(memoryview(raw)).tensors
        except (ValueError, RecursionError):
            continue
        assert wanted is not None, what
        assert {name: bytes(one.raw) for name, one in found.items()} == wanted, what
        both += 1
    assert both


@pytest.mark.parametrize("where", ["name", "key", "value"])
def test_half_a_pair_of_surrogates_is_no_text(where):
    """JSON can escape one, and Python's reader takes it."""
    half = '"a\\ud800"'
    name = half if where == "name" else '"w"'
    texts = {"key": f'{half}: "v"', "value": f'"k": {half}'}.get(where, '"k": "v"')
    entry = '{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}'
    header = f'{{"__metadata__": {{{texts}}}, {name}: {entry}}}'.encode()
    raw = len(header).to_bytes(8, "little") + header + bytes(4)
    with pytest.raises(SafetensorError):
        deserialize(raw)
    with pytest.raises(ValueError, match=r"ud800"):
        safetensors_file.parse(memoryview(raw))


def test_a_tensor_without_a_name_is_read(tmp_path):
    from singa_rs.module.checkpoint import onnx_reading

    graph = onnx.GraphProto(initializer=[numpy_helper.from_array(np.float32([1, 2]))])
    path = tmp_path / "nameless.onnx"
    path.write_bytes(onnx.ModelProto(graph=graph).SerializeToString())
    found = onnx_reading.read("load_states", str(path)).tensors
    np.testing.assert_array_equal(found[""].array(), [1, 2])


def test_what_the_package_reads_is_read(tmp_path):
    """Where both read a model, it has the same tensors."""
    from singa_rs.module.checkpoint import onnx_reading

    path, both = tmp_path / "states.onnx", 0
    for what, raw in changes("states.onnx", mutated):
        path.write_bytes(raw)
        try:
            found = onnx_reading.read("load_states", str(path)).tensors
            arrays = {name: one.array() for name, one in found.items()}
            graph = onnx.ModelProto.FromString(raw).graph
        except (CheckpointError, ValueError, onnx.parser.ParseError) as error:
            assert error
            continue
        except Exception as error:
            assert type(error).__name__ == "DecodeError", what
            continue
        wanted = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
        assert arrays.keys() == wanted.keys(), what
        assert all(one.tobytes() == wanted[name].tobytes() for name, one in arrays.items()), what
        both += 1
    assert both > COUNT // 10
