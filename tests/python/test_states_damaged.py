"""Damaged and crafted files of states: loaded exactly, or refused by CheckpointError with the model
unchanged."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from archives import described, npy, same, small, states, values, zipped
from singa_rs import CheckpointError
from singa_rs.tensor import Tensor


@pytest.fixture
def saved(tmp_path):
    """A model whose values differ from those in a file, the file, and its values."""
    path, net = tmp_path / "states.zip", small()
    net.save_states(path, {"epoch": Tensor(data=np.int32([3])), "mask": Tensor(data=[True])})
    held = values(net)
    for one in net.get_states().values():
        one.set_value(7.0)
    return net, path, held


def attempt(net, path, held):
    """Loads a file that may be damaged: the model gets the file's values, or stays unchanged."""
    before = values(net)
    try:
        auxiliary = net.load_states(path)
    except CheckpointError as error:
        assert str(path) in str(error)
        same(values(net), before)
        return False
    same(values(net), held)
    assert {name: t.tolist() for name, t in auxiliary.items()} == {"epoch": [3], "mask": [True]}
    for one in net.get_states().values():
        one.set_value(7.0)
    return True


@pytest.mark.parametrize("start", range(5))
def test_bytes_that_were_changed(saved, start):
    net, path, held = saved
    raw = path.read_bytes()
    for i in range(start, len(raw), 5):
        for byte in (raw[i] ^ 0xFF, raw[i] ^ 1):
            path.write_bytes(raw[:i] + bytes([byte]) + raw[i + 1 :])
            attempt(net, path, held)


def test_runs_of_bytes_that_were_changed(saved):
    net, path, held = saved
    raw, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        start = int(rng.integers(len(raw)))
        piece = rng.bytes(int(rng.integers(1, 40)))
        path.write_bytes((raw[:start] + piece + raw[start + len(piece) :])[: len(raw)])
        attempt(net, path, held)


def test_files_that_end_early(saved):
    net, path, held = saved
    raw = path.read_bytes()
    for length in range(0, len(raw), 3):
        path.write_bytes(raw[:length])
        assert not attempt(net, path, held)


@pytest.mark.parametrize("more", [b"x", b"\0" * 512, b"PK\5\6" + bytes(18), b"y" * 70000])
def test_files_with_more_than_their_own(saved, more):
    net, path, held = saved
    raw = path.read_bytes()
    for changed in (raw + more, more + raw, raw + raw):
        path.write_bytes(changed)
        assert not attempt(net, path, held)


def test_pieces_that_were_taken_out_or_doubled(saved):
    net, path, held = saved
    raw = path.read_bytes()
    for start in range(0, len(raw), 37):
        for length in (1, 11, 200):
            path.write_bytes(raw[:start] + raw[start + length :])
            assert not attempt(net, path, held)
            path.write_bytes(raw[: start + length] + raw[start:])
            attempt(net, path, held)


# ---- the attributes ------------------------------------------------------------------------------

ONE = {"first.b": np.ones(3, np.float32)}
GOOD = {"state_type": 0, "shape": [3], "dtype": 0}


def refused(path, match=r"states\.zip"):
    net = small()
    before = values(net)
    with pytest.raises(CheckpointError, match=match):
        net.load_states(path)
    same(values(net), before)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"3", b"null", b'"x"', b"\xff\xfe", b"{" * 100_000, b"[" * 100_000,
        b'{"first.b": []}', b'{"first.b": null}', b'{"first.b": {}}', b"1" * 5000,
        json.dumps({"first.b": GOOD})[:-1] + ', "first.b": {}}',
        *(
            json.dumps({"first.b": {**GOOD, key: value}})
            for key, wrongs in {
                "state_type": [2, -1, None, "0", True, 0.0, [0]],
                "shape": [None, 3, "3", [3.0], ["3"], [True], [-3], [None], [[3]], {"3": 3},
                          [float("nan")], [2**64], [1e400], [4], [], [3, 1], [1] * 100],
                "dtype": [3, -1, None, "float8", "Tensor", "abs", [0], {}, True, 0.0, "<f4",
                          "__class__", "bool_", "object"],
            }.items()
            for value in wrongs
        ),
    ],
)  # fmt: skip
def test_attributes_that_say_something_else(tmp_path, text):
    path = tmp_path / "states.zip"
    states(path, ONE, text)
    refused(path)


def test_arrays_of_another_type_are_converted(tmp_path):
    path, net = tmp_path / "states.zip", small()
    aside = {"state_type": 1, "shape": [2], "dtype": 2}
    arrays = {"first.b": np.full(3, 0.5), "aside": np.float64([3, 4])}
    states(path, arrays, {"first.b": GOOD, "aside": aside})
    with pytest.warns(UserWarning, match="only in the model"):
        auxiliary = net.load_states(path)
    assert net.first.b.tolist() == [0.5] * 3
    assert auxiliary["aside"].tolist() == [3, 4] and auxiliary["aside"].dtype.name == "int32"
    states(path, {**arrays, "aside": np.float64([3, 4.5])}, {"first.b": GOOD, "aside": aside})
    refused(path, "aside")


def test_attributes_that_take_too_much(tmp_path):
    path = tmp_path / "states.zip"
    states(path, ONE, json.dumps({"first.b": GOOD}) + " " * (17 << 20))
    refused(path, "at most")


# ---- the arrays ----------------------------------------------------------------------------------


def head(text, version=(1, 0)):
    text = text.encode()
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text


DATA = np.ones(3, "<f4").tobytes()
PLAIN = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"


@pytest.mark.filterwarnings("ignore:.*only in the model")
@pytest.mark.parametrize(
    "member",
    [
        b"", b"\x93NUMPY", b"x" * 200, head(PLAIN) + DATA[:-1], head(PLAIN) + DATA + b"x",
        head(PLAIN, (9, 9)) + DATA, head(PLAIN[:-3]) + DATA, head("") + DATA, head("3") + DATA,
        head(PLAIN.replace("(3,)", "(-3,)")) + DATA,
        head(PLAIN.replace("(3,)", "3")) + DATA,
        head(PLAIN.replace("(3,)", "(3.0,)")) + DATA,
        head(PLAIN.replace("(3,)", "(4,)")) + DATA,
        head(PLAIN.replace("(3,)", f"({2**62}, {2**62})")) + DATA,
        head(PLAIN.replace("<f4", "|O")) + DATA,
        head(PLAIN.replace("<f4", "<f16")) + DATA * 4,
        head(PLAIN.replace("<f4", "<c8")) + DATA * 2,
        head(PLAIN.replace("<f4", "<M8[s]")) + DATA * 2,
        head(PLAIN.replace("<f4", "<U1")) + DATA,
        head(PLAIN.replace("<f4", "V4")) + DATA,
        head(PLAIN.replace("'<f4'", "[('a', '<f4')]")) + DATA,
        head(PLAIN.replace("'<f4'", "'no type'")) + DATA,
        head(PLAIN.replace("'<f4'", "(" * 300 + ")" * 300)) + DATA,
        head(PLAIN.replace("False", "2")) + DATA,
        head(PLAIN + " " * 60000) + DATA,
        npy(np.array([{}, 1, None], object), allow_pickle=True),
        npy(np.array([1e300] * 3)),
        npy(np.array(["a", "b", "c"])),
    ],
)  # fmt: skip
def test_arrays_that_are_none(tmp_path, member):
    path = tmp_path / "states.zip"
    states(path, ONE, members=[("first.b.npy", member)])
    refused(path)


def test_truth_values_that_are_none(tmp_path):
    path = tmp_path / "states.zip"
    raw = npy(np.ones(3, np.bool_))[:-3] + b"\1\2\1"
    attributes = {"first.b": GOOD, "mask": {"state_type": 1, "shape": [3], "dtype": "bool"}}
    states(path, {}, attributes, [("first.b.npy", npy(ONE["first.b"])), ("mask.npy", raw)])
    refused(path, "mask")


GOOD_MEMBER = ("first.b.npy", npy(ONE["first.b"]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "members",
    [
        [],
        [GOOD_MEMBER, GOOD_MEMBER],
        [GOOD_MEMBER, ("more.npy", npy(np.ones(1)))],
        [GOOD_MEMBER, ("first.b", b"")],
        [("first.b", GOOD_MEMBER[1])],
        [("FIRST.B.npy", GOOD_MEMBER[1])],
        b"",
        b"no zip",
        npy(np.ones(3, np.float32)),
        zipped([GOOD_MEMBER])[:-1],
        zipped([GOOD_MEMBER]) + b"\0",
        zipped([GOOD_MEMBER], zipfile.ZIP_BZIP2),
        zipped([GOOD_MEMBER], zipfile.ZIP_LZMA),
    ],
)
def test_members_that_are_not_the_attributes(tmp_path, members):
    path = tmp_path / "states.zip"
    states(path, ONE, members=members)
    refused(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_the_file_itself(tmp_path):
    path = tmp_path / "states.zip"
    arrays = ("tensor_dict.npz", zipped([GOOD_MEMBER]))
    attributes = ("states_attr.json", json.dumps({"first.b": GOOD}))
    for members in (
        [arrays], [attributes], [arrays, attributes, attributes], [arrays, arrays, attributes],
        [("TENSOR_DICT.NPZ", arrays[1]), attributes], [(arrays[0], b""), attributes],
    ):  # fmt: skip
        path.write_bytes(zipped(members))
        refused(path)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path.write_bytes(zipped([arrays, attributes], method))
        refused(path)


def test_encrypted_members(tmp_path):
    path = tmp_path / "states.zip"
    states(path, ONE)
    raw = bytearray(path.read_bytes())
    for place in (raw.rfind(b"PK\1\2"), raw.find(b"PK\1\2")):
        changed = bytearray(raw)
        changed[place + 8] |= 1
        path.write_bytes(changed)
        refused(path, "encrypted")


# ---- sizes ---------------------------------------------------------------------------------------


def test_sizes_beyond_the_compression_limit(tmp_path):
    """Compressed twice, 64 MiB of zeros take a few kilobytes."""
    path, count = tmp_path / "states.zip", 1 << 24
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as inner:
        with inner.open("big.npy", "w", force_zip64=True) as stream:
            text = {"descr": "<f4", "fortran_order": False, "shape": (count,)}
            np.lib.format.write_array_header_1_0(stream, text)
            for _ in range(count * 4 >> 24):
                stream.write(bytes(1 << 24))
    members = [("first.b.npy", npy(ONE["first.b"]))]
    for kind in (0, 1):
        big = {"state_type": kind, "shape": [count], "dtype": 0}
        states(path, {}, {"first.b": GOOD, "big": big}, body.getvalue())
        assert path.stat().st_size < 10_000
        tracemalloc.start()
        refused(path, "can hold")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()
    states(path, {}, {"first.b": {**GOOD, "shape": [count]}}, body.getvalue())
    refused(path, "has shape")
    states(path, {}, {"first.b": GOOD}, body.getvalue())
    refused(path, "more than its arrays need")
    states(path, {}, {"first.b": GOOD}, members)
    with pytest.warns(UserWarning, match="only in the model"):
        small().load_states(path)


@pytest.mark.parametrize("rows, error", [(4096, None), (65536, "unpack to .* not the model's")])
def test_zeros_that_pack_well(tmp_path, rows, error):
    """As SINGA writes them: small ones are loaded, but no weights pack like large ones."""
    path, net = tmp_path / "states.zip", small()
    zeros = np.zeros((rows, 1024), np.float32)
    states(path, {**values(net), "zeros": zeros}, auxiliary=("zeros",))
    assert path.stat().st_size < zeros.nbytes // 500
    if error is None:
        assert net.load_states(path)["zeros"].shape == zeros.shape
        return
    del zeros
    tracemalloc.start()
    refused(path, error)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_sizes_that_only_the_directory_states(tmp_path):
    path = tmp_path / "states.zip"
    states(path, ONE)
    raw = path.read_bytes()
    directory = raw.find(b"PK\1\2")
    for place in (directory, raw.find(b"PK\1\2", directory + 4)):
        for offset in (20, 24):
            for size in (0, 1, 2**31, 2**32 - 2):
                changed = bytearray(raw)
                changed[place + offset : place + offset + 4] = struct.pack("<I", size)
                path.write_bytes(changed)
                refused(path)


def test_members_that_lie_over_each_other(tmp_path):
    path = tmp_path / "states.zip"
    names = [f"s{i}" for i in range(50)]
    arrays = {name: np.zeros(100, np.float32) for name in names}
    inner = bytearray(zipped([(f"{names[0]}.npy", npy(arrays[names[0]]))], zipfile.ZIP_STORED))
    start = inner.find(b"PK\1\2")
    entry, end = inner[start:-22], inner[-22:]
    entries = b"".join(entry.replace(b"s0.npy", f"{n}.npy".encode()) for n in names[:10])
    end[8:12], end[12:16] = struct.pack("<HH", 10, 10), struct.pack("<I", len(entries))
    attributes = described({name: arrays[name] for name in names[:10]}, names)
    states(path, {}, attributes, bytes(inner[:start] + entries + end))
    refused(path)


def test_a_directory_that_takes_too_much(tmp_path):
    path = tmp_path / "states.zip"
    states(path, ONE, members=[GOOD_MEMBER, *((f"{'x' * 100}{i}", b"") for i in range(100))])
    refused(path)


def test_more_than_the_memory_that_is_available(tmp_path, monkeypatch):
    from singa_rs.module.archive import reading

    class Full:
        def available(self):
            return 1000

    path, net = tmp_path / "states.zip", small()
    net.save_states(path, {"big": Tensor((300,))})
    before = values(net)
    monkeypatch.setattr(reading.device, "get_default_device", Full)
    with pytest.raises(CheckpointError, match="1000 are available"):
        net.load_states(path)
    same(values(net), before)
