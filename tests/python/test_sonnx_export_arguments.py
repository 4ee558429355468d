"""Wrong arguments of exports are refused by name; what other packages take is taken."""

import numpy as np
import pytest
from onnx import parser
from onnx_models import real, there
from singa_rs import sonnx, tensor
from test_sonnx_export import check

X = real(2, 3)


def double(x):
    return x * 2


def test_axes_without_names():
    proto = check(double, [X], {"x": [0, -1]}, [[real(5, 4)]])
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    assert [one.dim_param for one in dims] == ["x_0", "x_-1"]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"dynamic": {"x": {0: 3}}}, TypeError, "dynamic: got 0: 3 for x, want the axes' names"),
        ({"dynamic": {"x": {0: None}}}, TypeError, "dynamic: got 0: None for x"),
        ({"dynamic": {"x": {"batch": 0}}}, TypeError, "dynamic: got 'batch': 0 for x"),
        ({"dynamic": {"x": 0}}, TypeError, "dynamic: got 0 for x"),
        ({"dynamic": ["x"]}, TypeError, "dynamic: got .'x'., want axes by inputs' names"),
        ({"dynamic": {"x": {0: "a", -2: "b"}}}, ValueError, "dynamic: axis -2 of x has two names"),
        ({"input_names": [3]}, TypeError, "input_names: got .3., want a list of 1 names"),
        ({"input_names": "x"}, TypeError, "input_names: got 'x', want a list of 1 names"),
        ({"output_names": ["x"]}, ValueError, "output_names: got .'x'., which are names of inputs"),
    ],
)
def test_what_does_not_fit(options, kind, message):
    with pytest.raises(kind, match=f"^export: {message}"):
        sonnx.model_proto(double, [X], **options)


def test_open_axes_under_another_name(tmp_path):
    with pytest.raises(TypeError, match="'dynamic_axes'; want dynamic="):
        sonnx.export(double, tmp_path / "f.onnx", [X], dynamic_axes={"x": {0: "n"}})


@pytest.mark.parametrize("inputs", [X, {"x": X}, None])
def test_inputs_are_a_list(inputs):
    with pytest.raises(TypeError, match="^export: inputs: got .*, want a list of what"):
        sonnx.model_proto(double, inputs)


def test_an_input_may_have_the_usual_name_of_an_output():
    proto = sonnx.model_proto(double, [X], input_names=["y"])
    assert [one.name for one in proto.graph.output] == ["y_"]
    np.testing.assert_array_equal(sonnx.prepare(proto).run([X])[0], X * 2)


def imported(body):
    """A model that takes integers of 64 bits."""
    return sonnx.SONNXModel(
        parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g (int64[n,k] ids) {body}')
    )


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_an_imported_model_keeps_names_and_types_of_its_file(kind):
    net = imported("=> (float[n,k,2] rows) <float[2,2] w={1,2,3,4}> {rows=Gather(w,ids)}")
    ids = np.array([[0, 1, 1]], kind)
    proto = sonnx.model_proto(net, [ids], dynamic={"ids": [0]})
    (x,), (y,) = proto.graph.input, proto.graph.output
    assert (x.name, x.type.tensor_type.elem_type, y.name) == ("ids", 7, "rows")
    ids = np.array([[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(there(proto, [ids])[0], sonnx.prepare(proto).run([ids])[0])
    proto = sonnx.model_proto(net, [ids], input_names=["a"], output_names=["b"])
    assert (proto.graph.input[0].name, proto.graph.output[0].name) == ("a", "b")


def test_an_input_that_is_an_output_has_another_name_as_one():
    proto = sonnx.model_proto(imported("=> (int64[n,k] ids) {s=Shape(ids)}"), [X.astype(int)])
    assert (proto.graph.input[0].name, proto.graph.output[0].name) == ("ids", "y")


def test_an_imported_model_is_saved_for_any_batch(tmp_path):
    net = imported("=> (float[n,k] x) {x=Cast<to=1>(ids)}")
    net.compile([tensor.Placeholder((2, 3), dtype="int64")], is_train=False)
    net.save(tmp_path / "net")
    (found,) = sonnx.prepare(tmp_path / "net.onnx").run([np.ones((5, 3), np.int64)])
    assert found.shape == (5, 3)
