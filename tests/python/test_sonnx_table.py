"""Every operation of the engine is written as ONNX, or there is a reason why not; every operator of
ONNX that its suite tests is read."""

import copy
import pickle

import numpy as np
import onnx
import pytest
from cases import CASES
from onnx import helper
from onnx_models import graph, model, one, real
from singa_rs import sonnx
from singa_rs.sonnx.table import READERS, WRITERS
from singa_rs.tensor import Tensor

assert sonnx  # entering the rows

#: Operations that are part of training steps alone, or have no counterpart.
NOT_WRITTEN = {
    "advance": "counts random numbers",
    "batch_norm_factor": "made by rewriting",
    "batch_norm_statistics": "made by rewriting",
    "conv_grad_weight": "a gradient",
    "fold_batch_norm": "made by rewriting",
    "host": "code of the user",
    "normalize": "made by rewriting",
    "pack": "made by rewriting",
    "packed": "made by rewriting",
    "region": "made by rewriting",
    "running_average": "training updates it",
    "tensor_scatter": "writes into a cache that was there before",
    "update": "an optimizer",
}
#: Families that compute the decompositions of matrices, for which ONNX has no operators.
LINEAR_ALGEBRA = {"linalg", "solve", "triangular_solve"}


def test_operations_are_written():
    families = {case.family for case in CASES}
    gradients = {name for name in families if name.endswith("_grad")}
    missing = families - gradients - set(WRITERS) - set(NOT_WRITTEN) - LINEAR_ALGEBRA
    assert not missing


def test_reasons_are_needed():
    assert not set(NOT_WRITTEN) & set(WRITERS)


def test_operators_are_read_or_defined_by_others():
    def is_read(schema):
        has_body = schema.has_function or schema.has_context_dependent_function
        return (
            has_body
            or ("" if schema.domain == "ai.onnx" else schema.domain, schema.name) in READERS
        )

    plain = [one for one in onnx.defs.get_all_schemas() if one.domain in ("", "ai.onnx.ml")]
    missing = {one.name for one in plain if not one.deprecated and not is_read(one)}
    assert not missing


# ---- copies --------------------------------------------------------------------------------------


def test_copies_of_rows_are_the_rows():
    rows = [row for rows in READERS.values() for row in rows]
    assert len(rows) > 200
    assert all(pickle.loads(pickle.dumps(row)) is row and copy.copy(row) is row for row in rows)


def branching():
    """A model with two bodies."""
    bodies = {
        f"{name}_branch": graph([helper.make_node(op, ["x"], ["y"])], [], [("y", 1, [2, 3])])
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["z"], **bodies),
    ]
    return model(nodes, {"x": real(2, 3)}, ["z"], {"zero": np.float32(0)})


MODELS = {
    "If": branching,
    "a function": lambda: one("MeanVarianceNormalization", [real(2, 3)], axes=[1]),
    **{op: lambda op=op: one(op, [real(2, 3)]) for op in ("Abs", "Relu", "Softmax", "IsNaN")},
    **{op: lambda op=op: one(op, [real(2, 3)] * 2) for op in ("Add", "Max", "Less", "Pow")},
    "ReduceMax": lambda: one("ReduceMax", [real(2, 3)]),
    "old": lambda: one("Softmax", [real(2, 3)], opset=11),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("is_recorded", [False, True])
def test_copies_of_models_compute_the_same(name, is_recorded):
    net = sonnx.SONNXModel(MODELS[name]())
    xs = [Tensor(data=real(2, 3, seed=i)) for i in range(len(net._wanted))]
    if is_recorded:
        net.eval()
        net.record_parts()
        net.outputs(xs)
    (want,) = net.outputs(xs)
    (got,) = pickle.loads(pickle.dumps(net)).outputs(xs)
    np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())
