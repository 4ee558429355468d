"""Reading and writing at arrays and tensors of indices: as NumPy does, on the tape, and in steps
that are replayed with other indices."""

import numpy as np
import pytest
from singa_rs import ShapeError, autograd, layer, module, opt, tensor

SEEDS = range(80)
DEV = tensor.zeros(()).device


def drawn(seed, repeats=True):
    """A shape, and a key of arrays among ints, slices, None and Ellipsis."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
    common = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 3)))
    arrays = set(rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False).tolist())
    key = []
    for axis, n in enumerate(shape):
        if rng.random() < 0.2:
            key.append(None)
        if axis in arrays:
            own = common if repeats else (1,)
            own = own[rng.integers(0, len(own) + 1) :]
            own = tuple(1 if rng.random() < 0.2 else m for m in own)
            key.append(rng.integers(-n, n, own))
        elif rng.random() < 0.3:
            key.append(int(rng.integers(-n, n)))
        else:
            step = int(rng.choice([-2, -1, 1, 2]))
            key.append(slice(None, None, step))
    while key and isinstance(key[-1], slice) and key[-1] == slice(None) and rng.random() < 0.5:
        key.pop()
    if len(key) < len(shape) and rng.random() < 0.5:
        key.append(Ellipsis)
    return rng, shape, tuple(key)


def as_tensors(key, rng):
    """The same key with some of its arrays as tensors, of several dtypes."""
    dtypes = (np.int64, np.int32)
    return tuple(
        tensor.from_numpy(k.astype(dtypes[rng.integers(2)]))
        if is_array(k) and rng.random() < 0.7
        else k
        for k in key
    )


def normal(rng, shape):
    return np.asarray(rng.normal(size=shape), np.float32)


def is_array(key):
    return isinstance(key, np.ndarray)


class Step(module.Module):
    """A function of tensors and of the arrays of a key, which are arguments."""

    def __init__(self, function, key):
        super().__init__()
        self.function, self.key = function, key

    def forward(self, x, *rest):
        rest = iter(rest)
        key = tuple(next(rest) if is_array(k) else k for k in self.key)
        return self.function(x, key, *rest)


def replayed(function, x, key, *others):
    """What a recorded step gives for a key, and for the same with its indices turned round."""
    model = Step(function, key)
    arrays = tuple(k for k in key if is_array(k))
    made = []
    for turn in (1, 1, 1, -1):
        given = [tensor.from_numpy(one) for one in (x, *turned(arrays, turn), *others)]
        if not made:
            model.compile(given, is_train=False)
            model.eval()
        made.append(model(*given).to_numpy())
    return made


def turned(key, turn):
    if turn == 1:
        return key
    return tuple(
        (k[::-1].copy() if k.ndim else np.array(-1 - k)) if is_array(k) else k for k in key
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_reading(seed):
    rng, shape, key = drawn(seed)
    x = rng.normal(size=shape).astype(np.float32)
    got = tensor.from_numpy(x)[as_tensors(key, rng)]
    np.testing.assert_array_equal(got.to_numpy(), x[key])
    for made, turn in zip(replayed(lambda x, key: x[key], x, key), (1, 1, 1, -1), strict=True):
        np.testing.assert_array_equal(made, x[turned(key, turn)])


def written(x, key, value):
    y = x * 2
    y[key] = value
    return y


@pytest.mark.parametrize("seed", SEEDS)
def test_writing(seed):
    rng, shape, key = drawn(seed)
    x = rng.normal(size=shape).astype(np.float32)
    part = x[key].shape
    cut = part[int(rng.integers(0, len(part) + 1)) :]
    value = normal(rng, tuple(1 if rng.random() < 0.2 else n for n in cut))
    want = written(x.copy(), key, value)
    np.testing.assert_array_equal(
        written(tensor.from_numpy(x), as_tensors(key, rng), tensor.from_numpy(value)).to_numpy(),
        want,
    )
    np.testing.assert_array_equal(written(tensor.from_numpy(x), key, value).to_numpy(), want)
    np.testing.assert_array_equal(
        written(tensor.from_numpy(x), key, 7).to_numpy(), written(x.copy(), key, 7)
    )
    made = replayed(written, x, key, value)
    for one, turn in zip(made, (1, 1, 1, -1), strict=True):
        np.testing.assert_array_equal(one, written(x.copy(), turned(key, turn), value))


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_of_writing(seed):
    """The old value's is 0 where it was replaced; the new value's is taken from there."""
    rng, shape, key = drawn(seed, repeats=False)
    x, weights = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    value = normal(rng, x[key].shape)
    holder, given = tensor.from_numpy(x), tensor.from_numpy(value)
    for one in (holder, given):
        one.requires_grad = one.stores_grad = True
    autograd.training = True
    y = written(holder, as_tensors(key, rng), given)
    autograd.reduce_sum(y * tensor.from_numpy(weights)).backward()
    left = 2 * weights
    left[key] = 0
    if holder.grad is None:  # all of it was replaced
        assert not left.any()
    else:
        np.testing.assert_array_equal(holder.grad.to_numpy(), left)
    np.testing.assert_array_equal(given.grad.to_numpy(), weights[key])


def test_the_last_of_several_values_stands_and_has_the_gradient():
    x, value = (tensor.from_numpy(np.float32(one)) for one in ([1, 2, 3], [7, 8, 9]))
    x.requires_grad = x.stores_grad = value.requires_grad = value.stores_grad = True
    autograd.training = True
    y = x * 1.0
    y[[2, 0, 2]] = value
    assert y.to_numpy().tolist() == [8, 2, 9]
    autograd.reduce_sum(y * tensor.from_numpy(np.float32([1, 10, 100]))).backward()
    assert x.grad.to_numpy().tolist() == [0, 10, 0]
    assert value.grad.to_numpy().tolist() == [0, 1, 100]


def test_views_of_what_is_written_see_it():
    x = tensor.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 4))
    row = x[1]
    x[[1, 2], [0, 3]] = tensor.from_numpy(np.float32([50, 60]))
    assert row.to_numpy().tolist() == [50, 5, 6, 7]
    x.transpose()[[3, 0], :] = 1
    assert x.to_numpy().tolist() == [[1, 1, 2, 1], [1, 5, 6, 1], [1, 9, 10, 1]]


def test_rows_change_places():
    x = tensor.from_numpy(np.arange(6, dtype=np.float32).reshape(3, 2))
    x[[0, 2]] = x[[2, 0]]
    assert x.to_numpy().tolist() == [[4, 5], [2, 3], [0, 1]]


@pytest.mark.parametrize("wrong", [3, -4])
def test_indices_out_of_range_are_refused(wrong):
    x = tensor.zeros((3, 2))
    index = tensor.from_numpy(np.array([0, wrong]))
    column = tensor.from_numpy(np.array([0, 1]))
    for key in (index, (index, column), (index, [0, 1])):
        with pytest.raises(ValueError, match="index"):
            x[key].to_numpy()
        with pytest.raises(ValueError, match="index"):
            x[key] = 1.0
    with pytest.raises(IndexError, match="out of range"):
        x[[0, wrong], column] = 1.0
    assert not x.to_numpy().any()


def test_arrays_that_do_not_broadcast_are_refused():
    x, index = tensor.zeros((3, 2)), tensor.from_numpy(np.array([0, 1, 1]))
    with pytest.raises(IndexError, match="broadcast"):
        x[index, [0, 1]]
    with pytest.raises(IndexError, match="broadcast"):
        x[index, tensor.from_numpy(np.array([0, 1]))] = 1.0
    with pytest.raises(ShapeError, match=r"setitem: got shape \(3,\) for a part of \(3, 2\)"):
        x[index] = np.zeros(3, np.float32)


class Classifier(module.Module):
    """Takes the logarithm of each label's probability by a pair of indices."""

    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(4), opt.SGD(0.5)

    def forward(self, x):
        return autograd.log_softmax(self.fc(x), 1)

    def train_one_batch(self, x, labels):
        out = self.forward(x)
        loss = -autograd.reduce_mean(out[np.arange(len(labels)), labels])
        self.optimizer(loss)
        return loss


class Chosen(Classifier):
    """Reads and writes a place that is given as a tensor without dimensions."""

    def __init__(self):
        super().__init__()
        self.seen = tensor.zeros((6, 4))

    def train_one_batch(self, x, i):
        out = self.forward(x)
        self.seen[i] = out[i].detach()
        self.seen[i, 1] = 1.0
        rows = out * 1.0
        rows[i, i - i] = out[i, 2] * 3.0
        loss = autograd.reduce_sum(rows * rows) + autograd.reduce_sum(out[:, i - i] ** 2)
        self.optimizer(loss * 0.01)
        return loss


def test_an_index_without_dimensions_gives_the_same_in_a_recorded_step():
    x, found = np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32), []
    for use_graph in (False, True):
        DEV.set_seed(0)
        model = Chosen()
        model.compile([tensor.from_numpy(x)], is_train=True, use_graph=use_graph)
        losses = [float(model(x, np.array(i))) for i in (0, 1, 2, -1, 3, 3)]
        found.append((losses, model.seen.to_numpy().tolist(), model.fc.W.to_numpy().tolist()))
    assert found[0] == found[1] and model.graphs
    with pytest.raises(ValueError, match="6 is out of range"):
        model(x, np.array(6))


def test_a_step_trains_with_the_labels_it_is_given():
    rng, losses = np.random.default_rng(1), []
    batches = [
        (rng.normal(size=(6, 3)).astype(np.float32), rng.integers(0, 4, 6)) for _ in range(5)
    ]
    for use_graph in (False, True):
        DEV.set_seed(0)
        model = Classifier()
        given = [[tensor.from_numpy(one) for one in batch] for batch in batches]
        model.compile([given[0][0]], is_train=True, use_graph=use_graph)
        losses.append([float(model(*batch)) for batch in given])
    assert losses[0] == losses[1] and len(set(losses[0])) == 5
