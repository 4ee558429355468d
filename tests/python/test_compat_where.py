"""`where` of SINGA's package: the condition is third, and of any dtype."""

import numpy as np
import pytest
from singa_rs import tensor
from singa_rs.compat.singa import autograd

X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), -np.ones((2, 3), np.float32)
FLAGS = np.array([[0, 1, 0], [1, 1, 0]])


def of(array):
    return tensor.Tensor(data=array, stores_grad=True)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "float16", "uint8"])
@pytest.mark.parametrize("made", [lambda a: a, lambda a: a.tolist(), tensor.from_numpy])
def test_a_condition_of_any_dtype(dtype, made):
    got = autograd.where(of(X), of(Y), made(FLAGS.astype(dtype)))
    np.testing.assert_array_equal(got.to_numpy(), np.where(FLAGS, X, Y))


def test_numbers_that_are_not_zero_hold():
    condition = np.array([[-0.0, 1e-30, np.nan], [-3, 0, np.inf]], np.float32)
    got = autograd.where(of(X), of(Y), condition)
    np.testing.assert_array_equal(got.to_numpy(), np.where(condition, X, Y))


def test_a_bool_tensor_first_is_the_condition():
    got = autograd.where(tensor.from_numpy(FLAGS.astype(bool)), of(X), of(Y))
    np.testing.assert_array_equal(got.to_numpy(), np.where(FLAGS, X, Y))


def test_gradients_go_where_values_came_from(monkeypatch):
    monkeypatch.setattr(autograd, "training", True)
    x, y = of(X), of(Y)
    found = autograd.gradients(autograd.reduce_sum(autograd.where(x, y, FLAGS) * of(X)))
    np.testing.assert_array_equal(found[x].to_numpy(), X * FLAGS)
    np.testing.assert_array_equal(found[y].to_numpy(), X * (1 - FLAGS))


@pytest.mark.parametrize("operands", [(X, Y), (X, Y, FLAGS, FLAGS), (X, Y, "no")])
def test_what_is_no_condition_is_refused(operands):
    with pytest.raises(TypeError, match="where"):
        autograd.where(*(of(one) for one in operands[:2]), *operands[2:])
