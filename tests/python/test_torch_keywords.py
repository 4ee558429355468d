"""PyTorch's keywords, such as `dim` and `keepdim`, beside NumPy's."""

import inspect

import numpy as np
import pytest
from recorded import CPU, replays
from singa_rs import autograd, module, tensor
from singa_rs.autograd.spellings import spellings
from singa_rs.autograd.table import FUNCTIONS, METHODS, OF_TENSOR
from singa_rs.tensor import Placeholder, Tensor, from_numpy
from torch_cases import CASES, A

TABLES = {"autograd": FUNCTIONS, "Tensor": METHODS, "tensor": OF_TENSOR}
#: Functions with parameters of PyTorch's names, for results of PyTorch's.
PAIRS = {"max", "min"}
SPELT = [
    (home, name)
    for home, table in TABLES.items()
    for name, one in table.items()
    if inspect.isfunction(one) and (spellings(name, one) or home != "tensor" and name in PAIRS)
]
X = from_numpy(A, dtype="float64")


def filled(value, one):
    """Arguments in which `one` stands for each array."""
    if isinstance(value, np.ndarray):
        return one(value)
    if isinstance(value, list | tuple):
        return type(value)(filled(each, one) for each in value)
    return {k: filled(v, one) for k, v in value.items()} if isinstance(value, dict) else value


def arrays(name):
    found = []
    filled(CASES[name][:2], found.append)
    return found


def double(array):
    return from_numpy(array, dtype="float64" if array.dtype == np.float64 else "int64")


def call(home, name, tensors):
    """A case's call with these tensors for its arrays."""
    return applied(TABLES[home][name], CASES[name.removesuffix("_")][:2], tensors)


def applied(function, given, tensors):
    rest = iter(tensors)
    args, kwargs = filled(given, lambda _: next(rest))
    made = function(*args, **kwargs)
    return list(made) if isinstance(made, list | tuple) else [made]


def check(name, got):
    want = CASES[name.removesuffix("_")][2]
    want = want if isinstance(want, list) else [want]
    assert len(got) == len(want)
    for y, expected in zip(got, want, strict=True):
        assert y.shape == expected.shape
        np.testing.assert_allclose(y.to_numpy(), expected, rtol=1e-12, atol=1e-12)


# ---- results -------------------------------------------------------------------------------------

RANDOM = {"gumbel_softmax"}
#: The shapes of their results depend on values, which recordings do not have.
EAGER = {"unique"}
spelt = pytest.mark.parametrize(
    ("home", "name"), [(home, name) for home, name in SPELT if name not in RANDOM]
)


def test_every_function_has_a_case():
    assert {name.removesuffix("_") for _, name in SPELT} - RANDOM == set(CASES)


@spelt
def test_against_numpy(home, name):
    check(name, call(home, name, map(double, arrays(name.removesuffix("_")))))


@spelt
def test_recorded(home, name):
    if name in EAGER:
        return

    # What a step refers to is looked at in every call: this, and not all cases.
    function, given = TABLES[home][name], CASES[name.removesuffix("_")][:2]

    class Net(module.Module):
        def forward(self, *xs):
            # in place of the arguments, which some write into
            return applied(function, given, [x.clone() for x in xs])

    xs, net = [double(x) for x in arrays(name.removesuffix("_"))], Net()
    net.compile([Placeholder(x.shape, dtype=x.dtype) for x in xs], is_train=False)
    net.eval()
    for _ in range(3):
        check(name, net(*xs))
    assert replays(net, "forward")


def test_gradients_are_those_of_the_other_spelling():
    x = double(A)
    x.stores_grad = True
    autograd.training = True
    found = [
        autograd.gradients((y * y).sum())[x].tolist()
        for y in (x.prod(dim=1, keepdim=True), x.prod(axis=1, keepdims=True))
    ]
    assert found[0] == found[1]


def test_the_gradient_of_an_extreme_goes_to_one_element():
    x = from_numpy(np.array([[1.0, 3, 3], [2, 1, 1]]), dtype="float64")
    x.stores_grad = True
    autograd.training = True
    for function, want in ((x.max, [[0, 1, 0], [1, 0, 0]]), (x.min, [[1, 0, 0], [0, 1, 0]])):
        assert autograd.gradients(function(dim=1).values.sum())[x].tolist() == want


def test_extremes_of_nan_and_of_nothing():
    x = from_numpy(np.array([[1, np.nan, 3]]), dtype="float64")
    for pair in (x.max(dim=1), autograd.min(x, dim=-1)):
        assert np.isnan(pair.values.item()) and pair.indices.item() == 1
    with pytest.raises(ValueError, match="max.*want at least one"):
        Tensor((0, 3)).max(dim=0)
    assert Tensor((0, 3)).max(dim=1, keepdim=True).values.shape == (0, 1)


def test_results_with_names():
    for made in (X.sort(dim=1), X.topk(1), X.kthvalue(1), X.mode(), X.cummax(dim=0), X.min(dim=2)):
        values, indices = made
        assert made.values is values and made.indices is indices and indices.dtype.name == "int64"
    assert X.aminmax(dim=1).max.tolist() == X.amax(1).tolist()


def test_random_results_are_those_of_the_other_spelling():
    found = []
    for key in ("dim", "axis"):
        CPU.set_seed(4)
        found.append(autograd.gumbel_softmax(X, **{key: 1}).tolist())
    assert found[0] == found[1]
    np.testing.assert_allclose(np.sum(found[0], 1), 1)


def test_in_mixed_precision_nothing_is_computed_twice():
    """The casts of a call that is repeated under other names are not."""

    class Net(module.Module):
        def __init__(self, key):
            super().__init__()
            self.key = key

        def forward(self, x):
            return autograd.softmax(x @ x, **{self.key: 0})

    counts = []
    for key in ("dim", "axis"):
        net = Net(key)
        net.compile([Placeholder((4, 4))], is_train=False, amp="bfloat16")
        net.eval()
        for _ in range(3):
            net(tensor.ones((4, 4)))
        counts.append(net.graphs[0].nodes)
    assert counts[0] == counts[1]


# ---- errors --------------------------------------------------------------------------------------

BOTH = {
    "sum: got both axis and dim": lambda: X.sum(1, dim=1),
    "sum: got both dim and axis": lambda: X.sum(dim=1, axis=1),
    "sum: got both keepdims and keepdim": lambda: autograd.sum(X, keepdims=True, keepdim=True),
    "flip: got both dims and dim": lambda: X.flip(dims=0, dim=0),
    "softmax: got both axis and dim": lambda: autograd.softmax(X, 1, dim=1),
    "cat: got both xs and tensors": lambda: autograd.cat([X, X], tensors=[X]),
    "concat: got both axis and dim": lambda: autograd.concat([X, X], 1, dim=1),
    "max: got both axis and dim": lambda: X.max(1, dim=1),
    "min: got both keepdims and dim": lambda: autograd.min(X, dim=1, keepdims=True),
    "permute: got both axes and dims": lambda: X.permute(0, 1, 2, dims=(0, 1, 2)),
    "std: got both unbiased and correction": lambda: X.std(unbiased=True, correction=1),
    "cumsum_: got both axis and dim": lambda: X.clone().cumsum_(1, dim=1),
}
#: What PyTorch answers in another way.
ELSE = {
    "std: got dim without unbiased": lambda: X.std(dim=0),
    "var: got keepdim without unbiased": lambda: X.var(0, keepdim=True),
    "var_mean: got dim without unbiased": lambda: autograd.var_mean(X, dim=0),
    "std: got 1 for unbiased, want a bool": lambda: X.std(dim=0, unbiased=1),
    "max: got keepdim without dim": lambda: X.max(1, keepdim=True),
    "min: got keepdim without dim": lambda: autograd.min(X, keepdim=True),
    "max: got a dim and 2 operands": lambda: autograd.max(X, X, dim=1),
    r"min: dim: got \(0, 1\), want": lambda: X.min(dim=(0, 1)),
    "max: keepdim: got 3, want a bool": lambda: X.max(dim=1, keepdim=3),
    "median: got dim.*kthvalue": lambda: X.median(dim=1),
    "nanmedian: got dim": lambda: X.nanmedian(dim=1),
    "gather: got dim.*take_along_dim": lambda: autograd.gather(X, dim=1, indices=X),
    "gradient: got dim.*want axis": lambda: autograd.gradient(X, dim=1),
    "flatten: got start_dim.*want axis": lambda: autograd.flatten(X, start_dim=2),
    "gather: got index.*take_along_dim": lambda: autograd.gather(X, 1, index=X),
    "split: got split_size.*chunk": lambda: X.split(split_size=2),
    "split: got dim.*chunk": lambda: X.split(2, dim=0),
    "sum: got no axes for dim": lambda: X.sum(dim=()),
    "mean: got no axes for dim": lambda: autograd.mean(X, dim=[]),
    "reduce_sum: got no axes for dim": lambda: autograd.reduce_sum(X, dim=()),
    "norm: got dim with order 1": lambda: X.norm(1, dim=(0, 1)),
    "norm: got p with order 2": lambda: X.norm(p=2),
}
#: What has nothing to do with the spelling.
WRONG = {
    "sum: got 'x' for axis, want an int": lambda: X.sum(dim="x"),
    "sum.*unexpected keyword argument 'dims'": lambda: X.sum(dims=1),
    "sum.*unexpected keyword argument 'dimension'": lambda: X.sum(dim=1, dimension=1),
    "relu.*unexpected keyword argument 'dim'": lambda: autograd.relu(X, dim=1),
    "topk.*missing.*'k'": lambda: X.topk(dim=1),
}


@pytest.mark.parametrize("text", [*BOTH, *ELSE, *WRONG])
def test_refused(text):
    with pytest.raises(TypeError, match=text):
        (BOTH | ELSE | WRONG)[text]()


def test_an_axis_that_does_not_exist():
    with pytest.raises(ValueError, match=r"sum.*got axes \(3,\)"):
        X.sum(dim=3)
    with pytest.raises(ValueError, match=r"concat.*got axes \(-4,\)"):
        autograd.concat([X, X], dim=-4)


def test_a_failed_call_runs_once():
    """One that works in place, and is refused, leaves its tensor as it was."""
    x = double(A)
    with pytest.raises(ValueError, match="cumsum_"):
        x.cumsum_(dim=7)
    assert np.array_equal(x.to_numpy(), A)


# ---- parameters of PyTorch's names ---------------------------------------------------------------


def test_sizes():
    assert [X.size(dim=0), X.size(dim=-1), X.size(1), X.size()] == [2, 4, 3, 24]
    with pytest.raises(TypeError, match="size: got both axis and dim"):
        X.size(0, dim=0)
    with pytest.raises(ValueError, match="size: got axis 3"):
        X.size(dim=3)


def test_transpose_exchanges_two():
    assert np.array_equal(X.transpose(dim0=0, dim1=-1).to_numpy(), A.swapaxes(0, -1))
    for given, named in (((), {"dim0": 0}), ((0, 1, 2), {"dim0": 0, "dim1": 1})):
        with pytest.raises(TypeError, match="transpose: got .* want axes, or dim0 and dim1"):
            X.transpose(*given, **named)
    with pytest.raises(ValueError, match="swapaxes|transpose"):
        X.transpose(dim0=0, dim1=3)


def test_layer_norm_of_a_shape():
    w, b = (from_numpy(a, dtype="float64") for a in (A[0] * 2, A[1]))
    want = (A - A.mean((1, 2), keepdims=True)) / np.sqrt(A.var((1, 2), keepdims=True) + 1e-5)
    got = autograd.layer_norm(X, normalized_shape=(3, 4), weight=w, bias=b)
    np.testing.assert_allclose(got.to_numpy(), want * A[0] * 2 + A[1])
    row = autograd.layer_norm(X, normalized_shape=4).to_numpy()
    assert np.array_equal(row, autograd.layer_norm(X, axis=-1).to_numpy())
    for wrong, text in (((3,), "want its end"), ((), "want its end"), ((1, 2, 3, 4), "want its")):
        with pytest.raises(ValueError, match=f"layer_norm: got normalized_shape .*{text}"):
            autograd.layer_norm(X, normalized_shape=wrong)
    with pytest.raises(TypeError, match="layer_norm: got both axis and normalized_shape"):
        autograd.layer_norm(X, axis=1, normalized_shape=(3, 4))
    with pytest.raises(TypeError, match=r"layer_norm: got \(4,\) for scale.*by keyword"):
        autograd.layer_norm(X, (4,), w, b)
    with pytest.raises(TypeError, match="layer_norm: got both scale and weight"):
        autograd.layer_norm(X, w, weight=w)


def test_rms_norm_of_a_shape():
    w = from_numpy(A[0] * 2, dtype="float64")
    want = A / np.sqrt((A * A).mean((1, 2), keepdims=True) + 1e-5) * A[0] * 2
    got = autograd.rms_norm(X, normalized_shape=(3, 4), weight=w)
    np.testing.assert_allclose(got.to_numpy(), want)
    with pytest.raises(ValueError, match="rms_norm: got normalized_shape .*want its end"):
        autograd.rms_norm(X, normalized_shape=(3,))
    with pytest.raises(TypeError, match=r"rms_norm: got \(4,\) for scale.*by keyword"):
        autograd.rms_norm(X, (4,), w)


def test_sorting_is_stable():
    for stable in (True, False):
        places = X.argsort(1, stable=stable)
        assert np.array_equal(places.to_numpy(), A.argsort(1, kind="stable"))
        assert np.array_equal(autograd.sort(X, 1, stable=stable)[1].to_numpy(), places.to_numpy())


def test_scatter_of_a_number():
    indices = from_numpy(np.array([[0], [2]]), dtype="int64")
    got = from_numpy(A[:, :, 0], dtype="float64").scatter(dim=1, index=indices, value=7.0)
    want = A[:, :, 0].copy()
    want[[0, 1], [0, 2]] = 7
    assert np.array_equal(got.to_numpy(), want)


def test_no_axes_and_single_ones():
    assert np.array_equal(X.flip(dims=()).to_numpy(), A)
    assert np.array_equal(X.norm(p=1, dim=[1]).to_numpy(), X.norm(1, axis=1).to_numpy())
    assert X.sum(axis=(), keepdim=True).shape == X.sum(axis=()).shape == X.shape


def test_signatures_are_numpys():
    assert list(inspect.signature(Tensor.sum).parameters) == ["self", "axis", "keepdims"]
    assert X.sum(1, keepdim=True).shape == X.sum(axis=1, keepdim=True).shape == (2, 1, 4)
