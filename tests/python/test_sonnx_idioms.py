"""Nodes that together are HardSwish or GELU, as converters to older opsets write them; squares."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import graph, model, real, there
from singa_rs import sonnx

node = helper.make_node
CONV = node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1])
ADD = node("Add", ["c", "three"], ["a"])
CLIP = node("Clip", ["a", "zero", "six"], ["b"])
NUMBERS = {"three": 3.0, "zero": 0.0, "six": 6.0, "sixth": 1 / 6}
FORMS = {
    "of the product": [node("Mul", ["c", "b"], ["p"]), node("Div", ["p", "six"], ["y"])],
    "turned": [node("Mul", ["b", "c"], ["p"]), node("Mul", ["sixth", "p"], ["y"])],
    "of the factor": [node("Div", ["b", "six"], ["p"]), node("Mul", ["c", "p"], ["y"])],
    "multiplied": [node("Mul", ["b", "sixth"], ["p"]), node("Mul", ["p", "c"], ["y"])],
}


def net(nodes, outputs=("y",), shape=(), opset=21, **numbers):
    """A model of nodes behind a convolution, with numbers of a shape."""
    found = {
        k: np.full(() if k in ("zero", "six") else shape, v, np.float32)
        for k, v in (NUMBERS | numbers).items()
    }
    given = {"x": 4 * real(1, 3, 8, 8)}
    return model(nodes, given, list(outputs), {"w": real(5, 3, 3, 3), **found}, opset), given["x"]


def kinds(proto):
    return [one.proto.op_type for one in sonnx.SONNXModel(proto)._body.nodes]


def close(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, 2e-6, 2e-6 * np.abs(want).max())


def check(proto, x):
    want = there(proto, [x])
    rep = sonnx.prepare(proto)
    for _ in range(4):
        for got, one in zip(rep.run([x]), want, strict=True):
            close(got, one)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_ends_in_the_operator(form, shape):
    proto, x = net([CONV, ADD, CLIP, *FORMS[form]], shape=shape)
    found = kinds(proto)
    assert found[-1] == "HardSwish" and len(found) == 5
    check(proto, x)


def test_bounds_may_be_attributes():
    clip = node("Clip", ["a"], ["b"], min=0.0, max=6.0)
    proto, x = net([CONV, ADD, clip, *FORMS["of the product"]], opset=10)
    assert kinds(proto)[-1] == "HardSwish"
    check(proto, x)


def test_values_between_are_still_there():
    nodes = [CONV, ADD, CLIP, *FORMS["of the product"]]
    proto, x = net(nodes, ["y", "b", "p"])
    assert kinds(proto)[-1] == "HardSwish"
    check(proto, x)
    proto, x = net(nodes)
    want = there(net(nodes, ["p"])[0], [x])[0]
    rep = sonnx.prepare(proto)
    close(rep.run([x], aux_output=["p"])[1], want)
    close(rep.run([x], last_layers=-1)[0], want)


def test_a_branch_has_its_own():
    branch = graph([CONV, ADD, CLIP, *FORMS["of the product"]], [], [("y", 1, [1, 5, 8, 8])])
    zero = graph([node("Neg", ["x"], ["z"])], [], [("z", 1, None)])
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Greater", ["most", "zero"], ["is"]),
        node("If", ["is"], ["chosen"], then_branch=branch, else_branch=zero),
    ]
    proto, x = net(nodes, ["chosen"])
    (chosen,) = (one for one in sonnx.SONNXModel(proto)._body.nodes if one.row.name == "If")
    # Its numbers are constants of the graph around it.
    assert [one.proto.op_type for one in chosen.attrs["then_branch"].nodes][-1] == "Div"
    check(proto, x)


OTHERS = {
    "another offset": {"three": 2.0},
    "another bound": {"six": 5.0},
    "another divisor": {"sixth": 0.17},
}


@pytest.mark.parametrize("numbers", OTHERS)
def test_other_numbers_are_something_else(numbers):
    form = "turned" if "sixth" in OTHERS[numbers] else "of the product"
    proto, x = net([CONV, ADD, CLIP, *FORMS[form]], **OTHERS[numbers])
    assert "HardSwish" not in kinds(proto)
    check(proto, x)


def test_other_factors_are_something_else():
    other = [node("Neg", ["c"], ["n"]), node("Mul", ["n", "b"], ["p"])]
    proto, x = net([CONV, ADD, CLIP, *other, FORMS["of the product"][1]])
    assert "HardSwish" not in kinds(proto)
    check(proto, x)


def test_a_number_is_no_tensor_of_one_axis():
    """What is known to have no axes would get one."""
    nodes = [node("ReduceSum", ["x"], ["c"], keepdims=0), ADD, CLIP, *FORMS["of the product"]]
    proto, x = net(nodes, shape=(1,))
    assert "HardSwish" not in kinds(proto)
    check(proto, x)


def test_results_are_as_exact_as_asked_for():
    proto, x = net([CONV, ADD, CLIP, *FORMS["of the product"]])
    exact, eager = sonnx.prepare(proto, exact=True), sonnx.SONNXModel(proto)
    eager.eval()
    want = np.asarray(eager.forward(exact._input(x))[0])
    for _ in range(4):
        np.testing.assert_array_equal(exact.run([x])[0], want)


ERF = node("Erf", ["r"], ["e"])
MORE = node("Add", ["e", "one"], ["g"])
ROOTS = {
    "divided": node("Div", ["c", "root"], ["r"]),
    "multiplied": node("Mul", ["inverse", "c"], ["r"]),
}
ORDERS = {
    "half last": [node("Mul", ["c", "g"], ["p"]), node("Mul", ["p", "half"], ["y"])],
    "half first": [node("Mul", ["half", "c"], ["p"]), node("Mul", ["p", "g"], ["y"])],
    "x last": [node("Mul", ["g", "half"], ["p"]), node("Mul", ["c", "p"], ["y"])],
}


def gelu(scaled, order, shape=(), conv=CONV, **numbers):
    usual = {"root": 2**0.5, "inverse": 0.5**0.5, "one": 1.0, "half": 0.5}
    return net([conv, scaled, ERF, MORE, *order], shape=shape, **(usual | numbers))


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("order", ORDERS)
def test_error_functions_end_in_gelu(order, root, shape):
    proto, x = gelu(ROOTS[root], ORDERS[order], shape)
    assert kinds(proto)[-1] == "Gelu"
    check(proto, x)


@pytest.mark.parametrize("numbers", [{"root": 1.5}, {"one": 2.0}, {"half": 0.25}])
def test_other_error_functions_are_something_else(numbers):
    proto, x = gelu(ROOTS["divided"], ORDERS["half last"], **numbers)
    assert "Gelu" not in kinds(proto)
    check(proto, x)


def test_other_products_are_something_else():
    turned = node("Div", ["root", "c"], ["r"])
    squared = [node("Mul", ["g", "g"], ["p"]), node("Mul", ["p", "half"], ["y"])]
    for root, order in ((turned, ORDERS["half last"]), (ROOTS["divided"], squared)):
        proto, x = gelu(root, order)
        assert "Gelu" not in kinds(proto)
        check(proto, x)


def test_gelu_of_a_number_and_tensors_of_one_axis_has_an_axis():
    """onnxruntime's own GELU has none there."""
    total = node("ReduceSum", ["x"], ["c"], keepdims=0)
    for shape in ((), (1,)):
        proto, x = gelu(ROOTS["divided"], ORDERS["half last"], shape, total)
        assert (kinds(proto)[-1] == "Gelu") == (shape == ())
        assert sonnx.prepare(proto).run([x])[0].shape == shape


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_second_powers_are_products(power):
    proto, x = net([CONV, node("Pow", ["c", "power"], ["y"])], power=power)
    assert kinds(proto)[-1] == ("Mul" if power == 2 else "Pow")
    check(proto, x)


def test_the_power_of_a_number_has_the_axes_of_the_exponent():
    nodes = [node("ReduceSum", ["x"], ["c"], keepdims=0), node("Pow", ["c", "power"], ["y"])]
    proto, x = net(nodes, shape=(1,), power=2.0)
    assert kinds(proto)[-1] == "Pow"
    check(proto, x)
