"""Imported models whose nodes read values that are nearly always the same: recorded as a whole for
these values, and right also where they are not."""

import copy
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_models import graph, model, real, there
from singa_rs import device, sonnx
from singa_rs.sonnx import running

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def check(proto, runs, rtol=1e-5):
    """Results are those of onnxruntime, run by run; returns what ran them."""
    rep = sonnx.prepare(proto)
    for xs in runs:
        for got, want in zip(rep.run(list(xs)), there(proto, list(xs)), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol, 1e-6)
    return rep


def cuts(rep, body=None):
    """Where a body of a model is cut: all nodes that read, and those that are not guessed."""
    found = rep.model._stretches._cuts[id(rep.model._body if body is None else body)]
    return found.all, found.fixed


def chooses(then=(), otherwise=()):
    """x - 1 where its sum is above 0, and else x * 2, and nodes around."""
    then = [*then, node("Sub", ["x", "one"], ["a"])]
    otherwise = [*otherwise, node("Add", ["x", "x"], ["b"])]
    bodies = {
        "then_branch": graph(then, [], [("a", FLOAT, None)]),
        "else_branch": graph(otherwise, [], [("b", FLOAT, None)]),
    }
    return [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["positive"]),
        node("If", ["positive"], ["chosen"], **bodies),
        node("Relu", ["chosen"], ["y"]),
    ]


CONSTANTS = {"zero": np.float32(0), "one": np.float32(1)}
UP, DOWN = np.abs(real(3, 4)), -np.abs(real(3, 4, seed=1))


def choosing(**bodies):
    return model(chooses(**bodies), {"x": UP}, ["y", "positive"], CONSTANTS)


def test_a_condition_that_stays_is_no_cut(monkeypatch):
    rep = check(choosing(), [[k * UP] for k in range(1, 8)])
    assert cuts(rep) == ({2}, set())
    want = there(choosing(), [UP])
    monkeypatch.setattr(running.Frame, "run", None)  # all is one graph, which needs no frame
    for got, one in zip(rep.run([UP]), want, strict=True):
        np.testing.assert_allclose(got, one, 1e-5)


@pytest.mark.parametrize("times", [1, 2, 3, 7])
def test_a_condition_that_changes(times):
    check(choosing(), [*[[UP]] * 6, *[[DOWN]] * times, *[[UP]] * 3, *[[DOWN]] * times, [UP]])


def test_a_condition_that_keeps_changing_is_read():
    rep = check(choosing(), [[x] for _ in range(3) for x in (*[UP] * 4, *[DOWN] * 4)])
    assert cuts(rep) == ({2}, {2})
    check(choosing(), [[x] for _ in range(12) for x in (UP, DOWN)])


def test_branches_that_read_what_cannot_be_guessed():
    counts = [node("NonZero", ["x"], ["places"]), node("Shape", ["places"], ["unused"])]
    rep = check(choosing(then=counts), [[UP]] * 6 + [[DOWN]] * 4 + [[UP]] * 2)
    assert cuts(rep)[1] == {2}


def test_branches_with_branches():
    inner = node(
        "If", ["deep"], ["unused"],
        then_branch=graph([node("Neg", ["x"], ["n"])], [], [("n", FLOAT, None)]),
        else_branch=graph([node("Abs", ["x"], ["m"])], [], [("m", FLOAT, None)]),
    )  # fmt: skip
    deep = [
        node("ReduceMax", ["x"], ["most"], keepdims=0), node("Greater", ["most", "one"], ["deep"]),
        inner,
    ]  # fmt: skip
    runs = [[k * x] for x in (UP, DOWN) for k in (5, 5, 5, 5, 5, 0.1, 5, 0.1, 0.1, 0.1)]
    rep = check(choosing(then=deep, otherwise=deep[:2]), runs)
    assert cuts(rep)[0] == {2}


def test_random_numbers_are_drawn_once():
    """A run whose results are not used would draw, too."""
    draws = [node("RandomUniformLike", ["x"], ["r"]), node("Add", ["r", "x"], ["noisy"])]
    proto = model([*draws, *chooses()], {"x": UP}, ["y", "noisy"], CONSTANTS)
    rep, dev = sonnx.prepare(proto), device.get_default_device()
    dev.SetRandSeed(3)
    found = [rep.run([x])[1] - x for x in (*[UP] * 6, DOWN, UP, UP)]
    net = sonnx.SONNXModel(proto)
    net.eval()
    dev.SetRandSeed(3)
    for x, got in zip((*[UP] * 6, DOWN, UP, UP), found, strict=True):
        np.testing.assert_array_equal(np.asarray(net.forward(rep._input(x))[1]) - x, got)


# ---- slices and ranges ---------------------------------------------------------------------------


def slicing(axes=(1,), x=None):
    """x from places to places along axes, and the numbers from the first of them to the last."""
    given = {"x": real(5, 9) if x is None else x, "starts": np.zeros(len(axes), np.int64)}
    given["ends"] = given["starts"]
    nodes = [
        node("Slice", ["x", "starts", "ends", "axes"], ["s"]),
        node("ReduceMin", ["starts"], ["from"], keepdims=0),
        node("ReduceMax", ["ends"], ["most"], keepdims=0),
        node("Min", ["most", "limit"], ["to"]),
        node("Range", ["from", "to", "delta"], ["r"]),
        node("Neg", ["s"], ["y"]),
    ]
    constants = {"axes": np.array(axes), "delta": np.array(1), "limit": np.array(99)}
    return model(nodes, given, ["y", "r"], constants)


def pairs(*places):
    return [[real(5, 9, seed=i), *np.atleast_1d(*np.int64(one))] for i, one in enumerate(places)]


def test_slices_that_move(monkeypatch):
    rep = check(slicing(), pairs((0, 3), (0, 3), (0, 3), (0, 3), (1, 4), (6, 9), (5, 8), (2, 5)))
    assert cuts(rep) == ({0, 4}, set())
    (moved,) = pairs((4, 7))
    want = there(slicing(), moved)
    monkeypatch.setattr(running.Frame, "run", None)
    for got, one in zip(rep.run(moved), want, strict=True):
        np.testing.assert_array_equal(got, one)


END = 2**63 - 1
FORMS = [
    [(-3, -1)] * 4 + [(-4, -2), (2, 4), (-2, END), (0, 2)],
    [(3, 3)] * 4 + [(9, 9), (9, 12), (2, 5)],
    [(5, 2)] * 4 + [(6, 3), (0, 9)],
    [(0, 9)] * 4 + [(-20, 20), (1, 10), (0, 9)],
    [(0, 4), (0, 5)] * 6,
    [(0, 4)] * 5 + [(0, 5)] * 5 + [(0, 4)] * 2,
]


@pytest.mark.parametrize("places", FORMS, ids=str)
def test_slices_of_all_forms(places):
    check(slicing(), pairs(*places))


def test_slices_along_two_axes():
    places = [([0, 2], [3, 4])] * 5 + [([1, 3], [4, 5]), ([-5, 0], [END, END])]
    runs = [[real(5, 9, seed=i), *np.int64(one)] for i, one in enumerate(places)]
    check(slicing((0, 1)), runs)
    check(slicing((-1, -2)), runs)


def test_slices_of_whole_numbers_and_of_nothing():
    for x in (np.arange(45).reshape(5, 9), np.zeros((5, 0), np.float32), real(5, 9) > 0):
        proto = slicing(x=x if x.dtype != bool else x.astype(np.int32))
        x = x if x.dtype != bool else x.astype(np.int32)
        check(proto, [[x, *np.int64([[k], [k + 2]])] for k in (0, 0, 0, 0, 1, 2, 7)])


# ---- loops ---------------------------------------------------------------------------------------


def counting(most):
    """A loop that writes into a row at a counter, as decoders do, until a sum is too large; with
    the last values of what it carries."""
    inputs = [("i", INT64, []), ("go", BOOL, []), ("at", INT64, []), ("rows", FLOAT, None)]
    inputs += [("state", FLOAT, None), ("weight", FLOAT, None)]
    outputs = [("more", BOOL, []), ("next", INT64, []), ("written", FLOAT, None)]
    outputs += [("new", FLOAT, None), ("weight", FLOAT, None)]
    nodes = [
        node("MatMul", ["state", "weight"], ["h"]), node("Tanh", ["h"], ["new"]),
        node("Cast", ["at"], ["float"], to=FLOAT), node("Add", ["float", "one"], ["up"]),
        node("Cast", ["up"], ["next"], to=INT64), node("Reshape", ["at", "single"], ["begin"]),
        node("Reshape", ["next", "single"], ["end"]),
        node("Slice", ["rows", "begin", "end", "first"], ["row"]),
        node("Shape", ["row"], ["extents"]), node("Expand", ["new", "extents"], ["wide"]),
        node("Range", ["at", "next", "by"], ["places"]),
        node("Unsqueeze", ["places", "single"], ["column"]),
        node("Tile", ["column", "extents"], ["tiled"]),
        node("ScatterElements", ["rows", "tiled", "wide"], ["written"], axis=0),
        node("ReduceSum", ["written"], ["sum"], keepdims=0),
        node("Less", ["sum", "most"], ["more"]),
    ]  # fmt: skip
    loop = node(
        "Loop", ["trips", "", "start", "rows_", "state_", "w"], ["n", "y", "z", "w_"],
        body=graph(nodes, inputs, outputs),
    )  # fmt: skip
    given = {"rows_": np.zeros((9, 4), np.float32), "state_": np.abs(real(1, 4))}
    constants = {
        "w": np.abs(real(4, 4)), "trips": np.array(8), "start": np.array(0), "by": np.array(1),
        "single": np.array([1]), "first": np.array([0]), "one": np.float32(1),
        "most": np.float32(most),
    }  # fmt: skip
    return model([loop], given, ["n", "y", "z"], constants), given


@pytest.mark.parametrize("most", [1e9, 9.0, 0.0])
def test_rounds_with_a_counter(most):
    proto, given = counting(most)
    runs = [[x * k for x in given.values()] for k in (1, 1, 1, 1, 0.5, 1)]
    rep = check(proto, runs, 1e-4)
    if most > 1e3:
        (loop,) = (one for one in rep.model._body.nodes if one.row.name == "Loop")
        every, fixed = cuts(rep, loop.attrs["body"])
        assert len(every) == 2 and not fixed


def test_a_round_is_one_graph(monkeypatch):
    proto, given = counting(1e9)
    rep = sonnx.prepare(proto)
    for _ in range(8):
        want = rep.run(list(given.values()))
    calls, run = [], running.Frame.advance
    monkeypatch.setattr(
        running.Frame, "advance", lambda frame, at: calls.append(at) or run(frame, at)
    )
    for got, one in zip(rep.run(list(given.values())), want, strict=True):
        np.testing.assert_array_equal(got, one)
    assert calls == [0]  # the loop itself


# ---- whatever the values -------------------------------------------------------------------------

TWICE = [node("Concat", ["s", "s"], ["m"], axis=0)]
PROTO = model(
    [
        *chooses(),
        node("Slice", ["y", "start", "end", "first"], ["s"]),
        node("Squeeze", ["start"], ["from"]), node("Squeeze", ["end"], ["to"]),
        node("Range", ["from", "to", "by"], ["r"]),
        node("ReduceSum", ["s"], ["t"], keepdims=0), node("Greater", ["t", "one"], ["more"]),
        node(
            "If", ["more"], ["z"],
            then_branch=graph([node("Neg", ["s"], ["n"])], [], [("n", FLOAT, None)]),
            else_branch=graph(TWICE, [], [("m", FLOAT, None)]),
        ),
    ],
    {"x": UP, "start": np.array([0]), "end": np.array([0])}, ["z", "r", "s"],
    {**CONSTANTS, "first": np.array([0]), "by": np.array(1)},
)  # fmt: skip
EAGER = sonnx.SONNXModel(PROTO)
EAGER.eval()
RUN = st.tuples(st.sampled_from([UP, DOWN, 0.01 * UP]), st.integers(-4, 4), st.integers(-4, 5))


@given(st.lists(st.tuples(RUN, st.integers(1, 5)), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_runs_equal_those_node_by_node(runs):
    rep = sonnx.prepare(PROTO, exact=True)
    for (x, start, end), times in runs:
        arrays = [x, np.array([start]), np.array([end])]
        want = [np.asarray(y) for y in EAGER.forward(*map(rep._input, arrays))]
        for _ in range(times):
            for got, one in zip(rep.run(arrays), want, strict=True):
                np.testing.assert_array_equal(got, one)


# ---- threads and copies --------------------------------------------------------------------------


@pytest.fixture
def hurried():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", ["choosing", "counting"])
def test_threads_that_run_one_model(kind, hurried):
    """Each would find what is known of earlier runs while another one changes it."""
    proto, given = (choosing(), {"x": UP}) if kind == "choosing" else counting(9.0)
    runs = [[k * x for x in given.values()] for k in (1, -1, 1, 1, 0.5, -1)]
    runs = [[x.astype(np.float32) for x in xs] for xs in runs]
    rep, wrong = sonnx.prepare(proto), []
    wanted = [there(proto, xs) for xs in runs]

    def work(first):
        try:
            for i in range(first, first + 80):
                got, want = rep.run(runs[i % 6]), wanted[i % 6]
                if not all(np.allclose(a, b, 1e-4) for a, b in zip(got, want, strict=True)):
                    wrong.append(i)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_copy_is_run_by_itself():
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["y"])]
    rep = sonnx.prepare(model(nodes, {"x": UP}, ["y"], {"w": np.eye(4, dtype=np.float32)}))
    for _ in range(4):
        rep.run([UP])
    other = copy.deepcopy(rep)
    (weight,) = other.model.get_params().values()
    weight *= 3
    for _ in range(4):
        np.testing.assert_allclose(other.run([UP])[0], 3 * UP, 1e-5)
        np.testing.assert_allclose(rep.run([UP])[0], UP, 1e-5)
