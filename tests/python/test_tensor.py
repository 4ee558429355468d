"""Tensors: making, converting, dtypes, Python's and NumPy's protocols."""

import copy
import pickle

import numpy as np
import pytest
import singa_rs
from singa_rs import autograd, device, tensor
from singa_rs.tensor import Tensor, from_numpy

XN = np.arange(6, dtype=np.float32).reshape(2, 3)


def x():
    return from_numpy(XN.copy())


def same(got, want):
    assert got.shape == np.shape(want)
    np.testing.assert_array_equal(got.to_numpy(), want)


# ---- making --------------------------------------------------------------------------------------


def test_a_fresh_tensor_reads_as_zeros():
    same(Tensor((2, 3)), np.zeros((2, 3)))
    assert Tensor().shape == () and Tensor([2], dtype="int").dtype == tensor.int32


def test_positional_arguments_are_singas():
    cpu = device.get_default_device()
    made = Tensor([9], cpu, tensor.float32, XN, False, True, None, "w")
    same(made, XN)
    assert (made.requires_grad, made.stores_grad, made.name) == (False, True, "w")


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ("float64", "float32"),
        ("int64", "int32"),
        ("int16", "int32"),
        ("uint16", "int32"),
        ("float16", "float16"),
        ("int8", "int8"),
        ("uint8", "uint8"),
        ("bool", "bool"),
    ],
)
def test_numpy_dtypes_are_converted(given, becomes):
    array = np.array([0, 1, 1], given)
    for made in (from_numpy(array), Tensor(data=array)):
        assert made.dtype.name == becomes
        same(made, array)
    assert from_numpy(array, dtype="float64").dtype == tensor.float64


@pytest.mark.parametrize(
    "array", [np.array([2**40]), np.array([2**63], np.uint64), np.array([1e300]), np.array(["a"])]
)
def test_values_that_do_not_fit_are_refused(array):
    with pytest.raises(singa_rs.DTypeError):
        from_numpy(array)


def test_bfloat16_comes_out_as_float32():
    made = from_numpy(np.array([1.0, 2.0]), dtype=tensor.bfloat16)
    assert made.dtype == tensor.bfloat16 and made.to_numpy().dtype == np.float32
    with pytest.raises(singa_rs.DTypeError):
        from_numpy(np.array([3.4e38]), dtype=tensor.bfloat16)


def test_from_numpy_takes_arrays_only():
    with pytest.raises(TypeError, match="from_numpy: got list"):
        from_numpy([1.0])


def test_dtype_constants_serve_as_keys():
    table = {tensor.float32: "a", tensor.float16: "b", tensor.int32: "c"}
    assert table[x().dtype] == "a" and tensor.float32 == 0 and tensor.int32 == 2
    assert tensor.sizeof(tensor.float16) == 2 and tensor.product((2, 3)) == 6


def test_filled():
    same(tensor.zeros((2,)), [0, 0])
    same(tensor.ones(2, device.get_default_device()), [1, 1])
    same(tensor.full((1, 2), 3, dtype="int32"), [[3, 3]])
    same(tensor.zeros_like(x()), np.zeros((2, 3)))
    same(tensor.arange(1, 7, 2), [1, 3, 5])
    assert tensor.arange(3).dtype == tensor.int32 and tensor.arange(0, 1, 0.3).shape == (4,)
    assert tensor.random((2, 3)).to_numpy().min() >= 0


# ---- dtypes of mixed operands --------------------------------------------------------------------

I = np.arange(6).reshape(2, 3)  # noqa: E741
MIXED = [
    (lambda: from_numpy(I) + 1.5, "float32"),
    (lambda: from_numpy(I) + np.float64(1.5), "float32"),
    (lambda: np.float64(2) * from_numpy(I), "float32"),
    (lambda: from_numpy(I) + np.int64(3), "int32"),
    (lambda: True + from_numpy(I), "int32"),
    (lambda: from_numpy(I) / 2, "float32"),
    (lambda: from_numpy(I) / from_numpy(I), "float32"),
    (lambda: 2 / from_numpy(I), "float32"),
    (lambda: from_numpy(I) // 2, "int32"),
    (lambda: from_numpy(I) % 2, "int32"),
    (lambda: from_numpy(I) ** 2, "int32"),
    (lambda: from_numpy(I) * x(), "float32"),
    (lambda: from_numpy(I) + from_numpy(I).as_type("int8"), "int32"),
    (lambda: x() + np.float64(2), "float32"),
    (lambda: np.float32(2) * x(), "float32"),
    (lambda: x() + np.ones((2, 3)), "float32"),
    (lambda: np.ones((2, 3)) * x(), "float32"),
    (lambda: x() + x().as_type("float64"), "float64"),
    (lambda: x().as_type("float64") * 2, "float64"),
    (lambda: x().as_type("float64") + np.ones((2, 3)), "float64"),
    (lambda: x().as_type("float16") * 2.5, "float16"),
    (lambda: x().as_type("float16") + x().as_type("bfloat16"), "float32"),
    (lambda: (x() > 2) * x(), "float32"),
    (lambda: (x() > 2) + (x() > 3), "int32"),
    (lambda: (x() > 2) * 2, "int32"),
    (lambda: 1 - (x() > 2), "int32"),
    (lambda: (x() > 2) @ x().T(), "float32"),
    (lambda: (x() > 2).sum(), "int64"),
    (lambda: from_numpy(I).mean(), "float32"),
    (lambda: from_numpy(I).exp(), "float32"),
    (lambda: -from_numpy(I), "int32"),
    (lambda: from_numpy(I) < 2.5, "bool"),
    (lambda: ~(x() > 2) & (x() < 4), "bool"),
    (lambda: x().argmax(), "int64"),
]


@pytest.mark.parametrize(("make", "dtype"), MIXED)
def test_promotion(make, dtype):
    made = make()
    assert isinstance(made, Tensor) and made.dtype.name == dtype


def test_values_of_mixed_operands():
    i = from_numpy(I)
    same(i + 1.5, (I + 1.5).astype(np.float32))
    same(1 - i, 1 - I)
    same(2**i, 2**I)
    same(i // -2, I // -2)
    same(i % -2, I % -2)
    same(-0.0 * tensor.ones((1,)), [-0.0])
    assert np.signbit((tensor.zeros((1,)) * -1.0).to_numpy())[0]


def test_numbers_that_do_not_fit():
    small = from_numpy(I).as_type("int8")
    with pytest.raises(ValueError, match="add: the number 300 does not fit int8"):
        small + 300
    same(small < 300, np.ones((2, 3), bool))
    with pytest.raises(ValueError, match="power"):
        from_numpy(I) ** -1


def test_comparisons_with_other_things():
    assert (x() == None) is False  # noqa: E711
    assert (x() != None) is True  # noqa: E711
    assert (x() == "a") is False
    with pytest.raises(TypeError, match="lt: got dict"):
        assert x() < {}


def test_large_integers_compare_exactly():
    large = from_numpy(np.array([2**24 + 1]))
    assert not (large == from_numpy(np.array([2.0**24]))).item()
    assert (large > 2.0**24).item()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: autograd.relu(3), "relu: got int, want a Tensor"),
        (lambda: autograd.add(3, "a"), "add: got str"),
        (lambda: x() + None, "add: got NoneType"),
        (lambda: from_numpy(I) & x(), "bitwise_and: got dtypes? float32"),
    ],
)
def test_wrong_operands_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_shapes_that_do_not_broadcast():
    with pytest.raises(singa_rs.ShapeError, match="add"):
        x() + tensor.ones(4)
    with pytest.raises(singa_rs.ShapeError, match="matmul"):
        x() @ x()


# ---- protocols -----------------------------------------------------------------------------------


def test_counts_are_ints_that_may_be_called():
    t = x()
    assert t.ndim == 2 == t.ndim() and t.size == 6 == t.size() and t.memsize() == 24
    assert t.shape == (2, 3) and type(t.shape) is tuple and np.ndim(t) == 2


def test_numpy_reads_tensors():
    assert np.asarray(x()).dtype == np.float32
    np.testing.assert_array_equal(np.asarray(x(), dtype=np.int64), XN)
    with pytest.raises(ValueError, match="copy"):
        x().__array__(copy=False)
    array = x().to_numpy()
    array[0] = 7  # fresh and writable
    assert array.flags.c_contiguous and x().T().to_numpy().flags.c_contiguous


def test_python_reads_tensors():
    t = tensor.ones((1, 1))
    assert (float(t), int(t), bool(t), t.item(), t.tolist()) == (1.0, 1, True, 1.0, [[1.0]])
    assert [5, 6][from_numpy(np.array(1))] == 6 and len(x()) == 2
    assert [row.tolist() for row in x()] == XN.tolist()
    assert f"{t:.2f}" == "1.00" and "float32" in repr(x())
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x())
    with pytest.raises(TypeError):
        len(Tensor())
    with pytest.raises(TypeError):
        [5, 6][t]


def test_names():
    t = x()
    assert t.name.startswith("Dummy#") and t.name == t.name
    t.name = "w"
    assert t.name == "w" and {t: 1}[t] == 1


def test_copies():
    w = x()
    w.stores_grad = True
    for deep in (w.clone(), w.deepcopy(), copy.deepcopy(w), tensor.to_host(w)):
        assert not deep.shares_block(w)
        same(deep, XN)
    for shallow in (w.copy(), copy.copy(w), w.data, w.detach(), tensor.from_raw_tensor(w)):
        assert shallow.shares_block(w)
    again = pickle.loads(pickle.dumps(w))
    same(again, XN)
    assert again.stores_grad and copy.deepcopy(w).stores_grad and not w.detach().requires_grad


def test_data_is_settable():
    w = x()
    w.stores_grad = True
    w.data += tensor.ones((2, 3)).data
    same(w, XN + 1)
    w.data = tensor.zeros((2, 3))
    same(w, np.zeros((2, 3)))
    assert w.stores_grad


def test_conversion_in_place():
    t = x()
    t.to_type("int")
    assert t.dtype == tensor.int32
    t.to_type(tensor.float32)
    t.to_device(device.get_default_device())
    t.to_host()
    t.reset_like(from_numpy(I))
    same(t, np.zeros((2, 3), np.int32))


def test_dlpack_shares():
    array = np.arange(4, dtype=np.float64)
    t = tensor.from_dlpack(array)
    assert t.dtype == tensor.float64
    array[0] = 9
    assert t.to_numpy()[0] == 9
    back = np.from_dlpack(t)
    assert back[0] == 9


# ---- placeholders --------------------------------------------------------------------------------


def test_an_unfilled_placeholder_cannot_be_read():
    p = tensor.Placeholder((2, 3), dtype=tensor.int32)
    assert (p.shape, p.ndim, p.size, p.dtype) == ((2, 3), 2, 6, tensor.int32)
    assert isinstance(p, Tensor) and not p.is_allocated and "Placeholder" in repr(p)
    reads = [p.to_numpy, p.item, lambda: p + 1, lambda: autograd.relu(p), lambda: p[0], p.clone]
    for read in reads:
        with pytest.raises(singa_rs.GraphError):
            read()
    with pytest.raises(singa_rs.ShapeError):
        p.copy_from(np.ones(4))
    with pytest.raises(singa_rs.GraphError):
        p.to_numpy()


def test_filled_placeholders_are_tensors():
    p = tensor.Placeholder((2, 3))
    p.copy_from(XN)
    same(p + 1, XN + 1)
    q = tensor.PlaceHolder((3,))
    assert q.set_value(2) is q
    same(q, [2, 2, 2])
    r = tensor.Placeholder((3,))
    r.data = tensor.ones(3)
    same(r, [1, 1, 1])


# ---- functions -----------------------------------------------------------------------------------


def test_singas_functions():
    t = x()
    assert isinstance(tensor.average(tensor.ones(3)), float)
    same(tensor.average(t, 0), XN.mean(0))
    same(tensor.sum(t, -1), XN.sum(-1))
    assert tensor.sum(t, (0, 1)).item() == 15 == tensor.sum(t).item()
    same(tensor.sum_columns(t), XN.sum(1, keepdims=True))
    same(tensor.sum_rows(t), XN.sum(0, keepdims=True))
    same(tensor.pow(t, 2), XN**2)
    same(tensor.concatenate((t, t), 1), np.concatenate((XN, XN), 1))
    same(tensor.repeat(t, 2), XN.repeat(2))
    same(tensor.repeat(t, 2, 1), XN.repeat(2, 1))
    same(tensor.contiguous(t.T()), XN.T)
    out = tensor.zeros((2, 2))
    assert tensor.mult(t, t.T(), out, 2.0, 1.0) is out
    same(out, 2 * XN @ XN.T)
    np.testing.assert_allclose(tensor.softmax(tensor.ones(4)).to_numpy(), 0.25)
    assert tensor.eltwise_mult(t, t, t) is t
    same(t, XN**2)


def test_sums_of_columns_and_rows_are_matrices():
    square = np.float32([[1, 3], [4, 4]])
    t = tensor.from_numpy(square)
    same(t / tensor.sum_columns(t), square / square.sum(1, keepdims=True))
    for function in (tensor.sum_columns, tensor.sum_rows):
        for wrong in (tensor.ones(3), tensor.ones((2, 2, 2))):
            with pytest.raises(singa_rs.ShapeError, match=f"{function.__name__}: .*want a matrix"):
                function(wrong)


def test_products_are_scaled_without_a_tensor_to_write_into():
    t = x()
    same(tensor.mult(t, t.T(), alpha=2.0), 2 * XN @ XN.T)
    same(tensor.mult(t, t.T(), None, 0), 0 * XN @ XN.T)
    whole = tensor.from_numpy(np.int32([[1, 2], [3, 4]]))
    assert tensor.mult(whole, whole).dtype == tensor.mult(whole, whole, alpha=1).dtype
    assert tensor.mult(whole, whole, alpha=2).tolist() == [[14, 20], [30, 44]]


def test_norms_are_divided_by_the_size():
    t = from_numpy(np.array([3.0, -4.0]))
    assert (t.l1(), t.l2()) == (3.5, 2.5)


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("kij,kih->kjh", [(2, 3, 4), (2, 3, 5)]),
        ("ij->ji", [(2, 3)]),
        ("ij,kj", [(2, 3), (4, 3)]),
        ("ii->i", [(3, 3)]),
        ("iji->j", [(3, 2, 3)]),
        ("i,j,k->kj", [(2,), (3,), (4,)]),
        ("ij->", [(2, 3)]),
        ("bij,bjk,k->bi", [(2, 3, 4), (2, 4, 5), (5,)]),
    ],
)
def test_einsum(formula, shapes):
    arrays = [np.random.default_rng(0).normal(size=s) for s in shapes]
    made = tensor.einsum(formula, *(from_numpy(a, dtype="float64") for a in arrays))
    np.testing.assert_allclose(made.to_numpy(), np.einsum(formula, *arrays), atol=1e-12)


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 1], [1, 0]), ([0], [1])])
def test_tensordot(axes):
    a, b = (np.random.default_rng(i).normal(size=(3, 3)) for i in range(2))
    made = tensor.tensordot(from_numpy(a, dtype="float64"), from_numpy(b, dtype="float64"), axes)
    np.testing.assert_allclose(made.to_numpy(), np.tensordot(a, b, axes), atol=1e-12)


@pytest.mark.parametrize("formula", ["ij,jk", "i,i->k", "ij->ii", "i..j.", "...i...", "...ijk"])
def test_formulas_that_do_not_fit(formula):
    with pytest.raises(ValueError, match="einsum"):
        tensor.einsum(formula, tensor.ones((2, 3)))


def test_every_parametrised_function_is_also_a_method():
    t = Tensor(data=np.float32([-2, 0.25, 3]))
    for name in ("clip", "elu", "hardsigmoid", "leakyrelu", "selu"):
        got, want = getattr(t, name)(), getattr(autograd, name)(t)
        np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())
    assert t.clip(0, 1).tolist() == [0, 0.25, 1]
