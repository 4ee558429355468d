"""Files of states in each format that is read: SINGA's zip, safetensors, ONNX, NumPy's npz."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from ... import files
from ...errors import CheckpointError
from ...tensor import Tensor
from .. import archive
from . import onnx_reading, safetensors_file
from .stored import Stored, damage

#: Reads arrays, and tensors beside them, given the names that are known to fit.
Read = Callable[[Collection[str]], tuple[dict[str, np.ndarray], dict[str, Tensor]]]

_ZIP, _PICKLE = b"PK", b"\x80"
_ONNX, _SAFETENSORS, _TORCH = ".onnx", ".safetensors", (".pt", ".pth", ".bin")
#: Where the header of a zip file's first member has the length of its name, and the name.
_LENGTH, _NAME = slice(26, 28), 30
_HEAD = 1024
#: The member with which files of `torch.save` begin.
_PICKLED = "data.pkl"


class Contents(NamedTuple):
    """What a file holds of a model: shapes by name, and how the arrays are read."""

    shapes: Mapping[str, tuple[int, ...]]
    read: Read


def of(op: str, path: str, tensors: Mapping[str, Stored]) -> Contents:
    """Tensors of a mapped file as contents."""

    def read(_known: Collection[str]) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
        arrays = {}
        for name, one in tensors.items():
            with damage(op, path, f"{name!r:.80}"):
                arrays[name] = one.array()
        return arrays, {}

    return Contents({name: one.shape for name, one in tensors.items()}, read)


@contextmanager
def opened(op: str, path: str) -> Iterator[Contents]:
    """A file's contents, while it is open. Its bytes tell the format; ONNX's files have no mark of
    their own, so that these are told by the name.

    Raises:
        CheckpointError: it is missing, damaged, or of another format.
    """
    with files.reading(op, path) as file:
        head = file.read(_HEAD)
        file.seek(0)
        first = _first_member(head)
        if first.endswith(_PICKLED) or head.startswith(_PICKLE):
            raise _pickled(op, path)
        if first.endswith(archive.ARRAY):
            arrays = archive.Arrays(path, file)
            yield Contents(arrays.shapes, arrays.read)
        elif first:  # SINGA's zip, whatever it is called
            states = archive.Archive(path, file)
            yield Contents(states.shapes, states.read)
        elif _is_json(head):
            raise CheckpointError(
                f"{op}: {path}: is JSON, which has no states; if it is an index of safetensors' "
                f"shards, load the files that it names, one after another"
            )
        elif path.endswith(_ONNX):
            yield of(op, path, onnx_reading.read(op, path).tensors)
        elif head[8:9] == b"{" or path.endswith(_SAFETENSORS):
            yield of(op, path, safetensors_file.read(op, path).tensors)
        elif path.endswith(_TORCH):
            raise _pickled(op, path)
        else:
            states = archive.Archive(path, file)
            yield Contents(states.shapes, states.read)


def _is_json(head: bytes) -> bool:
    """Whether a file begins as JSON's objects do; in one of safetensors a length is before that."""
    return head.lstrip().startswith(b"{") and b"\0" not in head[:8]


def _first_member(head: bytes) -> str:
    """The name of a zip file's first member, empty if it is none."""
    if not head.startswith(_ZIP):
        return ""
    length = int.from_bytes(head[_LENGTH], "little")
    return head[_NAME : _NAME + length].decode(errors="replace")


def _pickled(op: str, path: str) -> CheckpointError:
    return CheckpointError(
        f"{op}: {path}: is a pickle, which may run code, or of an unknown format; in PyTorch, "
        f"safetensors.torch.save_file(torch.load({path!r}, map_location='cpu', "
        f"weights_only=True), 'states.safetensors') converts it"
    )
