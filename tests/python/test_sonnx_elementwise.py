"""What is read from ONNX element by element and in reductions, beyond onnx's own suite."""

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import agrees, model, one, real, replays, run, there
from singa_rs import autograd, device, sonnx
from singa_rs.tensor import Tensor, to_numpy

BIG = np.array([2**64 - 1, 2**63, 2**63 - 1, 7, 2**64 - 5], np.uint64)
OTHER = np.array([3, 2**63 + 1, 2**63 + 9, 2**64 - 2, 5], np.uint64)
X = real(3, 4, 5)


@pytest.mark.parametrize(
    ("op", "of"),
    {
        "Div": np.floor_divide, "Mod": np.mod, "Add": np.add, "Mul": np.multiply,
        "Max": np.maximum, "Min": np.minimum, "Less": np.less, "GreaterOrEqual": np.greater_equal,
        "Equal": np.equal,
    }.items(),
)  # fmt: skip
def test_uint64_beyond_int64(op, of):
    want = of(BIG, OTHER)
    got = run(op, BIG, OTHER)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_uint64_in_reductions_and_shifts():
    np.testing.assert_array_equal(run("ReduceMax", BIG, opset=20), [BIG.max()])
    np.testing.assert_array_equal(run("ArgMin", BIG, axis=0), [3])
    n = np.array([0, 1, 63, 2, 5], np.uint64)
    np.testing.assert_array_equal(run("BitShift", BIG, n, direction="RIGHT"), BIG >> n)
    np.testing.assert_array_equal(run("BitShift", BIG, n, direction="LEFT"), BIG << n)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_division_of_integers_truncates(dtype):
    a, b = np.array([7, -7, 7, -7, -8], dtype), np.array([2, 2, -2, -2, 4], dtype)
    np.testing.assert_array_equal(run("Div", a, b), np.array([3, -3, -3, 3, -2], dtype))
    np.testing.assert_array_equal(run("Mod", a, b, fmod=1), np.fmod(a, b))
    np.testing.assert_array_equal(run("Mod", a, b), np.mod(a, b))


def test_powers_of_mixed_types():
    x = np.array([-1, 3], np.float32)
    odd = np.array([2**24 + 1, 3], np.int64)  # which float32 would round to an even number
    np.testing.assert_array_equal(run("Pow", x, odd), np.array([-1, 27], np.float32))
    agrees("Pow", np.array([2, 3], np.int32), np.array([2.5, 0.5], np.float32), opset=13)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 12, 13])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_of_rows_as_old_opsets_have_them(op, opset, axis):
    agrees(op, X, opset=opset, axis=axis)


FLOATS, INTEGERS = np.array([[3, 0.5, -2]], np.float32), np.array([[3, 5, -2]], np.int32)


@pytest.mark.parametrize(
    ("op", "opset", "xs", "settings"),
    [
        ("Softmax", 11, [X], {"axis": 1}),
        ("Selu", 1, [X], {}),
        ("Sub", 6, [FLOATS, FLOATS[0, :1]], {"broadcast": 1, "axis": 0}),
        ("ReduceSumSquare", 18, [INTEGERS], {}),
        ("Div", 13, [INTEGERS, INTEGERS[:, ::-1]], {}),
        ("Mod", 13, [FLOATS, FLOATS[:, ::-1]], {"fmod": 1}),
    ],
)
def test_constants_give_what_tensors_give(op, opset, xs, settings):
    known = {f"x{i}": x for i, x in enumerate(xs)}
    constants = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(x))
        for name, x in known.items()
    ]
    node = helper.make_node(op, list(known), ["y"], **settings)
    (folded,) = sonnx.prepare(model([*constants, node], {}, ["y"], opset=opset)).run([])
    want = run(op, *xs, opset=opset, **settings)
    assert folded.dtype == want.dtype
    np.testing.assert_allclose(folded, want, 1e-6)


def test_axes_from_where_the_second_operand_begins():
    got = run("Add", X, X[0, :, 0].copy(), opset=6, broadcast=1, axis=1)
    np.testing.assert_array_equal(got, X + X[0, :, :1])


@pytest.mark.parametrize("opset", [7, 12, 18])
def test_reductions_of_old_and_new_opsets(opset):
    for name in ("Max", "L1", "L2", "LogSumExp", "SumSquare", "Prod"):
        if opset < 18:
            agrees(f"Reduce{name}", X, opset=opset, axes=[0, 2])
        else:
            agrees(f"Reduce{name}", X, np.array([0, -1]), opset=opset, keepdims=0)


def test_clip_of_old_and_new_opsets():
    agrees("Clip", X, opset=6, min=-0.5, max=0.25)
    agrees("Clip", X, None, np.array(0.25, np.float32), opset=11)
    agrees("Clip", X, np.array(0.5, np.float32), np.array(-0.5, np.float32), opset=13)


def test_thresholds_of_nan():
    x = np.array([np.nan, 2, 0.5], np.float32)
    agrees("ThresholdedRelu", x)
    proto = sonnx.model_proto(lambda x: autograd.threshold(x, 1.0, 0.0), [x])
    for (got,) in (sonnx.prepare(proto).run([x]), there(proto, [x])):
        np.testing.assert_array_equal(got, np.array([np.nan, 2, 0], np.float32))


def test_what_has_no_elements():
    agrees("Hardmax", np.zeros((2, 0), np.float32))
    agrees("ReduceMean", np.zeros((2, 0), np.int32))
    agrees("ReduceMean", np.zeros((2, 0), np.int64), np.array([1]), keepdims=0)


@pytest.mark.parametrize("shape", [(4, 5), (4, 1), (1,)])
def test_slopes_are_trained(shape):
    slope = np.full(shape, 0.25, np.float32)
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    net = sonnx.SONNXModel(model([node], {"x": X}, ["y"], {"slope": slope}))
    net.train()
    autograd.training = True
    (y,) = net.forward(Tensor(data=X))
    ((p, g),) = list(autograd.backward(autograd.sum(y)))
    low = np.where(X < 0, X, 0).sum(tuple(range(3 - len(shape))))
    want = low if shape == (4, 5) else low.sum(-1, keepdims=True) if shape == (4, 1) else low.sum()
    np.testing.assert_allclose(to_numpy(g).squeeze(), np.squeeze(want), 1e-5)
    assert p.name == "slope"


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 1), (3, 1, 4), (3,)])
def test_slopes_that_do_not_broadcast_to_the_input_are_refused(shape, dtype):
    x = np.ones((3, 1, 5), dtype)
    with pytest.raises(ValueError, match="PRelu"):
        run("PRelu", x, np.ones(shape, dtype))


def test_determinants_and_their_gradients():
    x = Tensor(data=real(2, 3, 3), requires_grad=True)
    net = sonnx.SONNXModel(one("Det", [to_numpy(x)]))
    autograd.training = True
    (y,) = net.forward(x)
    (g,) = autograd.gradients(autograd.sum(y), xs=[x])
    at = to_numpy(x)
    want = np.linalg.det(at)[:, None, None] * np.linalg.inv(at).swapaxes(1, 2)
    np.testing.assert_allclose(to_numpy(y), np.linalg.det(at), 1e-4)
    np.testing.assert_allclose(to_numpy(g), want, 1e-3, 1e-4)
    np.testing.assert_array_equal(run("Det", np.ones((3, 3), np.float32)), np.float32(0))


def test_a_model_replays():
    nodes = [
        helper.make_node("Elu", ["x"], ["a"], alpha=0.5),
        helper.make_node("Mod", ["a", "two"], ["m"], fmod=1),
        helper.make_node("ReduceL2", ["m", "axes"], ["r"]),
        helper.make_node("Hardmax", ["r"], ["h"], axis=0),
        helper.make_node("Cast", ["h"], ["y"], to=7),
    ]
    known = {"two": np.array(2, np.float32), "axes": np.array([1])}
    replays(model(nodes, {"x": X}, ["y", "m"], known, opset=18), X)


def test_random_numbers_are_drawn_anew_and_as_in_eager_execution():
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["n"], mean=2.0, scale=0.5),
        helper.make_node("RandomUniform", [], ["u"], shape=[4000], low=-1.0, high=1.0),
        helper.make_node("Bernoulli", ["p"], ["b"]),
        helper.make_node("Multinomial", ["logs"], ["m"], sample_size=4000),
    ]
    chances = np.array([[0.1, 0.6, 0.3]], np.float32)
    xs = {"x": real(50, 80), "p": np.full(4000, 0.25, np.float32), "logs": np.log(chances)}
    proto, given = model(nodes, xs, ["n", "u", "b", "m"]), [Tensor(data=x) for x in xs.values()]
    drawn = []
    for is_compiled in (False, True):
        net = sonnx.SONNXModel(proto)
        net.eval()
        if is_compiled:
            net.compile(given, is_train=False)
        device.get_default_device().set_seed(5)
        drawn.append([[to_numpy(y) for y in net.forward(*given)] for _ in range(4)])
    for eager, replayed in zip(*drawn, strict=True):
        for got, want in zip(replayed, eager, strict=True):
            np.testing.assert_array_equal(got, want)
    (n, u, b, m), later = drawn[0][0], drawn[0][1]
    assert not any(
        np.array_equal(one, other) for one, other in zip((n, u, b, m), later, strict=True)
    )
    np.testing.assert_allclose(
        [n.mean(), n.std(), u.mean(), b.mean()], [2, 0.5, 0, 0.25], atol=0.05
    )
    np.testing.assert_allclose(np.bincount(m.ravel()) / 4000, chances[0], atol=0.05)
    assert m.dtype == np.int32 and -1 <= u.min() < -0.9 < 0.9 < u.max() < 1


@pytest.mark.parametrize(
    ("op", "xs", "attributes", "want"),
    [
        ("BitShift", [BIG, BIG], {"direction": "UP"}, "BitShift: got direction 'UP', want 'LEFT'"),
        ("Gelu", [X], {"approximate": "erf"}, "Gelu: got approximate 'erf', want 'none'"),
        ("LpNormalization", [X], {"p": 3}, "LpNormalization: got p 3, want 1 or 2"),
        ("Det", [X], {}, r"Det: got shape \(3, 4, 5\), want square"),
        ("ReduceMax", [X, np.array([3])], {}, "ReduceMax: .*axes"),
        ("Softmax", [X], {"opset": 11, "axis": 3}, "Softmax: .*axes"),
        ("Div", [np.array([1]), np.array([0])], {}, "Div: .*divided by zero"),
    ],
)
def test_refusals_name_the_operator(op, xs, attributes, want):
    with pytest.raises(ValueError, match=want):
        run(op, *xs, **attributes)
