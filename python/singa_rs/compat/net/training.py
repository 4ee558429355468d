"""Training, evaluation and prediction of a net as recorded steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import autograd, record, tensor
from ...errors import GraphError
from ...layer.check import count, flag
from ...layer.node import now
from ...loss import Loss as MeanLoss
from ...module.graphs import Graphs
from ...record import Options, Plan
from ...tensor import Tensor
from ..loss import Loss
from ..optimizer import Optimizer
from ..proto.model_pb2 import kEval, kTrain
from .passes import Passes


class Epoch(NamedTuple):
    """What `fit` tells of an epoch: means over its samples; None for what was not computed."""

    loss: float
    metric: float | None
    val_loss: float | None = None
    val_metric: float | None = None


class Trained(Passes):
    """The part of a net that runs steps with a loss, and records them once it is compiled."""

    _unwatched = Passes._unwatched | {"_graphs", "metric"}
    _graphs: Graphs | None = None
    loss: Loss | None
    metric: Any
    optimizer: Optimizer | None

    def compile(
        self,
        optimizer: Optimizer | None = None,
        loss: Loss | None = None,
        metric: Any = None,
        *,
        use_graph: bool = True,
        memory_budget: int | float | str | None = None,
        verify: bool = True,
    ) -> None:
        """Sets what steps need, and records them: `train`, `train_on_batch`, `evaluate` and
        `predict` replay a recorded graph once two recordings agree, with the bits of the plain
        methods (docs/recording.md). Layers, losses and optimizers must not read values then;
        metrics are computed outside.

        Args:
            optimizer: of `compat.optimizer`, for `train_on_batch` and `fit`. The specifications of
                all parameters are registered.
            loss, metric: in the place of the constructor's, unless None.
            use_graph: whether steps are recorded.
            memory_budget, verify: as in `Module.compile`.

        Raises:
            TypeError: an argument of another type, such as a loss or an optimizer of the package
                itself, whose gradients and updates are scaled differently.
            ValueError: an option out of its range.
        """
        budget = record.memory_budget(memory_budget)
        options = Options(memory_budget=budget, verify=flag(verify, "compile: verify"))
        graphs = Graphs(options) if flag(use_graph, "compile: use_graph") else None
        loss = self.loss if loss is None else a_loss(loss, "compile: loss")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            got = f"{type(optimizer).__module__}.{type(optimizer).__name__}"
            raise TypeError(f"compile: optimizer: got {got}, want one of compat.optimizer")
        for spec in () if optimizer is None else self.param_specs():
            optimizer.register(spec.name, spec)
        self._graphs, self.loss = graphs, loss
        self.metric = self.metric if metric is None else metric
        self.optimizer = self.optimizer if optimizer is None else optimizer

    # ---- recorded steps --------------------------------------------------------------------------

    def _run(self, name: str, training: bool, *args: Any) -> Any:
        """Runs a step, as a graph if the net is compiled and nothing around it is recorded."""
        args, step = tuple(self._admitted(one) for one in args), _STEPS[name]
        if self._graphs is None or now.running or record.is_recording():
            with autograd._training_scope(training):
                return step(self, *args)
        for layer in self.layers:
            layer._stretch = None  # what a forward by hand has kept
        return self._graphs.of(step, self, name)(step, self, training, args, {})

    def _admitted(self, value: Any) -> Any:
        """An argument, with arrays copied to the net's device."""
        if isinstance(value, np.ndarray):
            return tensor.from_numpy(value, self.device)
        if isinstance(value, dict):
            return {name: self._admitted(one) for name, one in value.items()}
        return [self._admitted(one) for one in value] if isinstance(value, list) else value

    def plan(self, x: Any, y: Any) -> Plan:
        """Records the step of `train_on_batch`, or of `train` without an optimizer, and plans its
        memory without running it. The net is left as it is."""
        self._needs_loss("plan")
        name = "train" if self.optimizer is None else "train_on_batch"
        options = Options() if self._graphs is None else self._graphs.options
        args = (self._admitted(x), self._admitted(y))
        full = f"{type(self).__name__}.{name}"
        return record.plan(full, options, _STEPS[name], self, True, args, {})

    def explain(self) -> str:
        """The recorded graphs and their keys, as text."""
        found = [] if self._graphs is None else self._graphs.all()
        return "\n".join(one.explain() for one in found) or "FeedForwardNet: nothing is recorded"

    def _needs_loss(self, method: str) -> None:
        if self.loss is None:
            raise GraphError(f"{method}: the net has no loss; give one to the constructor")

    # ---- steps -----------------------------------------------------------------------------------

    def train(self, x: Any, y: Any) -> tuple[list[Tensor], tuple[float, float | None]]:
        """Forward and backward of a batch, for nets with one output. No parameter is updated.

        Args:
            x: as in `forward`; arrays are copied.
            y: the truth.

        Returns:
            The gradients of all parameters, in the order of `param_values`, divided by the size of
            the batch; and the mean loss and the metric, None without one. All gradients are in
            memory together: a loop over `backward`, and `train_on_batch`, take less.

        Raises:
            GraphError: the net has no loss, or several outputs.
        """
        self._needs_loss("train")
        grads, losses, out = self._run("train", True, x, y)
        return grads, (losses.l1(), self._measured(out, y))

    def train_on_batch(self, x: Any, y: Any, epoch: int = 0, step: int = 0, lr: Any = None) -> Any:
        """A step of training: forward, backward, and the update of each parameter as soon as its
        gradient is final.

        Args:
            x, y: as in `train`.
            epoch, step: passed to the optimizer; steps count over all epochs.
            lr: the learning rate, or a function of the epoch; the optimizer's by default.

        Returns:
            The mean loss and the metric, None without one.

        Raises:
            GraphError: `compile` was given no optimizer; the net has no loss, or several outputs.
            ValueError: there is no learning rate.
        """
        self._needs_loss("train_on_batch")
        optimizer = self.optimizer
        if optimizer is None:
            raise GraphError("train_on_batch: call compile with an optimizer first")
        rate = optimizer.lr if lr is None else lr
        rate = rate(epoch) if callable(rate) else rate
        if rate is None:
            raise ValueError("train_on_batch: got no lr, and the optimizer has none")
        optimizer.begin(epoch, rate, step)
        when = (epoch, step) if optimizer.depends_on_time else ()
        losses, out = self._run("train_on_batch", True, x, y, *when)
        return losses.l1(), self._measured(out, y)

    def evaluate(self, x: Any, y: Any) -> tuple[Any, float | None]:
        """The mean loss and the metric of a batch in evaluation, None for what the net lacks.

        Raises:
            GraphError: it has neither, or several outputs.
        """
        if self.loss is None and self.metric is None:
            raise GraphError("evaluate: the net has neither a loss nor a metric")
        out, truth = self._run("evaluate", False, x), self._admitted(y)
        loss = None if self.loss is None else self.loss.evaluate(kEval, out, truth)
        return loss, self._measured(out, y)

    def predict(self, x: Any) -> Tensor:
        """Softmax of the net's output in evaluation, over its last axis."""
        return self._run("predict", False, x)

    def _measured(self, out: Tensor, y: Any) -> float | None:
        return None if self.metric is None else self.metric.evaluate(out, y)

    # ---- the loop --------------------------------------------------------------------------------

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int,
        epochs: int = 1,
        *,
        validation: tuple[Any, Any] | None = None,
        val_split: float = 0.0,
        shuffle: bool = True,
        seed: int | None = None,
        lr: Any = None,
    ) -> list[Epoch]:
        """Trains on all samples, batch by batch (SINGA 1.x FeedForwardNet.Train).

        Args:
            x, y: arrays or tensors with a row for each sample.
            batch_size: the size of a batch; the last one may be smaller.
            epochs: how often all samples are used.
            validation: x and y to evaluate after each epoch.
            val_split: instead of it, the share of the samples, the last ones, to evaluate.
            shuffle: whether samples come in another order in each epoch, of a generator with
                `seed`.
            lr: the learning rate, or a function of the epoch; the optimizer's by default.

        Returns:
            The figures of each epoch.

        Raises:
            ValueError: x and y of different lengths, or an argument out of its range.
            GraphError: as `train_on_batch`.
        """
        (x, y), held = _shared(_rows(x), _rows(y), val_split, validation)
        size, draws = count(batch_size, "fit: batch_size"), np.random.default_rng(seed)
        found: list[Epoch] = []
        for epoch in range(count(epochs, "fit: epochs")):
            order = draws.permutation(len(x)) if shuffle else np.arange(len(x))
            batches = list(_batches(order, size))
            first = epoch * len(batches)
            told = [
                (len(at), *self.train_on_batch(x[at], y[at], epoch, first + number, lr))
                for number, at in enumerate(batches)
            ]
            more = () if held is None else self._validated(*held, size)
            found.append(Epoch(*_means(told), *more))
        return found

    def _validated(self, x: np.ndarray, y: np.ndarray, size: int) -> tuple[Any, ...]:
        batches = _batches(np.arange(len(x)), size)
        return _means([(len(at), *self.evaluate(x[at], y[at])) for at in batches])


def a_loss(loss: Any, argument: str) -> Loss:
    """A loss whose gradient is that of a sum."""
    if isinstance(loss, MeanLoss):
        kind = type(loss).__name__
        raise TypeError(f"{argument}: got singa_rs.loss.{kind}, a mean; want compat.loss.{kind}")
    if not isinstance(loss, Loss):
        raise TypeError(f"{argument}: got {type(loss).__name__}, want a loss of compat.loss")
    return loss


def _single(out: Any) -> Tensor:
    if not isinstance(out, Tensor):
        names = ", ".join(out) if isinstance(out, dict) else "one layer, in a list"
        raise GraphError(
            f"the net has several outputs ({names}); call forward and backward by hand"
        )
    return out


def _seeded(net: Trained, x: Any, y: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The output, its losses, and the gradient of their mean over the batch."""
    out = _single(net.forward(kTrain, x))
    losses = net.loss.forward(kTrain, out, y)
    with autograd.no_grad():
        return out, losses, net.loss.backward() / float(out.shape[0])


def trained(net: Trained, x: Any, y: Any) -> tuple[list[Tensor], Tensor, Tensor]:
    """The step of `train`: all gradients, the losses and the output."""
    out, losses, dy = _seeded(net, x, y)
    by_layer = [told[2] for told in net.backward(dy)]
    return [grad for grads in reversed(by_layer) for grad in grads], losses, out


def updated(net: Trained, x: Any, y: Any, epoch: int = 0, step: int = 0) -> tuple[Tensor, Tensor]:
    """The step of `train_on_batch`: updates the parameters; the losses and the output. The epoch
    and the step are given only if an update depends on them, as they are part of the recording."""
    out, losses, dy = _seeded(net, x, y)
    told = net.backward(dy)
    del dy
    for names, values, grads, _ in told:
        for name, value, grad in zip(names, values, grads, strict=True):
            net.optimizer.update(epoch, grad, value, name, step)
            del grad
        del grads  # so that its memory is free for those of the next layer
    return losses, out


def evaluated(net: Trained, x: Any) -> Tensor:
    """The step of `evaluate`: the output."""
    return _single(net.forward(kEval, x))


def predicted(net: Trained, x: Any) -> Tensor:
    """The step of `predict`."""
    with autograd.no_grad():
        return autograd.softmax(_single(net.forward(kEval, x)), -1)


#: By the name of the method that runs it.
_STEPS: dict[str, Callable[..., Any]] = {
    "train": trained,
    "train_on_batch": updated,
    "evaluate": evaluated,
    "predict": predicted,
}


# ---- samples -------------------------------------------------------------------------------------


def _rows(values: Any) -> np.ndarray:
    if isinstance(values, dict):
        raise TypeError("fit: got a dictionary, want an array; use train_on_batch")
    return values.to_numpy() if isinstance(values, Tensor) else np.asarray(values)


def _shared(x: np.ndarray, y: np.ndarray, split: float, validation: Any) -> Any:
    """The samples to train on, and those to evaluate."""
    if len(x) != len(y) or not len(x):
        raise ValueError(f"fit: got {len(x)} rows of x and {len(y)} of y, want as many, from 1")
    if not 0 <= split < 1 or (split and validation is not None):
        raise ValueError(f"fit: val_split: got {split}, want a number in [0, 1), or validation")
    kept = len(x) - round(len(x) * split)
    if validation is not None:
        return (x, y), tuple(map(_rows, validation))
    if kept == len(x):
        return (x, y), None
    if not kept:
        raise ValueError(f"fit: val_split: got {split} of {len(x)} rows, want some to train on")
    return (x[:kept], y[:kept]), (x[kept:], y[kept:])


def _batches(order: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _means(told: list[tuple[Any, ...]]) -> tuple[float | None, float | None]:
    """The means of losses and metrics over samples, of (samples, loss, metric) of each batch."""
    total = sum(rows for rows, _, _ in told)
    loss, metric = (
        None
        if any(row[i] is None for row in told)
        else sum(r[0] * float(r[i]) for r in told) / total
        for i in (1, 2)
    )
    return loss, metric
