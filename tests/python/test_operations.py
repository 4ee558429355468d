"""Every case of the table, forward: dtypes, layouts, special values, no elements, bad input."""

import numpy as np
import pytest
from cases import CASES
from cases.base import FLOATS, Case
from harness import DEVICE, LAYOUTS, Run, compare, inner, to_array, to_handle, zeros
from singa_rs import _core


def each(expand):
    """One test per case and item of `expand(case)`."""
    rows = [(case, item) for case in CASES for item in expand(case)]
    names = [f"{case}-{getattr(item, '__name__', item)}" for case, item in rows]
    return pytest.mark.parametrize("case, item", rows, ids=names)


def wide(case: Case) -> list[str]:
    """The dtypes of a case that are worth running in every way."""
    return [d for d in case.dtypes if d in ("float64", "float32")] or list(case.dtypes[:1])


@each(lambda case: case.dtypes)
def test_forward(case, item):
    Run(case, item).check()


@each(lambda case: LAYOUTS if case.views and case.args else ())
def test_layouts(case, item):
    def constant_rows(samples):
        for i, a in enumerate(samples):
            if item.__name__ == "expanded" and a.ndim and a.shape[0]:
                samples[i] = np.broadcast_to(a[:1], a.shape)

    for dtype in wide(case):
        if case.updates and item.__name__ == "expanded":
            continue
        Run(case, dtype, layout=item, change=constant_rows).check()


@each(lambda case: case.specials)
def test_special_values(case, item):
    """NaN and infinities come out where NumPy has them; nothing masks them."""
    dtypes = [d for d in case.dtypes if d in FLOATS]
    place = next((i for i, arg in enumerate(case.args) if arg.dtype is None), None)
    if place is None or not dtypes:
        pytest.skip("takes no floats")

    def put(samples):
        samples[place] = samples[place].astype(np.float64)
        samples[place].flat[samples[place].size // 2] = item

    for dtype in dtypes:
        Run(case, dtype, change=put).check()


@each(lambda case: case.empty)
def test_no_elements(case, item):
    for dtype in wide(case):
        Run(case, dtype, shapes=item).check()


@each(lambda case: [case.large] if case.large else ())
def test_large(case, item):
    """Enough work for several threads, and the same bits for any number of them."""
    run = Run(case, "float32", shapes=item)
    compare_large(run)
    if case.updates or case.family in ("matmul", "conv2d"):
        return
    before = DEVICE.num_threads
    try:
        DEVICE.set_num_threads(3)
        again = Run(case, "float32", shapes=item)
    finally:
        DEVICE.set_num_threads(before)
    for a, b in zip(run.outputs, again.outputs, strict=True):
        np.testing.assert_array_equal(a.to_numpy(), b.to_numpy())


def compare_large(run: Run) -> None:
    """Sums of many terms may be off by more, relative to the largest result."""
    with np.errstate(all="ignore"):
        want = run.case.reference(*run.samples)
    want = want if isinstance(want, tuple) else (want,)
    for got, w in zip(run.outputs, want, strict=True):
        size = max(float(np.abs(w).max(initial=0)), 1e-3) if got.dtype.is_float else 1
        compare(to_array(got) / size, np.asarray(w) / size, got.dtype.name, run)


@each(lambda case: [bad for bad in case.bad])
def test_refused(case, item):
    dtypes = item.dtypes or case.input_dtypes(wide(case)[0])
    shapes = item.shapes or [x.shape for x in Run(case, wide(case)[0]).inputs]
    with pytest.raises(item.error) as caught:
        case.op(*zeros(shapes[: len(dtypes)], dtypes[: len(shapes)]))
    assert case.name in str(caught.value)


@each(lambda case: [""])
def test_wrong_number_of_inputs(case, item):
    inputs = Run(case, wide(case)[0]).inputs
    if case.family in ("concat",):
        with pytest.raises((TypeError, ValueError)):
            case.op()
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        case.op(*inputs, *inputs, *inputs, to_handle(np.zeros(1), "float32"))
    assert case.name in str(caught.value)
    if inputs:
        with pytest.raises((TypeError, ValueError)) as caught:
            case.op()
        assert case.name in str(caught.value)


@each(lambda case: [""] if not case.updates and case.reference else ())
def test_into(case, item):
    """Outputs may be existing tensors: strided ones, or ones that overlap the inputs."""
    run = Run(case, wide(case)[0])
    given = [inner(np.zeros(y.shape), y.dtype.name) for y in run.outputs]
    case.op.into(run.inputs, given)
    for y, g in zip(run.outputs, given, strict=True):
        np.testing.assert_array_equal(g.to_numpy(), y.to_numpy())
    (y, *more), x = run.outputs, run.inputs[0] if run.inputs else None
    if x is None or more or (x.shape, x.dtype) != (y.shape, y.dtype) or 0 in x.shape:
        return
    case.op.into(run.inputs, [x])
    np.testing.assert_array_equal(x.to_numpy(), y.to_numpy())


def test_every_operation_has_a_case():
    # User code: test_dlpack.py; bytes in a private layout: src/kernels/tests/packed.rs; fused
    # reductions: src/kernels/tests/reduced.rs; exchanges between processes: test_dist.py.
    elsewhere = {"host", "pack", "packed", "exchange_start", "exchange_finish"}
    elsewhere |= {name for name in _core.operations() if name.startswith("chain_")}
    assert set(_core.operations()) - elsewhere == {case.name for case in CASES}
