"""Fails if a wheel in the given folder is larger than promised."""

import sys
from pathlib import Path

LIMIT = 5 * 10**6

wheels = sorted(Path(sys.argv[1]).glob("*.whl"))
for wheel in wheels:
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.2f} MB (at most {LIMIT / 1e6:.0f})")
    if size > LIMIT:
        sys.exit(1)
if not wheels:
    sys.exit("no wheel found")
