"""Names of other libraries that a module lacks: the error says what they are called here."""

import subprocess
import sys

import numpy as np
import pytest
import singa_rs
from singa_rs import autograd, data, device, initializer, layer, loss, metric, module, opt, tensor

WANT = {
    (singa_rs, "no_grad"): "autograd.no_grad",
    (singa_rs, "relu"): "autograd.relu",
    (singa_rs, "Linear"): "layer.Linear",
    (singa_rs, "manual_seed"): "singa_rs.set_seed",
    (singa_rs, "nn"): "singa_rs.layer",
    (singa_rs, "optim"): "singa_rs.opt",
    (singa_rs, "save"): "Module.save",
    (tensor, "tensor"): "Tensor(data=values)",
    (tensor, "cat"): "autograd.cat",
    (tensor, "where"): "autograd.where",
    (autograd, "grad"): "autograd.gradients",
    (autograd, "bce_with_logits"): "autograd.binary_cross_entropy_with_logits",
    (autograd, "softmx"): "autograd.softmax",
    (layer, "MultiheadAttention"): "layer.MultiHeadAttention",
    (layer, "Softmax"): "layer.SoftMax",
    (layer, "Dense"): "layer.Linear",
    (layer, "Module"): "module.Module",
    (opt, "RMSprop"): "opt.RMSProp",
    (opt, "Adagrad"): "opt.AdaGrad",
    (opt, "StepLR"): "opt.StepDecay",
    (opt, "CosineAnnealingLR"): "opt.CosineDecay",
    (opt, "ExponentialLR"): "opt.ExponentialDecay",
    (opt, "ReduceLROnPlateau"): "opt.OnPlateau",
    (opt, "ASGD"): "opt.MovingAverage",
    (opt, "RAdam"): "opt.AdamW",
    (opt, "SequentialLR"): "opt.warmup",
    (layer, "utils"): "opt.clip_grad_norm",
    (layer, "init"): "singa_rs.initializer",
    (singa_rs, "utils"): "singa_rs.data",
    (loss, "MSELoss"): "layer.MSELoss",
    (loss, "CrossEntropyLoss"): "layer.CrossEntropyLoss",
    (data, "Dataset"): "data.DataLoader",
    (metric, "accuracy_score"): "metric.accuracy(outputs, targets)",
    (metric, "roc_auc_score"): "metric.roc_auc(outputs, targets)",
    (singa_rs, "set_num_threads"): "device.get_default_device().set_num_threads(threads)",
    (metric, "AccuracyMetric"): None,
    (initializer, "xavier_uniform_"): "initializer.glorot_uniform",
    (device, "cuda"): "device.create_cuda_gpu()",
    (singa_rs, "nothing_of_the_kind"): None,
    (opt, "__wrapped__"): None,
}


@pytest.mark.parametrize(("home", "name"), WANT)
def test_the_error_says_what_it_is_called_here(home, name):
    with pytest.raises(AttributeError) as caught:
        getattr(home, name)
    text, want = str(caught.value), WANT[home, name]
    assert text.startswith(f"module {home.__name__!r} has no attribute {name!r}")
    assert "want" not in text if want is None else f"; want {want}" in text


@pytest.mark.parametrize("want", sorted({want for want in WANT.values() if want}))
def test_what_is_wanted_exists(want):
    home, _, name = want.partition("(")[0].rpartition(".")
    roots = {"singa_rs": singa_rs, "": tensor, "Module": singa_rs.module.Module}
    assert hasattr(roots[home] if home in roots else getattr(singa_rs, home), name)


OF_OBJECTS = {
    ("Tensor", "type"): "astype",
    ("Tensor", "is_cuda"): "device",
    ("Tensor", "gather"): "autograd.take_along_axis",
    ("Tensor", "matmul"): "autograd.matmul",
    ("Tensor", "retain_grad"): "autograd.gradients",
    ("Tensor", "nothing"): None,
    ("Linear", "parameters"): "get_params",
    ("Linear", "state_dict"): "get_states",
    ("Linear", "weight"): "W",
    ("Linear", "nothing"): None,
    ("Module", "to"): "to_device",
    ("Module", "predict"): "eval",
    ("SGD", "param_groups"): "lr",
    ("SGD", "load_state_dict"): "set_states",
    ("SGD", "zero_grad"): "nothing",
    ("SGD", "learning_rate"): "lr",
    ("SGD", "nothing"): None,
    ("Accuracy", "update_state"): "update",
    ("Accuracy", "result"): "compute",
    ("Accuracy", "nothing"): None,
}


@pytest.mark.parametrize(("kind", "name"), OF_OBJECTS)
def test_objects_say_it_too(kind, name):
    made = {
        "Tensor": tensor.zeros((2,)),
        "Linear": layer.Linear(2),
        "Module": singa_rs.module.Module(),
        "SGD": opt.SGD(0.1),
        "Accuracy": metric.Accuracy(),
    }[kind]
    if kind == "Linear":
        made(np.zeros((1, 2), np.float32))
    with pytest.raises(AttributeError) as caught:
        getattr(made, name)
    text, want = str(caught.value), OF_OBJECTS[kind, name]
    assert text.startswith(f"{kind!r} object has no attribute {name!r}")
    assert "want" not in text if want is None else f"; want {want}" in text
    if want not in (None, "nothing"):
        assert hasattr(autograd if "." in want else made, want.rpartition(".")[2])


def test_layers_name_what_modules_alone_have():
    with pytest.raises(AttributeError, match=r"'to'; want Module\.to_device\(device\)"):
        layer.Linear(2).to("cpu")
    for name in ("eval", "train"):
        with pytest.raises(AttributeError, match=rf"'{name}'; want Module\.eval\(\) and train\(\)"):
            getattr(layer.BatchNorm2d(), name)


def test_what_gradients_begin_with_is_told():
    """`loss.backward()` adds to what is there, as in PyTorch."""
    with pytest.raises(AttributeError, match=r"optimizer\(loss\).*p\.grad = None of each"):
        opt.SGD(0.1).zero_grad()


def test_looking_for_a_name_imports_nothing_that_is_not_asked_for():
    program = "import sys, singa_rs\nhasattr(singa_rs, '__wrapped__')\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "singa_rs.layer" not in done.stdout.split(), done.stderr


def test_importing_the_package_imports_nothing_large():
    """Each of these would lengthen the import by a tenth or more; most programs need none."""
    large = {
        "email",
        "hashlib",
        "html",
        "json",
        "logging",
        "importlib.metadata",
        "importlib.resources",
        "onnx",
        "zipfile",
    }
    program = (
        "import sys, numpy\nbefore = {*sys.modules}\nimport singa_rs\n"
        "print(*{*sys.modules} - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not large & set(done.stdout.split()), done.stderr
    assert "singa_rs.autograd" in done.stdout.split()


def test_in_compares_elements():
    t = tensor.from_numpy(np.arange(6).reshape(2, 3))
    assert 3 in t
    assert 7 not in t
    assert np.int64(5) in t
    assert None not in t
    assert [0, 1, 2] in t  # broadcast, as NumPy does


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.linear = layer.Linear(2)

    def forward(self, x):
        return self.linear(x)

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


X, Y = np.ones((4, 3), np.float32), np.ones((4, 2), np.float32)
#: Calls with arguments of other libraries, and what each message says is wanted.
ARGUMENTS = {
    "model.optimizer = optimizer": lambda: Net().compile([X], optimizer=opt.SGD(0.1)),
    "a loss that train_one_batch": lambda: Net().compile([X], loss="mse"),
    "progress=": lambda: Net().fit((X, Y), verbose=0),
    "validation=": lambda: Net().fit((X, Y), validation_data=(X, Y)),
    "x and y in one argument": lambda: Net().fit(X, Y, epochs=2),
    "params= by name": lambda: opt.Adam([tensor.Tensor((2,))], lr=0.1),
    "lr, momentum": lambda: opt.SGD(0.1, nesterof=True),
    "ratio": lambda: layer.Dropout(p=0.5),
    r"\(in, out, kernel\)": lambda: layer.Conv2d(in_channels=3, out_channels=8, kernel_size=3),
    "input_dim, output_dim": lambda: layer.Embedding(num_embeddings=5, embedding_dim=2),
    "collate=": lambda: data.DataLoader((X, Y), collate_fn=list),
    r"data.Subset\(dataset, indices\)": lambda: data.DataLoader((X, Y), sampler=[0]),
    "group=": lambda: layer.Conv2d(4, 8, 3, groups=2),
    "a layer before it": lambda: layer.Conv2d(4, 3, padding_mode="reflect"),
    'coordinates="align_corners"': lambda: layer.Upsample(2, "bilinear", align_corners=True),
    "size=, which True stands for": lambda: autograd.interpolate(
        tensor.ones((1, 1, 2, 2)), scale_factor=2, recompute_scale_factor=True
    ),
    "epsilon=": lambda: opt.Adam(0.1, eps=1e-6),
    "beta_1=, beta_2=": lambda: opt.Adam(0.1, betas=(0.9, 0.99)),
    "decay_steps=": lambda: opt.CosineDecay(0.1, T_max=5),
    "k": lambda: metric.TopKAccuracy(top=3),
    r"ReLU\(\.\.\.\), which is then called": lambda: layer.ReLU(tensor.Tensor((2,))),
    "weights as a third array": lambda: Net().fit((X, Y), sample_weight=Y),
    r"tensor\.Placeholder\(\(4, 3\)\)": lambda: Net().compile([(4, 3)]),
    "t.requires_grad = True": lambda: tensor.randn((2,), requires_grad=True),
    r"these, as a call in training is a step, or eval\(\)": lambda: Net()(X),
}


@pytest.mark.parametrize("want", ARGUMENTS)
def test_arguments_of_other_libraries_are_refused_with_what_is_wanted(want):
    with pytest.raises(TypeError, match=f"want.* {want}" if " " not in want else want) as caught:
        ARGUMENTS[want]()
    assert "\n" not in str(caught.value)


def test_errors_from_inside_a_call_are_as_they_are():
    class Strict(Net):
        def train_one_batch(self, x, y):
            return self.forward(x, y=y)

    with pytest.raises(TypeError, match="unexpected keyword argument 'y'$"):
        Strict()(X, Y)


def test_a_model_without_an_optimizer_says_how_to_give_it_one():
    with pytest.raises(AttributeError, match=r"'optimizer'; want model\.optimizer = opt\.SGD"):
        Net()(X, Y)


def test_an_optimizer_has_no_learning_rate_beside_lr():
    sgd = opt.SGD(0.1)
    with pytest.raises(AttributeError, match="'learning_rate'; want lr"):
        sgd.learning_rate = 0.5


def test_fixed_attributes_of_a_loader_are_not_changed():
    loader = data.DataLoader((X, Y), 2)
    with pytest.raises(AttributeError, match="DataLoader: batch_size cannot be changed"):
        loader.batch_size = 4
    assert [len(x) for x, _ in loader] == [2, 2]


def test_numbers_in_lists_are_not_taken_for_batches():
    for given in ((X.tolist(), Y.tolist()), [[1.0, 2.0], [3.0, 4.0]], [1, 2, 3]):
        with pytest.raises(TypeError, match="got numbers in a .*, want arrays in a tuple"):
            Net().fit(given, 1, progress=False)
        with pytest.raises(TypeError, match="got numbers in a .*, want arrays in a tuple"):
            Net().fit((X, Y), 1, validation=given, progress=False)


@pytest.mark.parametrize("wrong", ["no", "False", None, 0.0, [], np.zeros(2)])
def test_flags_are_bools(wrong):
    with pytest.raises(TypeError, match="training: got .*, want a bool"):
        autograd.training = wrong
    with pytest.raises(TypeError, match="stores_grad: got .*, want a bool"):
        tensor.zeros((2,)).stores_grad = wrong
    with pytest.raises(TypeError, match="requires_grad: got .*, want a bool"):
        tensor.Tensor((2,), requires_grad=wrong)
    with pytest.raises(TypeError, match="Linear: bias: got .*, want a bool"):
        layer.Linear(2, bias=wrong)
    with pytest.raises(TypeError, match="is_train: got .*, want a bool"):
        Net().compile([X], is_train=wrong)


def test_a_model_moves_to_a_device_by_its_name():
    net = Net()
    net.compile([X])
    net.to_device("cpu")
    assert net.device is net.linear.W.device
    with pytest.raises(TypeError, match="to_device: got 3"):
        net.to_device(3)


def test_a_format_is_of_one_element():
    assert f"{tensor.ones((1, 1)):.2f}" == "1.00"
    with pytest.raises(ValueError, match=r"format: got shape \(2,\) for '.2f', want one element"):
        f"{tensor.ones((2,)):.2f}"


def test_a_mode_that_is_another_function():
    with pytest.raises(ValueError, match="got mode 'area' for 1 axes, want adaptive_avg_pool"):
        autograd.interpolate(tensor.ones((1, 1, 4)), 2, mode="area")
