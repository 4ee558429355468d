"""Every differentiable case: autograd against finite differences, in float64 and float32."""

import numpy as np
import pytest
from cases import CASES, NO_GRADIENT
from cases.base import Case
from harness import expanded, inner, rounded, stepped, tensors, transposed, weighted, weights
from numeric import vjp
from singa_rs import _core, autograd, tensor

DIFFERENTIABLE = [case for case in CASES if case.gradient is not None]
each = pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)


@pytest.fixture(autouse=True)
def training():
    """Gradients are only recorded in training mode."""
    autograd.training = True
    yield
    autograd.training = False


def gradients(case: Case, inputs: list[tensor.Tensor]) -> list[np.ndarray]:
    """The gradient of sum(weights * case) with respect to each differentiable input."""
    found = autograd.gradients(weighted(case.gradient(*inputs)))
    return [tensor.to_numpy(found[inputs[i]]) for i in case.differentiable()]


def differences(case: Case) -> list[np.ndarray]:
    """The expected gradients, by finite differences."""
    pairs = zip(case.sample("float64"), case.sample_dtypes("float64"), strict=True)
    samples = [rounded(array, dtype) for array, dtype in pairs]

    def value(*inputs):
        y = case.reference(*inputs)
        return y[0] if isinstance(y, tuple) else y

    dy = weights(np.shape(value(*samples)))
    step = 1e-6 if "max" in str(case) or "min" in str(case) else 2e-3
    return [vjp(value, samples, i, [dy], step) for i in case.differentiable()]


@each
def test_against_differences(case):
    for got, want in zip(gradients(case, tensors(case, "float64")), differences(case), strict=True):
        assert got.dtype == np.float64 and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-7 * case.scale, atol=1e-7 * case.scale)


@each
def test_float32_against_float64(case):
    exact = gradients(case, tensors(case, "float64"))
    for got, want in zip(gradients(case, tensors(case, "float32")), exact, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5 * case.scale, atol=1e-5 * case.scale)


@each
@pytest.mark.parametrize("layout", [transposed, stepped, inner])
def test_of_views(case, layout):
    want = gradients(case, tensors(case, "float64"))
    got = gradients(case, tensors(case, "float64", layout))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-10)


@each
def test_used_twice(case):
    """A tensor that is used twice gets the sum of both gradients."""
    inputs = tensors(case, "float64")
    once = gradients(case, inputs)
    twice = Case(
        case.family,
        case.attrs,
        case.args,
        case.reference,
        gradient=lambda *xs: autograd.add(case.gradient(*xs), case.gradient(*xs)),
        wrt=case.wrt,
    )
    for got, want in zip(gradients(twice, inputs), once, strict=True):
        np.testing.assert_allclose(got, 2 * want, rtol=1e-10, atol=1e-12)


def test_every_operation_has_a_gradient_or_says_why_not():
    has = {case.name for case in DIFFERENTIABLE}
    assert has & set(NO_GRADIENT) == set()
    assert set(_core.operations()) - has - set(NO_GRADIENT) == set()


@pytest.mark.parametrize("to", ["float32", "float16", "bfloat16"])
def test_a_cast_hands_its_gradient_back_in_the_input_s_dtype(to):
    x = tensor.from_numpy(np.arange(4.0), dtype="float64")
    x.stores_grad = True
    y = autograd.cast(x, getattr(tensor, to))
    dy = tensor.from_numpy(np.array([1, 2, 3, 4]), dtype=to)
    [(_, dx)] = autograd.backward(y, dy)
    assert dx.dtype == tensor.float64
    np.testing.assert_array_equal(tensor.to_numpy(dx), [1, 2, 3, 4])


def test_expanded_parameters_get_whole_gradients():
    x = tensor.Tensor((), dtype="float64")
    x.rebind(expanded(np.ones((3, 4)), "float64"))
    x.stores_grad = True
    loss = autograd.reduce_sum(autograd.exp(x), axes=None, keepdims=0)
    np.testing.assert_allclose(tensor.to_numpy(autograd.gradients(loss)[x]), np.e * np.ones((3, 4)))
