"""Written by tests/python/stubs.py."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from ..autograd.results import (
    EighResult,
    LeastSquares,
    MinMax,
    QRResult,
    SlogdetResult,
    SVDResult,
    ValuesIndices,
)
from ..layer import LSTM as LSTM
from ..layer import RNN as RNN
from ..layer import AvgPool1d as AvgPool1d
from ..layer import AvgPool2d as AvgPool2d
from ..layer import BatchNorm2d as BatchNorm2d
from ..layer import Conv2d as Conv2d
from ..layer import Linear as Linear
from ..layer import MaxPool1d as MaxPool1d
from ..layer import MaxPool2d as MaxPool2d
from ..layer import Pooling2d as Pooling2d
from ..layer import RNN_Base as RNN_Base
from ..layer import SeparableConv2d as SeparableConv2d
from ..tensor import Tensor
from ..tensor.takers import TensorLike

training: bool

class Operator:
    def __call__(self, *xs: TensorLike) -> tuple[Tensor, ...]: ...
    def __init__(self, name: str | None = None) -> None: ...
    def get_params(self) -> list[Tensor]: ...
    def grad_name(self, idx: int) -> str: ...
    def gradients(
        self, dys: tuple[Tensor, ...], wanted: Sequence[bool]
    ) -> tuple[Tensor | None, ...]: ...
    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None: ...
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, value: str) -> None: ...
    def output_name(self, idx: int) -> str: ...
    def settings(self) -> list[tuple[str, Any]]: ...

class _RNN:
    def __init__(
        self,
        handle: RNNHandle,
        return_sequences: bool = False,
        use_mask: bool = False,
        seq_lengths: Any = None,
    ) -> None: ...

class no_grad:
    def __call__(self, function: Any) -> Any: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

class BatchNormHandle:
    def __init__(self, momentum: float = 0.1, x: Any = None, eps: float = 1e-05) -> None: ...

class ConvHandle:
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        group: int = 1,
    ) -> None: ...

class Dummy(Operator):
    def __init__(self, tensor: Tensor, name: str | None = None) -> None: ...

class Gradients(dict[Any, Tensor]):
    def __contains__(self, key: Any) -> bool: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __init__(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None: ...
    def get(self, key: Any, default: Any = None) -> Any: ...

class PoolingHandle:
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        is_max: bool = True,
        count_include_pad: bool = False,
    ) -> None: ...

class RNNHandle:
    def __init__(
        self,
        x: Tensor,
        hidden_size: int,
        mode: int = 0,
        num_layers: int = 1,
        bias: int | bool = 1,
        dropout: float = 0.0,
        bidirectional: int | bool = 0,
    ) -> None: ...

class Rule(Operator):
    def __call__(self, *xs: TensorLike) -> tuple[Tensor, ...]: ...
    def backward(self, *dys: Tensor) -> Any: ...
    def forward(self, *xs: Tensor) -> Tensor | tuple[Tensor, ...]: ...
    def gradients_again(self, dys: tuple[Tensor, ...], wanted: Sequence[bool]) -> Any: ...
    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None: ...
    def load(self, i: int) -> Tensor: ...
    def origins(self) -> Sequence[str]: ...
    def save(self, *tensors: Tensor | None) -> None: ...

class AddBias(Rule):
    def __init__(self, axis: int = 0) -> None: ...

class Atan2(Rule): ...

class Attention(Rule):
    def __init__(
        self,
        scale: float,
        is_causal: bool = False,
        dropout: float = 0.0,
        mask: bool = False,
        lengths: bool = False,
        start: bool = False,
    ) -> None: ...

class Binary(Rule): ...

class Cast(Rule):
    def __init__(self, to: Any) -> None: ...

class Cbrt(Rule): ...

class Concat(Rule):
    def __init__(self, axis: int = 0) -> None: ...

class CosSim(Rule): ...

class CumSum(Rule):
    def __init__(self, axis: int, exclusive: bool = False, reverse: bool = False) -> None: ...

class Dropout(Rule):
    def __init__(self, ratio: float = 0.5, seed: int | None = None) -> None: ...

class Embedding(Rule): ...

class Gather(Rule):
    def __init__(self, axis: int, indices: Any) -> None: ...

class Gemm(Rule):
    def __init__(
        self, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0
    ) -> None: ...

class Hypot(Rule): ...
class Loss(Rule): ...
class Matmul(Rule): ...
class Max(Rule): ...
class PRelu(Rule): ...

class ScatterElements(Rule):
    def __init__(self, indices: Any, updates: Any, axis: int = 0) -> None: ...

class SoftMax(Rule):
    def __init__(self, axis: int = 1) -> None: ...

class Sort(Rule):
    def __init__(self, axis: int = -1, descending: bool = False) -> None: ...

class Split(Rule):
    def __init__(
        self, axis: int, parts: Sequence[int] | None, num_output: int | None = None
    ) -> None: ...

class Sum(Rule): ...

class TakeAlongAxis(Rule):
    def __init__(self, indices: Any, axis: int) -> None: ...

class Triangle(Rule):
    def __init__(self, upper: bool, k: int) -> None: ...

class Where(Rule):
    def __init__(self, condition: Any) -> None: ...

class _BatchNorm2d(Rule):
    def __init__(
        self,
        handle: BatchNormHandle,
        running_mean: Tensor,
        running_var: Tensor,
        name: str | None = None,
    ) -> None: ...

class Abs(Rule): ...
class Acos(Rule): ...
class Acosh(Rule): ...
class Add(Binary): ...
class Asin(Rule): ...
class Asinh(Rule): ...
class Atan(Rule): ...
class Atanh(Rule): ...
class BitwiseAnd(Binary): ...
class BitwiseOr(Binary): ...
class BitwiseXor(Binary): ...
class Ceil(Rule): ...

class ConstantOfShape(Rule):
    def __init__(self, value: float = 0.0) -> None: ...

class Cos(Rule): ...
class Cosh(Rule): ...
class CumProd(CumSum): ...
class Digamma(Rule): ...
class Div(Binary): ...
class Erf(Rule): ...
class Erfc(Rule): ...
class Erfinv(Rule): ...
class Exp(Rule): ...
class Exp2(Rule): ...
class Expm1(Rule): ...
class Floor(Rule): ...
class FloorDivide(Binary): ...
class GELU(Rule): ...

class GlobalAveragePool(Rule):
    def __init__(self, data_format: str = "channels_first") -> None: ...

class LeftShift(Binary): ...
class Lgamma(Rule): ...
class Log(Rule): ...
class Log10(Rule): ...
class Log1p(Rule): ...
class Log2(Rule): ...
class LogNdtr(Rule): ...
class LogSoftMax(SoftMax): ...

class LogSumExp(Rule):
    def __init__(self, axes: int | Sequence[int] | None = None, keepdims: int = 1) -> None: ...

class Maximum(Binary): ...
class Mean(Sum): ...
class Min(Max): ...
class Minimum(Binary): ...
class Mul(Binary): ...
class Ndtr(Rule): ...
class Ndtri(Rule): ...
class Negative(Rule): ...
class NonZero(Rule): ...
class Not(Rule): ...

class OneHot(Rule):
    def __init__(self, axis: int, depth: Any, values: Any = ...) -> None: ...

class Pad(Rule):
    def __init__(self, mode: str, pads: Sequence[int], constant: float = 0.0) -> None: ...

class Pow(Binary): ...

class RankingLoss(Loss):
    def __init__(self, M: float = 0.2) -> None: ...

class ReLU(Rule): ...
class Reciprocal(Rule): ...

class ReduceMax(Rule):
    def __init__(self, axes: int | Sequence[int] | None = None, keepdims: int = 1) -> None: ...

class ReduceMean(Rule):
    def __init__(self, axes: int | Sequence[int] | None = None, keepdims: int = 1) -> None: ...

class ReduceProd(Rule):
    def __init__(self, axes: int | Sequence[int] | None = None, keepdims: int = 1) -> None: ...

class ReduceSum(Rule):
    def __init__(self, axes: int | Sequence[int] | None = None, keepdims: int = 1) -> None: ...

class Remainder(Binary): ...
class RightShift(Binary): ...
class Round(Rule): ...
class Rounde(Rule): ...
class Shape(Rule): ...
class SiLU(Rule): ...
class Sigmoid(Rule): ...
class Sign(Rule): ...
class Sin(Rule): ...
class Sinh(Rule): ...

class SoftMaxCrossEntropy(Loss):
    def __init__(self, t: Any, ignore_index: int | None = None) -> None: ...

class SoftPlus(Rule): ...
class SoftSign(Rule): ...
class Sqrt(Rule): ...
class Square(Rule): ...
class Sub(Binary): ...
class Tan(Rule): ...
class Tanh(Rule): ...

class TopK(Sort):
    def __init__(self, k: int, axis: int = -1, largest: bool = True) -> None: ...

class _Conv2d(Rule):
    def __init__(self, handle: ConvHandle, odd_padding: Sequence[int] = ...) -> None: ...

class And(Binary): ...

class BinaryCrossEntropy(Loss):
    def __init__(self, t: Any) -> None: ...

class Clip(Rule):
    def __init__(self, min: float | None = None, max: float | None = None) -> None: ...

class CrossEntropy(Loss):
    def __init__(self, t: Any) -> None: ...

class DepthToSpace(Rule):
    def __init__(self, blocksize: int, mode: str = "DCR") -> None: ...

class Elu(Rule):
    def __init__(self, alpha: float = 1.0) -> None: ...

class Equal(Binary): ...

class Expand(Rule):
    def __init__(self, shape: int | Sequence[int]) -> None: ...

class Greater(Binary): ...
class GreaterEqual(Binary): ...

class HardSigmoid(Rule):
    def __init__(self, alpha: float = 0.2, gamma: float = 0.5) -> None: ...

class Identity(Rule): ...

class LeakyRelu(Rule):
    def __init__(self, a: float = 0.01) -> None: ...

class Less(Binary): ...
class LessEqual(Binary): ...

class MeanSquareError(Loss):
    def __init__(self, t: Any) -> None: ...

class NotEqual(Binary): ...
class Or(Binary): ...

class Polygamma(Rule):
    def __init__(self, n: int) -> None: ...

class ReduceMin(ReduceMax): ...

class Repeat(Rule):
    def __init__(self, repeats: int, axis: int) -> None: ...

class SeLU(Rule):
    def __init__(self, alpha: float = 1.67326, gamma: float = 1.0507) -> None: ...

class Select(Rule):
    def __init__(self, ranges: Sequence[tuple[int, int, int]], shape: tuple[int, ...]) -> None: ...

class SpaceToDepth(Rule):
    def __init__(self, blocksize: int, mode: str = "DCR") -> None: ...

class Tile(Rule):
    def __init__(self, repeats: int | Sequence[int]) -> None: ...

class Transpose(Rule):
    def __init__(self, perm: Sequence[int] | None = None) -> None: ...

class UpSample(Rule):
    def __init__(self, mode: str, scales: Any) -> None: ...

class Xor(Binary): ...

class _Pooling2d(Rule):
    def __init__(self, handle: PoolingHandle, odd_padding: Sequence[int] = ...) -> None: ...

class Flatten(Rule):
    def __init__(self, axis: int = 1) -> None: ...

class Reshape(Rule):
    def __init__(self, shape: int | Sequence[int]) -> None: ...

class Slice(Select):
    def __init__(
        self,
        starts: Sequence[int],
        ends: Sequence[int],
        axes: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> None: ...

class Squeeze(Rule):
    def __init__(self, axis: int | Sequence[int] = ...) -> None: ...

class Unsqueeze(Rule):
    def __init__(self, axis: int | Sequence[int]) -> None: ...

Operation = Operator

def _and(a: Any, b: Any) -> Tensor: ...
def _not(x: TensorLike) -> Tensor: ...
def _or(a: Any, b: Any) -> Tensor: ...
def _xor(a: Any, b: Any) -> Tensor: ...
def abs(x: TensorLike) -> Tensor: ...
def absolute(x: TensorLike) -> Tensor: ...
def acos(x: TensorLike) -> Tensor: ...
def acosh(x: TensorLike) -> Tensor: ...
def adaptive_avg_pool(x: TensorLike, output_size: int | None | Sequence[int | None]) -> Tensor: ...
def adaptive_avg_pool1d(
    x: TensorLike, output_size: int | None | Sequence[int | None]
) -> Tensor: ...
def adaptive_avg_pool2d(
    x: TensorLike, output_size: int | None | Sequence[int | None]
) -> Tensor: ...
def adaptive_avg_pool3d(
    x: TensorLike, output_size: int | None | Sequence[int | None]
) -> Tensor: ...
def adaptive_max_pool(x: TensorLike, output_size: int | None | Sequence[int | None]) -> Tensor: ...
def adaptive_max_pool1d(
    x: TensorLike, output_size: int | None | Sequence[int | None]
) -> Tensor: ...
def adaptive_max_pool2d(
    x: TensorLike, output_size: int | None | Sequence[int | None]
) -> Tensor: ...
def adaptive_max_pool3d(
    x: TensorLike, output_size: int | None | Sequence[int | None]
) -> Tensor: ...
def add(a: Any, b: Any) -> Tensor: ...
def add_all(*xs: TensorLike) -> Tensor: ...
@overload
def add_bias(x: TensorLike, b: TensorLike, axis: int = 0) -> Tensor: ...
@overload
def add_bias(x: TensorLike, b: TensorLike, dim: int = 0) -> Tensor: ...
def addbmm(x: TensorLike, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor: ...
def addcdiv(x: TensorLike, a: Any, b: Any, value: float = 1) -> Tensor: ...
def addcmul(x: TensorLike, a: Any, b: Any, value: float = 1) -> Tensor: ...
def addmm(x: TensorLike, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor: ...
def addmv(x: TensorLike, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor: ...
def addr(x: TensorLike, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor: ...
def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool = False) -> Tensor: ...
@overload
def all(x: TensorLike, axis: int | None = None, keepdims: int = 0) -> Tensor: ...
@overload
def all(x: TensorLike, dim: int | None = None, keepdim: int = 0) -> Tensor: ...
def allclose(
    x: TensorLike, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool: ...
def alpha_dropout(x: TensorLike, ratio: float = 0.5) -> Tensor: ...
@overload
def amax(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def amax(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def amin(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def amin(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def aminmax(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> MinMax: ...
@overload
def aminmax(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> MinMax: ...
@overload
def any(x: TensorLike, axis: int | None = None, keepdims: int = 0) -> Tensor: ...
@overload
def any(x: TensorLike, dim: int | None = None, keepdim: int = 0) -> Tensor: ...
@overload
def append(x: TensorLike, values: Any, axis: int | None = None) -> Tensor: ...
@overload
def append(x: TensorLike, values: Any, dim: int | None = None) -> Tensor: ...
def arccos(x: TensorLike) -> Tensor: ...
def arccosh(x: TensorLike) -> Tensor: ...
def arcsin(x: TensorLike) -> Tensor: ...
def arcsinh(x: TensorLike) -> Tensor: ...
def arctan(x: TensorLike) -> Tensor: ...
def arctan2(y: TensorLike, x: Any) -> Tensor: ...
def arctanh(x: TensorLike) -> Tensor: ...
@overload
def argmax(x: TensorLike, axis: int | None = None, keepdims: int = 0) -> Tensor: ...
@overload
def argmax(x: TensorLike, dim: int | None = None, keepdim: int = 0) -> Tensor: ...
@overload
def argmin(x: TensorLike, axis: int | None = None, keepdims: int = 0) -> Tensor: ...
@overload
def argmin(x: TensorLike, dim: int | None = None, keepdim: int = 0) -> Tensor: ...
@overload
def argpartition(x: TensorLike, kth: int, axis: int | None = -1) -> Tensor: ...
@overload
def argpartition(x: TensorLike, kth: int, dim: int | None = -1) -> Tensor: ...
@overload
def argsort(
    x: TensorLike, axis: int | None = -1, descending: bool = False, *, stable: bool = True
) -> Tensor: ...
@overload
def argsort(
    x: TensorLike, dim: int | None = -1, descending: bool = False, *, stable: bool = True
) -> Tensor: ...
def argwhere(x: TensorLike) -> Tensor: ...
def around(x: TensorLike, decimals: int = 0) -> Tensor: ...
def array_equal(a: TensorLike, b: Any, equal_nan: bool = False) -> bool: ...
@overload
def array_split(
    x: TensorLike, sections: int | Sequence[int], axis: int = 0
) -> tuple[Tensor, ...]: ...
@overload
def array_split(
    x: TensorLike, sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]: ...
def asin(x: TensorLike) -> Tensor: ...
def asinh(x: TensorLike) -> Tensor: ...
def atan(x: TensorLike) -> Tensor: ...
def atan2(y: TensorLike, x: Any) -> Tensor: ...
def atanh(x: TensorLike) -> Tensor: ...
def atleast_1d(x: TensorLike) -> Tensor: ...
def atleast_2d(x: TensorLike) -> Tensor: ...
def atleast_3d(x: TensorLike) -> Tensor: ...
@overload
def average(
    x: TensorLike,
    axis: int | Sequence[int] | None = None,
    weights: Any = None,
    keepdims: bool = False,
) -> Tensor: ...
@overload
def average(
    x: TensorLike,
    dim: int | Sequence[int] | None = None,
    weights: Any = None,
    keepdim: bool = False,
) -> Tensor: ...
def avg_pool(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor_override: int | None = None,
    dilation: int | Sequence[int] = 1,
) -> Tensor: ...
def avg_pool1d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor: ...
def avg_pool2d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor: ...
def avg_pool3d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor: ...
def axis_helper(y_shape: tuple[int, ...], x_shape: tuple[int, ...]) -> tuple[int, ...]: ...
def back_broadcast(y_shape: tuple[int, ...], x_shape: tuple[int, ...], x: TensorLike) -> Tensor: ...
def backward(y: Tensor, dy: Any = None) -> Iterator[tuple[Tensor, Tensor]]: ...
def baddbmm(x: TensorLike, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tensor: ...
def batchnorm_2d(
    handle: BatchNormHandle,
    x: TensorLike,
    scale: TensorLike,
    bias: TensorLike,
    running_mean: Tensor,
    running_var: Tensor,
) -> Tensor: ...
def bce_loss(x: TensorLike, t: Any, weight: Any = None, reduction: str = "mean") -> Tensor: ...
def bernoulli(x: TensorLike) -> Tensor: ...
def bilinear(
    x1: TensorLike, x2: TensorLike, weight: TensorLike, bias: TensorLike | None = None
) -> Tensor: ...
def binary_cross_entropy(x: TensorLike, t: Any) -> Tensor: ...
def binary_cross_entropy_with_logits(
    x: TensorLike, t: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor: ...
def bincount(
    x: TensorLike, weights: Any = None, minlength: int = 0, *, length: int | None = None
) -> Tensor: ...
def bitwise_and(a: Any, b: Any) -> Tensor: ...
def bitwise_not(x: TensorLike) -> Tensor: ...
def bitwise_or(a: Any, b: Any) -> Tensor: ...
def bitwise_xor(a: Any, b: Any) -> Tensor: ...
def block_diag(*xs: TensorLike) -> Tensor: ...
def bmm(a: TensorLike, b: Any) -> Tensor: ...
def broadcast_tensors(*xs: TensorLike) -> tuple[Tensor, ...]: ...
def broadcast_to(x: TensorLike, shape: int | Sequence[int]) -> Tensor: ...
def bucketize(x: TensorLike, boundaries: Any, right: bool = False) -> Tensor: ...
def cartesian_prod(*xs: TensorLike) -> Tensor: ...
def cast(x: TensorLike, to: Any) -> Tensor: ...
@overload
def cat(xs: Sequence[Tensor], axis: int = 0) -> Tensor: ...
@overload
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor: ...
def cbrt(x: TensorLike, name: str | None = None) -> Tensor: ...
def cdist(a: TensorLike, b: Any, p: float = 2.0) -> Tensor: ...
def ceil(x: TensorLike) -> Tensor: ...
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor: ...
def channel_shuffle(x: TensorLike, groups: int) -> Tensor: ...
def cholesky(x: TensorLike, upper: bool = False) -> Tensor: ...
@overload
def chunk(x: TensorLike, chunks: int, axis: int = 0) -> tuple[Tensor, ...]: ...
@overload
def chunk(x: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]: ...
def clamp(x: TensorLike, min: Any = None, max: Any = None) -> Tensor: ...
def clamp_max(x: TensorLike, max: Any) -> Tensor: ...
def clamp_min(x: TensorLike, min: Any) -> Tensor: ...
def clip(x: TensorLike, min: float | None = None, max: float | None = None) -> Tensor: ...
def clone(x: TensorLike) -> Tensor: ...
def column_stack(xs: Sequence[Tensor]) -> Tensor: ...
def combinations(x: TensorLike, r: int = 2, with_replacement: bool = False) -> Tensor: ...
@overload
def concat(xs: Sequence[Tensor], axis: int = 0) -> Tensor: ...
@overload
def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor: ...
@overload
def concatenate(xs: Sequence[Tensor], axis: int = 0) -> Tensor: ...
@overload
def concatenate(xs: Sequence[Tensor], dim: int = 0) -> Tensor: ...
def constant_of_shape(x: TensorLike, value: float = 0.0) -> Tensor: ...
def conv(
    x: TensorLike,
    W: TensorLike,
    b: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    group: int = 1,
) -> Tensor: ...
def conv1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor: ...
def conv2d(
    handle: ConvHandle,
    x: TensorLike,
    W: TensorLike,
    b: TensorLike | None = None,
    odd_padding: Sequence[int] = ...,
) -> Tensor: ...
def conv3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor: ...
def conv_transpose(
    x: TensorLike,
    W: TensorLike,
    b: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    group: int = 1,
) -> Tensor: ...
def conv_transpose1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor: ...
def conv_transpose2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor: ...
def conv_transpose3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor: ...
def convolve(a: TensorLike, v: Any, mode: str = "full") -> Tensor: ...
def copysign(a: TensorLike, b: Any) -> Tensor: ...
def corrcoef(x: TensorLike) -> Tensor: ...
def correlate(a: TensorLike, v: Any, mode: str = "valid") -> Tensor: ...
def cos(x: TensorLike) -> Tensor: ...
def cosh(x: TensorLike) -> Tensor: ...
def cosine_embedding_loss(
    x1: TensorLike, x2: TensorLike, t: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor: ...
@overload
def cosine_similarity(
    x1: TensorLike, x2: TensorLike, axis: int = 1, eps: float = 1e-08
) -> Tensor: ...
@overload
def cosine_similarity(
    x1: TensorLike, x2: TensorLike, dim: int = 1, eps: float = 1e-08
) -> Tensor: ...
def cossim(a: TensorLike, b: TensorLike) -> Tensor: ...
@overload
def count_nonzero(x: TensorLike, axis: Any = None, keepdims: bool = False) -> Tensor: ...
@overload
def count_nonzero(x: TensorLike, dim: Any = None, keepdim: bool = False) -> Tensor: ...
@overload
def cov(x: TensorLike, ddof: float = 1) -> Tensor: ...
@overload
def cov(x: TensorLike, *, correction: float) -> Tensor: ...
@overload
def cross(a: TensorLike, b: Any, axis: int = -1) -> Tensor: ...
@overload
def cross(a: TensorLike, b: Any, dim: int = -1) -> Tensor: ...
def cross_entropy(x: TensorLike, t: Any) -> Tensor: ...
def ctc_loss(
    x: TensorLike,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor: ...
def ctensor2numpy(x: Tensor) -> np.ndarray: ...
@overload
def cummax(x: TensorLike, axis: int = -1) -> ValuesIndices: ...
@overload
def cummax(x: TensorLike, dim: int = -1) -> ValuesIndices: ...
@overload
def cummin(x: TensorLike, axis: int = -1) -> ValuesIndices: ...
@overload
def cummin(x: TensorLike, dim: int = -1) -> ValuesIndices: ...
@overload
def cumprod(
    x: TensorLike, axis: int | None = None, exclusive: bool = False, reverse: bool = False
) -> Tensor: ...
@overload
def cumprod(
    x: TensorLike, dim: int | None = None, exclusive: bool = False, reverse: bool = False
) -> Tensor: ...
@overload
def cumsum(
    x: TensorLike, axis: int | None = None, exclusive: bool = False, reverse: bool = False
) -> Tensor: ...
@overload
def cumsum(
    x: TensorLike, dim: int | None = None, exclusive: bool = False, reverse: bool = False
) -> Tensor: ...
@overload
def cumulative_trapezoid(
    y: TensorLike, x: Any = None, dx: float = 1.0, axis: int = -1
) -> Tensor: ...
@overload
def cumulative_trapezoid(
    y: TensorLike, x: Any = None, dx: float = 1.0, dim: int = -1
) -> Tensor: ...
def deg2rad(x: TensorLike) -> Tensor: ...
@overload
def delete(x: TensorLike, indices: Any, axis: int | None = None) -> Tensor: ...
@overload
def delete(x: TensorLike, indices: Any, dim: int | None = None) -> Tensor: ...
def depth_to_space(x: TensorLike, blocksize: int, mode: str = "DCR") -> Tensor: ...
def det(x: TensorLike) -> Tensor: ...
def diag(x: TensorLike, k: int = 0) -> Tensor: ...
@overload
def diag_embed(x: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor: ...
@overload
def diag_embed(x: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor: ...
def diagflat(x: TensorLike, k: int = 0) -> Tensor: ...
@overload
def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
@overload
def diagonal(x: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...
@overload
def diff(x: TensorLike, n: int = 1, axis: int = -1) -> Tensor: ...
@overload
def diff(x: TensorLike, n: int = 1, dim: int = -1) -> Tensor: ...
def digamma(x: TensorLike) -> Tensor: ...
def digitize(x: TensorLike, bins: Any, right: bool = False) -> Tensor: ...
def dist(a: TensorLike, b: Any, p: float = 2.0) -> Tensor: ...
def div(a: Any, b: Any) -> Tensor: ...
def divide(a: Any, b: Any) -> Tensor: ...
def dropout(x: TensorLike, ratio: float = 0.5, seed: int | None = None) -> Tensor: ...
def dsplit(x: TensorLike, sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
def dstack(xs: Sequence[Tensor]) -> Tensor: ...
def eigh(x: TensorLike) -> EighResult: ...
def eigvalsh(x: TensorLike) -> Tensor: ...
def einsum(formula: str, *xs: TensorLike) -> Tensor: ...
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor: ...
def embedding(x: TensorLike, w: TensorLike) -> Tensor: ...
def embedding_bag(
    x: Any,
    w: TensorLike,
    offsets: Any = None,
    mode: str = "mean",
    per_sample_weights: Any = None,
    padding_idx: int | None = None,
) -> Tensor: ...
def eq(a: Any, b: Any) -> Tensor: ...
def equal(a: Any, b: Any) -> Tensor: ...
def erf(x: TensorLike) -> Tensor: ...
def erfc(x: TensorLike) -> Tensor: ...
def erfinv(x: TensorLike) -> Tensor: ...
def exp(x: TensorLike) -> Tensor: ...
def exp2(x: TensorLike) -> Tensor: ...
def expand(x: TensorLike, shape: int | Sequence[int]) -> Tensor: ...
@overload
def expand_dims(x: TensorLike, axis: int | Sequence[int] = -1) -> Tensor: ...
@overload
def expand_dims(x: TensorLike, dim: int | Sequence[int] = -1) -> Tensor: ...
def expit(x: TensorLike) -> Tensor: ...
def expm1(x: TensorLike) -> Tensor: ...
def feature_alpha_dropout(x: TensorLike, ratio: float = 0.5) -> Tensor: ...
def feature_dropout(x: TensorLike, ratio: float = 0.5) -> Tensor: ...
def fix(x: TensorLike) -> Tensor: ...
def flatten(x: TensorLike, axis: int = 1) -> Tensor: ...
@overload
def flip(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor: ...
@overload
def flip(x: TensorLike, dim: int | Sequence[int] | None = None) -> Tensor: ...
@overload
def flip(x: TensorLike, dims: int | Sequence[int] | None = None) -> Tensor: ...
def fliplr(x: TensorLike) -> Tensor: ...
def flipud(x: TensorLike) -> Tensor: ...
def float_power(x: TensorLike, exponent: Any) -> Tensor: ...
def floor(x: TensorLike) -> Tensor: ...
def floor_divide(a: Any, b: Any) -> Tensor: ...
def fmax(a: TensorLike, b: Any) -> Tensor: ...
def fmin(a: TensorLike, b: Any) -> Tensor: ...
def fmod(a: TensorLike, b: Any) -> Tensor: ...
def fold(
    x: TensorLike,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor: ...
def frac(x: TensorLike) -> Tensor: ...
def gammaln(x: TensorLike) -> Tensor: ...
def gather(x: TensorLike, axis: int, indices: Any) -> Tensor: ...
def gather_nd(x: TensorLike, indices: Any, batch_dims: int = 0) -> Tensor: ...
def gaussian_nll_loss(
    x: TensorLike, t: Any, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor: ...
def ge(a: Any, b: Any) -> Tensor: ...
def gelu(x: TensorLike) -> Tensor: ...
def gelu_tanh(x: TensorLike) -> Tensor: ...
def gemm(
    A: TensorLike,
    B: TensorLike,
    C: TensorLike | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor: ...
def ger(a: TensorLike, b: Any) -> Tensor: ...
def globalaveragepool(x: TensorLike, data_format: str = "channels_first") -> Tensor: ...
@overload
def glu(x: TensorLike, axis: int = -1) -> Tensor: ...
@overload
def glu(x: TensorLike, dim: int = -1) -> Tensor: ...
def gradient(x: TensorLike, spacing: float = 1.0, *, axis: Any = None) -> Any: ...
def gradients(
    y: Tensor,
    dy: Any = None,
    *,
    xs: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
) -> Any: ...
def greater(a: Any, b: Any) -> Tensor: ...
def greater_equal(a: Any, b: Any) -> Tensor: ...
def grid_sample(
    x: TensorLike,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor: ...
def group_norm(
    x: TensorLike,
    num_groups: int,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-05,
) -> Tensor: ...
def gru(
    x: TensorLike,
    W: TensorLike,
    R: TensorLike,
    b: TensorLike | None = None,
    h0: TensorLike | None = None,
    *,
    linear_before_reset: bool = False,
    lengths: Any = None,
    reverse: bool = False,
    gate_order: str = "zrh",
) -> tuple[Tensor, Tensor]: ...
def gt(a: Any, b: Any) -> Tensor: ...
@overload
def gumbel_softmax(
    x: TensorLike, tau: float = 1.0, hard: bool = False, axis: int = -1
) -> Tensor: ...
@overload
def gumbel_softmax(
    x: TensorLike, tau: float = 1.0, hard: bool = False, dim: int = -1
) -> Tensor: ...
def hardshrink(x: TensorLike, lambd: float = 0.5) -> Tensor: ...
def hardsigmoid(x: TensorLike, alpha: float = 0.2, gamma: float = 0.5) -> Tensor: ...
def hardswish(x: TensorLike) -> Tensor: ...
def hardtanh(x: TensorLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor: ...
def heaviside(a: TensorLike, b: Any) -> Tensor: ...
def hinge_embedding_loss(
    x: TensorLike, t: Any, margin: float = 1.0, reduction: str = "mean"
) -> Tensor: ...
def histc(x: TensorLike, bins: int = 100, min: float = 0, max: float = 0) -> Tensor: ...
def histogram(
    x: TensorLike, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Tensor, Tensor]: ...
def hsplit(x: TensorLike, sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
def hstack(xs: Sequence[Tensor]) -> Tensor: ...
def huber_loss(x: TensorLike, t: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor: ...
def hypot(a: TensorLike, b: Any) -> Tensor: ...
def identity(x: TensorLike) -> Tensor: ...
@overload
def index_add(x: TensorLike, axis: int, indices: Any, updates: Any, alpha: float = 1) -> Tensor: ...
@overload
def index_add(x: TensorLike, dim: int, index: Any, source: Any, alpha: float = 1) -> Tensor: ...
@overload
def index_copy(x: TensorLike, axis: int, indices: Any, updates: Any) -> Tensor: ...
@overload
def index_copy(x: TensorLike, dim: int, index: Any, source: Any) -> Tensor: ...
@overload
def index_fill(x: TensorLike, axis: int, indices: Any, value: Any) -> Tensor: ...
@overload
def index_fill(x: TensorLike, dim: int, index: Any, value: Any) -> Tensor: ...
def index_put(
    x: TensorLike, indices: Sequence[Any], values: Any, accumulate: bool = False
) -> Tensor: ...
@overload
def index_select(x: TensorLike, axis: int, indices: Any) -> Tensor: ...
@overload
def index_select(x: TensorLike, dim: int, index: Any) -> Tensor: ...
def inner(a: TensorLike, b: Any) -> Tensor: ...
def instance_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-05,
) -> Tensor: ...
def interp(x: TensorLike, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor: ...
@overload
def interpolate(
    x: TensorLike,
    size: int | Sequence[int] | None = None,
    scale: float | Sequence[float] | None = None,
    mode: str = "nearest",
    coordinates: str | None = None,
    *,
    nearest_mode: str | None = None,
    cubic_coeff: float | None = None,
    exclude_outside: bool | None = None,
    antialias: bool = False,
    axes: int | Sequence[int] | None = None,
) -> Tensor: ...
@overload
def interpolate(
    x: TensorLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: str | None = None,
    *,
    nearest_mode: str | None = None,
    cubic_coeff: float | None = None,
    exclude_outside: bool | None = None,
    antialias: bool = False,
    axes: int | Sequence[int] | None = None,
) -> Tensor: ...
def inv(x: TensorLike) -> Tensor: ...
def isclose(
    x: TensorLike, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor: ...
def isfinite(x: TensorLike) -> Tensor: ...
def isin(x: TensorLike, values: Any, *, invert: bool = False) -> Tensor: ...
def isinf(x: TensorLike) -> Tensor: ...
def isnan(x: TensorLike) -> Tensor: ...
def isneginf(x: TensorLike) -> Tensor: ...
def isposinf(x: TensorLike) -> Tensor: ...
def kl_div(x: TensorLike, t: Any, reduction: str = "mean", log_target: bool = False) -> Tensor: ...
def kron(a: TensorLike, b: Any) -> Tensor: ...
@overload
def kthvalue(x: TensorLike, k: int, axis: int = -1, keepdims: bool = False) -> ValuesIndices: ...
@overload
def kthvalue(x: TensorLike, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices: ...
def l1_loss(x: TensorLike, t: Any, reduction: str = "mean") -> Tensor: ...
@overload
def layer_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    axis: int = -1,
    eps: float = 1e-05,
    *,
    normalized_shape: int | Sequence[int] | None = None,
) -> Tensor: ...
@overload
def layer_norm(
    x: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    dim: int = -1,
    eps: float = 1e-05,
    *,
    normalized_shape: int | Sequence[int] | None = None,
) -> Tensor: ...
def ldexp(x: TensorLike, n: Any) -> Tensor: ...
def le(a: Any, b: Any) -> Tensor: ...
def leaky_relu(x: TensorLike, a: float = 0.01) -> Tensor: ...
def leakyrelu(x: TensorLike, a: float = 0.01) -> Tensor: ...
def left_shift(a: Any, b: Any) -> Tensor: ...
def lerp(a: TensorLike, b: Any, weight: Any) -> Tensor: ...
def less(a: Any, b: Any) -> Tensor: ...
def less_equal(a: Any, b: Any) -> Tensor: ...
def lgamma(x: TensorLike) -> Tensor: ...
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor: ...
def local_response_norm(
    x: TensorLike, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor: ...
def log(x: TensorLike) -> Tensor: ...
def log10(x: TensorLike) -> Tensor: ...
def log1p(x: TensorLike) -> Tensor: ...
def log2(x: TensorLike) -> Tensor: ...
def log_ndtr(x: TensorLike) -> Tensor: ...
def log_sigmoid(x: TensorLike) -> Tensor: ...
@overload
def log_softmax(x: TensorLike, axis: int = 1) -> Tensor: ...
@overload
def log_softmax(x: TensorLike, dim: int = 1) -> Tensor: ...
def logaddexp(a: TensorLike, b: Any) -> Tensor: ...
def logaddexp2(a: TensorLike, b: Any) -> Tensor: ...
@overload
def logcumsumexp(x: TensorLike, axis: int = -1) -> Tensor: ...
@overload
def logcumsumexp(x: TensorLike, dim: int = -1) -> Tensor: ...
def logical_and(a: TensorLike, b: Any) -> Tensor: ...
def logical_not(x: TensorLike) -> Tensor: ...
def logical_or(a: TensorLike, b: Any) -> Tensor: ...
def logical_xor(a: TensorLike, b: Any) -> Tensor: ...
def logit(x: TensorLike, eps: float | None = None) -> Tensor: ...
def logsigmoid(x: TensorLike) -> Tensor: ...
@overload
def logsumexp(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def logsumexp(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
def lp_pool(
    x: TensorLike,
    p: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    ceil_mode: bool = False,
    dilation: int | Sequence[int] = 1,
) -> Tensor: ...
def lstm(
    x: TensorLike,
    W: TensorLike,
    R: TensorLike,
    b: TensorLike | None = None,
    h0: TensorLike | None = None,
    c0: TensorLike | None = None,
    *,
    peepholes: TensorLike | None = None,
    projection: TensorLike | None = None,
    lengths: Any = None,
    reverse: bool = False,
    gate_order: str = "iofc",
) -> tuple[Tensor, Tensor, Tensor]: ...
def lstsq(a: TensorLike, b: Any, rcond: float | None = None) -> LeastSquares: ...
def lt(a: Any, b: Any) -> Tensor: ...
def margin_ranking_loss(
    x1: TensorLike, x2: TensorLike, t: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor: ...
def masked_fill(x: TensorLike, mask: Any, value: Any) -> Tensor: ...
def masked_scatter(x: TensorLike, mask: Any, source: Any) -> Tensor: ...
def masked_select(x: TensorLike, mask: Any) -> Tensor: ...
def matmul(x: TensorLike, w: TensorLike) -> Tensor: ...
def matrix_power(x: TensorLike, n: int) -> Tensor: ...
def matrix_rank(x: TensorLike, *, rcond: float | None = None) -> Tensor: ...
@overload
def max(*l: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
@overload
def max(*l: Any, dim: int, keepdim: bool = False) -> ValuesIndices: ...
def max_pool(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_pool1d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_pool2d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_pool3d(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_unpool(
    x: TensorLike,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor: ...
def max_unpool1d(
    x: TensorLike,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Any = None,
) -> Tensor: ...
def max_unpool2d(
    x: TensorLike,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Any = None,
) -> Tensor: ...
def max_unpool3d(
    x: TensorLike,
    indices: Any,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Any = None,
) -> Tensor: ...
def maximum(a: Any, b: Any) -> Tensor: ...
@overload
def mean(*l: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
@overload
def mean(*l: Any, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
def median(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
def meshgrid(*xs: Any, indexing: str = "xy") -> tuple[Tensor, ...]: ...
@overload
def min(*l: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
@overload
def min(*l: Any, dim: int, keepdim: bool = False) -> ValuesIndices: ...
def minimum(a: Any, b: Any) -> Tensor: ...
def mish(x: TensorLike) -> Tensor: ...
def mm(a: TensorLike, b: Any) -> Tensor: ...
@overload
def mode(x: TensorLike, axis: int = -1, keepdims: bool = False) -> ValuesIndices: ...
@overload
def mode(x: TensorLike, dim: int = -1, keepdim: bool = False) -> ValuesIndices: ...
def moveaxis(
    x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]
) -> Tensor: ...
def movedim(
    x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]
) -> Tensor: ...
def mse_loss(x: TensorLike, t: Any, reduction: str = "mean") -> Tensor: ...
def mul(a: Any, b: Any) -> Tensor: ...
def multi_dot(xs: Sequence[Tensor]) -> Tensor: ...
def multi_margin_loss(
    x: TensorLike,
    t: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor: ...
def multilabel_margin_loss(x: TensorLike, t: Any, reduction: str = "mean") -> Tensor: ...
def multilabel_soft_margin_loss(
    x: TensorLike, t: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor: ...
def multinomial(x: TensorLike, num_samples: int, replacement: bool = False) -> Tensor: ...
def multiply(a: Any, b: Any) -> Tensor: ...
def mv(a: TensorLike, b: Any) -> Tensor: ...
def nan_to_num(
    x: TensorLike, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor: ...
@overload
def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
@overload
def nanargmax(x: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
@overload
def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
@overload
def nanargmin(x: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
@overload
def nancumprod(x: TensorLike, axis: int | None = None) -> Tensor: ...
@overload
def nancumprod(x: TensorLike, dim: int | None = None) -> Tensor: ...
@overload
def nancumsum(x: TensorLike, axis: int | None = None) -> Tensor: ...
@overload
def nancumsum(x: TensorLike, dim: int | None = None) -> Tensor: ...
@overload
def nanmax(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def nanmax(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def nanmean(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def nanmean(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
def nanmedian(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def nanmin(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def nanmin(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def nanpercentile(
    x: TensorLike,
    q: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor: ...
@overload
def nanpercentile(
    x: TensorLike,
    q: Any,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    method: str = "linear",
) -> Tensor: ...
@overload
def nanprod(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def nanprod(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def nanquantile(
    x: TensorLike,
    q: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor: ...
@overload
def nanquantile(
    x: TensorLike,
    q: Any,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor: ...
@overload
def nanstd(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, ddof: float = 0
) -> Tensor: ...
@overload
def nanstd(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, ddof: float = 0
) -> Tensor: ...
@overload
def nansum(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def nansum(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def nanvar(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, ddof: float = 0
) -> Tensor: ...
@overload
def nanvar(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, ddof: float = 0
) -> Tensor: ...
@overload
def narrow(x: TensorLike, axis: int, start: int, length: int) -> Tensor: ...
@overload
def narrow(x: TensorLike, dim: int, start: int, length: int) -> Tensor: ...
def ndtr(x: TensorLike) -> Tensor: ...
def ndtri(x: TensorLike) -> Tensor: ...
def ne(a: Any, b: Any) -> Tensor: ...
def neg(x: TensorLike) -> Tensor: ...
def negative(x: TensorLike) -> Tensor: ...
@overload
def nll_loss(
    x: TensorLike,
    t: Any,
    axis: int = 1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor: ...
@overload
def nll_loss(
    x: TensorLike,
    t: Any,
    dim: int = 1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor: ...
def nonzero(x: TensorLike) -> Tensor: ...
@overload
def norm(
    x: TensorLike, ord: Any = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def norm(
    x: TensorLike, p: Any = None, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
@overload
def normalize(x: TensorLike, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor: ...
@overload
def normalize(x: TensorLike, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor: ...
def not_equal(a: Any, b: Any) -> Tensor: ...
@overload
def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = ...) -> Tensor: ...
@overload
def one_hot(x: Any, num_classes: int, dim: int = -1, dtype: Any = ...) -> Tensor: ...
@overload
def onehot(axis: int, indices: Any, depth: Any, values: Any = ...) -> Tensor: ...
@overload
def onehot(dim: int, indices: Any, depth: Any, values: Any = ...) -> Tensor: ...
def outer(a: TensorLike, b: Any) -> Tensor: ...
def pad(x: TensorLike, mode: Any, pads: Any = None, constant: float = 0.0) -> Tensor: ...
@overload
def pairwise_distance(
    a: TensorLike, b: Any, p: float = 2.0, eps: float = 1e-06, keepdims: bool = False
) -> Tensor: ...
@overload
def pairwise_distance(
    a: TensorLike, b: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor: ...
@overload
def partition(x: TensorLike, kth: int, axis: int | None = -1) -> Tensor: ...
@overload
def partition(x: TensorLike, kth: int, dim: int | None = -1) -> Tensor: ...
def pdist(x: TensorLike, p: float = 2.0) -> Tensor: ...
@overload
def percentile(
    x: TensorLike,
    q: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor: ...
@overload
def percentile(
    x: TensorLike,
    q: Any,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    method: str = "linear",
) -> Tensor: ...
@overload
def permute(x: TensorLike, axes: Any) -> Tensor: ...
@overload
def permute(x: TensorLike, dims: Any) -> Tensor: ...
def pinv(x: TensorLike, rcond: float | None = None) -> Tensor: ...
def pixel_shuffle(x: TensorLike, upscale_factor: int) -> Tensor: ...
def pixel_unshuffle(x: TensorLike, downscale_factor: int) -> Tensor: ...
def poisson_nll_loss(
    x: TensorLike,
    t: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-08,
    reduction: str = "mean",
) -> Tensor: ...
def polygamma(n: int, x: TensorLike) -> Tensor: ...
def polyval(p: Any, x: Any) -> Tensor: ...
def pooling_2d(
    handle: PoolingHandle, x: TensorLike, odd_padding: Sequence[int] = ...
) -> Tensor: ...
def pow(a: Any, b: Any) -> Tensor: ...
def power(a: Any, b: Any) -> Tensor: ...
def prelu(x: TensorLike, slope: TensorLike) -> Tensor: ...
@overload
def prod(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def prod(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False
) -> Tensor: ...
def psi(x: TensorLike) -> Tensor: ...
@overload
def ptp(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor: ...
@overload
def ptp(x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
@overload
def put_along_axis(x: TensorLike, indices: Any, values: Any, axis: int | None = -1) -> Tensor: ...
@overload
def put_along_axis(x: TensorLike, indices: Any, values: Any, dim: int | None = -1) -> Tensor: ...
def qr(x: TensorLike) -> QRResult: ...
@overload
def quantile(
    x: TensorLike,
    q: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor: ...
@overload
def quantile(
    x: TensorLike,
    q: Any,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor: ...
def rad2deg(x: TensorLike) -> Tensor: ...
def ranking_loss(pos: TensorLike, neg: TensorLike, M: float = 0.2) -> Tensor: ...
def ravel(x: TensorLike) -> Tensor: ...
def ravel_multi_index(indices: Sequence[Any], shape: Any) -> Tensor: ...
def reciprocal(x: TensorLike) -> Tensor: ...
@overload
def reduce_max(
    x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: int = 1
) -> Tensor: ...
@overload
def reduce_max(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: int = 1
) -> Tensor: ...
@overload
def reduce_mean(
    x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: int = 1
) -> Tensor: ...
@overload
def reduce_mean(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: int = 1
) -> Tensor: ...
@overload
def reduce_min(
    x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: int = 1
) -> Tensor: ...
@overload
def reduce_min(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: int = 1
) -> Tensor: ...
@overload
def reduce_prod(
    x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: int = 1
) -> Tensor: ...
@overload
def reduce_prod(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: int = 1
) -> Tensor: ...
@overload
def reduce_sum(
    x: TensorLike, axes: int | Sequence[int] | None = None, keepdims: int = 1
) -> Tensor: ...
@overload
def reduce_sum(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: int = 1
) -> Tensor: ...
def relu(x: TensorLike) -> Tensor: ...
def relu6(x: TensorLike) -> Tensor: ...
def remainder(a: Any, b: Any) -> Tensor: ...
@overload
def repeat(x: TensorLike, repeats: Any, axis: int | None = None) -> Tensor: ...
@overload
def repeat(x: TensorLike, repeats: Any, dim: int | None = None) -> Tensor: ...
@overload
def repeat_interleave(x: TensorLike, repeats: Any, axis: int | None = None) -> Tensor: ...
@overload
def repeat_interleave(x: TensorLike, repeats: Any, dim: int | None = None) -> Tensor: ...
def reshape(x: TensorLike, shape: int | Sequence[int]) -> Tensor: ...
def right_shift(a: Any, b: Any) -> Tensor: ...
def rint(x: TensorLike) -> Tensor: ...
@overload
def rms_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    axis: int = -1,
    eps: float = 1e-05,
    *,
    normalized_shape: int | Sequence[int] | None = None,
) -> Tensor: ...
@overload
def rms_norm(
    x: TensorLike,
    weight: TensorLike | None = None,
    dim: int = -1,
    eps: float = 1e-05,
    *,
    normalized_shape: int | Sequence[int] | None = None,
) -> Tensor: ...
def rnn(
    x: TensorLike,
    W: TensorLike,
    R: TensorLike,
    b: TensorLike | None = None,
    h0: TensorLike | None = None,
    *,
    activation: str = "tanh",
    lengths: Any = None,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def roll(
    x: TensorLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> Tensor: ...
@overload
def roll(
    x: TensorLike, shifts: int | Sequence[int], dim: int | Sequence[int] | None = None
) -> Tensor: ...
@overload
def roll(
    x: TensorLike, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Tensor: ...
@overload
def rot90(x: TensorLike, k: int = 1, axes: Sequence[int] = ...) -> Tensor: ...
@overload
def rot90(x: TensorLike, k: int = 1, dims: Sequence[int] = ...) -> Tensor: ...
def rotary_embedding(
    x: TensorLike, positions: int | TensorLike = 0, base: float = 10000.0, interleaved: bool = False
) -> Tensor: ...
def round(x: TensorLike) -> Tensor: ...
def rounde(x: TensorLike) -> Tensor: ...
def row_stack(xs: Sequence[Tensor]) -> Tensor: ...
def rrelu(x: TensorLike, lower: float = 0.125, upper: float = 0.3333333333333333) -> Tensor: ...
def rsqrt(x: TensorLike) -> Tensor: ...
def scaled_dot_product_attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    mask: TensorLike | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    lengths: TensorLike | None = None,
    start: TensorLike | None = None,
) -> Tensor: ...
@overload
def scatter(
    x: TensorLike, axis: int, indices: Any, updates: Any, reduce: str | None = None
) -> Tensor: ...
@overload
def scatter(x: TensorLike, dim: int, index: Any, src: Any, reduce: str | None = None) -> Tensor: ...
@overload
def scatter(
    x: TensorLike, dim: int, index: Any, value: Any, reduce: str | None = None
) -> Tensor: ...
@overload
def scatter_add(x: TensorLike, axis: int, indices: Any, updates: Any) -> Tensor: ...
@overload
def scatter_add(x: TensorLike, dim: int, index: Any, src: Any) -> Tensor: ...
@overload
def scatter_elements(x: TensorLike, indices: Any, updates: Any, axis: int = 0) -> Tensor: ...
@overload
def scatter_elements(x: TensorLike, indices: Any, updates: Any, dim: int = 0) -> Tensor: ...
def scatter_nd(x: TensorLike, indices: Any, updates: Any, reduction: str = "none") -> Tensor: ...
@overload
def scatter_reduce(
    x: TensorLike, axis: int, indices: Any, updates: Any, reduce: str, include_self: bool = True
) -> Tensor: ...
@overload
def scatter_reduce(
    x: TensorLike, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Tensor: ...
def searchsorted(a: TensorLike, v: Any, side: str = "left") -> Tensor: ...
@overload
def select(x: TensorLike, axis: int, index: int) -> Tensor: ...
@overload
def select(x: TensorLike, dim: int, index: int) -> Tensor: ...
@overload
def select_scatter(x: TensorLike, source: Any, axis: int, index: int) -> Tensor: ...
@overload
def select_scatter(x: TensorLike, src: Any, dim: int, index: int) -> Tensor: ...
def selu(x: TensorLike, alpha: float = 1.67326, gamma: float = 1.0507) -> Tensor: ...
def set_training(value: bool) -> None: ...
def sgn(x: TensorLike) -> Tensor: ...
def shape(x: TensorLike) -> Tensor: ...
def sigmoid(x: TensorLike) -> Tensor: ...
def sign(x: TensorLike) -> Tensor: ...
def signbit(x: TensorLike) -> Tensor: ...
def silu(x: TensorLike) -> Tensor: ...
def sin(x: TensorLike) -> Tensor: ...
def sinc(x: TensorLike) -> Tensor: ...
def sinh(x: TensorLike) -> Tensor: ...
def sinusoidal_positions(
    x: TensorLike, offset: int | TensorLike = 0, base: float = 10000.0
) -> Tensor: ...
def slice(
    x: TensorLike,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Tensor: ...
@overload
def slice_scatter(
    x: TensorLike,
    source: Any,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor: ...
@overload
def slice_scatter(
    x: TensorLike,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor: ...
def slogdet(x: TensorLike) -> SlogdetResult: ...
def smooth_l1_loss(x: TensorLike, t: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor: ...
def soft_margin_loss(x: TensorLike, t: Any, reduction: str = "mean") -> Tensor: ...
@overload
def softmax(x: TensorLike, axis: int = 1) -> Tensor: ...
@overload
def softmax(x: TensorLike, dim: int = 1) -> Tensor: ...
@overload
def softmax_cross_entropy(
    x: TensorLike,
    t: Any,
    axis: int = 1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor: ...
@overload
def softmax_cross_entropy(
    x: TensorLike,
    t: Any,
    dim: int = 1,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor: ...
@overload
def softmin(x: TensorLike, axis: int = -1) -> Tensor: ...
@overload
def softmin(x: TensorLike, dim: int = -1) -> Tensor: ...
def softplus(x: TensorLike) -> Tensor: ...
def softshrink(x: TensorLike, lambd: float = 0.5) -> Tensor: ...
def softsign(x: TensorLike) -> Tensor: ...
def solve(a: TensorLike, b: Any) -> Tensor: ...
def solve_triangular(
    a: TensorLike, b: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor: ...
@overload
def sort(
    x: TensorLike, axis: int | None = -1, descending: bool = False, *, stable: bool = True
) -> ValuesIndices: ...
@overload
def sort(
    x: TensorLike, dim: int | None = -1, descending: bool = False, *, stable: bool = True
) -> ValuesIndices: ...
def space_to_depth(x: TensorLike, blocksize: int, mode: str = "DCR") -> Tensor: ...
def split(
    x: TensorLike, axis: int, parts: Sequence[int] | None = None, num_output: int | None = None
) -> tuple[Tensor, ...]: ...
def sqrt(x: TensorLike) -> Tensor: ...
def square(x: TensorLike) -> Tensor: ...
@overload
def squeeze(x: TensorLike, axis: int | Sequence[int] = ...) -> Tensor: ...
@overload
def squeeze(x: TensorLike, dim: int | Sequence[int] = ...) -> Tensor: ...
@overload
def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor: ...
@overload
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor: ...
@overload
def std(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, ddof: float = 0
) -> Tensor: ...
@overload
def std(
    x: TensorLike,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    correction: float,
) -> Tensor: ...
@overload
def std(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, unbiased: bool
) -> Tensor: ...
@overload
def std_mean(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, ddof: float = 0
) -> tuple[Tensor, Tensor]: ...
@overload
def std_mean(
    x: TensorLike,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    correction: float,
) -> tuple[Tensor, Tensor]: ...
@overload
def std_mean(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, unbiased: bool
) -> tuple[Tensor, Tensor]: ...
def sub(a: Any, b: Any) -> Tensor: ...
def subtract(a: Any, b: Any) -> Tensor: ...
@overload
def sum(*l: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
@overload
def sum(*l: Any, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
def svd(x: TensorLike) -> SVDResult: ...
def svdvals(x: TensorLike) -> Tensor: ...
@overload
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor: ...
@overload
def swapaxes(x: TensorLike, dim0: int, dim1: int) -> Tensor: ...
@overload
def swapdims(x: TensorLike, axis1: int, axis2: int) -> Tensor: ...
@overload
def swapdims(x: TensorLike, dim0: int, dim1: int) -> Tensor: ...
def swish(x: TensorLike) -> Tensor: ...
@overload
def take(x: TensorLike, indices: Any, axis: int | None = None) -> Tensor: ...
@overload
def take(x: TensorLike, index: Any, dim: int | None = None) -> Tensor: ...
@overload
def take_along_axis(x: TensorLike, indices: Any, axis: int | None = -1) -> Tensor: ...
@overload
def take_along_axis(x: TensorLike, indices: Any, dim: int | None = -1) -> Tensor: ...
@overload
def take_along_dim(x: TensorLike, indices: Any, axis: int | None = None) -> Tensor: ...
@overload
def take_along_dim(x: TensorLike, indices: Any, dim: int | None = None) -> Tensor: ...
def tan(x: TensorLike) -> Tensor: ...
def tanh(x: TensorLike) -> Tensor: ...
def tanhshrink(x: TensorLike) -> Tensor: ...
@overload
def tensor_scatter(
    past: Tensor, update: TensorLike, start: TensorLike, axis: int = -2
) -> Tensor: ...
@overload
def tensor_scatter(
    past: Tensor, update: TensorLike, start: TensorLike, dim: int = -2
) -> Tensor: ...
@overload
def tensor_split(
    x: TensorLike, sections: int | Sequence[int], axis: int = 0
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    x: TensorLike, indices_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]: ...
@overload
def tensordot(a: TensorLike, b: Any, axes: Any = 2) -> Tensor: ...
@overload
def tensordot(a: TensorLike, b: Any, dims: Any = 2) -> Tensor: ...
def threshold(x: TensorLike, threshold: float, value: float) -> Tensor: ...
def tile(x: TensorLike, repeats: int | Sequence[int]) -> Tensor: ...
def to_numpy(t: Tensor) -> np.ndarray: ...
@overload
def topk(x: TensorLike, k: int, axis: int = -1, largest: bool = True) -> ValuesIndices: ...
@overload
def topk(x: TensorLike, k: int, dim: int = -1, largest: bool = True) -> ValuesIndices: ...
def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
def transpose(x: TensorLike, shape: Sequence[int] | None = None) -> Tensor: ...
@overload
def trapezoid(y: TensorLike, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor: ...
@overload
def trapezoid(y: TensorLike, x: Any = None, dx: float = 1.0, dim: int = -1) -> Tensor: ...
def tril(x: TensorLike, k: int = 0) -> Tensor: ...
def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor: ...
def triplet_margin_with_distance_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor: ...
def triu(x: TensorLike, k: int = 0) -> Tensor: ...
def true_divide(a: Any, b: Any) -> Tensor: ...
def trunc(x: TensorLike) -> Tensor: ...
@overload
def unbind(x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]: ...
@overload
def unbind(x: TensorLike, dim: int = 0) -> tuple[Tensor, ...]: ...
@overload
def unflatten(x: TensorLike, axis: int, sizes: Sequence[int]) -> Tensor: ...
@overload
def unflatten(x: TensorLike, dim: int, sizes: Sequence[int]) -> Tensor: ...
def unfold(
    x: TensorLike,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor: ...
@overload
def unique(
    x: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any: ...
@overload
def unique(
    x: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any: ...
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]: ...
@overload
def unsqueeze(x: TensorLike, axis: int | Sequence[int] = -1) -> Tensor: ...
@overload
def unsqueeze(x: TensorLike, dim: int | Sequence[int] = -1) -> Tensor: ...
def upsample(x: TensorLike, mode: str, scales: Any) -> Tensor: ...
def vander(x: TensorLike, n: int | None = None, increasing: bool = False) -> Tensor: ...
@overload
def var(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, ddof: float = 0
) -> Tensor: ...
@overload
def var(
    x: TensorLike,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    correction: float,
) -> Tensor: ...
@overload
def var(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, unbiased: bool
) -> Tensor: ...
@overload
def var_mean(
    x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: bool = False, ddof: float = 0
) -> tuple[Tensor, Tensor]: ...
@overload
def var_mean(
    x: TensorLike,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    correction: float,
) -> tuple[Tensor, Tensor]: ...
@overload
def var_mean(
    x: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, unbiased: bool
) -> tuple[Tensor, Tensor]: ...
def vdot(a: TensorLike, b: Any) -> Tensor: ...
def vsplit(x: TensorLike, sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
def vstack(xs: Sequence[Tensor]) -> Tensor: ...
@overload
def where(condition: TensorLike, x: Any, y: Any) -> Tensor: ...
@overload
def where(x: Any, y: Any, condition: Any) -> Tensor: ...
def xlog1py(a: TensorLike, b: Any) -> Tensor: ...
def xlogy(a: TensorLike, b: Any) -> Tensor: ...

__all__ = [
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "AddBias",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atan2",
    "Atanh",
    "Attention",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm2d",
    "BatchNormHandle",
    "Binary",
    "BinaryCrossEntropy",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "Cbrt",
    "Ceil",
    "Clip",
    "Concat",
    "ConstantOfShape",
    "Conv2d",
    "ConvHandle",
    "Cos",
    "CosSim",
    "Cosh",
    "CrossEntropy",
    "CumProd",
    "CumSum",
    "DepthToSpace",
    "Digamma",
    "Div",
    "Dropout",
    "Dummy",
    "Elu",
    "Embedding",
    "Equal",
    "Erf",
    "Erfc",
    "Erfinv",
    "Exp",
    "Exp2",
    "Expand",
    "Expm1",
    "Flatten",
    "Floor",
    "FloorDivide",
    "GELU",
    "Gather",
    "Gemm",
    "GlobalAveragePool",
    "Gradients",
    "Greater",
    "GreaterEqual",
    "HardSigmoid",
    "Hypot",
    "Identity",
    "LSTM",
    "LeakyRelu",
    "LeftShift",
    "Less",
    "LessEqual",
    "Lgamma",
    "Linear",
    "Log",
    "Log10",
    "Log1p",
    "Log2",
    "LogNdtr",
    "LogSoftMax",
    "LogSumExp",
    "Loss",
    "Matmul",
    "Max",
    "MaxPool1d",
    "MaxPool2d",
    "Maximum",
    "Mean",
    "MeanSquareError",
    "Min",
    "Minimum",
    "Mul",
    "Ndtr",
    "Ndtri",
    "Negative",
    "NonZero",
    "Not",
    "NotEqual",
    "OneHot",
    "Operation",
    "Operator",
    "Or",
    "PRelu",
    "Pad",
    "Polygamma",
    "Pooling2d",
    "PoolingHandle",
    "Pow",
    "RNN",
    "RNNHandle",
    "RNN_Base",
    "RankingLoss",
    "ReLU",
    "Reciprocal",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "Remainder",
    "Repeat",
    "Reshape",
    "RightShift",
    "Round",
    "Rounde",
    "Rule",
    "ScatterElements",
    "SeLU",
    "Select",
    "SeparableConv2d",
    "Shape",
    "SiLU",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Slice",
    "SoftMax",
    "SoftMaxCrossEntropy",
    "SoftPlus",
    "SoftSign",
    "Sort",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Square",
    "Squeeze",
    "Sub",
    "Sum",
    "TakeAlongAxis",
    "Tan",
    "Tanh",
    "Tile",
    "TopK",
    "Transpose",
    "Triangle",
    "Unsqueeze",
    "UpSample",
    "Where",
    "Xor",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "add",
    "add_all",
    "add_bias",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "affine_grid",
    "all",
    "allclose",
    "alpha_dropout",
    "amax",
    "amin",
    "aminmax",
    "any",
    "append",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "around",
    "array_equal",
    "array_split",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "axis_helper",
    "back_broadcast",
    "backward",
    "baddbmm",
    "batchnorm_2d",
    "bce_loss",
    "bernoulli",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bincount",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "block_diag",
    "bmm",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "cartesian_prod",
    "cast",
    "cat",
    "cbrt",
    "cdist",
    "ceil",
    "celu",
    "channel_shuffle",
    "cholesky",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "constant_of_shape",
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolve",
    "copysign",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cossim",
    "count_nonzero",
    "cov",
    "cross",
    "cross_entropy",
    "ctc_loss",
    "ctensor2numpy",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "deg2rad",
    "delete",
    "depth_to_space",
    "det",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diff",
    "digamma",
    "digitize",
    "dist",
    "div",
    "divide",
    "dropout",
    "dsplit",
    "dstack",
    "eigh",
    "eigvalsh",
    "einsum",
    "elu",
    "embedding",
    "embedding_bag",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expand",
    "expand_dims",
    "expit",
    "expm1",
    "feature_alpha_dropout",
    "feature_dropout",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fold",
    "frac",
    "gammaln",
    "gather",
    "gather_nd",
    "gaussian_nll_loss",
    "ge",
    "gelu",
    "gelu_tanh",
    "gemm",
    "ger",
    "globalaveragepool",
    "glu",
    "gradient",
    "gradients",
    "greater",
    "greater_equal",
    "grid_sample",
    "group_norm",
    "gru",
    "gt",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "heaviside",
    "hinge_embedding_loss",
    "histc",
    "histogram",
    "hsplit",
    "hstack",
    "huber_loss",
    "hypot",
    "identity",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "inner",
    "instance_norm",
    "interp",
    "interpolate",
    "inv",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kl_div",
    "kron",
    "kthvalue",
    "l1_loss",
    "layer_norm",
    "ldexp",
    "le",
    "leaky_relu",
    "leakyrelu",
    "left_shift",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linear",
    "local_response_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_ndtr",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsigmoid",
    "logsumexp",
    "lp_pool",
    "lstm",
    "lstsq",
    "lt",
    "margin_ranking_loss",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_power",
    "matrix_rank",
    "max",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "mse_loss",
    "mul",
    "multi_dot",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "multinomial",
    "multiply",
    "mv",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "narrow",
    "ndtr",
    "ndtri",
    "ne",
    "neg",
    "negative",
    "nll_loss",
    "no_grad",
    "nonzero",
    "norm",
    "normalize",
    "not_equal",
    "one_hot",
    "onehot",
    "outer",
    "pad",
    "pairwise_distance",
    "partition",
    "pdist",
    "percentile",
    "permute",
    "pinv",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "polygamma",
    "polyval",
    "pooling_2d",
    "pow",
    "power",
    "prelu",
    "prod",
    "psi",
    "ptp",
    "put_along_axis",
    "qr",
    "quantile",
    "rad2deg",
    "ranking_loss",
    "ravel",
    "ravel_multi_index",
    "reciprocal",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "repeat_interleave",
    "reshape",
    "right_shift",
    "rint",
    "rms_norm",
    "rnn",
    "roll",
    "rot90",
    "rotary_embedding",
    "round",
    "rounde",
    "row_stack",
    "rrelu",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "scatter_elements",
    "scatter_nd",
    "scatter_reduce",
    "searchsorted",
    "select",
    "select_scatter",
    "selu",
    "set_training",
    "sgn",
    "shape",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "sinusoidal_positions",
    "slice",
    "slice_scatter",
    "slogdet",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmax_cross_entropy",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "solve",
    "solve_triangular",
    "sort",
    "space_to_depth",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "svd",
    "svdvals",
    "swapaxes",
    "swapdims",
    "swish",
    "take",
    "take_along_axis",
    "take_along_dim",
    "tan",
    "tanh",
    "tanhshrink",
    "tensor_scatter",
    "tensor_split",
    "tensordot",
    "threshold",
    "tile",
    "to_numpy",
    "topk",
    "trace",
    "transpose",
    "trapezoid",
    "tril",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "triu",
    "true_divide",
    "trunc",
    "unbind",
    "unflatten",
    "unfold",
    "unique",
    "unravel_index",
    "unsqueeze",
    "upsample",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "vsplit",
    "vstack",
    "where",
    "xlog1py",
    "xlogy",
]
