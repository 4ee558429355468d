"""Writes target/reference.json, from which `make site` makes the pages of the reference: the public
modules, their names and docstrings, and tested examples.

    python tests/python/reference.py

Signatures are read from the sources and stubs. Docstrings are those that the package has when it is
loaded, as functions that tables make have none in a source.
"""

import inspect
import json
from importlib import import_module
from pathlib import Path

import doc_examples
import singa_rs

ROOT = Path(__file__).parents[2]
FILE = ROOT / "target" / "reference.json"
#: Public modules that are no attributes of the package.
MORE = ["files", *(f"compat.{name}" for name in "layer loss metric net optimizer".split())]


def modules():
    """The names of the public modules; the package itself is the empty one."""
    found = [name for name in singa_rs.__all__ if inspect.ismodule(getattr(singa_rs, name))]
    return ["", *sorted({*found, *MORE})]


def home(name):
    """A module by its name within the package."""
    return import_module(f"singa_rs.{name}".rstrip("."))


def is_shown(name, value):
    """Whether the reference has the name of a module: other modules have pages of their own."""
    return not inspect.ismodule(value) and name[0] != "_"


def methods(cls):
    """The docstrings of a class's public methods and properties."""
    found = {}
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        if name[0] != "_" and (callable(value) or isinstance(value, property)):
            found[name] = inspect.getdoc(value) or ""
    return found


def entry(name, value, examples):
    """What the reference says of a name, beside its signature. Examples of methods that a class
    inherits are found under the class."""
    is_class = inspect.isclass(value)
    is_documented = is_class or inspect.isroutine(value)
    return {
        "doc": (inspect.getdoc(value) or "") if is_documented else "",
        "example": examples.get(name, ""),
        "methods": methods(value) if is_class else {},
        "examples": {
            one.partition(".")[2]: text
            for one, text in examples.items()
            if one.startswith(f"{name}.")
        },
    }


def page(name):
    """The public names of a module."""
    module, text = home(name), doc_examples.files().get(name, "")
    first, examples = doc_examples.parts(text)
    shown = {one: getattr(module, one) for one in sorted(module.__all__)}
    names = {
        one: entry(one, value, examples) for one, value in shown.items() if is_shown(one, value)
    }
    return {"doc": inspect.getdoc(module), "first": first.strip(), "names": names}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps({name: page(name) for name in modules()}, indent=1))
