"""Training steps of many kinds of models next to PyTorch's, in turns.

    python benches/python/variety             # in an environment with singa_rs and torch
    python benches/python/variety Net --threads 1    # those with `Net` in their name

Each model is written once, and built of the layers of either library; each contender lives in a
process of its own. Prints medians, their ratio, that of the best turns, and the peak memory of each
process.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1]))

from cases import CASES, made
from contenders import Contender, begin, compare

TURNS = 11


def main() -> None:
    """Prints the table."""
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("name", nargs="?", default="")
    add("--threads", type=int, default=2)
    args = parser.parse_args()
    begin("PyTorch", args.threads)
    ratios = []
    for name in (one for one in CASES if args.name in one):
        pair = tuple(Contender(made, one, name, args.threads) for one in ("ours", "torch"))
        ratios.append(compare(name, pair, TURNS, TURNS // 4))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean of {len(ratios)} ratios: {mean:.2f}")


if __name__ == "__main__":
    main()
