"""Reading data sets: files of usual formats, and batches of them for training."""

from .. import elsewhere, errors
from .batching import batches
from .cifar import load_cifar10, load_cifar100, read_cifar
from .collating import collate
from .draws import rng, set_seed
from .folders import ImageFolder
from .idx import load_mnist, read_idx
from .image_batches import ImageBatchIter
from .loader import DataLoader
from .processes import WorkerError
from .subsets import Subset, random_split
from .tables import read_csv

__all__ = [
    "DataLoader",
    "ImageBatchIter",
    "ImageFolder",
    "Subset",
    "WorkerError",
    "batches",
    "collate",
    "load_cifar10",
    "load_cifar100",
    "load_mnist",
    "random_split",
    "read_cifar",
    "read_csv",
    "read_idx",
    "rng",
    "set_seed",
]

elsewhere.closed(globals())

errors.name_functions(globals(), {"rng"})
