"""The one table of operation cases, and the reasons for gaps in it."""

from singa_rs import _core

from . import (
    attention,
    elementwise,
    linalg,
    losses,
    movement,
    normalisation,
    ordering,
    recurrent,
    training,
    windows,
)
from .base import Case

CASES: list[Case] = [
    *elementwise.table,
    *movement.table,
    *linalg.table,
    *losses.table,
    *windows.table,
    *normalisation.table,
    *ordering.table,
    *recurrent.table,
    *attention.table,
    *training.table,
]

_TRUTH = "the result is a truth value"
_STEPS = "the result is constant between its steps"
_JUMPS = "differences across its jumps are wrong: test_autograd_gradients stays between them"
_STATE = "it updates state in place, which is never recorded"
_SOURCE = "it has no inputs that could have a gradient"
MADE_BY_REWRITING = "only graphs have it, in the place of operations that have gradients"
_BACKWARD = "it is a gradient itself; second derivatives are not offered"
_BOUND = "the differentiable functions of bounds are clip, maximum and minimum"
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor")

#: Operations whose gradients are not compared with differences, and why: they have no rule of their
#: own, or ": test_..." compares it.
NO_GRADIENT: dict[str, str] = {
    **dict.fromkeys((*_COMPARED, *(f"{f}_scalar" for f in _COMPARED), "not", "any", "all"), _TRUTH),
    **dict.fromkeys((*elementwise.BITS, *(f"{f}_scalar" for f in elementwise.BITS)), _STEPS),
    **dict.fromkeys(("argmax", "argmin", "floor_divide", "floor_divide_scalar"), _STEPS),
    "running_max": "cummax takes the elements at its places",
    **{f"{of}_places": "its result is indices" for of in movement.PLACES},
    **dict.fromkeys(("remainder", "remainder_scalar"), _JUMPS),
    **dict.fromkeys(("maximum_scalar", "minimum_scalar"), _BOUND),
    **dict.fromkeys(("sgd", "adam", "adagrad", "lion", "rmsprop"), _STATE),
    **dict.fromkeys(("running_average", "advance", "tensor_scatter"), _STATE),
    **dict.fromkeys(("fill", "arange", "random"), _SOURCE),
    **dict.fromkeys((f for f in _core.operations() if "_grad" in f), _BACKWARD),
    "dropout": "its mask differs from call to call: test_autograd_gradients fixes the seed",
    **dict.fromkeys(
        ("batch_norm_factor", "batch_norm_statistics", "fold_batch_norm"), MADE_BY_REWRITING
    ),
    **dict.fromkeys(("chain", "normalize", "pack", "packed", "matmul_update"), MADE_BY_REWRITING),
    **dict.fromkeys(("matmul_add", "matmul_chain"), MADE_BY_REWRITING),
    **dict.fromkeys((f"conv{n}d_chain" for n in (1, 2, 3)), MADE_BY_REWRITING),
    **dict.fromkeys((f for f in _core.operations() if f.startswith("chain_")), MADE_BY_REWRITING),
    **dict.fromkeys(("slogdet", "svd", "eigh"), "of several results: functions/linalg.py"),
    **dict.fromkeys(("exchange_start", "exchange_finish"), "none: steps exchange gradients"),
    "host": "the user writes its gradient: test_autograd_operators has one",
}
