"""Layers called with arrays."""

import numpy as np
from singa_rs.tensor import Tensor

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def call(one, *arrays):
    return one(*(Tensor(data=a) for a in arrays)).to_numpy()


def close(got, want, tolerance=1e-5):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
