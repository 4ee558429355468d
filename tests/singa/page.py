"""Writes the page on SINGA's examples: python tests/singa/page.py"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from programs import SCRIPTS

PAGE = Path(__file__).parents[2] / "docs" / "singa-examples.md"
INTRODUCTION = """\
# SINGA's examples

The programs of the example folder of [Apache SINGA](https://github.com/apache/singa), as of its
newest version (5.1 and what came after), and how each runs on this package's CPU. They are not
part of this repository; `make test-singa SINGA=folder` reads them from a checkout of SINGA, runs
each in a copy on generated data of the formats that it reads, for a few steps, and asserts that
the losses that it prints fall. It fetches nothing of theirs. By hand:

```sh
SINGA_RS_DEVICE=cpu python -m singa_rs.compat.singa train_cnn.py cnn mnist
```

`SINGA_RS_DEVICE=cpu` has `create_cuda_gpu` and its kin answer the CPU; without it they raise, and
any other value is refused. Programs of several processes ([distributed.md](distributed.md)) run as
two. Those that start processes themselves, for NCCL, need nothing else, as these exchange through
shared memory; those of MPI are started by its launcher, which `pip install singa-rs[mpi]` installs:

```sh
SINGA_RS_DEVICE=cpu python -m singa_rs.compat.singa train_multiprocess.py cnn mnist -w 2
SINGA_RS_DEVICE=cpu mpiexec -n 2 python -m singa_rs.compat.singa train_mpi.py cnn mnist -d half
```

The networks of ONNX's zoo are replaced by small ones with the same inputs and results. Programs
that print a tensor of one element with `'%f'` need a NumPy before 2.4, as they do with SINGA.

A few programs have to be changed: they are wrong themselves, or name what NumPy and Pillow
no longer have. The table says what to change. Others are not run: nothing is downloaded, and no
other services are started.
"""


def text() -> str:
    """The page."""
    runs = [one for one in SCRIPTS if not one.needs]
    changed = [one for one in runs if one.wrong]
    asking = [one for one in runs if one.cuda and not one.wrong]
    needs = Counter(re.split(":|,", one.needs)[0] for one in SCRIPTS if one.needs)
    lacks = "".join(f"- {count}: {need}\n" for need, count in needs.most_common())
    rows = "\n".join(f"| `{one.path}` | {_cell(one.outcome())} |" for one in SCRIPTS)
    return (
        f"{INTRODUCTION}\nOf {len(SCRIPTS)} programs {len(runs)} run: {len(runs) - len(changed)} "
        f"unchanged, {len(asking)} of them with `SINGA_RS_DEVICE=cpu`,\nand {len(changed)} after "
        f"the change that the table gives. What the others need:\n\n{lacks}\n"
        f"| program | runs |\n|---|---|\n{rows}\n"
    )


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
