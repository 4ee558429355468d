"""Data files, batches, metrics and the losses without a tape."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest
from singa_rs import CheckpointError, ShapeError, data, loss, metric
from singa_rs.tensor import Tensor

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def idx(array, code):
    head = struct.pack(">HBB", 0, CODES[code], array.ndim)
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(f">{code}").tobytes()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx(tmp_path, code, pack):
    array = np.arange(24).reshape(2, 3, 4).astype(code)
    (tmp_path / "a").write_bytes(pack(idx(array, code)))
    read = data.read_idx(tmp_path / "a")
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        idx(np.zeros((2, 3)), "u1")[:-1],
        idx(np.zeros((2, 3)), "u1") + b"x",
        idx(np.zeros((2, 3)), "u1")[:6],
        gzip.compress(idx(np.zeros((2, 3)), "u1"), mtime=0)[:-9],
        struct.pack(">HBB3I", 0, 8, 3, 2**31, 2**31, 2**31),
    ],
)
def test_damaged_idx(tmp_path, raw):
    (tmp_path / "a.idx").write_bytes(raw)
    with pytest.raises(ValueError, match=r"a\.idx"):
        data.read_idx(tmp_path / "a.idx")


def test_mnist_folder(tmp_path):
    rng = np.random.default_rng(0)
    for part, count in (("train", 5), ("t10k", 3)):
        images = rng.integers(0, 256, (count, 4, 4)).astype("u1")
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images, "u1")))
        (tmp_path / f"{part}-labels.idx1-ubyte").write_bytes(idx(np.arange(count), "u1"))
    x, y, test_x, test_y = data.load_mnist(tmp_path)
    assert x.shape == (5, 1, 4, 4) and x.dtype == np.float32 and 0 <= x.min() <= x.max() <= 1
    np.testing.assert_array_equal(test_x[:, 0], images.astype(np.float32) / 255)
    assert y.dtype == np.int32 and list(test_y) == [0, 1, 2]
    (tmp_path / "t10k-labels.idx1-ubyte").write_bytes(idx(np.arange(4), "u1"))
    with pytest.raises(ValueError, match="t10k"):
        data.load_mnist(tmp_path)
    (tmp_path / "t10k-labels.idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="t10k-labels"):
        data.load_mnist(tmp_path)


def test_batches():
    x, y = np.arange(10), np.arange(10) * 2
    got = list(data.batches(x, y, size=4))
    assert [len(a) for a, _ in got] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate([a for a, _ in got]), x)
    got = list(data.batches(x, y, size=4, rng=np.random.default_rng(0), partial=False))
    assert [len(a) for a, _ in got] == [4, 4] and all((a * 2 == b).all() for a, b in got)
    assert list(got[0][0]) != [0, 1, 2, 3]
    for arrays, size in (((x, y[:3]), 2), ((x,), 0), ((), 2)):
        with pytest.raises(ValueError, match="batches"):
            data.batches(*arrays, size=size)


def test_metrics():
    x = np.float32([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [np.nan, 0.1, 0.2]])
    y = np.int32([1, 2, 0])
    assert list(metric.Accuracy().forward(Tensor(data=x), Tensor(data=y))) == [1, 0, 0]
    assert metric.Accuracy(2).evaluate(x, y[:, None]) == pytest.approx(2 / 3)
    truth = np.int32([[1, 1, 0], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(metric.Precision(2).forward(x, truth), [0.5, 0, 0])
    np.testing.assert_allclose(metric.Recall(2).forward(x, truth), [0.5, 0, 0])
    with pytest.raises(ShapeError, match="Accuracy"):
        metric.Accuracy().forward(x, y[:2])
    with pytest.raises(ValueError, match="no rows"):
        metric.Accuracy().evaluate(x[:0], y[:0])
    with pytest.raises(ValueError, match="top_k"):
        metric.Precision(0)


def test_losses_without_a_tape():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 3)).astype(np.float32), np.int32([0, 2, 1, 1])
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    entropy = loss.SoftmaxCrossEntropy()
    want = -np.log(p[range(4), y]).mean()
    assert entropy.evaluate(True, Tensor(data=x), Tensor(data=y)) == pytest.approx(want, rel=1e-5)
    np.testing.assert_allclose(
        entropy.backward().to_numpy(), (p - np.eye(3)[y]) / 4, rtol=1e-4, atol=1e-6
    )
    with pytest.raises(RuntimeError, match="forward"):
        entropy.backward()
    squared, t = loss.SquaredError(), rng.standard_normal((4, 3)).astype(np.float32)
    value = squared.forward(True, Tensor(data=x), Tensor(data=t))
    np.testing.assert_allclose(value.to_numpy(), [((x - t) ** 2).sum() / 8], rtol=1e-5)
    np.testing.assert_allclose(squared.backward().to_numpy(), (x - t) / 4, rtol=1e-5)


# ---- damaged files -------------------------------------------------------------------------------


def attempt(path, raw, array):
    """Reads a file that may be damaged: it yields exactly these values, or is refused."""
    path.write_bytes(raw)
    try:
        read = data.read_idx(path)
    except CheckpointError as error:
        assert str(path) in str(error)
        return False
    return read.dtype == array.dtype and np.array_equal(read, array)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files_that_were_changed(tmp_path, pack):
    array = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
    raw, path = pack(idx(array, "u1")), tmp_path / "a"
    for i in range(len(raw)):
        for byte in (0, 255, raw[i] ^ 1, raw[i] ^ 0x80):
            attempt(path, raw[:i] + bytes([byte]) + raw[i + 1 :], array)
        assert not attempt(path, raw[:i], array)
        for piece in (b"", raw[i:] + raw[i:], raw[i + 1 :]):
            attempt(path, raw[:i] + piece, array)
    for more in (b"x", b"PK", bytes(20) + b"x"):
        assert not attempt(path, raw + more, array) and not attempt(path, more + raw, array)


@pytest.mark.parametrize("rank", [0, 1, 3, 64, 65, 255])
def test_idx_heads_that_say_too_much(tmp_path, rank):
    for size in (2**31, 2**32 - 1):
        head = struct.pack(f">HBB{rank}I", 0, 8, rank, *[size] * rank)
        for raw in (head, head + bytes(100)):
            assert not attempt(tmp_path / "a", raw, np.zeros(0))
            assert not attempt(tmp_path / "a", gzip.compress(raw), np.zeros(0))


def test_idx_sizes_are_checked_before_unpacking(tmp_path):
    """64 MiB of zeros compressed twice, and a file that unpacks to more than its header states."""
    count = 1 << 26
    packed = gzip.compress(struct.pack(">HBBI", 0, 8, 1, count) + bytes(count), 1)
    head = struct.pack(">HBBI", 0, 8, 1, 10)
    wrong = [gzip.compress(packed), gzip.compress(head + bytes(count), 1)]
    wrong.append(gzip.compress(struct.pack(">HBBI", 0, 8, 1, count)))
    tracemalloc.start()
    for raw in wrong:
        assert not attempt(tmp_path / "a", raw, np.zeros(0))
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert attempt(tmp_path / "a", packed, np.zeros(count, np.uint8))


def test_mnist_of_other_types(tmp_path):
    def write(images, labels):
        for part in ("train", "t10k"):
            (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(images)
            (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(labels)

    images, labels = np.zeros((2, 3, 3)), np.zeros(2)
    write(idx(images, "u1"), idx(labels, "i4"))
    data.load_mnist(tmp_path)
    for wrong in ((idx(images, "f4"), idx(labels, "u1")), (idx(images, "u1"), idx(labels, "f4"))):
        write(*wrong)
        with pytest.raises(ValueError, match="want bytes and integers"):
            data.load_mnist(tmp_path)


def test_wrong_batches():
    x = np.arange(4)
    for wrong in (3, None, "text", [1, 2, 3, 4], np.float32(1)):
        with pytest.raises(TypeError, match="batches: got"):
            data.batches(x, wrong, size=2)
    for size in (None, 1.5, "2", True):
        with pytest.raises(TypeError, match="batches: got size"):
            data.batches(x, size=size)
    with pytest.raises(TypeError, match="batches: got rng"):
        data.batches(x, size=2, rng=3)


EXTREME = {
    "uint8": np.array([[3, 200, 0], [255, 0, 254], [7, 7, 8]], np.uint8),
    "int8": np.array([[-128, 127, 0], [-128, -127, -128], [1, -128, 1]], np.int8),
    "int64": np.array([[2**53, 2**53 + 1, 0], [-(2**63), 2**63 - 1, 0], [5, 5, 5]]),
    "uint64": np.array([[2**64 - 1, 2**64 - 2, 0], [0, 1, 2**63], [1, 1, 0]], np.uint64),
    "bool": np.array([[True, False, True], [False, False, True], [False, False, False]]),
    "float16": np.array([[-np.inf, 65504, 0], [-0.0, 0.0, -1], [np.inf, np.nan, 1]], np.float16),
}


@pytest.mark.parametrize("dtype", EXTREME)
@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_metrics_of_extreme_scores(dtype, top_k):
    """Against Python's own sorting, which is stable and compares numbers of any size."""
    x = EXTREME[dtype]
    scores = [[-np.inf if v != v else v for v in row] for row in x.tolist()]
    best = [sorted(range(3), key=lambda i, row=row: row[i], reverse=True) for row in scores]
    for y in range(3):
        want = [y in row[:top_k] for row in best]
        assert metric.Accuracy(top_k).forward(x, np.full(3, y)).tolist() == want
    truth = np.int32([[1, 0, 0], [0, 1, 1], [1, 1, 0]])
    hits = [sum(truth[i, j] for j in row[:top_k]) for i, row in enumerate(best)]
    got = metric.Precision(top_k).forward(x, truth)
    np.testing.assert_allclose(got, np.divide(hits, top_k), rtol=1e-6)
    np.testing.assert_allclose(metric.Recall(top_k).forward(x, truth), hits / truth.sum(1))
