"""Control flow, sequences and optional values that are read from ONNX."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper
from onnx_models import graph, model, real, replays, there
from singa_rs import autograd, sonnx
from singa_rs.errors import GraphError
from singa_rs.tensor import Tensor, to_numpy

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = real(3, 4)
node = helper.make_node


def doubling(limit):
    """`x` doubled until its sum passes a limit, at most `trips` times; the sums of all rounds."""
    nodes = [
        node("Add", ["v", "v"], ["w"]),
        node("ReduceSum", ["w"], ["sum"], keepdims=0),
        node("Less", ["sum", "limit"], ["more"]),
    ]
    inputs = [("i", INT64, []), ("go", BOOL, []), ("v", FLOAT, [3, 4])]
    outputs = [("more", BOOL, []), ("w", FLOAT, [3, 4]), ("sum", FLOAT, [])]
    loop = node("Loop", ["trips", "start", "x"], ["y", "sums"], body=graph(nodes, inputs, outputs))
    known = {"limit": np.array(limit, np.float32), "start": np.array(True)}
    return model([loop], {"trips": np.array(1), "x": X}, ["y", "sums"], known)


@pytest.mark.parametrize("trips", [0, 1, 9])
def test_a_loop_ends_by_its_number_of_rounds_or_by_its_condition(trips):
    proto, x = doubling(100.0), np.abs(X)
    rep = sonnx.prepare(proto)
    for given in (x, 2 * x, x, x, x):
        inputs = [np.array(trips), given]
        for got, want in zip(rep.run(inputs), there(proto, inputs), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, 1e-6)


@pytest.mark.parametrize("trips", [0, 2])
def test_a_loop_of_values_whose_shape_is_not_declared(trips):
    nodes = [node("Add", ["v", "v"], ["w"]), node("Identity", ["go"], ["on"])]
    inputs = [("i", INT64, []), ("go", BOOL, []), ("v", FLOAT, None)]
    outputs = [("on", BOOL, []), ("w", FLOAT, None), ("w", FLOAT, None)]
    loop = node("Loop", ["trips", "", "x"], ["y", "all"], body=graph(nodes, inputs, outputs))
    proto, given = model([loop], {"trips": np.array(1), "x": X}, ["y", "all"]), [np.array(trips), X]
    for got, want in zip(sonnx.prepare(proto).run(given), there(proto, given), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_gradients_pass_through_loops():
    net = sonnx.SONNXModel(doubling(1e9))
    autograd.training = True
    x = Tensor(data=np.abs(X), requires_grad=True)
    y, sums = net.forward(np.array(3), x)
    (g,) = autograd.gradients(autograd.sum(y) + autograd.sum(sums), xs=[x])
    np.testing.assert_array_equal(to_numpy(g), np.full((3, 4), 8 + 2 + 4 + 8))


def test_conditions_on_values_are_not_recorded_in_training():
    net = sonnx.SONNXModel(doubling(100.0))
    with pytest.raises(GraphError):
        net.compile([np.array(3), Tensor(data=X)], is_train=True, use_graph=True)


def test_a_loop_of_a_known_number_of_rounds_replays():
    nodes = [node("Identity", ["go"], ["on"]), node("Mul", ["v", "x"], ["w"])]
    inputs = [("i", INT64, []), ("go", BOOL, []), ("v", FLOAT, [3, 4])]
    outputs = [("on", BOOL, []), ("w", FLOAT, [3, 4]), ("w", FLOAT, [3, 4])]
    loop = node("Loop", ["trips", "", "x"], ["y", "all"], body=graph(nodes, inputs, outputs))
    replays(model([loop], {"x": X}, ["y", "all"], {"trips": np.array(3)}), X)


def counting(limit):
    """`x` times the number of each round, until the sum passes a limit; a count by twos."""
    nodes = [
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Mul", ["f", "x"], ["w"]),
        node("ReduceSum", ["w"], ["sum"], keepdims=0),
        node("Less", ["sum", "limit"], ["more"]),
        node("Add", ["n", "two"], ["m"]),
    ]
    inputs = [("i", INT64, []), ("go", BOOL, []), ("n", INT64, [1])]
    outputs = [("more", BOOL, []), ("m", INT64, [1]), ("w", FLOAT, [3, 4])]
    loop = node("Loop", ["", "", "from"], ["n", "y"], body=graph(nodes, inputs, outputs))
    known = {"limit": np.array(limit, np.float32), "two": np.array([2]), "from": np.array([-3])}
    return model([loop], {"x": X}, ["n", "y"], known)


@pytest.mark.parametrize("rounds", [0, 6, 300])
def test_rounds_share_their_recordings_though_they_are_counted(rounds):
    x = (X * 0 + 1 / 12).astype(np.float32)
    proto = counting(rounds)
    rep = sonnx.prepare(proto)
    for given in (x, x, 2 * x):
        for got, want in zip(rep.run([given]), there(proto, [given]), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, 1e-5)
    recorded = [one for one in rep.model._stretches._known.values() if one is not None]
    assert len(recorded) < 12


def summing(**how):
    """The running sum of slices, and twice each of them."""
    nodes = [node("Add", ["s", "x"], ["t"]), node("Add", ["x", "x"], ["twice"])]
    inputs = [("s", FLOAT, None), ("x", FLOAT, None)]
    outputs = [("t", FLOAT, None), ("twice", FLOAT, None)]
    body = graph(nodes, inputs, outputs)
    return node("Scan", ["s", "x"], ["last", "all"], body=body, num_scan_inputs=1, **how)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"scan_input_directions": [1], "scan_output_directions": [1]},
        {"scan_input_axes": [1], "scan_output_axes": [-1]},
    ],
)
def test_scans_in_other_directions_and_along_other_axes(how):
    start = real(3 if "scan_input_axes" in how else 4)
    proto = model([summing(**how)], {"s": start, "x": X}, ["last", "all"])
    given = [start, X]
    for got, want in zip(sonnx.prepare(proto).run(given), there(proto, given), strict=True):
        np.testing.assert_allclose(got, want, 1e-6)
    replays(proto, start, X)


def test_scans_of_samples_have_their_own_lengths():
    scan = summing()
    scan.input.insert(0, "n")
    x, start = real(2, 3, 4), real(2, 4)
    proto = model([scan], {"n": np.array([3, 1]), "s": start, "x": x}, ["last", "all"], opset=8)
    last, every = sonnx.prepare(proto).run([np.array([3, 1]), start, x])
    np.testing.assert_allclose(last, [start[0] + x[0].sum(0), start[1] + x[1, 0]], 1e-5)
    want = 2 * x
    want[1, 1:] = 0
    np.testing.assert_allclose(every, want, 1e-6)


def test_branches_see_what_is_around_them():
    inner = graph([node("Mul", ["x", "y"], ["z"])], [], [("z", FLOAT, None)])
    nodes = [node("Neg", ["x"], ["y"])]
    nodes.append(node("If", ["c"], ["w"], then_branch=inner, else_branch=_same("y")))
    branch = graph(nodes, [], [("w", FLOAT, None)])
    outer = node("If", ["c"], ["out"], then_branch=branch, else_branch=_same("x"))
    proto = model([outer], {"c": np.array(True), "x": X}, ["out"])
    rep = sonnx.prepare(proto)
    for c in (True, False, True, False, True, True, False):
        want = -X * X if c else X
        np.testing.assert_array_equal(rep.run([np.array(c), X])[0], want)


def _same(name):
    return graph([node("Identity", [name], ["same"])], [], [("same", FLOAT, None)])


def test_sequences_hold_tensors_of_other_shapes():
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["parts"], axis=1),
        node("SequenceErase", ["parts", "first"], ["less"]),
        node("SequenceInsert", ["less", "x", "first"], ["more"]),
        node("ConcatFromSequence", ["more"], ["y"], axis=1),
        node("SequenceAt", ["more", "last"], ["z"]),
        node("SequenceLength", ["more"], ["n"]),
    ]
    known = {"sizes": np.array([1, 3]), "first": np.array(0), "last": np.array(-1)}
    proto = model(nodes, {"x": X}, ["y", "z"], known)
    replays(proto, X)
    y, z = sonnx.prepare(proto).run([X])
    np.testing.assert_array_equal(y, np.concatenate([X, X[:, 1:]], 1))
    np.testing.assert_array_equal(z, X[:, 1:])


@pytest.mark.parametrize("x", [np.array([[1, 2], [3, 4]]), np.array([["a", "b"], ["c", "d"]])])
def test_sequences_of_what_is_on_the_host(x):
    nodes = [
        node("Constant", [], ["x"], value=helper.make_tensor("x", _kind(x), x.shape, x.ravel())),
        node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0),
        node("SequenceAt", ["parts", "at"], ["y"]),
        node("ConcatFromSequence", ["parts"], ["z"], axis=0),
    ]
    y, z = sonnx.prepare(model(nodes, {"at": np.array(1)}, ["y", "z"])).run([np.array(1)])
    assert y.tolist() == x[:, 1].tolist() and z.tolist() == x.T.ravel().tolist()


def _kind(x):
    return INT64 if x.dtype.kind == "i" else TensorProto.STRING


def test_functions_of_a_model():
    """Attributes of functions reach the bodies in them, with their defaults."""
    inside = helper.make_graph(
        [node("LeakyRelu", ["x"], ["z"])], "then", [], [helper.make_empty_tensor_value_info("z")]
    )
    kind = AttributeProto.FLOAT
    inside.node[0].attribute.add(name="alpha", type=kind, ref_attr_name="slope")
    body = [node("If", ["c"], ["y"], then_branch=inside, else_branch=_same("x"))]
    function = helper.make_function(
        "own", "Leaky", ["c", "x"], ["y"], body, [helper.make_opsetid("", 21)],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )  # fmt: skip
    calls = [
        node("Leaky", ["c", "x"], ["a"], domain="own"),
        node("Leaky", ["c", "a"], ["b"], domain="own", slope=0.25),
    ]
    proto = model(calls, {"c": np.array(True), "x": X}, ["b"])
    proto.functions.append(function)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    rep = sonnx.prepare(proto)
    for _ in range(4):
        (y,) = rep.run([np.array(True), X])
        np.testing.assert_allclose(y, np.where(X > 0, X, X / 8), 1e-6)


def test_functions_have_opsets_and_names_of_their_own():
    """Softmax of opset 11 works over all axes from one on; an input that a call leaves out is not
    a value of the same name around it."""
    body = [node("Softmax", ["a"], ["s"], axis=1), node("Clip", ["s", "", "x"], ["y"])]
    function = helper.make_function(
        "own", "Old", ["a", "x"], ["y"], body, [helper.make_opsetid("", 11)]
    )
    x = real(2, 3, 4)
    proto = model([node("Old", ["x"], ["y"], domain="own")], {"x": x}, ["y"])
    proto.functions.append(function)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    powers = np.exp(x)
    want = powers / powers.sum((1, 2), keepdims=True)
    np.testing.assert_allclose(sonnx.prepare(proto).run([x])[0], want, 1e-5)


@pytest.mark.parametrize(
    ("op", "xs", "attributes", "want"),
    [
        ("SequenceAt", [[X], np.array(1)], {}, "SequenceAt: got position 1, want one from -1 to 0"),
        ("SequenceErase", [[]], {}, "SequenceErase: got position -1"),
        ("ConcatFromSequence", [[]], {"axis": 0}, "ConcatFromSequence: got an empty sequence"),
        ("SplitToSequence", [X, np.array(0)], {}, "SplitToSequence: got split 0"),
        ("OptionalGetElement", [None], {}, "OptionalGetElement: got an empty optional"),
    ],
)
def test_refusals_name_the_operator(op, xs, attributes, want):
    names = [f"x{i}" for i in range(len(xs))]
    infos = [helper.make_empty_tensor_value_info(name) for name in (*names, "y")]
    body = helper.make_graph([node(op, names, ["y"], **attributes)], "g", infos[:-1], infos[-1:])
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)])
    with pytest.raises(ValueError, match=want):
        sonnx.prepare(proto).run(xs)
