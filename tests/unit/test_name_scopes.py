"""Scopes of names: relative, absolute and outside of all, as in TensorFlow."""

import pytest

import samegrad as tf


def test_an_empty_name_scope_is_outside_of_all() -> None:
    with tf.name_scope("a") as a:
        with tf.name_scope("") as none:
            name = tf.Variable(1.0, name="v").name
            with tf.name_scope("b") as b:
                inner = tf.Variable(1.0, name="v").name
        again = tf.Variable(1.0, name="v").name
    assert (a, none, b) == ("a/", "", "b/")
    assert (name, inner, again) == ("v:0", "b/v:0", "a/v:0")


def test_a_name_scope_that_ends_with_a_slash_begins_anew() -> None:
    with tf.name_scope("x") as x, tf.name_scope("a/") as a, tf.name_scope(x) as back:
        assert (x, a, back) == ("x/", "a/", "x/")
        assert tf.Variable(1.0, name="v").name == "x/v:0"


@pytest.mark.parametrize("name", [None, 3, ["a"]])
def test_a_name_scope_has_a_string(name: object) -> None:
    with pytest.raises(ValueError, match="name must be a string"):
        tf.name_scope(name)  # type: ignore[arg-type]
