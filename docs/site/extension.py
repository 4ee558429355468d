"""Completes what griffe reads from the sources: docstrings of functions that tables make, functions
of which a stub has overloads alone or whose files are called as they are, and examples."""

import json
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[2]


class Reference(griffe.Extension):
    """Adds to the package what target/reference.json says."""

    def on_package(self, *, pkg, loader, **kwargs):
        """Called once the package has been read."""
        read = {"parser": loader.docstring_parser, "parser_options": loader.docstring_options}
        for name, page in json.loads((ROOT / "target/reference.json").read_text()).items():
            module = pkg[name] if name else pkg
            add_from_stub(module)
            module.docstring = None  # the page begins with it
            for short, entry in page["names"].items():
                complete(own(module, short), entry, read)


def stub(module):
    """What the stub of a module says, None if it has none."""
    path = Path(module.filepath).with_suffix(".pyi")
    return griffe.visit(module.name, path, path.read_text()) if path.exists() else None


def add_from_stub(module):
    """Functions and methods that have overloads and nothing else take the form of the first one.
    Functions that are called as their files are stand in place of these."""
    found = stub(module)
    if found is None:
        return
    for name, function in found.functions.items():
        if name in module.modules:
            module.set_member(name, function)
    add_first(module, found.overloads)
    for name, cls in found.classes.items():
        if name in module.members:
            add_first(module.members[name], cls.overloads)


def add_first(owner, overloads):
    """Makes the first of the overloads of each name that an object lacks its member."""
    for name, forms in overloads.items():
        if name not in owner.members or owner.members[name].is_module:
            forms[0].overloads = list(forms)
            owner.set_member(name, forms[0])


def own(module, name):
    """What a name of a module means; a function of another library gets a place in the module."""
    try:
        member = module[name]
        member = member.members[name] if member.is_module else member
        module.set_member(name, member)
        return member.final_target if member.is_alias else member
    except (KeyError, griffe.AliasResolutionError):
        module.set_member(name, griffe.Function(name))
        return module.members[name]


def complete(member, entry, read):
    """Gives a name and its methods what they lack; `read` says how docstrings are read."""
    describe(member, entry["doc"] or f"The constant `{member.name}`.", read)
    for name, doc in entry["methods"].items():
        method = member.members.get(name)
        if method is not None and not method.is_alias:
            describe(method, doc, read)
    shown = "\n".join(filter(None, [entry["example"], *show_inside(member, entry["examples"])]))
    show(member, shown)


def show_inside(member, examples):
    """Gives a class's own methods their examples; returns those of the others."""
    for name, text in examples.items():
        method = member.members.get(name)
        if method is None or method.is_alias or not method.docstring:
            yield text
        else:
            show(method, text)


def show(member, example):
    """Adds an example to a docstring, once."""
    if example and indented(example) not in member.docstring.value:
        member.docstring.value += f"\n\nExamples:\n{indented(example)}"


def describe(member, doc, read):
    """Gives a docstring to what has none in its source."""
    if doc and not member.docstring:
        member.docstring = griffe.Docstring(doc, parent=member, **read)


def indented(text):
    """The lines of a section of a docstring."""
    return "".join(f"    {line}\n" for line in text.splitlines())
