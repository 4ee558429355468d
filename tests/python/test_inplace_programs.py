"""Random programs that write to results of operations, against finite differences."""

import copy

import numpy as np
import pytest
from scenarios import from_numpy64, leaf
from singa_rs import autograd, tensor


@pytest.fixture(autouse=True)
def _training():
    autograd.training = True


VIEWS = [
    lambda t, i: t[i % t.shape[0] :],
    lambda t, i: t[i % t.shape[0]] if t.rank > 1 else t[::-1],
    lambda t, i: t.T(),
    lambda t, i: t.reshape((-1,)),
    lambda t, i: autograd.unsqueeze(t, 0),
    lambda t, i: t.split(0, [1, t.shape[0] - 1])[0] if t.shape[0] > 1 else t[:],
    lambda t, i: t.copy(),
    lambda t, i: copy.copy(t)[..., ::-1],
]


def _assign(t, b, i):
    t[i % t.shape[0]] = b[i % 2] * 0.5


def _assign_number(t, b, i):
    t[..., 0] = 0.25


def _add_to_part(t, b, i):
    t[i % t.shape[0]] += b[0]


def _copy_run(t, b, i):
    if t.is_contiguous():
        tensor.copy_data_to_from(t, b, 1, i % t.numel, i % 2)


def _copy_at_offset(t, b, i):
    if t.is_contiguous() and t.numel > 2:
        t.copy_from(b * 0.5, 1)


def _copy_whole(t, b, i):
    t.copy_from(autograd.expand(b.sum() * 0.25, t.shape))


WRITES = [
    lambda t, b, i: t.__iadd__(b[i % 2]),
    lambda t, b, i: t.__imul__(0.5 + i % 3),
    lambda t, b, i: t.__isub__(0.125),
    lambda t, b, i: t.set_value(0.75),
    lambda t, b, i: t.copy_from(np.full(t.shape, 0.5)),
    _assign,
    _assign_number,
    _add_to_part,
    _copy_run,
    _copy_at_offset,
    _copy_whole,
]


def run(seed, a, b, added=None, at=None):
    """The loss of a random program, the first tensor that it writes to, and the number of the last
    write to it. After step `at`, `added` is added to that tensor."""
    rng = np.random.default_rng(seed)
    h = a * 1.5
    h.stores_grad = True
    made, loss, last = [h], tensor.zeros(1, dtype="float64"), -1
    for number in range(14):
        if number - 1 == at:
            h += added
        t, kind, i = made[rng.integers(len(made))], rng.integers(5), int(rng.integers(6))
        view, write = VIEWS[rng.integers(len(VIEWS))], WRITES[rng.integers(len(WRITES))]
        if kind < 2:
            made.append(view(t, i))
        elif kind < 4:
            version = h.version
            write(t, b, i)
            last = last if h.version == version else number
        else:
            loss = loss + (t.clone() ** 2).sum() * (1 + number)
    if at == 13:
        h += added
    for number, t in enumerate(made):
        loss = loss + (t.clone() ** 2).sum() * (0.5 + number)
    return loss, h, last


def differences(seed, arrays):
    """The gradients by finite differences of runs without a tape; exact up to rounding, as the
    programs are quadratic."""
    found = []
    with autograd.no_grad():
        for which, array in enumerate(arrays):
            made = np.zeros_like(array)
            for place in np.ndindex(array.shape):
                sides = []
                for sign in (1, -1):
                    moved = [one.copy() for one in arrays]
                    moved[which][place] += sign * 2.0**-4
                    sides.append(run(seed, *map(from_numpy64, moved))[0].item())
                made[place] = (sides[0] - sides[1]) * 2.0**3
            found.append(made)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_against_differences(seed):
    rng = np.random.default_rng(1000 + seed)
    arrays = [rng.integers(-8, 9, shape) / 8 for shape in ((2, 3), (2,))]
    a, b = (leaf(*array) for array in arrays)
    loss, h, last = run(seed, a, b)
    found = autograd.gradients(loss)
    for x, want in zip((a, b), differences(seed, arrays), strict=True):
        got = found.get(x)
        got = np.zeros(x.shape) if got is None else got.to_numpy()
        np.testing.assert_allclose(got, want, atol=1e-9)
    # A tensor's gradient equals that of zeros added to its final value.
    zeros = leaf(*np.zeros((2, 3)))
    loss, twin, _ = run(seed, *(leaf(*array) for array in arrays), zeros, last)
    other = autograd.gradients(loss)
    np.testing.assert_allclose(other[zeros].to_numpy(), found[h].to_numpy(), atol=1e-9)
