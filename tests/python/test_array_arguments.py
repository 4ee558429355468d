"""NumPy arrays are taken wherever tensors are, and give the same bits as `from_numpy` of them."""

import inspect
import sys
from types import ModuleType

import numpy as np
import pytest
from array_arguments import A, array_of, bits, called, filled, is_tensors
from singa_rs import autograd, layer, loss, tensor
from singa_rs.tensor import Tensor
from singa_rs.tensor.takers import takers
from valid_calls import GOOD, IMAGE, INTS, T
from wrong_calls import just, of

#: Functions that refuse arrays, by parameter, and why.
REFUSED = {
    "autograd.backward": "y",  # what made an array is not known
    "autograd.gradients": "y",
    "autograd.ctensor2numpy": "x",  # makes arrays of tensors
    "autograd.to_numpy": "t",
    "tensor.to_numpy": "t",
    "autograd.batchnorm_2d": "running_mean running_var",  # written
    "autograd.tensor_scatter": "past",
    "tensor.add_column": "M",
    "tensor.add_row": "M",
    "tensor.axpy": "y",
    "tensor.bernoulli": "t",
    "tensor.copy_data_to_from": "dst",
    "tensor.copy_from_numpy": "data",
    "tensor.gaussian": "t",
    "tensor.uniform": "t",
    "tensor.from_raw_tensor": "t",  # shares memory
    "tensor.from_raw_tensors": "tt",
}
#: Functions that take no tensors, or are called in another way.
NOT_HELD = {"as_shape", "axis_helper", "copy_from_numpy", "from_dlpack", "from_numpy"}
NOT_HELD |= {"constant", "is_tensor", "product", "set_training", "sizeof"}
OWN = GOOD | {"autograd.bernoulli": [T], "interpolate": [IMAGE, just(2)]}
OWN |= dict.fromkeys(("add_all", "block_diag", "broadcast_tensors"), [T, T])
OWN["digitize"] = [T, lambda: tensor.from_numpy(np.array([0.25, 0.5, 0.75]))]


def arguments(name, function):
    """Valid arguments of a function."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    good = OWN.get(name, OWN.get(name.rpartition(".")[2], []))
    good = [*good, *[T] * (len(needed) - len(good))]
    return [filled(make()) for make in good]


FUNCTIONS = {
    f"{home.__name__.rpartition('.')[2]}.{name}": getattr(home, name)
    for home in (autograd, tensor)
    for name in home.__all__
    if inspect.isfunction(getattr(home, name)) and name not in NOT_HELD
}
TAKING = [
    name
    for name, function in FUNCTIONS.items()
    if name not in ("autograd.backward", "autograd.gradients")
    and any(map(is_tensors, arguments(name, function)))
]


def test_the_table_is_whole():
    assert len(TAKING) > 400
    annotated = {name for name, one in FUNCTIONS.items() if takers(one)}
    assert annotated - set(TAKING) == {"autograd.backward", "autograd.gradients"}


@pytest.mark.parametrize("name", TAKING)
def test_functions(name):
    """For each argument, and for all together; arrays stay as they are."""
    function = FUNCTIONS[name]
    given = arguments(name, function)
    parameters = [*inspect.signature(function).parameters][: len(given)]
    refused = REFUSED.get(name, "").split()
    places = [at for at, one in enumerate(given) if is_tensors(one)]
    places = [at for at in places if at >= len(parameters) or parameters[at] not in refused]
    fresh = lambda: [one.clone() if isinstance(one, Tensor) else one for one in given]  # noqa: E731
    want = called(function, *fresh())
    for some in [[at] for at in places] + [places]:
        args, before = fresh(), [array_of(given[at]) for at in some]
        for at, one in zip(some, before, strict=True):
            args[at] = one
        kept = bits(before)
        assert called(function, *args) == want, some
        assert bits(before) == kept


@pytest.mark.parametrize("name", TAKING)
def test_what_is_written_is_refused(name):
    """Functions that write into an argument, or lend its memory, would do so to a copy."""
    function = FUNCTIONS[name]
    given, parameters = arguments(name, function), [*inspect.signature(function).parameters]
    versions = [one.version if isinstance(one, Tensor) else 0 for one in given]
    function(*given)
    for at, one in enumerate(given):
        if isinstance(one, Tensor) and one.version != versions[at]:
            assert parameters[at] in REFUSED[name]
    for word in REFUSED.get(name, "").split():
        at = parameters.index(word)
        args = [array_of(one) if i == at else one for i, one in enumerate(given)]
        with pytest.raises(TypeError, match=name.rpartition(".")[2]):
            function(*args)
        with pytest.raises(TypeError, match=name.rpartition(".")[2]):
            function(**dict(zip(parameters, args, strict=False)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: tensor.sum(A, 0, out=A[0]),
        lambda: tensor.pow(A, 2, out=A),
        lambda: tensor.softmax(A, out=A),
        lambda: tensor.mult(A, A.T, A[:, :2]),
        lambda: tensor.add(A, A, A),
        lambda: tensor.eltwise_mult(A, A, ret=A),
    ],
)
def test_results_are_written_into_tensors_alone(call):
    kept = A.copy()
    with pytest.raises(TypeError, match="want a Tensor"):
        call()
    assert (A == kept).all()


def test_graphs_of_arrays_have_no_gradients():
    autograd.training = True
    with pytest.raises((TypeError, AttributeError), match="ndarray"):
        autograd.backward(np.ones(1))


# ---- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "uint8", "bool", ">f4"])
@pytest.mark.parametrize("name", ["relu", "softmax", "reduce_sum", "cumsum", "reshape", "sort"])
def test_alone_an_array_is_what_from_numpy_makes(name, dtype):
    function, array = getattr(autograd, name), (A[::-1] - 2).astype(dtype).T
    more = [(6,)] if name == "reshape" else []
    assert called(function, array, *more) == called(function, tensor.from_numpy(array), *more)


def test_numbers_of_numpy():
    for number in (np.float32(-1.5), np.float64(2), np.int64(3), np.bool_(True), np.array(2.5)):
        want = autograd.tanh(tensor.from_numpy(np.asarray(number)))
        assert bits(autograd.tanh(number)) == bits(want)
        assert bits(tensor.sum(number)) == bits(tensor.sum(tensor.from_numpy(np.asarray(number))))
    encode = autograd.sinusoidal_positions  # which also takes a number
    x = tensor.from_numpy(np.ones((1, 2, 4), np.float32))
    assert bits(encode(x, np.int64(3))) == bits(encode(x, np.array(3))) == bits(encode(x, 3))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_beside_tensors_floats_take_their_dtype(dtype):
    """As in arithmetic: nothing is rounded to float32 on the way."""
    third = np.array([[1 / 3, 2 / 3], [1.0, 4 / 3]])
    x = tensor.from_numpy(third, dtype=dtype)
    for made, want in (
        (autograd.matmul(x, third), autograd.matmul(x, x)),
        (autograd.matmul(third, x), autograd.matmul(x, x)),
        (x @ third, x @ x),
        (third @ x, x @ x),
        (autograd.linear(third, x), autograd.linear(x, x)),
        (autograd.linear(x, weight=third), autograd.linear(x, x)),
        (autograd.layer_norm(x, third[0]), autograd.layer_norm(x, x[0])),
        (autograd.einsum("ij,jk->ik", third, x), autograd.einsum("ij,jk->ik", x, x)),
        (tensor.mult(third, x), tensor.mult(x, x)),
        (layer.Add()(third, x), layer.Add()(x, x)),
        (layer.MSELoss()(x, third), layer.MSELoss()(x, x)),
        (layer.MSELoss()(x, t=third), layer.MSELoss()(x, x)),
    ):
        assert made.dtype.name == dtype
        assert bits(made) == bits(want)


def test_beside_floats_wide_integers_stay_as_they_are():
    far = np.array([2**40, 1])
    table = tensor.from_numpy(np.ones((4, 2), np.float32))
    with pytest.raises(ValueError, match="out of range"):
        autograd.embedding(far, table)
    assert autograd.isin(far, tensor.from_numpy(far, dtype="int64")).tolist() == [True, True]


@pytest.mark.parametrize("array", [np.array("x"), np.array([None]), np.array([1j]), np.str_("x")])
def test_arrays_of_other_things_are_refused(array):
    for call, name in (
        (autograd.relu, "relu"),
        (autograd.softmax, "softmax"),
        (tensor.exp, "exp"),
        (autograd.ReLU(), "ReLU"),
    ):
        with pytest.raises(TypeError, match=f"{name}: got values of .*, want bools, integers or"):
            call(array)
    for one in (layer.ReLU(), layer.Linear(2)):
        with pytest.raises(TypeError):
            one(array)


def test_masked_arrays():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for call in (autograd.relu, autograd.softmax, layer.ReLU()):
        with pytest.raises(TypeError, match="masked"):
            call(masked)
    whole = np.ma.array([1.0, -2.0])
    assert autograd.softplus(whole).tolist() == autograd.softplus(whole.data).tolist()


def test_arrays_are_taken_while_another_thread_imports_masked_ones(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.ma", ModuleType("numpy.ma"))
    assert (tensor.ones((2, 3)) * A).tolist() == autograd.relu(A).tolist() == A.tolist()
    assert tensor.full((), np.float32(2)).item() == 2


@pytest.mark.parametrize("value", [None, [1.0, 2.0], 3.0, "x", b"x", object()])
def test_lists_and_other_values_are_still_refused(value):
    for call in (autograd.relu, autograd.softmax, autograd.ReLU(), layer.ReLU(), layer.Linear(2)):
        with pytest.raises(TypeError):
            call(value)


# ---- methods and classes -------------------------------------------------------------------------


METHODS = [
    name
    for name in dir(Tensor)
    if inspect.isfunction(getattr(Tensor, name)) and name[0] != "_" and name != "name"
]


@pytest.mark.parametrize("name", [n for n in METHODS if len(takers(getattr(Tensor, n))) > 1])
def test_operands_of_methods(name):
    """The tensor itself stays one; the other operands may be arrays."""
    args = arguments(name, getattr(autograd, name, getattr(Tensor, name)))
    want = called(getattr(args[0], name), *args[1:])
    assert called(getattr(args[0], name), *map(array_of, args[1:])) == want


@pytest.mark.parametrize("name", ["add", "mult", "div"])
def test_vectors_of_rows_and_columns(name):
    for axis, array in (("row", A[0] + 1), ("column", A[:, 1])):
        made, want = tensor.from_numpy(A), tensor.from_numpy(A)
        getattr(made, f"{name}_{axis}")(array)
        getattr(want, f"{name}_{axis}")(tensor.from_numpy(array))
        assert bits(made) == bits(want)


@pytest.mark.parametrize(
    "name", [n for n in METHODS if n[-1] == "_" or n in ("gaussian", "uniform")]
)
def test_methods_that_write_want_a_tensor(name):
    kept = A.copy()
    for args in ([], [1], [1, 1], [A]):
        with pytest.raises((TypeError, AttributeError, ValueError)):
            getattr(Tensor, name)(A, *args)
    assert (A == kept).all()


#: Classes of operations, whose instances are called with tensors, and other arguments than one.
RULES = ["ReLU", "Exp", "Abs", "SoftMax", "Shape", "Identity", "Flatten", "Transpose", "ReduceSum"]
INSTANCES = {name: (getattr(autograd, name)(), [T]) for name in RULES}
INSTANCES |= {
    "Matmul": (autograd.Matmul(), [T, of(3, 2)]),
    "Gemm": (autograd.Gemm(2.0), [T, of(3, 2), of(2)]),
    "AddBias": (autograd.AddBias(), [T, of(3)]),
    "Reshape": (autograd.Reshape((3, 2)), [T]),
    "Embedding": (autograd.Embedding(), [INTS, of(4, 2)]),
    "Cast": (autograd.Cast("float64"), [T]),
    "Dropout": (autograd.Dropout(0.5), [T]),
    "Mul": (autograd.Mul(), [T, T]),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", INSTANCES)
def test_operations(name, training):
    autograd.training = training
    one, makes = INSTANCES[name]
    given = [filled(make()) for make in makes]
    want = called(one, *given)
    for at in range(len(given)):
        args = [array_of(x) if i == at else x for i, x in enumerate(given)]
        assert called(one, *args) == want
    assert called(one, *array_of(given)) == want


class Twice(autograd.Operator):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 2


class Sines(autograd.Operator):
    host = True

    def infer(self, x):
        return [x]

    def forward(self, x):
        return np.sin(x)

    def backward(self, dy):
        return dy


def test_operators_of_users():
    for cls in (Twice, Sines):
        assert bits(cls()(A)) == bits(cls()(tensor.from_numpy(A)))
        with pytest.raises(TypeError, match="want a Tensor"):
            cls()([1.0])


@pytest.mark.parametrize("cls", [loss.SoftmaxCrossEntropy, loss.SquaredError])
def test_losses(cls):
    x, y = A / 7, A[::-1] / 15
    tx, ty = tensor.from_numpy(x), tensor.from_numpy(y)
    want, gradient = cls(), cls()
    made = want.forward(True, tx, ty)
    assert bits(gradient.forward(True, x, y)) == bits(made)
    assert bits(gradient.backward()) == bits(want.backward())
    assert gradient.evaluate(False, x, ty) == want.evaluate(False, tx, ty)


def test_numpy_takes_results_that_are_named():
    x = tensor.from_numpy(np.array([3.0, 1.0, 2.0], np.float32))
    for made in (autograd.topk(x, 2, 0), autograd.aminmax(x)):
        want = np.stack([one.to_numpy() for one in made])
        np.testing.assert_array_equal(np.stack(made), want)
    np.testing.assert_array_equal(np.concatenate([x, [autograd.aminmax(x)[0]]])[-1], 1)
