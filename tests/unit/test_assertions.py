"""`tf.debugging.assert_*`: the message shows the first element that breaks the rule."""

import numpy as np
import pytest

import samegrad as tf

debugging = tf.debugging
BROKEN = {
    "the second element": (
        lambda: debugging.assert_greater([3.0, -2.0], 0.0),
        r"\[assert_greater\] .*x = -2\.0, y = 0\.0 at index \(1,\), with 1 of 2 elements",
    ),
    "a row beside a column": (
        lambda: debugging.assert_equal([[3, 2], [5, 1]], [[3], [4]], message="sizes"),
        r"\[assert_equal\] sizes; .*x = 2, y = 3 at index \(0, 1\), with 3 of 4 elements",
    ),
    "bools": (
        lambda: debugging.assert_equal([True, False], [True, True]),
        r"\[assert_equal\] .*x = False, y = True at index \(1,\)",
    ),
    "a scalar": (
        lambda: debugging.assert_none_equal(1, 1),
        r"\[assert_none_equal\] .*x = 1, y = 1 at index \(\), with 1 of 1 elements",
    ),
    "a comparison with zero": (
        lambda: debugging.assert_non_negative([[1], [-7]]),
        r"\[assert_non_negative\] .*x = -7 at index \(1, 0\), with 1 of 2 elements",
    ),
    "a NaN": (
        lambda: debugging.assert_less([0.0, np.nan], 1.0),
        r"\[assert_less\] .*x = nan, y = 1\.0 at index \(1,\), with 1 of 2 elements",
    ),
    "a tolerance": (
        lambda: debugging.assert_near([3.0, 2.0], [3.0, 4.0], rtol=0.0, atol=0.5),
        r"\[assert_near\] .*x = 2\.0, y = 4\.0, tolerance = 0\.5 at index \(1,\)",
    ),
    "an infinity": (
        lambda: debugging.check_numerics([1.0, np.inf], "loss"),
        r"\[check_numerics\] loss; .*tensor = inf at index \(1,\), with 1 of 2 elements",
    ),
    "data of Assert": (
        lambda: debugging.Assert(False, ["x", tf.constant([3.0, 2.0]), tf.range(1000)]),
        r"\[Assert\] .*'x', \[3\., 2\.\], \[ 0, 1, 2, \.\.\., 997, 998, 999\]",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_message_shows_the_first_element_that_breaks_the_rule(case):
    call, message = BROKEN[case]
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_a_message_is_short_for_a_large_tensor():
    with pytest.raises(tf.errors.InvalidArgumentError, match="with 100000 of 100000") as raised:
        debugging.assert_positive(tf.zeros([10, 10000]))
    assert len(str(raised.value)) < 250


def test_empty_tensors_pass():
    debugging.assert_equal(tf.zeros([0, 3]), tf.ones([3]))
    debugging.assert_near(tf.zeros([0]), 1.0)


def test_a_step_names_the_assertion_that_it_breaks():
    checked = tf.function(lambda x: debugging.assert_positive(x))
    checked(tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[assert_positive\] .*last step"):
        checked(tf.constant([-1.0]))
