"""The tape: what is recorded, in which order gradients come, and what is refused."""

import gc
import threading
import weakref

import numpy as np
import pytest
from singa_rs import GraphError, ShapeError, autograd, tensor
from singa_rs.tensor import from_numpy


@pytest.fixture(autouse=True)
def training():
    autograd.training = True
    yield
    autograd.training = False


def parameter(*shape, value=None):
    made = from_numpy(np.random.default_rng(0).normal(size=shape) if value is None else value)
    made.stores_grad = True
    return made


# ---- training ------------------------------------------------------------------------------------


def test_nothing_is_recorded_outside_of_training():
    w = parameter(2, 2)
    autograd.training = False
    assert isinstance(autograd.relu(w).creator, autograd.Dummy)
    loss = w.sum()
    with pytest.raises(GraphError, match="training is False"):
        autograd.backward(loss)
    autograd.training = True
    with pytest.raises(GraphError, match="not recorded"):
        autograd.backward(loss)


def test_a_scope_speaks_for_its_thread_alone():
    autograd.training = False
    seen = []
    with autograd._training_scope(True):
        thread = threading.Thread(target=lambda: seen.append(autograd.training))
        thread.start()
        thread.join()
        assert autograd.training
        with autograd._training_scope(False):
            assert not autograd.training and parameter(1).exp()._creator is None
        autograd.training = False
        assert not autograd.training
    assert seen == [False] and not autograd.training


def test_assignment_reaches_other_threads():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(autograd.training))
    thread.start()
    thread.join()
    assert seen == [True]


def test_no_grad_pauses_and_keeps_training():
    w = parameter(2)
    with autograd.no_grad():
        with autograd._training_scope(True):
            assert autograd.training and autograd.exp(w)._creator is None
        assert autograd.exp(w)._creator is None and autograd.training
    assert autograd.exp(w)._creator is not None

    @autograd.no_grad()
    def inside():
        """Words."""
        return w * 2

    assert inside()._creator is None and inside.__doc__ == "Words."


def test_requires_grad_false_is_not_recorded():
    x = tensor.ones(2)
    x.requires_grad = False
    y = autograd.exp(x) * 2
    assert not y.requires_grad and y._creator is None
    assert (y + parameter(2)).requires_grad


# ---- backward ------------------------------------------------------------------------------------


def test_gradients_are_yielded_as_they_become_final():
    a, b, c = parameter(2), parameter(2), parameter(2)
    loss = (((a * 2) * b) * c).sum()
    order = [p for p, _ in autograd.backward(loss)]
    assert [id(p) for p in order] == [id(c), id(b), id(a)]


def test_a_tensor_that_is_used_twice():
    a, b = parameter(3), parameter(3)
    y = (a + b) + a
    found = autograd.gradients(y.sum())
    np.testing.assert_array_equal(found[a].to_numpy(), [2, 2, 2])
    np.testing.assert_array_equal(found[b].to_numpy(), [1, 1, 1])
    assert found[id(a)] is found[a] and a in found and id(b) in found and len(found) == 2


def test_gradients_share_no_memory():
    a, b = parameter(3), parameter(3)
    w = parameter(2, 3)
    loss = (a + b + w.T()[:, 0] + w.reshape((3, 2))[:, 1]).sum()
    found = autograd.gradients(loss)
    made = [found[p] for p in (a, b, w)]
    assert len({g.block_id for g in made}) == 3 and all(g.is_contiguous() for g in made[:2])
    made[0] += 1
    np.testing.assert_array_equal(made[1].to_numpy(), [1, 1, 1])


def test_parameters_may_be_updated_as_they_come():
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(4, 4)) for _ in range(3)]

    def run(update):
        ws = [parameter(value=a) for a in start]
        alias = ws[0].detach()
        h = autograd.tanh(from_numpy(np.ones((2, 4))) @ ws[0])
        h = autograd.tanh((h @ ws[1]) @ alias) @ ws[2] * 0.5 + h @ ws[1].T()
        found = {}
        for p, g in autograd.backward(h.sum()):
            found[id(p)] = g.to_numpy()
            if update:
                p -= g * 0.1
        return [found[id(w)] for w in ws]

    for one, other in zip(run(False), run(True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_second_backward_is_refused():
    w = parameter(2)
    h = w.exp()
    loss = h.sum()
    list(autograd.backward(loss))
    with pytest.raises(GraphError, match="compute the loss again"):
        autograd.backward(loss)
    with pytest.raises(GraphError, match="compute the loss again"):
        autograd.backward((h * 2).sum())
    with pytest.raises(GraphError):
        h.creator.backward(tensor.ones(2))


def test_the_loss_has_one_element_unless_dy_is_given():
    w = parameter(2)
    with pytest.raises(ShapeError, match="one element"):
        autograd.backward(w * 2)
    with pytest.raises(ShapeError, match="dy of shape"):
        autograd.backward(w * 2, np.ones(3))
    found = autograd.gradients(w * 2, np.array([1.0, 3.0]))
    assert found[w].tolist() == [2, 6]


def test_integers_have_no_gradient():
    w = parameter(value=np.arange(3))
    with pytest.raises(TypeError, match="float"):
        autograd.backward((w * 2).sum())
    with pytest.raises(GraphError, match="not recorded"):
        autograd.backward((w * 2.0).sum())


def test_a_leaf_as_loss():
    w = parameter(1)
    assert autograd.gradients(w)[w].tolist() == [1]


def test_intermediates_may_ask_for_their_gradients():
    w = parameter(2)
    before, after = w * 3, w * 2
    before.stores_grad = True
    y = before.exp() + after
    after.stores_grad = True
    found = autograd.gradients(y.sum())
    np.testing.assert_allclose(found[before].to_numpy(), np.exp(before.to_numpy()), rtol=1e-5)
    assert found[after].tolist() == [1, 1] and w in found


def test_only_what_leads_to_a_stored_gradient_runs():
    calls = []

    class Watched(autograd.Operator):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            calls.append(self.name)
            return dy

    w, x = parameter(2), tensor.ones(2)
    loss = (Watched("input")(x)[0] * Watched("weight")(w)[0]).sum()
    list(autograd.backward(loss))
    assert calls == ["weight"]


def test_backward_leaves_gradients():
    w = parameter(2)
    for k in (1, 2):
        (w * 3).sum().backward()
        assert w.grad.tolist() == [3.0 * k] * 2
    assert not w.grad.requires_grad


def test_memory_is_released_on_the_way():
    w = parameter(2)
    h = w.exp()
    node, value = h.creator, weakref.ref(h)
    loss = (h * h).sum()
    del h
    for p, _ in autograd.backward(loss):
        assert p is w and node.saved == () and value() is None
    inner = weakref.ref(node)
    del node, loss
    assert inner() is None


def test_tensors_without_gradients_are_released_on_the_way():
    w, x = parameter(2), tensor.from_numpy(np.ones(2, np.float32))
    gone = weakref.ref(x)
    loss = (w * x).sum()
    del x
    for p, _ in autograd.backward(loss):
        assert p is w and gone() is None


def test_a_users_operation_is_released_on_the_way():
    """It may hold values in its attributes."""

    class Double(autograd.Operator):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy * 2

    h = Double()(parameter(2))[0]
    gone = weakref.ref(h.creator)
    loss = h.sum()
    del h
    for _ in autograd.backward(loss):
        assert gone() is None


def test_tensors_whose_gradient_is_never_computed_are_collected():
    h = parameter(2).exp()
    h.stores_grad = True
    gone = weakref.ref(h)
    del h
    gc.collect()
    assert gone() is None


def test_deep_graphs_do_not_recurse():
    w = parameter(1)
    y = w
    for _ in range(20000):
        y = y + 1
    assert autograd.gradients(y)[w].tolist() == [1]
    y = w
    for _ in range(20000):
        y = y + 1
    del y


def test_unused_outputs_have_zero_gradient():
    w = parameter(2, 3)
    _, right = autograd.split(w, 1, [1, 2])
    found = autograd.gradients((right * 2).sum())
    np.testing.assert_array_equal(found[w].to_numpy(), [[0, 2, 2], [0, 2, 2]])


# ---- by hand -------------------------------------------------------------------------------------


def test_creators_go_backward_by_hand():
    a, b = from_numpy(np.ones((2, 3))), from_numpy(np.full((3,), 2.0))
    y = autograd.mul(a, b)
    da, db = y.creator.backward(y.data)
    assert da.shape == (2, 3) and db.tolist() == [4.0] * 3
    dx = autograd.relu(a).creator.backward(a)
    assert dx.shape == (2, 3)
    loss = autograd.mse_loss(a, np.zeros((2, 3)))
    np.testing.assert_allclose(loss.creator.backward().to_numpy(), 2 / 6, rtol=1e-6)
    np.testing.assert_allclose(loss.creator.backward(from_numpy(np.array([2.0]))).to_numpy(), 4 / 6)


def test_operators_are_callable():
    x = from_numpy(np.array([[-1.0, 2.0]]))
    (y,) = autograd.ReLU()(x)
    assert y.tolist() == [[0, 2]] and isinstance(y.creator, autograd.ReLU)
    assert autograd.Add()(x, 1.0)[0].tolist() == [[0, 3]]
    assert autograd.Reshape((2, 1))(x)[0].shape == (2, 1)
    assert autograd.Gemm(2.0, 1.0, 0, 1)(x, x)[0].tolist() == [[10]]
    assert autograd.MeanSquareError(x)(x)[0].tolist() == [0]
    op = autograd.SoftMax(axis=1)
    first, second = op(x)[0], op(x * 2)[0]
    assert first.creator is op and second.creator is not op
    assert autograd.Operation is autograd.Operator and y.creator.name.startswith("ReLU#")
    assert y.name.endswith(":0")


def test_parts_share_a_creator():
    left, right = autograd.split(parameter(2, 3), 1, [1, 2])
    assert left.creator is right.creator and right.name.endswith(":1")
    dx = left.creator.backward(left, right)
    assert dx.shape == (2, 3)


# ---- writes --------------------------------------------------------------------------------------


def test_writes_into_parameters_are_not_recorded():
    w = parameter(2)
    w += 1
    w[0] = 3.0
    assert w._creator is None
    w2 = w[0:1]
    w2 *= 2
    assert w.tolist()[0] == 6


def test_changed_memory_is_found():
    w = parameter(2)
    loss = (w * w).sum()
    w += 1
    with pytest.raises(GraphError, match="Mul.*changed in place"):
        list(autograd.backward(loss))
    y = autograd.exp(w)
    loss = y.sum()
    y *= 2
    with pytest.raises(GraphError, match="changed in place"):
        list(autograd.backward(loss))


def test_memory_may_change_that_no_wanted_gradient_needs():
    x, w = tensor.ones((2, 3)), parameter(value=np.ones((3, 4), np.float32))
    image, kernel = tensor.ones((1, 2, 5, 5)), parameter(value=np.ones((3, 2, 3, 3), np.float32))
    row, column = parameter(value=np.ones(2, np.float32)), parameter(value=np.ones(3, np.float32))
    losses = [(x @ w).sum(), autograd.conv(image, kernel, None).sum()]
    losses += [(row @ x).sum(), (x @ column).sum(), tensor.ones(3) @ column]
    params = (w, kernel, row, column, column)
    for p in params:
        p *= 2
    for y, p, want in zip(losses, params, (2, 9, 3, 2, 1), strict=True):
        (found,) = autograd.gradients(y, [p])
        assert (found.to_numpy() == want).all()


def test_an_array_as_index_of_a_recorded_tensor():
    p = parameter(3)
    h = p * 1
    h[[0, 1]] = 0
    assert h.tolist()[:2] == [0, 0]
    autograd.reduce_sum(h).backward()
    assert p.grad.tolist() == [0, 0, 1]
