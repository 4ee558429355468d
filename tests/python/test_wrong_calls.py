"""Whatever arguments a public function or method gets, the error it raises names it."""

import inspect

import foreign
import numpy as np
import pytest
from singa_rs import (
    OutOfMemoryError,
    ShapeError,
    autograd,
    data,
    device,
    initializer,
    layer,
    loss,
    metric,
    module,
    opt,
    singa_wrap,
    tensor,
)
from singa_rs.tensor import Placeholder, Tensor
from valid_calls import GOOD, IMAGE, INTS, LISTS, NEEDS, T
from wrong_calls import WRONG, check, hold, just, of

#: Functions that are not called on their own.
NOT_HELD = {"as_shape", "as_tensor", "report_warnings", "set_training", "load_mnist"}
NOT_HELD |= {"raw", "get", "rng"}


def functions(home):
    return {
        f"{home.__name__.rpartition('.')[2]}.{name}": one
        for name, one in vars(home).items()
        if inspect.isfunction(one) and name[0] != "_" and name not in NOT_HELD
    }


FUNCTIONS = {}
for _home in (tensor, autograd, initializer, device, data, singa_wrap):
    FUNCTIONS.update(functions(_home))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    short = name.rpartition(".")[2]
    one = FUNCTIONS[name]
    hold(one, [short, one.__name__], GOOD.get(short, ()))


# ---- tensors -------------------------------------------------------------------------------------

MAKES = [T, of(0), of(), INTS, of(3, dtype="bool"), lambda: Placeholder((2, 3))]
METHODS = [
    name
    for name in dir(Tensor)
    if name[0] != "_" and inspect.isfunction(getattr(Tensor, name)) and name != "name"
]


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_tensors(name):
    for make in MAKES:
        hold(getattr(make(), name), [name], fresh=lambda make=make: getattr(make(), name))


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
OPERATORS += [f"r{name}" for name in OPERATORS] + [f"i{name}" for name in OPERATORS[:4]]
OPERATORS += ["lt", "le", "eq", "and", "or", "xor"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    for make in MAKES:
        for wrong in WRONG:
            operator = getattr(make(), f"__{name}__")
            check([name, "a Tensor"], operator, [wrong()], {})


def test_indices():
    for make in MAKES:
        for key in WRONG:
            for value in (just(1), *WRONG):
                try:
                    check(["index"], make().__setitem__, [key(), value()], {})
                except IndexError as error:
                    assert "index" in str(error)


def test_sources_of_tensors():
    for names in (["shape"], ["dtype"], ["device"], ["data"]):
        for wrong in WRONG:
            check(["Tensor", *names], Tensor, [], {names[0]: wrong()})


def test_norms_of_nothing():
    for name in ("l1", "l2"):
        with pytest.raises(ShapeError, match=f"{name}: got shape"):
            getattr(Tensor((0, 3)), name)()


# ---- layers, models ------------------------------------------------------------------------------

LAYERS = [
    name
    for name in layer.__all__
    if name not in ("Layer", "Parameter", "RNN_Base", "Sequential", "Identity", *LISTS)
]


def test_parameters():
    hold(layer.Parameter, ["Parameter"], [T])


def test_caches():
    hold(layer.KeyValueCache, ["KeyValueCache"], [just(n) for n in (1, 2, 3, 4)])
    for wrong in WRONG:
        check(["tensor_scatter"], layer.KeyValueCache(1, 2, 3, 4).write, [wrong(), IMAGE()], {})


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    cls, good = getattr(layer, name), [just(one) for one in NEEDS.get(name, ())]
    hold(cls, [name], good)
    inputs = [[T()], [T(), T()], [INTS()], [IMAGE()], [[T()]]]
    for call_first in (False, True):
        for wrong in WRONG:
            one = cls(*NEEDS.get(name, ()))
            for given in inputs if call_first else ():
                try:
                    one(*given)
                except (TypeError, ValueError):
                    continue
                break
            for args in ([wrong()], [T(), wrong()], [wrong(), wrong()], []):
                check([name], one, args, {})


@pytest.mark.parametrize("name", ["set_params", "set_states", "register_layers", "device_check"])
def test_methods_of_layers(name):
    for wrong in WRONG:
        one = layer.Linear(2)
        one(T())
        check([name], getattr(one, name), [wrong()], {})
        check([name], one.dtype_check, [T(), wrong()], {})
        check([name], one.set_params, [{"W": wrong()}], {})


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(2), opt.SGD(0.1)

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x, y):
        value = autograd.mse_loss(self.forward(x), y)
        self.optimizer(value)
        return value


@pytest.mark.parametrize("compiled", [False, True])
def test_models(compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def net():
        made = Net()
        made.forward(T())
        if compiled:
            made.compile([T()])
        return made

    for wrong in WRONG:
        check(["Linear", "train_one_batch"], net(), [wrong(), of(2, 2)()], {})
        check(["Linear", "mse_loss", "train_one_batch"], net(), [T(), wrong()], {})
        check(["Linear", "forward"], net().forward, [wrong()], {})
        check(["compile", "Linear", "forward"], net().compile, [wrong()], {})
        check(["plan", "train_one_batch", "Linear"], net().plan, [wrong(), wrong()], {})
        for name in ("train", "graph", "tap", "to_device", "load_states", "load", "save"):
            check([name], getattr(net(), name), [wrong()], {})
        for option in ("is_train", "use_graph", "graph_alg", "memory_budget", "exact"):
            check([option, "compile"], net().compile, [[T()]], {option: wrong()})


# ---- optimizers, losses, metrics -----------------------------------------------------------------


CLASSES = [name for name in opt.__all__ if inspect.isclass(getattr(opt, name))]
SCHEDULES = {"ExponentialDecay": (0.1, 2.0, 0.5), "StepDecay": (0.1, 2), "LinearDecay": (0.1, 2)}
SCHEDULES |= {"CosineDecay": (0.1, 2), "OneCycle": (0.1, 9), "Warmup": (2, 0.1)}
SCHEDULES |= {"DistOpt": (opt.SGD(0.1),), "LocalSGD": (opt.SGD(0.1), 2)}


@pytest.mark.parametrize("name", [name for name in opt.__all__ if name not in CLASSES])
def test_functions_of_optimizers(name):
    wanted = {"warmup": [just(2), just(0.1)], "density": [just(2), just(0.1)]}
    good = wanted.get(name, [lambda: [(T(), T())], just(1.0)])
    hold(getattr(opt, name), [name, "Warmup", "Constant"], good)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "DecayScheduler"])
def test_optimizers_and_schedules(name):
    cls = getattr(opt, name)
    good = SCHEDULES.get(name, (0.1,))
    hold(cls, [name, "DecayScheduler", "LinearDecay"], [just(one) for one in good])
    calls = {"apply": [just("p"), T, T], "set_states": [dict], "update": [T, T]}
    calls |= {"call": [T], "backward_and_update": [T], "device_check": [], "__call__": [T]}
    calls |= {"accumulate": [T], "observe": [just(1.0)], "group": [just("p")]}
    calls |= {"copy_to": [lambda: {"p": T()}], "applied": [lambda: {"p": T()}]}
    if name == "MovingAverage":
        calls["update"] = [lambda: {"p": T()}]
    for method, given in calls.items():
        if method in dir(cls):
            fresh = lambda method=method: getattr(cls(*good), method)  # noqa: E731
            hold(fresh(), [name, method, "backward"], given, fresh)
    for attribute in getattr(cls, "hyperparameters", ()):
        for wrong in WRONG:
            check([attribute], setattr, [cls(*good), attribute, wrong()], {})


@pytest.mark.parametrize("one", [loss.SoftmaxCrossEntropy(), loss.SquaredError()])
def test_losses(one):
    for method in ("forward", "evaluate"):
        hold(getattr(one, method), [type(one).__name__, "Loss"], [just(True), T, T])


@pytest.mark.parametrize("cls", [metric.Accuracy, metric.Precision, metric.Recall])
def test_metrics(cls):
    hold(cls, [cls.__name__, "Precision"], [just(1)])
    truth = of(2) if cls is metric.Accuracy else T
    for method in ("forward", "evaluate"):
        hold(getattr(cls(1), method), [cls.__name__, "Metric", "Precision"], [T, truth])


# ---- errors that are not the package's fault stay as they are ------------------------------------


def test_errors_of_users_code_are_theirs():
    class Broken(layer.Layer):
        def forward(self, x):
            return x.no_such_thing

    def missing(x):
        return {}["key"]

    for one, error in (
        (Broken(), AttributeError),
        (layer.Sequential(Broken()), AttributeError),
        (layer.Sequential(missing), KeyError),
        (layer.Linear(2, activation=missing), KeyError),
        (layer.Linear(2, kernel_init=missing), KeyError),
    ):
        with pytest.raises(error) as caught:
            one(T())
        assert type(caught.value) is error


def test_a_message_says_what_it_got_and_wanted():
    for call, text in (
        (lambda: T().add_row(3), "add_row: got 3 for v, want a Tensor"),
        (lambda: tensor.exp(None), "exp: got None for t, want a Tensor"),
        (lambda: autograd.conv2d(3, T(), T()), "conv2d: got 3 for handle, want a ConvHandle"),
        (lambda: autograd.reshape([1], "x"), "reshape: got"),
        (lambda: layer.ReLU(3), "ReLU: too many positional arguments"),
        (lambda: layer.Linear(2)([1, 2]), "Linear: got list, want a Tensor"),
        (lambda: autograd.split(T(), 0, 3), "split: got 3 for parts, want a list of ints or None"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert text in str(caught.value)


SHARES = ": tensor.from_dlpack(x) shares its memory"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (layer.Linear(2), f"Linear: got foreign.Tensor, want a Tensor{SHARES}"),
        (layer.LSTM(3, 2), f"LSTM: got foreign.Tensor, want a Tensor{SHARES}"),
        (layer.ReLU(), f"ReLU: got foreign.Tensor of shape (4, 3) for x, want a Tensor{SHARES}"),
        (autograd.relu, f"relu: got foreign.Tensor, want a Tensor{SHARES}"),
        (
            lambda x: T() + x,
            f"add: got foreign.Tensor, want a Tensor, a number or an array{SHARES}",
        ),
        (tensor.from_numpy, f"from_numpy: got foreign.Tensor, want a NumPy array{SHARES}"),
        (lambda x: T().copy_from_numpy(x), "got foreign.Tensor, want a NumPy array"),
        (lambda x: tensor.from_numpy([1]), "from_numpy: got list, want a NumPy array"),
        (
            lambda x: T().add_row(foreign.Tensor),
            "add_row: got <class 'foreign.Tensor'> for v, want",
        ),
    ],
)
def test_arrays_of_other_libraries_are_named_with_these(call, text):
    x = foreign.Tensor(np.ones((4, 3), np.float32))
    with pytest.raises(TypeError) as caught:
        call(x)
    message = str(caught.value)
    assert text in message and message.endswith(SHARES) == (SHARES in text)
    assert tensor.from_dlpack(x).shape == (4, 3)


def test_the_first_error_is_the_cause():
    with pytest.raises(TypeError, match="add_row") as caught:
        T().add_row(3)
    assert isinstance(caught.value.__cause__, AttributeError)


def test_named_functions_keep_their_signatures():
    assert list(inspect.signature(tensor.add_row).parameters) == ["alpha", "v", "beta", "M"]
    assert list(inspect.signature(Tensor.sum).parameters) == ["self", "axis", "keepdims"]
    assert tensor.add_row.__doc__ and autograd.conv2d.__name__ == "conv2d"


# ---- what was taken in silence -------------------------------------------------------------------

X = tensor.ones((2, 3))
SILENT = [
    (lambda: Placeholder((2,), requires_grad="False"), "Placeholder: requires_grad: got 'False'"),
    (lambda: Placeholder((2,), name=3), "Placeholder: name: got 3, want a str or None"),
    (lambda: Tensor((2,), name=3), "Tensor: name: got 3, want a str or None"),
    (lambda: setattr(tensor.ones(2), "name", 3), "name: got 3, want a str or None"),
    (lambda: tensor.zeros(""), "zeros: got '' for shape, want an int or list of ints"),
    (lambda: tensor.zeros({}), "zeros: got {} for shape"),
    (lambda: tensor.zeros((2,), "flaot32"), "zeros: got 'flaot32', want a device .* or a dtype"),
    *[(lambda axis=axis: X.sum(axis=axis), "sum: got .* for axis") for axis in ("", {}, {1})],
    *[(lambda axis=axis: X.softmax(axis), "softmax: ") for axis in ("", {}, {1})],
    (lambda: X.flip({0}), "flip: "),
    (lambda: X.cuda("a"), "cuda: got 'a' for device"),
    (lambda: layer.Gemm(2, bias_shape=3), "Gemm: bias_shape: got 3, want a shape"),
    (lambda: initializer.orthogonal(tensor.ones((2, 2)), float("nan")), "orthogonal: got gain nan"),
    *[
        (lambda call=call, fans=fans: call(tensor.zeros((2, 2)), *fans), "got fans .* want finite")
        for call in (initializer.uniform, initializer.gaussian)
        for fans in ((float("nan"), 3), (2, float("nan")), (float("inf"), 0), (-1, 0))
    ],
    (lambda: device.create_cuda_gpus(-7), "create_cuda_gpus: num: got -7, want at least 0"),
    *[
        (lambda call=call: call(np.array([True, False])), "got ndarray of shape .* want a bool")
        for call in (
            lambda one: autograd.CumSum(0, one),
            lambda one: autograd.CumProd(0, reverse=one),
            lambda one: autograd.Sort(0, one),
            lambda one: autograd.TopK(1, 0, one),
            lambda one: autograd.Triangle(one, 0),
            device.get_default_device().EnableGraph,
            device.get_default_device().RunGraph,
        )
    ],
]


@pytest.mark.parametrize("call, message", SILENT)
def test_what_was_taken_in_silence(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("ratio", [0, 0.0, 0.5, 1])
def test_seeds_of_dropout(ratio, training):
    """Also where nothing is drawn: SINGA has the seed before the ratio."""
    with autograd._training_scope(training):
        for wrong in (0.5, 2**62, "a", True):
            with pytest.raises((TypeError, ValueError), match="dropout: .*seed"):
                autograd.dropout(X, ratio, wrong)
        assert autograd.dropout(X, ratio, 3).shape == X.shape


@pytest.mark.parametrize("training", [True, False])
def test_ratios_of_dropout(training):
    with autograd._training_scope(training):
        for wrong in (None, "", [], {}, "a"):
            with pytest.raises(TypeError, match="dropout: ratio: got .*, want a number"):
                autograd.dropout(X, wrong)
        for wrong in (float("nan"), -3, 7, float("inf")):
            with pytest.raises(ValueError, match="dropout: ratio: got .*, want a finite number"):
                autograd.dropout(X, wrong)
        for right in (0, 0.0, np.float32(0), np.int64(0)):
            assert autograd.dropout(X, right) is X
        assert not training or not autograd.dropout(X, 1).to_numpy().any()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: autograd.histogram(X, bins=10**13), "histogram: "),
        (lambda: X.histogram(bins=10**13), "histogram: "),
        (lambda: autograd.pad(X, "reflect", [10**13] * 4), "pad: "),
        (lambda: layer.ReflectionPad1d(10**13)(tensor.ones((1, 1, 8))), "pad: "),
        (lambda: autograd.tensor_split(X, 10**13), "tensor_split: "),
    ],
)
def test_memory_that_there_is_not_is_named(call, message):
    with pytest.raises(OutOfMemoryError, match=f"^{message}"):
        call()
