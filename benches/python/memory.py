"""The peak memory that `Module.plan` states, beside what the process really takes.

    python benches/python/memory.py              # every model and optimizer, a process each
    python benches/python/memory.py lenet Adam   # one of them, in this process

A process is measured from before the model is made until after ten steps: VmHWM less its level
before. The libraries are loaded and the threads started by then.
"""

from __future__ import annotations

import subprocess
import sys

MIB = 1 << 20


def warm_up() -> None:
    """Has the libraries opened and their threads started."""
    import numpy as np
    from singa_rs import autograd, layer, tensor

    x = tensor.from_numpy(np.ones((8, 8, 16, 16), np.float32))
    layer.Conv2d(8, 3)(x)
    autograd.matmul(x, x)


def measure(model: str, optimizer: str, steps: int = 10) -> tuple[int, int]:
    """Bytes stated and taken."""
    import numpy as np
    import process
    from models import MODELS, OPTIMIZERS
    from singa_rs import device, tensor

    make, shape = MODELS[model]
    warm_up()
    device.get_default_device().trim()
    rng = np.random.default_rng(0)
    batches = [
        (
            rng.normal(size=shape).astype(np.float32),
            rng.integers(0, 10, shape[:1]).astype(np.int32),
        )
        for _ in range(2)
    ]
    before = process.start()
    net = make(OPTIMIZERS[optimizer]())
    x = tensor.Placeholder(shape)
    y = tensor.Placeholder(shape[:1], dtype=tensor.int32)
    net.compile([x], is_train=True, use_graph=True)
    stated = net.plan(x, y).peak_bytes
    for step in range(steps):
        for placeholder, array in zip((x, y), batches[step % 2], strict=True):
            placeholder.copy_from(array)
        result = net.train_one_batch(x, y)
    del result
    return stated, process.peak() - before


def main() -> None:
    if len(sys.argv) == 3:
        print(*measure(*sys.argv[1:]))
        return
    from models import MODELS, OPTIMIZERS

    print(f"{'model':12} {'optimizer':10} {'stated':>10} {'taken':>10} {'difference':>22}")
    for model in MODELS:
        for optimizer in OPTIMIZERS:
            command = [sys.executable, __file__, model, optimizer]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            stated, taken = map(int, run.stdout.split())
            off = f"{(taken - stated) / MIB:+.1f} MiB, {taken / stated - 1:+.1%}"
            sizes = f"{stated / MIB:6.1f} MiB {taken / MIB:6.1f} MiB"
            print(f"{model:12} {optimizer:10} {sizes} {off:>22}")


if __name__ == "__main__":
    main()
