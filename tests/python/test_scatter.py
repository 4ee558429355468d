"""Writing at indices (ONNX ScatterElements) against a loop over them."""

import numpy as np
import pytest
from recorded import replays
from singa_rs import ShapeError, autograd, module, opt
from singa_rs.tensor import Placeholder, from_numpy

RNG = np.random.default_rng(5)
#: Shape of the data, shape of the indices, axis.
CASES = [
    ((3, 4), (1, 1), 1),
    ((3, 4), (1, 1), 0),
    ((3, 4), (2, 1), 1),
    ((3, 4), (1, 2), -1),
    ((3, 4), (3, 4), 0),
    ((3, 4), (2, 4), 0),
    ((3, 4), (3, 6), 1),
    ((3, 4), (5, 2), -2),
    ((3, 4), (0, 4), 0),
    ((3, 4), (2, 0), 1),
    ((2, 3, 4), (1, 2, 3), 1),
    ((2, 3, 4), (1, 1, 1), 2),
    ((5,), (2,), 0),
]


def scattered(x, indices, updates, axis):
    """ONNX's rule, an element at a time."""
    made = np.array(x)
    for place in np.ndindex(indices.shape):
        to = list(place)
        to[axis] = indices[place]
        made[tuple(to)] = updates[place]
    return made


def drawn(shape, places, axis):
    """Each element is written once, or always with one value, so the order does not matter."""
    order = RNG.permuted(np.broadcast_to(np.arange(shape[axis]), (*places, shape[axis])), axis=-1)
    along = np.arange(places[axis]) % shape[axis]
    along = along.reshape([-1 if a == axis % len(places) else 1 for a in range(len(places))])
    first = np.take(order, [0], axis) if places[axis] else order
    chosen = np.broadcast_to(first, order.shape)
    return np.take_along_axis(chosen, np.broadcast_to(along, places)[..., None], -1)[..., 0]


@pytest.mark.parametrize("shape, places, axis", CASES)
def test_only_what_the_indices_name_is_written(shape, places, axis):
    x, indices = RNG.normal(size=shape), drawn(shape, places, axis)
    # Elements that are written twice get one value.
    updates = np.asarray(indices * 2.5, np.float64)
    indices = np.where(RNG.random(indices.shape) < 0.3, indices - shape[axis], indices)
    got = autograd.scatter_elements(from_numpy(x, dtype="float64"), indices, updates, axis)
    np.testing.assert_array_equal(got.to_numpy(), scattered(x, indices, updates, axis))


@pytest.mark.parametrize("shape, places, axis", CASES)
def test_gradient_is_zero_where_it_is_written(shape, places, axis):
    indices, dy = drawn(shape, places, axis), RNG.normal(size=shape)
    x = from_numpy(RNG.normal(size=shape), dtype="float64")
    x.stores_grad = True
    autograd.training = True
    y = autograd.scatter_elements(x, indices, np.ones(places), axis)
    got = autograd.gradients((y * from_numpy(dy, dtype="float64")).sum())[x]
    want = scattered(dy, indices, np.zeros(places), axis)
    np.testing.assert_array_equal(got.to_numpy(), want)


@pytest.mark.parametrize(
    "indices, updates, axis",
    [
        ([[3]], [[1.0, 2.0]], 1),
        ([[3], [1]], [[1.0]], 1),
        ([[3]], [1.0], 1),
        ([[3]], 1.0, 1),
        ([3], [1.0], 1),
        ([[[3]]], [[[1.0]]], 1),
        ([[0]] * 4, [[1.0]] * 4, 1),
        ([[0] * 5], [[1.0] * 5], 0),
    ],
)
def test_shapes_that_do_not_fit_are_refused(indices, updates, axis):
    x = from_numpy(np.zeros((3, 4)))
    with pytest.raises(ShapeError, match="scatter_elements: got"):
        autograd.scatter_elements(x, indices, updates, axis)


class Scatters(module.Module):
    """A step that writes into a part of a parameter's product."""

    def __init__(self):
        super().__init__()
        self.w = from_numpy(np.arange(12.0).reshape(4, 3))
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return autograd.scatter_elements(x @ self.w, [[1], [-1]], [[5.0], [7.0]], 1)

    def train_one_batch(self, x):
        y = self.forward(x)
        self.optimizer((y * y).mean())
        return y


def test_recorded():
    made = []
    for use_graph in (True, False):
        model = Scatters()
        model.compile([Placeholder((5, 4))], use_graph=use_graph)
        x = from_numpy(np.random.default_rng(2).normal(size=(5, 4)))
        made.append([model(x).to_numpy().tobytes() for _ in range(4)])
        assert not use_graph or replays(model)
    assert made[0] == made[1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool"])
@pytest.mark.parametrize("how", ["sum", "prod", "amax", "amin"])
def test_short_types_are_rounded_once(dtype, how):
    """Sums and products that lose nothing in float32, and extremes of bools."""
    if dtype == "bool" and how in ("sum", "prod"):
        with pytest.raises(TypeError, match="scatter_reduce: got bools"):
            autograd.scatter_reduce(from_numpy(np.ones(2, bool)), 0, [0], [True], how)
        return
    x, places = np.array([[1, 0], [2, 3]]), np.array([[1, 1], [1, 0], [0, 0]])
    updates = np.array([[1, 0], [1, 1], [0, 1]]) if dtype == "bool" else RNG.integers(1, 4, (3, 2))
    if how == "sum":  # 256 + 1 + 1 is 256 in bfloat16 unless the sum is rounded once
        x, updates = np.full((2, 2), 256), np.ones((3, 2))
    want, join = x.astype("float64"), {"sum": np.add, "prod": np.multiply}
    for at in np.ndindex(places.shape):
        to = (places[at], at[1])
        joined = join.get(how, np.maximum if how == "amax" else np.minimum)
        want[to] = joined(want[to], updates[at])
    given = (from_numpy(one, dtype="float32") for one in (x, updates))
    x, updates = (autograd.cast(one, dtype) for one in given)
    got = autograd.scatter_reduce(x, 0, places, updates, how)
    assert got.dtype.name == dtype
    want = autograd.cast(from_numpy(want, dtype="float32"), dtype)
    assert got.to_numpy().tobytes() == want.to_numpy().tobytes()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("how", ["none", "add", "mul"])
def test_slices_of_a_view(axis, how):
    """Places of whole slices, of a transposed tensor and of updates that are broadcast."""
    x, u = RNG.normal(size=(20, 5)), RNG.normal(size=(1, 1))
    places = np.array([1, 3, 1])
    want = x.T.copy()
    for place in places:
        part = want[place] if axis == 0 else want[:, place]
        part[:] = {"none": u[0], "add": part + u[0], "mul": part * u[0]}[how]
    view = from_numpy(x, dtype="float64").transpose()
    shape = (3, 20) if axis == 0 else (5, 3)
    given = from_numpy(u, dtype="float64").expand(shape)
    wide = np.broadcast_to(places[:, None] if axis == 0 else places, shape)
    reduce = {"none": None, "add": "add", "mul": "multiply"}[how]
    np.testing.assert_allclose(view.scatter(axis, wide, given, reduce).to_numpy(), want)
    if how != "mul":
        made = {"none": view.index_copy, "add": view.index_add}[how](axis, places, given)
        np.testing.assert_allclose(made.to_numpy(), want)


@pytest.mark.parametrize("name", ["index_add", "index_copy", "index_put", "scatter_add", "[]"])
def test_updates_that_meet_no_element_get_a_gradient_of_zeros(name):
    autograd.training = True
    x = from_numpy(np.ones((4, 3), np.float32))
    updates = from_numpy(np.ones((3,) if name in ("index_put", "[]") else (0, 3), np.float32))
    x.stores_grad = updates.stores_grad = True
    none = np.zeros((0, 3) if name == "scatter_add" else 0, np.int64)
    if name == "[]":
        y = x * 2.0
        y[none] = updates
    else:
        places = ((none,),) if name == "index_put" else (0, none)
        y = getattr(autograd, name)(x * 2.0, *places, updates)
    found = autograd.gradients((y * y).sum(), [x, updates], create_graph=True)
    again = autograd.gradients((found[0] ** 2.0).sum() + found[1].sum(), [x, updates])
    autograd.training = False
    assert [one.to_numpy().tolist() for one in found + again] == [
        [[8.0] * 3] * 4, np.zeros(updates.shape).tolist(),
        [[128.0] * 3] * 4, np.zeros(updates.shape).tolist(),
    ]  # fmt: skip
