"""The memory that training a VGG-like `FeedForwardNet` takes if each gradient is applied and let go
before the next one is computed, relative to collecting all gradients first.

    python benches/python/net_memory.py                  # all nets
    python benches/python/net_memory.py --nets vgg16     # one of them

Images are CIFAR-10's, two in a batch, so that parameters and gradients outweigh activations;
updates are plain SGD. "eager" is a loop over `backward`, next to `train`, which returns all
gradients; "recorded" is `train_on_batch`, next to `train`, of a compiled net. A figure is the peak
of the device's ledger in a step that is not the first, parameters included.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable

import numpy as np
from singa_rs import device, tensor
from singa_rs.compat import layer, loss, optimizer
from singa_rs.compat.net import FeedForwardNet

MIB = 1 << 20
BATCH = 2
#: The widths of the convolutions between one pooling and the next.
NETS = {
    "vgg16": [[64] * 2, [128] * 2, [256] * 3, [512] * 3, [512] * 3],
    "vgg19": [[64] * 2, [128] * 2, [256] * 4, [512] * 4, [512] * 4],
    "deeper": [[64] * 2, [128] * 2, [256] * 4, [512] * 8, [512] * 8],
}


def vgg(widths: list[list[int]]) -> FeedForwardNet:
    """Convolutions of 3 x 3, and two dense layers (Simonyan and Zisserman, 2014)."""
    net = FeedForwardNet(loss.SoftmaxCrossEntropy())
    shape: tuple[int, ...] | None = (3, 32, 32)
    for stage, group in enumerate(widths):
        for i, width in enumerate(group):
            name = f"{stage}_{i}"
            net.add(layer.Conv2D(f"conv{name}", width, 3, pad=1, input_sample_shape=shape))
            net.add(layer.Activation(f"relu{name}"))
            shape = None
        net.add(layer.MaxPooling2D(f"pool{stage}", 2, 2, "valid"))
    net.add(layer.Flatten("flat"))
    net.add(layer.Dense("hidden", 512))
    net.add(layer.Activation("relu"))
    net.add(layer.Dense("out", 10))
    return net


def layer_by_layer(net: FeedForwardNet, x: tensor.Tensor, y: tensor.Tensor) -> None:
    """A step that holds the gradients of one layer at a time."""
    sgd, out = optimizer.SGD(lr=0.01), net.forward(True, x)
    net.loss.forward(True, out, y)
    del out
    for names, values, grads, _ in net.backward(net.loss.backward() / float(BATCH)):
        while grads:
            sgd.apply(0, grads.pop(), values[len(grads)], names[len(grads)])


def collected(net: FeedForwardNet, x: tensor.Tensor, y: tensor.Tensor) -> None:
    """A step that holds all gradients before it applies the first one."""
    sgd = optimizer.SGD(lr=0.01)
    grads, _ = net.train(x, y)
    for name, value, grad in zip(net.param_names(), net.param_values(), grads, strict=True):
        sgd.apply(0, grad, value, name)


def recorded(net: FeedForwardNet, x: tensor.Tensor, y: tensor.Tensor) -> None:
    """A recorded step, which applies each gradient as soon as it is final."""
    net.train_on_batch(x, y)


def peak(step: Callable[..., None], widths: list[list[int]], use_graph: bool) -> int:
    """The peak of a step in bytes."""
    net, dev = vgg(widths), device.get_default_device()
    rng = np.random.default_rng(0)
    x = tensor.from_numpy(rng.normal(size=(BATCH, 3, 32, 32)).astype(np.float32))
    y = tensor.from_numpy(np.arange(BATCH, dtype=np.int32))
    net.compile(optimizer.SGD(lr=0.01), use_graph=use_graph)
    for _ in range(3):  # two recordings, and the first replay, which is verified
        step(net, x, y)
    gc.collect()
    dev.trim()
    dev.reset_peak()
    step(net, x, y)
    return dev.memory()["peak"]


def main() -> None:
    """Prints the rows of the table in docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    for name in parser.parse_args().nets:
        parameters = sum(value.nbytes for value in vgg(NETS[name]).param_values())
        for mode, one, use_graph in (
            ("eager", layer_by_layer, False),
            ("recorded", recorded, True),
        ):
            least, most = (peak(step, NETS[name], use_graph) for step in (one, collected))
            cells = [name, f"{parameters / MIB:.1f}", mode, f"{least / MIB:.1f}"]
            print(
                f"| {' | '.join(cells)} | {most / MIB:.1f} | **{least / most:.2f}** |", flush=True
            )


if __name__ == "__main__":
    main()
