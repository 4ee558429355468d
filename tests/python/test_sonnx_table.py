"""Every operation of the engine is written as ONNX, or there is a reason why not; every operator of
ONNX that its suite tests is read."""

import onnx
from cases import CASES
from singa_rs import sonnx
from singa_rs.sonnx.table import READERS, WRITERS

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
