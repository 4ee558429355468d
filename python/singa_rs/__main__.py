"""`python -m singa_rs`: the command `singa-rs`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
