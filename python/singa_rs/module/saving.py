"""The part of a module that writes and reads its parameters and states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from .. import files
from ..errors import CheckpointError
from ..layer.base import Layer
from ..layer.check import flag, mapping
from ..layer.collect import not_called
from ..layer.tree import join
from ..notices import warn_user
from ..refusals import hinted
from ..tensor import Tensor

if TYPE_CHECKING:
    from .checkpoint.fit import Rules
    from .checkpoint.renaming import Rename, Transform


class Saved(Layer):
    """The part of a module that handles files."""

    @hinted
    def save(
        self,
        path: str | PathLike[str],
        state: Mapping[str, Any] | None = None,
        *,
        writes: bool = True,
    ) -> None:
        """Writes a checkpoint: `path.onnx`, the model with its parameters and states, and
        `path.state.safetensors`, the position in its device's random numbers and `state`.

        A program that ends while it saves, at whatever moment, leaves the checkpoint that there was
        before, or the new one, whole. Folders are not created. docs/checkpoints.md has the format.

        Args:
            path: where, without the names' ends; `.onnx` at its end is left out.
            state: whatever else the program needs to go on: nested dictionaries and lists of
                numbers, strings, None, arrays, tensors, and objects that tell their states by
                `get_states` (optimizers, averages of weights), `state_dict` (`DataLoader`) or the
                like, NumPy's generators among them.
            writes: whether this process writes the files, such as `dist.rank() == 0`. One that does
                not takes part in what the objects in `state` exchange with others to tell theirs.

        Raises:
            CheckpointError: no layer has parameters yet; the path names a directory or a device.
            TypeError: a path or a state of another kind.
            OSError: a file cannot be written. An existing checkpoint is untouched.
        """
        from .checkpoint import whole

        stem = _stem("save", path)
        given = {} if state is None else mapping(state, "save: state")
        is_writer = flag(writes, "save: writes")
        whole.write("save", stem, self, _states_to_save("save", self), given, is_writer)

    @hinted
    def load(
        self,
        path: str | PathLike[str],
        include_state: bool = False,
        *,
        state: Mapping[str, Any] | None = None,
        strict: bool = False,
        skip_mismatched: bool = False,
    ) -> dict[str, Any]:
        """Copies the parameters and states of a checkpoint into those of the same names. Layers
        that have no parameters yet take theirs when they create them. Names that only the file or
        only the model has are listed in one warning.

        Args:
            path: as that of `save`.
            include_state: whether the program goes on from there: the position in the device's
                random numbers is restored, and what `save` got as `state` is returned. In the place
                of an object there is what it told, such as `optimizer.set_states` takes.
            state: the objects to restore, in the places in which `save` got them; anything else in
                it is left out. Implies `include_state`.
            strict: refuses a model that has other names than the file.
            skip_mismatched: leaves out, with the warning, tensors whose shapes differ.

        Returns:
            What was saved as `state`, or {} without `include_state`.

        Raises:
            CheckpointError: a file is missing or damaged, or the two are of different saves; none
                of the names is the model's, or what does not fit is not to be left out. Nothing has
                been written, except where an object refuses its states: the message names it, and
                those before it in `state` have theirs.
        """
        from .checkpoint import whole

        stem, rules = _stem("load", path), _rules("load", strict, skip_mismatched)
        is_included = flag(include_state, "load: include_state") or state is not None
        objects = {} if state is None else mapping(state, "load: state")
        found = whole.Checkpoint("load", stem, self, rules)
        _warn(found.told(objects))
        return found.restore(objects) if is_included else found.restore_model()

    @hinted
    def export(self, path: str | PathLike[str], inputs: Sequence[Any], **options: Any) -> None:
        """Writes the model as it is in evaluation into a file of ONNX.

        Args:
            path: the file.
            inputs: what the model is called with: tensors, arrays or Placeholders.
            options: `dynamic`, such as `{"x": {0: "batch"}}`, `input_names`, `output_names`,
                `opset`, `name`, as in `sonnx.model_proto`, which also tells the errors.
        """
        from .. import sonnx

        sonnx.export(self, path, inputs, **options)

    @hinted
    def save_states(
        self, fpath: str | PathLike[str], aux_states: Mapping[str, Tensor] | None = None
    ) -> None:
        """Writes all parameters and states, along with `aux_states`, in SINGA's format. The path
        is used as given; an existing file is replaced atomically, and its permissions are kept.
        If the path is a symbolic link, the link's target is replaced.

        Raises:
            CheckpointError: no layer has parameters yet; an auxiliary name is also the model's,
                or the file cannot store a name; the path is a directory, a pipe or a device.
            TypeError: `fpath` is not a path; an auxiliary name is not a str, or its state is not
                a Tensor.
            OSError: the file cannot be written.
        """
        from . import archive

        path = files.path_of("save_states", fpath)
        states = _states_to_save("save_states", self)
        auxiliary = {} if aux_states is None else mapping(aux_states, "save_states: aux_states")
        archive.write(path, states, auxiliary)

    @hinted
    def load_states(
        self,
        fpath: str | PathLike[str],
        rename: Rename | None = None,
        transform: Transform | None = None,
        *,
        strict: bool = False,
        skip_mismatched: bool = False,
    ) -> dict[str, Tensor]:
        """Copies a file's states into those of the same names, and returns its auxiliary states.
        Layers that have no parameters yet take theirs when they create them. Names that only the
        file or only the model has are listed in one warning.

        The file may be SINGA's, as `save_states` writes it, of safetensors, of ONNX (its
        initialisers), or of NumPy (`savez`). What its bytes declare is checked before anything of
        that size is unpacked.

        Args:
            fpath: the file.
            rename: how names in the file become the model's: a dictionary, a function, or a list of
                pairs of a regular expression and what replaces its matches, in this order. What
                becomes None is left out.
            transform: how arrays become the model's, such as `Linear` weights of PyTorch, which are
                (out, in) there and (in, out) here: a dictionary of functions by the model's names,
                `{"fc.W": np.transpose}`, or one function of name and array.
            strict: refuses a model that has other names than the file.
            skip_mismatched: leaves out, with the warning, tensors whose shapes differ.

        Raises:
            CheckpointError: the file is missing, truncated or damaged, or declares more than it
                holds or than fits into memory; it is a pickle; none of its names is the model's, a
                shape differs, or a value does not fit the state's dtype. Nothing has been written.
            TypeError: an argument of another kind.
        """
        from .checkpoint import contents, renaming
        from .checkpoint.fit import Fit

        op, path = "load_states", files.path_of("load_states", fpath)
        rules = _rules(op, strict, skip_mismatched)
        with contents.opened(op, path) as found:
            named = renaming.renamed(op, path, found, rename)
            given = renaming.transformed(op, named, transform)
            fit = Fit(op, path, self, given.shapes, rules)
            arrays, auxiliary = given.read(list(fit.names))
        _warn(fit.differences)
        fit.write(arrays)
        return auxiliary


def _stem(op: str, path: Any) -> str:
    from .checkpoint import pair

    return pair.stem(op, files.path_of(op, path))


def _rules(op: str, strict: Any, skip_mismatched: Any) -> Rules:
    from .checkpoint.fit import Rules

    made = flag(strict, f"{op}: strict"), flag(skip_mismatched, f"{op}: skip_mismatched")
    if all(made):
        raise ValueError(f"{op}: got strict and skip_mismatched, want at most one of them")
    return Rules(*made)


def _warn(differences: str) -> None:
    if differences:
        warn_user(differences, UserWarning)


def _states_to_save(op: str, model: Layer) -> dict[str, Tensor]:
    """The model's states by name, relative to it."""
    found = model.get_states()
    if not found and (waiting := not_called(model)):
        raise CheckpointError(f"{op}: {waiting}")
    inside = join(model._layer_node.path, "")
    return {name.removeprefix(inside): one for name, one in found.items()}
