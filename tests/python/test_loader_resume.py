"""A loader that goes on where another one was stopped."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from loading import Again, Drawn, Numbers, jittered
from singa_rs import data, device, layer, module
from singa_rs.tensor import from_numpy

WAYS = {
    "plain": {},
    "shuffled": {"shuffle": True, "seed": 9},
    "drawn": {"shuffle": True, "transform": jittered},
    "threads": {"shuffle": True, "num_workers": 3, "transform": jittered},
    "whole batches": {"shuffle": True, "drop_last": True},
}


def run(loader, epochs):
    """All batches, as lists, and the state after each."""
    found = []
    while loader.epoch < epochs:
        for batch in loader:
            found.append(([one.tolist() for one in batch], loader.state_dict()))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_every_place(way):
    def make():
        return data.DataLoader(Drawn(10), 3, **WAYS[way])

    whole = run(make(), 3)
    assert len(whole) == 9 if way == "whole batches" else 12
    for i, (_, state) in enumerate(whole):
        loader = make()
        loader.load_state_dict(state)
        assert loader.state_dict() == state
        assert run(loader, 3) == whole[i + 1 :]


@pytest.mark.parametrize("threads", [0, 2])
def test_iterables(threads):
    def make():
        return data.DataLoader(Again(10), 4, num_workers=threads, collate=np.array)

    whole = run_plain(make())
    for position in range(4):
        loader = make()
        loader.load_state_dict({**make().state_dict(), "position": position})
        assert run_plain(loader) == whole[position:]


def run_plain(loader):
    return [batch.tolist() for batch in loader]


def test_states_between_epochs_and_after_a_break():
    loader = data.DataLoader(Numbers(10), 3, shuffle=True)
    place = lambda: (loader.state_dict()["epoch"], loader.state_dict()["position"])  # noqa: E731
    assert place() == (0, 0)
    seen = iter(loader)
    assert place() == (0, 0) and loader.epoch == 0
    next(seen)
    assert place() == (0, 1)
    list(seen)
    assert place() == (1, 0)
    for _ in itertools.islice(loader, 2):
        pass
    assert place() == (1, 2)
    iter(loader)
    assert place() == (2, 0)


def test_two_iterations_at_once():
    loader = data.DataLoader(Numbers(10), 3, shuffle=True, num_workers=2)
    apart = [[y.tolist() for _, y in loader] for _ in range(2)]
    again = data.DataLoader(Numbers(10), 3, shuffle=True, num_workers=2)
    pairs = [(a[1].tolist(), b[1].tolist()) for a, b in zip(again, again, strict=True)]
    assert [list(one) for one in zip(*pairs, strict=True)] == apart


def test_states_in_a_file(tmp_path):
    class Net(module.Module):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(2)

        def forward(self, x):
            return self.fc(x)

    net = Net()
    loader = data.DataLoader(np.zeros((10, 3), np.float32), 3, shuffle=True)
    net.compile([next(iter(loader))])
    state = {
        name: from_numpy(np.array([value]), dtype="int64")
        for name, value in loader.state_dict().items()
    }
    net.save_states(str(tmp_path / "net.zip"), state)
    other = data.DataLoader(np.zeros((10, 3), np.float32), 3, shuffle=True)
    other.load_state_dict(net.load_states(str(tmp_path / "net.zip")))
    assert other.state_dict() == loader.state_dict()


@pytest.mark.parametrize(
    "change, error",
    [
        ({"seed": 1}, "got seed 1, want this loader's, 0"),
        ({"batch_size": 4}, "got batch_size 4"),
        ({"length": 11}, "got length 11"),
        ({"shuffle": 1}, "got shuffle 1"),
        ({"drop_last": 1}, "got drop_last 1"),
        ({"position": 5}, "position: got 5, want 0 to 4"),
        ({"position": -1}, "position: got -1"),
        ({"epoch": -1}, "epoch: got -1"),
        ({"epoch": 1.5}, "got epoch 1.5, want an int"),
        ({"epoch": [1, 2]}, "got epoch"),
        ({"epoch": None}, "got epoch None"),
        ({"more": 1}, "want a dictionary of"),
    ],
)
def test_states_of_other_loaders_are_refused(change, error):
    loader = data.DataLoader(Numbers(10), 3)
    before = loader.state_dict()
    with pytest.raises((TypeError, ValueError), match=f"load_state_dict: .*{error}"):
        loader.load_state_dict({**before, **change})
    with pytest.raises(TypeError, match="load_state_dict"):
        loader.load_state_dict(3)
    assert loader.state_dict() == before


class Noisy:
    """An iterable that draws while it is read."""

    def __iter__(self):
        for i in range(11):
            yield np.array([i + data.rng().random()])


class Mixed:
    """An iterable that draws its order before it is read."""

    def __iter__(self):
        return iter(data.rng().permutation(11).reshape(11, 1))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Noisy, Mixed])
def test_what_an_iterable_draws_depends_on_the_place_alone(kind, workers):
    def make():
        return data.DataLoader(kind(), 3, seed=5, num_workers=workers)

    whole = run(make(), 3)
    data.set_seed(77)
    data.rng().random()
    assert run(make(), 3) == whole
    assert whole[0][0] != whole[4][0]  # another epoch draws otherwise
    for i, (_, state) in enumerate(whole):
        loader = make()
        loader.load_state_dict(state)
        assert run(loader, 3) == whole[i + 1 :]


# ---- copies --------------------------------------------------------------------------------------


class Holder(module.Module):
    """A model with a loader of its own."""

    def __init__(self, loader):
        super().__init__()
        self.loader = loader


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "model": lambda one: copy.deepcopy(Holder(one)).loader,
    "pickled model": lambda one: pickle.loads(pickle.dumps(Holder(one))).loader,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_copy_goes_on_as_the_loader_would(way, threads):
    for source in (Drawn(10), Again(10), (np.arange(10), np.ones(10))):
        loader = data.DataLoader(source, 3, num_workers=threads, device=device.get_default_device())
        assert list(map(repr, COPIES[way](loader))) == list(map(repr, loader))
        under_way = iter(loader)
        next(under_way)
        copied = COPIES[way](loader)
        assert copied.state_dict() == loader.state_dict()
        next(under_way)
        assert copied.state_dict()["position"] == 1
        assert list(map(repr, copied)) == list(map(repr, loader))
        assert len(list(under_way)) == 2
        loader.close()
