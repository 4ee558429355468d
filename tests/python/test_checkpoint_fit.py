"""Checkpoints of models that are not quite the same."""

import numpy as np
import pytest
from checkpoint_nets import ROWS, Net, same, values
from singa_rs import CheckpointError, ShapeError, layer, opt
from singa_rs.tensor import from_numpy


@pytest.fixture
def net():
    made = Net()
    made(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    return made


def test_another_head(tmp_path, net):
    net.save(tmp_path / "net")
    other = Net(classes=5)
    other(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    before = values(other)
    with pytest.raises(
        CheckpointError, match=r"'head\.W' has shape \(8, 3\), the model's \(8, 5\)"
    ):
        other.load(tmp_path / "net")
    with pytest.raises(CheckpointError, match=r"head\.W.*head\.b"):
        other.load(tmp_path / "net", strict=True)
    with pytest.raises(ValueError, match="load: got strict and skip_mismatched"):
        other.load(tmp_path / "net", strict=True, skip_mismatched=True)
    same(values(other), before)
    with pytest.warns(UserWarning, match=r"load: .*head\.W.*head\.b") as caught:
        other.load(tmp_path / "net", skip_mismatched=True)
    assert len(caught) == 1 and caught[0].filename == __file__
    found = values(other)
    same(
        {**found, "head.W": 0 * found["head.W"][:, :3], "head.b": found["head.b"][:3] * 0},
        {**values(net), "head.W": 0 * found["head.W"][:, :3], "head.b": found["head.b"][:3] * 0},
    )
    np.testing.assert_array_equal(found["head.W"], before["head.W"])


def test_another_head_of_layers_without_parameters(tmp_path, net):
    net.save(tmp_path / "net")
    other = Net(classes=5)
    other.load(tmp_path / "net", skip_mismatched=True)
    with pytest.warns(UserWarning, match=r"skipped 'head\.[Wb]'") as caught:
        other(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    assert len(caught) == 2 and other.head.W.shape == (8, 5)
    refusing = Net(classes=5)
    refusing.load(tmp_path / "net")
    with pytest.raises(CheckpointError, match=r"head\.\w"):
        refusing(ROWS[:8], np.arange(8, dtype=np.int32) % 3)


def test_names_that_differ(tmp_path, net):
    net.save(tmp_path / "net")

    class More(Net):
        def __init__(self):
            super().__init__()
            self.more = layer.Linear(3)
            del self.norm

        def forward(self, x):
            return self.more(self.head(self.drop(self.first(x))))

    other = More()
    with pytest.raises(CheckpointError, match="load: .*strict: Linear: .*call the model"):
        other.load(tmp_path / "net", strict=True)
    other(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    before = values(other)
    with pytest.raises(
        CheckpointError, match=r"file: norm\..*; only in the model: more\.W, more\.b"
    ):
        other.load(tmp_path / "net", strict=True)
    same(values(other), before)
    with pytest.warns(UserWarning, match=r"only in the model: more\.W, more\.b") as caught:
        other.load(tmp_path / "net")
    assert len(caught) == 1
    np.testing.assert_array_equal(values(other)["head.W"], values(net)["head.W"])


def test_layers_without_parameters_take_theirs(tmp_path, net):
    net.eval()
    net.save(tmp_path / "net")
    fresh = Net()
    fresh.load(tmp_path / "net")
    net.save(tmp_path / "net")  # what waits does not depend on the file
    fresh.eval()
    x = from_numpy(ROWS)
    np.testing.assert_array_equal(fresh(x).to_numpy(), net(x).to_numpy())
    net.train()


def test_objects_of_another_kind(tmp_path, net):
    net.save(tmp_path / "net", {"a": net.optimizer, "b": [1]})
    before = values(net)
    for state, text in [
        ({"a": opt.SGD(0.1)}, "a: it has the states of Adam, want SGD's"),
        ({"c": net.optimizer}, "c: it has no states of an object there, want those of Adam"),
        ({"b": [net.optimizer]}, r"b\.0: it has no states of an object there"),
        ({"b": [3, net.optimizer]}, r"b\.1: it has no states of an object there"),
    ]:
        with pytest.raises(CheckpointError, match=text):
            net.load(tmp_path / "net", state=state)
    other = Net(width=3)
    other(ROWS[:8], np.arange(8, dtype=np.int32) % 3)
    with pytest.raises((CheckpointError, ShapeError), match=r"'first\.W'"):
        other.load(tmp_path / "net", state={"a": other.optimizer})
    same(values(net), before)
