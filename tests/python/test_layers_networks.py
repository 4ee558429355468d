"""Layers: normalisation, containers, resizing, channels dropped, attention and transformers."""

import copy
import pickle

import numpy as np
import pytest
from cases import references as ref
from chains import chain, names
from layer_calls import call, close, normal
from singa_rs import ShapeError, autograd, layer, module, opt
from singa_rs.tensor import Tensor

# ---- normalisation -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [3, (3,), [2, 3], None])
def test_layer_norm(shape):
    x, one = normal(4, 2, 3), layer.LayerNorm(shape, eps=1e-3)
    over = (3,) if shape in (3, None) else tuple(shape)
    close(call(one, x), ref.layer_norm(x, np.ones(over), eps=1e-3))
    assert names(one) == ["scale", "bias"] and one.scale.shape == one.bias.shape == over
    one.set_params({"scale": normal(*over), "bias": normal(*over)})
    scale, bias = one.scale.to_numpy(), one.bias.to_numpy()
    close(call(one, x), ref.layer_norm(x, scale, bias, eps=1e-3))


def test_norms_without_parameters():
    x = normal(4, 2, 3)
    assert names(layer.LayerNorm(has_bias=False)) == []
    one = layer.LayerNorm(axis=1, has_bias=False)
    close(call(one, x), ref.layer_norm(x, np.ones((2, 3)), eps=1e-5))
    assert names(one) == ["scale"] and one.normalized_shape == (2, 3)
    for one in (layer.LayerNorm(affine=False), layer.RMSNorm(affine=False), layer.InstanceNorm()):
        call(one, x)
        assert names(one) == []
    call(layer.LayerNorm(3), normal(5, 3))
    with pytest.raises(ShapeError, match="LayerNorm"):
        later = layer.LayerNorm()
        call(later, x)
        call(later, normal(4, 2))


def test_rms_norm():
    x, one = normal(4, 2, 3), layer.RMSNorm(3, 1e-3)
    call(one, x)
    one.set_params({"scale": normal(3)})
    close(call(one, x), ref.rms_norm(x, one.scale.to_numpy(), eps=1e-3))


@pytest.mark.parametrize("groups", [1, 2, 6, None])
def test_group_and_instance_norm(groups):
    x = normal(2, 6, 3, 2)
    one = layer.InstanceNorm(6, affine=True) if groups is None else layer.GroupNorm(groups, 6)
    call(one, x)
    one.set_params({"scale": normal(6), "bias": normal(6)})
    scale, bias = one.scale.to_numpy(), one.bias.to_numpy()
    close(call(one, x), ref.group_norm(x, groups or 6, scale, bias, eps=1e-5))


@pytest.mark.parametrize(
    "make, shape", [("BatchNorm1d", (4, 3, 5)), ("BatchNorm3d", (2, 3, 2, 2, 3))]
)
def test_batch_norm_of_other_ranks(make, shape):
    x = normal(*shape) * 2 + 1
    axes, view = (0, *range(2, len(shape))), (3,) + (1,) * (len(shape) - 2)
    one = getattr(layer, make)(3, eps=1e-3)
    with autograd._training_scope(True):
        close(call(one, x), ref.batch_norm(x, np.ones(3), np.zeros(3), eps=1e-3), 1e-4)
    mean, n = 0.1 * x.mean(axes), x.size / 3
    var = 0.9 + 0.1 * x.var(axes) * n / (n - 1)
    close(one.running_mean.to_numpy(), mean)
    close(one.running_var.to_numpy(), var)
    close(call(one, x), (x - mean.reshape(view)) / np.sqrt(var.reshape(view) + 1e-3), 1e-4)


# ---- containers ----------------------------------------------------------------------------------


def test_identity():
    x = normal(2, 3)
    close(call(layer.Identity(3, bias=True), x), x)
    made = chain(lambda m: layer.Sequential(layer.Linear(2), layer.Identity()), x)
    assert names(made) == ["compute.0.W", "compute.0.b"]


def test_module_list():
    made = layer.ModuleList([layer.Linear(2), layer.ReLU()])
    first, last = made
    assert made[0] is first and made[-1] is last and len(made) == 2
    added = layer.Linear(3)
    assert made.append(added) is made and list(made) == [first, last, added]
    made.insert(0, last)
    assert list(made) == [last, first, last, added]
    made[1] = added
    del made[2:]
    assert list(made) == [last, added] and list(made[1:]) == [added]
    assert isinstance(made[:1], layer.ModuleList)
    assert made.extend([first]).pop(0) is last and list(made) == [added, first]
    with pytest.raises(IndexError):
        made[5]
    with pytest.raises(TypeError, match="ModuleList: got 3"):
        made.append(3)
    assert list(made) == [added, first]
    with pytest.raises(NotImplementedError, match="ModuleList"):
        made(Tensor((2, 3)))


def test_steps_of_a_sequence_may_be_replaced():
    first, last = layer.Linear(2), layer.Linear(3)
    made = layer.Sequential(first, autograd.relu, layer.Tanh())
    made[1], made[-1] = last, autograd.relu
    made[0] = made[0]
    assert list(made) == [first, last, autograd.relu]
    assert made(Tensor((1, 4))).shape == (1, 3)
    assert list(made.get_params()) == ["0.W", "0.b", "1.W", "1.b"]
    for index, step, error in ((0, 3, "got 3 for step '0'"), (slice(1), last, "integer")):
        with pytest.raises(TypeError, match=error):
            made[index] = step
    assert list(made) == [first, last, autograd.relu]


def test_module_dict():
    a, b = layer.Linear(2), layer.ReLU()
    made = layer.ModuleDict({"a": a})
    made["b"] = b
    assert list(made) == list(made.keys()) == ["a", "b"] and list(made.values()) == [a, b]
    assert made["a"] is a and made.a is a and "b" in made and "c" not in made and len(made) == 2
    made["a"] = b
    made.update({"c": a})
    assert list(made.items()) == [("a", b), ("b", b), ("c", a)]
    assert made.pop("b") is b and list(made) == ["a", "c"]
    del made["a"]
    assert list(made) == ["c"]
    with pytest.raises(KeyError):
        made["a"]
    with pytest.raises(TypeError, match="ModuleDict"):
        made[3] = a
    with pytest.raises(TypeError, match="ModuleDict: got 3 for 'x'"):
        made["x"] = 3


class Held(module.Module):
    """A model whose layers are in containers."""

    def __init__(self):
        super().__init__()
        self.blocks = layer.ModuleList([layer.Linear(4, activation="TANH") for _ in range(2)])
        self.heads = layer.ModuleDict({"mean": layer.Linear(2), "rest": layer.LayerNorm()})
        self.optimizer = opt.Adam(0.01)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.heads["rest"](self.heads["mean"](x))

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


PATHS = ["blocks.0", "blocks.1", "heads.mean"]
PATHS = [f"{path}.{name}" for path in PATHS for name in "Wb"]
PATHS += ["heads.rest.scale", "heads.rest.bias"]


def test_layers_in_containers_are_named_copied_and_restored(tmp_path):
    x, made = normal(3, 4), Held()
    made.eval()
    want = made(Tensor(data=x)).to_numpy()
    assert sorted(names(made)) == sorted(PATHS)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        np.testing.assert_array_equal(other(Tensor(data=x)).to_numpy(), want)
        assert sorted(names(other)) == sorted(PATHS)
        assert all(other.get_params()[p] is not made.get_params()[p] for p in PATHS)
    made.save_states(tmp_path / "states.zip")
    other = Held()
    other.eval()
    other(Tensor(data=x))
    other.load_states(tmp_path / "states.zip")
    np.testing.assert_array_equal(other(Tensor(data=x)).to_numpy(), want)


def trained(make, arrays, use_graph, steps=6):
    """Losses and parameters of a new model after some steps."""
    from singa_rs import device

    device.get_default_device().set_seed(3)
    model = make()
    given = [Tensor(data=a) for a in arrays]
    model.compile(given[:1], use_graph=use_graph)
    losses = [model.train_one_batch(*given).to_numpy().tobytes() for _ in range(steps)]
    if use_graph:
        assert model.graphs
    return losses, {k: t.to_numpy().tobytes() for k, t in model.get_states().items()}


def test_containers_in_recordings():
    arrays = normal(3, 4), normal(3, 2)
    assert trained(Held, arrays, True) == trained(Held, arrays, False)


def test_a_recording_notices_what_a_container_holds():
    model = Held()
    x = Tensor(data=normal(3, 4))
    model.eval()
    model.graph(True)
    for _ in range(4):
        model(x)
    model.blocks[1] = layer.Identity()
    want = model.heads["rest"](model.heads["mean"](model.blocks[0](x))).to_numpy()
    for _ in range(4):
        np.testing.assert_array_equal(model(x).to_numpy(), want)


# ---- sizes, channels, padding --------------------------------------------------------------------


def test_resizing():
    x = normal(2, 8, 3, 4)
    close(call(layer.Upsample(2), x), x.repeat(2, 2).repeat(2, 3))
    close(call(layer.Upsample((1, 3)), x), x.repeat(3, 3))
    close(call(layer.Upsample(2), x[0]), x[0].repeat(2, 2))
    close(call(layer.Upsample(1.5), x), x[:, :, [0, 0, 1, 2]][..., [0, 0, 1, 2, 2, 3]])
    close(call(layer.Upsample(size=(3, 1)), x), x[..., :1])
    close(call(layer.Upsample(size=(3, 1), mode="nearest-exact"), x), x[..., 2:3])
    line = np.arange(6, dtype=np.float32)[None, None]
    for mode, want in {"nearest": [0, 1, 3, 4], "nearest-exact": [0, 2, 3, 5]}.items():
        assert autograd.interpolate(line, 4, mode=mode).tolist() == [[want]]
        close(call(layer.Upsample(size=4, mode=mode), line), [[want]])
    ends = np.linspace(0, 3, 7)
    want = np.stack([[np.interp(ends, range(4), row) for row in one] for one in x[0]])
    made = call(layer.Upsample(size=7, mode="linear", coordinates="align_corners"), x[0])
    close(made, want)
    want = x.reshape(2, 2, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 8)
    close(call(layer.PixelShuffle(2), x), want)
    close(call(layer.PixelUnshuffle(2), want), x)


@pytest.mark.parametrize("size", [1, 2, 3, (3, 2), (None, 1), (5, 7)])
def test_adaptive_pools(size):
    x = normal(2, 3, 5, 4)
    both = size if isinstance(size, tuple) else (size, size)
    sizes = [n if m is None else m for m, n in zip(both, (5, 4), strict=True)]
    close(call(layer.AdaptiveAvgPool2d(size), x), ref.adaptive_pool(x, sizes, np.mean))
    close(call(layer.AdaptiveMaxPool2d(size), x), ref.adaptive_pool(x, sizes, np.max))
    line = x[0]
    close(call(layer.AdaptiveAvgPool1d(3), line), ref.adaptive_pool(line, (3,), np.mean))
    close(call(layer.AdaptiveMaxPool1d(2), line), ref.adaptive_pool(line, (2,), np.max))
    volume = normal(1, 2, 3, 4, 5)
    close(call(layer.AdaptiveAvgPool3d(2), volume), ref.adaptive_pool(volume, (2,) * 3, np.mean))
    close(call(layer.AdaptiveMaxPool3d(2), volume), ref.adaptive_pool(volume, (2,) * 3, np.max))


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_channels_are_dropped_whole(rank):
    x = np.ones((60, 50, *(2,) * (rank - 2)), np.float32)
    one = getattr(layer, f"Dropout{rank - 2}d")(0.2)
    close(call(one, x), x)
    with autograd._training_scope(True):
        y = call(one, x).reshape(60, 50, -1)
        again = call(one, x).reshape(60, 50, -1)
    assert (y == y[..., :1]).all() and set(np.unique(y)) == {np.float32(0), np.float32(1.25)}
    assert abs((y == 0).mean() - 0.2) < 0.03 and (y != again).any()


@pytest.mark.parametrize("row", [1, -2])
def test_the_row_of_padding_gets_no_gradient(row):
    indices = np.int32([[0, 1], [-2, 2], [1, 0]])
    table = layer.Embedding(3, 4, padding_idx=row)
    close(call(table, indices)[[0, 1, 2], [1, 0, 0]], np.zeros((3, 4)))
    with autograd._training_scope(True):
        y = table(Tensor(data=indices))
        found = autograd.gradients(y.sum())[table.W]
    close(found.to_numpy(), np.float32([[2] * 4, [0] * 4, [1] * 4]))
    close(y.to_numpy(), table.W.to_numpy()[indices])


# ---- attention -----------------------------------------------------------------------------------


def linear(one, x):
    y = x @ one.W.to_numpy()
    return y + one.b.to_numpy() if one.bias else y


def heads(x, width):
    return x.reshape(*x.shape[:2], -1, width).transpose(0, 2, 1, 3)


def attended(one, q, k, v, mask=None, is_causal=False):
    q, k, v = linear(one.q_proj, q), linear(one.k_proj, k), linear(one.v_proj, v)
    q, k, v = (heads(x, one.head_dim) for x in (q, k, v))
    if one.rotary:
        q, k = ref.rotary(q), ref.rotary(k)
    y = ref.attention(q, k, v, mask, is_causal).transpose(0, 2, 1, 3)
    return linear(one.out_proj, y.reshape(*y.shape[:2], -1))


@pytest.mark.parametrize(
    "options", [{}, {"kv_heads": 1}, {"kv_heads": 2, "rotary": True}, {"bias": False}]
)
def test_multi_head_attention(options):
    x, keys, values = normal(2, 3, 8), normal(2, 5, 6), normal(2, 5, 7)
    one = layer.MultiHeadAttention(8, 4, **options)
    close(call(one, x, keys, values), attended(one, x, keys, values))
    one = layer.MultiHeadAttention(8, 4, **options)
    causal = one(Tensor(data=x), is_causal=True).to_numpy()
    close(causal, attended(one, x, x, x, is_causal=True))
    mask = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
    masked = one(Tensor(data=x), mask=Tensor(data=mask)).to_numpy()
    close(masked, attended(one, x, x, x, mask))


def normed(one, x):
    bias = one.bias.to_numpy() if len(one.names) == 2 else 0
    return ref.layer_norm(x, one.scale.to_numpy(), bias, eps=one.eps)


def added(one, x, norm, part):
    return x + part(normed(norm, x)) if one.norm_first else normed(norm, x + part(x))


def fed(one, x):
    return linear(one.linear2, np.maximum(linear(one.linear1, x), 0))


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"bias": False}])
def test_transformer_layers(options):
    x, memory = normal(2, 3, 8), normal(2, 5, 6)
    one = layer.TransformerEncoderLayer(8, 2, 16, **options)
    got = one(Tensor(data=x), is_causal=True).to_numpy()
    attend = lambda one, causal: lambda x: attended(one.self_attn, x, x, x, None, causal)  # noqa: E731
    y = added(one, x, one.norm1, attend(one, True))
    close(got, added(one, y, one.norm2, lambda x: fed(one, x)), 1e-4)
    one = layer.TransformerDecoderLayer(8, 2, 16, **options)
    got = one(Tensor(data=x), Tensor(data=memory), is_causal=False).to_numpy()
    y = added(one, x, one.norm1, attend(one, False))
    y = added(one, y, one.norm2, lambda x: attended(one.cross_attn, x, memory, memory))
    close(got, added(one, y, one.norm3, lambda x: fed(one, x)), 1e-4)


def test_no_position_sees_a_later_one():
    x = normal(1, 6, 8)
    one = layer.TransformerEncoderLayer(8, 2, 16)
    whole = one(Tensor(data=x), is_causal=True).to_numpy()
    for n in range(1, 6):
        close(one(Tensor(data=x[:, :n]), is_causal=True).to_numpy(), whole[:, :n])


class Translator(module.Module):
    """Encoder and decoder, with dropout, trained with Adam."""

    def __init__(self):
        super().__init__()
        self.embed, self.positions = layer.Embedding(7, 8), layer.SinusoidalPositions(0.1)
        self.encoder = layer.TransformerEncoderLayer(8, 2, 16, activation="GELU")
        self.decoder = layer.TransformerDecoderLayer(8, 2, 16, norm_first=True)
        self.out, self.norm = layer.Linear(7), layer.RMSNorm()
        self.optimizer = opt.Adam(0.01)

    def forward(self, source, target):
        encoded = self.encoder(self.positions(self.embed(source)))
        made = self.decoder(self.positions(self.embed(target)), encoded)
        return self.out(self.norm(made))

    def train_one_batch(self, source, target):
        out = self.forward(source, target)
        rows = autograd.reshape(out, (-1, 7))
        loss = autograd.softmax_cross_entropy(rows, autograd.reshape(source, (-1,)))
        self.optimizer(loss)
        return loss


def test_transformers_in_recordings():
    source = np.random.default_rng(0).integers(0, 7, (4, 5)).astype(np.int32)
    arrays = source, np.roll(source, 1, axis=1)

    def run(use_graph):
        from singa_rs import device

        device.get_default_device().set_seed(3)
        model, given = Translator(), [Tensor(data=a) for a in arrays]
        model.graph(use_graph)
        losses = [model.train_one_batch(*given).to_numpy() for _ in range(40)]
        return losses, {k: t.to_numpy().tobytes() for k, t in model.get_states().items()}

    (replayed, states), (eager, others) = run(True), run(False)
    assert [x.tobytes() for x in replayed] == [x.tobytes() for x in eager] and states == others
    assert replayed[-1] < 0.7 * replayed[0]


def test_rotary_positions():
    x = normal(2, 3, 4)
    close(call(layer.RotaryPositions(100.0, True), x), ref.rotary(x, 0, 100.0, True))
    at = Tensor(data=np.int32([3, 4, 5]))
    close(layer.RotaryPositions()(Tensor(data=x), at).to_numpy(), ref.rotary(x, 3))
