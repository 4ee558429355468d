"""Memory lent to the engine, as visible only from Python."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from handles import ADD, COPY, CPU, NEG, tensor
from singa_rs import _core


def test_lent_memory_overlaps_itself():
    """Two imports of one array are two blocks over the same memory."""
    array = np.arange(8, dtype=np.float32)
    x, y = _core.from_dlpack(array), _core.from_dlpack(array[::-1])
    assert not x.shares_block(y)
    ADD.into([x, y], [x])
    assert array.tolist() == [7] * 8


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 1 lends nothing that it borrows"
)
def test_memory_lent_and_lent_back_overlaps_itself():
    x = tensor(np.arange(6))
    back = _core.from_dlpack(np.from_dlpack(x)[::-1])
    assert not x.shares_block(back)
    COPY.into([back], [x])
    assert x.to_numpy().tolist() == [5, 4, 3, 2, 1, 0]
    x.copy_from_numpy(np.from_dlpack(x)[::-1])
    assert x.to_numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_lent_to_itself_is_an_alias():
    x = tensor([1, 2])
    y = _core.from_dlpack(x)
    assert y is not x and y.shares_block(x)
    version = y.version
    NEG.into([x], [x])
    assert y.version > version and y.to_numpy().tolist() == [-1, -2]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1],
        lambda a: a[::-2, ::3],
        lambda a: a.T,
        lambda a: a[2:2],
        lambda a: a[1, 2],
        lambda a: np.lib.stride_tricks.as_strided(a, (3, 6), (0, 8)),
    ],
    ids=["backwards", "stepped", "transposed", "empty", "scalar", "expanded"],
)
def test_strided_arrays_are_shared_both_ways(view):
    array = np.arange(24, dtype=np.float64).reshape(4, 6)
    lent = view(array)
    x = _core.from_dlpack(np.asarray(lent))
    np.testing.assert_array_equal(x.to_numpy(), lent)
    np.testing.assert_array_equal(np.from_dlpack(x), lent)
    np.testing.assert_array_equal(NEG(x).to_numpy(), -lent)
    array += 100
    np.testing.assert_array_equal(x.to_numpy(), lent)


def test_overlapping_windows_are_read_but_not_written():
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3, writeable=True)
    x = _core.from_dlpack(windows)
    np.testing.assert_array_equal(NEG(x).to_numpy(), -windows)
    with pytest.raises(ValueError, match="place of its own"):
        NEG.into([x], [x])


def test_truth_values_of_any_byte():
    """Another library may store True as any non-zero byte."""
    bits = np.array([0, 1, 2, 255], np.uint8).view(bool)
    logic = _core.Op("binary", f="and")
    for x in (_core.from_dlpack(bits), _core.from_numpy(bits, CPU)):
        assert logic(x, x).to_numpy().view(np.uint8).tolist() == [0, 1, 1, 1]
        assert _core.Op("cast", dtype="int32")(x).to_numpy().tolist() == [0, 1, 1, 1]
        assert x.view_slice([(2, 1, 1)]).item() is True


def test_arrays_that_cannot_be_lent():
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.raises(BufferError):
        _core.from_dlpack(array)
    for wrong in (np.ones(3, np.longdouble), np.ones(3, np.complex64), np.array([None])):
        with pytest.raises((_core.DTypeError, BufferError)):
            _core.from_dlpack(wrong)
    capsule = tensor([1]).__dlpack__()

    class Once:
        def __dlpack__(self):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    _core.from_dlpack(Once())
    with pytest.raises(BufferError, match="used already"):
        _core.from_dlpack(Once())


class Producer:
    """Lends memory through the old protocol, with an arbitrary description of it."""

    class Managed(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("rank", ctypes.c_int32),
            ("dtype", ctypes.c_uint8 * 4),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("offset", ctypes.c_uint64),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]

    def __init__(self, shape, strides=None, rank=None, address=None, deleted=None):
        ints = lambda values: (ctypes.c_int64 * len(values))(*values)  # noqa: E731
        self.memory = np.arange(16, dtype=np.float32)
        self.shape, self.strides = ints(shape), strides and ints(strides)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: deleted and deleted())
        self.managed = self.Managed(
            data=self.memory.ctypes.data if address is None else address,
            device=(1, 0),
            rank=len(shape) if rank is None else rank,
            dtype=(2, 32, 1, 0),
            shape=self.shape,
            strides=self.strides,
            deleter=ctypes.cast(self.deleter, ctypes.c_void_p).value,
        )

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.mark.parametrize(
    "lie",
    [
        {"shape": [-1]},
        {"shape": [1 << 62, 4]},
        {"shape": [0, 1 << 62]},
        {"shape": [2, 2], "strides": [1 << 62, 1 << 62]},
        {"shape": [3], "strides": [-(1 << 63)]},
        {"shape": [2], "address": 3},
    ],
    ids=["negative", "overflow", "empty overflow", "far", "least", "unaligned"],
)
def test_inconsistent_lenders(lie):
    with pytest.raises(ValueError, match="from_dlpack"):
        _core.from_dlpack(Producer(**lie))


def test_an_owner_is_let_go_of_when_nothing_is_locked():
    """The owner's deleter may run operations and use the very handle that releases the owner."""
    answers = []

    def deleted():
        answers.append(ADD(x, x).to_numpy().tolist())
        answers.append(x.shape)

    keeper = Producer([3], deleted=deleted)
    x = _core.from_dlpack(keeper)
    NEG.into([x], [x])
    x.rebind(tensor([1, 2]))
    assert answers == [[2, 4], (2,)]


def test_an_owner_is_let_go_of_by_a_running_operation():
    """A thread rebinds the only handle while an operation still reads the memory."""
    size, events = 1 << 22, []
    array = np.ones(size, np.float32)

    def deleted():
        events.append(ADD(small, small).item())

    small = tensor([1])
    keeper = Producer([size], address=array.ctypes.data, deleted=deleted)
    for _ in range(20):
        x = _core.from_dlpack(keeper)
        other = threading.Thread(target=lambda x=x: x.rebind(small))
        started = len(events)
        other.start()
        try:
            _core.Op("unary", f="exp")(x)
        finally:
            other.join(timeout=60)
        assert not other.is_alive() and len(events) == started + 1
    assert events == [2.0] * 20


def test_lent_memory_lives_as_long_as_anybody_holds_it():
    array = np.arange(1 << 16, dtype=np.float32)
    alive = weakref.ref(array)
    x = _core.from_dlpack(array)
    view = x.view_slice([(5, 3, 1)])
    del array, x
    gc.collect()
    assert alive() is not None and view.to_numpy().tolist() == [5, 6, 7]
    del view
    gc.collect()
    assert alive() is None
    x = tensor(np.arange(1 << 16))
    array = np.from_dlpack(x)[5:8]
    before = CPU.memory()["results"]
    del x
    gc.collect()
    assert array.tolist() == [5, 6, 7] and CPU.memory()["results"] == before
    del array
    gc.collect()
    assert CPU.memory()["results"] < before
