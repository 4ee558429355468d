"""Perceptrons, and models of rows, graphs and games."""

from __future__ import annotations

from typing import Any

from parts import Add, Case, Library, Loss, classified, mlp, noise, whole


def perceptron(lib: Library, add: Add) -> Loss:
    """Batch norm and dropout between three layers."""
    layers = []
    for inputs in (784, 512):
        layers += [lib.linear(inputs, 512), lib.batch_norm1d(512), lib.relu(), lib.dropout(0.2)]
    return classified(lib, add(lib.chain(*layers, lib.linear(512, 10))))


def tiny(lib: Library, add: Add) -> Loss:
    """A single row."""
    net = add(mlp(lib, (16, 32, 32, 4), lib.tanh))
    return lambda x, y: lib.squares(net(x), y)


def deep(lib: Library, add: Add) -> Loss:
    """Twenty narrow layers, each normalised."""
    layers = []
    for _ in range(20):
        layers += [lib.linear(64, 64), lib.layer_norm(64), lib.silu()]
    net = add(lib.chain(*layers, lib.linear(64, 1)))
    return lambda x, y: lib.squares(net(x), y)


def clicks(lib: Library, add: Add) -> Loss:
    """Products of embeddings, as in DLRM."""
    embed = add(lib.embedding(10000, 16))
    below, above = add(mlp(lib, (13, 64, 16), lib.relu)), add(mlp(lib, (97, 64, 1), lib.relu))

    def loss(x: Any, rows: Any, y: Any) -> Any:
        dense = below(x)
        all_rows = lib.cat([embed(rows), dense.reshape((-1, 1, 16))], 1)
        products = (all_rows @ all_rows.permute(0, 2, 1)).reshape((-1, 81))
        return lib.squares(above(lib.cat([dense, products], 1)), y)

    return loss


def graph(lib: Library, add: Add) -> Loss:
    """Sums over the edges of a graph."""
    first, second = add(lib.linear(64, 64)), add(lib.linear(64, 7))

    def forward(x: Any, begins: Any, ends: Any) -> Any:
        hidden = lib.relu()(first(lib.added(x, ends, x[begins])))
        return second(lib.added(hidden, ends, hidden[begins]))

    return classified(lib, forward)


def contrast(lib: Library, add: Add) -> Loss:
    """Pairs that are to be told from all others of a batch."""
    net = add(mlp(lib, (128, 256, 64), lib.relu))

    def loss(x: Any, y: Any, own: Any) -> Any:
        near = lib.normalize(net(x)) @ lib.normalize(net(y)).permute(1, 0)
        return lib.cross_entropy(near * 10.0, own)

    return loss


def game(lib: Library, add: Add) -> Loss:
    """Values of actions, towards those of a second network."""
    net, target = (add(mlp(lib, (8, 128, 128, 4), lib.relu)) for _ in range(2))

    def loss(state: Any, action: Any, reward: Any, after: Any) -> Any:
        wanted = reward + target(after).detach().amax(1) * 0.99
        return lib.squares(lib.taken(net(state), action), wanted)

    return loss


def flow(lib: Library, add: Add) -> Loss:
    """Couplings that can be inverted."""
    nets = [add(mlp(lib, (8, 64, 16), lib.tanh)) for _ in range(6)]

    def loss(x: Any) -> Any:
        a, b, volume = x[:, :8], x[:, 8:], 0.0
        for net in nets:
            both = net(a)
            scale = lib.tanh()(both[:, :8])
            a, b = b * lib.exp(scale) + both[:, 8:], a
            volume = volume + scale.sum(1)
        return ((a * a + b * b).sum(1) * 0.5 - volume).mean()

    return loss


CASES = {
    "perceptron, 128 of 784": Case(perceptron, lambda: (noise(128, 784), whole(10, 128))),
    "perceptron of one row": Case(tiny, lambda: (noise(1, 16), noise(1, 4)), "sgd"),
    "twenty layers of 64": Case(deep, lambda: (noise(64, 64), noise(64, 1))),
    "DLRM": Case(clicks, lambda: (noise(512, 13), whole(10000, 512, 8), noise(512, 1)), "sgd"),
    "graph, 10,000 edges": Case(
        graph, lambda: (noise(2000, 64), whole(2000, 10000), whole(2000, 10000), whole(7, 2000))
    ),
    "contrastive": Case(contrast, lambda: (noise(256, 128), noise(256, 128), whole(256, 256))),
    "DQN": Case(game, lambda: (noise(64, 8), whole(4, 64), noise(64), noise(64, 8))),
    "normalizing flow": Case(flow, lambda: (noise(256, 16),)),
}
