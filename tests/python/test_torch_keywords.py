"""PyTorch's keywords, such as `dim` and `keepdim`, beside NumPy's."""

import inspect

import numpy as np
import pytest
from recorded import CPU, replays
from singa_rs import autograd, module, tensor
from singa_rs.autograd.keywords import spellings
from singa_rs.autograd.table import FUNCTIONS, METHODS, OF_TENSOR
from singa_rs.tensor import Placeholder, Tensor, from_numpy
from torch_cases import CASES, A

TABLES = {"autograd": FUNCTIONS, "Tensor": METHODS, "tensor": OF_TENSOR}
SPELT = [
    (home, name)
    for home, table in TABLES.items()
    for name, one in table.items()
    if inspect.isfunction(one) and spellings(name, one)
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
    function, rest = TABLES[home][name], iter(tensors)
    args, kwargs, _ = CASES[name.removesuffix("_")]
    args, kwargs = filled((args, kwargs), lambda _: next(rest))
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

    class Net(module.Module):
        def forward(self, *xs):
            # in place of the arguments, which some write into
            return call(home, name, [x.clone() for x in xs])

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
    "max: got dim.*want amax": lambda: X.max(dim=1),
    "min: got keepdim.*want amin": lambda: autograd.min(X, 1, keepdim=True),
    "median: got dim.*kthvalue": lambda: X.median(dim=1),
    "nanmedian: got dim": lambda: X.nanmedian(dim=1),
    "gather: got dim.*take_along_dim": lambda: autograd.gather(X, dim=1, indices=X),
    "gradient: got dim.*want axis": lambda: autograd.gradient(X, dim=1),
    "flatten: got dim": lambda: X.flatten(dim=1),
    "split: got dim.*chunk": lambda: X.split(2, dim=0),
    "sum: got no axes with dim": lambda: X.sum(dim=()),
    "mean: got no axes with dim": lambda: autograd.mean(X, dim=[]),
    "reduce_sum: got no axes with dim": lambda: autograd.reduce_sum(X, dim=()),
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


def test_signatures_are_numpys():
    assert list(inspect.signature(Tensor.sum).parameters) == ["self", "axis", "keepdims"]
    assert X.sum(1, keepdim=True).shape == X.sum(axis=1, keepdim=True).shape == (2, 1, 4)
