"""Graph functions, which `Module.compile` turns a module's methods into, and the wrappers around
these methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import autograd, record, tensor, viz
from ..compat.recording import unbuffered
from ..dist.forecast import forecast
from ..errors import GraphError, shortened
from ..layer.arrays import admit, holds_array
from ..layer.base import Layer
from ..layer.calls import with_place
from ..layer.check import flag
from ..layer.node import now
from ..record import MISS, FastPath, GraphFunction, Options, Plan, name_written
from ..refusals import hinted
from ..tensor import Tensor
from .arguments import check_inputs, comparisons, dtype_of, every, finite_checks, is_parallel
from .precision import LossScale, precision_of, short_type
from .structure import GraphOf

if TYPE_CHECKING:
    from . import Module


class Graphs:
    """The graph functions of a module."""

    def __init__(self, options: Options) -> None:
        self.options = options
        #: The fast path for calls like the last one.
        self.fast_path: FastPath | None = None
        self._functions: dict[Any, GraphFunction] = {}
        self._carried: set[str] = set()

    def of(self, function: Callable[..., Any], module: Any, name: str) -> GraphFunction:
        """The graph function of a method."""
        if function in self._functions:
            return self._functions[function]
        full = f"{type(module).__name__}.{name}"
        made = GraphFunction(full, self.options, self._carried)
        return self._functions.setdefault(function, made)

    def form(self, function: Callable[..., Any], training: bool) -> tuple[Any, Any] | None:
        """The arguments, without their values, of the call of a method that was recorded last."""
        found = self._functions.get(function)
        return None if found is None else found.forms.get(training)

    def call(self, function: Callable[..., Any], module: Any, args: tuple[Any, ...]) -> Any:
        """Calls a method by the fast path; MISS if it does not apply."""
        fast_path = self.fast_path
        if fast_path is None or now.running or fast_path.training is not module.training:
            return MISS
        if function is not None and function is not fast_path.function:
            return MISS
        try:
            return fast_path(args, module)
        except Exception as error:
            name_written(error, fast_path.graph, module)
            raise

    def all(self) -> list[GraphFunction]:
        """The functions that have been called."""
        return list(self._functions.values())

    def __reduce__(self) -> Any:
        """A copy of a module has no graphs yet."""
        return Graphs, (self.options,)


class Graphed(Layer):
    """The part of a module that handles graphs."""

    _graphs: Graphs | None

    @unbuffered
    @hinted
    def compile(
        self,
        inputs: Sequence[Any],
        is_train: bool = True,
        use_graph: bool = True,
        graph_alg: str | bool = "sequence",
        *,
        sequential: bool | None = None,
        memory_budget: int | float | str | None = None,
        exact: bool = True,
        amp: Any = None,
        check_every: int | Literal[False] | None = None,
        check_finite: bool = False,
        verify: bool | int = True,
        debug: bool = False,
    ) -> None:
        """Infers the shapes of every layer, and with `use_graph` turns `train_one_batch`, and
        `forward` in evaluation, into graph functions. Nothing is executed: parameters take no
        memory before they are needed.

        A graph function records a call and runs the recording. Once two recordings in a row are
        the same, calls like them are replayed without Python. The key of a recording is what it
        depends on: the arguments' shapes, dtypes, strides and flags, other arguments, the mode,
        and the numbers, strings and tensors in the attributes of the module, its layers and its
        optimizers; of numbers that change, the decisions on them. A condition on anything else (a
        file) is noticed only when a call happens to be recorded again (`check_every`). A function
        whose recordings keep differing, or that draws from other generators than the device's, runs
        eagerly, with one RuntimeWarning. `explain()` reports all of this.

        Args:
            inputs: a tensor, array or Placeholder for each argument of `forward`.
            is_train: whether the module is put into training, or evaluation.
            use_graph: whether steps are recorded and replayed.
            graph_alg: "sequence" runs operations one after another, each on as many threads as
                pay off. "parallel" also runs single-threaded operations concurrently where they
                do not depend on each other, which helps models with branches of small operations,
                such as inception modules, ensembles and recurrent cells. Results are bit-identical.
                Concurrent operations must not share memory, so the arena may be larger by a
                quarter, or by 16 MiB, within `memory_budget`. A part of the step that would not
                gain is run in sequence. A bool is SINGA's `sequential`.
            sequential: SINGA's keyword: True asks for "sequence", False for nothing.
            memory_budget: the limit on the arena of a graph: bytes, a size such as "2GB" or
                "512MiB", or, for training steps, a fraction of what the same step takes without
                recomputation (`unconstrained_bytes` of `plan`). Values that do not fit are
                recomputed instead of kept, with the same bits. Parameters, states, arguments and
                results are outside of the arena; `plan` shows them. A call for which no plan keeps
                to the budget raises MemoryBudgetError, whose `smallest` is the planner's best.
            exact: False allows rewrites that change results within rounding: a bias, or a
                gradient that is added to others, becomes the initial value of a product's sums;
                the logarithm of softmax is one operation; in evaluation batch normalisation is
                folded into the weights of the convolution before it. docs/rewriting.md states by
                how much results may differ. True keeps every bit of eager execution.
            amp: mixed precision (Micikevicius et al., 2018): "bfloat16" or "float16" is the type in
                which products, convolutions and attention are computed, and what they return;
                parameters, their gradients and the optimizer are float32, and so are sums, powers,
                norms, softmax and losses. Sums within products are float32, too. With "float16" the
                optimizer multiplies the loss by a factor (the layer `loss_scale`, whose states are
                saved with the model's), divides gradients by it, and skips an update in which one
                is not finite. A processor without arithmetic in the type computes in float32 and
                rounds: the results are those of one that has it, but it takes longer than without
                `amp`, as `plan` says.
            check_every: the number of replays after which a call is recorded again and compared;
                by default at most every 30 seconds and for a thousandth of the time; False, never.
            check_finite: every result is checked, and a step that makes a NaN or an infinity
                raises FloatingPointError, which names the first operation that did, its line,
                and describes its inputs and outputs. Operations run as they were recorded.
            verify: True compares the first run of each new graph with a run of the operations as
                they were recorded: results, parameters and states must be equal to the bit, and
                a graph that differs, which is a bug in this package, is not used, with a
                RuntimeWarning. That run takes as long as two, and more memory (`plan` shows how
                much). Nothing is compared if memory is short, if user code would run twice, or
                with `exact=False`. N compares every Nth run, False none.
            debug: nothing is recorded, and every call runs eagerly, with the same bits: values can
                be printed, read and inspected in a debugger anywhere in the step. The other options
                are checked, and have no effect.

        Raises:
            GraphError: `forward` reads a value, which placeholders do not have; not with
                `use_graph=False` or `debug`, where it runs once on zeros instead, in evaluation.
            ValueError: options that exclude each other: a memory budget and `check_finite`.
        """
        parallel = is_parallel(graph_alg, sequential)
        short = short_type(amp)
        budget = record.memory_budget(memory_budget)
        if budget is not None and check_finite:
            got = f"memory_budget={memory_budget!r} and check_finite"
            raise ValueError(f"compile: got {got}, want at most one of them")
        if not isinstance(exact, bool):
            raise TypeError(f"compile: got exact={exact!r}, want a bool")
        finite = finite_checks(check_finite, use_graph, short)
        checks = comparisons(verify)
        options = Options(every(check_every), exact, finite, parallel, budget, *checks, short)
        check_inputs(inputs)
        given = (inputs,) if isinstance(inputs, (Tensor, np.ndarray)) else tuple(inputs)
        is_train, use_graph = flag(is_train, "is_train"), flag(use_graph, "use_graph")
        use_graph = use_graph and not flag(debug, "debug")
        self._graphs = None
        self.train(is_train)
        if given:
            self.to_device(given[0].device if isinstance(given[0], Tensor) else self.device)
        self._compute_in(short)
        try:
            record.infer(type(self).forward, self, bool(is_train), given, {}, op="compile")
        except GraphError:
            if use_graph:
                raise
            self._run_on_zeros(given, is_train)
        _note_inputs(self, given, {})
        self._graphs = Graphs(options) if use_graph else None

    def _run_on_zeros(self, given: tuple[Any, ...], is_train: bool) -> None:
        """Lets the layers of a model whose `forward` reads values make their parameters."""
        zeros = (
            tensor.zeros(t.shape, t.device, t.dtype) if isinstance(t, Tensor) else t for t in given
        )
        self.eval()
        try:
            with autograd.no_grad():
                type(self).forward(self, *zeros)
        finally:
            self.train(is_train)

    def _compute_in(self, short: Any) -> None:
        """Mixed precision in this type, or none."""
        self._amp = short
        if short == tensor.float16:
            self.loss_scale = LossScale(self.device)
        elif "loss_scale" in self.__dict__:
            del self.loss_scale

    #: The operations of the model, which can be printed; called, SINGA's `Model.graph`.
    graph = GraphOf()

    def _switch(self, mode: bool, exact: bool = True, parallel: bool = False) -> None:
        """Turns the methods into graph functions, or back into plain methods."""
        options = Options(
            exact=flag(exact, "graph: exact"), parallel=flag(parallel, "graph: parallel")
        )
        self._graphs = Graphs(options) if flag(mode, "graph: mode") else None

    @property
    def graph_mode(self) -> bool:
        """Whether steps are recorded and replayed."""
        return self._graphs is not None

    @graph_mode.setter
    def graph_mode(self, mode: bool) -> None:
        self._switch(mode)

    @unbuffered
    def plan(
        self, *args: Any, ranks: int | None = None, network: str | None = None, **kwargs: Any
    ) -> Plan:
        """Records a call with these arguments and plans its memory without running it; leaves the
        module as it is. Arguments may be Placeholders.

        Args:
            ranks: how many machines train together, each on a batch of these shapes. The plan then
                has a `forecast` of the step, for each scheme of `DistOpt`; for that the step runs a
                few times on zeros, which is undone, and its operations are timed.
            network: the bandwidth and the latency between them, such as "100Gb, 5us".

        Raises:
            GraphError: the step reads a value.
            TypeError, ValueError: one of `ranks` and `network` without the other, or out of range.
        """
        if (ranks is None) != (network is None):
            raise TypeError("plan: got one of ranks and network, want both or none")
        name = self._default_method()
        method = getattr(type(self), name)
        full = f"{type(self).__name__}.{name}"
        made = record.plan(full, options_of(self), method, self, self.training, args, kwargs)
        if ranks is not None:
            made.forecast = forecast(made, self.get_states(), ranks, network)
        return made

    def _default_method(self) -> str:
        """The name of the method that a call of the module calls."""
        trains = self.training and hasattr(type(self), "train_one_batch")
        return "train_one_batch" if trains else "forward"

    @property
    def graphs(self) -> list[viz.Graph]:
        """The graphs that calls replay, each with `nodes`, `blocks`, `peak_bytes`,
        `lower_bound_bytes`, `arena_bytes`, `summary()`, `to_json()`, `to_dot()`, `profile(n)`,
        `to_trace(path)` and `to_html(path)`."""
        functions = self._graphs.all() if self._graphs is not None else []
        names = {state.block_id: name for name, state in self.get_states().items()}
        return [
            entry.picture(f"{function.name}, graph {index}", names)
            for function in functions
            for index, entry in enumerate(function.entries)
        ]

    def explain(self) -> str:
        """A report: the graphs and their keys, why each recording happened and with what outcome,
        and why a function runs eagerly."""
        if self._graphs is None:
            return f"{type(self).__name__} runs eagerly: compile it with use_graph=True"
        functions = self._graphs.all()
        if not functions:
            return f"{type(self).__name__}: nothing has been called since it was compiled"
        return "\n".join(function.explain() for function in functions)


def options_of(module: Graphed) -> Options:
    """How the steps of a module are recorded."""
    return module._graphs.options if module._graphs is not None else Options()


def graph_function(
    module: Any, function: Callable[..., Any], name: str, training: bool
) -> GraphFunction | None:
    """The graph function that handles a call of a module's method; None if the method itself runs:
    uncompiled, within another module's call or a recording, or `forward` in training."""
    graphs = module._graphs
    if graphs is None or now.running or (training and name == "forward"):
        return None
    return None if record.is_recording() else graphs.of(function, module, name)


def _note_inputs(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Notes shapes and dtypes of what `forward` takes, if these are tensors or arrays alone."""
    if not kwargs and all(isinstance(x, (Tensor, np.ndarray)) for x in args):
        found = [(x.shape, dtype_of(x)) for x in args]
        module.__dict__["_inputs"] = found


def _wrap(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that takes NumPy arrays and runs in the module's mode."""

    @wraps(function)
    def entry(self: Module, *args: Any, **kwargs: Any) -> Any:
        training = self._mode_of(name)
        if self._graphs is not None and not kwargs and training is self.training:
            made = self._graphs.call(function, self, args)
            if made is not MISS:
                return made
        return call(self, training, args, kwargs)

    def call(self: Module, training: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method in a given mode."""
        if self._inputs is None and name == "forward":
            _note_inputs(self, args, kwargs)
        if self._graphs is not None:
            graphed = graph_function(self, function, name, training)
            if graphed is not None:
                self._graphs.fast_path = None  # it may hold what the program has let go
                try:
                    made = graphed(function, self, training, args, kwargs)
                except Exception as error:
                    raise shortened(error) from error.__cause__
                if self._has_mode and self.training is training and name == self._default_method():
                    self._graphs.fast_path = graphed.fast_path()
                return made
        if holds_array(args) or holds_array(kwargs):
            args, kwargs = admit(args, self.device), admit(kwargs, self.device)
        if now.running:
            return function(self, *args, **kwargs)
        with autograd._training_scope(training):
            return function(self, *args, **kwargs)

    entry.call, call.of = call, entry  # type: ignore[attr-defined]
    return entry


def _precise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that computes in the module's precision."""

    @wraps(function)
    def precise(self: Module, *args: Any, **kwargs: Any) -> Any:
        if self._amp is None:
            return function(self, *args, **kwargs)
        with autograd._precision_scope(precision_of(self)):
            return function(self, *args, **kwargs)

    return precise


def wrap_forward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `forward`."""
    return _wrap(_precise(function), "forward")


def wrap_train_one_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `train_one_batch`; the layers called within it belong to the module."""
    function = hinted(function, "these, as a call in training is a step, or eval() first")

    @wraps(function)
    def step(self: Module, *args: Any, **kwargs: Any) -> Any:
        with_place(self)
        depth, before = len(now.running), 0
        try:  # an interrupt may come between any two of these lines
            now.running.append(self)
            record.begin_step()
            before = record.begin_layer(self._layer_node.path)
            return function(self, *args, **kwargs)
        finally:
            del now.running[depth:]
            record.resume(before)

    return _wrap(_precise(step), "train_one_batch")


def wrap_deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a method `loss` or `optim`, as old programs define them."""
    entry = _wrap(function, function.__name__)

    @wraps(function)
    def old(self: Module, *args: Any, **kwargs: Any) -> Any:
        message = f"{type(self).__name__}.{function.__name__}: define train_one_batch instead"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return entry(self, *args, **kwargs)

    return old
