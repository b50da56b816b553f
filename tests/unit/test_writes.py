"""What a program writes is what plain Python would write, wherever the engine stores it."""

import numpy as np
import pytest
from write_programs import check

import samegrad as tf

PROGRAMS = 250  # of each kind below


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("mode", ["eager", "function", "strategy"])
def test_random_programs_write_what_plain_python_writes(mode, in_place):
    if mode == "eager" and not in_place:
        pytest.skip("eager code has no plan")
    for seed in range(PROGRAMS):
        check(seed, mode, in_place)


@pytest.mark.parametrize("in_place", [True, False])
def test_random_programs_write_variables_of_each_replica(in_place):
    for seed in range(PROGRAMS):
        check(10_000 + seed, "strategy", in_place, per_replica=True)


@pytest.mark.parametrize("seed", range(20_000, 20_040))
def test_random_programs_write_the_same_again_and_again(seed):
    check(seed, "function", True, calls=5)


def arrays(*values):
    return [tf.Variable(np.full((3, 5), value, np.float32)) for value in values]


def firsts(*variables):
    return [float(v.numpy().reshape(-1)[-1]) for v in variables]


def test_a_target_keeps_the_old_value_of_what_is_updated_afterwards():
    online, target = arrays(1, 9)

    @tf.function
    def step():
        target.assign(online)
        online.assign_add(tf.ones((3, 5)))

    for k in range(3):
        step()
        assert firsts(online, target) == [k + 2.0, k + 1.0]


def test_values_are_swapped_in_a_ring_of_three():
    a, b, c = arrays(1, 2, 3)

    @tf.function
    def turn():
        old = a.read_value(), b.read_value(), c.read_value()
        a.assign(old[1])
        b.assign(old[2])
        c.assign(old[0])

    turn()
    assert firsts(a, b, c) == [2.0, 3.0, 1.0]
    turn()
    assert firsts(a, b, c) == [3.0, 1.0, 2.0]


def test_a_moving_average_reads_what_the_update_has_not_overwritten():
    weight, average = arrays(4, 0)

    @tf.function
    def step():
        average.assign(average * 0.5 + weight * 0.5)
        weight.assign_sub(tf.ones((3, 5)))

    step()
    assert firsts(weight, average) == [3.0, 2.0]


def test_a_variable_that_is_assigned_keeps_nothing_of_the_callers_array():
    (v,) = arrays(0)
    given = np.ones((3, 5), np.float32)
    store = tf.function(lambda x: v.assign(x))
    for write in (store, v.assign):
        given[:] = 1
        write(given)
        given[:] = 7
        assert firsts(v) == [1.0]
    tf.function(lambda: v.assign_add(tf.ones((3, 5))))()
    assert (given == 7).all()


def test_arrays_that_numpy_looks_at_do_not_change_under_it():
    (v,) = arrays(1)
    add = tf.function(lambda: v.assign_add(tf.ones((3, 5))))
    views = [v.numpy()]
    for _ in range(3):
        add()
        views.append(v.numpy())
    assert [float(view[0, 0]) for view in views] == [1.0, 2.0, 3.0, 4.0]


def test_a_variable_may_be_the_argument_of_its_own_update():
    (v,) = arrays(1)

    @tf.function
    def step(x):
        v.assign_add(x)
        return x * 1.0

    for k in range(3):
        assert float(step(v.read_value())[0, 0]) == 2.0**k
    assert firsts(v) == [8.0]


def test_a_step_that_fails_late_changes_nothing():
    a, b = arrays(1, 2)

    @tf.function
    def step(i):
        a.assign_add(tf.ones((3, 5)))
        b.assign(tf.gather(b.read_value(), i))

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([0, 1, 9]))
    assert firsts(a, b) == [1.0, 2.0]
