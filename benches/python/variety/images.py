"""Models of images."""

from __future__ import annotations

from typing import Any

import numpy as np
from parts import Add, Case, Function, Library, Loss, classified, noise, run, whole


def vgg(lib: Library, add: Add) -> Loss:
    """Convolutions in pairs, and pooling."""
    layers, channels = [], 3
    for width in (32, 64, 128):
        for before in (channels, width):
            layers += [lib.conv2d(before, width, 3, 1, 1), lib.batch_norm2d(width), lib.relu()]
        layers.append(lib.max_pool2d(2))
        channels = width
    tail = (lib.linear(2048, 256), lib.relu(), lib.dropout(0.5), lib.linear(256, 10))
    return classified(lib, add(lib.chain(*layers, lib.flatten(), *tail)))


def mobile(lib: Library, add: Add) -> Loss:
    """Depthwise convolutions between those of single places."""
    layers, channels = [lib.conv2d(3, 16, 3, 2, 1), lib.batch_norm2d(16), lib.hardswish()], 16
    for width, stride in ((16, 1), (24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1)):
        wide = 4 * channels
        layers += [lib.conv2d(channels, wide, 1), lib.batch_norm2d(wide), lib.relu6()]
        layers += [
            lib.conv2d(wide, wide, 3, stride, 1, 1, wide),
            lib.batch_norm2d(wide),
            lib.relu6(),
        ]
        layers += [lib.conv2d(wide, width, 1), lib.batch_norm2d(width)]
        channels = width
    body, head = add(lib.chain(*layers)), add(lib.linear(80, 10))
    return classified(lib, lambda x: head(body(x).mean((2, 3))))


def convnext(lib: Library, add: Add) -> Loss:
    """Large depthwise windows, and perceptrons of each place."""

    def block(channels: int) -> Function:
        spread = add(lib.conv2d(channels, channels, 7, 1, 3, 1, channels))
        grown = lib.linear(channels, 4 * channels), lib.gelu(), lib.linear(4 * channels, channels)
        mix = add(lib.chain(lib.layer_norm(channels), *grown))
        return lambda x: x + mix(spread(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    first, second = add(lib.conv2d(3, 48, 4, 4)), add(lib.conv2d(48, 96, 2, 2))
    low, high, head = [block(48), block(48)], [block(96), block(96)], add(lib.linear(96, 10))
    return classified(lib, lambda x: head(run(high, second(run(low, first(x)))).mean((2, 3))))


def unet(lib: Library, add: Add) -> Loss:
    """Group norm, a transposed convolution and interpolation on the way up."""

    def block(inputs: int, width: int) -> Any:
        half = [lib.group_norm(4, width), lib.silu(), lib.conv2d(width, width, 3, 1, 1)]
        tail = [lib.group_norm(4, width), lib.silu()]
        return add(lib.chain(lib.conv2d(inputs, width, 3, 1, 1), *half, *tail))

    high, middle, low, pool = block(3, 16), block(16, 32), block(32, 64), lib.max_pool2d(2)
    grow, below = add(lib.conv_transpose2d(64, 32, 2, 2)), block(64, 32)
    enlarge, last, head = lib.upsample(2), block(48, 16), add(lib.conv2d(16, 1, 1))

    def loss(x: Any, y: Any) -> Any:
        top = high(x)
        center = middle(pool(top))
        up = below(lib.cat([grow(low(pool(center))), center], 1))
        return lib.binary(head(last(lib.cat([enlarge(up), top], 1))), y)

    return loss


def autoencoder(lib: Library, add: Add) -> Loss:
    """A variational autoencoder of convolutions."""
    down = [lib.conv2d(1, 32, 3, 2, 1), lib.relu(), lib.conv2d(32, 64, 3, 2, 1), lib.relu()]
    read, rebuild = add(lib.chain(*down, lib.flatten())), add(lib.linear(32, 4096))
    mean, spread = add(lib.linear(4096, 32)), add(lib.linear(4096, 32))
    up = [lib.conv_transpose2d(64, 32, 4, 2, 1), lib.relu(), lib.conv_transpose2d(32, 1, 4, 2, 1)]
    draw = add(lib.chain(*up))

    def loss(x: Any) -> Any:
        m, v = mean(read(x)), spread(read(x))
        code = m + lib.normal_like(m) * lib.exp(v * 0.5)
        images = draw(lib.relu()(rebuild(code)).reshape((-1, 64, 8, 8)))
        return lib.binary(images, lib.sigmoid(x)) + (m * m + lib.exp(v) - v).mean() * 0.5

    return loss


def adversaries(lib: Library, add: Add) -> Loss:
    """A generator and a discriminator."""
    grown, layers = ((64, 128, 1, 0), (128, 64, 2, 1), (64, 32, 2, 1)), []
    for a, b, stride, padding in grown:
        up = lib.conv_transpose2d(a, b, 4, stride, padding)
        layers += [up, lib.batch_norm2d(b), lib.relu()]
    make = add(lib.chain(*layers, lib.conv_transpose2d(32, 3, 4, 2, 1), lib.tanh()))
    seen = [lib.conv2d(3, 32, 4, 2, 1), lib.leaky()]
    for a, b in ((32, 64), (64, 128)):
        seen += [lib.conv2d(a, b, 4, 2, 1), lib.batch_norm2d(b), lib.leaky()]
    judge = add(lib.chain(*seen, lib.conv2d(128, 1, 4)))
    return lambda z, x: lib.softplus(judge(x)).mean() + lib.softplus(judge(make(z)) * -1.0).mean()


def styles(lib: Library, add: Add) -> Loss:
    """Instance norm, and padding by reflection."""
    layers = [lib.reflect(3), lib.conv2d(3, 32, 7), lib.instance_norm(32), lib.relu()]
    layers += [lib.conv2d(32, 64, 3, 2, 1), lib.instance_norm(64), lib.relu(), lib.reflect(1)]
    layers += [lib.conv2d(64, 64, 3), lib.instance_norm(64), lib.relu()]
    layers += [lib.conv_transpose2d(64, 32, 4, 2, 1), lib.instance_norm(32), lib.relu()]
    net = add(lib.chain(*layers, lib.reflect(3), lib.conv2d(32, 3, 7), lib.tanh()))
    return lambda x, y: lib.absolute(net(x), y)


def volumes(lib: Library, add: Add) -> Loss:
    """Convolutions of three dimensions."""
    layers = [lib.conv3d(1, 16, 3, 1, 1), lib.relu(), lib.max_pool3d(2)]
    layers += [lib.conv3d(16, 32, 3, 1, 1), lib.relu(), lib.max_pool3d(2)]
    body, head = add(lib.chain(*layers)), add(lib.linear(32, 5))
    return classified(lib, lambda x: head(body(x).mean((2, 3, 4))))


def triplets(lib: Library, add: Add) -> Loss:
    """Images that are to be near each other, and others."""
    layers = [lib.conv2d(3, 16, 5, 2, 2), lib.elu(), lib.avg_pool2d(2), lib.conv2d(16, 32, 3, 1, 1)]
    layers += [lib.elu(), lib.avg_pool2d(2), lib.flatten(), lib.linear(512, 32)]
    net = add(lib.chain(*layers))
    return lambda a, b, c: lib.triplet(net(a), net(b), net(c))


def _masks() -> tuple[np.ndarray, ...]:
    return noise(4, 3, 64, 64), (noise(4, 1, 64, 64) > 0).astype(np.float32)


CASES = {
    "VGG, 64 of 32 x 32": Case(vgg, lambda: (noise(64, 3, 32, 32), whole(10, 64)), "sgd"),
    "MobileNet, 16 of 96 x 96": Case(mobile, lambda: (noise(16, 3, 96, 96), whole(10, 16)), "sgd"),
    "ConvNeXt, 8 of 64 x 64": Case(convnext, lambda: (noise(8, 3, 64, 64), whole(10, 8)), "adamw"),
    "U-Net, 4 of 64 x 64": Case(unet, _masks),
    "variational autoencoder": Case(autoencoder, lambda: (noise(32, 1, 32, 32),)),
    "DCGAN": Case(adversaries, lambda: (noise(32, 64, 1, 1), noise(32, 3, 32, 32))),
    "style transfer": Case(styles, lambda: (noise(2, 3, 64, 64), noise(2, 3, 64, 64))),
    "volumes": Case(volumes, lambda: (noise(4, 1, 16, 32, 32), whole(5, 4))),
    "triplets": Case(triplets, lambda: tuple(k * noise(64, 3, 32, 32) for k in (1, 0.5, 2))),
}
