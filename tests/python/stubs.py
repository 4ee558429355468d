"""Writes the stubs of `autograd` and `tensor`, whose names come from tables that type checkers
cannot read.

    python tests/python/stubs.py
"""

import inspect
import itertools
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

from singa_rs import autograd, errors, tensor
from singa_rs._core import DType
from singa_rs.autograd.spellings import spellings
from singa_rs.tensor.takers import takers

#: Where the names in annotations come from.
HOMES = {
    "collections.abc": "Callable Iterable Iterator Mapping Sequence",
    "typing": "Any overload",
    "numpy": "np",
    ".._core": "Device DType Handle",
    "..autograd": "Operator",
    "..autograd.results": (
        "EighResult LeastSquares MinMax QRResult SlogdetResult SVDResult ValuesIndices"
    ),
    "..tensor": "Tensor",
    "..tensor.takers": "TensorLike",
}
LAYERS = (
    "AvgPool1d AvgPool2d BatchNorm2d Conv2d LSTM Linear MaxPool1d MaxPool2d Pooling2d RNN "
    "RNN_Base SeparableConv2d"
).split()
#: What stands in a stub besides what is found in the module.
LENT = {
    tensor: ["from ..compat.raw import RawTensor as RawTensor"],
    autograd: [
        *(f"from ..layer import {name} as {name}" for name in LAYERS),
        "training: bool",
    ],
}
ELSEWHERE = {"Conversions", "RawTensor", "Writes"}
#: Classes of which a stub tells more than how to make one.
WHOLE = (
    tensor.Tensor, tensor.CallableInt, tensor.Size, autograd.Operator, autograd.Rule,
    autograd.Gradients, autograd.no_grad,
)  # fmt: skip
#: PyTorch's keywords that have to be given if others of PyTorch's are, and their types.
REQUIRED = {"correction": "float", "unbiased": "bool"}
#: Types whose names are methods of tensors, too.
BUILTIN = re.compile(r"(?<![\w.])(bool|float|int)\b(?!\()")
SPECIAL = {f"__{name}__" for name in "init call setitem getitem contains enter exit".split()}
SPECIAL |= {f"__{name}__" for name in "array bool float index int iter len".split()}


def written_out(annotation, space):
    """An annotation in which aliases, as far as their module or `errors` knows them, are spelt
    out."""

    def of(match):
        name, value = match.group(), space.get(match.group())
        is_alias = typing.get_origin(value) is not None or isinstance(value, types.UnionType)
        plain = re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", str(value)) if is_alias else name
        return errors._ALIASES.get(name, plain)

    return "Any" if annotation is inspect._empty else re.sub(r"\b[A-Z]\w*\b", of, annotation)


def widened(one):
    """A parameter whose arrays are copied into tensors, as users may call it."""
    return one.replace(annotation=re.sub(r"\bTensor\b", "TensorLike", one.annotation))


def parameter(one, space, name):
    if name in REQUIRED:
        return f"*, {name}: {REQUIRED[name]}"
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    text = f"{star}{name}: {written_out(one.annotation, space)}"
    is_short = isinstance(one.default, int | float | str | None)
    default = repr(one.default) if is_short else "..."
    return text if one.default is one.empty else f"{text} = {default}"


def ways(name, made):
    """How the keywords of a function may be spelt: as here, and as in PyTorch."""
    tables = (autograd.METHODS, autograd.FUNCTIONS, autograd.OF_TENSOR)
    others = {}
    if any(table.get(name) is made for table in tables):
        for theirs, ours in spellings(name, made).items():
            others.setdefault(ours, []).append(theirs)
    found = [dict(zip(others, some, strict=True)) for some in itertools.product(*others.values())]
    return [{}, *found] if others else [{}]


def functions(name, made, is_method=False):
    """The stubs of a function, one for each spelling."""
    if {"axis", "dim", "keepdim"} <= inspect.signature(made).parameters.keys():
        return two_kinds(name, made, is_method)
    found = ways(name, made)
    each = [function(name, made, is_method, others) for others in found]
    return [line for lines in each for line in (*["@overload"][: len(found) - 1], *lines)]


def two_kinds(name, made, is_method):
    """The stubs of a function with other results for PyTorch's arguments than for NumPy's."""
    (line,) = function(name, made, is_method)
    plain = re.sub(r"(, \*)?, dim:.*(?=\))\) -> Any", ") -> Tensor", line)
    star = "" if re.search(r"\*\w", line) else "*, "
    pair = re.sub(r"axis:.*dim: int \| None = None", f"{star}dim: int", line)
    return ["@overload", plain, "@overload", pair.replace("-> Any", "-> ValuesIndices")]


def start_of_keywords(given, parameters):
    """Puts the star before the first of the stubs of parameters that only keywords are for."""
    kinds = [one.kind for one in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        first = kinds.index(inspect.Parameter.KEYWORD_ONLY)
        if not any("*" in one.split(":")[0] for one in given[: first + 1]):
            given.insert(first, "*")


def function(name, made, is_method=False, others=types.MappingProxyType({})):
    """The stub of a function, some of whose parameters have other names."""
    space, signature = inspect.unwrap(made).__globals__, inspect.signature(made)
    parameters = list(signature.parameters.values())
    copied = takers(made) if getattr(made, "takes_arrays", False) else {}
    parameters = [widened(one) if at in copied else one for at, one in enumerate(parameters)]
    given = [parameter(one, space, others.get(one.name, one.name)) for one in parameters]
    if is_method:
        is_binary = given[0].startswith("*") and name != "__invert__"
        given[0] = "self, other: Any" if is_binary else "self"
    start_of_keywords(given, parameters)
    back = "None" if name == "__init__" else written_out(signature.return_annotation, space)
    ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return [f"def {name}({', '.join(given)}) -> {back}: ...{ignore}"]


def member(name, value):
    if inspect.isfunction(value):
        return functions(name, value, True)
    if not isinstance(value, property):
        return []
    lines = ["@property", *function(name, value.fget, True)]
    return [*lines, f"@{name}.setter", *function(name, value.fset, True)] if value.fset else lines


def stub_of_class(cls, known):
    base = next(
        b for b in cls.__mro__[1:] if b in known or b.__module__ in ("builtins", "singa_rs._core")
    )
    lines, own = [], cls.__mro__[: cls.__mro__.index(base)]
    if cls is tensor.Tensor:
        fields = inspect.get_annotations(cls).items()
        lines += [f"{name}: {text}" for name, text in fields if name[0] != "_"]
    found = {name: value for owner in reversed(own) for name, value in vars(owner).items()}
    operators = {name for name in autograd.METHODS if name.startswith("__")}
    for name, value in sorted(found.items()):
        if name == "__init__" or cls in WHOLE and (name[0] != "_" or name in SPECIAL | operators):
            lines += member(name, value)
    if cls is tensor.Tensor:
        lines = [BUILTIN.sub(r"builtins.\1", line) for line in lines]
    of = {object: "", dict: "(dict[Any, Tensor])"}.get(base, f"({base.__name__})")
    return [f"class {cls.__name__}{of}:{'' if lines else ' ...'}", *(f"    {x}" for x in lines)]


def stub(module):
    """The text of a module's stub, but for its format."""
    found = {n: v for n, v in vars(module).items() if n not in ELSEWHERE}
    found = {n: v for n, v in sorted(found.items()) if n[0] != "_" or n in autograd.FUNCTIONS}
    named = {n: v for n, v in found.items() if inspect.isclass(v)}
    named = {n: v for n, v in named.items() if v.__module__.startswith(module.__name__)}
    lines = [f"{name}: DType" for name, value in found.items() if isinstance(value, DType)]
    classes = set(named.values())
    for cls in sorted(classes, key=lambda cls: (len(cls.__mro__), cls.__name__)):
        lines += stub_of_class(cls, classes)
    lines += [f"{name} = {v.__name__}" for name, v in named.items() if name != v.__name__]
    for name, value in found.items():
        if inspect.isfunction(value) and value.__module__.startswith("singa_rs."):
            forms = typing.get_overloads(inspect.unwrap(value))
            lines += [line for form in forms for line in ("@overload", *function(name, form))]
            lines += [] if forms else functions(name, value)
    lines.append(f"__all__ = {sorted(module.__all__)}")
    body = "\n".join(lines)
    return f'"""Written by tests/python/stubs.py."""\n\n{imports(body, LENT[module])}\n{body}\n'


def imports(body, lent):
    """The imports that a stub needs, in ruff's order."""
    lines = list(lent)
    for home, names in HOMES.items():
        used = [name for name in names.split() if re.search(rf"(?<!\.)\b{name}\b", body)]
        used = [name for name in used if not re.search(rf"(?m)^class {name}\b", body)]
        of = f"from {home} import {', '.join(used)}"
        lines += ["import numpy as np"] if used == ["np"] else [of] if used else []
    lines += ["import builtins"] if "builtins." in body else []
    order = ["import b", "from c", "from t", "import n", "from .", "training"]

    def place(line):
        home, _, names = line.partition(" import ")
        group = [line.startswith(one) for one in order][::-1]
        return group, home, not names.rpartition(" ")[2].isupper(), line

    return "\n".join(sorted(lines, key=place))


def path(module):
    return Path(module.__file__).with_suffix(".pyi")


if __name__ == "__main__":
    for module in LENT:
        path(module).write_text(stub(module))
    files = [str(path(module)) for module in LENT]
    for task in (["format", "-q"], ["check", "-q", "--fix"]):
        subprocess.run([sys.executable, "-m", "ruff", *task, *files], check=True)
