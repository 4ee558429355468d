"""The two files of a checkpoint, `net.onnx` and `net.state.safetensors`, replaced as one.

Both carry the identifier of the save that wrote them. A save writes and flushes both under other
names; then it replaces the state file, and from that moment on the checkpoint is the new one; then
it replaces the model file. A process that is killed between the two leaves the new model file under
the name that its identifier gives, which is where `find` looks for it. docs/checkpoints.md tells
why nothing less suffices.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from ... import files
from ...errors import CheckpointError
from ...tensor import Tensor
from . import onnx_reading, onnx_writing, safetensors_file
from .onnx_reading import Initialisers
from .safetensors_file import Safetensors

if TYPE_CHECKING:
    import onnx

MODEL, STATE = ".onnx", ".state.safetensors"
#: The name of the identifier among the model's properties and the state file's metadata.
IDENTIFIER = "singa_rs.checkpoint"
_LINKED = re.compile(r"[0-9a-f]{32}")
#: How often a pair is looked for while others replace it.
_ATTEMPTS = 100


class Found(NamedTuple):
    """The files of a checkpoint: the model's path and contents, and the state file's, if any."""

    path: str
    model: Initialisers
    state: Safetensors | None


def stem(op: str, path: str) -> str:
    """What the names of a checkpoint's files begin with: the path, without `.onnx`.

    Raises:
        Unusable: there is no name.
    """
    found = path.removesuffix(MODEL)
    if not os.path.basename(found):
        raise files.Unusable(f"{op}: {path!r} does not name a file")
    return found


def _waiting(base: str, identifier: str) -> str:
    """The name of a new file until it replaces the one named `base`."""
    return f".{base}.{identifier}.tmp"


def _data(base: str, identifier: str) -> str:
    """The name of the file of a model's elements."""
    return f"{base.removesuffix(MODEL)}.{identifier}.data"


# ---- writing -------------------------------------------------------------------------------------


def write(
    op: str,
    path: str,
    model: onnx.ModelProto,
    states: Mapping[str, Tensor],
    write_state: Callable[[str, dict[str, str]], None],
) -> None:
    """Replaces a checkpoint, or makes one, of a model and its states. `write_state` writes the
    state file, given where and with which metadata.

    Raises:
        Unusable: a path exists and is not a regular file.
        OSError: a file cannot be written. An existing checkpoint is untouched.
    """
    identifier = os.urandom(16).hex()
    model.metadata_props.add(key=IDENTIFIER, value=identifier)
    folder = os.path.dirname(os.path.realpath(path + MODEL))
    with files.writing(op, path), _saving(folder):
        made: list[files.Replacement] = []
        try:
            for suffix in (MODEL, STATE):
                made.append(files.Replacement(op, path + suffix, lambda b: _waiting(b, identifier)))
            new_model, new_state = made
            _write_model(new_model, model, states, identifier)
            write_state(new_state.temporary, {IDENTIFIER: identifier})
            for one in made:
                one.seal()
            files.flush_directory(new_model.target)
        except BaseException:
            _discard(made)
            raise
        try:
            new_state.commit()
        except OSError:  # anything else may be raised behind the replacement
            _discard(made)
            raise
        new_model.commit()
        for one in made:
            _sweep(one.target, identifier)


def _write_model(
    to: files.Replacement, model: onnx.ModelProto, states: Mapping[str, Tensor], identifier: str
) -> None:
    with open(to.temporary, "wb") as file:
        if not onnx_writing.needs_data_file(states):
            onnx_writing.write(file, model, states)
            return
        location = _data(os.path.basename(to.target), identifier)
        with open(to.create(location), "wb") as data:
            onnx_writing.write(file, model, states, data, location)


def _discard(made: list[files.Replacement]) -> None:
    for one in made:
        one.discard()


def _sweep(target: str, identifier: str) -> None:
    """Removes what earlier saves of a file left that were killed, and data that it replaced."""
    folder, base = os.path.split(target)
    for name in os.listdir(folder):
        found = _LINKED.search(name)
        if found is None or found[0] == identifier:
            continue
        if name in (_waiting(base, found[0]), _data(base, found[0])):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def remove(path: str) -> None:
    """Removes a checkpoint and what interrupted saves of it left: the state first, without which
    there is no checkpoint to go on from."""
    for name in (path + STATE, path + MODEL):
        target = os.path.realpath(name)
        with suppress(FileNotFoundError):
            os.unlink(target)
        _sweep(target, "")


@contextmanager
def _saving(folder: str) -> Iterator[None]:
    """One save at a time in a folder, where the system has locks: of two at once, each would
    replace one file."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # what is missing is reported by who writes there
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


# ---- reading -------------------------------------------------------------------------------------


def find(op: str, path: str) -> Found:
    """The files of a checkpoint that belong together.

    Raises:
        CheckpointError: the model's file is missing, one is damaged, or they are of two saves.
    """
    before = None
    for _ in range(_ATTEMPTS):
        state = _state(op, path)
        identifier = None if state is None else state.metadata.get(IDENTIFIER, "")
        seen = [identifier]
        for place, model in _models(op, path, identifier):
            seen.append(model.metadata.get(IDENTIFIER))
            if identifier is None or seen[-1] == identifier:
                return Found(place, model, state)
        if seen == before:  # nobody is replacing them
            break
        before = seen
    if len(seen) == 1:
        raise files.Missing(f"{op}: {path}{MODEL}: no such file")
    raise CheckpointError(
        f"{op}: {path}{MODEL} and {path}{STATE} are of two different saves: restore the one that "
        f"belongs to the other, or load the model alone by load_states"
    )


def _state(op: str, path: str) -> Safetensors | None:
    try:
        return safetensors_file.read(op, path + STATE)
    except files.Missing:
        return None


def _models(op: str, path: str, identifier: str | None) -> Iterator[tuple[str, Initialisers]]:
    """The model's file, and the one that an interrupted save with this identifier left."""
    places = [path + MODEL]
    if identifier is not None and _LINKED.fullmatch(identifier):
        folder, base = os.path.split(os.path.realpath(path + MODEL))
        places.append(os.path.join(folder, _waiting(base, identifier)))
    for place in places:
        with suppress(files.Missing):
            yield place, onnx_reading.read(op, place)
