"""`import singa` in processes that a program starts anew, such as by multiprocessing's "spawn".

They take over the program's `sys.path`, but not its modules. So `python -m singa_rs.compat.singa`
puts the folder of this file on that path; it holds nothing else.
"""

import sys

from singa_rs.compat.singa import install

del sys.modules[__name__]  # so that it is not taken for another package `singa`
install()

import singa  # noqa: E402, F401 - importing this module gives the one that stands here now
