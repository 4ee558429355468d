"""SINGA's snapshots, beside files that protocol buffers' own package made or reads."""

import gc
import os
import time

import numpy as np
import pytest
from mutations import peak
from singa_rs import CheckpointError, DTypeError, GraphError, ShapeError, snapshot, tensor
from singa_rs.compat import snapshot as compat
from snapshots import DATA, TensorProto, message, message_class, record, records

ARRAYS = {
    "conv/weight": np.float32([[[1.5, -2.0], [0.1, np.inf]]]),
    "conv/bias": np.float32([0.25]),
    "labels": np.int32([0, 1, 127, 128, -1, 2**31 - 1, -(2**31), 300]),
    "precise": np.arange(6, dtype=np.float64).reshape(2, 3) / 7,
    "none": np.zeros((0, 3), np.float32),
    "größe": np.float32([[np.nan, -0.0]]),
}


def tensors(arrays=ARRAYS):
    return {name: tensor.from_numpy(a, dtype=a.dtype.name) for name, a in arrays.items()}


def put(tmp_path, *pairs, end=".bin"):
    """A file of records, and its prefix."""
    prefix = tmp_path / "net"
    prefix.with_suffix(end).write_bytes(b"".join(record(key, value) for key, value in pairs))
    return prefix


def same(found, want):
    assert list(found) == list(want)
    for name, array in want.items():
        got = found[name].to_numpy()
        assert (got.shape, got.dtype) == (array.shape, array.dtype)
        assert got.tobytes() == array.tobytes()


def test_what_is_written_is_read(tmp_path):
    writer = snapshot.Snapshot(tmp_path / "net", True)
    for name, one in tensors().items():
        writer.write(name, one)
    found = snapshot.Snapshot(str(tmp_path / "net"), False).read()
    same(found, ARRAYS)
    assert [one.name for one in found.values()] == list(ARRAYS)


def test_all_at_once_are_the_same_files(tmp_path):
    writer = snapshot.Snapshot(tmp_path / "one", True)
    for name, one in tensors().items():
        writer.write(name, one)
    snapshot.save(tmp_path / "all", tensors())
    for end in (".bin", ".desc"):
        one, whole = (tmp_path / f"{stem}{end}" for stem in ("one", "all"))
        assert one.read_bytes() == whole.read_bytes()


def test_written_files_are_those_of_protocol_buffers(tmp_path):
    snapshot.save(tmp_path / "net", tensors())
    found = records((tmp_path / "net.bin").read_bytes())
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        number, field = DATA[array.dtype.name]
        one = found[name]
        assert (tuple(one.shape), one.data_type) == (array.shape, number)
        assert array.size == 0 or list(one.stride) == [n // array.itemsize for n in array.strides]
        np.testing.assert_array_equal(np.array(getattr(one, field), array.dtype), array.ravel())


def test_written_bytes_are_those_of_protocol_buffers(tmp_path):
    given = {name: array for name, array in ARRAYS.items() if array.size}
    snapshot.save(tmp_path / "net", tensors(given))
    want = b"".join(record(name, message(array)) for name, array in given.items())
    assert (tmp_path / "net.bin").read_bytes() == want


def test_the_description_has_a_line_for_each(tmp_path):
    snapshot.save(tmp_path / "net", tensors())
    lines = (tmp_path / "net.desc").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "SINGA VERSION: 5100"
    assert lines[1] == "parameter name: conv/weight\tdata type: 0\tdim: 3\tshape: 1 2 2"
    assert lines[3] == "parameter name: labels\tdata type: 2\tdim: 1\tshape: 8"
    assert lines[5] == "parameter name: none\tdata type: 0\tdim: 2\tshape: 0 3"
    assert len(lines) == 1 + len(ARRAYS)


@pytest.mark.parametrize("proto", [TensorProto, message_class(packed=False)])
def test_files_of_protocol_buffers_are_read(tmp_path, proto):
    pairs = [(name, message(array, proto=proto)) for name, array in ARRAYS.items()]
    same(snapshot.Snapshot(put(tmp_path, *pairs), False).read(), ARRAYS)


def test_files_of_the_first_version_are_read(tmp_path):
    """Their name ends otherwise, and a flag stands in the place of strides."""
    matrix, row = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([1, 2])
    flagged = message(np.ascontiguousarray(matrix.T), [1]).replace(b"\x08\3\x08\2", b"\x08\2\x08\3")
    pairs = [("flagged", flagged), ("plain", message(matrix, [0])), ("row", message(row, [0]))]
    found = snapshot.Snapshot(put(tmp_path, *pairs, end=".model"), False).read()
    same(found, {"flagged": matrix, "plain": matrix, "row": row})
    put(tmp_path, ("newer", message(row)))
    assert list(snapshot.Snapshot(tmp_path / "net", False).read()) == ["newer"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_transposed_tensors_are_read_by_their_strides(tmp_path, dtype):
    """SINGA writes the elements as they lie in memory."""
    whole = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    for axes in [(1, 0, 2), (2, 1, 0), (0, 2, 1)]:
        view = whole.transpose(axes)
        prefix = put(tmp_path, ("a", message(view)))
        same(snapshot.Snapshot(prefix, False).read(), {"a": np.ascontiguousarray(view)})


def test_views_are_written_in_their_own_order(tmp_path):
    given = tensors()["precise"]
    snapshot.save(tmp_path / "net", {"t": given.T, "part": given[:, 1:]})
    array = ARRAYS["precise"]
    want = {"t": np.ascontiguousarray(array.T), "part": np.ascontiguousarray(array[:, 1:])}
    same(snapshot.Snapshot(tmp_path / "net", False).read(), want)


def test_long_lists_of_integers(tmp_path):
    """Longer than what is decoded at a time, and of numbers of all lengths."""
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.uniform(0, 31, 200_000)
    array = (sizes * rng.choice([-1, 1], len(sizes))).astype(np.int32)
    snapshot.save(tmp_path / "net", tensors({"a": array}))
    (found,) = records((tmp_path / "net.bin").read_bytes()).values()
    np.testing.assert_array_equal(np.array(found.int_data, np.int32), array)
    same(snapshot.Snapshot(tmp_path / "net", False).read(), {"a": array})


def test_opening_to_write_empties_the_files(tmp_path):
    snapshot.save(tmp_path / "net", tensors())
    snapshot.Snapshot(tmp_path / "net", True)
    assert snapshot.Snapshot(tmp_path / "net", False).read() == {}


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, value, error, text",
    [
        ("a", np.float16([1]), DTypeError, "float16.*float32, float64 and int32"),
        ("a", np.bool_([True]), DTypeError, "bool"),
        ("a", np.float32(1), ShapeError, r"shape \(\)"),
        ("", np.float32([1]), ValueError, "name ''"),
        ("a\nb", np.float32([1]), ValueError, "one line"),
        (3, np.float32([1]), TypeError, "int for"),
        ("kept", np.float32([1]), ValueError, "'kept' was written before"),
        ("big", np.zeros(1 << 18, np.float32), ValueError, "1 megabytes.*larger buffer_size"),
    ],
)
def test_what_cannot_be_written_leaves_the_files(tmp_path, name, value, error, text):
    writer = snapshot.Snapshot(tmp_path / "net", True, 1)
    writer.write("kept", tensor.from_numpy(np.float32([1])))
    before = [(tmp_path / f"net{end}").read_bytes() for end in (".bin", ".desc")]
    with pytest.raises(error, match=text):
        writer.write(name, tensor.from_numpy(np.asarray(value), dtype=value.dtype.name))
    assert before == [(tmp_path / f"net{end}").read_bytes() for end in (".bin", ".desc")]


def test_a_full_disk_leaves_the_files(tmp_path, monkeypatch):
    writer = snapshot.Snapshot(tmp_path / "net", True)
    writer.write("kept", tensor.from_numpy(np.float32([1])))
    before = [(tmp_path / f"net{end}").read_bytes() for end in (".bin", ".desc")]
    write, calls = compat._write_all, []

    def failing(file, piece):
        calls.append(piece)
        if len(calls) == 3:  # the text, behind the two pieces of the record
            raise OSError(28, "No space left on device")
        write(file, piece)

    monkeypatch.setattr(compat, "_write_all", failing)
    with pytest.raises(OSError, match="No space"):
        writer.write("a", tensor.from_numpy(np.float32([2])))
    assert before == [(tmp_path / f"net{end}").read_bytes() for end in (".bin", ".desc")]
    monkeypatch.undo()
    writer.write("a", tensor.from_numpy(np.float32([2])))
    assert list(snapshot.Snapshot(tmp_path / "net", False).read()) == ["kept", "a"]


def test_a_refused_save_leaves_the_files(tmp_path):
    snapshot.save(tmp_path / "net", tensors())
    with pytest.raises(DTypeError, match="float16"):
        snapshot.save(tmp_path / "net", {**tensors(), "a": tensor.zeros((2,), dtype="float16")})
    same(snapshot.Snapshot(tmp_path / "net", False).read(), ARRAYS)
    assert sorted(os.listdir(tmp_path)) == ["net.bin", "net.desc"]


def test_a_snapshot_is_written_or_read(tmp_path):
    writer = snapshot.Snapshot(tmp_path / "net", True)
    with pytest.raises(GraphError, match="Snapshot.read: it was opened to be written"):
        writer.read()
    with pytest.raises(GraphError, match="Snapshot.write: it was opened to be read"):
        snapshot.Snapshot(tmp_path / "net", False).write("a", tensor.zeros((1,)))


@pytest.mark.parametrize("size", [0, -1, 2048])
def test_sizes_of_records_that_singa_does_not_have(tmp_path, size):
    with pytest.raises(ValueError, match=f"got buffer_size {size}, want 1 to 2047"):
        snapshot.Snapshot(tmp_path / "net", True, size)


def test_paths_that_cannot_be_used(tmp_path):
    with pytest.raises(FileNotFoundError, match="net.bin: no such file"):
        snapshot.Snapshot(tmp_path / "net", False)
    (tmp_path / "net.bin").mkdir()
    for mode in (False, True):
        with pytest.raises(CheckpointError, match="is a directory, want a regular file"):
            snapshot.Snapshot(tmp_path / "net", mode)
    with pytest.raises(TypeError, match="got int, want a path"):
        snapshot.Snapshot(3, True)


ROW = message(np.float32([1, 2]))


@pytest.mark.parametrize(
    "raw, text",
    [
        (b"PK\3\4", "no record with a name begins at byte 0"),
        (record("a", ROW)[:-1], "a tensor of 16 bytes begins at byte 21 of 36"),
        (record("a", ROW)[:16], "before the length of a tensor"),
        (record("a", ROW) * 2, "'a' occurs twice"),
        (record("a", ROW) + b"s", "begins at byte 37"),
        (record("", ROW), "no record with a name begins at byte 0"),
        (record("a", b""), "has no name, no tensor"),
        (record("a", message(np.float32([1, 2]), [2])), "strides .2. exceed the 2 elements"),
        (record("a", message(np.float32([[1, 2]]), [2, 1, 1])), "3 strides for 2 axes"),
        (record("a", message(np.float32([[1, 2], [3, 4]]), [-1, 1])), "exceed the 4 elements"),
        (record("a", TensorProto(shape=[3], data_type=0).SerializeToString()), "but the file has"),
        (record("a", TensorProto(shape=[2**32 - 1] * 2).SerializeToString()), "but the file has"),
        (record("a", TensorProto(shape=[2**32 - 1], data_type=2).SerializeToString()), "has 0"),
        (record("a", TensorProto(shape=[1], data_type=3).SerializeToString()), "data_type 3"),
        (record("a", message(np.float32([1])) + b"\x32\1\1"), r"fields \[4, 6\]"),
        (record("a", TensorProto(shape=[1], data_type=1).SerializeToString()), "data_type 1"),
        (record("a", b"\x08\1\x10\2\x32\6\xff\xff\xff\xff\xff\1"), "does not fit into 32 bits"),
        (record("a", b"\x08\1\x10\2\x32\2\xff\xff"), "but the file has 0"),
        (record("a", b"\x08\1\x10\0\x22\3\0\0\0"), "no whole number of them"),
        (record("a", b"\x08\1" * 65), "65 axes, want up to 32"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path, raw, text):
    (tmp_path / "net.bin").write_bytes(raw)
    with pytest.raises(CheckpointError, match=f"net.bin: the snapshot is damaged: .*{text}"):
        snapshot.Snapshot(tmp_path / "net", False)


@pytest.mark.parametrize(
    "raw, text",
    [
        (b"".join(record(f"{i:x}", b"\x08\0") for i in range(1 << 18)), "more than 32768 tensors"),
        (record("a", b"\x08\1\x10\2" + b"\x30\1" * (1 << 18)), "too many fields"),
        (record("a", b"\x08\1\x10\2\x32\x80\x80\x80\x10" + b"\1" * (1 << 25)), "has 33554432"),
    ],
    ids=["tensors", "fields", "elements"],
)
def test_crafted_files_take_less_than_a_second(tmp_path, raw, text):
    (tmp_path / "net.bin").write_bytes(raw)
    gc.freeze()  # what other tests left would be walked over again and again
    kept, start = peak(), time.process_time()
    with pytest.raises(CheckpointError, match=text):
        snapshot.Snapshot(tmp_path / "net", False)
    taken = time.process_time() - start
    gc.unfreeze()
    assert taken < 1 and peak() - kept < 64 << 20


@pytest.mark.parametrize("mode", ["r", "w", "False", "", 2, -1, 1.0, None, [1]])
def test_what_is_no_mode_is_refused_and_leaves_files(tmp_path, mode):
    snapshot.save(tmp_path / "net", tensors())
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    with pytest.raises(TypeError, match="Snapshot: mode: got .*, want "):
        snapshot.Snapshot(tmp_path / "net", mode)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before


@pytest.mark.parametrize("kind", [bool, int, np.bool_, np.int64])
def test_modes_are_bools_or_ints_in_their_place(tmp_path, kind):
    snapshot.Snapshot(tmp_path / "net", kind(1)).write("a", tensor.ones((2,)))
    assert list(snapshot.Snapshot(tmp_path / "net", kind(0)).read()) == ["a"]


def test_arguments_of_other_types(tmp_path):
    for wrong in ([], 3, None):
        with pytest.raises(TypeError, match="snapshot.save: tensors: got .*, want tensors by name"):
            snapshot.save(tmp_path / "s", wrong)
    for wrong in (1.5, "10", True, None):
        with pytest.raises(TypeError, match="Snapshot: buffer_size: got .*, want an int"):
            snapshot.Snapshot(tmp_path / "s", True, wrong)
    assert os.listdir(tmp_path) == []
