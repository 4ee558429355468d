"""`Module.save_step`: a step as a file."""

from __future__ import annotations

from os import PathLike
from typing import Any

from .. import files, record
from .graphs import Graphed, options_of


class Stepped(Graphed):
    """The part of a module that saves steps."""

    def save_step(self, fpath: str | PathLike[str], /, *args: Any, **kwargs: Any) -> None:
        """Writes the step that a call with these arguments makes, and the present values of all
        that it uses: `train_one_batch` in training, else `forward`. `singa_rs.Step.load` runs it
        without the code of the model, and so do Rust and C (docs/steps.md).

        The step is recorded twice, without running it and leaving the module as it is. Arguments
        may be tensors, arrays or Placeholders; only their shapes and dtypes matter. Arguments that
        are not tensors become part of the step, and so do numbers and strings in attributes of the
        module. Of the results, those that are tensors are results of the step. An existing file is
        replaced atomically.

        Raises:
            GraphError: the step reads a value, runs user code (a host operation), differs from call
                to call, or reads an attribute that it changes; an argument is a parameter.
            MemoryBudgetError: no plan keeps to the budget given to `compile`.
            CheckpointError: the path is a directory, a pipe or a device.
            OSError: the file cannot be written.
            TypeError: `fpath` is not a path.
        """
        path = files.path_of("save_step", fpath)
        method = getattr(type(self), self._step())
        record.save_step(path, options_of(self), method, self, self.training, args, kwargs)
