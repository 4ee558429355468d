"""The gradient that backward starts from: converted to the loss's dtype, whatever its own."""

import numpy as np
import pytest
from singa_rs import ShapeError, autograd, tensor
from singa_rs.tensor import from_numpy


@pytest.fixture
def a():
    autograd.training = True
    made = from_numpy(np.array([3.0, 4.0]), dtype="float64")
    made.stores_grad = True
    return made


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("way", ["tensor", "array", "list"])
def test_of_any_dtype(a, dtype, way):
    values = np.array([1, 2], dtype)
    ways = {"tensor": lambda: from_numpy(values, dtype=dtype), "list": values.tolist}
    dy = ways.get(way, lambda: values)()
    grad = autograd.gradients(a * 2, dy)[a]
    assert grad.dtype == tensor.float64 and grad.tolist() == [2, 4]
    (a * a).backward(dy)
    assert a.grad.dtype == tensor.float64 and a.grad.tolist() == [6, 16]


def test_of_a_parameter_itself(a):
    dy = from_numpy(np.array([1, 2]))
    grad = autograd.gradients(a, dy)[a]
    assert grad.dtype == tensor.float64 and grad.tolist() == [1, 2]


def test_for_a_narrower_loss(a):
    y = (a * 2).as_type("float16")
    dy = from_numpy(np.array([0.1, 0.2]), dtype="float64")
    want = np.float16([0.1, 0.2]).astype(float) * 2
    np.testing.assert_array_equal(autograd.gradients(y, dy)[a].to_numpy(), want)


def test_its_shape_is_checked(a):
    with pytest.raises(ShapeError, match="dy of shape"):
        autograd.gradients(a * 2, from_numpy(np.ones(3, np.int32)))
