"""Parameters that are divided among processes (`DistOpt(shard=3)`)."""

import gc
import re

import dist_divided as programs
import numpy as np
import pytest
from singa_rs import autograd, dist, opt, tensor
from singa_rs.errors import DistError, GraphError

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0


def _every_way(kinds):
    """By model, and how it was trained: losses, values and the number of replays."""
    return {
        (kind, shard, graph): programs.train(kind, shard, graph)
        for kind in kinds
        for shard, graph in ((2, True), (3, True), (3, False))
    }


@pytest.mark.parametrize("ranks", [2, 4])
def test_training_is_that_of_one_process_and_the_bits_are_those_of_stage_2(ranks):
    kinds = tuple(programs.MODELS)
    alone = {kind: programs.train(kind, 0)[0] for kind in kinds}
    for found in dist.spawn(_every_way, ranks, (kinds,), timeout=TIMEOUT):
        for kind in kinds:
            losses, values, _ = found[kind, 2, True]
            # Batch normalisation sees the rows of a rank; the deep one amplifies rounding.
            if kind not in ("CNN", "Deep"):
                np.testing.assert_allclose(losses, alone[kind], rtol=1e-5, err_msg=kind)
            for graph in (True, False):
                others, made, replays = found[kind, 3, graph]
                assert losses.tolist() == others.tolist(), (kind, graph)
                assert all(np.array_equal(made[name], values[name]) for name in values), kind
                # Two recordings tell which bucket follows on which, and two more agree.
                assert replays == (programs.STEPS - 4 if graph else 0), kind


CASES = {
    "clipped": {"clip_norm": 0.1},
    "momentum": {"name": "SGD", "weight_decay": 0.1},
    "one bucket": {"threshold": 1 << 20},
    "a bucket for each": {"threshold": 1},
    "bfloat16": {"amp": "bfloat16"},
    "float16": {"amp": "float16"},
}


def _with_options():
    return {
        case: [programs.train("MLP", shard, **given) for shard in (2, 3)]
        for case, given in CASES.items()
    }


def test_options_do_what_they_do_in_stage_2():
    for found in dist.spawn(_with_options, 2, timeout=TIMEOUT):
        for case, ((losses, values, _), (others, made, _)) in found.items():
            assert losses.tolist() == others.tolist(), case
            assert all(np.array_equal(made[name], values[name]) for name in values), case


# ---- what is kept --------------------------------------------------------------------------------


def _memory(shard):
    """Bytes of parameters and states of this rank, and how many parameters are divided."""
    model = programs.made("Deep", shard, threshold=40_000)
    for x, y in programs.batches(6):
        model(x, y)
    found = programs.CPU.memory()
    return found["parameters"], found["states"], len(programs.divided(model))


def test_a_rank_keeps_its_share_of_the_parameters():
    (whole, moments, none), _ = dist.spawn(_memory, 2, (2,), timeout=TIMEOUT)
    (own, same, count), _ = dist.spawn(_memory, 2, (3,), timeout=TIMEOUT)
    assert none == 0 and count == 18
    # In stage 2, shares of the parameters are among the states.
    assert own < 0.56 * whole and same < moments  # the sizes of blocks are rounded up


def _looked_at():
    """What becomes of a model that is looked at and written between steps."""
    model, told = programs.made("MLP", 3), []
    rows = list(programs.batches(12))
    for x, y in rows[:4]:
        model(x, y)
    weight, bias = model.layers[1].W, model.layers[1].b
    told.append(repr(weight))
    told.append(weight.shape == (13, 16) and weight.numel == 208 and weight.dtype == tensor.float32)
    before = weight.to_numpy()
    told.append(np.array_equal(before, weight.clone().to_numpy()))
    told.append(np.allclose((weight * 2 + bias).to_numpy(), before * 2 + bias.to_numpy()))
    model.eval()
    first = model(rows[0][0]).to_numpy()
    told.append(np.array_equal(first, model(rows[0][0]).to_numpy()))
    weight.copy_from(tensor.zeros((13, 16)))
    told.append(not weight.to_numpy().any())
    weight.copy_from_numpy(before)
    told.append(np.array_equal(model(rows[0][0]).to_numpy(), first))
    weight.gaussian(0.0, 1.0)
    told.append(weight.to_numpy().std() > 0.5)
    weight.copy_from_numpy(before)
    model.train()
    losses = [programs.mean(model(x, y)) for x, y in rows[4:]]
    told.append(len(programs.divided(model)) == 8)
    return told, losses


def _not_looked_at():
    model = programs.made("MLP", 3)
    return [programs.mean(model(x, y)) for x, y in programs.batches(12)][4:]


def test_parameters_are_read_and_written_between_steps():
    want, _ = dist.spawn(_not_looked_at, 2, timeout=TIMEOUT)
    for (shown, *told), losses in dist.spawn(_looked_at, 2, timeout=TIMEOUT):
        assert shown == "Tensor(shape=(13, 16), dtype=float32, divided among ranks)"
        assert all(told), told
        assert losses == want


def _refused():
    """Messages for what cannot be done with divided parameters."""
    model, told = programs.made("MLP", 3), []
    (x, y), *rest = programs.batches(6)
    for batch in rest:
        model(*batch)
    weight = model.layers[1].W
    for attempt in (
        lambda: weight.__setitem__(0, 1.0),
        lambda: weight.__iadd__(tensor.ones((13, 16))),
        lambda: weight[1:3].copy_from(tensor.zeros((2, 16))),
        lambda: np.from_dlpack(weight),
    ):
        try:
            attempt()
            told.append("done")
        except GraphError as error:
            told.append(str(error))
    return told, programs.mean(model(x, y))


def test_what_writes_into_a_part_of_a_divided_parameter_is_refused():
    for told, loss in dist.spawn(_refused, 2, timeout=TIMEOUT):
        assert all("divided among ranks (shard=3)" in one for one in told), told
        assert np.isfinite(loss)


def _frozen():
    """One layer that does not learn."""
    model = programs.made("MLP", 3)
    model.layers[0].W.requires_grad = False
    losses = [programs.mean(model(x, y)) for x, y in programs.batches(8)]
    return losses, sorted(programs.divided(model))


def test_a_frozen_parameter_stays_whole():
    first, second = dist.spawn(_frozen, 2, timeout=TIMEOUT)
    assert first == second
    assert "layers.0.W" not in first[1] and "layers.0.b" in first[1]


def _accumulated(shard):
    model = programs.made("MLP", shard, graph=False)
    for number, (x, y) in enumerate(programs.batches(12)):
        with autograd._training_scope(True):
            loss = autograd.softmax_cross_entropy(model.forward(x), y)
            if number % 3 < 2:
                model.optimizer.accumulate(loss)
            else:
                model.optimizer(loss)
    return programs.values(model)


def test_gradients_add_up_as_in_stage_2():
    (want, _), (found, _) = (
        dist.spawn(_accumulated, 2, (shard,), timeout=TIMEOUT) for shard in (2, 3)
    )
    assert all(np.array_equal(found[name], want[name]) for name in want)


def _replaced():
    """A parameter in the place of one that is divided, which no replay may overlook."""
    model = programs.made("MLP", 3)
    *rows, (x, y) = programs.batches(7)
    for batch in rows:
        model(*batch)
    one = model.layers[1]
    one.W = tensor.Tensor(data=np.zeros(one.W.shape), requires_grad=True, stores_grad=True)
    with pytest.raises(ValueError, match="got layers.1.W#2 in bucket 1, want layers.1.W as in"):
        model(x, y)


def test_a_parameter_that_was_replaced_is_noticed():
    dist.spawn(_replaced, 2, timeout=TIMEOUT)


def _let_go():
    """Bytes of parameters before and after a model is let go."""
    model = programs.made("Deep", 3, threshold=40_000)
    for x, y in programs.batches(6):
        model(x, y)
    before = programs.CPU.memory()["parameters"]
    del model
    gc.collect()
    return before, programs.CPU.memory()["parameters"]


def test_a_model_that_is_let_go_leaves_nothing():
    for before, after in dist.spawn(_let_go, 2, timeout=TIMEOUT):
        assert before > 500_000 and after == 0


# ---- faults --------------------------------------------------------------------------------------


def _alone(what):
    """What one rank is told that does something by itself, and what the other is."""
    dist.set_timeout(3.0)
    model = programs.made("MLP", 3)
    rows = list(programs.batches(8))
    for x, y in rows[:5]:
        model(x, y)
    try:
        if what == "reads" and dist.rank() == 1:
            return model.layers[1].W.to_numpy()
        if what == "raises" and dist.rank() == 1:
            raise ValueError("boom")
        model(*rows[5])
        model(*rows[6])
    except DistError as error:
        return str(error)
    return "nothing"


def test_a_rank_that_uses_a_parameter_alone_is_told():
    """The buckets that both gather have equally many elements."""
    for found in dist.spawn(_alone, 2, ("reads",), timeout=TIMEOUT):
        assert re.search(r"rank [01] came with all_gather of \d+ float32 in bucket \d, this", found)


def test_a_rank_that_raises_is_heard():
    with pytest.raises(dist.RankError, match="boom"):
        dist.spawn(_alone, 2, ("raises",), timeout=TIMEOUT)


def _part_of_another():
    both = tensor.Tensor(data=np.ones((2, 3), np.float32))
    part = both[0]
    part.requires_grad = part.stores_grad = True
    with autograd._training_scope(True):
        loss = autograd.reduce_sum(part * part)
        with pytest.raises(ValueError, match="with shard=3, which shares its memory with other"):
            opt.DistOpt(opt.SGD(0.1), shard=3)(loss)


def test_parameters_need_memory_of_their_own():
    dist.spawn(_part_of_another, 2, timeout=TIMEOUT)


def _written_back():
    model = programs.made("MLP", 3)
    x, y = next(programs.batches(1))
    model(x, y)
    before = programs.values(model)
    model.set_states(model.get_states())
    after = programs.values(model)
    model(x, y)
    return all(np.array_equal(before[name], after[name]) for name in before)


def test_divided_values_are_written_back_by_all_ranks_together():
    """Also by ranks whose shares have no element of a tensor."""
    assert all(dist.spawn(_written_back, 2, timeout=TIMEOUT))
