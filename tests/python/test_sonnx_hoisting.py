"""Loops of ONNX whose bodies make the same in every round: that is run once, before the first."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import graph, model, real, replays, there
from singa_rs import autograd, sonnx
from singa_rs.tensor import Tensor, to_numpy

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X, W = real(3, 4), real(4, 4)
node = helper.make_node


def looping(nodes, trips=3, ends="more", extra=()):
    """`nodes` as the body of a loop that carries `v`, `w`, which rounds pass on as it is, and `u`,
    which they pass on by another name; it ends with v's last values, and those of all rounds."""
    nodes = [node("Identity", ["go"], ["more"]), node("Identity", ["u"], ["same"]), *nodes]
    inputs = [("i", INT64, []), ("go", BOOL, []), ("v", FLOAT, None), ("w", FLOAT, None)]
    inputs += [("u", FLOAT, None)]
    outputs = [(ends, BOOL, []), ("z", FLOAT, None), ("w", FLOAT, None), ("same", FLOAT, None)]
    body = graph(nodes, inputs, [*outputs, ("z", FLOAT, [3, 4])])
    loop = node("Loop", ["trips", "", "x", "weight", "x"], ["y", "w_", "u_", "all"], body=body)
    given = {"x": X, "weight": W}
    return model([loop, *extra], given, ["y", "all"], {"trips": np.array(trips)})


def before(net):
    """The operators that the loops of a model, in their order, run once each."""
    bodies = [one.attrs["before"] for one in net._body.nodes if "before" in one.attrs]
    return [[one.proto.op_type for one in body.nodes] for body in bodies]


SAME = [
    node("Transpose", ["w"], ["wt"], perm=[1, 0]),
    node("MatMul", ["u", "wt"], ["uw"]),
    node("Add", ["v", "uw"], ["z"]),
]
READING = [
    *SAME,
    node("ReduceSum", ["z"], ["sum"], keepdims=0),
    node("Less", ["sum", "big"], ["early"]),
]


def check(proto, *inputs):
    """Results are those of onnx's reference, run by run."""
    rep = sonnx.prepare(proto)
    for factor in (1, 2, 1, 1):
        given = [factor * x for x in inputs]
        for got, want in zip(rep.run(given), there(proto, given), strict=True):
            np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_what_rounds_do_not_change_is_run_once():
    proto = looping(SAME)
    assert before(sonnx.SONNXModel(proto)) == [["Identity", "Transpose", "MatMul"]]
    check(proto, X, W)
    replays(proto, X, W)


@pytest.mark.parametrize("trips", [1, 5])
def test_rounds_that_read_a_value_share_it(trips):
    constant = node("Constant", [], ["big"], value_float=1e9)
    check(looping([constant, *READING], trips, "early"), X, W)


def test_nothing_is_run_without_a_round():
    wrong = [node("MatMul", ["w", "u"], ["zz"]), *SAME]  # (4, 4) by (3, 4)
    rep = sonnx.prepare(looping(wrong, 0))
    np.testing.assert_array_equal(rep.run([X, W])[0], X)
    with pytest.raises(ValueError, match="MatMul"):
        sonnx.prepare(looping(wrong, 1)).run([X, W])


def test_chains_of_identities():
    chain = [node("Identity", ["go"], ["on"]), node("Identity", ["on"], ["also"]), *SAME]
    assert len(before(sonnx.SONNXModel(looping(chain)))[0]) == 3
    circle = [node("Identity", ["a"], ["b"]), node("Identity", ["b"], ["a"]), *SAME]
    with pytest.raises(
        ValueError, match="body: no order of its nodes makes each of 'b', 'a' before"
    ):
        sonnx.prepare(looping(circle))


def test_random_numbers_are_drawn_in_every_round():
    drawing = [node("RandomNormalLike", ["u"], ["r"]), node("Add", ["r", "u"], ["z"])]
    proto = looping(drawing)
    assert before(sonnx.SONNXModel(proto)) == [["Identity"]]
    first, second, third = sonnx.prepare(proto).run([X, W])[1]
    assert not np.array_equal(first, second) and not np.array_equal(second, third)


def test_gradients_are_those_of_all_rounds():
    net = sonnx.SONNXModel(looping(SAME, 3))
    autograd.training = True
    x, w = (Tensor(data=one, requires_grad=True) for one in (X, W))
    y, _ = net.forward(x, w)
    found = autograd.gradients(autograd.sum(y), xs=[x, w])
    ones = np.ones_like(X)
    for got, want in zip(found, (ones + 3 * ones @ W, 3 * ones.T @ X), strict=True):
        np.testing.assert_allclose(to_numpy(got), want, 1e-5)


def test_loops_in_loops():
    """What the inner loop takes from the outer one's round is the same in all of its rounds."""
    inner = graph(
        [
            node("Identity", ["again"], ["on"]),
            node("Mul", ["v", "u"], ["vu"]),
            node("Add", ["a", "vu"], ["b"]),
        ],
        [("j", INT64, []), ("again", BOOL, []), ("a", FLOAT, None)],
        [("on", BOOL, []), ("b", FLOAT, None)],
    )
    nodes = [
        node("ReduceSum", ["w"], ["total"], keepdims=0),
        node("Loop", ["trips", "", "v"], ["inner"], body=inner),
        node("Add", ["inner", "total"], ["z"]),
    ]
    proto = looping(nodes)
    net = sonnx.SONNXModel(proto)
    assert before(net) == [["Identity", "ReduceSum"]]
    (loop,) = net._body.nodes
    (nested,) = (one for one in loop.attrs["body"].nodes if one.proto.op_type == "Loop")
    assert [one.proto.op_type for one in nested.attrs["before"].nodes] == ["Mul"]
    check(proto, X, W)


def test_scans_too():
    nodes = [
        node("MatMul", ["w", "w"], ["ww"]),
        node("MatMul", ["s", "ww"], ["p"]),
        node("Add", ["p", "x"], ["t"]),
        node("Identity", ["w"], ["same"]),
    ]
    inputs = [("s", FLOAT, None), ("w", FLOAT, None), ("x", FLOAT, None)]
    outputs = [("t", FLOAT, None), ("same", FLOAT, None), ("p", FLOAT, None)]
    body = graph(nodes, inputs, outputs)
    scan = node("Scan", ["s", "weight", "x"], ["last", "w_", "all"], body=body, num_scan_inputs=1)
    proto = model([scan], {"s": X[0], "weight": W, "x": X}, ["last", "all"])
    assert before(sonnx.SONNXModel(proto)) == [["MatMul", "Identity"]]
    check(proto, X[0], W, X)


DERIVES = {"domain": "ai.onnx.preview.training", "y": "y"}


def test_nodes_that_are_differentiated_stay_together():
    nodes = [
        node("MatMul", ["u", "w"], ["h"]),
        node("Mul", ["h", "v"], ["hv"]),
        node("ReduceSum", ["hv"], ["y"], keepdims=0),
        node("Gradient", ["u", "v", "w"], ["gu", "gv"], xs=["u", "v"], zs=["w"], **DERIVES),
        node("Add", ["gu", "v"], ["z"]),
    ]
    rep = sonnx.prepare(looping(nodes, 2))
    once = X @ W.T + X
    for _ in range(4):
        np.testing.assert_allclose(rep.run([X, W])[0], once @ W.T + once, 1e-5, 1e-5)


def test_a_derivative_through_a_node_that_reads():
    nodes = [
        node("Mul", ["x", "x"], ["xx"]),
        node("NonZero", ["c"], ["places"]),
        node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        node("GatherND", ["xx", "rows"], ["found"]),
        node("ReduceSum", ["found"], ["y"], keepdims=0),
        node("Gradient", ["x", "c"], ["g"], xs=["x"], zs=["c"], **DERIVES),
    ]
    c = (X > 0).astype(np.float32)
    rep = sonnx.prepare(model(nodes, {"x": X, "c": c}, ["y", "g"]))
    for _ in range(4):
        np.testing.assert_array_equal(rep.run([X, c])[1], 2 * X * c)


def test_bodies_read_what_stays_as_the_value_around_them():
    """So that products with weights know them; a name of its own in a body is another value."""
    proto = looping(SAME)
    (loop,) = (one for one in sonnx.SONNXModel(proto)._body.nodes if one.row.name == "Loop")
    assert {"weight", "x"} <= loop.attrs["before"].outer
    assert not {"w", "u"} & {x for one in loop.attrs["body"].nodes for x in one.inputs}
    own = [node("Neg", ["v"], ["weight"]), *SAME]  # which hides the value of that name
    (loop,) = (one for one in sonnx.SONNXModel(looping(own))._body.nodes if one.row.name == "Loop")
    assert "weight" not in loop.attrs["body"].outer


def test_bodies_within_bodies_read_what_stays():
    """Unless they have a value of that name, which onnxruntime refuses."""
    branch = graph([node("Add", ["w", "w"], ["w2"])], [], [("w2", FLOAT, None)])
    hides = graph([node("Neg", ["v"], ["w"])], [], [("w", FLOAT, None)])
    nodes = [
        node("If", ["go"], ["both"], then_branch=branch, else_branch=branch),
        node("MatMul", ["u", "both"], ["uw"]),
        node("Add", ["v", "uw"], ["z"]),
    ]
    check(looping(nodes), X, W)
    nodes[-1:] = [
        node("If", ["go"], ["other"], then_branch=hides, else_branch=hides),
        node("Add", ["other", "uw"], ["z"]),
    ]
    want = X
    for _ in range(3):
        want = X @ (2 * W) - want
    np.testing.assert_allclose(sonnx.prepare(looping(nodes)).run([X, W])[0], want, 1e-5, 1e-5)
