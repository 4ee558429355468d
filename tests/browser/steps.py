"""Training steps of the examples as pages."""

import argparse
import sys
from pathlib import Path

import numpy as np
from singa_rs import device
from singa_rs.tensor import from_numpy

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


def trained(model, *arrays):
    """A model whose step is replayed."""
    tensors = [from_numpy(array) for array in arrays]
    model.compile(tensors[:1], is_train=True, use_graph=True)
    for _ in range(3):
        model(*tensors)
    return model


def gpt(layers=2, width=64, heads=4, batch=8, context=64):
    """A GPT on characters."""
    from gpt import GPT

    device.get_default_device().set_seed(0)
    rng = np.random.default_rng(0)
    made = GPT(30, argparse.Namespace(width=width, heads=heads, layers=layers, lr=0.002))
    x = rng.integers(0, 30, (batch, context)).astype(np.int32)
    return trained(made, x, rng.integers(0, 30, batch * context).astype(np.int32))


def unet(levels=3, width=8, batch=8):
    """A U-Net on pictures of discs."""
    from unet import UNet, pictures

    device.get_default_device().set_seed(0)
    made = UNet(argparse.Namespace(width=width, levels=levels, lr=0.004))
    return trained(made, *pictures(np.random.default_rng(0), batch))


def page_of(model, path, profiled=True):
    """Writes the page of a model's step."""
    (graph,) = model.graphs
    if profiled:
        graph.profile(20)
    graph.to_html(path)
    return path
