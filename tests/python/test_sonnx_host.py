"""Shapes that are calculated on the host: in NumPy, as onnx's reference does."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model
from singa_rs import sonnx
from singa_rs.sonnx.host import evaluated


def ints(*values):
    return np.array(values, np.int64)


A, B = ints(7, -7, 0, 9, -9), ints(2, 2, -3, -4, -4)
BOOLS = np.array([True, False]), np.array([[True], [False]])
WHOLE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
FLOATS = np.float32([0.25, -1.5, 4.0])

CASES = [
    *[(op, (A, B), {}) for op in ("Add", "Div", "Max", "Min", "Mul", "Sub")],
    *[(op, (A, B), {}) for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")],
    *[(op, (FLOATS, FLOATS[::-1]), {}) for op in ("Add", "Div", "Max", "Min", "Mul", "Sub")],
    ("Add", (A, ints(1).reshape(())), {}),
    ("Max", (A, B, B + 8), {}),
    ("Min", (A,), {}),
    *[(op, BOOLS, {}) for op in ("And", "Or", "Equal")],
    ("Not", BOOLS[:1], {}),
    ("Neg", (A,), {}),
    ("Sqrt", (np.abs(FLOATS),), {}),
    *[("Cast", (A,), {"to": to}) for to in (1, 6, 7, 9, 10, 11)],
    *[("Cast", (FLOATS,), {"to": to}) for to in (6, 7, 9, 11)],
    ("Cast", (BOOLS[0],), {"to": 7}),
    ("Concat", (A, B, ints()), {"axis": 0}),
    ("Concat", (WHOLE, WHOLE), {"axis": -1}),
    ("ConstantOfShape", (ints(2, 0, 3),), {}),
    ("ConstantOfShape", (ints(2, 3),), {"value": np.array([5], np.int32)}),
    ("ConstantOfShape", (ints(),), {"value": np.array([True])}),
    ("Expand", (WHOLE[:, :1], ints(2, 3, 1)), {}),
    ("Expand", (FLOATS, ints(1)), {}),
    ("Gather", (A, ints(-1).reshape(())), {}),
    ("Gather", (WHOLE, np.array([[2, 0]], np.int32)), {"axis": -2}),
    ("Range", (np.array(3), np.array(-4), np.array(-2)), {}),
    ("Range", (np.float32(0), np.float32(1), np.float32(0.3)), {}),
    ("Range", (np.float32(0.5), np.float32(11), np.float32(0.7)), {}),
    ("ReduceProd", (WHOLE + 1, ints(-1, 0)), {"keepdims": 0}),
    ("ReduceProd", (A,), {}),
    ("Reshape", (WHOLE, ints(0, -1)), {}),
    ("Reshape", (WHOLE[:0], ints(3, 0)), {"allowzero": 1}),
    ("Slice", (WHOLE, ints(0, -1), ints(9, -9), ints(1, -1), ints(2, -3)), {}),
    ("Slice", (A, ints(1), ints(2**63 - 1)), {}),
    ("Squeeze", (WHOLE[:1, :, :1],), {}),
    ("Squeeze", (WHOLE[:1, :, :1], ints(-1)), {}),
    ("Tile", (WHOLE, ints(1, 0, 2)), {}),
    ("Transpose", (WHOLE,), {}),
    ("Transpose", (WHOLE,), {"perm": [1, 2, 0]}),
    ("Unsqueeze", (A, ints(0, -1)), {}),
    ("Unsqueeze", (A, ints(0).reshape(())), {}),
    ("Where", (A > 0, A, B), {}),
]


@pytest.mark.parametrize(("op", "xs", "attrs"), CASES, ids=[case[0] for case in CASES])
def test_what_the_reference_computes(op, xs, attrs):
    names = [f"x{i}" for i in range(len(xs))]
    tensors = {k: numpy_helper.from_array(np.asarray(v)) for k, v in attrs.items() if k == "value"}
    node = helper.make_node(op, names, ["y"], **{**attrs, **tensors})
    infos = [helper.make_empty_tensor_value_info(name) for name in (*names, "y")]
    graph = helper.make_graph([node], "one", infos[:-1], infos[-1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    given = [np.asarray(x) for x in xs]
    (want,) = ReferenceEvaluator(proto).run(None, dict(zip(names, given, strict=True)))
    (found,) = evaluated(op, given, attrs)
    assert (found.dtype, found.shape) == (np.asarray(want).dtype, np.shape(want))
    np.testing.assert_array_equal(found, want)


def test_attributes_of_earlier_opsets():
    (part,) = evaluated("Slice", [WHOLE], {"axes": (2,), "starts": (1,), "ends": (3,)})
    np.testing.assert_array_equal(part, WHOLE[..., 1:3])
    assert evaluated("Unsqueeze", [A], {"axes": (1,)})[0].shape == (5, 1)
    assert evaluated("Squeeze", [A[None]], {"axes": (0,)})[0].shape == (5,)
    assert evaluated("ReduceProd", [WHOLE], {"axes": (1,), "keepdims": 1})[0].shape == (2, 1, 4)


def test_a_start_before_the_first_element_of_a_slice_that_goes_backwards():
    (found,) = evaluated("Slice", [A, ints(-9), ints(-99), ints(0), ints(-1)], {})
    np.testing.assert_array_equal(found, A[:1])


@pytest.mark.parametrize(
    ("op", "xs", "attrs"),
    [
        ("Add", (A, FLOATS[:1]), {}),
        ("Where", (A > 0, A, A.astype(np.int32)), {}),
        ("Equal", (np.array(["a"]), np.array(["b"])), {}),
        ("Concat", (np.array(["a"], object),), {"axis": 0}),
        ("Cast", (A,), {"to": 8}),
        ("Cast", (A,), {"to": 16}),
        ("Cast", (A,), {"to": 999}),
        ("ConstantOfShape", (ints(2),), {"value": np.zeros(2)}),
        ("Range", (np.float16(0), np.float16(2), np.float16(1)), {}),
        ("ReduceProd", (A, ints()), {"noop_with_empty_axes": 1}),
        ("ReduceProd", (A, ints()), {}),
        ("CumSum", (A, ints(0)), {}),
    ],
)
def test_what_is_left_to_the_reference(op, xs, attrs):
    assert evaluated(op, xs, attrs) is None


@pytest.mark.parametrize(
    ("op", "xs", "attrs", "error"),
    [
        ("Div", (A, ints(0)), {}, ZeroDivisionError),
        ("Gather", (A, ints(5)), {}, IndexError),
        ("Concat", (A, A[None]), {"axis": 0}, ValueError),
        ("Expand", (A, ints(2)), {}, ValueError),
        ("Reshape", (A, ints(4)), {}, ValueError),
        ("Reshape", (A, ints(-1, 0)), {}, IndexError),
        ("Slice", (A, ints(0), ints(1), ints(1)), {}, IndexError),
        ("Slice", (A, ints(0, 1), ints(1)), {}, ValueError),
        ("Squeeze", (A, ints(0)), {}, ValueError),
        ("Transpose", (WHOLE,), {"perm": [0, 0, 1]}, ValueError),
        ("Unsqueeze", (A, ints(0, 0)), {}, ValueError),
    ],
)
def test_what_does_not_fit_is_refused(op, xs, attrs, error):
    with pytest.raises(error):
        evaluated(op, xs, attrs)


def test_a_refusal_names_the_node():
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "i"], ["y"])]
    rep = sonnx.prepare(model(nodes, {"x": FLOATS}, ["y"], {"i": ints(7)}))
    for _ in range(3):
        with pytest.raises(IndexError, match="^Gather: "):
            rep.run([FLOATS])


@pytest.mark.parametrize("op", ["Sqrt", "Reciprocal"])  # in NumPy, and in onnx's reference
def test_nan_and_infinity_are_no_reason_to_warn(op, recwarn):
    value = np.float32(-1.0 if op == "Sqrt" else 0.0)
    rep = sonnx.prepare(model([helper.make_node(op, ["x"], ["y"])], {}, ["y"], {"x": value}))
    assert not np.isfinite(rep.run([])[0])
    assert not recwarn.list


#: What reading a graph that calculates with shapes must not import.
PROGRAM = """
import sys
import numpy as np
from onnx import TensorProto, helper
from singa_rs import sonnx

nodes = [
    helper.make_node("Shape", ["x"], ["s"]),
    helper.make_node("Slice", ["s", "zero", "one"], ["n"]),
    helper.make_node("Concat", ["n", "minus"], ["m"], axis=0),
    helper.make_node("Reshape", ["x", "m"], ["y"]),
]
info = helper.make_tensor_value_info
constants = [
    helper.make_tensor(name, TensorProto.INT64, [1], [value])
    for name, value in (("zero", 0), ("one", 1), ("minus", -1))
]
shapes = info("x", TensorProto.FLOAT, [2, 3, 4]), info("y", TensorProto.FLOAT, None)
graph = helper.make_graph(nodes, "g", shapes[:1], shapes[1:], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
(y,) = sonnx.prepare(model).run([np.zeros((2, 3, 4), np.float32)])
assert y.shape == (2, 12), y.shape
print(*sorted({"onnx.reference", "singa_rs.data", "numpy.random"} & set(sys.modules)))
"""


def test_large_packages_are_not_imported_for_shapes():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
