"""Layers: wrong arguments and inputs."""

import numpy as np
import pytest
from layer_calls import call, normal
from singa_rs import DTypeError, ShapeError, layer
from singa_rs.tensor import Tensor

BAD = [
    (TypeError, "out_features", lambda: layer.Linear("4")),
    (ValueError, "out_features", lambda: layer.Linear(0)),
    (ValueError, "in_features", lambda: layer.Linear(-1, 4)),
    (TypeError, "Linear", lambda: layer.Linear(3, 4, True, 5)),
    (ValueError, "activation", lambda: layer.Linear(4, activation="NOPE")),
    (TypeError, "activation", lambda: layer.Linear(4, activation=3)),
    (ValueError, "kernel_init", lambda: layer.Linear(4, kernel_init="nope")),
    (TypeError, "bias_init", lambda: layer.Conv2d(4, 3, bias_init=3)),
    (ValueError, "nb_kernels", lambda: layer.Gemm(0)),
    (TypeError, "alpha", lambda: layer.Gemm(3, alpha="x")),
    (ValueError, "nb_kernels", lambda: layer.Conv2d(0, 3)),
    (ValueError, "kernel_size", lambda: layer.Conv2d(4, 0)),
    (ValueError, "kernel_size", lambda: layer.Conv2d(4, (1, 2, 3))),
    (TypeError, "kernel_size", lambda: layer.Conv2d(4, 3.0)),
    (TypeError, "got kernel_size twice", lambda: layer.Conv2d(3, 4, 3, kernel_size=3)),
    (TypeError, "got stride twice", lambda: layer.Conv2d(3, 4, 3, 2, stride=1)),
    (TypeError, "got stride twice", lambda: layer.ConvTranspose1d(3, 4, 3, 2, 1, stride=2)),
    (TypeError, "got padding twice", lambda: layer.SeparableConv2d(3, 4, 3, 2, 1, padding=0)),
    (TypeError, "got in_channels twice", lambda: layer.Conv3d(3, 4, 3, in_channels=3)),
    (ValueError, "stride", lambda: layer.Conv2d(4, 3, stride=0)),
    (ValueError, "padding", lambda: layer.Conv2d(4, 3, padding=-1)),
    (ValueError, "padding", lambda: layer.Conv2d(4, 3, padding=1, pad_mode="SAME_UPPER")),
    (ValueError, "dilation", lambda: layer.Conv2d(4, 3, dilation=0)),
    (ValueError, "pad_mode", lambda: layer.Conv2d(4, 3, pad_mode="SAME")),
    (ValueError, "group", lambda: layer.Conv2d(4, 3, group=3)),
    (ValueError, "group", lambda: layer.Conv2d(3, 4, 3, group=2)),
    (TypeError, "Conv2d", lambda: layer.Conv2d(3, 4, 3, 1, 0, 1)),
    (TypeError, "groups", lambda: layer.Conv2d(4, 3, groups=2)),
    (ValueError, "kernel_size", lambda: layer.SeparableConv2d(4, 0)),
    (ValueError, "MaxPool2d: stride", lambda: layer.MaxPool2d(2, 0)),
    (ValueError, "AvgPool1d: kernel_size", lambda: layer.AvgPool1d(0)),
    (ValueError, "channels", lambda: layer.BatchNorm2d(0)),
    (ValueError, "momentum", lambda: layer.BatchNorm2d(momentum=1.5)),
    (ValueError, "eps", lambda: layer.BatchNorm2d(eps=-1)),
    (ValueError, "ratio", lambda: layer.Dropout(1.5)),
    (TypeError, "ratio", lambda: layer.Dropout("0.5")),
    (ValueError, "input_dim", lambda: layer.Embedding(0, 4)),
    (ValueError, "initializer", lambda: layer.Embedding(3, 4, "nope")),
    (TypeError, "axis", lambda: layer.Cat("0")),
    (TypeError, "M", lambda: layer.RankingLoss("x")),
    (TypeError, "Sequential", lambda: layer.Sequential(3)),
    (ValueError, "normalized_shape", lambda: layer.LayerNorm(0)),
    (TypeError, "normalized_shape", lambda: layer.RMSNorm("x")),
    (ValueError, "RMSNorm: eps", lambda: layer.RMSNorm(eps=-1)),
    (ValueError, "divisor of 6", lambda: layer.GroupNorm(4, 6)),
    (ValueError, "num_features", lambda: layer.InstanceNorm(0)),
    (ValueError, "BatchNorm3d: momentum", lambda: layer.BatchNorm3d(momentum=1.5)),
    (TypeError, "BatchNorm1d", lambda: layer.BatchNorm1d(1, 0.1, 3)),
    (ValueError, "Dropout2d: ratio", lambda: layer.Dropout2d(1.0)),
    (ValueError, "approximate", lambda: layer.GELU("erf")),
    (ValueError, "padding_idx", lambda: layer.Embedding(3, 4, padding_idx=3)),
    (ValueError, "padding_idx", lambda: layer.Embedding(3, 4, padding_idx=-4)),
    (ValueError, "mode", lambda: layer.Upsample(2, "area")),
    (TypeError, "scale_factor", lambda: layer.Upsample("2")),
    (ValueError, "scale_factor: got 0, want a positive number", lambda: layer.Upsample(0)),
    (ValueError, "scale_factor", lambda: layer.Upsample(0.0)),
    (TypeError, "scale_factor", lambda: layer.Upsample(True)),
    (ValueError, "scale_factor 2 and size", lambda: layer.Upsample(2, size=3)),
    (ValueError, "coordinates", lambda: layer.Upsample(2, coordinates="corners")),
    (ValueError, "upscale_factor", lambda: layer.PixelShuffle(0)),
    (ValueError, "output_size", lambda: layer.AdaptiveAvgPool2d(0)),
    (ValueError, "2 sizes", lambda: layer.AdaptiveMaxPool2d((1, 2, 3))),
    (TypeError, "ModuleList", lambda: layer.ModuleList([3])),
    (TypeError, "ModuleList", lambda: layer.ModuleList(3)),
    (TypeError, "ModuleDict", lambda: layer.ModuleDict({"a": 3})),
    (ValueError, "without dots", lambda: layer.ModuleDict({"a.b": layer.ReLU()})),
    (ValueError, "num_heads", lambda: layer.MultiHeadAttention(6, 4)),
    (ValueError, "kv_heads", lambda: layer.MultiHeadAttention(8, 4, kv_heads=3)),
    (ValueError, "even", lambda: layer.MultiHeadAttention(3, 1, rotary=True)),
    (ValueError, "nhead", lambda: layer.TransformerEncoderLayer(6, 4)),
    (ValueError, "activation", lambda: layer.TransformerDecoderLayer(6, 2, activation="NO")),
    (TypeError, "register_layers", lambda: layer.ReLU().register_layers(3)),
]


@pytest.mark.parametrize(("error", "argument", "make"), BAD)
def test_wrong_arguments(error, argument, make):
    with pytest.raises(error, match=argument):
        make()


WRONG_INPUTS = [
    (ShapeError, lambda: layer.Linear(3, 4), normal(2, 5)),
    (ShapeError, lambda: layer.Linear(4), np.float32(5)),
    (DTypeError, lambda: layer.Linear(4), np.int32([[1, 2]])),
    (ShapeError, lambda: layer.Conv2d(2, 4, 3), normal(1, 3, 5, 5)),
    (ShapeError, lambda: layer.Conv2d(4, 3), normal(5, 5)),
    (ShapeError, lambda: layer.Conv2d(2, 4, 3), normal(3, 5, 5)),
    (ShapeError, lambda: layer.Conv2d(4, 3), normal(1, 3, 2, 5)),
    (ShapeError, lambda: layer.MaxPool2d(3), normal(1, 3, 2, 5)),
    (ShapeError, lambda: layer.MaxPool1d(3), normal(3, 5)),
    (ShapeError, lambda: layer.BatchNorm2d(3), normal(2, 4)),
    (ShapeError, lambda: layer.BatchNorm2d(), normal(2, 4, 4)),
    (DTypeError, lambda: layer.BatchNorm2d(), np.int32([[1, 2]])),
    (ShapeError, lambda: layer.GlobalAvgPool2d(), normal(2, 4)),
    (ShapeError, lambda: layer.LayerNorm((3, 4)), normal(2, 4)),
    (ShapeError, lambda: layer.RMSNorm(axis=-3), normal(2, 4)),
    (ShapeError, lambda: layer.BatchNorm1d(), normal(2, 4, 4, 4)),
    (ShapeError, lambda: layer.BatchNorm3d(), normal(2, 4, 4, 4)),
    (DTypeError, lambda: layer.GroupNorm(2), np.int32([[1, 2]])),
    (ShapeError, lambda: layer.InstanceNorm(3), normal(2, 4, 4)),
    (ShapeError, lambda: layer.Dropout2d(), normal(2, 4, 4)),
    (ShapeError, lambda: layer.Upsample((2, 2)), normal(2, 4, 4)),
    (ShapeError, lambda: layer.AdaptiveAvgPool2d(1), normal(2, 4, 4)),
    (ShapeError, lambda: layer.TransformerEncoderLayer(4, 2), normal(2, 4, 6)),
]


@pytest.mark.parametrize(("error", "make", "x"), WRONG_INPUTS)
def test_wrong_inputs(error, make, x):
    one = make()
    with pytest.raises(error, match=type(one).__name__):
        one(Tensor(data=x))
    assert one.get_states() == {}


def test_input_of_another_width_later():
    dense = layer.Linear(4)
    call(dense, normal(2, 3))
    with pytest.raises(ShapeError, match="Linear"):
        call(dense, normal(2, 5))
