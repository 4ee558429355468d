"""Files of states, made by hand."""

import io
import json
import zipfile

import numpy as np
from singa_rs import layer, module

NUMBERS = {"float32": 0, "float16": 1, "int32": 2}


class Small(module.Module):
    """A model whose file of states is short."""

    def __init__(self):
        super().__init__()
        self.first, self.last = layer.Linear(3), layer.Linear(2)

    def forward(self, x):
        return self.last(self.first(x))


ROW = np.ones((1, 4), np.float32)


def small():
    net = Small()
    net(ROW)
    return net


def values(net):
    return {name: t.to_numpy() for name, t in net.get_states().items()}


def same(a, b):
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def described(arrays, auxiliary=()):
    return {
        name: {
            "state_type": int(name in auxiliary),
            "shape": list(a.shape),
            "dtype": NUMBERS.get(a.dtype.name, a.dtype.name),
        }
        for name, a in arrays.items()
    }


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """The bytes of a zip file with these (name, bytes) members."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return made.getvalue()


def npy(array, **kwargs):
    made = io.BytesIO()
    np.lib.format.write_array(made, array, **kwargs)
    return made.getvalue()


def states(path, arrays, attributes=None, members=None, auxiliary=()):
    """Writes a file of states; `attributes` and `members` replace those derived from the arrays."""
    attributes = described(arrays, auxiliary) if attributes is None else attributes
    if not isinstance(attributes, (str, bytes)):
        attributes = json.dumps(attributes)
    members = [(f"{n}.npy", npy(a)) for n, a in arrays.items()] if members is None else members
    inner = members if isinstance(members, bytes) else zipped(members, zipfile.ZIP_STORED)
    path.write_bytes(zipped([("tensor_dict.npz", inner), ("states_attr.json", attributes)]))
