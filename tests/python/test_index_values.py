"""Indices, labels, counts, shapes and axes: whole numbers of any dtype, never rounded."""

import numpy as np
import pytest
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

BROKEN = (0.7, 1.9, -0.5, np.nan, np.inf, -np.inf, 1e30)
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)


def floats(*values, dtype="float32"):
    return from_numpy(np.array(values), dtype=dtype)


def lookups(index):
    """Every operation that takes a tensor of indices or labels."""
    table = from_numpy(TABLE)
    return {
        "embedding": lambda: autograd.embedding(index, table),
        "gather": lambda: autograd.gather(table, 0, index),
        "gather of columns": lambda: autograd.gather(table, 1, index),
        "onehot": lambda: autograd.onehot(-1, index, 4),
        "scatter_elements": lambda: autograd.scatter_elements(
            from_numpy(TABLE[0]), index, tensor.ones(index.shape)
        ),
        "softmax_cross_entropy": lambda: autograd.softmax_cross_entropy(
            tensor.ones((index.numel, 3)), index
        ),
        "layer": lambda: layer.Embedding(4, 2)(index),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("name", lookups(floats(0)))
def test_broken_indices_are_refused_by_name(name, broken, dtype):
    if dtype == "float16" and broken == 1e30:
        return
    index = floats(0, broken, dtype=dtype)
    shown = {np.inf: "inf", -np.inf: "-inf", 1e30: r"1\.?000"}.get(broken, str(broken)[:2])
    with pytest.raises(ValueError, match="NaN" if np.isnan(broken) else shown):
        lookups(index)[name]()


@pytest.mark.parametrize("name", lookups(floats(0)))
def test_float_indices_do_as_integers_do(name):
    want = lookups(from_numpy(np.array([1, 0])))[name]
    if name == "layer":  # has weights of its own
        assert lookups(floats(1, 0))[name]().shape == want().shape
        return
    for dtype in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64"):
        got = lookups(floats(1, 0, dtype=dtype))[name]()
        np.testing.assert_array_equal(got.to_numpy(), want().to_numpy())


@pytest.mark.parametrize("indices", [[1.9], [np.nan], np.array([0.5]), [[1.0], [1.5]]])
def test_broken_indices_in_lists(indices):
    table = from_numpy(TABLE)
    with pytest.raises(ValueError, match="integer"):
        autograd.gather(table, 0, indices)
    with pytest.raises(ValueError, match="integer"):
        autograd.onehot(0, indices, 3)


def test_large_indices_are_not_rounded():
    """2**24 + 1 is not a float32: neither an array nor a list may be converted to one."""
    far = 2**24 + 1
    for indices in ([far], np.array([far]), np.array([float(far)]), [2**40], np.array([2**40])):
        with pytest.raises(ValueError, match=f"{int(np.asarray(indices)[0])} is out of range"):
            autograd.gather(from_numpy(TABLE), 0, indices)


def test_bools_are_refused_as_indices():
    table, flags = from_numpy(TABLE), from_numpy(np.array([True, False]))
    for indices in (flags, [True, False]):
        with pytest.raises(TypeError):
            autograd.gather(table, 0, indices)
    with pytest.raises(TypeError):
        autograd.embedding(flags, table)


class Step(module.Module):
    """Uses an argument as indices, and trains on what it looks up."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.table = Tensor(data=TABLE.copy())
        self.table.stores_grad = True
        self.optimizer = opt.SGD(lr=0.1)

    def forward(self, index):
        if self.name == "gather":
            return autograd.gather(self.table, 0, index)
        if self.name == "embedding":
            return autograd.embedding(index, self.table)
        if self.name == "onehot":
            return autograd.matmul(autograd.onehot(-1, index, 4), self.table)
        column = autograd.scatter_elements(self.table[:, 0], index, tensor.ones((2,)))
        return autograd.mul(column, column)

    def train_one_batch(self, index):
        out = self.forward(index)
        loss = autograd.reduce_sum(autograd.mul(out, out))
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", ["gather", "embedding", "onehot", "scatter_elements"])
def test_a_replay_looks_at_indices_before_it_starts(name, dtype):
    step = Step(name)
    index = floats(0, 1, dtype=dtype)
    step.compile([index], is_train=True, use_graph=True)
    for i in range(5):
        step(floats(i % 3, 3, dtype=dtype))
    assert step.graphs[0].runs > 0
    before, count = step.table.to_numpy(), step.optimizer.step_counter.item()
    broken = [1.5, np.nan] if dtype == "float32" else []
    for bad in [*broken, *([] if name == "onehot" else [7, -9])]:
        with pytest.raises(ValueError, match="integer|out of range"):
            step(floats(0, bad, dtype=dtype))
        np.testing.assert_array_equal(step.table.to_numpy(), before)
        assert step.optimizer.step_counter.item() == count


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
#: Calls that take an integer, each with a valid one.
COUNTS = {
    "reshape": (lambda x, n: x.reshape((n, 12)), 2),
    "reshape of ONNX": (lambda x, n: autograd.reshape(x, [n, -1]), 2),
    "expand": (lambda x, n: autograd.expand(x, [n, 2, 3, 4]), 2),
    "zeros": (lambda x, n: tensor.zeros((n, 2)), 3),
    "full of one extent": (lambda x, n: tensor.full(n, 1.0), 3),
    "Tensor": (lambda x, n: Tensor((n,)), 3),
    "sum": (lambda x, n: x.sum(n), 1),
    "mean of several": (lambda x, n: x.mean((0, n)), 1),
    "argmax": (lambda x, n: x.argmax(n), 1),
    "reduce_max": (lambda x, n: autograd.reduce_max(x, [n]), 1),
    "concat": (lambda x, n: autograd.cat([x, x], n), 1),
    "stack": (lambda x, n: autograd.stack([x, x], n), 1),
    "split": (lambda x, n: autograd.split(x, n, [1, 2])[0], 1),
    "split into parts": (lambda x, n: autograd.split(x, 1, [n, 1])[0], 2),
    "split into outputs": (lambda x, n: autograd.split(x, 2, None, n)[0], 2),
    "slice from": (lambda x, n: autograd.slice(x, [n], [3], [1]), 1),
    "slice to": (lambda x, n: autograd.slice(x, [0], [n], [1]), 1),
    "slice along": (lambda x, n: autograd.slice(x, [0], [1], [n]), 1),
    "slice by": (lambda x, n: autograd.slice(x, [0], [3], [1], [n]), 2),
    "squeeze": (lambda x, n: autograd.squeeze(x[:, :1], n), 1),
    "unsqueeze": (lambda x, n: autograd.unsqueeze(x, [n]), 1),
    "transpose": (lambda x, n: x.transpose((n, 0, 2)), 1),
    "flatten": (lambda x, n: autograd.flatten(x, n), 1),
    "tile": (lambda x, n: autograd.tile(x, [n, 1, 1]), 2),
    "repeat": (lambda x, n: autograd.repeat(x, n, 0), 2),
    "repeat each": (lambda x, n: autograd.repeat(x, [n, 1], 0), 2),
    "repeat along": (lambda x, n: autograd.repeat(x, 2, n), 1),
    "pad": (lambda x, n: autograd.pad(x, "constant", [n, 0, 0, 0, 0, 0]), 2),
    "upsample": (lambda x, n: autograd.upsample(x, "nearest", np.array([1, 1, n])), 2),
    "depth_to_space": (lambda x, n: autograd.depth_to_space(x.reshape((1, 4, 3, 2)), n), 2),
    "onehot depth": (lambda x, n: autograd.onehot(0, [1], n), 3),
    "onehot axis": (lambda x, n: autograd.onehot(n, [1], 3), 1),
    "constant_of_shape": (lambda x, n: autograd.constant_of_shape(floats(n, 1)), 2),
    "gather axis": (lambda x, n: autograd.gather(x, n, [0]), 1),
    "scatter axis": (
        lambda x, n: autograd.scatter_elements(
            x, np.zeros((2, 1, 4), int), tensor.ones((2, 1, 4)), n
        ),
        1,
    ),
    "softmax": (lambda x, n: autograd.softmax(x, n), 1),
    "tensordot": (lambda x, n: tensor.tensordot(x, x, ([n], [1])), 1),
    "convolution": (
        lambda x, n: autograd.conv2d(
            autograd.ConvHandle((1, 1), n), x.reshape((1, 2, 3, 4)), tensor.ones((2, 2, 1, 1))
        ),
        1,
    ),
    "padding": (
        lambda x, n: autograd.pooling_2d(autograd.PoolingHandle(3, 1, n), x.reshape((1, 2, 3, 4))),
        1,
    ),
    "element": (lambda x, n: x[0, n], 1),
    "copied elements": (lambda x, n: tensor.copy_data_to_from(Tensor((24,)), x, n), 5),
}


#: Calls in which None is a valid argument.
NONE_TOO = ("sum", "argmax", "repeat along", "split into outputs", "element")


@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_axes_are_whole(name):
    call, fits = COUNTS[name]
    x = from_numpy(X)
    want = call(x, fits)
    for same in (np.int8(fits), np.int64(fits), np.array(fits)):
        got = call(x, same)
        assert want is None or got.shape == want.shape
    for broken in (fits + 0.5, np.float32(fits - 0.25), np.nan, np.inf, "1", None, 1j * fits):
        if broken is None and name in NONE_TOO:
            continue
        with pytest.raises((TypeError, ValueError, IndexError)):
            call(x, broken)


@pytest.mark.parametrize("shape", [(), (3,), (1, 2)])
def test_onehot_along_every_axis(shape):
    indices = np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 3)
    want = np.eye(4, dtype=np.float32)[indices]
    rank = len(shape) + 1
    for axis in range(-rank, rank):
        got = autograd.onehot(axis, from_numpy(indices), 4)
        np.testing.assert_array_equal(got.to_numpy(), np.moveaxis(want, -1, axis))
    for axis in (-rank - 1, -2 * rank, rank, rank + 3):
        with pytest.raises(ValueError, match=f"onehot: got axes .{axis},."):
            autograd.onehot(axis, from_numpy(indices), 4)


def test_onehot_of_bools_and_constants_of_them():
    got = autograd.onehot(0, [1, 2], 3, [True, False])
    assert got.dtype == tensor.bool_ and got.tolist() == [
        [True, True],
        [False, True],
        [True, False],
    ]
    flags = autograd.constant_of_shape(from_numpy(np.array([2, 0, 1])), np.array([True]))
    assert flags.dtype == tensor.bool_ and flags.shape == (2, 0, 1)
    assert autograd.constant_of_shape(from_numpy(np.array([1])), 3).dtype == tensor.int32


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: autograd.onehot(0, [1], -1), "onehot: got depth -1"),
        (lambda: autograd.onehot(0, [1], np.array([3, 4])), "onehot: depth: got shape"),
        (lambda: autograd.onehot(0, [1], 3, [1.0]), "onehot: got 1 values, want two"),
        (lambda: autograd.onehot(0, [1], 3, [1.0, 2.0, 3.0]), "onehot: got 3 values"),
        (
            lambda: autograd.constant_of_shape(from_numpy(np.array([2, -1]))),
            r"constant_of_shape: got shape \(2, -1\)",
        ),
        (
            lambda: autograd.constant_of_shape(from_numpy(np.array([2])), [1, 2]),
            "constant_of_shape: value: got shape",
        ),
        (lambda: tensor.ones((-1,)), r"ones: got shape \(-1,\)"),
        (lambda: tensor.zeros((2, -3)), r"zeros: got shape \(2, -3\)"),
        (lambda: tensor.full(-1, 2.0), r"full: got shape \(-1,\)"),
        (lambda: tensor.random((-1,)), r"random: got shape \(-1,\)"),
        (lambda: tensor.ones((2**63,)), "ones: got shape .* want extents from 0"),
        (lambda: autograd.slice(from_numpy(X), [0, 1], [1]), "slice: got 2 starts, 1 ends"),
        (lambda: autograd.slice(from_numpy(X), [0], [1], steps=[1, 1]), "1 axes, 2 steps"),
        (lambda: autograd.slice(from_numpy(X), [0], [1], axes=[0, 1]), "2 axes, 1 steps"),
        (lambda: autograd.Dropout(0.5, 2**62)(from_numpy(X)), "dropout: got seed 46116"),
        (lambda: autograd.Dropout(0.5, -(2**62) - 1)(from_numpy(X)), "dropout: got seed -46"),
        (lambda: autograd.cross_entropy(floats(1.0)[0], 1.0), r"cross_entropy: got shape \(\)"),
        (
            lambda: autograd.binary_cross_entropy(floats(1.0)[0], 1.0),
            r"binary_cross_entropy: got shape \(\)",
        ),
    ],
)
def test_what_is_refused_says_which_argument(call, match):
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize(
    "axes", [(-3, 0), (0, -3), (2, 0), (-3, -4), (0, 0), (0, -2), (0,), (0, 1, 2)]
)
def test_axes_other_than_permutations_are_refused(axes):
    x = tensor.ones((2, 3))
    for call in (x.transpose, lambda a: autograd.transpose(x, a), lambda a: tensor.transpose(x, a)):
        with pytest.raises(ValueError, match="transpose: got axes"):
            call(axes)
    assert x.transpose((-1, -2)).shape == x.transpose((1, -2)).shape == x.transpose().shape
