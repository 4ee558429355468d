"""Models of sequences: recurrent, convolutional, and those that attend."""

from __future__ import annotations

from typing import Any

from parts import Add, Case, Function, Library, Loss, classified, mlp, noise, run, whole


def attending(lib: Library, add: Add, width: int, heads: int, drop: float) -> Function:
    """A block of a transformer, normalised before each part."""
    joint, back = add(lib.linear(width, 3 * width)), add(lib.linear(width, width))
    norm, other, dropped = map(
        add, (lib.layer_norm(width), lib.layer_norm(width), lib.dropout(drop))
    )
    wide = add(mlp(lib, (width, 4 * width, width), lib.gelu))

    def attend(x: Any) -> Any:
        n, steps = x.shape[0], x.shape[1]
        parts = joint(x).reshape((n, steps, 3, heads, width // heads)).permute(2, 0, 3, 1, 4)
        y = lib.attention(parts[0], parts[1], parts[2])
        return back(y.permute(0, 2, 1, 3).reshape((n, steps, width)))

    def block(x: Any) -> Any:
        x = x + dropped(attend(norm(x)))
        return x + dropped(wide(other(x)))

    return block


def encoder(lib: Library, add: Add) -> Loss:
    """A transformer that classifies sentences."""
    embed, head = add(lib.embedding(1000, 256)), add(lib.linear(256, 5))
    blocks = [attending(lib, add, 256, 8, 0.1) for _ in range(3)]
    return classified(lib, lambda x: head(run(blocks, embed(x)).mean(1)))


def vit(lib: Library, add: Add) -> Loss:
    """A transformer over the patches of an image and a token of its own."""
    cut, head = add(lib.conv2d(3, 192, 8, 8)), add(lib.linear(192, 10))
    token, places = add(lib.Values(noise(1, 1, 192))), add(lib.Values(noise(1, 65, 192)))
    blocks, norm = [attending(lib, add, 192, 3, 0.0) for _ in range(4)], add(lib.layer_norm(192))

    def forward(x: Any) -> Any:
        rows = cut(x).reshape((x.shape[0], 192, 64)).permute(0, 2, 1)
        rows = lib.cat([token.values.expand((x.shape[0], 1, 192)), rows], 1) + places.values
        return head(norm(run(blocks, rows))[:, 0])

    return classified(lib, forward)


def mixer(lib: Library, add: Add) -> Loss:
    """Perceptrons along places and along channels in turn."""

    def block() -> Function:
        norms = add(lib.layer_norm(128)), add(lib.layer_norm(128))
        along, across = (add(mlp(lib, (n, 2 * n, n), lib.gelu)) for n in (64, 128))

        def forward(x: Any) -> Any:
            x = x + along(norms[0](x).permute(0, 2, 1)).permute(0, 2, 1)
            return x + across(norms[1](x))

        return forward

    blocks, head = [block() for _ in range(4)], add(lib.linear(128, 10))
    return classified(lib, lambda x: head(run(blocks, x).mean(1)))


def gru(lib: Library, add: Add) -> Loss:
    """The last state of a sequence."""
    cells, head = add(lib.gru(64, 256)), add(lib.linear(256, 10))
    return classified(lib, lambda x: head(cells(x)[0][:, -1]))


def tagger(lib: Library, add: Add) -> Loss:
    """Both directions of an LSTM, and a class for each word."""
    embed, cells = add(lib.embedding(500, 64)), add(lib.two_lstm(64, 128))
    head = add(lib.linear(256, 10))
    return lambda x, y: lib.cross_entropy(
        head(cells(embed(x))[0]).reshape((-1, 10)), y.reshape((-1,))
    )


def cells(lib: Library, add: Add) -> Loss:
    """An LSTM's cell spelled out, in a loop of Python."""
    joint, head = add(lib.linear(32 + 64, 256)), add(lib.linear(64, 1))

    def loss(x: Any, y: Any) -> Any:
        state = lib.cat([x[:, 0] * 0.0, x[:, 0] * 0.0], 1)
        memory = state
        for step in range(x.shape[1]):
            gates = lib.chunk(joint(lib.cat([x[:, step], state], 1)), 4, 1)
            i, f, o = (lib.sigmoid(gates[k]) for k in (0, 1, 3))
            memory = f * memory + i * lib.tanh()(gates[2])
            state = o * lib.tanh()(memory)
        return lib.squares(head(state), y)

    return loss


def translator(lib: Library, add: Add) -> Loss:
    """Two recurrent networks, the second of which attends to the first."""
    embed, head = add(lib.embedding(200, 64)), add(lib.linear(256, 200))
    reader, writer = add(lib.gru(64, 128)), add(lib.gru(64, 128))

    def loss(x: Any, y: Any) -> Any:
        keys, states = reader(embed(x))[0], writer(embed(y))[0]
        weights = lib.softmax(states @ keys.permute(0, 2, 1), 2)
        scores = head(lib.cat([states, weights @ keys], 2))
        return lib.cross_entropy(scores.reshape((-1, 200)), y.reshape((-1,)))

    return loss


def wavenet(lib: Library, add: Add) -> Loss:
    """Gated convolutions whose dilation doubles."""

    def block(gap: int) -> Function:
        value, gate = (add(lib.conv1d(32, 32, 3, 1, gap, gap)) for _ in range(2))
        mix = add(lib.conv1d(32, 32, 1))
        return lambda x: x + mix(lib.tanh()(value(x)) * lib.sigmoid(gate(x)))

    first, blocks = add(lib.conv1d(1, 32, 1)), [block(1 << k) for k in range(6)]
    last = add(lib.conv1d(32, 1, 1))
    return lambda x, y: lib.squares(last(run(blocks, first(x))), y)


def sounds(lib: Library, add: Add) -> Loss:
    """Depthwise convolutions of sounds."""
    layers = []
    for a, b, stride in ((40, 64, 2), (64, 96, 2), (96, 128, 1)):
        layers += [lib.conv1d(a, a, 9, stride, 4, 1, a), lib.conv1d(a, b, 1), lib.batch_norm1d(b)]
        layers += [lib.prelu(), lib.dropout(0.1)]
    body, head = add(lib.chain(*layers)), add(lib.linear(256, 12))
    return classified(lib, lambda x: head(lib.cat([body(x).mean(2), body(x).amax(2)], 1)))


def sentences(lib: Library, add: Add) -> Loss:
    """The greatest of each convolution of a sentence."""
    embed, conv = add(lib.embedding(2000, 64)), add(lib.conv1d(64, 128, 5, 1, 2))
    head = add(lib.linear(128, 5))
    return classified(lib, lambda x: head(lib.relu()(conv(embed(x).permute(0, 2, 1))).amax(2)))


CASES = {
    "transformer, 16 by 64 of 256": Case(
        encoder, lambda: (whole(1000, 16, 64), whole(5, 16)), "adamw"
    ),
    "ViT, 16 of 64 x 64": Case(vit, lambda: (noise(16, 3, 64, 64), whole(10, 16)), "adamw"),
    "MLP-Mixer": Case(mixer, lambda: (noise(16, 64, 128), whole(10, 16)), "adamw"),
    "GRU, 32 by 50 of 256": Case(gru, lambda: (noise(32, 50, 64), whole(10, 32))),
    "LSTM in both directions": Case(tagger, lambda: (whole(500, 32, 40), whole(10, 32, 40))),
    "LSTM cells in a loop": Case(cells, lambda: (noise(32, 20, 32), noise(32, 1))),
    "translator": Case(translator, lambda: (whole(200, 16, 30), whole(200, 16, 30))),
    "WaveNet": Case(wavenet, lambda: (noise(8, 1, 2000), noise(8, 1, 2000))),
    "sounds": Case(sounds, lambda: (noise(16, 40, 400), whole(12, 16))),
    "sentences": Case(sentences, lambda: (whole(2000, 32, 50), whole(5, 32))),
}
