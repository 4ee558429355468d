"""All models, and the making of a step of one."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import images
import others
import sequences

CASES = {**others.CASES, **images.CASES, **sequences.CASES}


def made(library: str, name: str, threads: int) -> Callable[[], object]:
    """A training step of a model, of this package (`ours`) or of PyTorch (`torch`)."""
    return importlib.import_module(f"dialect_{library}").step(CASES[name], threads)
