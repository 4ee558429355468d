"""What other libraries' names are called here, for messages about names that a module lacks."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Collection, Iterator
from types import ModuleType
from typing import Any

_ROOT = __name__.partition(".")[0]
#: The modules that users take names from; `autograd` has layers, too, as in SINGA.
_HOMES = (
    "tensor", "layer", "autograd", "opt", "metric", "initializer", "data", "device", "module",
    "linalg", "dist",
)  # fmt: skip
#: Names that nothing here resembles or mentions; some mean something else in one of the modules.
_CALLED = {
    **dict.fromkeys(("tensor", "array", "asarray"), "Tensor(data=values)"),
    **dict.fromkeys(("manual_seed", "seed", "set_random_seed"), "singa_rs.set_seed"),
    **dict.fromkeys(("Dense", "LazyLinear"), "layer.Linear"),
    **dict.fromkeys(("xavier_normal", "xavier_normal_"), "initializer.glorot_normal"),
    **dict.fromkeys(("xavier_uniform", "xavier_uniform_"), "initializer.glorot_uniform"),
    **dict.fromkeys(("kaiming_normal", "kaiming_normal_"), "initializer.he_normal"),
    **dict.fromkeys(("kaiming_uniform", "kaiming_uniform_"), "initializer.he_uniform"),
    "BatchNormalization": "layer.BatchNorm2d",
    "ASGD": "opt.MovingAverage beside opt.SGD",
    "ExponentialLR": "opt.ExponentialDecay",
    "RAdam": "opt.AdamW(opt.warmup(steps, lr)), whose first steps are small, too",
    "SequentialLR": "opt.warmup, or a subclass of opt.DecayScheduler",
    "Dataset": "data.DataLoader, which takes arrays and sequences",
    "TensorDataset": "data.DataLoader((x, y))",
    "bce_with_logits": "autograd.binary_cross_entropy_with_logits",
    "compile": "Module.compile(inputs)",
    "cuda": "device.create_cuda_gpu(), device.get_num_gpus()",
    "functional": "singa_rs.autograd",
    "grad": "autograd.gradients",
    "load": "Module.load(path)",
    "lr_scheduler": "singa_rs.opt",
    "accuracy_score": "metric.accuracy(outputs, targets)",
    "f1_score": "metric.f1(outputs, targets)",
    "nn": "singa_rs.layer",
    "optim": "singa_rs.opt",
    "roc_auc_score": "metric.roc_auc(outputs, targets)",
    "save": "Module.save(path)",
    "set_num_threads": "device.get_default_device().set_num_threads(threads)",
    "utils": "singa_rs.data",
    "layer.init": "singa_rs.initializer",
    "layer.utils": "opt.clip_grad_norm, opt.clip_grad_value",
}
#: The same for attributes.
_OF_TENSORS = {
    "gather": "autograd.take_along_axis(t, indices, axis)",
    "grad_fn": "creator",
    "is_cuda": "device",
    "register_hook": "autograd.backward(loss), which yields parameters and gradients",
    "retain_grad": "autograd.gradients(loss, [t])",
    "type": "astype(dtype)",
}
_STATES = {
    "load_state_dict": "set_states(states)",
    "state_dict": "get_states()",
    "zero_grad": (
        "nothing beside optimizer(loss), whose gradients begin anew; where loss.backward() adds to "
        "p.grad, p.grad = None of each parameter"
    ),
}
_OF_LAYERS = {
    **_STATES,
    **dict.fromkeys(("named_parameters", "parameters"), "get_params()"),
    "add_module": "register_layers({name: layer})",
    "requires_grad_": "requires_grad = False of those that get_params() has",
    "weight": "W",
}
#: What modules have, and other layers have not.
_OF_MODULES = {
    **dict.fromkeys(("bfloat16", "double", "float", "half"), "compile(inputs, amp=dtype)"),
    **dict.fromkeys(("cpu", "cuda", "to"), "to_device(device)"),
    **dict.fromkeys(("eval", "train"), "eval() and train(), as all layers are in one mode"),
    "evaluate": "eval(), then calls, and singa_rs.metric",
    "optimizer": "model.optimizer = opt.SGD(lr=...), or another one",
    "predict": "eval(), then a call",
}
_OF_METRICS = {
    **dict.fromkeys(("reset_state", "reset_states"), "reset()"),
    "result": "compute()",
    "update_state": "update(outputs, targets)",
}
#: Keywords of other libraries, where a list of ours would not help.
_KEYWORDS = {
    **dict.fromkeys(("in_channels", "out_channels", "kernel_size"), "(in, out, kernel)"),
    **dict.fromkeys(("sampler", "batch_sampler"), "data.Subset(dataset, indices), or shuffle=True"),
    "align_corners": 'coordinates="align_corners"',
    "amsgrad": "opt.AMSGrad",
    "inplace": "nothing, as recorded steps write in place where that is safe",
    "loss": "a loss that train_one_batch(self, x, y) computes",
    "metrics": "fit(..., metrics=)",
    "optimizer": "model.optimizer = optimizer",
    "padding_mode": "a layer before it, such as ReflectionPad2d or CircularPad2d",
    "pin_memory": "nothing, or device= for batches that are on it",
    "recompute_scale_factor": "size=, which True stands for, or scale= alone, which False does",
    "requires_grad": "t.requires_grad = True",
    "training": "nothing, as train() and eval() of a module say it",
    "worker_init_fn": "data.rng() in the dataset, which is seeded for each batch",
}
#: The same for `fit`.
_OF_FIT = {
    **dict.fromkeys(("x", "y"), "x and y in one argument: fit((x, y), epochs)"),
    "class_weight": "CrossEntropyLoss(weight=) in train_one_batch",
    "initial_epoch": "callbacks=Checkpoint(folder), which goes on where a run ended",
    "sample_weight": "weights as a third array, and train_one_batch(self, x, y, weight)",
    "steps_per_epoch": "a loader of that many batches",
    "validation_data": "validation=",
    "validation_split": "validation=, as from data.random_split",
    "verbose": "progress=",
}
#: Keywords that are called otherwise here.
_RENAMED = {
    **dict.fromkeys(("learning_rate", "init_lr"), ("lr",)),
    **dict.fromkeys(("T_max", "total_iters"), ("decay_steps",)),
    "betas": ("beta_1", "beta_2"),
    "clipnorm": ("clip_norm",),
    "clipvalue": ("clip_value",),
    "collate_fn": ("collate",),
    "dynamic_axes": ("dynamic",),
    "eps": ("epsilon",),
    "eta_min": ("final_value",),
    "groups": ("group",),
}
#: Arguments that are given in the place of which other libraries have something else.
_PLACES = {
    "epochs": "x and y in one argument: fit((x, y), epochs)",
    "lr": "params= by name; all parameters are updated by default",
    "pad.mode": (
        "pad(x, 'reflect', [all begins, all ends]), or a pair for each axis and then the mode: "
        "pad(x, ((0, 0), (1, 1)), 'reflect')"
    ),
}
_OF_OPTIMIZERS = {
    **_STATES,
    "learning_rate": "lr",
    "param_groups": "lr, or group(params, lr=number)",
}


def absent(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: its error says where here a name of other libraries is."""

    def __getattr__(name: str) -> Any:
        is_ready = not getattr(sys.modules[module].__spec__, "_initializing", False)
        hint = _hint(_found(module.rpartition(".")[2], name)) if is_ready else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")

    return __getattr__


def closed(module: dict[str, Any]) -> None:
    """Has a module, given by its names, list what it exports, and say where other names are; it has
    no `__getattr__` that type checkers see, so that they refuse what it does not have."""
    module["__dir__"] = lambda: sorted(module["__all__"])
    module["__getattr__"] = absent(module["__name__"])


def lacking(owner: object, name: str, hint: str) -> AttributeError:
    """The error about an attribute that an object lacks."""
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{hint}")


def of_tensor(name: str) -> str:
    """The end of the message about an attribute that tensors lack."""
    is_private = name.startswith("_")
    return "" if is_private else _hint(_OF_TENSORS.get(name) or _named(name, ("autograd",)))


def of_layer(name: str, is_module: bool) -> str:
    """The same for layers and modules."""
    if name in _OF_MODULES:
        return _hint(("" if is_module else "Module.") + _OF_MODULES[name])
    return _hint(_OF_LAYERS.get(name))


def of_optimizer(name: str) -> str:
    """The same for optimizers."""
    return _hint(_OF_OPTIMIZERS.get(name))


def of_metric(name: str) -> str:
    """The same for metrics."""
    return _hint(_OF_METRICS.get(name))


def of_keyword(name: str, known: Collection[str]) -> str:
    """What is wanted in the place of a keyword, by a function with these parameters; "" if nothing
    is known of it."""
    own = _RENAMED.get(name, ())
    if own and {*own} <= {*known}:
        return ", ".join(f"{one}=" for one in own)
    of_fit = _OF_FIT.get(name) if "loader" in known else None
    return of_fit or _KEYWORDS.get(name, "")


def of_place(name: str, function: str) -> str:
    """What is wanted where a parameter of a function was given twice, by place and by name."""
    return _PLACES.get(f"{function}.{name}", "") or _PLACES.get(name, "")


def _hint(want: str | None) -> str:
    return "" if want is None else f"; want {want}"


def _found(home: str, name: str) -> str | None:
    """What is wanted in the place of a name, the surest guess first."""
    if name.startswith("_"):
        return None
    own = (home,) if home in _HOMES else ()
    return (
        _CALLED.get(f"{home}.{name}")
        or _CALLED.get(name)
        or _spelled(name, own)
        or _named(name, _HOMES)
        or _mentioned(name)
        or _spelled(name, _HOMES)
    )


def _public(homes: tuple[str, ...]) -> Iterator[tuple[ModuleType, str]]:
    """Modules, with each name that they have."""
    for home in homes:
        module = importlib.import_module(f"{_ROOT}.{home}")
        yield from ((module, name) for name in module.__all__)


def _dotted(module: ModuleType, name: str) -> str:
    return f"{module.__name__.rpartition('.')[2]}.{name}"


def _named(name: str, homes: tuple[str, ...]) -> str | None:
    """The name in another module."""
    return next((_dotted(module, one) for module, one in _public(homes) if one == name), None)


def _spelled(name: str, homes: tuple[str, ...]) -> str | None:
    """The same name in other letters, or one with a slip."""
    from difflib import get_close_matches  # importing it takes longer than most modules

    known = {_letters(one): _dotted(module, one) for module, one in _public(homes)}
    close = get_close_matches(_letters(name), known, 1, 0.85)
    return known[close[0]] if close else None


def _letters(name: str) -> str:
    return name.lower().replace("_", "")


def _mentioned(name: str) -> str | None:
    """What says in its description that PyTorch calls it by the name."""
    called = re.compile(rf"\bPyTorch\s+{re.escape(name)}\b")
    for module, one in _public(_HOMES):
        if called.search(getattr(module, one).__doc__ or ""):
            return _dotted(module, one)
    return None
