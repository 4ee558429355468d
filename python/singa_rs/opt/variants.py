"""Further optimizers: variants of Adam, Adadelta, and those that scale whole matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import autograd, device, tensor
from ..errors import ShapeError
from ..layer.check import count
from ..layer.check import flag as check_flag
from ..layer.check import number as check_number
from ..tensor import Tensor
from .base import Options
from .composed import Composed, average
from .holding import on
from .hyperparameters import FRACTION, holders, moments_by_name
from .schedule import DecayScheduler

if TYPE_CHECKING:
    from typing_extensions import Unpack

_sqrt = autograd.sqrt
Number = float | DecayScheduler


class Adadelta(Composed):
    """Steps in the unit of the parameter (Zeiler, 2012; PyTorch Adadelta), with weight decay added
    to g:

        squares = rho * squares + (1 - rho) * g**2
        delta = sqrt(deltas + epsilon) / sqrt(squares + epsilon) * g
        deltas = rho * deltas + (1 - rho) * delta**2
        p = p - lr * delta
    """

    is_elementwise = True
    hyperparameters = holders(lr={}, rho=FRACTION, epsilon={}, weight_decay={})
    moment_kinds = ("squares", "deltas")

    def __init__(
        self,
        lr: Number = 1.0,
        rho: Number = 0.9,
        epsilon: Number = 1e-6,
        weight_decay: Number = 0,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0 (rho below 1), or schedules.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr, **options)
        self.rho, self.epsilon, self.weight_decay = rho, epsilon, weight_decay

    squares = moments_by_name("squares", "The averages of squared gradients by parameter name.")
    deltas = moments_by_name("deltas", "The averages of squared steps by parameter name.")

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments."""
        squares, deltas = moments
        g, rho, eps = self.decayed(p, g), self.number("rho", p), self.number("epsilon", p)
        squares = average(squares, g * g, rho)
        delta = _sqrt(deltas + eps) / _sqrt(squares + eps) * g
        return p - delta * self.number("lr", p), squares, average(deltas, delta * delta, rho)


class _OfMoments(Composed):
    """What the variants of Adam share: hyperparameters and moments."""

    is_elementwise = True
    hyperparameters = holders(lr={}, beta_1=FRACTION, beta_2=FRACTION, epsilon={}, weight_decay={})
    moment_kinds = ("m", "v")

    def __init__(
        self,
        lr: Number = 0.001,
        beta_1: Number = 0.9,
        beta_2: Number = 0.999,
        epsilon: Number = 1e-8,
        weight_decay: Number = 0,
        **options: Unpack[Options],
    ) -> None:
        """As `Adam`, with the paper's defaults."""
        super().__init__(lr, **options)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.weight_decay = weight_decay

    m = moments_by_name("m", "The first moments by parameter name.")
    v = moments_by_name("v", "The second moments by parameter name.")

    def advanced(self, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The new moments."""
        one, two = self.number("beta_1", g), self.number("beta_2", g)
        return average(m, g, one), average(v, g * g, two)

    def root(self, v: Tensor) -> Tensor:
        """The root of a second moment without its bias, plus epsilon."""
        return _sqrt(v / self.bias("beta_2", v)) + self.number("epsilon", v)


class AMSGrad(_OfMoments):
    """Adam with the largest second moment so far (Reddi et al., 2018; PyTorch Adam's `amsgrad`);
    weight decay is added to the gradient."""

    moment_kinds = ("m", "v", "v_max")
    v_max = moments_by_name("v_max", "The largest second moments by parameter name.")

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments."""
        m, v = self.advanced(self.decayed(p, g), *moments[:2])
        most = autograd.maximum(moments[2], v)
        rate = self.number("lr", p) / self.bias("beta_1", p)
        return p - rate * m / self.root(most), m, v, most


class NAdam(_OfMoments):
    """Adam with Nesterov's look-ahead and a momentum that grows to beta_1 (Dozat, 2016; PyTorch
    NAdam); weight decay is added to the gradient. In step t, from 1, the momentum is
    `mu(t) = beta_1 * (1 - 0.96**(t * momentum_decay) / 2)`, M(t) is `mu(1) * ... * mu(t)`, and

        p = p - lr * ((1 - mu(t)) / (1 - M(t)) * g + mu(t + 1) / (1 - M(t + 1)) * m) / root
    """

    def __init__(
        self,
        lr: Number = 0.002,
        beta_1: Number = 0.9,
        beta_2: Number = 0.999,
        epsilon: Number = 1e-8,
        weight_decay: Number = 0,
        momentum_decay: float = 0.004,
        **options: Unpack[Options],
    ) -> None:
        """As `Adam`, with PyTorch's defaults; `momentum_decay` is a number above 0."""
        super().__init__(lr, beta_1, beta_2, epsilon, weight_decay, **options)
        name = "NAdam: momentum_decay"
        self.momentum_decay = check_number(momentum_decay, name, 1e-12)
        # log(1 - x / 2) is the sum of -(x / 2)**k / k, and the powers of x add up over the steps.
        k = np.arange(1, 54)
        log = self.momentum_decay * math.log(0.96) * k
        made = (log, -(0.5**k) / k * np.exp(log) / np.expm1(log))
        self._series = [tensor.from_numpy(one, dtype="float64") for one in made]

    def _move_to(self, to: device.Device) -> None:
        super()._move_to(to)
        self._series = [on(one, to) for one in self._series]

    def _momentum(self, t: Tensor) -> Tensor:
        share = autograd.exp(t * (self.momentum_decay * math.log(0.96))) * 0.5
        return (1 - share) * self._beta()

    def _beta(self) -> Tensor:
        return self.beta_1_value.reshape(()).as_type(tensor.float64)

    def _product(self, t: Tensor) -> Tensor:
        """The product of the momentums of steps 1 to t."""
        logs, factors = self._series
        rest = autograd.reduce_sum((1 - autograd.exp(logs * t)) * factors, None, 0)
        return self._beta() ** t * autograd.exp(-rest)

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments."""
        g = self.decayed(p, g)
        m, v = self.advanced(g, *moments)
        t = self.count()
        now = (1 - self._momentum(t)) / (1 - self._product(t))
        ahead = self._momentum(t + 1.0) / (1 - self._product(t + 1.0))
        step = g * now.as_type(g.dtype) + m * ahead.as_type(m.dtype)
        return p - self.number("lr", p) * step / self.root(v), m, v


class LAMB(_OfMoments):
    """Adam whose step for each parameter is as long as the parameter times `lr` (You et al., 2020).

    With `r = m / root + weight_decay * p` of moments without bias, `p = p - lr * |p| / |r| * r`;
    `|p| / |r|` is 1 where either is 0.
    """

    is_elementwise = False

    def __init__(
        self,
        lr: Number = 0.001,
        beta_1: Number = 0.9,
        beta_2: Number = 0.999,
        epsilon: Number = 1e-6,
        weight_decay: Number = 0.01,
        **options: Unpack[Options],
    ) -> None:
        """As `Adam`, with the paper's defaults."""
        super().__init__(lr, beta_1, beta_2, epsilon, weight_decay, **options)

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments."""
        m, v = self.advanced(g, *moments)
        step = self.decayed(p, m / self.bias("beta_1", p) / self.root(v))
        lengths = [_sqrt(autograd.reduce_sum(x * x, None, 0)) for x in (p, step)]
        is_none = (lengths[0] == 0) | (lengths[1] == 0)
        one = autograd.exp(lengths[0] * 0)
        trust = autograd.where(is_none, one, lengths[0] / autograd.where(is_none, one, lengths[1]))
        return p - step * (trust * self.number("lr", p)), m, v


#: The polynomial of each step of the iteration, which takes singular values towards 1.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(Composed):
    """The momentum with its singular values near 1, by iterations of Newton and Schulz (Jordan,
    2024; PyTorch Muon, which iterates in bfloat16):

        buffer = momentum * buffer + (1 - momentum) * g
        step = orthogonal(momentum * buffer + (1 - momentum) * g if nesterov else buffer)
        p = p * (1 - lr * weight_decay) - lr * sqrt(max(1, outputs / inputs)) * step

    For matrices, (inputs, outputs) as in `Linear`, and weights of more axes, (outputs, ...) as in
    convolutions, of which the others are the inputs. Vectors, and usually embeddings and the last
    layer, belong to another optimizer: `params`.
    """

    hyperparameters = holders(lr={}, momentum=FRACTION, weight_decay={})
    moment_kinds = ("buffer",)

    def __init__(
        self,
        lr: Number = 0.001,
        momentum: Number = 0.95,
        weight_decay: Number = 0.1,
        nesterov: bool = True,
        iterations: int = 5,
        **options: Unpack[Options],
    ) -> None:
        """Numbers from 0 (momentum below 1), or schedules; `iterations` a whole number from 1.

        Raises:
            TypeError, ValueError: an argument that is neither, or out of its range.
        """
        super().__init__(lr, **options)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.nesterov = check_flag(nesterov, "Muon: nesterov")
        self.iterations = count(iterations, "Muon: iterations")

    buffer = moments_by_name("buffer", "The momentum buffers by parameter name.")

    def updated(self, p: Tensor, g: Tensor, *moments: Tensor) -> tuple[Tensor, ...]:
        """The new parameter, and the new moments.

        Raises:
            ShapeError: a parameter of fewer than two axes.
        """
        if p.rank < 2:
            raise ShapeError(f"Muon: got shape {p.shape}, want at least 2 axes; see `params`")
        momentum, lr = self.number("momentum", p), self.number("lr", p)
        buffer = average(moments[0], g, momentum)
        ahead = average(g, buffer, 1 - momentum) if self.nesterov else buffer
        rows, columns = p.shape[0], p.numel // max(p.shape[0], 1)
        step = self._orthogonal(ahead.reshape((rows, columns))).reshape(p.shape)
        inputs, outputs = (rows, columns) if p.rank == 2 else (columns, rows)
        factor = math.sqrt(max(1.0, outputs / max(inputs, 1)))
        if self._uses("weight_decay"):
            p = p * (1 - lr * self.number("weight_decay", p))
        return p - step * (lr * factor), buffer

    def _orthogonal(self, x: Tensor) -> Tensor:
        a, b, c = _COEFFICIENTS
        is_tall = x.shape[0] > x.shape[1]
        x = x.transpose() if is_tall else x
        x = x / (_sqrt(autograd.reduce_sum(x * x, None, 0)) + 1e-7)
        for _ in range(self.iterations):
            square = x @ x.transpose()
            x = x * a + (square * b + square @ square * c) @ x
        return x.transpose() if is_tall else x
