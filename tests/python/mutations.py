"""Files of states that were changed at random, and the files that these began as.

python tests/python/mutations.py    # writes the files in tests/python/seeds
"""

import io
import resource
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
from snapshots import record, records

SEEDS = Path(__file__).parent / "seeds"
#: Numbers that sizes, offsets and lengths are replaced by.
NUMBERS = [0, 1, 2, 3, 7, 127, 128, 255, 1 << 15, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 62]
#: Pieces that mean something to one of the formats.
PIECES = [
    b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\7", b"\x93NUMPY", b"{", b"}", b"[" * 2000,
    b'{"a":' * 2000, b'"shape":[9223372036854775807]', b'"data_offsets":[0,18446744073709551615]',
    b"../", b"/etc/passwd", b"1e999", b"NaN", b"-1", b"null", b'"__metadata__":{}',
    b"\xff" * 9 + b"\x01", b"\x80" * 12, b"\0" * 64, b"\x08\x01", b"\x4a\x00", b"first.b",
    b"\\ud800",
]  # fmt: skip


def peak():
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def mutated(raw, rng):
    """Bytes with a few changes."""
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        if not data:
            break
        data = _CHANGES[int(rng.integers(len(_CHANGES)))](data, int(rng.integers(len(data))), rng)
    return bytes(data)


def _flip(data, at, rng):
    data[at] ^= 1 << int(rng.integers(8))
    return data


def _replace(data, at, rng):
    data[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))
    return data


def _number(data, at, rng):
    width = int(rng.choice([1, 2, 4, 8]))
    value = int(rng.choice(NUMBERS)) + int(rng.integers(-1, 2))
    made = (value % (1 << 8 * width)).to_bytes(width, "little")
    return data[:at] + made + data[at + width :]


def _digits(data, at, rng):
    """Replaces a number that is written out."""
    places = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data
    start = stop = places[int(rng.integers(len(places)))]
    while stop < len(data) and 48 <= data[stop] <= 57:
        stop += 1
    return data[:start] + str(int(rng.choice(NUMBERS))).encode() + data[stop:]


def _cut(data, at, rng):
    return data[:at] + data[at + int(rng.integers(1, 40)) :]


def _end(data, at, rng):
    return data[:at]


def _double(data, at, rng):
    length = int(rng.integers(1, 80))
    return data[: at + length] + data[at:]


def _insert(data, at, rng):
    return data[:at] + PIECES[int(rng.integers(len(PIECES)))] + data[at:]


def _overwrite(data, at, rng):
    piece = PIECES[int(rng.integers(len(PIECES)))]
    return data[:at] + piece + data[at + len(piece) :]


def _noise(data, at, rng):
    piece = rng.bytes(int(rng.integers(1, 30)))
    return data[:at] + piece + data[at + len(piece) :]


_CHANGES = [
    _flip, _replace, _number, _digits, _cut, _end, _double, _insert, _overwrite, _noise
]  # fmt: skip


def mutated_inside(raw, rng):
    """A zip file that is right, of whose members one, or one of that one's, was changed."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = [(one, archive.read(one)) for one in archive.infolist()]
    at = int(rng.integers(len(members)))
    info, content = members[at]
    inner = mutated_inside if content[:2] == b"PK" and rng.random() < 0.7 else mutated
    if rng.random() < 0.1:
        info.filename = ["../x.npy", "/x", "x/../y.npy", "a\nb"][int(rng.integers(4))]
    members[at] = info, inner(content, rng)
    if rng.random() < 0.1:
        members.append(members[int(rng.integers(len(members)))])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        for one, content in members:
            archive.writestr(one.filename, content, one.compress_type)
    return made.getvalue()


def mutated_header(raw, rng):
    """A safetensors file whose header was changed, and whose length is right."""
    (length,) = struct.unpack("<Q", raw[:8])
    header = mutated(raw[8 : 8 + length], rng)
    return struct.pack("<Q", len(header)) + header + raw[8 + length :]


def mutated_message(raw, rng):
    """A snapshot of which one message was changed, and whose lengths are right."""
    members = [[name, one.SerializeToString()] for name, one in records(raw).items()]
    one = members[int(rng.integers(len(members)))]
    one[1] = mutated(one[1], rng)
    return b"".join(record(*one) for one in members)


def write():
    """Writes the files that mutations begin as."""
    import onnx
    from archives import small, states
    from onnx import helper, numpy_helper
    from safetensors.numpy import save_file
    from singa_rs import snapshot
    from singa_rs.module.checkpoint import onnx_writing
    from singa_rs.tensor import Tensor

    SEEDS.mkdir(exist_ok=True)
    net = small()
    arrays = {name: one.to_numpy() for name, one in net.get_states().items()}
    net.save_states(SEEDS / "stored.zip", {"epoch": Tensor(data=np.int32([3]))})
    states(SEEDS / "deflated.zip", {**arrays, "epoch": np.int32([3])}, auxiliary=("epoch",))
    np.savez(SEEDS / "stored.npz", **arrays)
    np.savez_compressed(SEEDS / "deflated.npz", **arrays)
    save_file(arrays, SEEDS / "states.safetensors", {"by": "a test"})
    graph = helper.make_graph(
        [helper.make_node("Identity", ["first.W"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(a, name) for name, a in list(arrays.items())[:-1]]
        + [helper.make_tensor("last.b", 1, [2], arrays["last.b"])],
    )
    onnx.save(helper.make_model(graph), SEEDS / "states.onnx")
    numbers = Tensor(data=np.int32([[1, -1, 300], [0, 127, 1 << 30]]))
    precise = Tensor(data=np.arange(3) / 7, dtype="float64")
    snapshot.save(SEEDS / "snapshot", {**net.get_states(), "n": numbers, "p": precise})
    (SEEDS / "snapshot.desc").unlink()  # which nobody reads
    held = {"epoch": 3, "list": [1.5, None, ("a", {"b": arrays["first.b"]})], "t": net.first.b}
    net.save(SEEDS / "net", held)
    onnx_writing.EMBEDDED = 0
    net.save(SEEDS / "apart", held)


if __name__ == "__main__":
    write()
