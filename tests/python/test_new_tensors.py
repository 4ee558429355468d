"""Tensors made from sizes and bounds, and of random numbers."""

import numpy as np
import pytest
from singa_rs import ShapeError, autograd, tensor


def test_new_tensors():
    for made, want in (
        (tensor.eye(3), np.eye(3)),
        (tensor.eye(3, 5, -1, dtype="int64"), np.eye(3, 5, -1, dtype=np.int64)),
        (tensor.eye(0, 2), np.eye(0, 2)),
        (tensor.linspace(-1, 2, 7), np.linspace(-1, 2, 7)),
        (tensor.linspace(3, 0, 4, endpoint=False), np.linspace(3, 0, 4, endpoint=False)),
        (tensor.linspace(0, 1, 0), np.zeros(0)),
        (tensor.full_like(tensor.zeros((2, 3), dtype="int8"), 5), np.full((2, 3), 5, np.int8)),
    ):
        assert made.shape == want.shape
        np.testing.assert_allclose(made.to_numpy(), want, 1e-7, 1e-7)
        assert made.dtype.is_float == (want.dtype.kind == "f")


def test_random_tensors():
    for made in (
        tensor.rand(100, 50),
        tensor.rand((100, 50)),
        tensor.rand_like(tensor.zeros(5000)),
    ):
        x = made.to_numpy()
        assert x.size == 5000 and 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.03
    like = tensor.zeros((50, 100))
    for made in (tensor.randn(5000), tensor.randn_like(like), tensor.normal(size=5000)):
        x = made.to_numpy()
        assert abs(x.mean()) < 0.06 and abs(x.std() - 1) < 0.05
    assert abs(tensor.normal(3.0, 0.1, (100,)).to_numpy().mean() - 3) < 0.1
    assert tensor.rand(dtype="float64").dtype.name == "float64"
    assert tensor.rand().shape == () and tensor.randn(2, dtype="float16").dtype.name == "float16"
    for made, low, high in (
        (tensor.randint(7, size=5000), 0, 6),
        (tensor.randint(-3, 4, (50, 100), dtype="int8"), -3, 3),
        (tensor.randint(2, (5000,)), 0, 1),
        (tensor.randint_like(tensor.zeros(5000, dtype="int64"), -1, 3), -1, 2),
    ):
        x = made.to_numpy()
        assert x.min() == low and x.max() == high
        counts = np.bincount((x - low).ravel())
        assert counts.max() < 1.25 * counts.min()
    assert sorted(tensor.randperm(500).tolist()) == list(range(500))
    assert tensor.randperm(500).tolist() != tensor.randperm(500).tolist()
    assert tensor.randperm(0).shape == (0,)


@pytest.mark.parametrize("make", [tensor.as_tensor, lambda values: tensor.Tensor(data=values)])
def test_lists_of_different_lengths_are_no_tensor(make):
    with pytest.raises(ShapeError, match="want lists of equal lengths"):
        make([[1, 2], [3]])


@pytest.mark.parametrize("end", [1e30, 1 << 62, float(1 << 63), 1 << 70])
def test_sizes_that_no_tensor_has(end):
    with pytest.raises(ValueError, match=r"arange: got .*, want fewer than 2\*\*60 numbers"):
        tensor.arange(0, end)
    with pytest.raises(ValueError, match=r"pad: got .*, want numbers from 0 to below 2\*\*60"):
        autograd.pad(tensor.zeros(3), "constant", [0, int(end)])
    with pytest.raises(ValueError, match="arange: got .*, want fewer"):
        tensor.arange(-1e308, 1e308, 1e-9)
