"""Steps as files: another process trains on to the same bits."""

import numpy as np
import pytest
import singa_rs
from singa_rs import autograd, layer, module, tensor
from singa_rs.tensor import Placeholder, from_numpy
from step_models import MODELS, made, run_apart, states_of, train


def assert_equal(got, want, name=""):
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    assert got.tobytes() == want.tobytes(), name


def rows_of(found, names, count):
    return [[found[f"{row}.{name}"] for name in names] for row in range(count)]


@pytest.mark.parametrize("name", MODELS)
def test_another_process_trains_on_to_the_bit(name, tmp_path):
    model, given = made(name)
    train(model, given[:5])
    path = tmp_path / "step.srs"
    model.save_step(path, *map(from_numpy, given[0]))
    want, states = train(model, given[5:]), states_of(model)
    found = run_apart(tmp_path, path, given[5:])
    for got_row, want_row in zip(rows_of(found, ("0", "1"), 5), want, strict=True):
        for got, result in zip(got_row, want_row, strict=True):
            assert_equal(got, result)
    for name, state in states.items():
        assert_equal(found[f"state {name}"], state, name)


@pytest.mark.parametrize("name", MODELS)
def test_inference_in_another_process(name, tmp_path):
    model, given = made(name, is_train=False)
    path, (x, _) = tmp_path / "step.srs", given[0]
    model.save_step(path, x)
    found = run_apart(tmp_path, path, [[x] for x, _ in given[1:4]], names=("x",))
    for row, (x, _) in enumerate(given[1:4]):
        assert_equal(found[f"{row}.result"], model(from_numpy(x)).to_numpy())
    assert not any("optimizer" in one for one in found)


@pytest.mark.parametrize("name", ["conv", "dropout"])
def test_a_step_is_saved_again_and_trains_on(name, tmp_path):
    model, given = made(name)
    model.save_step(tmp_path / "first.srs", *given[0])
    want, states = train(model, given), states_of(model)
    found = run_apart(tmp_path, tmp_path / "first.srs", given[:5], saved=tmp_path / "second.srs")
    again = run_apart(tmp_path, tmp_path / "second.srs", given[5:])
    results = rows_of(found, ("0", "1"), 5) + rows_of(again, ("0", "1"), 5)
    for got_row, want_row in zip(results, want, strict=True):
        for got, result in zip(got_row, want_row, strict=True):
            assert_equal(got, result)
    for name, state in states.items():
        assert_equal(again[f"state {name}"], state, name)


def test_saving_leaves_the_model_as_it_was(tmp_path):
    runs = []
    for saves in (False, True):
        singa_rs.device.get_default_device().set_seed(4)
        model, given = made("dropout")
        results = []
        for x, y in given[:4]:
            if saves:
                model.save_step(tmp_path / "step.srs", x, y)
            results += train(model, [(x, y)])
        runs.append([*(one for row in results for one in row), *states_of(model).values()])
    for got, want in zip(*runs, strict=True):
        assert_equal(got, want)


def test_the_generator_of_a_step_is_its_own(tmp_path):
    model, given = made("dropout")
    model.save_step(tmp_path / "step.srs", *given[0])
    steps = [singa_rs.Step.load(tmp_path / "step.srs") for _ in range(2)]
    first = steps[0].run(*given[0])[0].to_numpy()
    singa_rs.device.get_default_device().set_seed(99)
    assert_equal(steps[1].run(*given[0])[0].to_numpy(), first)
    key, position = steps[1].states["generator"].to_numpy()
    assert position > 0
    steps[1].states["generator"].copy_from_numpy(np.array([key + 2, 0]))
    assert steps[1].run(*given[0])[0].to_numpy().tobytes() != first.tobytes()


class Named(module.Module):
    """Arguments and results in containers, and of every origin."""

    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(2)
        self.seen = tensor.zeros((2,))

    def forward(self, x, *more, scale=1.0, batch=None, mask=None):
        out = self.fc(x + more[0]) * scale + batch["bias"][0]
        self.last = out
        self.seen += autograd.reduce_mean(out, [0], keepdims=0)
        return {"out": out, "pair": [x, (self.seen, "text", None)], "all": out * mask}


def named_step(tmp_path):
    model = Named()
    draw = np.random.default_rng(3).normal
    x, y, bias, mask = (draw(size=s).astype(np.float32) for s in ((4, 3), (4, 3), (2,), (4, 1)))
    call = (x, y), dict(scale=2.0, batch={"bias": [bias]}, mask=mask)
    model.eval()
    model.save_step(tmp_path / "step.srs", *call[0], **call[1])
    return model, call, singa_rs.Step.load(tmp_path / "step.srs")


def test_names_are_paths(tmp_path):
    model, (args, kwargs), step = named_step(tmp_path)
    assert [one.name for one in step.arguments] == ["x", "more.0", "batch.bias.0", "mask"]
    assert [one.name for one in step.results] == ["out", "pair.0", "pair.1.0", "all"]
    assert (step.arguments[3].shape, step.arguments[3].dtype) == ((4, 1), tensor.float32)
    assert set(step.states) == {"fc.W", "fc.b", "seen"}
    want = model(*args, **kwargs)
    got = step.run(*args, kwargs["batch"]["bias"][0], kwargs["mask"])
    leaves = [want["out"], want["pair"][0], want["pair"][1][0], want["all"]]
    for one, other in zip(got, leaves, strict=True):
        assert_equal(one.to_numpy(), other.to_numpy())
    assert repr(step) == "Step(x, more.0, batch.bias.0, mask -> out, pair.0, pair.1.0, all)"


class Shares(module.Module):
    """A list that it was given, and lists that stand in the result several times."""

    def __init__(self):
        super().__init__()
        self.fc = layer.Linear(2)

    def forward(self, xs, options):
        out = self.fc(xs[0])
        pair = [out, xs[1]]
        rows = {"first": pair, "all": (pair, [out * 2])}
        return xs, rows, rows["all"][1], pair, options, rows


def test_lists_of_arguments_and_repeated_lists_as_results(tmp_path):
    model = Shares().eval()
    xs = [np.full((2, 3), value, np.float32) for value in (1, 2)]
    options = {"mask": np.ones((2,), np.float32), "mode": "text"}
    model.save_step(tmp_path / "step.srs", xs, options)
    step = singa_rs.Step.load(tmp_path / "step.srs")
    assert [one.name for one in step.arguments] == ["xs.0", "xs.1", "options.mask"]
    rows = ["first.0", "first.1", "all.0.0", "all.0.1", "all.1.0"]
    names = ["0.0", "0.1", *(f"1.{row}" for row in rows), "2.0", "3.0", "3.1", "4.mask"]
    assert [one.name for one in step.results] == [*names, *(f"5.{row}" for row in rows)]
    given = [one + 3 for one in xs]
    mask = options["mask"] * 7
    out = model([from_numpy(one) for one in given], dict(options, mask=from_numpy(mask)))[3][0]
    out = out.to_numpy()
    shown = [out, given[1], out, given[1], out * 2]
    want = [*given, *shown, out * 2, out, given[1], mask, *shown]
    for got, one in zip(step.run(*given, mask), want, strict=True):
        assert_equal(got.to_numpy(), one)


def test_arguments_that_do_not_fit_are_refused_by_name(tmp_path):
    _, (args, kwargs), step = named_step(tmp_path)
    x, y = args
    bias, mask = kwargs["batch"]["bias"][0], kwargs["mask"]
    with pytest.raises(TypeError, match="got 1 arguments, want x, more.0, batch.bias.0, mask"):
        step.run(x)
    with pytest.raises(singa_rs.ShapeError, match=r"argument more.0: got shapes \(4, 2\), want"):
        step.run(x, y[:, :2], bias, mask)
    with pytest.raises(singa_rs.DTypeError, match="argument mask: got dtype int32, want float32"):
        step.run(x, y, bias, mask.astype(np.int32))
    with pytest.raises(TypeError, match="batch.bias.0: got list, want a tensor or an array"):
        step.run(x, y, [1.0, 2.0], mask)
    with pytest.raises(singa_rs.GraphError, match="x: got an unfilled"):
        step.run(Placeholder((4, 3)), y, bias, mask)


def test_arguments_may_share_memory_and_lie_otherwise(tmp_path):
    _, (args, kwargs), step = named_step(tmp_path)
    rest = kwargs["batch"]["bias"][0], kwargs["mask"]
    state = step.states["seen"].to_numpy()
    want = [one.to_numpy() for one in step.run(args[0], args[0].copy(), *rest)]
    step.states["seen"].copy_from_numpy(state)
    turned = from_numpy(np.ascontiguousarray(args[0].T)).transpose()
    for one, other in zip(step.run(turned, turned, *rest), want, strict=True):
        assert_equal(one.to_numpy(), other)
    held = step.run(*args, *rest)[0]
    before = held.to_numpy()
    step.run(args[1], args[1], *rest)
    assert_equal(held.to_numpy(), before)


OPTIONS = {
    "amp": dict(amp="bfloat16"),
    "float16": dict(amp="float16"),
    "inexact": dict(exact=False),
    "budget": dict(memory_budget=1.0),
    "finite": dict(check_finite=True),
    "parallel": dict(graph_alg="parallel"),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_of_compile_are_kept(options, tmp_path):
    model, given = made("conv", **options)
    train(model, given[:3])
    model.save_step(tmp_path / "step.srs", *given[0])
    step = singa_rs.Step.load(tmp_path / "step.srs")
    want, states = train(model, given[3:]), states_of(model)
    for batch, row in zip(given[3:], want, strict=True):
        for got, result in zip(step.run(*batch), row, strict=True):
            assert_equal(got.to_numpy(), result)
    for name, state in states.items():
        assert_equal(step.states[name].to_numpy(), state, name)


def test_a_nan_stops_a_step_that_was_compiled_to_check(tmp_path):
    model, given = made("mlp", check_finite=True)
    model.save_step(tmp_path / "step.srs", *given[0])
    step = singa_rs.Step.load(tmp_path / "step.srs")
    with pytest.raises(FloatingPointError, match=r"step_models\.py:\d+"):
        step.run(np.full_like(given[0][0], np.nan), given[0][1])


def test_a_step_is_not_run_by_a_model_that_is_recorded(tmp_path):
    model, given = made("mlp", is_train=False)
    model.save_step(tmp_path / "step.srs", given[0][0])
    step = singa_rs.Step.load(tmp_path / "step.srs")

    class Outer(module.Module):
        def forward(self, x):
            return x + step.run(given[0][0])[0]

    outer = Outer()
    with pytest.raises(singa_rs.GraphError, match="Step.run: a step is run while another one"):
        outer.compile([Placeholder((8, 3))], is_train=False)


def test_lines_keep_no_folders(tmp_path):
    model, given = made("mlp")
    model.save_step(tmp_path / "step.srs", *given[0])
    content = (tmp_path / "step.srs").read_bytes()
    assert b"step_models.py:" in content and b"/step_models.py" not in content


@pytest.mark.parametrize("is_train", [True, False])
def test_a_step_of_the_call_that_was_recorded_last(is_train, tmp_path):
    model, given = made("dropout", is_train=is_train)
    args = given[0] if is_train else given[0][:1]
    for _ in range(3):
        model(*map(from_numpy, args))
    model.save_step(tmp_path / "given.srs", *args)
    model.save_step(tmp_path / "last.srs")
    steps = [singa_rs.Step.load(tmp_path / f"{name}.srs") for name in ("given", "last")]
    assert steps[0].arguments == steps[1].arguments
    for one, other in zip(steps[0].run(*args), steps[1].run(*args), strict=True):
        assert_equal(other.to_numpy(), one.to_numpy())
