"""Memory shared with other libraries through DLPack, and host operations in NumPy."""

import ctypes
import gc

import numpy as np
import pytest
from harness import DEVICE, to_handle
from singa_rs import _core

ADD_ONE = _core.Op("binary_scalar", f="add", scalar=1, reverse=False)
SHARED = ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", SHARED)
def test_dlpack_out_shares_memory(dtype):
    handle = to_handle(np.arange(6).reshape(2, 3) % 2, dtype)
    array = np.from_dlpack(handle)
    assert array.dtype == dtype and array.shape == (2, 3)
    np.testing.assert_array_equal(array, handle.to_numpy())
    handle.copy_from_numpy(np.ones((2, 3), dtype))
    assert (array == 1).all()


def test_dlpack_out_keeps_the_memory_alive():
    array = np.from_dlpack(to_handle(np.arange(1000), "float32"))
    gc.collect()
    others = [to_handle(np.zeros(1000), "float32") for _ in range(3)]
    np.testing.assert_array_equal(array, np.arange(1000))
    assert len(others) == 3


def test_dlpack_out_of_a_view():
    handle = to_handle(np.arange(24).reshape(4, 6), "int32")
    view = handle.view_slice([(3, 2, -2), (1, 3, 2)]).view_permute((1, 0))
    np.testing.assert_array_equal(np.from_dlpack(view), view.to_numpy())


def test_dlpack_can_copy():
    handle = to_handle(np.zeros(4), "float32")
    copied = _core.from_dlpack(Capsule(handle.__dlpack__(copy=True)))
    handle.copy_from_numpy(np.ones(4, np.float32))
    assert (copied.to_numpy() == 0).all()


def flags(capsule):
    """The flags of a versioned tensor, which follow its version, its context and its deleter."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.cast(pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(ctypes.c_uint64))[3]


def test_dlpack_says_whether_it_has_copied():
    handle = to_handle(np.zeros(4), "float32")
    assert flags(handle.__dlpack__(max_version=(1, 0), copy=True)) == 2
    for copy in (None, False):
        assert flags(handle.__dlpack__(max_version=(1, 0), copy=copy)) == 0


class Capsule:
    """Passes a capsule on."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("dtype", SHARED)
def test_dlpack_in_shares_memory(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    handle = _core.from_dlpack(array)
    assert handle.dtype.name == dtype and handle.shape == (2, 3)
    array[1, 2] = 0
    np.testing.assert_array_equal(handle.to_numpy(), array)
    if dtype != "bool":
        ADD_ONE.into([handle], [handle])
        assert array[1, 2] == 1


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[::-1], lambda a: a[1:, ::2], lambda a: a[:0], lambda a: a[2, 3]],
    ids=["transposed", "backwards", "stepped", "empty", "scalar"],
)
def test_dlpack_in_of_a_view(view):
    array = np.asarray(view(np.arange(20.0).reshape(4, 5)))
    handle = _core.from_dlpack(array)
    np.testing.assert_array_equal(handle.to_numpy(), array)
    np.testing.assert_array_equal(ADD_ONE(handle).to_numpy(), array + 1)


def test_dlpack_in_keeps_the_memory_alive():
    handle = _core.from_dlpack(np.arange(100_000.0))
    gc.collect()
    filler = [np.zeros(100_000) for _ in range(3)]
    assert handle.to_numpy().sum() == np.arange(100_000.0).sum() and len(filler) == 3


def test_dlpack_refuses_what_it_cannot_share():
    constant = np.arange(3.0)
    constant.flags.writeable = False
    with pytest.raises(BufferError):
        _core.from_dlpack(constant)
    with pytest.raises((TypeError, BufferError)):
        _core.from_dlpack(np.zeros(3, np.complex64))
    with pytest.raises((TypeError, AttributeError)):
        _core.from_dlpack([1.0, 2.0])
    used = Capsule(to_handle(np.zeros(2), "float32").__dlpack__())
    _core.from_dlpack(used)
    with pytest.raises(BufferError):
        _core.from_dlpack(used)
    with pytest.raises(BufferError):
        to_handle(np.zeros(2), "float32").__dlpack__(dl_device=(2, 0))


def test_bfloat16_arrays_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.0, 1.00390625, 3.0e38, np.nan], ml_dtypes.bfloat16)
    handle = _core.from_numpy(array, DEVICE)
    assert handle.dtype == _core.bfloat16
    np.testing.assert_array_equal(handle.to_numpy(), array.astype(np.float32))


# ---- host operations -----------------------------------------------------------------------------


def same(*metas):
    """Declares one result like the first input."""
    return metas[0]


def test_host_operation():
    double = _core.HostOp("double", same, lambda x: x * 2)
    x = to_handle(np.arange(6).reshape(2, 3), "float32").view_permute((1, 0))
    np.testing.assert_array_equal(double(x).to_numpy(), [[0, 6], [2, 8], [4, 10]])


def test_host_operation_of_several_results():
    def infer(x):
        return ((x.shape[0],), "int64"), (x.shape, _core.float64)

    split = _core.HostOp("split", infer, lambda x: (x.argmax(1), x.astype(np.float64) / 2))
    where, half = split(to_handle(np.array([[1, 2], [4, 3]]), "float32"))
    assert where.to_numpy().tolist() == [1, 0] and half.dtype == _core.float64
    np.testing.assert_array_equal(half.to_numpy(), [[0.5, 1], [2, 1.5]])


def test_host_operation_may_run_operations():
    def forward(x):
        inner = to_handle(x, "float32")
        return ADD_ONE(inner).to_numpy()

    assert _core.HostOp("nested", same, forward)(one()).item() == 2


def one():
    return to_handle(np.ones(1), "float32")


def test_host_operation_raises_what_the_user_raised():
    class Mine(Exception):
        pass

    def fail(x):
        raise Mine("no")

    with pytest.raises(Mine, match="no"):
        _core.HostOp("fails", same, fail)(one())
    with pytest.raises(Mine, match="no"):
        _core.HostOp("fails", fail, lambda x: x)(one())


@pytest.mark.parametrize(
    "forward",
    [lambda x: np.zeros(7), lambda x: (x, x), lambda x: "text", lambda x: None, lambda: 1],
    ids=["shape", "count", "text", "none", "signature"],
)
def test_host_operation_with_a_wrong_result(forward):
    with pytest.raises((ValueError, TypeError)):
        _core.HostOp("wrong", same, forward)(one())


def test_host_operation_gets_copies():
    """Writing to its arguments changes no tensor."""

    def forward(x):
        x[:] = 7
        return x

    x = one()
    assert _core.HostOp("scribbles", same, forward)(x).item() == 7
    assert x.item() == 1
