"""The models of `singa-rs bench` in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn, optim

from .. import device
from .bench_models import BLOCKS, GPT, HEADS, MLP, WIDTH, batch


def step_of(name: str, threads: int | None) -> tuple[Callable[[], float], None]:
    """A step of training; what it takes is not planned."""
    torch.manual_seed(0)
    torch.set_num_threads(threads or device.get_default_device().num_threads)
    model, optimizer = {"mlp": _mlp, "lenet": _lenet, "gpt": _gpt}[name]()
    x, y = map(torch.from_numpy, batch(name))
    x, y = x if x.is_floating_point() else x.long(), y.long()

    def step() -> float:
        optimizer.zero_grad()
        scores = model(x)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, None


def _mlp() -> tuple[Any, Any]:
    model = nn.Sequential(
        nn.Linear(MLP[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return model, optim.SGD(model.parameters(), 0.05)


def _lenet() -> tuple[Any, Any]:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return model, optim.SGD(model.parameters(), 0.01, momentum=0.9)


def _gpt() -> tuple[Any, Any]:
    context = GPT[2]
    mask = nn.Transformer.generate_square_subsequent_mask(context)

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(GPT[1], WIDTH)
            self.register_buffer("positions", torch.randn(context, WIDTH))
            form = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
            self.blocks = nn.ModuleList(
                nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, **form) for _ in range(BLOCKS)
            )
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, GPT[1])

        def forward(self, x: Any) -> Any:
            y = self.embed(x) + self.positions
            for block in self.blocks:
                y = block(y, src_mask=mask, is_causal=True)
            return self.head(self.norm(y))

    model = Gpt()
    return model, optim.AdamW(model.parameters(), 1e-3)
