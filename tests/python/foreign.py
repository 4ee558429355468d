"""An array of another library, such as PyTorch: one that only DLPack makes something else of."""

import numpy as np


class Tensor:
    def __init__(self, array):
        self.array, self.shape = np.asarray(array), np.shape(array)

    def __getitem__(self, at):
        return Tensor(self.array[at])

    def __len__(self):
        return len(self.array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnAnotherDevice(Tensor):
    def __dlpack__(self, **options):
        raise BufferError("its own words")
