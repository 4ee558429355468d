"""Convolution, pooling and batch normalisation of raw tensors by SINGA's handles."""

import numpy as np
import pytest
from singa_rs import ShapeError, autograd, singa_wrap
from singa_rs.tensor import from_numpy

RNG = np.random.default_rng(5)


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def raw(array):
    return from_numpy(array).data


def gradients(function, *arrays, dy):
    """The result of a function, and the gradients of its tensors, by the tape."""
    given = [from_numpy(a) for a in arrays]
    for t in given:
        t.stores_grad = True
    with autograd._training_scope(True):
        y = function(*given)
        found = autograd.gradients((y * from_numpy(dy)).sum())
    return y.to_numpy(), [found[t].to_numpy() for t in given]


def close(got, want):
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-4, atol=1e-5)


# ---- convolution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_convolution_and_its_gradients(groups, bias):
    x, W, b, dy = real(2, 4, 7, 6), real(6, 4 // groups, 3, 2), real(6), real(2, 6, 4, 6)
    handle = singa_wrap.ConvHandle(raw(x), (3, 2), (2, 1), (1, 0), 4, 6, bias, groups)
    dy = real(*singa_wrap.CpuConvForward(raw(x), raw(W), raw(b), handle).shape())
    arrays = (x, W, b) if bias else (x, W)
    y, (dx, dW, *db) = gradients(
        lambda *t: autograd.conv(*t, stride=(2, 1), padding=(1, 0), group=groups), *arrays, dy=dy
    )
    close(singa_wrap.CpuConvForward(raw(x), raw(W), raw(b), handle), y)
    close(singa_wrap.CpuConvBackwardx(raw(dy), raw(W), raw(x), handle), dx)
    close(singa_wrap.CpuConvBackwardW(raw(dy), raw(x), raw(W), handle), dW)
    if bias:
        close(singa_wrap.CpuConvBackwardb(raw(dy), raw(b), handle), db[0])


def test_autograd_takes_singas_handles():
    x, W = from_numpy(real(1, 2, 5, 5)), from_numpy(real(3, 2, 3, 3))
    handle = singa_wrap.ConvHandle(x.data, (3, 3), (1, 1), (1, 1), 2, 3, False)
    assert autograd.conv2d(handle, x, W).shape == (1, 3, 5, 5)
    assert autograd.pooling_2d(singa_wrap.PoolingHandle(x.data, (5, 5), (1, 1), (0, 0)), x).shape[
        2:
    ] == (1, 1)


def test_handles_that_differ_in_their_bias_are_not_equal():
    x = raw(real(1, 2, 5, 5))
    a, b = (singa_wrap.ConvHandle(x, (3, 3), (1, 1), (1, 1), 2, 3, bias) for bias in (True, False))
    assert a != b and a.bias_term and not b.bias_term
    assert a == singa_wrap.ConvHandle(x, (3, 3), (1, 1), (1, 1), 2, 3, True)


def test_handles_refuse_other_inputs():
    with pytest.raises(ShapeError, match=r"ConvHandle: got shape \(1, 2, 5, 5\), want \(N, 3"):
        singa_wrap.ConvHandle(raw(real(1, 2, 5, 5)), (3, 3), (1, 1), (1, 1), 3, 3)
    with pytest.raises(ShapeError, match=r"PoolingHandle: got shape \(2, 5, 5\)"):
        singa_wrap.PoolingHandle(raw(real(2, 5, 5)), (3, 3), (1, 1), (1, 1))


# ---- pooling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_max", [True, False])
def test_pooling_and_its_gradient(is_max):
    x = real(2, 3, 7, 6)
    handle = singa_wrap.PoolingHandle(raw(x), [3, 2], [2, 2], [1, 0], is_max)
    y = singa_wrap.CpuPoolingForward(handle, raw(x))
    dy = real(*y.shape())
    pool = autograd.max_pool if is_max else autograd.avg_pool
    more = {} if is_max else {"count_include_pad": False}
    want, (dx,) = gradients(lambda t: pool(t, (3, 2), (2, 2), (1, 0), **more), x, dy=dy)
    close(y, want)
    got = singa_wrap.CpuPoolingBackward(handle, raw(dy), raw(x), y)
    close(got, dx)
    assert got.shape() == x.shape and autograd.training is False


# ---- batch normalisation -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (1, 3, 1, 1)])
def test_batch_normalisation_in_training(shape):
    x, scale, bias = real(4, 3, 2, 2), real(*shape), real(*shape)
    mean, var = raw(np.zeros(shape, np.float32)), raw(np.ones(shape, np.float32))
    handle = singa_wrap.BatchNormHandle(0.25, raw(x))
    given = (raw(x), raw(scale), raw(bias), mean, var)
    y, of_batch, spread = singa_wrap.CpuBatchNormForwardTraining(handle, *given)
    batch_mean, batch_var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    assert of_batch.shape() == spread.shape() == shape
    close(of_batch, batch_mean.reshape(shape))
    close(spread, batch_var.reshape(shape))
    close(mean, 0.25 * batch_mean.reshape(shape))
    close(var, 0.75 + 0.25 * batch_var.reshape(shape) * 16 / 15)
    normal = (x - batch_mean[:, None, None]) / np.sqrt(batch_var[:, None, None] + 1e-5)
    close(y, normal * scale.reshape(3, 1, 1) + bias.reshape(3, 1, 1))


def test_gradients_of_batch_normalisation():
    x, scale, bias, dy = real(4, 3, 2, 2), real(3), real(3), real(4, 3, 2, 2)
    averages = from_numpy(np.zeros(3)), from_numpy(np.ones(3))
    own = autograd.BatchNormHandle(0.1)
    y, (dx, dscale, dbias) = gradients(
        lambda *t: autograd.batchnorm_2d(own, *t, *averages), x, scale, bias, dy=dy
    )
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    parts = (raw(a.reshape(1, 3, 1, 1)) for a in (scale, bias, mean, var))
    made = singa_wrap.CpuBatchNormBackwardx(
        singa_wrap.BatchNormHandle(0.1), raw(y), raw(dy), raw(x), *parts
    )
    close(made[0], dx)
    close(made[1], dscale.reshape(1, 3, 1, 1))
    close(made[2], dbias.reshape(1, 3, 1, 1))


def test_batch_normalisation_in_evaluation():
    x, (scale, bias, mean) = real(2, 3), (real(3) for _ in range(3))
    var = np.array([1.0, 2.0, 3.0], np.float32)
    handle = singa_wrap.BatchNormHandle(0.9, raw(x))
    given = map(raw, (x, scale, bias, mean, var))
    y = singa_wrap.CpuBatchNormForwardInference(handle, *given)
    close(y, (x - mean) / np.sqrt(var + 1e-5) * scale + bias)
    assert y.shape() == (2, 3)
