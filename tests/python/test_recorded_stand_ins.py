"""Steps that would tell what stands for a number from the number do what they do eagerly."""

import concurrent.futures
import contextlib
import json
import random
import warnings

import numpy as np
import pytest
from numbers_used import Using, alike, replays, steps
from singa_rs import opt
from singa_rs.record.names import names_of
from singa_rs.record.stand_ins import tells_stand_ins

ERRORS = (ValueError, TypeError)
ONE, TWO = 1, 2


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


def exponential(n):
    return float(np.exp(n % 2))


def bare(x, n):
    try:
        return x * exponential(n)
    except:  # noqa: E722
        return x


def by_a_tuple(x, n):
    try:
        return x * exponential(n)
    except ERRORS:
        return x


def by_a_manager(x, n):
    with Quiet():
        x = x * exponential(n)
    return x


def by_contextlib(x, n):
    with contextlib.suppress(ValueError, TypeError):
        x = x * exponential(n)
    return x


def at_the_end(x, n):
    for _ in range(1):
        try:
            x = x * exponential(n)
        finally:
            break  # noqa: B012
    return x


def by_a_future(x, n):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        found = pool.submit(exponential, n)
    return x if found.exception() else x * found.result()


def as_json(x, n):
    return x * len(json.dumps({"n": n}, default=str))


def by_seed(x, n):
    return x * random.Random(n - 100).random()


def is_global(x, n):
    n = n % 3
    return x * 2 if n is ONE else x * 3 if n is TWO else x


with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)
    is_constant = eval("lambda x, n: x * 2 if n % 2 is 1 else x")


def is_another(x, n):
    return x * 2 if n is (n + 2) % 4 else x


TELLING = [
    bare, by_a_tuple, by_a_manager, by_contextlib, at_the_end, by_a_future, as_json, by_seed,
    is_global, is_constant, is_another,
]  # fmt: skip


@pytest.mark.parametrize("use", TELLING, ids=lambda use: use.__name__)
@pytest.mark.filterwarnings("ignore:.*runs eagerly from now on")
def test_steps_that_tell(use):
    alike(lambda: Using(use, lambda n: n + 1), steps(9))


def names_errors(x):
    try:
        return x["key"]
    except (KeyError, np.linalg.LinAlgError) as error:
        raise ValueError from error
    except OSError:
        return None
    finally:
        x.clear()


def test_errors_of_other_kinds_tell_nothing():
    assert names_of(names_errors.__code__).caught == {
        "KeyError", "np.linalg.LinAlgError", "OSError",
    }  # fmt: skip
    assert not tells_stand_ins(names_errors)


def test_managers_that_let_errors_through_tell_nothing():
    class Timer:
        def __exit__(self, *error):
            self.end = 1

    assert not tells_stand_ins(Timer.__exit__) and tells_stand_ins(Quiet.__exit__)


class Careful(opt.SGD):
    """Asks for a type where no step does."""

    def __init__(self, lr, momentum=0):
        super(Careful, self).__init__(lr, momentum)  # noqa: UP008
        self.kind = "number" if type(momentum) is float else "schedule"

    def step(self):
        if isinstance(self, Careful):
            super(Careful, self).step()  # noqa: UP008


def _careful():
    class Within(Careful):
        def __init__(self, lr):
            super(Within, self).__init__(lr, 0.9 if type(lr) is float else 0.5)  # noqa: UP008

        def step(self):
            super(Within, self).step()  # noqa: UP008

    return Within(0.1)


@pytest.mark.parametrize("make", [lambda: Careful(0.1, 0.9), _careful])
def test_a_constructor_that_no_step_calls_may_ask_for_types(make):
    class Counting(Using):
        def train_one_batch(self, x):
            self.n += 1
            loss = self.fc(x).mean()
            self.optimizer(loss)
            return loss

    def session():
        model = Counting(None, None)
        model.optimizer = make()
        return model

    assert replays(alike(session, steps(8))) > 4


def test_a_constructor_that_a_step_calls_may_not_ask_for_types():
    class Asking:
        def __init__(self, n):
            self.by = 2 if type(n) is int else 3

    class Making(Using):
        def train_one_batch(self, x):
            made = Asking(self.n)
            self.n += 1
            return self.fc(x).mean() * (made.by if isinstance(made, Asking) else 5)

    alike(lambda: Making(None, None), steps(8))
