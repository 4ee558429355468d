"""Functions that are made of operations are exported: other runtimes compute what is computed here,
or there is a reason why not."""

import numpy as np
import onnxruntime
import pytest
import test_compositions
from functions import FUNCTIONS
from onnx_models import there
from singa_rs import autograd, sonnx
from singa_rs.autograd.mode import handled_by
from singa_rs.record.trees import flatten
from singa_rs.tensor import Tensor, to_numpy

NO_KERNEL = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
#: What ends an export: what ONNX has nothing for, by the beginning of the message.
REASONS = {
    "linalg": "decompositions of matrices",
    "solve": "equations",
    "triangular_solve": "equations",
    "opset": "an operator that the installed onnx does not know",
}
CASES = {str(one): (one.of_tensors, one.samples()) for one in FUNCTIONS}
CASES |= {
    name: (case[0], test_compositions.samples(name))
    for name, case in test_compositions.CASES.items()
}


def tensors(arrays):
    return [Tensor(data=x, dtype=x.dtype.name) for x in arrays]


def results(function, xs):
    found = []
    flatten(function(*xs), found)
    return [to_numpy(y) for y in found if isinstance(y, Tensor)]


def compared(function, arrays, rtol):
    want = results(function, tensors(arrays))
    proto = sonnx.model_proto(function, tensors(arrays))
    feeds = [x for x in arrays][: len(proto.graph.input)]
    ways = [sonnx.prepare(proto).run(feeds)]
    try:
        ways.append(there(proto, feeds))
    except NO_KERNEL:
        pass
    for got in ways:
        for a, b in zip(got, want, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    function, arrays = CASES[name]
    autograd.training = False
    try:
        compared(function, [x.astype(np.float32) for x in arrays], 1e-4)
        compared(function, arrays, 1e-8)
    except (NotImplementedError, ValueError) as error:
        reason = str(error).removeprefix("export: ")
        assert reason.startswith(tuple(REASONS)), error


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_slices_added_at_indices(axis, shape):
    """Along any axis, where an index repeats, with a batch of any size."""
    indices = np.resize([0, 2, 2, 1], shape)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    if axis == 0:
        indices = indices % 2

    def call(x, indices):
        return autograd.gather(x, axis, indices)

    given = tensors([x, indices])
    given[0].stores_grad = given[0].requires_grad = True
    with autograd._training_scope(True):
        want = to_numpy(autograd.gradients(call(*given).sum())[given[0]])
    taken = np.ones_like(to_numpy(call(*given)))
    step = autograd.ops.op("gather_grad", axis=axis % 3, size=x.shape[axis])
    proto = sonnx.model_proto(lambda t, i: step(t, i), tensors([taken, indices]))
    for (got,) in (sonnx.prepare(proto).run([taken, indices]), there(proto, [taken, indices])):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["int32", "int8", "uint8"])
def test_greatest_integers_of_windows(kind):
    x = np.random.default_rng(3).permutation(48).astype(kind).reshape(1, 3, 4, 4)
    x[0, 0, 0, 0] = np.iinfo(kind).max

    def call(x):
        return autograd.max_pool2d(x, 2)

    (want,) = results(call, tensors([x]))
    proto = sonnx.model_proto(call, tensors([x]))
    for (got,) in (sonnx.prepare(proto).run([x]), there(proto, [x])):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_exported_as_functions_of_the_inputs(create_graph, monkeypatch):
    def slopes(x):
        with monkeypatch.context() as within:
            within.setattr(autograd, "training", True)
            y = (x * x * x).sum()
            return autograd.gradients(y, xs=[x], create_graph=create_graph)[0]

    (sample, x) = np.float32([[1, 2], [-3, 0.5]])
    proto = sonnx.model_proto(slopes, [Tensor(data=sample)])
    assert np.allclose(there(proto, [x])[0], 3 * x * x)


def test_what_a_trace_does_not_see_is_no_constant():
    def hidden(x):
        with handled_by(None):
            y = x * 2
        return y + 1

    with pytest.raises(NotImplementedError, match="depends on an argument"):
        sonnx.model_proto(hidden, [Tensor((2,))])
