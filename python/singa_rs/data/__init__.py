"""Reading data sets: files of usual formats, and batches of them for training."""

from .. import errors
from .batching import batches
from .collating import collate
from .draws import rng, set_seed
from .idx import load_mnist, read_idx
from .loader import DataLoader
from .processes import WorkerError
from .subsets import Subset, random_split

__all__ = [
    "DataLoader",
    "Subset",
    "WorkerError",
    "batches",
    "collate",
    "load_mnist",
    "random_split",
    "read_idx",
    "rng",
    "set_seed",
]

errors.name_functions(globals(), {"rng"})
