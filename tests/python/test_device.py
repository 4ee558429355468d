"""Which device programs get that ask for a CUDA device."""

import os

import numpy as np
import pytest
from singa_rs import device, tensor
from singa_rs.device import DeviceError

CPU = device.get_default_device()
ASKED = {
    "create_cuda_gpu": (lambda: device.create_cuda_gpu(), CPU),
    "create_cuda_gpu_on": (lambda: device.create_cuda_gpu_on(1), CPU),
    "create_cuda_gpus": (lambda: device.create_cuda_gpus(2), [CPU, CPU]),
    "create_cuda_gpus_on": (lambda: device.create_cuda_gpus_on([3, 0, 1]), [CPU, CPU, CPU]),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_cpu_answers_only_where_the_environment_says_so(name, monkeypatch):
    ask, wanted = ASKED[name]
    for nothing in (None, ""):
        monkeypatch.delenv("SINGA_RS_DEVICE", raising=False)
        if nothing is not None:
            monkeypatch.setenv("SINGA_RS_DEVICE", nothing)
        with pytest.raises(DeviceError, match="no driver.*SINGA_RS_DEVICE=cpu"):
            ask()
    monkeypatch.setenv("SINGA_RS_DEVICE", "cpu")
    assert ask() == wanted


@pytest.mark.parametrize("value", ["CPU", "cuda", "cpu ", "0"])
@pytest.mark.parametrize("name", ASKED)
def test_another_device_in_the_environment_is_refused_by_name(name, value, monkeypatch):
    monkeypatch.setenv("SINGA_RS_DEVICE", value)
    with pytest.raises(DeviceError, match=f"create_cuda_gpu_on: got SINGA_RS_DEVICE='{value}'"):
        ASKED[name][0]()


@pytest.mark.parametrize("ask", [device.get_gpu_mem_size, device.device_query])
@pytest.mark.parametrize("value", ["", "cpu", "emulated"])
def test_questions_about_a_gpu_are_not_answered_by_another_device(ask, value, monkeypatch):
    monkeypatch.setenv("SINGA_RS_DEVICE", value)
    for number, got in ((0, "but no driver"), (-1, "want one from 0")):
        with pytest.raises(DeviceError, match=f"{ask.__name__}: got device {number}, {got}"):
            ask(number)


def test_what_does_not_ask_for_cuda_ignores_the_environment(monkeypatch):
    monkeypatch.setenv("SINGA_RS_DEVICE", "tpu")
    assert device.create_cpu_device() == device.get_default_device() == CPU
    assert tensor.ones((2,)).to_numpy().tolist() == [1, 1]


def test_tensors_of_the_device_that_answers_are_those_of_the_cpu(monkeypatch):
    monkeypatch.setenv("SINGA_RS_DEVICE", "cpu")
    x = tensor.Tensor((2, 3), device.create_cuda_gpu_on(0))
    x.copy_from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = x + tensor.ones((2, 3))
    assert y.device == CPU
    np.testing.assert_array_equal(y.to_numpy(), np.arange(1, 7).reshape(2, 3))


def test_info_says_what_kernels_run_with():
    found = device.info()
    assert found["threads"] == device.get_default_device().num_threads
    assert 1 <= found["allowed_threads"] <= (os.cpu_count() or 1)
    assert found["quota"] is None or found["quota"] > 0
    assert found["instructions"] in ("baseline", "avx2", "avx512")
    assert found["library"].split()[0] in ("onednn", "portable")
