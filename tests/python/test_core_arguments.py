"""Engine behaviour visible only from Python: the ledger, and arguments out of range."""

import gc

import numpy as np
import pytest
from handles import ADD, CPU, tensor
from singa_rs import _core


def test_the_ledger_balances():
    gc.collect()
    CPU.trim()
    before = CPU.memory()
    x = tensor(np.ones((100, 100)))
    x.set_account("parameters")
    y = _core.Op("matmul")(x, x.view_permute((1, 0)))
    assert CPU.memory()["parameters"] - before["parameters"] >= 40_000
    assert CPU.memory()["kernels"] > before["kernels"]
    CPU.reset_peak()
    y.set_account("states")
    x.set_account("results")
    after = CPU.memory()
    assert after["peak"] == after["allocated"]
    assert after["parameters"] == before["parameters"] and after["scratch"] == 0
    del x, y
    CPU.trim()
    after = CPU.memory()
    assert {k: after[k] for k in after if k != "peak"} == {
        k: before[k] for k in before if k != "peak"
    }
    assert after["reserved"] == after["allocated"]


def test_the_cpu_is_one_object():
    assert tensor([1]).device is CPU is _core.cpu()


def test_only_a_tensor_s_own_accounts():
    for name in ("pool", "kernels", "arena", "nothing"):
        with pytest.raises(ValueError, match="set_account"):
            tensor([1]).set_account(name)


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1 << 70])
def test_seeds_out_of_range(seed):
    with pytest.raises(ValueError, match="set_seed"):
        CPU.set_seed(seed)


@pytest.mark.parametrize("seed", [None, 1.0, "1", True])
def test_non_integer_seeds_are_refused(seed):
    with pytest.raises(TypeError, match="set_seed"):
        CPU.set_seed(seed)


def test_seeds_of_numpy():
    CPU.set_seed(np.int64(3))
    assert _core.random_state(CPU, "step").to_numpy().tolist() == [6, 0]


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (1 << 70,), (0, 1 << 62), (1 << 62, 1 << 62)])
def test_extents_out_of_range(shape):
    x = tensor([1])
    for make in (lambda s: _core.Handle(s, CPU, "float32"), x.view_reshape, x.view_expand):
        with pytest.raises(ValueError, match=r"shape|tensor|expand|reshape"):
            make(shape)


@pytest.mark.parametrize("shape", [(1.5,), (None,), None, 3, "12", ("a",)])
def test_non_integer_extents_are_refused(shape):
    with pytest.raises(TypeError, match="shape"):
        _core.Handle(shape, CPU, "float32")


@pytest.mark.parametrize(
    "name, attrs",
    [
        ("matmul", {"transpose": True}),
        ("softmax", {"axis": 0, "log": False, "nonsense": 1}),
        ("dropout", {"ratio": 0.5, "offest": 1}),
        ("binary_scalar", {"f": "add", "scalar": 1, "reversed": True}),
        ("unary", {"f": {"elu": {"alpha": 1.0, "beta": 2.0}}}),
    ],
)
def test_attributes_that_an_operation_does_not_have(name, attrs):
    with pytest.raises(ValueError, match="attribute|expected unit"):
        _core.Op(name, **attrs)


@pytest.mark.parametrize("offset", [0, 3])
def test_attributes_that_may_be_left_out(offset):
    attrs = _core.Op("dropout", ratio=0.5, offset=offset).attrs
    assert attrs == {"op": "dropout", "ratio": 0.5} | ({"offset": 3} if offset else {})
    with pytest.raises(ValueError, match="offset|integer|u64"):
        _core.Op("dropout", ratio=0.5, offset=-1)


def test_attributes_that_contain_themselves():
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        _core.Op("transpose", axes=endless)


def test_views_of_sizes_that_overflow():
    x = tensor(np.ones(5))
    with pytest.raises(ValueError):
        x.view_slice([(0, (1 << 63) - 1, -1)])
    with pytest.raises((ValueError, OverflowError)):
        x.view_slice([(0, (1 << 64) - 1, -1)])
    assert x.view_slice([(4, 1, (1 << 63) - 1)]).to_numpy().tolist() == [1]
    with pytest.raises(_core.ShapeError):
        tensor([[1]]).view_expand((1 << 31, 1 << 31))
    row, column = _core.Handle((1 << 40, 1), CPU), _core.Handle((1, 1 << 40), CPU)
    with pytest.raises(_core.ShapeError, match="add"):
        ADD(row, column)


def test_true_is_not_a_dtype():
    with pytest.raises(_core.DTypeError):
        _core.dtype(True)
    assert _core.float16 != True  # noqa: E712
