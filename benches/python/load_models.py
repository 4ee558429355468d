"""The training steps of `load.py`: models by name, each as the package, PyTorch and JAX make it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import gpt
import jax_sequences
import recurrent
from workloads import CASES

Step = Callable[[], Any]

OURS, PYTORCH, JAX = "singa_rs", "PyTorch", "JAX"
#: The module of each side's steps of `workloads.py`, and how they are made: channels-last is
#: PyTorch's faster way for convolutional models, and changes nothing for others.
WORKLOADS = {
    OURS: ("ours", "replay"),
    PYTORCH: ("peers_torch", "channels-last"),
    JAX: ("peers_jax", ""),
}


def _workload(name: str, side: str, threads: int) -> Step:
    module, how = WORKLOADS[side]
    return importlib.import_module(module).make(CASES[name], how, threads)


def _lstm(name: str, side: str, threads: int) -> Step:
    if side == JAX:
        return jax_sequences.their_lstm(name, threads)
    make = recurrent.ours if side == OURS else recurrent.theirs
    step = make(recurrent.CASES[name], threads=threads)[0]
    return lambda: step().item()


def _gpt(name: str, side: str, threads: int) -> Step:
    if side == JAX:
        return jax_sequences.their_gpt(name, threads)
    if side == OURS:
        return gpt.ours(gpt.MODELS[name], threads, False)
    return gpt.theirs(gpt.MODELS[name], threads, False, False)


#: Name -> title, what makes its steps, and the model's name there.
MODELS: dict[str, tuple[str, Callable[[str, str, int], Step], str]] = {
    **{name: (CASES[name].title, _workload, name) for name in ("tiny", "mlp", "lenet")},
    "char": ("char LSTM, 100 steps, batch 32", _lstm, "char"),
    "gpt": ("small GPT, batch 16", _gpt, "small"),
    "resnet18": (CASES["resnet18"].title, _workload, "resnet18"),
}


def title(model: str) -> str:
    """A model's name in print."""
    return MODELS[model][0]


def make(model: str, side: str, threads: int) -> Step:
    """A call that makes a step of a model by a side (`OURS`, `PYTORCH` or `JAX`) and returns when
    its loss is computed. JAX's number of threads is that of the cores that the process may use."""
    _, maker, name = MODELS[model]
    return maker(name, side, threads)
