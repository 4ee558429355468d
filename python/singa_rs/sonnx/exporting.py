"""Exporting: a model or a function as a graph of ONNX."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper

from .. import __version__, files, record
from ..device import Device
from ..errors import ShapeError
from ..module import Module
from ..record.trees import leaves
from ..refusals import hinted
from ..tensor import Placeholder, Tensor
from ..tensor.dtypes import incoming
from ..tensor.numbers import whole
from . import writers
from .extents import Sizes
from .fitting import settings
from .folded import folded
from .imported import SONNXModel
from .other_sizes import Trace, check_other_sizes
from .program import Meta, Program, program
from .reading import format_of
from .tracing import as_module, make_parameters, traced
from .values import ELEMENTS, MOST_CHECKED, NAMES
from .writing import OLDEST, Writer

#: The newest opset that is written, if the `onnx` package knows it.
OPSET = min(26, defs.onnx_opset_version())
#: The opset of models that draw random numbers, for which onnxruntime has no later kernels.
_RANDOM_OPSET = 21

#: By argument, the names of axes whose size is open; of axes in a list, they are made up.
Dynamic = Mapping[str, Mapping[int, str] | Sequence[int]]


@hinted
def model_proto(
    model: Any,
    inputs: Sequence[Any],
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic: Dynamic | None = None,
    opset: int | None = None,
    name: str | None = None,
    fold_batch_norm: bool = False,
    states: Mapping[str, Tensor] | None = None,
) -> onnx.ModelProto:
    """A model or a function of tensors, as it is in evaluation, as a model of ONNX.

    The operations that it asks for are traced, none is run. Dropout is off, batch normalisation
    takes its averages.

    Args:
        model: a Module, or a function.
        inputs: what it is called with: tensors, arrays or Placeholders.
        input_names: of the inputs, "x", or "x0", "x1", ... by default; those of an imported model
            are what its file calls them, and have the types that it declares.
        output_names: likewise, "y".
        dynamic: names of axes whose size may be another one when the file is used, such as
            `{"x": {0: "batch"}}`; axes of one name have one size. `{"x": [0]}` makes up names. The
            model is traced for several sizes, and refused if what it does depends on them
            otherwise than by sums of their products, also divided and rounded down.
        opset: ONNX's version of the operators, from 20 on; by default 26, for models that draw
            random numbers 21.
        name: the graph's.
        fold_batch_norm: whether batch normalisation behind a convolution becomes part of its
            weights, which changes results within rounding.
        states: the tensors that are written whether the graph uses them or not, by name.

    Raises:
        NotImplementedError: an operation that ONNX has not.
        ValueError: names, axes or an opset that do not fit, or a program that depends on the sizes.
        GraphError: the model reads a value.
        TypeError: inputs, names or axes of another kind; results that are no tensors.
    """
    if not isinstance(inputs, (list, tuple)):
        kind = type(inputs).__name__
        raise TypeError(f"export: inputs: got {kind}, want a list of what the model is called with")
    known, results = _declared(model, len(inputs))
    args = [_stand_in(one, model, element) for one, (_, element) in zip(inputs, known, strict=True)]
    if states is None:  # which have names, too
        input_names = _or_own(input_names, [one for one, _ in known], len(args))
    names = _names(input_names, len(args), "x", "input_names", states or ())
    axes = _axes(names, args, dynamic or {})
    root = as_module(model)
    made = _program(root, args, axes)
    title = name or type(root).__name__.strip("_")
    if states is None:
        output_names = _or_own(output_names, results, len(made.results), names)
    graph = written(made, names, axes, output_names, title, states)
    return in_model(folded(graph) if fold_batch_norm else graph, opset)


def in_model(graph: onnx.GraphProto, opset: int | None) -> onnx.ModelProto:
    """A graph as a model, checked by ONNX."""
    is_random = any(node.op_type.startswith("Random") for node in graph.node)
    usual = _RANDOM_OPSET if is_random else OPSET
    chosen = usual if opset is None else whole(opset, "export: opset")
    newest = defs.onnx_opset_version()
    if not OLDEST <= chosen <= newest:
        raise ValueError(f"export: got opset {chosen}, want {OLDEST} to {newest}")
    for kind in sorted({node.op_type for node in graph.node if not node.domain}):
        if not defs.has(kind, chosen):
            raise NotImplementedError(
                f"export: opset {chosen} has no {kind}; onnx {onnx.__version__} has opsets up to "
                f"{newest}"
            )
    imports = [helper.make_opsetid("", chosen)]
    proto = helper.make_model(
        graph,
        opset_imports=imports,
        producer_name="singa_rs",
        producer_version=__version__,
        ir_version=helper.find_min_ir_version_for(imports),
    )
    try:
        onnx.checker.check_model(proto, full_check=proto.ByteSize() < MOST_CHECKED)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise NotImplementedError(f"export: opset {chosen}: {error}") from error
    return proto


def export(model: Any, path: str | PathLike[str], inputs: Sequence[Any], **options: Any) -> None:
    """Writes a model or a function into a file, in the format of its name: `.onnx`, or one of
    onnx's of text, such as `.textproto`. `options` are those of `model_proto`."""
    made, name = model_proto(model, inputs, **options), files.path_of("export", path)
    kind = format_of(name)
    if kind != "protobuf":
        _check_text(made, kind)
    with files.replacing("export", name) as file:
        onnx.save(made, file, kind)


def _check_text(made: onnx.ModelProto, kind: str) -> None:
    """Whether onnx can read a model that it writes as text."""
    to = onnx.serialization.registry.get(kind)
    try:
        to.deserialize_proto(to.serialize_proto(made), onnx.ModelProto())
    except Exception as error:  # of the parser of any format
        reason = f"onnx cannot read what it writes as {kind}: {error}"
        raise NotImplementedError(f"export: {reason}; write a file named .onnx") from error


def _declared(model: Any, count: int) -> tuple[Sequence[tuple[str, int]], Sequence[str]]:
    """The names and element types of an imported model's inputs, if it takes so many, and the names
    of its outputs; "" and 0 for those of any other model."""
    if getattr(type(model), "forward", None) is SONNXModel.forward:
        known = model._wanted_of(count)
        if len(known) == count:
            return known, model._whole(count).outputs
    return [("", 0)] * count, ()


def _or_own(
    given: Sequence[str] | None, own: Sequence[str], count: int, taken: Collection[str] = ()
) -> Sequence[str] | None:
    """The names that are given, or else those that a file has, if there is one for each."""
    is_complete = len(own) == len({*own} - {*taken, ""}) == count
    return list(own) if given is None and is_complete else given


def _names(
    given: Sequence[str] | None, count: int, stem: str, what: str, taken: Collection[str]
) -> list[str]:
    if given is None:
        return default_names(stem, count, taken)
    if isinstance(given, str) or not all(isinstance(one, str) and one for one in given):
        raise TypeError(f"export: {what}: got {given!r}, want a list of {count} names")
    if len(given) != count or len(set(given)) != count:
        raise ValueError(f"export: {what}: got {list(given)}, want {count} different names")
    return list(given)


def default_names(stem: str, count: int, taken: Collection[str]) -> list[str]:
    """Names of inputs or outputs, none of which is taken."""
    made = [stem] if count == 1 else [f"{stem}{i}" for i in range(count)]
    return default_names(f"{stem}_", count, taken) if set(made) & set(taken) else made


class Axes:
    """The dynamic axes: their names by input, and their sizes in the inputs as they are."""

    def __init__(self, of: list[dict[int, str]] | None = None) -> None:
        self.of = [] if of is None else of
        self.base: Sizes = {}


def _axes(names: Sequence[str], args: Sequence[Any], dynamic: Dynamic) -> Axes:
    found = Axes()
    if not isinstance(dynamic, Mapping):
        raise TypeError(f"export: dynamic: got {dynamic!r}, want axes by inputs' names")
    for name in dynamic:
        if name not in names:
            raise ValueError(f"export: dynamic: got {name!r}, want one of the inputs {names}")
    for name, arg in zip(names, args, strict=True):
        rank = len(arg.shape)
        own: dict[int, str] = {}
        for axis, label in _labels(name, dynamic.get(name, {})).items():
            if not -rank <= axis < rank:
                raise ShapeError(
                    f"export: dynamic: got axis {axis} of {name}, of shape {arg.shape}"
                )
            if own.setdefault(axis % rank, label) != label:
                raise ValueError(f"export: dynamic: axis {axis} of {name} has two names")
            size = arg.shape[axis]
            if found.base.setdefault(label, size) != size:
                raise ShapeError(f"export: dynamic: {label} is {size} and {found.base[label]}")
        found.of.append(own)
    return found


def _labels(name: str, given: Any) -> dict[int, str]:
    """The names of an input's dynamic axes."""
    if isinstance(given, (list, tuple)):
        given = {axis: f"{name}_{axis}" for axis in given}
    wanted = "want the axes' names, such as {0: 'batch'}, or a list of axes"
    if not isinstance(given, Mapping):
        raise TypeError(f"export: dynamic: got {given!r} for {name}, {wanted}")
    for axis, label in given.items():
        is_axis = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
        if not is_axis or not isinstance(label, str) or not label:
            raise TypeError(f"export: dynamic: got {axis!r}: {label!r} for {name}, {wanted}")
    return dict(given)


def _program(root: Module, args: Sequence[Any], axes: Axes) -> Program:
    """The program, for all sizes of the dynamic axes."""
    make_parameters(root, _stand_ins(args))
    if not axes.base:
        return program([traced(_checked_forward, root, _stand_ins(args))], [{}])
    try:
        return _of_sizes(root, args, axes, False)
    except ValueError:  # of constants that depend on sizes, for example
        return _of_sizes(root, args, axes, True)


def _of_sizes(root: Module, args: Sequence[Any], axes: Axes, in_large: bool) -> Program:
    """The program, of operations as the engine has them, or as ONNX does."""
    trace = functools.partial(_traced, root, args, axes, in_large)
    failure: Exception | None = None
    # Operations take shorter ways for extents of 1.
    several = {label: max(size, 2) for label, size in axes.base.items()}
    bases = [several] if several == axes.base else [several, axes.base]
    changes = (lambda n: 2 * n, lambda n: n // 2, lambda n: n + 1, lambda n: n - 1)
    for base, change in itertools.product(bases, changes):
        sizes = settings(base, lambda label, b=base, c=change: c(b[label]))
        if any(one < 1 for setting in sizes for one in setting.values()):
            continue
        try:
            traces = [trace(one) for one in sizes]
        except Exception as error:  # a model need not take every size
            failure = failure or error
            continue
        made = program(*_checked(trace, axes, traces, sizes))
        check_other_sizes(made, axes.base, trace)
        return made
    raise failure or ValueError("export: dynamic: got axes of size 0")


def _traced(
    root: Module, args: Sequence[Any], axes: Axes, in_large: bool, sizes: Sizes
) -> record.Operations:
    given = [_resized(arg, own, sizes) for arg, own in zip(args, axes.of, strict=True)]
    return traced(_checked_forward, root, given, in_large)


def _checked_forward(root: Module, *given: Any) -> Any:
    """What the model returns, which files can hold."""
    made = type(root).forward(root, *given)
    others = [type(one).__name__ for one in leaves(made) if not isinstance(one, Tensor)]
    if others or next(leaves(made), None) is None:
        raise TypeError(
            f"export: the model returns {', '.join(others) or 'nothing'}, want tensors, or lists, "
            "tuples and dictionaries of them"
        )
    return made


def _checked(
    trace: Trace, axes: Axes, traces: list[record.Operations], sizes: list[Sizes]
) -> tuple[list[record.Operations], list[Sizes]]:
    """The traces, and those for sizes next to those in the inputs, if the model takes them: what
    depends on whether a size is even, and on whose size, shows there."""
    for steps in ((1, 2), (2, 1), (2, 2)):
        other = {label: size + steps[i % 2] for i, (label, size) in enumerate(axes.base.items())}
        with contextlib.suppress(Exception):
            traces, sizes = [*traces, trace(other)], [*sizes, other]
    return traces, sizes


def _stand_ins(args: Sequence[Any]) -> list[Any]:
    return [_resized(arg, {}, {}) for arg in args]


def _stand_in(given: Any, model: Any, element: int) -> Placeholder:
    """A placeholder like an input, or of a declared type: where the model is, if it is anywhere."""
    array = given if isinstance(given, Tensor) else np.asarray(given)
    dtype = array.dtype if isinstance(array, Tensor) else incoming(array)
    dtype = NAMES.get(element, dtype)
    is_placed = isinstance(model, Module) and (model._device or model.get_states())
    device = model.device if is_placed else getattr(given, "device", None)
    return Placeholder(array.shape, device if isinstance(device, Device) else None, dtype)


def _resized(arg: Placeholder, own: Mapping[int, str], sizes: Sizes) -> Placeholder:
    """A placeholder with other sizes of its dynamic axes."""
    shape = tuple(sizes[own[i]] if i in own else n for i, n in enumerate(arg.shape))
    return Placeholder(shape, arg.device, arg.dtype)


def written(
    made: Program,
    names: Sequence[str],
    axes: Axes,
    output_names: Sequence[str] | None,
    title: str,
    states: Mapping[str, Tensor] | None = None,
) -> onnx.GraphProto:
    """A program as a graph."""
    writer = Writer(made, states)
    taken = {*names, *(states or ())}
    outputs = _names(output_names, len(made.results), "y", "output_names", taken)
    if twice := sorted(set(names) & set(outputs)):
        raise ValueError(f"export: output_names: got {twice}, which are names of inputs")
    for one in (*names, *outputs):
        writer.claim(one)
    for value, one, own in zip(made.arguments, names, axes.of, strict=True):
        writer.names[value] = one
        for axis, label in own.items():
            writer.axes.setdefault(label, (one, axis))
    for step in made.steps:
        writer.write(step)
    for value, one in zip(made.results, outputs, strict=True):
        writer.nodes.append(helper.make_node("Identity", [writer.name(value)], [one], f"to_{one}"))
    for one in (states or {}).values():
        writer.write_state(one)
    nodes = without_identities(writer.live(outputs), set(outputs))
    infos = [[_info(n, writer.meta(v)) for n, v in zip(ns, vs, strict=True)]
             for ns, vs in ((names, made.arguments), (outputs, made.results))]  # fmt: skip
    return helper.make_graph(nodes, title, *infos, list(writer.initializers.values()))


def without_identities(nodes: list[onnx.NodeProto], outputs: set[str]) -> list[onnx.NodeProto]:
    """The nodes, where what is made for an output alone has the output's name at once."""
    makers = {y: node for node in nodes for y in node.output}
    uses = Counter(x for node in nodes for x in node.input)
    kept = []
    for node in nodes:
        x, y = (node.input[:1] or [""])[0], node.output[0]
        if node.op_type == "Identity" and y in outputs and x in makers and uses[x] == 1:
            maker = makers[x]
            maker.output[list(maker.output).index(x)] = y
        else:
            kept.append(node)
    return kept


def _info(name: str, meta: Meta) -> onnx.ValueInfoProto:
    shape = [one if isinstance(one, int) else str(one) for one in meta.shape]
    return helper.make_tensor_value_info(name, ELEMENTS[meta.dtype], shape)


__all__ = ["OPSET", "export", "model_proto", "writers"]
