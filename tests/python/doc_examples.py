"""Fills in what the examples of docs/examples print. They are shown by the reference of the site.

    python tests/python/doc_examples.py

A file begins with what all of its examples import. Then each name of the module, or of a method
with its class, stands on a line of its own, with its example below it.
"""

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from singa_rs import autograd, device

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
PARSER = doctest.DocTestParser()


def parts(text):
    """What all examples of a file begin with, and each example by its name."""
    first, *rest = re.split(r"\n\n(\w[\w.]*)\n(?=>>> )", text.rstrip("\n"))
    bodies = [f"{body}\n" for body in rest[1::2]]
    return f"{first}\n", dict(zip(rest[::2], bodies, strict=True))


def files():
    """The texts by the names of modules; that of the package is empty."""
    found = {path: path.stem for path in sorted(FOLDER.glob("*.txt"))}
    return {name.replace("singa_rs", ""): path.read_text() for path, name in found.items()}


def space(first):
    """What examples know: what the head of their file imports and makes, in a package that is as if
    it had just been imported."""
    found, autograd.training = {}, False
    device.get_default_device().set_seed(0)
    exec("\n".join(one.source for one in PARSER.get_examples(first)), found)
    return found


def few_digits():
    """Three digits are printed: processors may differ in the last bits."""
    return np.printoptions(precision=3, suppress=True)


def printed(source, known):
    """What a statement prints when it is typed in."""
    out = io.StringIO()
    with few_digits(), contextlib.redirect_stdout(out):
        exec(compile(source, "<example>", "single"), known)
    if "\n\n" in out.getvalue():
        raise ValueError(f"{source}: an empty line ends an example; show less")
    return out.getvalue()


@contextlib.contextmanager
def in_a_folder():
    """Examples write files to a folder that is gone afterwards, and so are the modules that they
    import from it."""
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.append(folder)
        try:
            yield
        finally:
            os.chdir(home)
            sys.path.remove(folder)
            for name, one in [*sys.modules.items()]:
                if (getattr(one, "__file__", None) or "").startswith(folder):
                    del sys.modules[name]


def filled(example, known):
    """An example with what it prints now."""
    lines = []
    for one in PARSER.get_examples(example):
        head, *more = one.source.splitlines()
        lines += [f">>> {head}", *(f"... {line}" for line in more)]
        lines += printed(one.source, known).splitlines()
    return "\n".join(lines) + "\n"


def rewritten(text):
    """A file with what its examples print now, in the order of their names."""
    first, examples = parts(text)
    with in_a_folder():
        made = [f"{name}\n{filled(one, space(first))}" for name, one in sorted(examples.items())]
    return "\n".join([first, *made])


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / f"{name or 'singa_rs'}.txt").write_text(rewritten(text))
