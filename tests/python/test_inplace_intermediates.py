"""Writes to results of operations, through views and other objects, of any dtype, in part; and the
gradients of tensors that request theirs."""

import copy

import numpy as np
import pytest
from scenarios import from_numpy64, leaf
from singa_rs import DTypeError, GraphError, autograd, tensor
from singa_rs.tensor import Tensor, from_numpy


@pytest.fixture(autouse=True)
def _training():
    autograd.training = True


def grads(loss, *tensors):
    found = autograd.gradients(loss)
    return [found[t].tolist() for t in tensors]


# ---- the gradients of written tensors ------------------------------------------------------------


def test_a_written_tensor_gets_the_gradient_of_its_last_value():
    a = leaf(1.0, 2.0)
    h = a * 3
    h.stores_grad = True
    before = (h * 5).sum()
    h += 1.0
    assert grads(before + (h * h).sum(), a, h) == [[15 + 24, 15 + 42], [8, 14]]
    h = a * 3
    h.stores_grad = True
    h[0] = 5.0
    (h * h).sum().backward()
    assert h.grad.tolist() == [10, 12]


def test_of_a_tensor_that_is_overwritten():
    for write in (lambda h: h.set_value(2.0), lambda h: h.copy_from(leaf(2.0, 2.0) * 1)):
        h = leaf(1.0, 2.0) * 3
        h.stores_grad = True
        write(h)
        assert grads((h * h).sum(), h) == [[4, 4]]


@pytest.mark.parametrize("written", ["view", "base", "sibling"])
def test_a_view_gets_its_gradient_whatever_is_written(written):
    a = leaf(1.0, 2.0)
    h = a * 3
    v, other = h[:1], h[0:1]
    v.stores_grad = h.stores_grad = True
    t = {"view": v, "base": h, "sibling": other}[written]
    t *= 2.0
    assert v.tolist() == [6]
    assert grads((v * v).sum(), a, h, v) == [[72, 0], [12, 0], [12]]


def test_a_view_that_is_set_to_a_number_stays_on_the_tape():
    a, b = leaf(1.0, 2.0), leaf(3.0)
    h = a * 3
    v = h[:1]
    v.stores_grad = True
    v.set_value(0.5)
    v += b
    assert grads((h * h).sum() + (v * 5).sum(), a, b, v) == [[0, 36], [12], [5]]


def test_the_gradient_of_a_part_that_is_split_off():
    a = leaf(1.0, 2.0)
    h = a * 3
    left, right = h.split(0, [1, 1])
    right.stores_grad = True
    h += 1.0
    assert grads((right * right).sum(), a, right) == [[0, 42], [14]]


def test_a_tensor_requests_its_gradient_late_or_no_longer():
    a = leaf(1.0, 2.0)
    h = a * 3
    h.stores_grad = True
    h.stores_grad = False
    h += 1.0
    found = autograd.gradients((h * h).sum())
    assert h not in found
    h = a * 3
    v = h[1:]
    v += 1.0
    y = (v * v).sum()
    h.stores_grad = True
    assert grads(y, h) == [[0, 14]]


def test_a_whole_view_leaves_nothing_of_the_old_value():
    """So no backward pass runs with a zero gradient for it."""
    calls = []

    class Watched(autograd.Operator):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            calls.append(dy.tolist())
            return dy

    h = Watched()(leaf(1.0, 2.0))[0]
    f = h.reshape((2, 1))
    f.copy_from(np.zeros((2, 1)))
    a = leaf(3.0)
    f += a
    assert grads((h * h).sum(), a) == [[12]] and not calls


def test_adding_to_an_item_is_noted_once():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    h = a * 1
    version = h.version
    h[0] += b[0]
    assert h.version == version + 1
    assert grads((h * h).sum(), a, b) == [[8, 4], [8, 0]]


# ---- several objects of one tensor ---------------------------------------------------------------


@pytest.mark.parametrize("shallow", [Tensor.copy, copy.copy])
@pytest.mark.parametrize("of", ["result", "view"])
def test_a_write_through_a_copy_is_noted(shallow, of):
    for through, read in ((0, 1), (1, 0), (1, 1), (0, 0)):
        a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = a * 1.0
        one = y if of == "result" else y[:]
        pair = (one, shallow(one))
        t = pair[through]
        t += b
        assert grads((pair[read] * pair[read]).sum(), a, b) == [[8, 12], [8, 12]]


def test_a_copy_has_the_flags_and_asks_for_its_own_gradient():
    a = leaf(1.0, 2.0)
    y = a * 2
    y.stores_grad = True
    c = y.copy()
    assert c.stores_grad and c.shares_block(y) and not c.is_dummy()
    assert grads((c * c).sum(), a, c, y) == [[8, 16], [4, 8], [4, 8]]
    y.requires_grad = False
    assert not y.copy().requires_grad


def test_a_copy_of_a_view_of_a_parameter_is_written_without_a_trace():
    a, b = leaf(1.0, 2.0), leaf(3.0)
    c = a[:1].copy()
    c += b
    assert a.tolist() == [4, 2] and grads((c * c).sum(), a) == [[8, 0]]


@pytest.mark.parametrize(
    "answer",
    [lambda x: x, lambda x: x[:], lambda x: x.T(), lambda x: x.alias()],
    ids=["itself", "a part", "transposed", "another object"],
)
def test_results_of_user_operations_share_no_memory(answer):
    class Handing(autograd.Operator):
        def forward(self, x):
            return answer(x)

        def backward(self, dy):
            return dy

    a = leaf(1.0, 2.0)
    y = a * 1.0
    (v,) = Handing()(y)
    v *= 3.0
    assert y.tolist() == [1, 2] and v.tolist() == [3, 6]
    assert grads((v * v).sum() + (y * y).sum(), a) == [[18 + 2, 36 + 4]]
    (v,) = Handing()(a)
    v += 1.0
    assert a.tolist() == [1, 2]


def test_a_tensor_that_a_user_operation_returns_twice():
    class Twice(autograd.Operator):
        def forward(self, x):
            y = x * 2
            return y, y

        def backward(self, dy, dz):
            return (dy + dz) * 2

    a = leaf(1.0, 2.0)
    y, z = Twice()(a)
    y += 1.0
    assert z.tolist() == [2, 4] and y.tolist() == [3, 5]
    assert grads((y * y + z * z).sum(), a) == [[20, 36]]


# ---- copies into parts, other memory -------------------------------------------------------------


def test_copying_into_a_recorded_tensor():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = a * 2
    tensor.copy_data_to_from(y, from_numpy64(np.array([7.0, 8.0])), 2)
    assert grads((y * a).sum(), a) == [[7, 8]]
    y = a * 2
    tensor.copy_data_to_from(y, b * b, 1, 1, 0)
    assert y.tolist() == [2, 9] and grads((y * y).sum(), a, b) == [[8, 0], [108, 0]]
    y = a * 2
    tensor.copy_data_to_from(y, b.as_type("float32"), 1, 0, 1)
    assert y.tolist() == [4, 4] and grads((y * y).sum(), a, b) == [[0, 16], [0, 8]]


def test_copying_at_an_offset():
    a, b = leaf(1.0, 2.0, 3.0), leaf(3.0, 4.0)
    y = a * 2
    y.copy_from(b, 1)
    assert grads((y * y).sum(), a, b) == [[8, 0, 0], [6, 8]]
    y = a * 2
    y.copy_from_numpy(np.array([5.0]), offset=2)
    y.copy_from(np.zeros(0), 1)
    assert y.tolist() == [2, 4, 5] and grads((y * y).sum(), a) == [[8, 16, 0]]
    view = (a * 2)[::-1].reshape((3, 1))
    with pytest.raises(ValueError, match="copy_data_to_from"):
        tensor.copy_data_to_from(view, b, 9)


def test_new_memory_leaves_the_tape_to_the_views_of_the_old():
    a, b = leaf(1.0, 2.0), leaf(5.0)
    y = a * 2
    y.stores_grad = True
    v, w = y[:1], y[0:2]
    y.reset_like(from_numpy64(np.zeros(3)))
    v += b
    assert w.tolist() == [7, 4] and y.tolist() == [0, 0, 0]
    assert grads((w * w).sum() + (y * 3).sum(), a, b, y) == [[28, 16], [14], [3, 3, 3]]


def test_a_recorded_tensor_is_converted_in_place():
    a, b = leaf(1.0, 2.0), leaf(5.0)
    y = a * 2
    y.stores_grad = True
    v = y[:1]
    y.to_type("float32")
    v += b
    assert y.tolist() == [2, 4] and v.tolist() == [7]
    found = autograd.gradients((y * y).sum())
    assert found[a].tolist() == [8, 16] and found[a].dtype == tensor.float64
    assert found[y].tolist() == [4, 8] and found[y].dtype == tensor.float32
    y = a * 2
    y.to_type("int")
    assert y.dtype == tensor.int32
    with pytest.raises(GraphError, match="not recorded"):
        autograd.gradients((y * 1.0).sum())


# ---- dtypes --------------------------------------------------------------------------------------

ASSIGN = {
    "add": lambda y, b: y.__iadd__(b),
    "sub": lambda y, b: y.__isub__(b),
    "mul": lambda y, b: y.__imul__(b),
    "div": lambda y, b: y.__itruediv__(b),
    "copy": lambda y, b: y.copy_from(b),
    "item": lambda y, b: y.__setitem__(slice(None), b),
}


@pytest.mark.parametrize("name", ASSIGN)
@pytest.mark.parametrize("dtypes", [("float16", "float32"), ("float32", "float64")])
def test_a_wider_tensor_in_place(name, dtypes):
    a, b = leaf(1.0, 2.0, dtype=dtypes[0]), leaf(4.0, 8.0, dtype=dtypes[1])
    y = a * 1.0
    ASSIGN[name](y, b)
    assert y.dtype == a.dtype
    found = autograd.gradients((y * 2.0).sum())
    x, z = np.array([1.0, 2.0]), np.array([4.0, 8.0])
    ones = np.ones(2)
    want = {"add": (ones, ones), "sub": (ones, -ones), "mul": (z, x), "div": (1 / z, -x / z**2)}
    to_a, to_b = want.get(name, (None, ones))
    assert found[b].dtype == b.dtype and found[b].tolist() == (2 * to_b).tolist()
    if to_a is not None:
        assert found[a].dtype == a.dtype and found[a].tolist() == (2 * to_a).tolist()


def test_what_does_not_fit_is_refused_before_anything_is_written():
    y = leaf(1.0, 2.0) * 1
    made = y._creator
    with pytest.raises(ValueError):
        y += leaf(1.0, 2.0, 3.0)
    with pytest.raises(DTypeError):
        n = from_numpy(np.arange(2))
        n += y
    assert y.tolist() == [1, 2] and y._creator is made


# ---- many views ----------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [0, 1500, -1])
def test_views_of_views_do_not_recurse(written):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    views = [a * 2]
    for _ in range(3000):
        views.append(views[-1][...])
    views[written] += b
    for read in (0, 700, -1):
        assert views[read].tolist() == [5, 8]
    assert grads(views[-1].sum() + views[0].sum(), a, b) == [[4, 4], [2, 2]]


def test_collected_views_are_forgotten():
    h = leaf(1.0, 2.0) * 1
    for _ in range(50):
        h[0:1].copy_from(np.zeros(1))
        h[1] = 2.0
    assert len(h._views) <= 1


# ---- views of what has no gradient yet -----------------------------------------------------------

VIEWS = {
    "reshape": lambda t: t.reshape(3, 2),
    "flatten": lambda t: t.flatten(),
    "transpose": lambda t: t.T,
    "permute": lambda t: t.permute(1, 0),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "expand": lambda t: t.expand(2, 3),
    "slice": lambda t: t[:, :2],
    "diagonal": lambda t: t.diagonal(),
    "diagonal of the transpose": lambda t: t.T.diagonal(-1),
    "split": lambda t: autograd.split(t, 1, [1, 2])[1],
    "chunk": lambda t: t.chunk(2, 1)[0],
    "tensor_split": lambda t: t.tensor_split(2, 1)[1],
    "array_split": lambda t: autograd.array_split(t, [1, 3], 1)[1],
    "hsplit": lambda t: t.hsplit(3)[1],
    "vsplit": lambda t: t.vsplit(2)[1],
    "dsplit": lambda t: t.unsqueeze(0).dsplit([2])[0],
    "unbind": lambda t: t.unbind(1)[2],
    "narrow": lambda t: t.narrow(1, 1, 2),
    "flip": lambda t: t.flip(0),
    "ravel": lambda t: t.ravel(),
    "new axis": lambda t: t[None],
    "all": lambda t: t[...],
}
WRITES = {
    "addition": lambda t, w: t.add_(w),
    "copy": lambda t, w: t.__setitem__(..., w * t.detach().clone()),
}


@pytest.mark.parametrize("start", ["detached", "made of constants", "new"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_tensors_without_gradient(view, write, start):
    """A write into a view, or into what it is of, reaches the other one with its gradient."""
    first = np.arange(6.0).reshape(2, 3)
    for through_view in (True, False):
        w = leaf(2.0)
        base = from_numpy64(first)
        base.requires_grad = False
        if start != "new":
            base = base * 1.0 if start == "made of constants" else base.detach().clone()
        seen = VIEWS[view](base)
        WRITES[write](seen if through_view else base, w)
        loss = (base * base).sum() + (seen * 3.0).sum()
        values, known = base.to_numpy(), VIEWS[view](from_numpy64(first)).to_numpy()
        slope = (np.ones_like(first), np.ones_like(known))
        if write == "copy":
            slope = first, known
        if through_view:
            inside = np.zeros_like(first)
            at = VIEWS[view](from_numpy64(np.arange(6.0).reshape(2, 3))).to_numpy().astype(int)
            inside.reshape(-1)[at.reshape(-1)] = 1.0
            slope = slope[0] * inside, slope[1]
        want = (2 * values * slope[0]).sum() + 3 * slope[1].sum()
        assert grads(loss, w) == [[pytest.approx(want)]]


PARTS = {
    "set": (lambda v: v.__setitem__(0, 0.5), 0.0),
    "multiplied": (lambda v: v[0].mul_(2.0), 8.0),
    "added": (lambda v: v[:1].add_(1.0), 4.0),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_an_expanded_tensor(name):
    """One element in each place, which is all there is behind the others."""
    write, slope = PARTS[name]
    x = from_numpy64(np.arange(6.0).reshape(2, 3))
    y = x * 1.0
    v = y.unsqueeze(0).expand((2, 2, 3))
    write(v)
    (found,) = autograd.gradients((v * v).sum(), [x])
    assert found.tolist() == (slope * (x + (name == "added")) * (2 if slope == 8 else 1)).tolist()
