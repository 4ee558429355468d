"""Calls of operators that do not fit them are refused by name."""

import numpy as np
import pytest
from onnx_models import real, run

BOX = real(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("op", "xs", "settings", "message"),
    [
        ("Relu", [real(2)], {"slope": 1.0}, "Relu: got attribute 'slope', want none"),
        ("Elu", [real(2)], {"beta": 1.0}, "Elu: got attribute 'beta', want alpha"),
        ("Concat", [real(2), real(2)], {}, "Concat: got no attribute 'axis'"),
        ("Reshape", [real(2)], {}, "Reshape: got 1 inputs, want 2"),
        ("Relu", [real(2), real(2)], {}, "Relu: got 2 inputs, want 1"),
        ("Gemm", [BOX[0, 0]], {}, "Gemm: got 1 inputs, want 2 to 3"),
        ("Gemm", [None, BOX[0, 0]], {}, "Gemm: got no input 'a'"),
        ("Momentum", [], {"domain": "ai.onnx.preview.training"}, "Momentum: got 0 inputs"),
        ("Dropout", [real(2)], {"rate": 0.5}, "Dropout: got attribute 'rate', want seed"),
        ("BatchNormalization", [BOX, *[real(1)] * 4], {"axis": 1}, "BatchNormalization: got att"),
    ],
)  # fmt: skip
def test_what_a_row_does_not_know_is_refused(op, xs, settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        run(op, *xs, **settings)


IMAGE, FILTER = real(2, 3, 4, 4), real(1, 3, 2, 2)
WINDOW = {"kernel_shape": [2, 2]}


@pytest.mark.parametrize(
    ("op", "xs", "settings", "message"),
    [
        ("Conv", [IMAGE, FILTER], {"strides": [1]}, "Conv: got strides .1,. for .2, 3, 4, 4."),
        ("Conv", [IMAGE, FILTER], {"pads": [1, 1]}, "Conv: got pads .1, 1. .*, want 4 numbers"),
        ("Conv", [IMAGE, FILTER], {"dilations": [1] * 3}, "Conv: got dilations"),
        (
            "ConvTranspose",
            [IMAGE, real(3, 1, 2, 2)],
            {"strides": [2]},
            "ConvTranspose: got strides",
        ),
        ("MaxPool", [IMAGE], {"kernel_shape": [2]}, "MaxPool: got kernel_shape .2,. for"),
        ("AveragePool", [IMAGE], {**WINDOW, "pads": [1]}, "AveragePool: got pads"),
        ("LpPool", [IMAGE], {**WINDOW, "strides": [1]}, "LpPool: got strides"),
        ("Pad", [IMAGE, np.zeros(8, int)], {"mode": "none"}, "Pad: got mode 'none', want one of"),
        ("Split", [IMAGE], {"num_outputs": 3, "outputs": 2}, "Split: got num_outputs 3 for 2"),
        ("Split", [IMAGE], {"num_outputs": 0, "outputs": 2}, "Split: got num_outputs 0 for 2"),
        ("Split", [IMAGE, np.array([1, 1])], {"outputs": 3}, "Split: got sizes .1, 1. for 3"),
    ],
)  # fmt: skip
def test_attributes_that_do_not_fit_the_tensor(op, xs, settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        run(op, *xs, **settings)


def test_constants():
    with pytest.raises(ValueError, match="^Constant: got attribute 'number', want sparse_value, "):
        run("Constant", number=1)
    with pytest.raises(ValueError, match="^Constant: got no value"):
        run("Constant")


def test_what_older_opsets_have_as_attributes():
    x = real(2, 3)
    np.testing.assert_array_equal(run("Unsqueeze", x, axes=[0], opset=11), x[None])
    np.testing.assert_array_equal(
        run("Slice", x, starts=[1], ends=[3], axes=[1], opset=9), x[:, 1:]
    )
    np.testing.assert_array_equal(run("Concat", BOX, BOX, opset=3), np.concatenate([BOX, BOX], 1))
    np.testing.assert_array_equal(run("Abs", x, consumed_inputs=[0], opset=1), abs(x))
    with pytest.raises(ValueError, match="Unsqueeze: got 1 inputs, want 2"):
        run("Unsqueeze", x)
