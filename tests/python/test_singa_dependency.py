"""`infer_dependency` counts how often the results of operations are used."""

import pytest
from singa_rs import GraphError
from singa_rs.compat.singa import autograd
from singa_rs.tensor import Tensor


@pytest.fixture(autouse=True)
def training():
    with autograd._training_scope(True):
        yield


def test_counts():
    x, w = Tensor((2, 3)), Tensor((3, 3), stores_grad=True, name="w")
    y = autograd.matmul(x, w)
    z = autograd.add(y, y)
    a, b = autograd.split(z, 1, [1, 2])
    c = autograd.cat([a, b, b], 1)
    loss = autograd.mean(c, autograd.matmul(c, Tensor((5, 5))), c)
    operations, tensors = autograd.infer_dependency(loss.creator)
    made = {one: count for one, count in operations.items() if not isinstance(one, autograd.Dummy)}
    product = loss.creator.edges[1]
    want = {y: 2, z: 1, a: 3, c: 3}
    assert made == {**{t.creator: count for t, count in want.items()}, product: 1}
    leaves = [one for one in operations if isinstance(one, autograd.Dummy)]
    assert {one.tensor for one in leaves} >= {x, w} and len(leaves) == 3
    assert [one.name for one in leaves if one.tensor is w] == ["w"]
    assert tensors[id(x)] == tensors[id(w)] == 1
    assert tensors[a.creator, 0] == 1 and tensors[a.creator, 1] == 2 and tensors[z.creator, 0] == 1
    assert sum(tensors.values()) == sum(operations.values())


def test_a_leaf_that_is_used_twice():
    x = Tensor((2, 2))
    operations, tensors = autograd.infer_dependency(autograd.matmul(x, x).creator)
    assert list(operations.values()) == list(tensors.values()) == [2]
    assert autograd.infer_dependency(x.creator) == ({}, {})


def test_a_long_chain():
    x = y = Tensor((2,), stores_grad=True)
    for _ in range(3000):
        y = y * 1.5
    operations, _ = autograd.infer_dependency(y.creator)
    assert len(operations) == 3000 and set(operations.values()) == {1}
    assert next(one for one in operations if isinstance(one, autograd.Dummy)).tensor is x


def test_refused():
    loss = autograd.mse_loss(Tensor((2,), stores_grad=True), Tensor((2,)))
    assert len(list(autograd.backward(loss))) == 1
    with pytest.raises(GraphError, match="backward has already passed"):
        autograd.infer_dependency(loss.creator)
    with pytest.raises(GraphError, match="not recorded"):
        autograd.infer_dependency(autograd.ReLU())
    for wrong in (None, loss, "x"):
        with pytest.raises(TypeError, match="infer_dependency: got .*, want an Operator"):
            autograd.infer_dependency(wrong)
