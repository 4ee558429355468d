"""Recorded steps that write to results of operations."""

import numpy as np
import pytest
from recorded import pair, replays, same
from singa_rs import DTypeError, GraphError, autograd, module, opt, tensor
from singa_rs.tensor import from_numpy


@pytest.fixture(autouse=True)
def _training():
    autograd.training = True


class Writing(module.Module):
    """Trains two parameters by gradients through written tensors; returns one of those as well."""

    def __init__(self, write):
        super().__init__()
        self.write = write
        self.w = from_numpy(np.linspace(-1, 1, 18).astype(np.float32).reshape(6, 3))
        self.q = from_numpy(np.linspace(0.5, 2, 3).astype(np.float32))
        self.w.stores_grad = self.q.stores_grad = True
        self.optimizer = opt.SGD(0.01, momentum=0.9)

    def forward(self, x):
        return self.write(x @ self.w, self.q)

    def train_one_batch(self, x, y):
        h = x @ self.w
        h.stores_grad = True
        out = self.write(h, self.q)
        found = autograd.gradients((out * out).sum() + (h * h).sum())
        for name in ("w", "q"):
            self.optimizer.apply(name, getattr(self, name), found[getattr(self, name)])
        self.optimizer.step()
        return out, found[h]


def _through_a_view(h, q):
    v = h[:2]
    v += q
    h[3] += q * q
    return v


def _through_a_copy(h, q):
    c = h.copy()
    c[1:] = autograd.expand(q, (3, 3))
    c += q
    return c * 2.0


def _of_runs(h, q):
    tensor.copy_data_to_from(h, q, 2, 5, 1)
    h.copy_from(q.as_type("float64"), 2)
    return h.T()


def _wider(h, q):
    v = h[1:]
    v *= q.as_type("float64")
    h -= 0.5
    return v


def _new_memory(h, q):
    v = h[2:]
    h += q
    h.to_type("float64")
    h *= 2.0
    v += q
    return v


def _tiled(h, q):
    t = autograd.tile(h, 1)
    t += q
    u = +t
    u *= 0.5
    return u + t.as_type("float32")


def _where_a_mask_holds(h, q):
    h[h > 0.5] = 2.0
    h[h < -0.5] = q.sum()  # which gets the gradient of those places
    h[h[:, 0] > 1.0] = -1.0  # whole rows
    top = h.max() * 1.0
    top[top > 0.5] = 0.5  # without dimensions
    return h * q * top


def _vectors_where_a_mask_holds(h, q):
    part = h[1:, ::2]  # a view that is written
    h[h[:, 0] > 0.5] = q
    h[h[:, 1] > 5.0] = q * 2.0  # nowhere
    h[h[:, 1] > 0.5, 0] = 2.0
    h[h[:, 2] < 0.0, 1:] = q[:2].reshape((1, 2))
    h[(h[:, 0] < 0.2,)] = np.float32([1, 2, 3])
    part[h[1:, 0] > 1.0] = q[1:]
    return h * h + part.sum()


@pytest.mark.parametrize(
    "write",
    [
        _vectors_where_a_mask_holds,
        _where_a_mask_holds,
        _through_a_view,
        _through_a_copy,
        _of_runs,
        _wider,
        _new_memory,
        _tiled,
    ],
)
def test_recorded_steps_write_as_eager_ones_do(write):
    recorded, eager = pair(Writing, write)
    rng = np.random.default_rng(0)
    y = from_numpy(np.zeros(4, np.int32))
    for _ in range(6):
        x = from_numpy(rng.normal(size=(4, 6)).astype(np.float32))
        same(recorded(x, y), eager(x, y))
        same([recorded.w, recorded.q], [eager.w, eager.q])
    assert replays(recorded) >= 3


def test_what_a_mask_takes_has_no_size_in_a_recording():
    class Masked(module.Module):
        def forward(self, x):
            return x[x > 0.0]

    want = (
        r"index: got a mask, on which the size depends, .*where, masked_fill and a\[mask\] = value"
    )
    with pytest.raises(GraphError, match=want):
        Masked().compile([from_numpy(np.ones((2, 3), np.float32))], is_train=False)


KEYS = [(), (0,), (slice(1, 3),), (Ellipsis,), (None, 1)]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("held", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("rank", [1, 2])
def test_values_for_all_places_of_a_mask(rank, held, key):
    rng = np.random.default_rng(3)
    array, weights = (rng.normal(size=(2, 3, 4)) for _ in range(2))
    mask = rng.random(array.shape[:rank]) < held
    for lead in ((), (1,)):
        values = rng.normal(size=(*lead, *array[(mask, *key)].shape[1:]))
        x, given = from_numpy(array, dtype="float64"), from_numpy(values, dtype="float64")
        x.stores_grad = given.stores_grad = True
        y = x * 1.0
        y[(from_numpy(mask), *key)] = given
        found = autograd.gradients((y * from_numpy(weights, dtype="float64")).sum(), [x, given])
        want, slopes = array.copy(), weights.copy()
        want[(mask, *key)], slopes[(mask, *key)] = values, 0
        np.testing.assert_array_equal(y.to_numpy(), want)
        np.testing.assert_array_equal(found[0].to_numpy(), slopes)
        took = weights[(mask, *key)].sum(0).reshape(values.shape)
        np.testing.assert_allclose(found[1].to_numpy(), took, atol=1e-12)


@pytest.mark.parametrize("value", [3, 2.5, True, np.float32(4), float("nan"), 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(2, 3), (2,), (0, 3)])
def test_masks_of_tensors_and_arrays_write_the_same(shape, dtype, value):
    array = np.arange(12).reshape(2, 3, 2)[: shape[0]].astype(dtype)
    mask = np.random.default_rng(0).random(shape) > 0.4

    def made(key):
        t = from_numpy(array.copy(), dtype=array.dtype)
        try:
            t[key] = value
        except DTypeError as error:
            return str(error)
        return t.to_numpy().tobytes()

    assert made(from_numpy(mask)) == made(mask)
