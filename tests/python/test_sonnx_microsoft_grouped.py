"""onnxruntime's attention whose queries share heads of keys and values."""

import numpy as np
import pytest
from microsoft_models import agrees, theirs
from onnx_models import real
from singa_rs import sonnx

OP, B, S, N, SHARED, E = "GroupQueryAttention", 2, 5, 4, 2, 16
Q, K, V = real(B, S, N * E), real(B, S, SHARED * E), real(B, S, SHARED * E, seed=1)
TABLES = np.cos(real(16, E // 2)), np.sin(real(16, E // 2))
HEADS = {"num_heads": N, "kv_num_heads": SHARED}


def counted(total, rows=B):
    return np.full(rows, total - 1, np.int32), np.array(total, np.int32)


def past(length):
    return real(B, SHARED, length, E, seed=2), real(B, SHARED, length, E, seed=3)


@pytest.mark.parametrize(
    "rotary", [{}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}]
)
def test_of_rows(rotary):
    tables, settings = TABLES if rotary else (), {**HEADS, **rotary, "outputs": 3}
    agrees(OP, Q, K, V, *past(0), *counted(S), *tables, **settings)
    agrees(OP, Q, K, V, *past(0), *counted(S), *tables, scale=0.2, **settings)
    packed = np.concatenate([Q, K, V], 2)
    agrees(OP, packed, None, None, *past(0), *counted(S), *tables, **settings)
    following = [x[:, :1].copy() for x in (Q, K, V)]
    agrees(OP, *following, *past(3), *counted(4), *tables, **settings)
    single = [x[:1] for x in (Q, K, V, *past(3))]
    agrees(OP, *single, *counted(S + 3, 1), *tables, **settings)
    agrees(OP, Q, K, V, None, None, *counted(S), *tables, **settings)


def test_what_is_refused():
    def refused(match, *xs, **settings):
        with pytest.raises(NotImplementedError, match=match):
            given = [x for x in xs if x is not None]
            sonnx.prepare(theirs(OP, xs, outputs=3, **HEADS, **settings)).run(given)

    given = Q, K, V, *past(0), *counted(S)
    refused("got local_window_size 3, want -1", *given, local_window_size=3)
    refused("got softcap 5.0, want 0.0", *given, softcap=5.0)
    refused("got smooth_softmax 1", *given, smooth_softmax=1)
    refused("got attention_bias a value", *given, *TABLES, None, real(1, 1, S, S))
    refused("want rows without padding", *given[:5], np.array([2, 4], np.int32), given[6])
    refused("want rows without padding", Q, K, V, *past(9), *given[5:])


def test_padding_is_refused_after_runs_without():
    given = Q, K, V, *past(0), *counted(S)
    net = sonnx.prepare(theirs(OP, given, outputs=3, **HEADS))
    first, *others = (net.run(given)[0] for _ in range(4))
    assert all(np.array_equal(first, one) for one in others)
    with pytest.raises(NotImplementedError, match="want rows without padding"):
        net.run((*given[:5], np.array([2, 4], np.int32), given[6]))


def test_half_of_a_past_is_refused():
    given = Q, K, V, past(3)[0], None, *counted(S + 3)
    net = sonnx.prepare(theirs(OP, given, outputs=3, **HEADS))
    with pytest.raises(ValueError, match="got one of past_key and past_value, want both or none"):
        net.run([x for x in given if x is not None])
