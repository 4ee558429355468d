"""Graph functions, which `Module.compile` turns a module's methods into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import autograd, record, tensor, viz
from ..compat.recording import unbuffered
from ..dist.forecast import forecast
from ..errors import GraphError
from ..layer.base import Layer
from ..layer.check import flag
from ..layer.collect import below, held
from ..layer.node import now
from ..record import MISS, FastPath, GraphFunction, Options, Plan, name_written, note_change
from ..refusals import hinted
from ..tensor import Tensor
from . import modes
from .arguments import check_inputs, comparisons, every, finite_checks, is_parallel
from .precision import LossScale, short_type
from .structure import GraphOf
from .wrapping import note_inputs

if TYPE_CHECKING:
    from ..device import Device


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
        to = given[0].device if given and isinstance(given[0], Tensor) else self.device
        with _restored_if_refused(self, to):
            self._graphs = None
            self.train(is_train)
            if given:
                self.to_device(to)
            self._amp = short
            self._infer(given, is_train, may_read=not use_graph)
            self._scale_loss(short == tensor.float16)
        note_inputs(self, given, {})
        self._graphs = Graphs(options) if use_graph else None

    def _infer(self, given: tuple[Any, ...], is_train: bool, may_read: bool) -> None:
        """Lets the layers make their parameters. Where `forward` may read values and does, it runs
        on zeros."""
        try:
            record.infer(type(self).forward, self, is_train, given, {}, op="compile")
        except GraphError:
            if not may_read:
                raise
            self._run_on_zeros(given, is_train)

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

    def _scale_loss(self, scales: bool) -> None:
        """Gives the module a scale of its loss, or none."""
        if scales:
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
        method = self._default_function()
        full = f"{type(self).__name__}.{name}"
        made = record.plan(full, options_of(self), method, self, self.training, args, kwargs)
        if ranks is not None:
            made.forecast = forecast(made, self.get_states(), ranks, network)
        return made

    def _default_method(self) -> str:
        """The name of the method that a call of the module calls."""
        trains = self.training and hasattr(self, "train_one_batch")
        return "train_one_batch" if trains else "forward"

    def _default_function(self) -> Any:
        """That method, not bound to the module."""
        name = self._default_method()
        return getattr(getattr(self, name), "__func__", None) or getattr(type(self), name)

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
            return f"{type(self).__name__}: {self._why_none()}"
        return "\n".join(function.explain() for function in functions)

    def _why_none(self) -> str:
        name = self._default_method()
        if name in self.__dict__ and not hasattr(self.__dict__[name], "_wrappers"):
            return f"{name} is assigned and no method, so it runs eagerly; want {name}(self, ...)"
        return "nothing has been called since it was compiled"


def options_of(module: Graphed) -> Options:
    """How the steps of a module are recorded."""
    return module._graphs.options if module._graphs is not None else Options()


@contextmanager
def _restored_if_refused(module: Graphed, to: Device) -> Iterator[None]:
    """A block that, if it raises, leaves a module as it was: attributes, modes, devices; and the
    random numbers of the device that the module is moved to."""
    drawn = None if record.is_recording() else to.get_rng_state()
    attributes = [one._remember() for one in below(module)]
    devices = [(one, one.device) for one in held(module)]
    restore_mode = modes.remembered()
    try:
        yield
    except BaseException:
        for one, before in devices:
            if one.device != before:
                one.to_device(before)
        for restore in attributes:
            restore(False)
        restore_mode()
        if drawn is not None:
            to.set_rng_state(drawn)
        note_change()
        raise
