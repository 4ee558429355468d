"""`Module.save_step`: a step as a file."""

from __future__ import annotations

import inspect
from os import PathLike
from typing import Any

from .. import files, record
from ..errors import GraphError
from .graphs import Graphed, options_of


class Stepped(Graphed):
    """The part of a module that saves steps."""

    def save_step(self, fpath: str | PathLike[str], /, *args: Any, **kwargs: Any) -> None:
        """Writes the step that a call with these arguments makes, and the present values of all
        that it uses: `train_one_batch` in training, else `forward`. `singa_rs.Step.load` runs it
        without the code of the model, and so do Rust and C (docs/steps.md).

        The step is recorded twice, without running it and leaving the module as it is. Arguments
        may be tensors, arrays or Placeholders; only their shapes and dtypes matter. Without any,
        they are those of the call that was recorded last, if the step takes some. Arguments that
        are not tensors become part of the step, and so do numbers and strings in attributes of the
        module. Of the results, those that are tensors are results of the step. An existing file is
        replaced atomically.

        Raises:
            GraphError: the step reads a value, runs user code (a host operation), differs from call
                to call, or reads an attribute that it changes; an argument is a parameter; none is
                given, and no call that has some has been recorded.
            MemoryBudgetError: no plan keeps to the budget given to `compile`.
            CheckpointError: the path is a directory, a pipe or a device.
            OSError: the file cannot be written.
            TypeError: `fpath` is not a path.
        """
        path = files.path_of("save_step", fpath)
        method = self._default_function()
        if not args and not kwargs and _takes_arguments(method, self):
            args, kwargs = self._recorded_form(method)
        record.save_step(path, options_of(self), method, self, self.training, args, kwargs)

    def _recorded_form(self, method: Any) -> tuple[Any, Any]:
        """The arguments of the call of a method that was recorded last."""
        graphs = self._graphs
        form = None if graphs is None else graphs.form(method.__wrapped__, self.training)
        if form is None:
            raise GraphError(
                f"save_step: got no arguments for {self._default_method()}, and no call has been "
                "recorded whose shapes could be taken; pass some"
            )
        return form


def _takes_arguments(method: Any, module: Stepped) -> bool:
    try:
        inspect.signature(method).bind(module)
    except TypeError:
        return True
    return False
