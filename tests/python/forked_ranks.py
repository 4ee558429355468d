"""What the process from which quick ones are forked imports (see quick_start.py)."""

import os

import numpy  # noqa: F401
import pytest  # noqa: F401
import sklearn.datasets  # noqa: F401
from singa_rs.dist import children, launch
from singa_rs.module import Module  # noqa: F401

# Their parent is that process, not the one that calls `spawn`.
launch.end_with = lambda parent: children.end_with(os.getppid())
