"""States that differ from rank to rank, in files that rank 0 writes for all."""

import warnings

import dist_models
import numpy as np
import pytest
from singa_rs import dist, opt, tensor
from singa_rs.autograd.mode import training_scope
from singa_rs.errors import ShapeError

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
OPTIMIZERS = {
    "sparse": lambda: opt.DistOpt(opt.SGD(0.1)),
    "low_rank": lambda: opt.DistOpt(opt.SGD(0.1, momentum=0.9)),
    "partial": lambda: opt.DistOpt(opt.SGD(0.1)),
    "local": lambda: opt.LocalSGD(opt.SGD(0.1, momentum=0.9), 3),
}
#: What the steps are given.
GIVEN = {"sparse": {"spars": 0.02, "momentum": 0.5}, "partial": {"threshold": 60}}
KEPT = ("exchange_residual", "exchange_velocity")


def made(how):
    dist.set_seed(1)
    model = dist_models.MLP("plain" if how == "local" else how, **GIVEN.get(how, {}))
    model.optimizer = OPTIMIZERS[how]()
    model.compile([next(batches(1))[0]], is_train=True, use_graph=True)
    return model


def batches(steps):
    """This rank's."""
    rank, size = dist.rank(), dist.size()
    own = slice(rank * dist_models.BATCH // size, (rank + 1) * dist_models.BATCH // size)
    for x, y in dist_models.batches(steps):
        yield tensor.from_numpy(x[own]), tensor.from_numpy(y[own])


def kept(model):
    """What all ranks keep, by kind and name, as arrays with an axis of ranks."""
    states = model.optimizer.get_states()
    found = {kind: states.get(kind, {}) for kind in KEPT}
    arrays = {(k, n): one.to_numpy().copy() for k, ones in found.items() for n, one in ones.items()}
    return arrays if dist.size() > 1 else {key: one[None] for key, one in arrays.items()}


def _saved(how, path, by_all):
    """What is kept where a file is written after 5 steps, and the losses of 4 more."""
    model, given = made(how), list(batches(9))
    for pair in given[:5]:
        model(*pair)
    model.save(_path(path, by_all), {"sgd": model.optimizer}, writes=by_all or dist.rank() == 0)
    found = kept(model) if how in ("sparse", "low_rank") else {}
    dist.barrier()
    return found, [model(*pair).item() for pair in given[5:]]


def _loaded(how, path, by_all):
    """The same where it was read, and the warnings."""
    model, given = made(how), list(batches(9))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.load(_path(path, by_all), state={"sgd": model.optimizer})
    found = kept(model) if how in ("sparse", "low_rank") else {}
    said = [str(one.message) for one in told if "takes states of rank" in str(one.message)]
    return found, [model(*pair).item() for pair in given[5:]], said


def _path(path, by_all):
    return f"{path}{dist.rank()}" if by_all else path


def spawn(function, n, *args):
    return [function(*args)] if n == 1 else dist.spawn(function, n, args, timeout=TIMEOUT)


@pytest.mark.parametrize("how", ["sparse", "low_rank"])
def test_each_rank_goes_on_with_what_it_kept(how, tmp_path):
    path = str(tmp_path / "net")
    before = spawn(_saved, 2, how, path, False)
    after = spawn(_loaded, 2, how, path, False)
    for (one, losses), (other, same, said) in zip(before, after, strict=True):
        assert losses == same and not said
        assert one.keys() == other.keys() and any(array[0].any() for array in one.values())
        for key, array in one.items():
            np.testing.assert_array_equal(array, other[key])
            assert array.shape[0] == 2


@pytest.mark.parametrize("how", ["sparse", "low_rank"])
@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (1, 2)])
def test_what_is_owed_to_parameters_is_the_same_for_other_numbers_of_ranks(
    how, before, after, tmp_path
):
    path = str(tmp_path / "net")
    (want, _), *_ = spawn(_saved, before, how, path, False)
    (found, _, _), *_ = spawn(_loaded, after, how, path, False)
    assert found.keys() == want.keys()
    for key, array in found.items():
        np.testing.assert_allclose(array.mean(0), want[key].mean(0), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("how", ["partial", "local"])
def test_files_of_each_rank_go_on_in_the_midst_of_a_cycle(how, tmp_path):
    path = str(tmp_path / "net")
    before = spawn(_saved, 2, how, path, True)
    after = spawn(_loaded, 2, how, path, True)
    assert [losses for _, losses in before] == [losses for _, losses, _ in after]
    assert not any(said for _, _, said in after)


@pytest.mark.parametrize("how", ["partial", "local"])
def test_a_file_of_another_rank_is_told_of(how, tmp_path):
    path = str(tmp_path / "net")
    spawn(_saved, 2, how, path, False)
    (_, _, none), (_, _, said) = spawn(_loaded, 2, how, path, False)
    assert not none and len(said) == 1
    assert "takes states of rank 0 of 2 for those of rank 1 of 2" in said[0]


def test_the_place_in_a_cycle_is_a_state():
    one, other = OPTIMIZERS["partial"](), OPTIMIZERS["partial"]()
    one.partial = 2
    other.set_states(one.get_states())
    assert other.partial == 2
    other.set_states({"step_counter": 7})
    assert other.partial == 2
    other.set_states(OPTIMIZERS["partial"]().get_states())
    assert other.partial == 0
    with pytest.raises(ValueError, match="partial: place: got -1, want at least 0"):
        one.set_states({"partial": {"place": -1}})
    assert one.partial == 2


def test_states_of_other_ranks_have_an_axis_for_them():
    one = OPTIMIZERS["sparse"]()
    states = {"exchange_ranks": 3, "exchange_residual": {"w": np.ones((2, 4), np.float32)}}
    with pytest.raises(ShapeError, match=r"residual: w: got shape \(2, 4\), want 3 on axis 0"):
        one.set_states(states)
    with pytest.raises(ValueError, match="exchange_ranks: got 0, want at least 1"):
        one.set_states({**states, "exchange_ranks": 0})
    one.set_states({**states, "exchange_ranks": 2})
    assert one.get_states()["exchange_residual"]["w"].shape == (4,)


def _scalar():
    """States with a residual of a parameter of shape (), set again as arrays and as tensors."""
    with training_scope(True):
        p = tensor.Tensor(data=np.array(1.5, np.float32), requires_grad=True, stores_grad=True)
        made = opt.DistOpt(opt.SGD(0.1))
        made.backward_and_sparse_update(p * p, spars=5.0)
    states = made.get_states()
    kept = {name: one.to_numpy() for name, one in states["exchange_residual"].items()}
    for given in (kept, states["exchange_residual"]):
        made.set_states({**states, "exchange_residual": given})
    made.set_states({**states, "exchange_ranks": 3, "exchange_residual": {
        name: np.arange(3, dtype=np.float32) for name in kept}})  # fmt: skip
    (found,) = made.get_states()["exchange_residual"].values()
    return found.to_numpy().tolist()


@pytest.mark.parametrize("ranks", [1, 2])
def test_states_of_a_parameter_without_axes(ranks):
    want = 1.0 if ranks == 1 else [1.0, 1.0]
    assert dist.spawn(_scalar, ranks, timeout=TIMEOUT) == [want] * ranks
