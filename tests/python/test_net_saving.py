"""FeedForwardNet: snapshots, pickles and archives."""

import os
import pickle
import warnings

import numpy as np
import pytest
from nets import branched, filled, values
from singa_rs import tensor
from singa_rs.compat import layer
from singa_rs.compat.net import FeedForwardNet
from singa_rs.compat.snapshot import Snapshot
from singa_rs.errors import CheckpointError, ShapeError

FORMATS = {"snapshot": ("net", False), "pickle": ("net", True), "archive": ("net.npz", False)}


def other() -> FeedForwardNet:
    return filled(branched(), seed=7)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_saved_comes_back(kind, tmp_path):
    name, use_pickle = FORMATS[kind]
    net, again = branched(), other()
    net.param_values()[4].set_value(3)  # an average
    net.save(tmp_path / name, use_pickle=use_pickle)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.load(tmp_path / name, use_pickle=use_pickle)
    assert values(again) == values(net)


def test_files_have_singas_names(tmp_path):
    net = branched()
    net.save(str(tmp_path / "a.bin"))
    net.save(str(tmp_path / "b"), 20, True)
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "a.desc", "b.pickle"]
    assert list(Snapshot(str(tmp_path / "a"), False).read()) == net.param_names()
    with open(tmp_path / "b.pickle", "rb") as file:
        found = pickle.load(file)
    assert found.pop("SINGA_VERSION") >= 1101
    assert list(found) == net.param_names()
    for path in ("a", "a.bin"):
        other().load(str(tmp_path / path))
    for path in ("b", "b.pickle"):
        other().load(str(tmp_path / path), use_pickle=True)


def test_a_pickle_may_lack_its_ending(tmp_path):
    net, again = branched(), other()
    net.save(tmp_path / "a", use_pickle=True)
    os.rename(tmp_path / "a.pickle", tmp_path / "a")
    again.load(tmp_path / "a.pickle", use_pickle=True)
    assert values(again) == values(net)


def older(name: str) -> str:
    head, _, tail = name.rpartition("/")
    return f"{head}_{tail}"


def arrays(net: FeedForwardNet) -> dict[str, np.ndarray]:
    return {name: value.to_numpy() for name, value in net.get_states().items()}


@pytest.mark.parametrize("version", [None, 1000, 1100])
def test_names_before_1_1_1(version, tmp_path):
    net, again = branched(), other()
    found = {older(name): array for name, array in arrays(net).items()}
    if version is not None:
        found["SINGA_VERSION"] = version
    for protocol in range(6):
        with open(tmp_path / "old.pickle", "wb") as file:
            pickle.dump(found, file, protocol=protocol)
        again = other()
        again.load(tmp_path / "old", use_pickle=True)
        assert values(again) == values(net)


@pytest.mark.parametrize("version", [None, 1101, 5100])
def test_names_since_1_1_1(version, tmp_path):
    net, again = branched(), other()
    found = {**arrays(net), **({} if version is None else {"SINGA_VERSION": version})}
    np.savez(tmp_path / "new.npz", **found)
    again.load(tmp_path / "new.npz")
    assert values(again) == values(net)


def test_a_name_is_not_guessed_where_the_version_is_known(tmp_path):
    net = branched()
    found = {older(name): array for name, array in arrays(net).items()}
    np.savez(tmp_path / "mixed.npz", SINGA_VERSION=1101, **found)
    before = values(net)
    with pytest.warns(UserWarning, match="the file lacks conv/weight, .*; the net lacks bn_beta"):
        net.load(tmp_path / "mixed.npz")
    assert values(net) == before


def test_an_older_snapshot(tmp_path):
    net, again = branched(), other()
    writer = Snapshot(str(tmp_path / "old"), True)
    for name, value in net.get_states().items():
        writer.write(older(name), value)
    text = (tmp_path / "old.desc").read_text()
    (tmp_path / "old.desc").write_text(text.replace("5100", "1000", 1))
    again.load(tmp_path / "old")
    assert values(again) == values(net)


def test_what_only_one_side_has_is_told_once(tmp_path):
    net = branched()
    found = arrays(net)
    del found["conv/bias"], found["bn/var"]
    np.savez(tmp_path / "part.npz", **found, more=np.zeros(3))
    again = other()
    bias = again.param_values()[1].to_numpy()
    with pytest.warns(UserWarning) as told:
        again.load(tmp_path / "part.npz")
    assert len(told) == 1 and str(told[0].message).endswith(
        "part.npz: the file lacks conv/bias, bn/var; the net lacks more"
    )
    assert told[0].filename == __file__
    np.testing.assert_array_equal(again.param_values()[1].to_numpy(), bias)
    np.testing.assert_array_equal(again.param_values()[0].to_numpy(), found["conv/weight"])


def test_filters_may_have_four_axes(tmp_path):
    """As in archives that were converted from other frameworks."""
    net, again = branched(), other()
    found = arrays(net)
    found["conv/weight"] = found["conv/weight"].reshape(4, 3, 3, 3)
    np.savez(tmp_path / "net.npz", **found)
    again.load(tmp_path / "net.npz")
    assert values(again) == values(net)


def test_another_size_is_refused_before_anything_is_written(tmp_path):
    net = branched()
    found = {**arrays(other()), "dense/bias": np.zeros(5, np.float32)}
    np.savez(tmp_path / "net.npz", **found)
    before = values(net)
    with pytest.raises(ShapeError, match=r"dense/bias has shape \(5,\) in the file, want \(4,\)"):
        net.load(tmp_path / "net.npz")
    assert values(net) == before


class Evil:
    """Runs a function when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("evil",)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({"conv/weight": Evil()}, "mkdir, want plain values and arrays"),
        ([1, 2], "is a list, want a dictionary"),
        ({"conv/weight": "text"}, "'conv/weight' is no array of numbers"),
        ({"conv/weight": np.array(["a"])}, "damaged|want plain|calls"),
        ({"SINGA_VERSION": "new"}, "SINGA_VERSION: got 'new', want an int"),
    ],
)
def test_a_pickle_has_arrays_alone(value, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = branched()
    before = values(net)
    (tmp_path / "net.pickle").write_bytes(pickle.dumps(value))
    with pytest.raises(CheckpointError, match=match):
        net.load("net", use_pickle=True)
    assert values(net) == before and not os.path.exists("evil")


def test_damaged_files(tmp_path):
    net = branched()
    before = values(net)
    for name, (path, use_pickle) in FORMATS.items():
        path = tmp_path / path
        net.save(path, use_pickle=use_pickle)
        written = {"snapshot": ".bin", "pickle": ".pickle", "archive": ""}[name]
        file = path.with_name(path.name + written)
        whole = file.read_bytes()
        for cut in (0, 1, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:cut])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                if name == "snapshot" and not cut:
                    continue  # a snapshot without tensors
                with pytest.raises(CheckpointError):
                    net.load(path, use_pickle=use_pickle)
    np.savez(tmp_path / "objects.npz", **{"conv/weight": np.array([{}], object)})
    with pytest.raises(CheckpointError, match="is a damaged archive"):
        net.load(tmp_path / "objects.npz")
    for use_pickle in (False, True):
        with pytest.raises(CheckpointError):
            net.load(tmp_path / "none", use_pickle=use_pickle)
    assert values(net) == before


def test_two_parameters_of_one_name_are_not_saved(tmp_path):
    net = FeedForwardNet()
    net.add(layer.Dense("a", 2, W_specs={"name": "w"}, input_sample_shape=(2,)))
    net.add(layer.Dense("b", 2, W_specs={"name": "w"}))
    with pytest.raises(ShapeError, match="two parameters are named 'w'"):
        net.save(tmp_path / "net")
    assert not os.listdir(tmp_path)


def test_a_loaded_net_goes_on_in_recorded_steps(tmp_path):
    net, x = branched(), tensor.random((2, 3, 12, 12))
    net.compile()
    for _ in range(3):
        net.predict(x)
    other().save(tmp_path / "net")
    net.load(tmp_path / "net")
    np.testing.assert_array_equal(net.predict(x).to_numpy(), other().predict(x).to_numpy())
