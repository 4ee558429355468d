"""Random numbers within a step: their distribution, and that replays draw what eager steps do."""

import numpy as np
import pytest
from recorded import CPU, replays
from singa_rs import autograd, module, opt
from singa_rs.tensor import from_numpy

P = np.array([0.1, 0.2, 0.0, 0.3, 0.4, 0.0], np.float32)


@pytest.fixture(autouse=True)
def training():
    with autograd._training_scope(True):
        yield


def test_classes_are_drawn_as_often_as_they_weigh():
    drawn = from_numpy(P * 7).multinomial(200_000, True).to_numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=6) / 200_000, P, atol=5e-3)
    first, second = from_numpy(np.tile(P, (50_000, 1))).multinomial(2).to_numpy().T
    assert (first != second).all()
    np.testing.assert_allclose(np.bincount(first, minlength=6) / 50_000, P, atol=1e-2)
    after = [sum(P[i] * P[j] / (1 - P[i]) for i in range(6) if i != j) for j in range(6)]
    np.testing.assert_allclose(np.bincount(second, minlength=6) / 50_000, after, atol=1e-2)


def test_classes_of_no_weight_are_never_drawn_again():
    for dtype in ("float64", "float32", "float16", "int32"):
        weights = np.zeros((3, 3000))
        weights[0, 7::5] = 1  # whose sums are inexact in float16
        weights[1, 2998] = 3
        weights[2, 100:200:99] = 2
        drawn = from_numpy(weights.astype(dtype)).multinomial(20_000, True).to_numpy()
        assert (np.take_along_axis(weights, drawn, 1) > 0).all()
        assert set(drawn[2].tolist()) == {100, 199}


def test_the_last_classes_are_drawn_where_sums_no_longer_grow():
    weights = np.r_[2.0**24, np.ones(5), 0].astype(np.float32)
    drawn = from_numpy(weights).multinomial(1000, True).to_numpy()
    assert drawn.max() < 6


def test_all_classes_without_replacement():
    drawn = from_numpy(np.ones((20, 6), np.float32)).multinomial(6).to_numpy()
    assert (np.sort(drawn) == np.arange(6)).all() and len({*map(tuple, drawn)}) > 5


def test_bernoulli():
    p = np.linspace(0, 1, 5).repeat(20_000).astype(np.float32)
    drawn = autograd.bernoulli(from_numpy(p)).to_numpy()
    assert set(drawn.tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.reshape(5, -1).mean(1), np.linspace(0, 1, 5), atol=1e-2)
    assert autograd.bernoulli(from_numpy(p).as_type("bfloat16")).dtype.name == "bfloat16"


def test_samples_of_classes_have_gradients():
    logits = np.log(np.tile([0.1, 0.3, 0.6], (60_000, 1))).astype(np.float32)
    for hard in (False, True):
        x = from_numpy(logits)
        x.stores_grad = True
        y = autograd.gumbel_softmax(x, 0.5, hard)
        np.testing.assert_allclose(y.to_numpy().sum(1), 1, rtol=1e-5)
        share = np.bincount(y.to_numpy().argmax(1)) / len(logits)
        np.testing.assert_allclose(share, [0.1, 0.3, 0.6], atol=1e-2)
        assert set(np.unique(y.to_numpy()).tolist()) == {0.0, 1.0} or not hard
        assert np.abs(autograd.gradients(y[:, 0].sum())[x].to_numpy()).max() > 0.1


def test_slopes_between_bounds():
    x = from_numpy(np.full(9999, -1.0, np.float32))
    x.stores_grad = True
    y = autograd.rrelu(x)
    slopes = -y.to_numpy()
    assert 1 / 8 <= slopes.min() < 0.13 and 0.328 < slopes.max() < 1 / 3
    np.testing.assert_allclose(slopes.mean(), (1 / 8 + 1 / 3) / 2, atol=5e-3)
    np.testing.assert_array_equal(autograd.gradients(y.sum())[x].to_numpy(), slopes)
    with autograd._training_scope(False):
        np.testing.assert_allclose(autograd.rrelu(x).to_numpy(), -(1 / 8 + 1 / 3) / 2)


class Sampling(module.Module):
    """A step that draws in every way."""

    def __init__(self):
        super().__init__()
        self.w = from_numpy(np.linspace(0.2, 1, 6, dtype=np.float32).reshape(2, 3))
        self.w.stores_grad = True
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return x * self.w

    def train_one_batch(self, x):
        y = self.forward(x)
        soft, slopes = autograd.gumbel_softmax(y), autograd.rrelu(-y)
        self.optimizer((soft * slopes).sum())
        places = y.detach().abs()
        drawn = places.multinomial(4, True), places.multinomial(2)
        return soft, slopes, *drawn, autograd.bernoulli(y.sigmoid())


def test_replays_draw_what_eager_steps_draw():
    runs = []
    for use_graph in (True, False):
        model, x = Sampling(), from_numpy(np.ones((2, 3), np.float32))
        model.compile([x], is_train=True, use_graph=use_graph)
        CPU.set_seed(5)
        made = [model.train_one_batch(x) for _ in range(6)]
        runs.append([[y.to_numpy() for y in ys] for ys in made])
        assert not use_graph or replays(model) > 0
    for of_graph, eager in zip(*runs, strict=True):
        for got, want in zip(of_graph, eager, strict=True):
            np.testing.assert_array_equal(got, want)
    assert len({ys[0].tobytes() for ys in runs[0]}) == 6
