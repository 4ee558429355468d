"""SINGA 1.x's `net`: `FeedForwardNet`, a graph of layers with a forward and a backward pass by
hand.

    net = FeedForwardNet(loss.SoftmaxCrossEntropy(), metric.Accuracy())
    net.add(layer.Dense("hidden", 100, input_sample_shape=(784,)))
    net.add(layer.Activation("relu"))
    net.add(layer.Dense("out", 10))
    net.compile(optimizer.SGD(lr=0.1, momentum=0.9))
    net.fit(images, labels, batch_size=64, epochs=2)
"""

from __future__ import annotations

from typing import Any

from ..loss import Loss
from .saving import Saved
from .structure import Source, Structure
from .training import Epoch, Trained, a_loss

__all__ = ["Epoch", "FeedForwardNet", "Source", "Structure", "verbose"]


def __dir__() -> list[str]:
    return sorted(__all__)


#: Whether `forward` prints the mean absolute value of each layer's output. Programs assign it.
verbose = False


class FeedForwardNet(Trained, Saved):
    """A net of the layers of `compat.layer`, in a graph without circles (SINGA 1.x).

    Layers are joined by `add`. A layer's output has one reader: `Split` makes several of it. Steps
    run as they are written until `compile` lets them be recorded and replayed.
    """

    def __init__(self, loss: Loss | None = None, metric: Any = None) -> None:
        """`loss`: one of `compat.loss`, for training.

        Args:
            metric: one of `compat.metric`, or any other object with `evaluate(x, y)`.

        Raises:
            TypeError: another loss, such as one of `singa_rs.loss`, which are means.
        """
        super().__init__()
        self.loss = None if loss is None else a_loss(loss, "FeedForwardNet: loss")
        self.metric = metric
        self.optimizer = None
