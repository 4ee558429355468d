"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...layer.check import count, number, one_of
from ...tensor import Tensor
from .base import Layer, Shape, Specs


class BatchNormalization(Layer):
    """Batch normalisation (SINGA 1.x BatchNormalization) of samples (C,) or (C, ...), with gamma,
    beta, mean and var (C,); the averages mean and var have gradients without elements.

    As in SINGA, `momentum` is the weight of the new batch in the averages:
    `mean = (1 - momentum) * mean + momentum * batch`.
    """

    def __init__(
        self,
        name: str,
        momentum: float = 0.9,
        beta_specs: Specs = None,
        gamma_specs: Specs = None,
        input_sample_shape: Any = None,
    ) -> None:
        """`momentum`: from 0 to 1.

        Args:
            beta_specs, gamma_specs: how the parameters begin and are trained (`ParamSpec`); 0 and 1
                by default.
            input_sample_shape: the shape of a sample, channels first.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(name)
        self.momentum = number(momentum, self._where("momentum"), 0.0, 1.0)
        self._specify("gamma", gamma_specs, init="constant", value=1)
        self._specify("beta", beta_specs, init="constant", value=0)
        self._specify("mean", None, init="constant", value=0)
        self._specify("var", None, init="constant", value=1)
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _setup(self, shape: Shape) -> Shape:
        if not shape:
            raise self._refuse("a sample of ()", "at least one axis")
        for attribute, spec in zip(("gamma", "beta"), self.param_specs, strict=False):
            self._make(attribute, spec, shape[:1])
        for attribute, spec in zip(("mean", "var"), self.param_specs[2:], strict=True):
            self._make_state(attribute, spec, shape[:1])
        self._handle = autograd.BatchNormHandle(self.momentum)
        return shape

    def _compute(self, x: Tensor) -> Tensor:
        return autograd.batchnorm_2d(self._handle, x, self.gamma, self.beta, self.mean, self.var)


class LRN(Layer):
    """Local response normalisation across channels (SINGA 1.x LRN; Krizhevsky et al., 2012):
    `x / (k + alpha / size * sum of the squares of size channels) ** beta`."""

    def __init__(
        self,
        name: str,
        size: int = 5,
        alpha: float = 1,
        beta: float = 0.75,
        mode: str = "cross_channel",
        k: float = 1,
        input_sample_shape: Any = None,
    ) -> None:
        """`size`: an odd number of channels.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__(name)
        self.size = count(size, self._where("size"))
        if self.size % 2 == 0:
            raise ValueError(self._where(f"size: got {size}, want an odd number"))
        self.alpha = number(alpha, self._where("alpha"))
        self.beta = number(beta, self._where("beta"))
        self.k = number(k, self._where("k"))
        one_of(mode, self._where("mode"), ("cross_channel",))
        if input_sample_shape is not None:
            self.setup(input_sample_shape)

    def _setup(self, shape: Shape) -> Shape:
        if len(shape) < 2:
            raise self._refuse(f"a sample of {shape}", "channels and more axes")
        return shape

    def _compute(self, x: Tensor) -> Tensor:
        return autograd.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
