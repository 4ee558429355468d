"""Snapshots made with protocol buffers' own package, from SINGA's definition of its messages."""

import struct

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_KIND = descriptor_pb2.FieldDescriptorProto
#: By name: number, type, whether it is repeated, whether it is packed (SINGA src/proto/core.proto).
_FIELDS = {
    "shape": (1, _KIND.TYPE_UINT32, True, False),
    "data_type": (2, _KIND.TYPE_INT32, False, False),  # an enum, which has the same bytes
    "stride": (3, _KIND.TYPE_INT32, True, False),
    "float_data": (4, _KIND.TYPE_FLOAT, True, True),
    "double_data": (5, _KIND.TYPE_DOUBLE, True, True),
    "int_data": (6, _KIND.TYPE_INT32, True, True),
    "bytes_data": (7, _KIND.TYPE_BYTES, True, False),
}
DATA = {"float32": (0, "float_data"), "float64": (4, "double_data"), "int32": (2, "int_data")}


def message_class(packed=True):
    """SINGA's TensorProto, or one whose elements are fields of their own each."""
    file = descriptor_pb2.FileDescriptorProto(name="core.proto", package="singa", syntax="proto2")
    made = file.message_type.add(name="TensorProto")
    for name, (number, kind, is_repeated, is_packed) in _FIELDS.items():
        label = _KIND.LABEL_REPEATED if is_repeated else _KIND.LABEL_OPTIONAL
        one = made.field.add(name=name, number=number, type=kind, label=label)
        one.options.packed = is_packed and packed
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("singa.TensorProto"))


TensorProto = message_class()


def message(array, strides=None, proto=TensorProto):
    """The message of an array whose elements are in the order of memory."""
    number, field = DATA[array.dtype.name]
    made = proto(shape=array.shape, data_type=number)
    steps = [n // array.itemsize for n in array.strides] if strides is None else strides
    made.stride.extend(steps)
    getattr(made, field).extend(np.ravel(array, "K").tolist())
    return made.SerializeToString()


def record(key, value):
    """A record as SINGA's writer lays it out."""
    name = key.encode()
    head = b"sg" + bytes([len(name) > 0, 0])
    named = struct.pack("<Q", len(name)) + name if name else b""
    return head + named + struct.pack("<Q", len(value)) + value


def records(raw):
    """The keys and messages of a file, read as SINGA reads it."""
    at, found = 0, {}
    while at < len(raw):
        assert raw[at : at + 3] == b"sg\1"
        fields, at = [], at + 4
        for _ in range(2):
            (length,) = struct.unpack_from("<Q", raw, at)
            fields.append(raw[at + 8 : at + 8 + length])
            at += 8 + length
        found[fields[0].decode()] = TensorProto.FromString(fields[1])
    return found


def values_of(raw):
    """The arrays of a file, by the strides that SINGA reads."""
    return {name: _array(one) for name, one in records(raw).items()}


def _array(one):
    """The array of a message: element by element, at the places that the strides give."""
    dtype, field = next((d, f) for d, (n, f) in DATA.items() if n == one.data_type)
    flat, shape, strides = np.array(getattr(one, field), dtype), tuple(one.shape), list(one.stride)
    if strides == [1] and len(shape) == 2:  # SINGA 1.0's flag
        strides = [1, shape[0]]
    if len(strides) != len(shape) or strides == [0]:
        return flat.reshape(shape)
    made = np.empty(shape, dtype)
    for index in np.ndindex(shape):
        made[index] = flat[sum(i * s for i, s in zip(index, strides, strict=True))]
    return made
