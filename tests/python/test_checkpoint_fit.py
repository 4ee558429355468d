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


class Averaged(Net):
    """Has averages, and an optimizer of a kind."""

    def __init__(self, classes, optimizer):
        super().__init__(classes=classes)
        self.optimizer, self.average = optimizer, opt.MovingAverage(0.5)

    def train_one_batch(self, x, y):
        loss = super().train_one_batch(x, y)
        self.average.update(self.get_params())
        return loss


OPTIMIZERS = {
    "adam": lambda: opt.Adam(0.05),
    "distributed": lambda: opt.DistOpt(opt.Adam(0.05)),
    "rounds": lambda: opt.LocalSGD(opt.SGD(0.1, momentum=0.9), 3, opt.SGD(0.7, momentum=0.9)),
}


@pytest.mark.parametrize("calls", [0, 1])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_another_head_has_moments_of_its_own(tmp_path, kind, calls):
    batch = ROWS[:8], np.arange(8, dtype=np.int32) % 3
    first, other = (Averaged(classes, OPTIMIZERS[kind]()) for classes in (3, 5))
    first(*batch)
    other.compile([from_numpy(ROWS[:8])])
    for _ in range(calls):
        other(*batch)
    states = [{"optimizer": one.optimizer, "average": one.average} for one in (first, other)]
    first.save(tmp_path / "net", states[0])
    with pytest.warns(UserWarning, match=r"and averages of head\.W, head\.b are left out, too$"):
        other.load(tmp_path / "net", state=states[1], skip_mismatched=True)
    start = other.head.W.to_numpy()
    kept = first.average.averages["first.W"].to_numpy()
    np.testing.assert_array_equal(other.average.averages["first.W"].to_numpy(), kept)
    other(*batch)
    want = (start + other.head.W.to_numpy()) / 2
    np.testing.assert_allclose(other.average.averages["head.W"].to_numpy(), want, rtol=1e-6)


def test_another_head_of_layers_without_parameters_has_moments_of_its_own(tmp_path):
    batch = ROWS[:8], np.arange(8, dtype=np.int32) % 3
    first, other = (Averaged(classes, opt.Adam(0.05)) for classes in (3, 5))
    first(*batch)
    first.save(tmp_path / "net", {"optimizer": first.optimizer, "average": first.average})
    state = {"optimizer": other.optimizer, "average": other.average}
    other.load(tmp_path / "net", state=state, skip_mismatched=True)
    with pytest.warns(UserWarning, match=r"skipped 'head\.[Wb]'"):
        other(*batch)
    assert other.optimizer.m["head.W"].shape == (8, 5)
    average = other.average.averages["head.W"].to_numpy()
    np.testing.assert_allclose(average, other.head.W.to_numpy(), rtol=1e-6)


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
