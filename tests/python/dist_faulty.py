"""A rank that trains until one of all fails: `python dist_faulty.py SEED KIND LOST STEP`."""

import os
import sys
import time

import dist_models
from singa_rs import autograd, dist, opt, tensor
from singa_rs.dist import group
from singa_rs.dist.children import end_with

#: Seconds that ranks get to come, and that exchanges wait afterwards.
COMING, TIMEOUT = 60.0, 4.0
OPTIONS = ({}, {"shard": 1}, {"shard": 2}, {"compress": "float16"}, {"compress": "low_rank"})


class Net(dist_models.MLP):
    """A net that may do something else from some step on."""

    def forward(self, x):
        h = self.first(x)
        h = autograd.tanh(h) if self.given["is_other"] else self.relu(h)
        return self.second(h)


def say(*words):
    """A line in one piece, which a launcher may pass on between those of others."""
    os.write(1, f"\n{' '.join(map(str, (dist.rank(), *words)))}\n".encode())


def train(seed, kind, lost, last):
    """Steps without end; a failing rank fails before step `last`."""
    model = Net(is_other=False)
    model.optimizer = opt.DistOpt(opt.Adam(0.01), **OPTIONS[seed % len(OPTIONS)])
    batches = [tuple(map(tensor.from_numpy, pair)) for pair in dist_models.batches(8)]
    model.compile([batches[0][0]], is_train=True, use_graph=seed % 4 > 0 or kind == "graph")
    dist.barrier()
    dist.set_timeout(TIMEOUT)
    say("there", os.getpid())
    dist.barrier()  # none fails before all have said it
    step = 0
    while True:
        if (step, dist.rank()) == (last, lost) and kind in ("raise", "graph"):
            say("fails")
            if kind == "raise":
                raise ValueError("boom")
            model.given = {"is_other": True}
        model(*batches[step % len(batches)])
        step += 1


def main(seed, kind, lost, last):
    end_with(os.getppid())
    dist.init(timeout=COMING)
    dist.set_seed(1)
    try:
        train(int(seed), kind, int(lost), int(last))
    except dist.DistError as error:
        say("heard", str(error).replace("\n", " "))
        if group.current().uses_mpi:  # which ends all ranks when the first of them leaves now
            time.sleep(COMING)


if __name__ == "__main__":
    main(*sys.argv[1:])
