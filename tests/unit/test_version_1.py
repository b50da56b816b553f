"""`compat.v1`: what it refuses, and where its names come from."""

import pytest

import samegrad as tf
from samegrad.compat._orders import MOVED, ORDERS

V1 = tf.compat.v1


def test_names_of_version_1_are_all_found():
    def found(path):
        home = V1
        for part in path.split("."):
            home = getattr(home, part)
        return home

    paths = [*MOVED, *(name for name in ORDERS if "." in name)]
    assert len(paths) > 150 and all(map(found, paths))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("placeholder", "there are no graphs to feed"),
        ("losses", r"version 1 has other arguments: use samegrad\.losses"),
        ("get_variable", "make a samegrad.Variable"),
        ("reduce_summ", "did you mean 'reduce_sum'"),
    ],
)
def test_names_that_are_missing_say_what_to_write(name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(V1, name)


def test_sessions_run_nothing():
    with pytest.raises(AttributeError, match="there are no graphs to feed"):
        V1.Session(config=V1.ConfigProto()).run(1)


def test_arguments_are_given_once():
    with pytest.raises(TypeError, match=r"^\[compat.v1.reduce_sum\].*got 'axis' twice"):
        V1.reduce_sum([1.0], axis=0, reduction_indices=0)
    with pytest.raises(TypeError, match="at most 6 arguments are taken: got 7"):
        V1.reduce_sum([1.0], 0, True, None, None, None, None)
    with pytest.raises(ValueError, match="one of keep_prob and rate must be given"):
        V1.nn.dropout([1.0])


def test_modules_of_version_1_are_imported():
    import samegrad.compat.v1 as old
    import samegrad.compat.v2 as new
    from samegrad.compat.v1 import nn

    assert (old, new, nn.relu) == (V1, tf, tf.nn.relu)
