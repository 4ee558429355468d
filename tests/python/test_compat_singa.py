"""The package with SINGA's names, and programs that import it as `singa`."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import singa_rs
from singa_rs import ShapeError, autograd, layer, tensor
from singa_rs.compat import singa
from singa_rs.tensor import from_numpy

MODULES = (
    "autograd", "data", "device", "image_tool", "initializer", "layer", "loss", "metric", "model",
    "module", "net", "opt", "optimizer", "proto.core_pb2", "proto.model_pb2", "singa_wrap",
    "snapshot", "sonnx", "tensor", "utils",
)  # fmt: skip


def python(*arguments, code=None):
    """Runs Python in a process of its own; returns what it prints."""
    given = [*arguments] if code is None else ["-c", code]
    ran = subprocess.run([sys.executable, *given], capture_output=True, text=True, env=os.environ)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def images(shape=(2, 3, 4)):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# ---- modules -------------------------------------------------------------------------------------


def test_the_package_gives_its_modules_on_first_use():
    assert singa.autograd.relu is autograd.relu
    assert singa.tensor.Tensor is tensor.Tensor
    with pytest.raises(AttributeError, match="'no_such_module'"):
        _ = singa.no_such_module


@pytest.mark.parametrize("name", ["autograd", "layer", "opt", "sonnx", "tensor"])
def test_modules_list_what_they_have(name):
    module = getattr(singa, name)
    found = dict(inspect.getmembers(module))
    assert found.keys() == set(dir(module))
    assert {k for k in dir(getattr(singa_rs, name)) if k[0] != "_"} <= found.keys()


def test_training_is_one_switch():
    assert singa.autograd.training is False
    singa.autograd.training = True
    try:
        assert autograd.training is True
    finally:
        autograd.training = False
    assert singa.autograd.training is False


def test_names_that_begin_with_an_underscore_are_there():
    assert singa.autograd._and is autograd._and
    assert singa.singa_wrap.__add__(from_numpy(images()), 1.0).shape() == (2, 3, 4)


# ---- importing as singa --------------------------------------------------------------------------


def test_nothing_is_installed_unless_asked_for():
    code = "import sys, singa_rs.compat.singa, importlib.util as u; print(u.find_spec('singa'))"
    assert python(code=code) == "None\n"


def test_install_lets_programs_import_singa():
    imports = "\n".join(f"exec('from singa.{m} import *', {{}})" for m in MODULES)
    own = "sys.modules['singa_rs.compat.singa.' + m]"
    check = f"all(sys.modules['singa.' + m] is {own} for m in {MODULES})"
    start = "import sys\nfrom singa_rs.compat.singa import install\ninstall()"
    code = f"{start}\n{imports}\nprint({check})"
    assert python(code=code) == "True\n"


def test_modules_keep_their_own_names_and_specs():
    code = """
from singa_rs.compat.singa import install
install()
install()
import singa, singa.opt
print(singa.__name__, singa.__spec__.name, singa.opt.__name__, singa.opt.__spec__.name)
"""
    assert set(python(code=code).split()) == {"singa_rs.compat.singa", "singa_rs.compat.singa.opt"}


def test_modules_that_singa_has_not_are_missing():
    code = """
from singa_rs.compat.singa import install
install()
try:
    import singa.no_such_module
except ModuleNotFoundError as error:
    print(error)
"""
    assert python(code=code) == "No module named 'singa.no_such_module'\n"


def test_another_package_singa_is_not_replaced(tmp_path):
    (tmp_path / "singa.py").write_text("")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import singa
from singa_rs.compat.singa import install
try:
    install()
except ImportError as error:
    print(error)
"""
    assert "singa.py" in python(code=code)


def test_a_script_runs_unchanged(tmp_path):
    (tmp_path / "beside.py").write_text("from singa import tensor\n")
    script = tmp_path / "train.py"
    script.write_text(
        "import json, sys\nfrom singa import opt\nimport beside\n"
        "print(json.dumps([__name__, sys.argv, opt.SGD.__module__, beside.tensor.__name__]))\n"
    )
    name, argv, home, beside = json.loads(
        python("-m", "singa_rs.compat.singa", str(script), "-n", "3")
    )
    assert (name, argv) == ("__main__", [str(script), "-n", "3"])
    assert home == "singa_rs.opt.sgd" and beside == "singa_rs.compat.singa.tensor"


def test_a_module_runs_unchanged(tmp_path):
    (tmp_path / "program.py").write_text("import sys, singa\nprint(sys.argv[1:], __name__)\n")
    given = ["-m", "singa_rs.compat.singa", "-m", "program", "-x"]
    ran = subprocess.run([sys.executable, *given], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "['-x'] __main__\n", ran.stderr


@pytest.mark.parametrize("given", [[], ["-x"], ["-m"], ["missing.py"]])
def test_what_is_not_a_program_is_refused(given):
    command = [sys.executable, "-m", "singa_rs.compat.singa", *given]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 1 and "singa_rs.compat.singa" in ran.stderr
    assert "Traceback" not in ran.stderr


# ---- conflicts -----------------------------------------------------------------------------------


def coerced(x, axis):
    """Softmax over the axes from `axis` on, in NumPy."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_softmax_goes_over_all_axes_from_one_on(axis):
    x, dy = images(), images()[::-1].copy()
    t = from_numpy(x)
    t.stores_grad = True
    with autograd._training_scope(True):
        y = singa.autograd.softmax(t, axis)
        (dx,) = autograd.gradients((y * from_numpy(dy)).sum()).values()
    want = coerced(x.astype(np.float64), axis)
    np.testing.assert_allclose(y.to_numpy(), want, rtol=1e-5)
    axes = tuple(range(axis % 3, 3))
    grad = want * (dy - (dy * want).sum(axes, keepdims=True))
    np.testing.assert_allclose(dx.to_numpy(), grad, rtol=1e-4, atol=1e-6)


def test_softmax_names_an_axis_that_there_is_not():
    with pytest.raises(ValueError, match="softmax: .*3"):
        singa.autograd.softmax(from_numpy(images()), 3)
    with pytest.raises(TypeError, match="softmax: got 3 for x"):
        singa.autograd.softmax(3)


@pytest.mark.parametrize(
    ("repeats", "want"),
    [
        (2, (4, 3, 4)),
        ([2], (4, 3, 4)),
        ([2, 3], (4, 9, 4)),
        ([5, 1, 1, 2], (5, 2, 3, 8)),
        (0, (0, 3, 4)),
    ],
)
def test_tile_repeats_from_the_first_axis_on(repeats, want):
    x = images()
    t = from_numpy(x)
    t.stores_grad = True
    given = [repeats] if isinstance(repeats, int) else repeats
    with autograd._training_scope(True):
        y = singa.autograd.tile(t, repeats)
        (dx,) = autograd.gradients(y.sum()).values()
    expected = np.tile(x, given + [1] * (3 - len(given)))
    assert y.shape == want == expected.shape
    np.testing.assert_array_equal(y.to_numpy(), expected)
    np.testing.assert_array_equal(dx.to_numpy(), np.full(x.shape, np.prod(given)))


@pytest.mark.parametrize("name", ["max", "mean", "min", "sum"])
def test_functions_of_several_tensors_leave_one_as_it_is(name):
    x, dy = from_numpy(images()), from_numpy(images() * 2)
    x.stores_grad = True
    function = getattr(singa.autograd, name)
    with autograd._training_scope(True):
        one = function(x)
        (dx,) = autograd.gradients((one * dy).sum()).values()
    np.testing.assert_array_equal(one.to_numpy(), images())
    np.testing.assert_array_equal(dx.to_numpy(), images() * 2)
    both = getattr(autograd, name)(x, dy)
    np.testing.assert_array_equal(function(x, dy).to_numpy(), both.to_numpy())
    with pytest.raises(TypeError, match=name):
        function(x, axis=1)


def test_layers_follow_singas_rules():
    x = from_numpy(images())
    np.testing.assert_allclose(singa.layer.SoftMax()(x).to_numpy(), coerced(x.to_numpy(), 1), 1e-5)
    assert singa.layer.BatchNorm2d(3).momentum == 0.9 and layer.BatchNorm2d(3).momentum == 0.1
    assert singa.layer.BatchNorm2d(3, 0.2).momentum == 0.2
    assert singa.autograd.BatchNorm2d is singa.layer.BatchNorm2d
    assert singa.autograd.Linear is singa.layer.Linear


def test_linear_and_conv2d_ignore_further_keywords_with_a_warning():
    with pytest.warns(UserWarning, match="Linear: ignores cudnn_prefer, mode") as told:
        one = singa.layer.Linear(4, bias=False, cudnn_prefer="fastest", mode=1)
    assert told[0].filename == __file__
    assert one(from_numpy(images())).shape == (2, 3, 4) and not one.bias
    with pytest.warns(UserWarning, match="Conv2d: ignores workspace"):
        two = singa.layer.Conv2d(3, 5, 2, stride=2, workspace=3)
    assert two(from_numpy(images((1, 3, 4, 4)))).shape == (1, 5, 2, 2)
    with pytest.raises(TypeError, match="Linear"):
        layer.Linear(4, mode=1)
    with pytest.raises(ValueError, match="Linear: out_features"):
        singa.layer.Linear(0)


def test_results_of_functions_of_raw_tensors_are_tensors():
    made = singa.tensor._call_singa_func(singa.singa_wrap.Ceil, from_numpy(images()).data)
    assert type(made) is tensor.Tensor
    np.testing.assert_array_equal(made.to_numpy(), np.ceil(images()))


# ---- utils ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("progress", "bar"),
    [
        (0.25, "[.....               ] 25.0% loss 1"),
        (np.float32(0.5), "[..........          ] 50.0% loss 1"),
        (0, "[                    ] 0.0% loss 1"),
        (2, "[....................] 100.0% Done. loss 1"),
        (-1.0, "[                    ] 0.0% Halt. loss 1"),
    ],
)
def test_progress_is_shown_on_one_line(capsys, progress, bar):
    singa.utils.update_progress(progress, "loss 1")
    assert capsys.readouterr().out == bar + "\b" * len(bar)


def test_progress_that_is_none():
    with pytest.raises(TypeError, match="update_progress: progress: got 'x', want a number"):
        singa.utils.update_progress("x", "")
    with pytest.raises(ValueError, match="update_progress: progress: got nan"):
        singa.utils.update_progress(float("nan"), "")


SIDES = (1, 0, 2, 1)


@pytest.mark.parametrize("name, sizes", [
    ("Conv2d", (3, 3, 3, 1)), ("SeparableConv2d", (3, 3, 3, 1)), ("Pooling2d", (3, 1)),
    ("MaxPool2d", (3, 1)), ("AvgPool2d", (3, 1)),
])  # fmt: skip
def test_four_paddings_are_top_bottom_left_right(name, sizes):
    x, cls = from_numpy(images((1, 3, 5, 5))), getattr(singa.layer, name)
    assert isinstance(cls(*sizes), getattr(layer, name))
    for made in (cls(*sizes, SIDES), cls(*sizes, padding=list(SIDES))):
        assert made(x).shape == (1, 3, 4, 6)
    assert getattr(layer, name)(*sizes, padding=SIDES)(x).shape == (1, 3, 6, 4)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    ("kernel", "stride"), [((4, 3), (1, 2)), ((2, 5), (3, 1)), ((1, 1), (2, 4))]
)
def test_paddings_of_windows_are_those_of_layers(mode, kernel, stride):
    size = (9, 10)
    out = singa.utils.get_output_shape(mode, size, kernel, stride)
    pool = layer.MaxPool2d(kernel, stride, pad_mode=mode)
    assert pool(from_numpy(images((1, 1, *size)))).shape[2:] == tuple(out)
    whole, odd = singa.utils.get_padding_shape(mode, size, kernel, stride)
    for axis in range(2):
        start, end = (whole[2 * axis + i] + odd[2 * axis + i] for i in range(2))
        needed = (out[axis] - 1) * stride[axis] + kernel[axis] - size[axis]
        assert start + end == max(needed, 0)
        assert (end - start if mode == "SAME_UPPER" else start - end) in (0, 1)


def test_extents_without_padding():
    assert singa.utils.get_output_shape("VALID", [9, 10], [3, 4], [2, 3]) == [4, 3]
    with pytest.raises(ValueError, match="get_output_shape: auto_pad: got 'same'"):
        singa.utils.get_output_shape("same", [9], [3], [2])
    with pytest.raises(ShapeError, match=r"got \[2, 1, 1\] extents"):
        singa.utils.get_padding_shape("SAME_UPPER", [9, 9], [3], [2])


def test_bytes_and_strings_are_strings():
    assert singa.utils.force_unicode("é".encode()) == "é" == singa.utils.force_unicode("é")


# ---- SINGA 1.x -----------------------------------------------------------------------------------


def test_nets_of_singa_1_have_their_layers_beside_those_of_today():
    net = singa.net.FeedForwardNet(singa.loss.SoftmaxCrossEntropy(), singa.metric.Accuracy())
    net.add(singa.layer.Dense("hidden", 5, input_sample_shape=(2, 3)[1:]))
    net.add(singa.layer.Dropout("drop", 0.5))
    net.add(singa.layer.Flatten("flat"))
    assert net.forward(False, from_numpy(images((4, 3)))).shape == (4, 5)
    assert net.param_names() == ["hidden/weight", "hidden/bias"]


def test_layers_without_a_name_are_those_of_today():
    assert isinstance(singa.layer.Dropout(0.3), layer.Dropout)
    assert singa.layer.Dropout(ratio=0.3).ratio == 0.3
    flat = singa.layer.Flatten(2)
    assert type(flat) is singa.layer.Flatten
    assert flat(from_numpy(images())).shape == (6, 4)
    assert singa.layer.Layer is layer.Layer


def test_classes_of_layers_and_models_have_singas_names():
    assert isinstance(singa.layer.Linear, singa.layer.LayerMeta)
    assert isinstance(singa.model.Model, singa.model.ModelMeta)


def test_the_frontend_writes_what_the_tape_has():
    given = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    x = from_numpy(given)
    with autograd._training_scope(True):
        y = autograd.relu(autograd.add(x, x))
    model = singa.sonnx.SingaFrontend.singa_to_onnx_model([x], [y], "doubled")
    assert model.graph.name == "doubled"
    (got,) = singa.sonnx.prepare(model).run([given])
    np.testing.assert_array_equal(got, np.maximum(2 * given, 0))
    graph = singa.sonnx.SingaFrontend.singa_to_onnx_graph([x], [y])
    assert [node.op_type for node in graph.node] == [node.op_type for node in model.graph.node]


def test_axes_of_a_method_are_named():
    x = singa.tensor.from_numpy(images())
    want = singa.tensor.transpose(x, axes=(2, 0, 1))
    assert x.transpose(axes=(2, 0, 1)).tolist() == want.tolist()
    assert singa.tensor.ones((2, 3)).transpose(axes=(0, 1)).shape == (2, 3)
    for wrong in ({"axes": (1, 0), "dim0": 0, "dim1": 1}, {"axes": (1, 0, 2), "dim0": 0}):
        with pytest.raises(TypeError, match="transpose: got 0 axes, dim0 0"):
            x.transpose(**wrong)
    with pytest.raises(TypeError, match=r"transpose: got \(1,\) and axes \(0, 1, 2\)"):
        x.transpose(1, axes=(0, 1, 2))


ABSENT = [
    (singa.sonnx, "onnx_type_to_singa_type OnnxNode OnnxAttributes"),
    (singa.sonnx.SingaFrontend, "singa_op_to_onnx_node handle_special_ops"),
    (singa.sonnx.SingaRep, "initialize init_tensor_count to_input_tensor to_output_tensor get_s"),
    (autograd.Operator, "forward backward op_count src y_id2idx requires_grad"),
    (singa.model.Model, "train_one_batch sequential MODEL_STATE_TYPE AUX_STATE_TYPE"),
    (singa.model.Model, "TENSOR_DICT_FILENAME STATES_ATTR_FILENAME"),
    (singa.tensor.Tensor, "tensor_count"),
    (singa.model.ModelMeta, "init_wrapper forward_wrapper buffer_operation"),
]


@pytest.mark.parametrize(("owner", "names"), ABSENT)
def test_names_that_are_not_there_stand_on_the_page(owner, names):
    page = (Path(__file__).parents[2] / "docs" / "coming-from-singa.md").read_text()
    for name in names.split():
        assert not hasattr(owner, name)
        assert re.search(rf"^\| .*`([\w.]+\.)?{name}`.* \|", page, re.M)


def test_variables_of_nets_are_assigned_where_they_are_read():
    from singa_rs.compat import net

    assert singa.net is net and not net.verbose
