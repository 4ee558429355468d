"""A load or assignment of states that fails has written nothing."""

import warnings

import numpy as np
import pytest
from archives import ROW, Small, same, small, values
from singa_rs import CheckpointError, DTypeError, ShapeError, autograd, layer, opt, tensor
from singa_rs.layer import collect
from singa_rs.tensor import Tensor


def unchanged(net, call, errors):
    before = values(net)
    with pytest.raises(errors) as caught:
        call()
    same(values(net), before)
    return str(caught.value)


BAD = [
    np.array([1e300, 0]),
    Tensor(data=np.array([1e300, 0]), dtype=tensor.float64),
    np.array(["x", "y"]),
    np.array([1 + 2j, 3]),
    np.array([None, 1]),
    np.array(["2020-01-01", "NaT"], "datetime64[s]"),
    np.array([(1, 2), (3, 4)], "i4,i4"),
    np.zeros(3),
    np.zeros((2, 1)),
    [1.0, 2.0],
    None,
    1.0,
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: str(getattr(bad, "dtype", bad)))
@pytest.mark.parametrize("method", ["set_params", "set_states"])
def test_set_of_a_value_that_does_not_fit(bad, method):
    net = small()
    good = {name: one + 1 for name, one in values(net).items()}
    call = getattr(net, method)
    message = unchanged(net, lambda: call({**good, "last.b": bad}), (TypeError, ValueError))
    assert method in message and "last.b" in message
    unchanged(net.last, lambda: net.last.set_params({"W": good["last.W"], "b": bad}), Exception)


@pytest.mark.parametrize("wrong", [None, 3, "abc", [("a", 1)]])
def test_setting_anything_but_a_mapping(wrong):
    for call in (small().set_params, small().set_states, opt.SGD().set_states):
        with pytest.raises(TypeError, match=r"set_\w+: got .*, want a mapping"):
            call(wrong)


def test_integers_have_to_survive():
    net = small()
    net.count = Tensor(data=np.int32([1, 2]), requires_grad=False)
    good = {"first.b": np.full(3, 5.0)}
    for bad in (np.array([1.5, 2]), np.array([2**40, 0]), np.array([np.nan, 0])):
        for value in (bad, Tensor(data=bad, dtype=bad.dtype)):
            unchanged(net, lambda value=value: net.set_states({**good, "count": value}), DTypeError)
    net.set_states({**good, "count": np.array([7.0, 8.0])})
    assert net.count.tolist() == [7, 8] and net.first.b.tolist() == [5.0] * 3


def test_load_of_a_value_that_does_not_fit(tmp_path):
    source, net = small(), small()
    source.last.b.to_type("float64")
    source.last.b.set_value(1e300)
    source.save_states(tmp_path / "s")
    message = unchanged(net, lambda: net.load_states(tmp_path / "s"), CheckpointError)
    assert str(tmp_path / "s") in message and "last.b" in message


def test_a_warning_that_is_an_error_comes_before_the_first_write(tmp_path):
    source, net = small(), small()
    source.more = Tensor((1,))
    source.save_states(tmp_path / "s")
    with pytest.warns(UserWarning, match="more"):
        net.load_states(tmp_path / "s")
    net.first.W.set_value(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unchanged(net, lambda: net.load_states(tmp_path / "s"), UserWarning)


def test_two_names_of_one_tensor_are_refused():
    net = small()
    given = {"b": np.ones(2), "last.b": np.zeros(2)}
    unchanged(net, lambda: net.last.set_params(given), ValueError)


def test_tensors_of_the_model_may_be_exchanged():
    class Twins(Small):
        def __init__(self):
            super().__init__()
            self.first, self.last = layer.Linear(4), layer.Linear(4)

    net = Twins()
    net(ROW)
    for lend in (lambda t: t, lambda t: t.transpose().transpose(), np.from_dlpack):
        first, last = net.first.W.to_numpy(), net.last.W.to_numpy()
        net.set_params({"first.W": lend(net.last.W), "last.W": lend(net.first.W)})
        np.testing.assert_array_equal(net.first.W.to_numpy(), last)
        np.testing.assert_array_equal(net.last.W.to_numpy(), first)


def test_values_that_wait_and_do_not_fit_wait_on(tmp_path):
    """Each call raises until they are replaced; none of them starts from other values."""
    small().save_states(tmp_path / "wrong")

    class Wide(Small):
        def __init__(self):
            super().__init__()
            self.last = layer.Linear(5)

    net, right = Wide(), Wide()
    net.load_states(tmp_path / "wrong")
    for _ in range(3):
        with pytest.raises(CheckpointError, match=r"last\.\w"):
            net(ROW)
    assert not net.last._initialized
    right(ROW)
    right.save_states(tmp_path / "right")
    net.load_states(tmp_path / "right")
    np.testing.assert_array_equal(net(ROW).to_numpy(), right(ROW).to_numpy())
    same(values(net), values(right))


def test_values_that_wait_are_taken_whole_or_not_at_all():
    class Pair(layer.Layer):
        def initialize(self, x):
            self.a = Tensor((2,), stores_grad=True)
            self.b = Tensor((2,), dtype=tensor.int32, stores_grad=True)

        def forward(self, x):
            return x

    net = Pair()
    net._layer_node.pending = {"a": np.ones(2), "b": np.array([0.5, 1])}
    for _ in range(2):
        with pytest.raises(CheckpointError, match="'b'"):
            net(ROW)
        assert not hasattr(net, "a") and set(net._layer_node.pending) == {"a", "b"}
    net._layer_node.pending["b"] = np.array([4.0, 5.0])
    net(ROW)
    assert net.a.tolist() == [1, 1] and net.b.tolist() == [4, 5] and not net._layer_node.pending


# ---- optimizers ----------------------------------------------------------------------------------


class Broken(opt.DecayScheduler):
    def call(self, step):
        return step.as_type(tensor.float32) if step.item() < 5 else Tensor((2,))


def trained():
    param = Tensor(data=np.float32([1, 2]), stores_grad=True)
    optimizer = opt.Adam(0.1)
    optimizer.apply("p", param, Tensor(data=np.float32([1, 2])))
    optimizer.step()
    return optimizer, param


def state_of(optimizer):
    states = optimizer.get_states()
    return {
        kind: {name: t.tolist() for name, t in one.items()} if isinstance(one, dict) else one
        for kind, one in states.items()
    }


GOOD = np.float32([5, 6])


@pytest.mark.parametrize(
    "wrong",
    [
        {"v": {"p": np.zeros(3)}}, {"v": {"p": [1, 2]}}, {"v": {"p": np.array([1e300, 0])}},
        {"v": {"p": np.array([1j, 0])}}, {"v": {"p": None}}, {"v": 3}, {"v": None}, {"v": [GOOD]},
        {"v": {"new": "text"}}, {"v": {"new": np.array(["a"])}}, {"v": {3: GOOD}},
        {"step_counter": -1}, {"step_counter": "x"}, {"step_counter": None},
        {"step_counter": [1, 2]}, {"step_counter": 2**31}, {"step_counter": np.nan},
    ],
)  # fmt: skip
def test_optimizers_set_all_or_nothing(wrong):
    optimizer, _ = trained()
    before = state_of(optimizer)
    good = {"step_counter": 9, "m": {"p": GOOD, "later": GOOD}, "v": {"p": GOOD}}
    with pytest.raises((TypeError, ValueError), match=r"Adam\.set_states"):
        optimizer.set_states({**good, **wrong})
    assert state_of(optimizer) == before
    optimizer.set_states(good)
    assert state_of(optimizer)["m"] == {"p": [5, 6], "later": [5, 6]}


def test_a_schedule_that_fails_leaves_the_step():
    optimizer = opt.SGD(Broken(0.1))
    with pytest.raises(ShapeError, match="the schedule returned"):
        optimizer.set_states({"step_counter": 7})
    assert optimizer.get_states()["step_counter"] == 0 and optimizer.lr_value.tolist() == [0]


def test_moments_that_wait_and_do_not_fit_wait_on():
    optimizer, param = opt.SGD(0.1, momentum=0.9), Tensor((2,), stores_grad=True)
    optimizer.set_states({"moments": {"p": np.ones(3)}})
    for _ in range(2):
        with pytest.raises(ShapeError, match="'p'"):
            optimizer.apply("p", param, Tensor(data=GOOD))
    assert param.tolist() == [0, 0]
    optimizer.set_states({"moments": {"p": np.float32([1, 1])}})
    optimizer.apply("p", param, Tensor(data=GOOD))
    np.testing.assert_allclose(optimizer.moments["p"].tolist(), [5.9, 6.9], rtol=1e-6)


def test_moments_that_wait_are_among_the_states():
    first, second = opt.SGD(0.1, momentum=0.9), opt.SGD(0.1, momentum=0.9)
    first.set_states({"moments": {"p": GOOD}, "step_counter": 3})
    second.set_states(first.get_states())
    assert state_of(second) == {"step_counter": 3, "moments": {"p": [5, 6]}}


# ---- other writes of several parts ---------------------------------------------------------------


def test_embedding_takes_a_matrix_or_stays_without():
    one = layer.Embedding(2, 2)
    for wrong in (
        np.zeros((2, 3)),
        np.array([[1j, 0], [0, 0]]),
        np.full((2, 2), 1e300),
        None,
        [[1]],
    ):
        with pytest.raises((TypeError, ValueError), match="Embedding"):
            one.from_pretrained(wrong)
        assert not one._initialized and not hasattr(one, "W")
    one.from_pretrained(np.eye(2))
    assert one.W.tolist() == [[1, 0], [0, 1]] and not one.W.requires_grad


def test_casts_of_several_tensors():
    floats, whole = Tensor((2,), dtype=tensor.float64), Tensor((2,), dtype=tensor.int64)
    target = Tensor((2,), dtype=tensor.int32)
    with pytest.raises(DTypeError):
        layer.Linear(1).dtype_check(target, whole, floats)
    assert whole.dtype == tensor.int64 and floats.dtype == tensor.float64


@pytest.mark.parametrize("add", [tensor.add_column, tensor.add_row])
def test_sums_with_a_vector_that_does_not_fit(add):
    matrix = Tensor((2, 3)).set_value(4)
    for wrong in (Tensor((4,)), Tensor((6,))):
        with pytest.raises(ShapeError, match=add.__name__):
            add(1.0, wrong, 0.5, matrix)
        assert (matrix.to_numpy() == 4).all()
    counts = Tensor((2, 3), dtype=tensor.int32).set_value(4)
    fits = Tensor((2 if add is tensor.add_column else 3,)).set_value(1)
    with pytest.raises(DTypeError, match=add.__name__):
        add(1.0, fits, 2, counts)
    assert (counts.to_numpy() == 4).all()
    assert (add(2.0, fits, 0.5, matrix).to_numpy() == 4).all()


def test_a_tensor_that_cannot_be_written_stops_all():
    net = small()
    net.wide = Tensor((1,)).expand((3,))
    net.wide.requires_grad = False
    given = {name: one + 1 for name, one in values(net).items()}
    unchanged(net, lambda: net.set_states(given), ShapeError)


@pytest.mark.parametrize("is_scarce", [True, False])
def test_memory_is_there_before_the_first_write(tmp_path, is_scarce):
    """A model that was compiled but not called has parameters without memory. If it may be too
    little, it is allocated first; otherwise no initial value is drawn in vain."""
    source, net = small(), Small()
    source.save_states(tmp_path / "s")
    net.compile([Tensor(data=ROW)])
    waiting = [one for one in net.get_states().values() if not one.is_allocated]
    assert waiting and not collect._is_scarce(waiting)
    seen = []
    write = Tensor.copy_from

    def look(self, *args, **kwargs):
        seen.append(all(one.is_allocated for one in waiting))
        return write(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "copy_from", look)
        patch.setattr(collect, "_is_scarce", lambda targets: is_scarce)
        net.load_states(tmp_path / "s")
    assert seen and seen[0] == is_scarce and seen[-1] >= is_scarce
    same(values(net), values(source))
    with autograd.no_grad():
        np.testing.assert_array_equal(net(Tensor(data=ROW)).to_numpy(), source(ROW).to_numpy())


def test_memory_is_scarce_if_half_of_it_would_be_taken():
    class Like:
        is_allocated = False

        class device:
            available = staticmethod(lambda: 1000)

        def __init__(self, numel):
            self.nbytes = 4 * numel

    assert not collect._is_scarce([]) and not collect._is_scarce([Like(100), Like(25)])
    assert collect._is_scarce([Like(100), Like(26)])
