"""The examples of docs/examples print what they say; the reference has every public name."""

import doctest
import inspect
import re

import doc_examples
import pytest
import reference
import test_public_names
from doc_examples import parts, space
from singa_rs import autograd, dist, linalg, tensor

FILES = doc_examples.files()
EXAMPLES = [(name, one) for name, text in FILES.items() for one in parts(text)[1]]


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    autograd.training = False
    dist.shutdown()


@pytest.mark.parametrize(("module", "name"), EXAMPLES)
def test_an_example_prints_what_it_says(module, name):
    """After a change, `python tests/python/doc_examples.py` writes what is printed again."""
    first, examples = parts(FILES[module])
    test = doc_examples.PARSER.get_doctest(examples[name], space(first), name, None, 0)
    with doc_examples.few_digits(), doc_examples.in_a_folder():
        failed, _ = doctest.DocTestRunner(verbose=False).run(test)
    assert not failed


@pytest.mark.parametrize("module", FILES)
def test_examples_use_what_they_show(module):
    for name, example in parts(FILES[module])[1].items():
        head, _, method = name.partition(".")
        assert head in reference.home(module).__all__, name
        assert uses(example, method) if method else head in example, name
        assert max(map(len, example.splitlines())) <= 100, name


def is_shown(value):
    """Whether a name should have an example: operators' classes are what functions are made of."""
    if inspect.isclass(value):
        return not issubclass(value, (Exception, autograd.Operator, autograd.Gradients))
    return inspect.isroutine(value)


def meant(module, name):
    """What the head of an example's name means."""
    return getattr(reference.home(module), name.partition(".")[0])


def has_example(value):
    """Whether what a name means has an example, under this or another name."""
    return any(value is meant(*one) for one in EXAMPLES if "." not in one[1])


@pytest.mark.parametrize("module", reference.modules())
def test_each_name_has_an_example(module):
    names = reference.page(module)["names"]
    found = {name: getattr(reference.home(module), name) for name in names}
    assert not [name for name, one in found.items() if is_shown(one) and not has_example(one)]


#: Methods without an example of their own, by the class that has them first, and why.
_OF_THE_ENGINE = "takes what the engine has recorded, which no public name returns"
_CALLED = "called by the package while it records"
WITHOUT = {
    "Operations.note": _CALLED,
    "Options.graph_of": _OF_THE_ENGINE,
    "Options.recorded": _OF_THE_ENGINE,
    "Options.unconstrained": _OF_THE_ENGINE,
    "Options.unverified": _OF_THE_ENGINE,
    "Options.verified": _OF_THE_ENGINE,
    "GraphFunction.fast_path": _CALLED,
    "GraphFunction.result_bytes": "imported models ask for it",
    "Taps.of_layer": "Module.tap calls it, and has an example",
    "Taps.open": "Taps.at and Module.tap call it, and have examples",
}


def uses(example, method):
    """Whether an example uses a method, or defines it in a class of its own."""
    return re.search(rf"(\.|\bdef ){method}\b", example) is not None


def first(cls, method):
    """The first of the package's classes that a class has a method from; None if it has it from
    elsewhere, as Python's int."""
    owners = [one for one in cls.__mro__ if method in vars(one)]
    own = [one for one in owners if one.__module__.startswith("singa_rs")]
    return own[-1] if own and owners[0] in own else None


def is_function(owner, method):
    """Whether a method of tensors is a function, or writes what a function returns in place: the
    function has the example."""
    homes = [home for home in (autograd, linalg, tensor) if method.rstrip("_") in home.__all__]
    return issubclass(tensor.Tensor, owner) and bool(homes)


OF_CLASSES = [
    (meant(module, name), text)
    for module, file in FILES.items()
    for name, text in parts(file)[1].items()
    if inspect.isclass(meant(module, name))
]


def is_used(owner, method):
    """Whether an example of a class that has a method uses it."""
    return any(uses(text, method) for cls, text in OF_CLASSES if issubclass(cls, owner))


def public_methods(module):
    """The methods of a module's classes, each with the class that has it first."""
    for name in reference.page(module)["names"]:
        value = getattr(reference.home(module), name)
        if inspect.isclass(value) and is_shown(value):
            found = ((first(value, one), one) for one in reference.methods(value))
            yield from ((owner, one) for owner, one in found if owner is not None)


def lacking(module):
    """The public methods of a module's classes that no example uses."""
    for owner, method in sorted({*public_methods(module)}, key=str):
        if not is_function(owner, method) and not is_used(owner, method):
            yield f"{owner.__name__}.{method}"


@pytest.mark.parametrize("module", reference.modules())
def test_each_method_has_an_example(module):
    assert not [name for name in lacking(module) if name not in WITHOUT]


def test_what_is_said_to_have_no_example_has_none():
    assert {name for module in reference.modules() for name in lacking(module)} == {*WITHOUT}


@pytest.mark.parametrize("module", reference.modules())
def test_the_reference_has_every_public_name(module):
    """Those that are modules have pages of their own. The build looks for all of them."""
    missing = set(reference.home(module).__all__) - set(reference.page(module)["names"])
    missing = {name for name in missing if not name.startswith("__")}  # SINGA's operators
    assert missing <= {*reference.modules(), "rows"}


def test_the_reference_has_every_public_module():
    again = {f"compat.{name}" for name in ("image_tool", "singa_wrap", "snapshot")}
    assert set(reference.modules()) == set(test_public_names.MODULES) - again
