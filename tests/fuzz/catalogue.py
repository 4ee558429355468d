"""What may be drawn: every public function, method, operator, operation class and layer, found by
`inspect`. A name is in the catalogue, or in `LEFT_OUT` with the reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from singa_rs import autograd, layer, opt, tensor
from singa_rs.tensor import Tensor


class Entry(NamedTuple):
    """A callable that may be drawn."""

    #: "autograd.relu", "Tensor.sum", "layer.Linear", "autograd.Abs()", "Tensor.__add__".
    name: str
    #: "function", "method", "operation", "layer", "operator".
    kind: str
    #: The names of its parameters that have no default, and of those that have one.
    required: tuple[str, ...]
    optional: tuple[str, ...]


_READS = "reads a value, which a step that is recorded cannot"
_DRIVES = "is how a step is differentiated; drawn with the updates"
_FRAME = "part of the frame of every program"
_BASE = "a base class without a computation of its own"
_ABOUT = "tells of a tensor without computing"
_MEMORY = "handles memory below the public interface"
_MOVES = "replaces the tensor's memory, which a recorded step refuses; see the sessions"
_RUNS = "of module `opt`, drawn with the updates"

#: Public names that are not drawn as operations, and why.
LEFT_OUT: dict[str, str] = {
    **{f"autograd.{name}": "drawn as a layer" for name in autograd._LAYERS},
    "autograd.backward": _DRIVES,
    "autograd.gradients": _DRIVES,
    "autograd.Gradients": _DRIVES,
    "autograd.no_grad": "drawn with the updates",
    "autograd.set_training": "drawn with the sessions",
    "autograd.training": "drawn with the sessions",
    "autograd.Dummy": _BASE,
    "autograd.Operation": _BASE,
    "autograd.Operator": _BASE,
    "autograd.Rule": _BASE,
    "autograd.Loss": _BASE,
    "autograd.Binary": _BASE,
    "autograd.Select": "takes ranges that indexing makes; drawn as indexing",
    "autograd.BatchNormHandle": "an argument of batchnorm_2d",
    "autograd.ConvHandle": "an argument of conv2d",
    "autograd.RNNHandle": "an argument of CudnnRNN's operator",
    "autograd.PoolingHandle": "an argument of pooling_2d",
    "autograd.axis_helper": "computes with shapes alone",
    "autograd.constant_of_shape": _READS,
    "autograd.ConstantOfShape": _READS,
    "autograd.allclose": _READS,
    "Tensor.allclose": _READS,
    "autograd.array_equal": _READS,
    "Tensor.array_equal": _READS,
    "autograd.argwhere": _READS,
    "Tensor.argwhere": _READS,
    "autograd.unique": _READS,
    "Tensor.unique": _READS,
    "autograd.nonzero": _READS,
    "autograd.NonZero": _READS,
    "autograd.to_numpy": _READS,
    "autograd.ctensor2numpy": _READS,
    "tensor.Tensor": _FRAME,
    "tensor.Placeholder": _FRAME,
    "tensor.PlaceHolder": _FRAME,
    "tensor.CallableInt": _BASE,
    "tensor.Size": _BASE,
    "Tensor.T": "drawn as transpose",
    "Tensor.mT": "drawn as swapaxes",
    "tensor.RawTensor": _BASE,
    "Tensor.fitting": _MEMORY,
    "Tensor.make_room": _MEMORY,
    "tensor.product": "computes with shapes alone",
    "tensor.sizeof": _ABOUT,
    "tensor.is_tensor": _ABOUT,
    "tensor.to_numpy": _READS,
    "tensor.from_dlpack": "tests of its own hold it: what another library lends",
    "tensor.from_raw_tensors": "from_raw_tensor of each",
    "layer.Layer": _BASE,
    "layer.RNN_Base": _BASE,
    "layer.KeyValueCache": "kept from call to call in evaluation; tests of its own hold it",
    "Tensor.item": _READS,
    "Tensor.tolist": _READS,
    "Tensor.to_numpy": _READS,
    "Tensor.l1": _READS,
    "Tensor.l2": _READS,
    "Tensor.backward": _DRIVES,
    "Tensor.grad": "drawn with the updates",
    "Tensor.creator": _ABOUT,
    "Tensor.name": _ABOUT,
    "Tensor.requires_grad": "drawn with the sessions",
    "Tensor.requires_grad_": "drawn with the sessions, as an assignment",
    "Tensor.numpy": _READS,
    "Tensor.stores_grad": "drawn with the sessions",
    "Tensor.data": "drawn as a view without a gradient",
    **{
        f"Tensor.{name}": _ABOUT
        for name in (
            "device dtype is_allocated is_contiguous is_dummy is_empty is_new is_recorded "
            "is_transpose shows_runs memsize nbytes ndim numel offset rank shape shares_block size "
            "strides "
            "version block_id dim nelement element_size is_floating_point"
        ).split()
    },
    **{
        f"Tensor.{name}": _MEMORY
        for name in (
            "alias rebind saved set_account view_expand view_index view_permute view_reshape "
            "view_slice"
        ).split()
    },
    **{
        f"Tensor.{name}": _MOVES
        for name in ("reset_like", "to_type", "to_device", "to_host", "cuda")
    },
}

#: Python's operators that tensors have; the other `__...__` names belong to protocols.
OPERATORS = (
    "abs add and div divmod eq floordiv ge getitem gt iadd iand ifloordiv ilshift imod imul invert "
    "ior ipow irshift isub itruediv ixor le lshift lt matmul mod mul ne neg or pos pow radd rand "
    "rdiv rdivmod rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub "
    "rtruediv rxor setitem sub truediv xor"
).split()
#: Those of them for which no text can be written, or which compute nothing.
PROTOCOL = frozenset(
    "annotations array array_function array_ufunc bool class contains copy deepcopy delattr "
    "dict dir dlpack dlpack_device doc firstlineno float format getattr getattribute getstate "
    "hash index init init_subclass int iter len module new reduce reduce_ex repr setattr sizeof "
    "static_attributes str subclasshook weakref".split()
)


def public(module: Any) -> list[str]:
    """The public names of a module that are not modules."""
    found = [n for n in dir(module) if not n.startswith("_")]
    return [n for n in found if not inspect.ismodule(getattr(module, n))]


def _entry(name: str, kind: str, call: Callable[..., Any], skip: int = 0) -> Entry:
    parameters = list(inspect.signature(call).parameters.values())[skip:]
    plain = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    required = [p.name for p in plain if p.default is p.empty]
    return Entry(
        name, kind, tuple(required), tuple(p.name for p in plain if p.default is not p.empty)
    )


def _of_module(name: str, module: Any) -> Iterator[Entry]:
    for short in public(module):
        full, value = f"{name}.{short}", getattr(module, short)
        if full in LEFT_OUT or not callable(value):
            continue
        if not inspect.isclass(value):
            yield _entry(full, "function", value)
        elif name == "layer":
            yield _entry(full, "layer", value.__init__, 1)
        elif issubclass(value, autograd.Operator):
            yield _entry(f"{full}()", "operation", value.__init__, 1)


def _methods() -> Iterator[Entry]:
    for short in public(Tensor):
        value = getattr(Tensor, short)
        if f"Tensor.{short}" not in LEFT_OUT and callable(value):
            yield _entry(f"Tensor.{short}", "method", value)
    for short in OPERATORS:
        yield Entry(f"Tensor.__{short}__", "operator", (), ())


@cache
def entries() -> dict[str, Entry]:
    """All entries, by name."""
    modules = {"autograd": autograd, "tensor": tensor, "layer": layer}
    found = [entry for name, module in modules.items() for entry in _of_module(name, module)]
    return {entry.name: entry for entry in [*found, *_methods()]}


@cache
def optimizers() -> tuple[str, ...]:
    """The optimizers' names, except that of Muon, which takes only matrices."""
    classes = [n for n in public(opt) if inspect.isclass(getattr(opt, n))]
    left = ("Optimizer", "Muon")
    return tuple(n for n in classes if issubclass(getattr(opt, n), opt.Optimizer) and n not in left)


@cache
def schedules() -> tuple[str, ...]:
    """The schedules' names."""
    classes = [n for n in public(opt) if inspect.isclass(getattr(opt, n))]
    return tuple(
        n
        for n in classes
        if issubclass(getattr(opt, n), opt.DecayScheduler) and n != "DecayScheduler"
    )


def unknown() -> list[str]:
    """Public names that are neither drawn nor left out."""
    known = {entry.name.removesuffix("()") for entry in entries().values()} | set(LEFT_OUT)
    names = [f"autograd.{n}" for n in public(autograd)]
    names += [f"tensor.{n}" for n in public(tensor)] + [f"layer.{n}" for n in public(layer)]
    names += [f"Tensor.{n}" for n in public(Tensor)]
    constants = {n for n in names if _is_dtype(n)}
    dunders = {n.strip("_") for n in dir(Tensor) if n.startswith("__")}
    strange = sorted(dunders - set(OPERATORS) - PROTOCOL)
    return sorted(set(names) - known - constants) + [f"Tensor.__{n}__" for n in strange]


def _is_dtype(name: str) -> bool:
    module, _, short = name.partition(".")
    return module == "tensor" and type(getattr(tensor, short)).__name__ == "DType"
