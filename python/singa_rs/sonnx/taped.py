"""Exporting what has been computed: from the tape that leads from inputs to outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx

from .. import record
from ..autograd.again import Run, averages, computed_again, maker, outputs
from ..autograd.rule import Rule
from ..errors import GraphError
from ..tensor import Tensor
from .exporting import Axes, in_model, written
from .program import Program, program
from .table import WRITERS


def to_onnx(
    inputs: Any, outputs: Any, name: str = "sonnx", *, opset: int | None = None
) -> onnx.ModelProto:
    """The computation that has led from `inputs` to `outputs` while `autograd.training` was True,
    as a model of ONNX (SINGA to_onnx), also once backward has been through it. Entries of `inputs`
    that are no tensors, or running averages of batch normalisation, are left out.

    Tensors that the tape begins with are constants: parameters, and what the tape does not know to
    have been computed, of which a warning tells. `export` sees the computation itself.

    Raises:
        TypeError: an output that is no tensor.
        ValueError: no operation on the tape leads to an output, as `autograd.training` was False.
        NotImplementedError: an operation that ONNX has not; a write into a part of a tensor.
        GraphError: what an output was computed from is gone from the tape.
    """
    given = [x for x in _listed(inputs) if isinstance(x, Tensor)]
    ys = _listed(outputs)
    known = {id(x) for x in given}
    for y in ys:
        if not isinstance(y, Tensor):
            raise TypeError(f"to_onnx: outputs: got {type(y).__name__}, want tensors")
        if id(y) not in known and maker(y) is None:
            raise ValueError(
                f"to_onnx: outputs: got a tensor of shape {y.shape} that no operation on the tape "
                "has made: autograd.training must be True while it is computed, as it is not in "
                "evaluation; or use export of the model or function, which needs no tape"
            )
    with _advised():
        states = averages(ys)
        given = [x for x in given if id(x) not in states]
        traced = record.observed(lambda noted: computed_again(ys, given, _runner(noted)), given)
    found = program([traced], [{}])
    _warn(found, states)
    axes = Axes([{} for _ in given])
    names = [x._name or f"x{i}" if len(given) > 1 else x._name or "x" for i, x in enumerate(given)]
    return in_model(written(found, names, axes, None, name), opset)


@contextmanager
def _advised() -> Iterator[None]:
    """Errors of the tape say what exports without one."""
    try:
        yield
    except GraphError as error:
        reason = f"{error}; use export, which sees the computation itself"
        raise GraphError(f"to_onnx: {reason}") from error


def _runner(noted: record.Operations) -> Run:
    """Runs rules. Those that are written as they are become one event, whose inputs are the rule's
    and the tensors among its attributes; of others all operations do."""

    def run(node: Rule, xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        name = f"rule {type(node).__name__}"
        if name not in WRITERS:
            _check_computes(node)
            return outputs(node, xs)
        held = [one for one in vars(node).values() if isinstance(one, Tensor)]
        attrs = {k: None if isinstance(v, Tensor) else v for k, v in vars(node).items()}
        return noted.note_whole(name, attrs, (*xs, *held), lambda *_: outputs(node, xs))

    return run


def _check_computes(node: Rule) -> None:
    """Rules of constants that have been written in place compute nothing."""
    if type(node).forward is Rule.forward:
        raise NotImplementedError(
            "to_onnx: a write of constants cannot be computed again from the tape; use "
            "export, which sees the computation itself"
        )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _warn(found: Program, states: set[int]) -> None:
    """Tells of constants, besides states, that may have been computed from the inputs."""
    used = {i for step in found.steps for i in step.inputs}
    for i, leaf in found.leaves.items():
        is_own = isinstance(leaf, Tensor) and not (leaf.stores_grad or leaf._name or leaf.rank == 0)
        if i in used and is_own and id(leaf) not in states and not leaf.__dict__.get("_path_name"):
            warnings.warn(
                f"to_onnx: a tensor of shape {leaf.shape} is written as a constant; if it was "
                "computed from the inputs, use export, which sees how",
                stacklevel=3,
            )
