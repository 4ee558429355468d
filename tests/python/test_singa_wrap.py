"""SINGA's raw tensors and the module of its C++ bindings."""

import numpy as np
from singa_rs import autograd, device, layer, singa_wrap, tensor
from singa_rs.tensor import from_numpy


def test_raw_tensors_have_singas_methods():
    raw = singa_wrap.Tensor((2, 3))
    raw.SetFloatValue(2.0)
    assert raw.shape() == (2, 3) == raw.shape and raw.shape(1) == 3
    assert raw.GetFloatValue(2) == [2.0, 2.0] and raw.GetIntValue(1) == [2]
    assert raw.device() == device.get_default_device()
    assert (raw.Size(), raw.MemSize(), raw.nDim()) == (6, 24, 2)
    assert raw.data_type() == singa_wrap.kFloat32
    raw.CopyFloatDataFromHostPtr(np.arange(6.0))
    raw += 1.0
    assert raw.GetFloatValue(3) == [1, 2, 3]
    assert not raw.Clone().shares_block(raw) and raw.AsType("int").dtype == tensor.int32
    assert singa_wrap.Tensor([2], singa_wrap.kInt).dtype == tensor.int32
    assert singa_wrap.Tensor([2], device.create_cpu_device(), tensor.float16).dtype == 1


def test_data_is_raw_and_shares():
    x = from_numpy(np.ones((2, 3)))
    assert x.data.shape() == (2, 3) and x.data.shares_block(x)
    assert type(tensor.from_raw_tensor(x.data)) is tensor.Tensor
    assert tensor.from_raw_tensor(x.data).shape == (2, 3)


def test_functions():
    a = from_numpy(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert singa_wrap.__add__(a, a).GetFloatValue(4) == [2, 4, 6, 8]
    assert singa_wrap.Mult(a, a).GetFloatValue(4) == [7, 10, 15, 22]
    assert singa_wrap.SumAll(a).shape() == (1,)
    assert singa_wrap.ConcatOn(singa_wrap.VecTensor([a, a]), 0).shape() == (4, 2)
    singa_wrap.Axpy(0.5, a, a)
    assert a.tolist() == [[1.5, 3.0], [4.5, 6.0]]
    assert not singa_wrap.USE_CUDA and singa_wrap.SINGA_VERSION > 1101


def test_operators_see_raw_tensors():
    class Double(autograd.Operator):
        def forward(self, x):
            assert x.shape() == (2,)
            return singa_wrap.__add__(x, x)

        def backward(self, dy):
            assert dy.shape() == (2,)
            return singa_wrap.__mul__(dy, 2.0)

    w = from_numpy(np.ones(2))
    w.stores_grad = True
    with autograd._training_scope(True):
        y = Double()(w)[0]
        assert type(y) is tensor.Tensor
        found = autograd.gradients(y.sum())
    assert found[w].tolist() == [2, 2] and type(found[w]) is tensor.Tensor


def test_layers_have_aliases():
    assert autograd.Linear is layer.Linear and autograd.MaxPool2d is layer.MaxPool2d


def test_conversions_of_raw_tensors_are_raw():
    raw = from_numpy(np.array([1.0, 2.0])).data
    for dtype in (singa_wrap.kInt, singa_wrap.kFloat16, singa_wrap.kFloat32):
        made = raw.AsType(dtype)
        assert made.nDim() == 1 and made.data_type() == dtype and made.GetIntValue(2) == [1, 2]
    raw.shape = (2, 1)
    assert raw.shape() == (2, 1)
