"""What a DataLoader yields: order, seeds, kinds of data sets, tensors."""

import collections
import itertools
import re

import foreign
import numpy as np
import pytest
from foreign import OnAnotherDevice
from loading import Again, Drawn, Numbers, Slow, jittered
from singa_rs import DTypeError, data, layer, module, opt
from singa_rs.tensor import Tensor
from wrong_calls import WRONG, check

Point = collections.namedtuple("Point", "x y")
THREADS = [0, 1, 3]


def labels(loader):
    """The numbers of the samples in each batch."""
    return [y.tolist() for _, y in loader]


def values(batch):
    """A batch with NumPy arrays in the place of tensors."""
    if isinstance(batch, dict):
        return {key: values(one) for key, one in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [values(one) for one in batch]
    return batch.to_numpy() if isinstance(batch, Tensor) else batch


# ---- order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_are_in_order(threads, count, drop_last):
    loader = data.DataLoader(Slow(count), 4, drop_last=drop_last, num_workers=threads)
    want = [list(range(i, min(i + 4, count))) for i in range(0, count, 4)]
    want = [one for one in want if len(one) == 4 or not drop_last]
    assert labels(loader) == want and len(loader) == len(want)
    assert labels(loader) == want


def test_shuffling_follows_the_seed_and_the_epoch():
    def epochs(seed, count=50):
        loader = data.DataLoader(Numbers(count), 8, shuffle=True, seed=seed)
        return [sum(labels(loader), []) for _ in range(3)]

    first = epochs(0)
    assert all(sorted(one) == list(range(50)) for one in first)
    assert len({tuple(one) for one in first + epochs(1) + epochs(2**63 - 1)}) == 9
    assert epochs(0) == first


def test_the_order_never_changes():
    """Runs that were stopped go on with the same order, whatever version of NumPy there is."""
    loader = data.DataLoader(np.arange(10), 10, shuffle=True, seed=7, as_numpy=True)
    assert [one.tolist() for one in itertools.chain(loader, loader)] == [
        [8, 4, 1, 6, 3, 2, 7, 5, 9, 0],
        [3, 9, 1, 6, 2, 5, 4, 8, 0, 7],
    ]


def test_every_place_is_equally_likely():
    loader = data.DataLoader(np.arange(6), 6, shuffle=True, as_numpy=True)
    counts = np.zeros((6, 6))
    for _ in range(3000):
        counts[np.arange(6), next(iter(loader))] += 1
    assert abs(counts - 500).max() < 120


@pytest.mark.parametrize("threads", THREADS)
def test_random_transforms_do_not_depend_on_workers(threads):
    def run(count):
        loader = data.DataLoader(Drawn(20), 3, True, 5, num_workers=count, transform=jittered)
        return [values(batch) for _ in range(2) for batch in loader]

    want, got = run(0), run(threads)
    for (x, y), (also_x, also_y) in zip(want, got, strict=True):
        np.testing.assert_array_equal(x, also_x)
        np.testing.assert_array_equal(y, also_y)
    flat = np.concatenate([y for _, y in want]).reshape(-1)
    assert len(set(flat.tolist())) == flat.size


def test_numbers_outside_of_loaders():
    data.set_seed(3)
    first = data.rng().random(3)
    data.set_seed(3)
    list(data.DataLoader(Drawn(4), 2))
    np.testing.assert_array_equal(data.rng().random(3), first)


# ---- data sets -----------------------------------------------------------------------------------

X, Y = np.arange(30, dtype=np.float32).reshape(10, 3), np.arange(10)
SETS = {
    "array": (X, X[[4, 5]]),
    "tensor": (Tensor(data=X), X[[4, 5]]),
    "tuple": ((X, Y), [X[[4, 5]], Y[[4, 5]]]),
    "named tuple": (Point(X, Y), [X[[4, 5]], Y[[4, 5]]]),
    "dictionary": ({"x": X, "y": (Y, Y)}, {"x": X[[4, 5]], "y": [Y[[4, 5]]] * 2}),
    "list of numbers": (list(range(10)), np.array([4, 5])),
    "list of floats": ([i / 4 for i in range(10)], np.array([1.0, 1.25])),
    "list of pairs": (list(zip(X, Y, strict=True)), [X[[4, 5]], Y[[4, 5]]]),
    "list of dictionaries": ([{"x": x} for x in X], {"x": X[[4, 5]]}),
    "list of tensors": ([Tensor(data=x) for x in X], X[[4, 5]]),
    "text": (list("abcdefghij"), ["e", "f"]),
    "range": (range(10), np.array([4, 5])),
    "iterable": (Again(10), np.array([4, 5])),
    "subset": (data.Subset((X, Y), range(2, 10, 2)), [X[[6, 8]], Y[[6, 8]]]),
    "subset of a list": (data.Subset(list(X), [5, 5, 0, 0, 4, 5]), X[[4, 5]]),
}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("threads", [0, 2])
def test_kinds_of_data_sets(kind, threads):
    dataset, want = SETS[kind]
    loader = data.DataLoader(dataset, 2, num_workers=threads)
    got = list(loader)[1 if kind == "subset" else 2]
    np.testing.assert_equal(values(got), want)
    assert isinstance(got, Point) == (kind == "named tuple")


def test_tensors_have_the_dtypes_of_from_numpy():
    arrays = {"a": np.zeros(4), "b": np.zeros(4, np.int64), "c": np.zeros(4, np.uint8)}
    (batch,) = data.DataLoader(arrays, 4)
    assert [one.dtype.name for one in batch.values()] == ["float32", "int32", "uint8"]
    (batch,) = data.DataLoader(arrays, 4, as_numpy=True)
    assert [one.dtype.name for one in batch.values()] == ["float64", "int64", "uint8"]
    with pytest.raises(DTypeError, match="from_numpy"):
        list(data.DataLoader(np.array([2**40]), num_workers=1))


def test_an_iterator_is_iterated_once():
    loader = data.DataLoader((i for i in range(5)), 2, as_numpy=True)
    assert [one.tolist() for one in loader] == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="iterated only once"):
        iter(loader)
    with pytest.raises(TypeError, match="without a length"):
        len(loader)
    with pytest.raises(ValueError, match="shuffle=True for generator"):
        data.DataLoader((i for i in range(5)), shuffle=True)


def test_collate_and_transform():
    sizes = data.DataLoader((X, Y), 4, collate=len)
    assert list(sizes) == [4, 4, 2]
    sums = data.DataLoader(X, 4, transform=lambda x: x.sum(0), as_numpy=True)
    np.testing.assert_array_equal(list(sums)[2], X[8:].sum(0))
    assert (
        next(iter(data.DataLoader(X, 4, transform=lambda x: x.fill(0) or x))).to_numpy() == 0
    ).all()
    assert X.any()  # transforms get a copy


@pytest.mark.parametrize("workers", THREADS)
def test_arrays_of_other_libraries(workers):
    """Whole, in tuples and dictionaries, and as samples of a data set."""
    x, y = foreign.Tensor(X), foreign.Tensor(Y)
    options = {"shuffle": True, "seed": 1, "num_workers": workers}
    want = [values(batch) for batch in data.DataLoader((X, Y), 4, **options)]
    for dataset in ((x, y), [(x[i], y[i]) for i in range(len(x))]):
        found = [values(batch) for batch in data.DataLoader(dataset, 4, **options)]
        for got, whole in zip(found, want, strict=True):
            np.testing.assert_array_equal(got[0], whole[0])
            np.testing.assert_array_equal(got[1], whole[1])
            assert [one.dtype for one in got] == [one.dtype for one in whole]
    (batch,) = data.DataLoader({"x": x}, 10)
    np.testing.assert_array_equal(batch["x"].to_numpy(), X)


@pytest.mark.parametrize(
    "samples, error",
    [
        (
            [np.zeros(2), np.zeros(3)],
            r"ValueError: collate: got samples of shapes \(2,\) and \(3,\)",
        ),
        ([(1, 2), (1,)], "ValueError: collate: got samples of lengths 2 and 1"),
        ([{"a": 1}, {"b": 1}], "ValueError: collate: got samples of keys"),
        ([(1,), 1], "TypeError: collate: got samples of tuple and int"),
        ([(1, 2), None], "TypeError: collate: got samples of tuple and NoneType"),
        ([{"a": 1}, None], "TypeError: collate: got samples of dict and NoneType"),
        (["a", None], "TypeError: collate: got samples of str and NoneType"),
        (["a", b"a"], "TypeError|ValueError: collate: got samples of types"),
        ([None], "TypeError: collate: got a sample of NoneType"),
        ([1j], "TypeError: collate: got a sample of complex"),
        ([np.array([None])], "TypeError: collate: got a sample of object"),
        (
            [OnAnotherDevice(np.zeros(2))],
            r"TypeError: collate: got foreign.OnAnotherDevice of shape \(2,\), which NumPy cannot "
            r"share: its own words; tensor.from_dlpack\(x\) may",
        ),
        ([], "ValueError: collate: got no samples"),
    ],
)
def test_samples_that_differ(samples, error):
    with pytest.raises((TypeError, ValueError)) as caught:
        data.collate(samples)
    assert re.search(error, f"{type(caught.value).__name__}: {caught.value}")


# ---- tensors that are held -----------------------------------------------------------------------


@pytest.mark.parametrize("threads", [0, 2])
def test_batches_that_are_held_are_not_overwritten(threads):
    x = np.random.default_rng(0).random((300, 16)).astype(np.float32)
    loader = data.DataLoader(x, 4, num_workers=threads)
    batches, views = [], []
    for batch in loader:
        batches.append(batch)
        views.append(batch[0])
    for _ in loader:
        pass
    np.testing.assert_array_equal(np.concatenate([one.to_numpy() for one in batches]), x)
    np.testing.assert_array_equal([one.to_numpy() for one in views], x[::4])


@pytest.mark.parametrize("threads", [0, 2])
def test_memory_of_batches_goes_around(cpu, threads):
    x = np.zeros((64, 1 << 18), np.float32)  # batches of 1 MiB
    cpu.trim()
    loader = data.DataLoader(x, 1, num_workers=threads, prefetch=2)
    before = cpu.memory()
    cpu.reset_peak()
    for batch in loader:
        assert batch.nbytes == 1 << 20
    assert cpu.memory()["peak"] - before["allocated"] <= (threads + 4) << 20


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.loss = layer.Linear(4), layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x, y):
        found = self.loss(self.forward(x), y)
        self.optimizer(found)
        return found


@pytest.mark.parametrize("threads", [0, 2])
def test_a_recorded_step_trains_to_the_same_bits(cpu, threads):
    rng = np.random.default_rng(0)
    arrays = rng.random((21, 5), np.float32), rng.integers(0, 4, 21).astype(np.int32)

    def train(use_graph):
        cpu.set_seed(0)
        net = Net()
        net.compile([Tensor((4, 5))], is_train=True, use_graph=use_graph)
        loader = data.DataLoader(arrays, 4, True, num_workers=threads if use_graph else 0)
        found = [net(x, y).item() for _ in range(4) for x, y in loader]
        return found, net

    eager, (replayed, net) = train(False)[0], train(True)
    assert eager == replayed
    assert len(net.graphs) == 2  # one for whole batches, one for the last


# ---- arguments -----------------------------------------------------------------------------------

WRONG_ARGUMENTS = {
    "dataset": [3, None, "text", {}, {"a": 1}, int, np.float32(3), np.array(3), (X, Y[:3])],
    "batch_size": [0, -1, 1.5, "2", None, True],
    "shuffle": [1, None, "yes"],
    "seed": [-1, 2**63, "1", 1.5],
    "drop_last": [1, None],
    "num_workers": [-1, 10**6, 1.5, None],
    "workers": ["fork", None, 3],
    "prefetch": [-1, None, 1.5],
    "collate": [3, "text"],
    "device": ["cpu", 0],
    "transform": [3, "text"],
    "as_numpy": [1, None],
    "persistent_workers": [1, None],
}


@pytest.mark.parametrize("name", WRONG_ARGUMENTS)
def test_wrong_arguments(name):
    for wrong in WRONG_ARGUMENTS[name]:
        with pytest.raises((TypeError, ValueError), match=f"DataLoader: .*{name}|arrays of") as e:
            data.DataLoader(**{"dataset": X, name: wrong})
        assert "want" in str(e.value)


def test_any_wrong_argument_is_named():
    for wrong, name in itertools.product(WRONG, WRONG_ARGUMENTS):
        check(["DataLoader"], data.DataLoader, [], {"dataset": X, name: wrong()})


# ---- parts ---------------------------------------------------------------------------------------


def test_subsets():
    part = data.Subset((X, Y), [3, 1, 1])
    assert len(part) == 3 and [part[i][1] for i in range(3)] == [3, 1, 1] and part[-1][1] == 1
    assert list(data.Subset(part, [0]))[0][1] == 3
    assert len(data.Subset(X, [])) == 0 and list(data.DataLoader(data.Subset(X, []))) == []
    with pytest.raises(IndexError):
        part[3]
    for wrong in ([10], [-1]):
        with pytest.raises(IndexError, match="Subset: got index .* from 0 to 9"):
            data.Subset(X, wrong)
    for wrong in ([0.5], "ab", None, 3, [[1]], [True], [[1], [1, 2]]):
        with pytest.raises(TypeError, match="Subset: got indices"):
            data.Subset(X, wrong)
    with pytest.raises(TypeError, match="Subset: got generator for dataset"):
        data.Subset((i for i in range(3)), [0])


def test_random_split():
    parts = data.random_split(X, [6, 3, 1], seed=1)
    assert [len(part) for part in parts] == [6, 3, 1]
    rows = np.concatenate([part.indices for part in parts])
    assert sorted(rows) == list(range(10)) and list(rows) != list(range(10))
    again = np.concatenate([part.indices for part in data.random_split(X, [6, 3, 1], seed=1)])
    np.testing.assert_array_equal(rows, again)
    assert [len(part) for part in data.random_split(X, [0.5, 0.25, 0.25])] == [6, 2, 2]
    assert [len(part) for part in data.random_split(X, [1.0, 0])] == [10, 0]
    for wrong in ([6, 3], [11, -1], [0.5, 0.6], [float("nan")]):
        with pytest.raises(ValueError, match="random_split: got lengths .* add up"):
            data.random_split(X, wrong)
    for wrong in ([], 3, None, ["a"], [None], [True]):
        with pytest.raises(TypeError, match="random_split: got lengths"):
            data.random_split(X, wrong)
