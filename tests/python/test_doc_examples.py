"""The examples of docs/examples print what they say; the reference has every public name."""

import doctest
import inspect

import doc_examples
import pytest
import reference
import test_public_names
from doc_examples import parts, space
from singa_rs import autograd, dist

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
        assert name in reference.home(module).__all__ and name in example, name
        assert max(map(len, example.splitlines())) <= 100, name


def is_shown(value):
    """Whether a name should have an example: operators' classes are what functions are made of."""
    if inspect.isclass(value):
        return not issubclass(value, (Exception, autograd.Operator, autograd.Gradients))
    return inspect.isroutine(value)


def has_example(value):
    """Whether what a name means has an example, under this or another name."""
    return any(value is getattr(reference.home(module), name) for module, name in EXAMPLES)


@pytest.mark.parametrize("module", reference.modules())
def test_each_name_has_an_example(module):
    names = reference.page(module)["names"]
    found = {name: getattr(reference.home(module), name) for name in names}
    assert not [name for name, one in found.items() if is_shown(one) and not has_example(one)]


@pytest.mark.parametrize("module", reference.modules())
def test_the_reference_has_every_public_name(module):
    """Those that are modules have pages of their own. The build looks for all of them."""
    missing = set(reference.home(module).__all__) - set(reference.page(module)["names"])
    assert missing <= {*reference.modules(), "rows"}


def test_the_reference_has_every_public_module():
    again = {f"compat.{name}" for name in ("image_tool", "singa_wrap", "snapshot")}
    assert set(reference.modules()) == set(test_public_names.MODULES) - again
