"""Initialisers: spread, seeds, names."""

import numpy as np
import pytest
from layer_calls import call, close
from singa_rs import autograd, initializer, layer, tensor
from singa_rs.tensor import Tensor

SPREADS = [
    ("lecun_uniform", (400, 300), 1 / 400),
    ("lecun_normal", (400, 300), 1 / 400),
    ("glorot_uniform", (400, 300), 2 / 700),
    ("glorot_normal", (400, 300), 2 / 700),
    ("he_uniform", (400, 300), 2 / 400),
    ("he_normal", (400, 300), 2 / 400),
    ("he_normal", (64, 32, 5, 5), 2 / (32 * 25)),
    ("glorot_uniform", (64, 32, 5, 5), 2 / (96 * 25)),
    ("xavier", (400, 300), 2 / 700),
    ("glorot", (400, 300), 2 / 700),
    ("msra", (400, 300), 2 / 400),
    ("uniform", (400, 300), 2 / 700),
    ("gaussian", (400, 300), 4 / 700),
]


@pytest.mark.parametrize(("name", "shape", "variance"), SPREADS)
def test_initializer_spread(name, shape, variance):
    t = Tensor(shape)
    assert getattr(initializer, name)(t) is t
    values = t.to_numpy()
    assert abs(values.mean()) < 0.05 * variance**0.5
    assert abs(values.var() / variance - 1) < 0.05
    limit = np.abs(values).max() / variance**0.5
    is_uniform = name.endswith("uniform") or name == "xavier"
    assert (1.7 < limit <= 3**0.5 + 1e-5) if is_uniform else limit > 3


def test_gaussian_of_given_fans():
    t = Tensor((300, 300))
    initializer.gaussian(t, 100, 300)
    assert abs(t.to_numpy().var() / 0.01 - 1) < 0.05
    initializer.gaussian(t, 100)
    assert abs(t.to_numpy().var() / 0.02 - 1) < 0.05


def test_eye_and_orthogonal():
    t = Tensor((3, 4))
    initializer.eye(t)
    close(t.to_numpy(), np.eye(3, 4))
    for shape in ((4, 7), (7, 4), (4, 2, 3, 3)):
        t = Tensor(shape)
        initializer.orthogonal(t, 2.0)
        q = t.to_numpy().reshape(shape[0], -1)
        gram = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        close(gram, 4 * np.eye(len(gram)))
    for function in (initializer.eye, initializer.orthogonal):
        with pytest.raises(ValueError, match=function.__name__):
            function(Tensor((3,)))


def test_initializer_by_callable_and_name():
    dense = layer.Linear(4, kernel_init=lambda t: t.set_value(0.5), bias_init="ones")
    close(call(dense, np.ones((1, 2), np.float32)), np.full((1, 4), 2.0))


def test_initial_values_depend_on_the_seed_only():
    def weights(draws):
        Tensor((1,)).device.set_seed(7)
        dense = layer.Linear(5)
        with autograd._training_scope(True):
            for _ in range(draws):
                autograd.dropout(Tensor((4, 4)), 0.5)
        call(dense, np.zeros((1, 3), np.float32))
        return dense.W.to_numpy()

    np.testing.assert_array_equal(weights(0), weights(3))


def test_dtype_follows_the_input():
    dense = layer.Linear(3)
    dense(Tensor((2, 4), dtype=tensor.float64))
    assert dense.W.dtype == tensor.float64 and dense.b.dtype == tensor.float64
