"""Imported models that run repeatedly: replayed as a whole, with the weights as they are."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import model, real, there
from singa_rs import sonnx
from singa_rs.sonnx import running
from singa_rs.sonnx.stretches import Stretches
from singa_rs.tensor import Tensor


def test_a_whole_graph_is_replayed_without_looking_at_its_nodes(monkeypatch):
    """Also for inputs that no node takes and outputs that are in another order."""
    nodes = [
        helper.make_node("Sub", ["b", "a"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    given = {"a": real(2, 3), "left": real(4), "b": real(2, 3, seed=1)}
    proto = model(nodes, given, ["z", "d"], {"w": real(3, 3)})
    rep = sonnx.prepare(proto)
    xs = list(given.values())
    want = there(proto, xs)
    for _ in range(5):
        found = rep.run(xs)
        for got, one in zip(found, want, strict=True):
            np.testing.assert_allclose(got, one, 1e-5, 1e-6)
    monkeypatch.setattr(running.Frame, "run", None)  # what is replayed needs no frame
    other = [x * 2 for x in xs]
    for got, one in zip(rep.run(other), there(proto, other), strict=True):
        np.testing.assert_allclose(got, one, 1e-5, 1e-6)
    monkeypatch.undo()
    wide = [np.concatenate([x, x]) for x in xs]
    loose = model(
        nodes, {k: x for k, x in zip(given, wide, strict=True)}, ["z", "d"], {"w": real(3, 3)}
    )
    for got, one in zip(rep.run(wide), there(loose, wide), strict=True):
        np.testing.assert_allclose(got, one, 1e-5, 1e-6)


def test_a_replayed_graph_sees_other_weights():
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    x = real(3)
    rep = sonnx.prepare(model(nodes, {"x": x}, ["y"], {"w": real(3)}))
    for _ in range(5):
        rep.run([x])
    rep.model.weights["w"].copy_from_numpy(np.float32([1, 2, 3]))
    np.testing.assert_allclose(rep.run([x])[0], x * [1, 2, 3], 1e-6)
    rep.model.weights.w = Tensor(data=np.float32([4, 5, 6]))
    np.testing.assert_allclose(rep.run([x])[0], x * [4, 5, 6], 1e-6)


def test_a_part_looks_at_its_own_weights_alone():
    """Others may be replaced without a look at it; one of its own may not."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["y"]),
        helper.make_node("NonZero", ["y"], ["n"]),  # reads values
        helper.make_node("Mul", ["y", "v"], ["z"]),
    ]
    x = real(3)
    rep = sonnx.prepare(model(nodes, {"x": x}, ["z", "n"], {"w": real(3), "v": real(3)}))
    for _ in range(5):
        rep.run([x])
    parts = [one for one in rep.model._stretches._known.values() if one is not None]
    assert sorted(list(one.weights._names) for one in parts) == [["v"], ["w"]]
    rep.model.weights.v = Tensor(data=np.float32([1, 2, 3]))
    w = rep.model.weights["w"].to_numpy()
    np.testing.assert_allclose(rep.run([x])[0], x * w * [1, 2, 3], 1e-6)
    rep.model.weights.w = Tensor(data=np.float32([4, 5, 6]))
    np.testing.assert_allclose(rep.run([x])[0], x * [4, 10, 18], 1e-6)


def test_outputs_that_are_inputs_or_constants():
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    x, w = real(3), real(2)
    rep = sonnx.prepare(model(nodes, {"x": x}, ["y", "x", "w"], {"w": w}))
    for _ in range(5):
        for got, want in zip(rep.run([x]), (np.maximum(x, 0), x, w), strict=True):
            np.testing.assert_array_equal(got, want)


def test_nodes_are_not_run_one_by_one(monkeypatch):
    """Which would take the memory of all of them, more than that of a graph."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    rep = sonnx.prepare(model(nodes, {"x": real(3)}, ["y"]))
    monkeypatch.setattr(Stretches, "_learn", None)
    for seed in range(4):
        x = real(3, seed=seed)
        np.testing.assert_allclose(rep.run([x])[0], np.exp(np.maximum(x, 0)), 1e-6)


def test_reads_are_found_one_after_another():
    """Each is a cut, and what is between them is recorded; also where a function reads."""
    body = helper.make_function(
        "own", "F", ["a"], ["b"], [helper.make_node("NonZero", ["a"], ["b"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["n"]),
        helper.make_node("Cast", ["n"], ["f"], to=1),
        helper.make_node("F", ["f"], ["m"], domain="own"),
        helper.make_node("Neg", ["m"], ["y"]),
    ]
    proto = model(nodes, {"x": real(5)}, ["y"])
    proto.functions.append(body)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    rep = sonnx.prepare(proto)
    for seed in range(6):
        x = real(5, seed=seed)
        want = -np.stack(np.nonzero(np.stack(np.nonzero(np.maximum(x, 0))).astype(np.float32)))
        np.testing.assert_array_equal(rep.run([x])[0], want)
    assert rep.model._stretches._cuts[id(rep.model._body)].all == {1, 3}


def test_errors_of_replays_name_the_node():
    nodes = [helper.make_node("Gather", ["x", "i"], ["y"], "picked")]
    x, fits = real(3), np.array([1])
    rep = sonnx.prepare(model(nodes, {"x": x, "i": fits}, ["y"]))
    for i in (5, 1, 5, 1, 1, 1, 5):
        if i == 1:
            np.testing.assert_array_equal(rep.run([x, fits])[0], x[fits])
            continue
        with pytest.raises((IndexError, ValueError), match=r"^Gather \(picked\): .*5"):
            rep.run([x, np.array([i])])


def test_a_shape_that_is_replayed_stays_when_others_are_let_go_of(monkeypatch):
    monkeypatch.setattr("singa_rs.sonnx.stretches._MOST", 2)
    rep = sonnx.prepare(model([helper.make_node("Neg", ["x"], ["y"])], {"x": real(3)}, ["y"]))

    def run(n):
        for _ in range(4):
            np.testing.assert_array_equal(rep.run([real(n)])[0], -real(n))

    run(3)
    (first,) = rep.model._stretches._known.values()
    for n in (4, 3, 5):
        run(n)
    assert first in rep.model._stretches._known.values()


def test_results_of_many_shapes_are_let_go_of(monkeypatch):
    monkeypatch.setattr("singa_rs.sonnx.stretches._MOST_BYTES", 4000)
    rep = sonnx.prepare(model([helper.make_node("Neg", ["x"], ["y"])], {"x": real(3)}, ["y"]))
    for n in range(100, 130):
        for _ in range(4):
            np.testing.assert_array_equal(rep.run([real(n)])[0], -real(n))
    assert len(rep.model._stretches._known) <= 12
