"""Every case of the table as a recorded step: run as recorded, rewritten and replayed, it has the
bits of eager execution, forward and backward."""

import numpy as np
import pytest
from cases import CASES
from cases.base import Case
from harness import DEVICE, inputs, rounded, tensors, weighted
from singa_rs import _core, autograd
from singa_rs.record.tracing import trace

#: How a graph is made of a recording, and whether it must keep every bit.
WAYS = (({"rewrite": False}, True), ({}, True), ({"exact": False}, False))
#: A dtype of each kind of kernel.
DTYPES = ("float64", "float32", "bfloat16", "int32", "bool")
NEG = _core.Op("unary", f="neg")
each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_gradient = pytest.mark.parametrize("case", [c for c in CASES if c.gradient], ids=str)


def negated(tensors):
    """What of these is of floats with the other sign: operations that may be fused."""
    return [NEG(x) if x.dtype.is_float else x for x in tensors]


def step(case: Case, xs: list) -> tuple:
    """The operation among others, which rewriting may fuse with it, share and drop."""
    if case.updates:
        case.op(*xs)
        return ()
    given = negated(negated(xs))
    made = case.op(*given)
    case.op(*given)
    ys = made if isinstance(made, tuple) else (made,)
    return (*ys, *negated(y for y in ys if y.dtype.is_float))


def bits(results, given=()) -> list[tuple]:
    """The results, and what the arguments hold afterwards."""
    arrays = [x.to_numpy() for x in (*results, *given)]
    return [(a.shape, a.dtype.name, np.nan_to_num(a).tobytes()) for a in arrays]


def fresh(case: Case, dtype: str) -> list[_core.Handle]:
    pairs = zip(case.sample(dtype), case.sample_dtypes(dtype), strict=True)
    return inputs(case, dtype, [rounded(array, kind) for array, kind in pairs])


def close(made, want) -> None:
    """Equal within rounding."""
    for a, b in zip(made, want, strict=True):
        a, b = (np.asarray(x.to_numpy(), np.float64) for x in (a, b))
        size = max(float(np.abs(b).max(initial=0)), 1e-3)
        np.testing.assert_allclose(a / size, b / size, rtol=0.02, atol=0.02)


@each_case
def test_forward(case):
    for dtype in [d for d in DTYPES if d in case.dtypes] or case.dtypes[:1]:
        DEVICE.set_seed(0)
        given = fresh(case, dtype)
        results = step(case, given)
        want = bits(results, given)
        xs = fresh(case, dtype)
        recording = trace(DEVICE, xs, lambda xs=xs: step(case, xs)).recording
        for options, exact in WAYS:
            graph = recording.graph(**options)
            for _ in range(2):
                DEVICE.set_seed(0)
                xs = fresh(case, dtype)
                made = graph.run(xs)
                if exact:
                    assert bits(made, xs) == want, (dtype, options)
                else:
                    close((*made, *xs), (*results, *given))


@each_gradient
def test_backward(case):
    def training(xs):
        y = case.gradient(*xs)
        found = autograd.gradients(weighted(y))
        return (y, *(found[xs[i]] for i in case.differentiable()))

    for dtype in [d for d in case.dtypes if d in ("float64", "float32")]:
        xs = tensors(case, dtype)
        with autograd._training_scope(True):
            results = training(xs)
            recording = trace(DEVICE, [], lambda xs=xs: training(xs)).recording
        want = bits(results)
        for options, exact in WAYS:
            graph = recording.graph(**options)
            for _ in range(2):
                made = graph.run([])
                if exact:
                    assert bits(made) == want, (dtype, options)
                else:
                    close(made, results)
