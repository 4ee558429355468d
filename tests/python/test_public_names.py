"""What a reader of the package finds: names in `__all__` alone, documented, with signatures that
say what can be given."""

import importlib
import inspect
import subprocess
import sys

import pytest
import singa_rs
from singa_rs import autograd, layer, module, tensor

MODULES = (
    "", "autograd", "data", "device", "dist", "errors", "files", "image_tool", "initializer",
    "layer", "linalg", "loss", "metric", "model", "module", "opt", "record", "singa_wrap",
    "snapshot", "sonnx", "tensor", "viz", "compat.image_tool", "compat.layer", "compat.loss",
    "compat.metric", "compat.net", "compat.optimizer", "compat.singa_wrap", "compat.snapshot",
)  # fmt: skip
#: What dir shows beside `__all__`: reading it is not importing it.
SHOWN = {"autograd": {"training"}}

_MODEL = "what it is given goes to the model's own method"
_FIRST = "gets the arguments of the first forward"
#: What takes *args and **kwargs, and why.
VARIADIC = {
    "Layer.forward": "the base: subclasses say what they take",
    "Layer.initialize": _FIRST,
    "PlainSteps.initialize": _FIRST,
    "RNN_Base.initialize": _FIRST,
    "_Cell.initialize": _FIRST,
    "RNN_Base.step_forward": "the base: subclasses say what they take",
    "Identity": "ignores its arguments, whatever they are (PyTorch Identity)",
    "Graphed.plan": _MODEL,
    "Stepped.save_step": _MODEL,
    "Tensor.to": "a dtype, a device or a tensor, in any order (PyTorch to)",
    "where": "has two orders of operands; overloads tell them apart",
}


def home(name):
    return importlib.import_module(f"singa_rs.{name}".rstrip("."))


def is_own(value):
    return (getattr(value, "__module__", None) or "").startswith("singa_rs")


def found():
    """Every public function and class, and the public methods of classes, by name."""
    for name in MODULES:
        for short in home(name).__all__:
            value = getattr(home(name), short)
            if inspect.isclass(value) and is_own(value):
                yield value.__name__, value
                for owner in filter(is_own, value.__mro__):
                    for method, function in vars(owner).items():
                        if not method.startswith("_") and inspect.isfunction(function):
                            yield f"{owner.__name__}.{method}", function
            elif inspect.isroutine(value):
                yield short, value


def signature(value):
    """The signature, None for exceptions and kinds of int, which take what Python's do."""
    if inspect.isclass(value) and issubclass(value, (Exception, int)):
        return None
    return inspect.signature(value)


each_module = pytest.mark.parametrize("name", MODULES)


@each_module
def test_names_in_all_exist_and_are_documented(name):
    names = home(name).__all__
    assert len(set(names)) == len(names)
    for short in names:
        value = getattr(home(name), short)
        if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
            assert inspect.getdoc(value), short


@each_module
def test_dir_shows_what_is_public(name):
    assert set(dir(home(name))) == set(home(name).__all__) | SHOWN.get(name, set())


@each_module
def test_what_a_module_defines_is_public_or_private_by_its_name(name):
    own = home(name).__name__
    made = [
        short
        for short, value in vars(home(name)).items()
        if getattr(value, "__module__", None) == own and not short.startswith("_")
    ]
    inside = {
        "tensor": {"as_shape", "as_array"},
        "errors": {"named", "called", "check_flags", "reraise"},
    }
    inside["errors"] |= {"name_functions", "name_methods", "is_own", "place", "shortened"}
    assert set(made) - set(home(name).__all__) <= inside.get(name, set())


def test_all_modules_are_listed():
    assert {one for one in singa_rs.__all__ if inspect.ismodule(getattr(singa_rs, one))} == {
        one for one in MODULES if one and "." not in one and one != "files"
    }


def test_no_signature_is_bare_but_for_a_reason():
    both = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    bare = set()
    for name, value in found():
        made = signature(value)
        if made is not None and both <= {one.kind for one in made.parameters.values()}:
            bare.add(name)
    assert bare == set(VARIADIC)


def test_a_layer_has_the_signature_of_its_constructor():
    for short in layer.__all__:
        cls = getattr(layer, short)
        if not (isinstance(cls, type) and issubclass(cls, layer.Layer)):
            continue
        want = list(inspect.signature(cls.__init__).parameters)[1:]
        assert list(inspect.signature(cls).parameters) == want, short
    assert list(inspect.signature(layer.Gemm).parameters)[:2] == ["nb_kernels", "alpha"]


def test_the_call_of_a_layer_has_the_signature_of_forward():
    class Net(module.Module):
        def __init__(self, width, depth=2):
            super().__init__()

        def forward(self, x, mask=None):
            return x

    assert str(inspect.signature(Net)) == "(width, depth=2)"
    assert str(inspect.signature(Net(3))) == "(x, mask=None)"
    assert list(inspect.signature(layer.Linear(3)).parameters) == ["x"]


def test_a_placeholder_is_filled_with_the_signatures_of_tensors():
    for name in ("copy_from_numpy", "set_value", "gaussian"):
        want = list(inspect.signature(getattr(tensor.Tensor, name)).parameters)
        assert list(inspect.signature(getattr(tensor.Placeholder, name)).parameters) == want


def test_everything_can_be_imported_by_a_star():
    lines = "\n".join(f"from {home(name).__name__} import *" for name in MODULES)
    subprocess.run([sys.executable, "-c", lines], check=True)


def test_stale_names_are_no_attributes():
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        singa_rs.no_such  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        autograd.no_such  # noqa: B018
    assert "importlib" not in dir(autograd)
