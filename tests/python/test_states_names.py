"""What is saved alongside a model is restored unchanged, or refused before anything is written."""

import os

import numpy as np
import pytest
from archives import same, small, values
from singa_rs import CheckpointError, GraphError, layer, module, tensor
from singa_rs.tensor import Placeholder, Tensor

DTYPES = [tensor.float32, tensor.float64, tensor.float16, tensor.bfloat16, tensor.int32]
DTYPES += [tensor.int64, tensor.int8, tensor.uint8, tensor.bool_]


def to_the_bit(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert a.to_numpy().tobytes() == b.to_numpy().tobytes()


def round_trip(tmp_path, auxiliary):
    net = small()
    net.save_states(tmp_path / "s", auxiliary)
    again = net.load_states(tmp_path / "s")
    assert list(again) == list(auxiliary)
    for name, one in auxiliary.items():
        to_the_bit(again[name], one)
        assert not again[name].requires_grad


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype(tmp_path, dtype):
    edges = [0, 1, 1, 0]
    if dtype.is_float:
        edges = [-0.0, 1.0, np.inf, -np.inf, np.nan, 0.1, 6e-8, 3e4]
    elif dtype.is_int:
        info = np.iinfo(dtype.name)
        edges = [info.min, info.max, 0, 1]
    array = np.array(edges, "float64" if dtype.is_float else "int64")
    one = Tensor(data=array, dtype=tensor.float64 if dtype.is_float else tensor.int64)
    round_trip(tmp_path, {"edges": one.as_type(dtype)})


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1, 1), (2, 3, 4)])
def test_every_shape(tmp_path, shape):
    for dtype in DTYPES:
        round_trip(tmp_path, {"a": Tensor(shape, dtype=dtype)})


def test_views(tmp_path):
    base = Tensor(data=np.arange(24.0).reshape(2, 3, 4))
    views = {"turned": base.transpose((2, 0, 1)), "part": base[:, ::-1, 1:3], "row": base[0, 1]}
    round_trip(tmp_path, {**views, "wide": Tensor((1,)).set_value(2).expand((3, 4))})


NAMES = ["", " ", ".", "..", "../up", "/root", "a/b", "a//b", "dir/", "C:\\x", "x.npy", "file"]
NAMES += ["é", "é", "\U0001f600", "\u200b", "a\nb", "a'b\"c", "states_attr.json", "*?", "W" * 5000]
NAMES += ["Name", "name", "NAME", "x.npy.npz", "x.NPY", ".npy"]


def test_names_of_all_kinds(tmp_path):
    round_trip(tmp_path, {name: Tensor((1,)).set_value(i) for i, name in enumerate(NAMES[1:])})
    for name in NAMES:
        round_trip(tmp_path, {name: Tensor((2,)).set_value(3)})
    assert os.listdir(tmp_path) == ["s"]


@pytest.mark.parametrize(
    "names",
    [
        ["a\0b"],
        ["\0"],
        ["x", "x.npy"],
        ["x.npy", "x.npy.npy"],
        ["", ".npy"],
        ["\ud800"],
        ["n" * 65532],
    ],
    ids=ascii,
)
def test_names_that_a_file_cannot_hold(tmp_path, names):
    with pytest.raises(CheckpointError, match="save_states.*got "):
        small().save_states(tmp_path / "s", {name: Tensor((1,)) for name in names})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("wrong", [{1: Tensor((1,))}, {None: Tensor((1,))}, {b"a": Tensor((1,))}])
def test_names_other_than_text(tmp_path, wrong):
    with pytest.raises(TypeError, match="save_states: got the name"):
        small().save_states(tmp_path / "s", wrong)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("wrong", [3, "abc", [Tensor((1,))], Tensor((1,)), {"a"}])
def test_auxiliary_states_other_than_a_mapping(tmp_path, wrong):
    with pytest.raises(TypeError, match="save_states: aux_states: got"):
        small().save_states(tmp_path / "s", wrong)
    assert os.listdir(tmp_path) == []


def test_a_state_without_a_value(tmp_path):
    with pytest.raises(GraphError, match="save_states: 'late'"):
        small().save_states(tmp_path / "s", {"late": Placeholder((2,))})
    assert os.listdir(tmp_path) == []


def test_names_of_the_model_are_held_to_the_same(tmp_path):
    class Holder(module.Module):
        def __init__(self, *names):
            super().__init__()
            self.held = {name: Tensor((1,), stores_grad=True) for name in names}

    with pytest.raises(CheckpointError, match="have the same name in the file"):
        Holder("x", "x.npy").save_states(tmp_path / "s")
    with pytest.raises(CheckpointError, match="zip file cannot store"):
        Holder("a\0b").save_states(tmp_path / "s")
    assert os.listdir(tmp_path) == []
    first, second = Holder("a/b", "é", ".."), Holder("a/b", "é", "..")
    for one in second.get_states().values():
        one.set_value(9)
    first.save_states(tmp_path / "s")
    second.load_states(tmp_path / "s")
    same(values(first), values(second))


def test_bool_states_of_a_layer(tmp_path):
    class Masked(layer.Layer):
        def initialize(self, x):
            self.mask = Tensor(data=np.array([True, False, True]), requires_grad=False)

        def forward(self, x):
            return x * self.mask

    class Net(module.Module):
        def __init__(self):
            super().__init__()
            self.masked = Masked()

        def forward(self, x):
            return self.masked(x)

    first, second = Net(), Net()
    first(np.ones((1, 3), np.float32))
    first.save_states(tmp_path / "s")
    second.load_states(tmp_path / "s")
    second(np.ones((1, 3), np.float32))
    to_the_bit(second.masked.mask, first.masked.mask)


class Parts(module.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = layer.Linear(2), layer.Sequential(layer.Linear(2), layer.ReLU())

    def forward(self, x):
        return self.head(self.body(x))


@pytest.mark.parametrize("method", ["set_params", "set_states"])
def test_values_for_a_part_that_was_not_called_are_kept(method):
    x, head = Tensor((1, 3)), np.ones((2, 2))
    net = Parts()
    net.body(x)
    net.body.set_params({"b": np.zeros(2)})
    given = {"body.b": np.ones(2), "head.0.W": Tensor(data=head), "other": None}
    getattr(net, method)(given)
    getattr(net, method)({"body.b": np.ones(2), "head.0.b": head[0]})
    given["head.0.W"].set_value(7)
    net.compile([x], is_train=False)
    assert net.body.b.tolist() == [1, 1]
    assert net.head[0].W.tolist() == head.tolist() and net.head[0].b.tolist() == [1, 1]
    assert not net._layer_node.pending


@pytest.mark.parametrize("method", ["set_params", "set_states"])
def test_values_for_a_part_that_was_not_called_are_arrays_that_fit(method):
    net = Parts()
    net.body(Tensor((1, 3)))
    with pytest.raises(TypeError, match=f"{method}: got list for 'head.0.b', want an array"):
        getattr(net, method)({"body.b": np.ones(2), "head.0.b": [1.0, 2.0]})
    assert net.body.b.tolist() == [0, 0]
    getattr(net, method)({"body.b": np.ones(2), "head.0.b": np.ones(3)})
    with pytest.raises(CheckpointError, match=r"\(3,\) for 'head.0.b', want \(2,\)"):
        net(Tensor((1, 3)))


@pytest.mark.parametrize("method", ["set_params", "set_states"])
def test_names_that_a_model_lacks_are_told(method, monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    net = small()
    before, ones = values(net), np.ones(2, np.float32)
    with pytest.raises(ValueError, match=rf"{method}: got x\.weight, 3, want names as .*rename="):
        getattr(net, method)({"x.weight": ones, 3: ones})
    same(values(net), before)
    with pytest.warns(UserWarning, match=rf"{method}: leaves out x\.weight, which") as caught:
        for _ in "ab":
            getattr(net, method)({**before, "x.weight": ones})
    assert len(caught) == 1
    getattr(net, method)({})


def test_states_are_no_unknown_names_of_parameters(recwarn):
    net = module.Module()
    net.norm = layer.BatchNorm1d(2)
    net.set_params(net.get_states())
    assert not recwarn.list
