"""`Module.plan(ranks=, network=)`: steps on several machines, calculated."""

import numpy as np
import pytest
from singa_rs import autograd, dist, layer, module, opt, tensor
from singa_rs.dist.forecast import Forecast, Gradient, Network, _end

ROWS = 32


class Net(module.Module):
    def __init__(self, optimizer):
        super().__init__()
        self.first, self.norm = layer.Linear(300), layer.BatchNorm1d()
        self.last, self.optimizer = layer.Linear(10), optimizer

    def forward(self, x):
        h = autograd.dropout(autograd.relu(self.norm(self.first(x))), 0.5)
        return self.last(h)

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss


def compiled(optimizer=None):
    rng = np.random.default_rng(0)
    x = tensor.from_numpy(rng.normal(size=(ROWS, 200)).astype(np.float32))
    y = tensor.from_numpy(rng.integers(0, 10, ROWS).astype(np.int32))
    net = Net(optimizer or opt.SGD(0.1, momentum=0.9))
    net.compile([x], is_train=True)
    return net, x, y


def rows(net, x, y, **given):
    return {row.scheme: row for row in net.plan(x, y, **given).forecast.rows}


@pytest.mark.parametrize(
    ("text", "bandwidth", "latency"),
    [
        ("100Gb, 5us", 12.5e9, 5e-6),
        ("1 GB/s, 0.5 ms", 1e9, 5e-4),
        ("10Gbps,20ns", 1.25e9, 2e-8),
        ("800kb, 0s", 1e5, 0.0),
    ],
)
def test_networks(text, bandwidth, latency):
    found = Network.of(text)
    assert found.bandwidth == pytest.approx(bandwidth)
    assert found.latency == pytest.approx(latency)


@pytest.mark.parametrize("text", ["", "fast", "100Gb", "0Gb, 5us", "1.2.3Gb, 5us", "5us, 100Gb"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match=r"plan: got network=.*want a bandwidth and a latency"):
        Network.of(text)


def test_wrong_arguments_are_refused():
    net, x, y = compiled()
    with pytest.raises(TypeError, match="plan: got one of ranks and network, want both or none"):
        net.plan(x, y, ranks=4)
    with pytest.raises(TypeError, match="plan: got tuple for network"):
        net.plan(x, y, ranks=4, network=(1e9, 1e-6))
    with pytest.raises(ValueError, match="plan: got ranks=0, want at least 1"):
        net.plan(x, y, ranks=0, network="1Gb, 5us")
    with pytest.raises(ValueError, match="plan: got ranks=int, want at most 1,000,000,000"):
        net.plan(x, y, ranks=10**400, network="1Gb, 5us")
    with pytest.raises(TypeError, match="plan: got float for ranks, want an int"):
        net.plan(x, y, ranks=2.0, network="1Gb, 5us")


def test_exchanges_wait_for_gradients_and_for_each_other():
    # One after another; the first begins when its gradient is final.
    assert _end(10.0, [2.0, 3.0], [1.0, 1.0]) == 10.0
    assert _end(10.0, [2.0, 3.0], [6.0, 6.0]) == 14.0
    assert _end(10.0, [9.0], [3.0]) == 12.0
    assert _end(10.0, [], []) == 10.0
    # From the ninth bucket on, the step waits for the one that is eight before.
    assert _end(10.0, [1.0] * 9, [2.0] * 9) == pytest.approx(max(10.0 + 2.0, 1.0 + 18.0))
    assert _end(100.0, [1.0] * 9, [2.0] * 9) == pytest.approx(102.0)


def test_a_sum_by_hand():
    """Two ranks each give half of a bucket, and get half of the sum: its bytes cross once."""
    one = Gradient((1000, 1000), 1_000_000, 4, 0.5)
    made = Forecast(2, Network(1e6, 0.25), 1.0, [one], (100, 10))
    dense, half, *_, shard = made.rows
    assert (dense.sent, half.sent, shard.sent) == (4_000_000, 2_000_000, 4_000_000)
    assert dense.exchanging == pytest.approx(2 * 0.25 + 4.0)
    assert dense.seconds == pytest.approx(0.5 + dense.exchanging)
    assert dense.overlap == pytest.approx(0.5 / dense.exchanging)
    # The optimizer's moments are divided; each rank keeps a share of the parameters beside.
    assert dense.memory - shard.memory == 10 - 10 // 2 - 4_000_000 // 2


def test_more_ranks_and_slower_networks_take_longer():
    net, x, y = compiled()
    fast = rows(net, x, y, ranks=2, network="100Gb, 1us")
    slow = rows(net, x, y, ranks=2, network="100Mb, 1us")
    many = rows(net, x, y, ranks=16, network="100Mb, 1us")
    for scheme in fast:
        assert fast[scheme].exchanging < slow[scheme].exchanging < many[scheme].exchanging
    assert slow["float16"].sent * 2 == slow["all gradients"].sent
    assert slow["sparse, 1%"].sent < slow["all gradients"].sent / 30


def test_one_rank_exchanges_nothing():
    net, x, y = compiled()
    plan = net.plan(x, y, ranks=1, network="1Gb, 1ms")
    assert {row.sent for row in plan.forecast.rows} == {0}
    assert {row.seconds for row in plan.forecast.rows} == {plan.forecast.alone}


def test_the_model_stays_as_it_is():
    net, x, y = compiled()
    net(x, y), net(x, y)
    random = net.device.get_rng_state().tolist()
    before = {name: tensor.to_numpy(t).tobytes() for name, t in net.get_states().items()}
    plan = net.plan(x, y, ranks=4, network="1Gb, 50us")
    assert before == {name: tensor.to_numpy(t).tobytes() for name, t in net.get_states().items()}
    assert net.device.get_rng_state().tolist() == random
    assert "on 4 ranks, 1 Gb/s, 50 us" in plan.summary()
    assert net.plan(x, y).forecast is None
    assert len(net.graphs) == 1


def test_a_step_without_updates_exchanges_nothing():
    net, x, _ = compiled()
    net.eval()
    for row in net.plan(x, ranks=8, network="1Gb, 50us").forecast.rows:
        assert (row.sent, row.overlap) == (0, 1.0)


DIST = {"all gradients": {}, "float16": {"compress": "float16"}, "shard=1": {"shard": 1}}


def _bytes(scheme):
    """Bytes that this rank sends in a step."""
    dist.init()
    net, x, y = compiled(opt.DistOpt(opt.SGD(0.1, momentum=0.9), **DIST[scheme]))
    for _ in range(3):
        net(x, y)
    before = dist.bytes_sent()
    net(x, y).item()
    return dist.bytes_sent() - before


@pytest.mark.usefixtures("quick_start")
@pytest.mark.parametrize("scheme", DIST)
def test_bytes_are_those_that_ranks_send(scheme):
    net, x, y = compiled()
    told = rows(net, x, y, ranks=2, network="1Gb, 5us")[scheme].sent
    sent = dist.spawn(_bytes, 2, (scheme,), timeout=120)
    # Shares are rounded up to 64 bytes.
    assert sent == pytest.approx([told, told], rel=0.01)
