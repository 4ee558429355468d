"""Safetensors files (https://github.com/huggingface/safetensors): a JSON header that names each
tensor's dtype, shape and range of bytes, then the bytes.

The package writes them. Reading is done here, since the package hands out copies: the tensors that
are found are views of the mapped file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ... import tensor
from . import bounded_json
from .stored import Stored, damage, mapped, stored

_DTYPES = {
    "F64": tensor.float64, "F32": tensor.float32, "F16": tensor.float16, "BF16": tensor.bfloat16,
    "I64": tensor.int64, "I32": tensor.int32, "I16": tensor.int16, "I8": tensor.int8,
    "U64": tensor.uint64, "U32": tensor.uint32, "U16": tensor.uint16, "U8": tensor.uint8,
    "BOOL": tensor.bool_,
}  # fmt: skip
_METADATA = "__metadata__"
_ENTRY = {"dtype", "shape", "data_offsets"}


class Safetensors(NamedTuple):
    """What a file holds."""

    metadata: dict[str, str]
    tensors: dict[str, Stored]


def write(path: str, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes arrays by name, and texts, into a file that exists."""
    from safetensors.numpy import save

    content = save(dict(arrays), dict(metadata))  # `save_file` would replace the file
    with open(path, "rb+") as file:
        file.write(content)


def read(op: str, path: str) -> Safetensors:
    """The tensors in a file, on its mapped memory.

    Raises:
        CheckpointError: it is missing, truncated or damaged; two tensors overlap; a dtype that
            tensors do not have.
    """
    view = mapped(op, path)
    with damage(op, path, "the safetensors file"):
        return parse(view)


def parse(view: memoryview) -> Safetensors:
    """The contents of a file's bytes.

    Raises:
        ValueError, and whatever else is raised on damaged bytes.
    """
    length = int.from_bytes(view[:8], "little")
    if len(view) < 8 or length > len(view) - 8:
        raise ValueError(f"it has {len(view)} bytes, and its header would take {length}")
    if length > bounded_json.LENGTH:
        raise ValueError(f"its header takes {length} bytes, want at most {bounded_json.LENGTH}")
    header = bounded_json.parse(bytes(view[8 : 8 + length]))
    if not isinstance(header, dict):
        raise ValueError(f"its header is of type {type(header).__name__}, want an object")
    metadata = _texts(header.pop(_METADATA, {}))
    _check_characters([*header, *metadata, *metadata.values()])
    data = view[8 + length :]
    _check_ranges(header, len(data))
    return Safetensors(metadata, {name: _tensor(name, one, data) for name, one in header.items()})


def _texts(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(type(text) is str for text in metadata.values()):
        raise ValueError("its metadata is not an object of strings")
    return metadata


def _check_characters(texts: list[str]) -> None:
    """Rejects halves of surrogate pairs: JSON can escape them, but no text has them."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"its header has the text {error.object[error.start]!a}") from error


def _check_ranges(header: dict[str, Any], length: int) -> None:
    """Rejects tensors whose ranges do not fill the data one after another."""
    for name, one in header.items():
        if not isinstance(one, dict) or set(one) != _ENTRY:
            raise ValueError(f"{name!r:.80}: got {one!r:.80}, want an object of {sorted(_ENTRY)}")
        begin_end = one["data_offsets"]
        if not isinstance(begin_end, list) or [type(n) for n in begin_end] != [int, int]:
            raise ValueError(f"{name!r:.80}: got data_offsets {begin_end!r:.80}, want two numbers")
    end = 0
    for name, one in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = one["data_offsets"]
        if begin != end or stop < begin:
            raise ValueError(f"{name!r:.80} has bytes {begin} to {stop}, want them from {end} on")
        end = stop
    if end != length:
        raise ValueError(f"its tensors take {end} bytes, but it has {length}")


def _tensor(name: str, declared: dict[str, Any], data: memoryview) -> Stored:
    dtype = declared["dtype"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"{name!r:.80} has the dtype {dtype!r:.80}, which tensors do not have")
    begin, end = declared["data_offsets"]
    if not isinstance(declared["shape"], list):
        raise ValueError(f"{name!r:.80}: got shape {declared['shape']!r:.80}, want a list")
    try:
        return stored(declared["shape"], _DTYPES[dtype], data[begin:end])
    except ValueError as error:
        raise ValueError(f"{name!r:.80}: {error}") from error
