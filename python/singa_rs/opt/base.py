"""Optimizer: which parameters it updates, with which gradients."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from .. import autograd, device, elsewhere, tensor
from ..autograd.leaves import is_parameter
from ..layer.check import device_check, tensors
from ..notices import once
from ..record import updating
from ..refusals import Hinted, is_of_package
from ..tensor import Tensor
from .assigned import Place
from .clipping import clip_grad_value, clipped_norms
from .exchange import Exchange, Pair
from .holding import held, is_own
from .hyperparameters import OPTIONAL, SUMS, Scheduled
from .scaling import Scale, are_finite, backward, full_precision, only_if, zero_unless
from .schedule import Constant, DecayScheduler, arguments
from .selection import Selection, check_rate, leave_out, none_updated, step_alone
from .sums import Sums

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Default(float):
    """A learning rate that nobody gave."""


#: SINGA's.
DEFAULT_LR = _Default(0.1)


class Options(TypedDict, total=False):
    """What every optimizer may be given by name."""

    #: What it updates, as in `Selection`; everything by default.
    params: Any
    #: The greatest norm of all its gradients together, and the greatest absolute value of an
    #: element of one: numbers above 0, schedules, or None.
    clip_norm: float | DecayScheduler | None
    clip_value: float | DecayScheduler | None


_CLIPS = {name: (f"{name}_limit", {}) for name in OPTIONAL}


class Optimizer(Hinted, Scheduled):
    """Applies gradients to parameters.

    Hyperparameters are as in `Scheduled`. Subclasses override `apply`, declare further
    hyperparameters and moments, and read the tensors.

    Options of every optimizer, by name: `params`, what it updates (as in `Selection`; everything by
    default); `clip_value`, the greatest absolute value of an element of a gradient; `clip_norm`,
    the greatest Euclidean norm of all gradients together (Pascanu et al., 2013), for which all of
    them are computed before the first update, so that they are in memory at once. Values are
    clipped first. Both may be assigned at any time; None, and the 0 that it becomes, turn them off.

    `group` gives some parameters hyperparameters of their own.
    """

    hyperparameters: ClassVar[dict[str, tuple[str, dict[str, float]]]] = {
        "lr": ("lr_value", {}),
        **_CLIPS,
    }
    #: Whether an element's update depends on that element's gradient and moments alone.
    is_elementwise: ClassVar[bool] = False
    #: Tensors of hyperparameters, those that the optimizer has.
    lr_value: Tensor
    decay_value: Tensor
    clip_norm_limit: Tensor
    clip_value_limit: Tensor
    #: What PyTorch has where the learning rate is not given.
    _usual_lr: ClassVar[float] = 0.01
    _parent: Optimizer | None = None
    _params: Selection | None = None
    _groups: tuple[Optimizer, ...] = ()
    #: Whether gradients may have added up.
    _accumulates = False

    def __init__(
        self,
        lr: float | DecayScheduler,
        dtype: Any = tensor.float32,
        **options: Unpack[Options],
    ) -> None:
        """`lr`: a number from 0 or a schedule. `dtype` is that of the hyperparameters'
        tensors: float64, or else float32. Moments are as precise as their update needs.

        Raises:
            TypeError: a learning rate that is neither, an unknown option.
            ValueError: one below 0, infinite or NaN.
        """
        super().__init__(dtype)
        name = type(self).__name__
        unknown = sorted(set(options) - set(Options.__annotations__))
        if unknown:
            known = [*arguments(type(self)), *Options.__annotations__]
            want = elsewhere.of_keyword(unknown[0], known) or ", ".join(known)
            raise TypeError(f"{name}: got an unknown argument {unknown[0]!r}, want {want}")
        if lr is DEFAULT_LR:
            usual = f"PyTorch's default is {self._usual_lr}"
            once(
                ("lr", name),
                f"{name}: lr was not given, so it is 0.1, SINGA's default; {usual}: "
                f"{name}(lr={self._usual_lr})",
            )
        check_rate(name, lr)
        self.lr = lr
        if options.get("params") is not None:
            self._params = Selection(options["params"], f"{name}: params")
        self.clip_norm, self.clip_value = options.get("clip_norm"), options.get("clip_value")

    def __repr__(self) -> str:
        """The class with its hyperparameters, but those that are off."""
        shown = []
        for name in type(self).hyperparameters:
            schedule = getattr(self, name) if name in vars(self) else None
            if type(schedule) is Constant:
                if schedule.init_value or name == "lr":
                    shown.append(f"{name}={schedule.init_value:g}")
            elif schedule is not None:
                shown.append(f"{name}={schedule!r}")
        flags = (name for name in arguments(type(self)) if self.__dict__.get(name) is True)
        shown.extend(f"{name}=True" for name in flags)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "hyperparameters" in vars(cls):
            cls.hyperparameters = {**cls.hyperparameters, **_CLIPS}
        super().__init_subclass__(**kwargs)

    if not TYPE_CHECKING:  # so that checkers refuse attributes that no class declares

        def __getattr__(self, name: str) -> Any:
            """A group has the attributes of its optimizer, except its own."""
            parent = self.__dict__.get("_parent")
            if parent is None or name.startswith("__"):
                raise elsewhere.lacking(self, name, elsewhere.of_optimizer(name))
            return getattr(parent, name)

    # ---- groups ----------------------------------------------------------------------------------

    def group(self, params: Any, **own: float | DecayScheduler) -> Optimizer:
        """Gives parameters hyperparameters of their own, such as `lr=1e-4, weight_decay=0`.

        The others, the step counter and the moments are the optimizer's. A parameter belongs to the
        first group that has it. Returns the group, whose hyperparameters may be assigned at any
        time, as those of the optimizer.

        Args:
            params: as in `Selection`.

        Raises:
            TypeError: an argument that is no hyperparameter, or neither a number nor a schedule.
            ValueError: a number out of its range; a group of a group.
        """
        name = f"{type(self).__name__}.group"
        if self._parent is not None:
            raise ValueError(f"{name}: a group has no groups")
        unknown = sorted(set(own) - (set(self.hyperparameters) - set(OPTIONAL)))
        if unknown:
            raise TypeError(f"{name}: got {unknown[0]!r}, which is no hyperparameter of a group")
        made = object.__new__(type(self))
        made.__dict__.update(_parent=self, _params=Selection(params, f"{name}: params"))
        made.__dict__["_is_double"] = self._is_double
        for key, value in own.items():
            setattr(made, key, value)
        made.__dict__["_is_made"] = True
        self._groups = (*self._groups, made)
        return made

    def member(self, param_name: str, param: Tensor) -> Optimizer:
        """The group that a parameter belongs to, or the optimizer itself."""
        for group in self._groups:
            if group._params.has(param_name, param):
                return group
        return self

    def owns(self, param_name: str, param: Tensor) -> bool:
        """Whether the optimizer updates a parameter: it is among `params`, or these were not
        given; without them, what is no more than asked for its gradient, by `requires_grad_`, is
        none."""
        if self._params is None:
            return is_parameter(param)
        return self._params.has(param_name, param)

    def _fit(self, param: Tensor) -> None:
        if self._parent is not None:
            self._parent._fit(param)
        super()._fit(param)

    def _move_to(self, to: device.Device) -> None:
        super()._move_to(to)
        for group in self._groups:
            group._move_to(to)

    def _schedules(self) -> Iterator[tuple[str, DecayScheduler, Tensor]]:
        yield from super()._schedules()
        for number, group in enumerate(self._groups):
            for name, schedule, holder in group._schedules():
                yield f"{number}.{name}", schedule, holder

    def _places(self) -> Iterator[Place]:
        yield from super()._places()
        for number, group in enumerate(self._groups):
            for _, owner, name in group._places():
                yield Place(f"{number}.{name}", owner, name)

    # ---- updates ---------------------------------------------------------------------------------

    def __call__(self, loss: Tensor) -> None:
        """Backward, the update of every parameter that the optimizer owns, and `step`.

        In mixed precision in float16, all gradients are computed before the first update, and an
        update in which one is not finite is skipped: parameters, moments and the step counter stay
        as they are. The sums of `accumulate` start from zero nevertheless, as they may be what is
        not finite.
        """
        if self.call != self._call:
            self.call(loss)
            self.step()
        else:
            self._train(loss)

    def _train(self, loss: Tensor, exchange: Exchange | None = None) -> None:
        """`self(loss)`, whose gradients are exchanged with other processes first."""
        with updating(), full_precision() as scale:
            is_finite = self._update(loss, scale, exchange)
            with only_if(is_finite, self._stepped):
                self.step()

    def call(self, loss: Tensor) -> None:
        """Backward and the update of every parameter that the optimizer owns, without `step`.

        Raises:
            ValueError: `params` were given, and none of them has a gradient of this loss.
        """
        with updating(), full_precision() as scale:
            self._update(loss, scale)

    #: What a subclass may override, as in SINGA.
    _call = call

    def _update(
        self, loss: Tensor, scale: Scale | None, exchange: Exchange | None = None
    ) -> Tensor | None:
        """`call`; returns whether the update took place, a bool, None if it always does. What is
        looked at and clipped are the exchanged gradients, which are the same on all ranks."""
        exchange = Exchange() if exchange is None else exchange
        # Limits are read before the first parameter is updated.
        clips = self._uses("clip_value") or self._uses("clip_norm")
        (self._fit if clips else self._follow)(loss)
        others: list[Tensor] = []
        sums = Sums(self._moments, exchange)
        pairs: Iterable[Pair] = self._owned(backward(loss, scale), others)
        pairs = sums.exchanged(pairs) if self._accumulates else exchange(pairs)
        is_finite = None
        if scale is not None:
            pairs = list(pairs)
            is_finite = are_finite(pairs, scale, exchange.on_all)
        if self._uses("clip_value"):
            pairs = clip_grad_value(pairs, self.clip_value_limit)
        if self._uses("clip_norm"):
            pairs = clipped_norms(pairs, self.clip_norm_limit, exchange.whole_square)
        param = None
        with only_if(is_finite, self._held_by_user):
            for param, grad in pairs:
                if is_finite is not None and is_own(self):
                    grad = zero_unless(is_finite, grad)
                written = partial(self._written, param)
                with updating(param), only_if(is_finite, written):
                    with sums.only_if_added(param, written, self._held_by_user):
                        exchange.member(self, param).apply(param.name, param, grad)
                del grad  # so that its memory is free for the next one
                if exchange.is_done(param):
                    sums.used(param)
        exchange.end()
        sums.end()
        if param is None:
            none_updated(type(self).__name__, self._params, bool(others))
        return is_finite

    def _written(self, param: Tensor) -> dict[Hashable, Tensor]:
        """What an update of a parameter writes."""
        return {id(one): one for one in (param, *self._moments.made(param, self.moment_kinds))}

    def _stepped(self) -> dict[Hashable, Tensor]:
        """What `step` writes: the optimizer's tensors, and those of its groups' schedules."""
        of_groups = [holder for group in self._groups for _, _, holder in group._schedules()]
        own = {id(one): one for one in (*self._own_tensors(), *of_groups)}
        return {**own, **self._held_by_user()}

    def _held_by_user(self) -> dict[Hashable, Tensor]:
        """What only updates of the user's own write."""
        return held((self, *self._groups)) if is_own(self) else {}

    def step(self) -> None:
        """Advances the step counter and the schedules, by operations. No parameter is updated:
        PyTorch's `loss.backward(); optimizer.step()` is `optimizer(loss)`, of which the first such
        call warns, as does the first after `accumulate` alone."""
        # The package's optimizers note their updates.
        if is_of_package(type(self).apply):
            step_alone(type(self).__name__, self._moments)
        super().step()

    def accumulate(self, loss: Tensor) -> None:
        """Backward; adds the gradients of the parameters that the optimizer owns to their sums,
        which are part of the gradients of the next update, and of `get_states`.

        So `accumulate(loss / 2)` and a call with `loss / 2` of another batch make one step of both
        batches, which are never in memory together. The sums are float32, or float64 for parameters
        of float64. A parameter that the loss of the update does not reach, as one that has been
        frozen meanwhile, is updated once by what it has added up to, but not by zeros.
        """
        self._add_up(loss)

    def _add_up(self, loss: Tensor, exchange: Exchange | None = None) -> None:
        """`accumulate`, of what comes out of an exchange."""
        self._accumulates = self._moments.has_added = True
        self._follow(loss)
        with updating(), full_precision() as scale:
            others: list[Tensor] = []
            pairs, param = self._owned(backward(loss, scale), others), None
            for param, grad in pairs if exchange is None else exchange(pairs):
                total = self._moments.of(param, param.name, SUMS)
                with autograd.no_grad():
                    total += grad.as_type(total.dtype)
                del grad
            if param is None and self._params is None:
                none_updated(type(self).__name__, None, bool(others))

    def _owned(self, pairs: Iterable[Pair], others: list[Tensor]) -> Iterator[Pair]:
        """The pairs of the parameters that it owns; `others` gets those that it does not."""
        for pair in pairs:
            ready = [pair] if self.owns(pair[0].name, pair[0]) else []
            if not ready:
                others.append(pair[0])
                if self._params is None:
                    leave_out(type(self).__name__, pair[0])
            del pair
            if ready:
                yield ready.pop()

    def backward_and_update(self, loss: Tensor) -> None:
        """`self(loss)`."""
        self(loss)

    def apply(self, param_name: str, param_value: Tensor, param_grad: Tensor) -> None:
        """Updates one parameter in place; the gradient is not changed. Moments belong to the
        parameter, the name is for `get_states`."""
        raise NotImplementedError(f"{type(self).__name__} has no apply")

    def update(self, param: Tensor, grad: Tensor) -> None:
        """`apply` under the parameter's own name. Deprecated, as in SINGA."""
        tensors((param, grad), f"{type(self).__name__}.update")
        warnings.warn("Optimizer.update: use apply", DeprecationWarning, stacklevel=2)
        self.apply(param.name, param, grad)

    device_check = device_check

    def _ready(self, param_name: str, param: Tensor, grad: Tensor) -> Optimizer:
        """The group that a parameter belongs to, or the optimizer itself, ready to update it."""
        owner = self.member(param_name, param)
        owner._fit(param)
        owner.device_check(param, grad, *owner._own_tensors())
        return owner

    def _look_in(self, model: Any) -> None:
        """Tells whose parameters states that were set are of."""
        self._moments.look_in(model)

    def set_states(self, states: Mapping[str, Any]) -> None:
        """As `Scheduled.set_states`."""
        super().set_states(states)
        self._look_in(None)
        if SUMS in states:
            self._accumulates = True
