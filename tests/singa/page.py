"""Writes the page on SINGA's examples: python tests/singa/page.py"""

from __future__ import annotations

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
any other value is refused. The networks of ONNX's zoo are replaced by small ones with the same
inputs and results. Programs that print a tensor of one element with `'%f'` need a NumPy before
2.4, as they do with SINGA.

A few programs have to be changed: they are wrong themselves, or name what NumPy and Pillow
no longer have. The change is said. Others are not run: distributed training is not part of this
package yet, and what has to be downloaded is not.
"""


def text() -> str:
    """The page."""
    runs = [one for one in SCRIPTS if not one.needs]
    kinds = Counter(one.outcome().split(":")[0] for one in runs)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    needs = Counter(one.needs.split(":")[0] for one in SCRIPTS if one.needs)
    lacks = ", ".join(f"{count} {need}" for need, count in sorted(needs.items()))
    rows = "\n".join(f"| `{one.path}` | {_cell(one.outcome())} |" for one in SCRIPTS)
    return (
        f"{INTRODUCTION}\nOf {len(SCRIPTS)} programs {len(runs)} run: {counts}. "
        f"The others need: {lacks}.\n\n| program | runs |\n|---|---|\n{rows}\n"
    )


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
