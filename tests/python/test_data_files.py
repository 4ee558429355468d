"""CIFAR and CSV files: what is read, and what of damaged files."""

import pickle
import pickletools
import struct
import tracemalloc

import numpy as np
import pytest
from singa_rs import CheckpointError, data
from singa_rs.data import pickles

RNG = np.random.default_rng(0)


def images(count):
    return RNG.integers(0, 256, (count, 3072)).astype(np.uint8)


def write_python(path, pixels, protocol=2, **labels):
    held = {b"data": pixels, b"batch_label": b"one of", b"filenames": [b"a.png"] * len(pixels)}
    held |= {name.encode(): value for name, value in labels.items()}
    path.write_bytes(pickle.dumps(held, protocol))


def write_binary(path, pixels, *labels):
    columns = [np.array(one, np.uint8)[:, None] for one in labels]
    path.write_bytes(np.hstack([*columns, pixels]).tobytes())


# ---- CIFAR ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["python", "binary"])
def test_cifar10(tmp_path, kind):
    parts = [images(3) for _ in range(6)]
    for i, pixels in enumerate(parts):
        name = f"data_batch_{i + 1}" if i < 5 else "test_batch"
        if kind == "python":
            write_python(tmp_path / name, pixels, labels=[i, 9, 0])
        else:
            write_binary(tmp_path / f"{name}.bin", pixels, [i, 9, 0])
    x, y, test_x, test_y = data.load_cifar10(tmp_path)
    want = np.concatenate(parts[:5]).reshape(-1, 3, 32, 32).astype(np.float32) / 255
    np.testing.assert_array_equal(x, want)
    assert y.tolist() == [n for i in range(5) for n in (i, 9, 0)] and y.dtype == np.int32
    assert test_x.shape == (3, 3, 32, 32) and test_y.tolist() == [5, 9, 0]
    name = "data_batch_2" if kind == "python" else "data_batch_2.bin"
    pixels, labels = data.read_cifar(tmp_path / name)
    np.testing.assert_array_equal(pixels.reshape(3, -1), parts[1])
    assert pixels.dtype == np.uint8 and pixels.flags.writeable and labels.tolist() == [1, 9, 0]
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match="load_cifar10: .*data_batch_2"):
        data.load_cifar10(tmp_path)


@pytest.mark.parametrize("kind", ["python", "binary"])
def test_cifar100(tmp_path, kind):
    for name in ("train", "test"):
        if kind == "python":
            write_python(tmp_path / name, images(2), fine_labels=[99, 0], coarse_labels=[19, 1])
        else:
            write_binary(tmp_path / f"{name}.bin", images(2), [19, 1], [99, 0])
    assert data.load_cifar100(tmp_path)[1].tolist() == [99, 0]
    assert data.load_cifar100(tmp_path, coarse=True)[3].tolist() == [19, 1]


def test_every_protocol_and_order(tmp_path):
    pixels = images(2)
    for protocol in range(6):
        for kept in (pixels, np.asfortranarray(pixels)):
            write_python(tmp_path / "a", kept, protocol, labels=[3, 4])
            try:
                got, labels = data.read_cifar(tmp_path / "a")
            except CheckpointError as error:  # since protocol 5, NumPy writes in another way
                assert protocol == 5 and "_frombuffer" in str(error)
            else:
                np.testing.assert_array_equal(got.reshape(2, -1), pixels)
                assert labels.tolist() == [3, 4]


def test_wrong_arguments_of_cifar(tmp_path):
    write_binary(tmp_path / "a", images(2), [1, 2])
    for classes in (11, None, "10", True, [10]):
        with pytest.raises(ValueError, match="read_cifar: got classes"):
            data.read_cifar(tmp_path / "a", classes)
    with pytest.raises(ValueError, match="no coarse labels"):
        data.read_cifar(tmp_path / "a", coarse=True)
    with pytest.raises(TypeError, match="load_cifar100: coarse: got 3"):
        data.load_cifar100(tmp_path, coarse=3)


def refused(path, raw):
    path.write_bytes(raw)
    with pytest.raises(CheckpointError, match=f"read_cifar: {path}"):
        data.read_cifar(path)


def test_files_that_are_not_of_cifar(tmp_path):
    path, pixels = tmp_path / "a", images(2)
    write_binary(path, pixels, [1, 10])
    right = path.read_bytes()
    for raw in (b"", b"\0", right, right[:-1], right + b"x"):
        refused(path, raw)
    wrong = [
        {b"data": pixels},
        {b"data": pixels, b"labels": [1]},
        {b"data": pixels, b"labels": [1, 10]},
        {b"data": pixels, b"labels": [1, -1]},
        {b"data": pixels, b"labels": [1, 2.0]},
        {b"data": pixels, b"labels": [1, 2**70]},
        {b"data": pixels, b"labels": None},
        {b"data": pixels.astype(np.int16), b"labels": [1, 2]},
        {b"data": pixels[:, 1:], b"labels": [1, 2]},
        {b"data": pixels.tolist(), b"labels": [1, 2]},
        {b"labels": [1, 2]},
        [1, 2],
        pixels,
        None,
    ]
    for one in wrong:
        refused(path, pickle.dumps(one, 2))


class Evil:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def test_pickles_that_call_something(tmp_path):
    import os

    mark = tmp_path / "mark"
    calls = [
        Evil(os.mkdir, str(mark)),
        Evil(exec, f"open({str(mark)!r}, 'w')"),
        Evil(np.zeros, 10),
        Evil(np.ndarray, (3,)),
        np.array([Evil(os.mkdir, str(mark))]),
        np.zeros(2, "O"),
        np.zeros(2, [("a", "i4")]),
        np.dtype("f4"),
        (np.dtype("f4"), [(np.ndarray, 1)]),
        np.float64(3),
        {1, 2},
        Evil,
    ]
    for protocol in range(5):
        for one in calls:
            refused(tmp_path / "a", pickle.dumps({b"data": one, b"labels": [one]}, protocol))
    assert not mark.exists()


def test_pickles_of_plain_values():
    value = {"a": [1, -(2**80), 2.5, None, True, "text", b"bytes", ()], b"b": [(1, 2), [], {}]}
    value["c"] = (1, 2, 3, 4), [[1], [2, 3]]
    for protocol in range(6):
        assert pickles.loads(pickle.dumps(value, protocol)) == value
    array = RNG.random((3, 4))
    for protocol in range(6):
        (got,), [also], many = pickles.loads(
            pickle.dumps(((array,), [array], (array,) * 4), protocol)
        )
        assert got is also and all(one is got for one in many)
        np.testing.assert_array_equal(got, array)
    for one in (array, array.T, array.astype(">f4"), array > 0.5, np.zeros((0, 3), np.int64)):
        got = pickles.loads(pickle.dumps({"a": one}, 2))["a"]
        assert got.dtype == one.dtype
        np.testing.assert_array_equal(got, one)


def test_pickles_of_what_is_held_twice():
    nested = []
    for _ in range(60):
        nested = {"a": nested, "b": nested}
    got = pickles.loads(pickle.dumps(nested))
    assert got["a"] is got["b"] and got["a"]["a"] is got["b"]["b"]


@pytest.mark.parametrize("raw", [b"(cnumpy\nndarray\nl.", b"}cnumpy\nndarray\nNs."])
def test_pickles_of_classes_in_containers(raw):
    assert not attempt(raw)


def test_changed_pickles():
    """Each is read as something, or refused; nothing else happens, and memory stays small."""
    raw = pickle.dumps({b"data": np.arange(12, dtype=np.uint8).reshape(3, 4), b"labels": [1, 2]}, 2)
    tracemalloc.start()
    for i in range(len(raw)):
        for byte in [*range(0, 256, 5), raw[i] ^ 1, raw[i] ^ 0x80]:
            attempt(raw[:i] + bytes([byte]) + raw[i + 1 :])
        for piece in (raw[:i], raw[:i] + raw[i + 1 :], raw[:i] + raw[i:] * 2):
            attempt(piece)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def attempt(raw):
    try:
        pickles.loads(raw)
    except ValueError:
        return False
    return True


def test_pickles_that_state_large_sizes():
    many = struct.pack("<I", 2**31 - 1)
    nested = b"\x80\x02" + b"]q\0" + b"h\0h\0\x86q\0" * 50000 + b"."
    bombs = [
        b"\x80\x02T" + many + b"x.",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"x.",
        b"\x80\x05\x96" + struct.pack("<Q", 2**60) + b"x.",
        b"\x80\x02Nr" + many + b".",
        b"\x80\x02\x8b" + many + b"x.",
        b"(" * 100000 + b".",
        b"}" + nested[2:-1] + b"Ns.",
        b"I" + b"9" * 100000 + b"\n.",
    ]
    tracemalloc.start()
    for raw in bombs:
        attempt(raw)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    assert not attempt(bombs[0]) and not attempt(bombs[1]) and attempt(bombs[3])


def test_instructions_are_pickles_own():
    known = {one.name for one in pickletools.opcodes}
    mine = {*pickles._VALUES, *pickles._STEPS, *pickles._CONSTANTS, *pickles._EMPTY}
    assert mine <= known


# ---- CSV -----------------------------------------------------------------------------------------


def read(tmp_path, text, **how):
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return data.read_csv(tmp_path / "a.csv", **how)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_round_trip(tmp_path, dtype):
    table = RNG.standard_normal((20, 5)).astype(dtype)
    table[3] = [np.inf, -np.inf, np.nan, 0, 1e-30]
    text = "\n".join(",".join(map(repr, row)) for row in table.tolist())
    got = read(tmp_path, text, dtype=dtype)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, table)


def test_forms_of_tables(tmp_path):
    want = [[1, 2], [3, 4]]
    assert read(tmp_path, "1,2\r\n3,4\r\n").tolist() == want
    assert read(tmp_path, '\ufeff"1", 2 \n\n3,"4"').tolist() == want
    assert read(tmp_path, "a,b\n1,2\n3,4\n", header=True).tolist() == want
    assert read(tmp_path, "1\t9\t2\n3\t9\t4", delimiter="\t", columns=[0, 2]).tolist() == want
    assert read(tmp_path, "1,2\n3,4", columns=(1, 0)).tolist() == [[2, 1], [4, 3]]
    assert read(tmp_path, "1,\n3,4", missing=2).tolist() == want
    assert np.isnan(read(tmp_path, "1,\n3,4", missing=np.nan)[0, 1])
    big = read(tmp_path, f"{2**63 - 1},{-(2**63)}", dtype=np.int64)
    assert big.tolist() == [[2**63 - 1, -(2**63)]] and big.dtype == np.int64
    assert read(tmp_path, "").shape == (0, 0)
    assert read(tmp_path, "a,b", header=True, columns=[0]).shape == (0, 1)
    assert read(tmp_path, "1,2", dtype="int32").flags.writeable


@pytest.mark.parametrize(
    "text, how, error",
    [
        ("a,b\n1,2", {}, r"line 1: got 'a' in column 0, want a number of float32; header=True"),
        ("1,2\n3,x", {}, "line 2: got 'x' in column 1"),
        ("1,2\n3", {}, "line 2: has 1 fields, want 2"),
        ("1,2\n3,", {}, "line 2: got '' in column 1"),
        ("1_0", {}, "got '1_0'"),
        ("1.5", {"dtype": "int32"}, "got '1.5' in column 0, want a number of int32"),
        (f"{2**31}", {"dtype": "int32"}, "want a number of int32"),
        (f"{2**63}", {"dtype": "int64"}, "want a number of int64"),
        ("9" * 5000, {"dtype": "int64"}, "want a number of int64"),
        ("1e39", {}, "got '1e39' in column 0, want a number of float32"),
        ("1,-1e400", {"dtype": "float64"}, "got '-1e400' in column 1, want a number of float64"),
        ("1,2", {"columns": [2]}, "line 1: has 2 fields, but column 2 is wanted"),
        (b"1,\xff", {}, "utf-8"),
        (b"1,\0", {}, "read_csv"),
        ('1,"2', {}, "read_csv"),
        ("1" * 200000, {}, "field larger than field limit"),
    ],
)
def test_damaged_tables(tmp_path, text, how, error):
    with pytest.raises(CheckpointError, match=error) as caught:
        read(tmp_path, text, **how)
    assert str(tmp_path / "a.csv") in str(caught.value)


def test_wrong_arguments_of_tables(tmp_path):
    wrong = {
        "delimiter": ["", ",,", None, 3, '"', "\n"],
        "header": [1, None],
        "columns": [[], 3, "ab", [-1], [1.5], [None]],
        "missing": ["x", [1], True],
        "dtype": ["int8", "text", None, object, 3],
    }
    for name, values in wrong.items():
        for value in values:
            # What is no number at all is refused by the annotation of a flag.
            said = "header: got None" if (name, value) == ("header", None) else f".*{name}"
            with pytest.raises((TypeError, ValueError), match=f"read_csv: {said}"):
                read(tmp_path, "1,2", **{name: value})
    for value in (1.5, np.nan, 2**40, np.inf):
        with pytest.raises(ValueError, match="read_csv: got missing"):
            read(tmp_path, "1,2", missing=value, dtype="int32")
    for value in (1e39, 10**400):
        with pytest.raises(ValueError, match="read_csv: got missing 10*e?.*, want a value of"):
            read(tmp_path, "1,2", missing=value)
    assert np.isinf(read(tmp_path, "1,\n-Infinity,+inf", missing=np.inf)).sum() == 3
    most = np.finfo("float32").max
    assert read(tmp_path, "3.402823466385288599e38")[0, 0] == most  # rounded down
