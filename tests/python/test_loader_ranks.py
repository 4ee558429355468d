"""Batches that are dealt out to several processes."""

import numpy as np
import pytest
from singa_rs.data import DataLoader, rng

ROWS = np.arange(23, dtype=np.int64)


def loaders(size, dataset=ROWS, **given):
    given = {"batch_size": 12 // size, "seed": 5, "as_numpy": True, **given}
    return [DataLoader(dataset, ranks=(rank, size), **given) for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_row_is_given_once(size, shuffle):
    found, steps = [], set()
    for loader in loaders(size, shuffle=shuffle):
        batches = list(loader)
        steps.add((len(batches), len(loader)))
        found += [row for batch in batches for row in batch]
    assert sorted(found) == list(ROWS)
    assert steps == {(2, 2)}


@pytest.mark.parametrize("size", [2, 3, 4])
def test_batches_together_are_those_of_one_process(size):
    (one,) = loaders(1, shuffle=True)
    for whole, *parts in zip(one, *loaders(size, shuffle=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("count", [13, 14, 17, 24])
def test_weights_make_the_mean_of_all_rows(count):
    values = np.random.default_rng(1).normal(size=count)
    (one,), ranks = loaders(1, values), loaders(4, values)
    for whole, *parts in zip(one, *ranks, strict=True):
        losses = [r.weight * part.mean() for r, part in zip(ranks, parts, strict=True)]
        np.testing.assert_allclose(np.mean(losses), whole.mean())
        assert all(len(part) for part in parts)


def test_a_row_of_another_process_weighs_nothing():
    ranks = loaders(4, ROWS[:13])
    last = [list(one)[-1] for one in ranks]
    assert [list(one) for one in last] == [[12]] * 4
    (begun, *_) = loaders(4, ROWS[:12])
    next(iter(begun))
    assert begun.weight == 1.0


def test_a_loader_goes_on_in_another_number_of_processes():
    before, after = loaders(2, shuffle=True), loaders(3, shuffle=True)
    (one,) = loaders(1, shuffle=True)
    first, second = list(one)
    for loader in before:
        next(iter(loader))
    for loader in after:
        loader.load_state_dict(before[0].state_dict())
    parts = [next(iter(loader)) for loader in after]
    np.testing.assert_array_equal(np.concatenate(parts), second)
    with pytest.raises(ValueError, match="got batch_size 12, want this loader's, 6"):
        loaders(2, batch_size=3)[0].load_state_dict(before[0].state_dict())


def test_processes_draw_different_numbers():
    drawn = [
        [batch[0] for batch in loader]
        for loader in loaders(3, transform=lambda batch: rng().random(len(batch)))
    ]
    assert len({number for numbers in drawn for number in numbers}) == 6


def test_wrong_ranks():
    for ranks in (3, (1,), "ab", (0.5, 2)):
        with pytest.raises(TypeError, match="DataLoader: .*ranks"):
            DataLoader(ROWS, ranks=ranks)
    for ranks in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=r"DataLoader: ranks\[.\]: got"):
            DataLoader(ROWS, ranks=ranks)
    with pytest.raises(ValueError, match="got ranks .0, 2. for generator"):
        DataLoader((row for row in ROWS), ranks=(0, 2))
    with pytest.raises(ValueError, match="no batch of this epoch"):
        _ = loaders(2)[0].weight
