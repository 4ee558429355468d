"""`singa-rs view`: write the page of a recorded step (.srs), an ONNX model or a graph's JSON."""

from __future__ import annotations

import argparse
import json
import os
import webbrowser
from pathlib import Path
from typing import Any

from .. import files, tensor
from ..errors import CheckpointError
from ..record import Step
from ..viz.pictures import html_text

NAME = "view"
_FORMS = (".srs", ".onnx", ".json")


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("file", help="FILE.srs, FILE.onnx, or FILE.json of Graph.to_json")
    parser.add_argument("-o", "--output", help="the page; default: the file's name and .html, here")
    parser.add_argument("--open", action="store_true", help="show it in a browser")
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT=2,3", help="the "
                        "shape of an input of a model whose extents are not fixed")  # fmt: skip


def run(given: argparse.Namespace) -> int:
    """Writes the page, and prints its path."""
    form = os.path.splitext(given.file)[1].lower()
    if form not in _FORMS:
        raise ValueError(f"{given.file}: want a file that ends with {', '.join(_FORMS)}")
    if given.shape and form != ".onnx":
        raise ValueError(f"{given.file}: got --shape, which is for ONNX models")
    shapes = dict(_shape(text) for text in given.shape)
    text = {".srs": _step, ".json": _graph}[form](given.file) if form != ".onnx" else _model(
        given.file, shapes
    )  # fmt: skip
    path = given.output or os.path.basename(given.file) + ".html"
    with files.replacing("view", files.path_of("view", path)) as file:
        file.write(text.encode("utf-8"))
    print(path)
    if given.open and not webbrowser.open(Path(path).absolute().as_uri()):
        raise RuntimeError(f"found no browser to show {path}")
    return 0


def _step(path: str) -> str:
    """The page of the step as it is planned here."""
    graph = Step.load(path).graph
    graph.title = os.path.basename(path)
    return graph.page()


def _graph(path: str) -> str:
    with files.reading("view", path) as file:
        content = file.read()
    try:
        data = json.loads(content)
        missing = {"nodes", "blocks", "edges", "curve", "totals"} - set(data)
        if missing:
            raise ValueError(f"has no {', '.join(sorted(missing))}")
        return html_text(data, os.path.basename(path), None)
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{path}: is no JSON of a graph: {error}") from error


def _model(path: str, shapes: dict[str, tuple[int, ...]]) -> str:
    """The page of a model's evaluation, planned and not run."""
    from ..sonnx import SONNXModel, load

    with files.reading("view", path):
        pass  # a message of ours where there is no such file
    model = SONNXModel(path)
    inputs = _inputs(load(path, load_external_data=False), path, shapes)
    model.compile(inputs, is_train=False)
    names = {state.block_id: name for name, state in model.get_states().items()}
    plan = model.plan(*inputs)
    picture = plan.picture(names)
    return html_text(picture.data(), os.path.basename(path), None)


def _inputs(proto: Any, path: str, shapes: dict[str, tuple[int, ...]]) -> list[tensor.Placeholder]:
    from ..sonnx.values import NAMES

    known = {one.name for one in proto.graph.initializer}
    wanted = {one.name: one.type.tensor_type for one in proto.graph.input if one.name not in known}
    if strangers := sorted(set(shapes) - set(wanted)):
        raise ValueError(f"{path}: got --shape {strangers[0]}, want one of {', '.join(wanted)}")
    found = []
    for name, kind in wanted.items():
        declared = [one.dim_value if one.HasField("dim_value") else None for one in kind.shape.dim]
        shape = shapes.get(name, declared)
        if None in shape:
            text = ",".join("?" if one is None else str(one) for one in declared)
            raise ValueError(f"{path}: input {name} is ({text}); give --shape {name}=...")
        found.append(tensor.Placeholder(tuple(shape), dtype=NAMES[kind.elem_type]))
    return found


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, extents = text.rpartition("=")
    try:
        return name, tuple(int(one) for one in extents.split(",") if one)
    except ValueError:
        raise ValueError(f"got --shape {text}, want INPUT=2,3") from None
