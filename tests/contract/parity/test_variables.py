"""Variables: how what the replicas assign becomes one value."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

from .values import local, mirrored, per_replica

Aggregation, Synchronization = tf.VariableAggregation, tf.VariableSynchronization


def created(strategy, value=1.0, **options):
    with strategy.scope():
        return tf.Variable(value, **options)


def on_read(strategy, value=1.0, aggregation=Aggregation.SUM):
    return created(
        strategy, value, aggregation=aggregation, synchronization=Synchronization.ON_READ
    )


def rid():
    context = tf.distribute.get_replica_context()
    return tf.cast(tf.convert_to_tensor(context.replica_id_in_sync_group), "float32")


@pytest.mark.parity("variables: MEAN assign(rid) .5, assign_add(rid) 1.5")
def test_mean_takes_the_mean_of_what_is_assigned() -> None:
    strategy = mirrored()
    v = created(strategy, aggregation=Aggregation.MEAN)
    strategy.run(lambda: v.assign_add(rid()))
    assert float(v) == 1.5
    strategy.run(lambda: v.assign(rid()))
    assert float(v) == 0.5


@pytest.mark.parity("variables: SUM assign(tensor 5.) 10, assign(Python 5.) ValueError")
def test_sum_adds_what_is_assigned() -> None:
    strategy = mirrored()
    v = created(strategy, aggregation=Aggregation.SUM)
    strategy.run(lambda: v.assign(tf.constant(5.0)))
    assert float(v) == 10.0
    with pytest.raises(ValueError, match="tensor"):
        strategy.run(lambda: v.assign(5.0))


@pytest.mark.parity("variables: ONLY_FIRST_REPLICA assign_add(1) adds 1 once")
def test_the_first_replica_alone_counts() -> None:
    strategy = mirrored()
    v = created(strategy, aggregation=Aggregation.ONLY_FIRST_REPLICA)
    strategy.run(lambda: v.assign_add(1.0))
    assert float(v) == 2.0
    strategy.run(lambda: v.assign(rid() + 7.0))
    assert float(v) == 7.0


@pytest.mark.parity("variables: MEAN of an int dtype is refused at creation")
def test_the_mean_of_whole_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="MEAN"):
        created(mirrored(), 1, aggregation=Aggregation.MEAN)


@pytest.mark.parity("variables: NONE with different values on the replicas is refused")
def test_copies_cannot_diverge() -> None:
    strategy = mirrored()
    v = created(strategy)
    with pytest.raises(RuntimeError, match="all_reduce"):
        strategy.run(lambda: v.assign(rid()))
    strategy.run(lambda: v.assign(tf.constant(4.0)))
    assert float(v) == 4.0


@pytest.mark.parity("variables: ON_READ SUM reads 2 from 1, stores 6 as 3|3, no assign_add")
def test_a_variable_summed_when_it_is_read() -> None:
    strategy = mirrored()
    v = on_read(strategy)
    with strategy.scope():
        assert float(v.read_value()) == 2.0 or float(v.read_value()) == 1.0
        v.assign(6.0)
        with pytest.raises(ValueError, match="run"):
            v.assign_add(1.0)
    assert local(strategy, strategy.run(lambda: v.read_value())) == [3.0, 3.0]
    assert float(v) == 6.0


@pytest.mark.parity("variables: ON_READ MEAN reads the mean, ONLY_FIRST_REPLICA replica 0's")
@pytest.mark.parametrize(
    ("aggregation", "expected"), [(Aggregation.MEAN, 3.5), (Aggregation.ONLY_FIRST_REPLICA, 3.0)]
)
def test_other_ways_to_read(aggregation, expected) -> None:
    strategy = mirrored()
    v = on_read(strategy, aggregation=aggregation)
    strategy.run(lambda: v.assign(rid() + 3.0))
    assert float(v) == expected


@pytest.mark.parity("variables: ON_READ is not trainable by default")
def test_a_variable_read_as_a_whole_is_not_trained() -> None:
    assert not on_read(mirrored()).trainable
    assert created(mirrored()).trainable


@pytest.mark.parity("variables: made outside the scope, changed in run: N plain updates")
def test_a_variable_of_no_strategy_is_changed_by_each_replica() -> None:
    v = tf.Variable(1.0)
    mirrored().run(lambda: v.assign_add(2.0))
    assert float(v) == 5.0


@pytest.mark.parity("variables: made inside run, equal on all")
def test_a_variable_made_inside_run_is_one_for_all() -> None:
    strategy = mirrored()
    made = []

    def fn():
        if not made:
            made.append(tf.Variable(lambda: tf.random.normal((3,))))
        return made[0].read_value()

    parts = local(strategy, strategy.run(fn))
    assert all(part == parts[0] for part in parts)

    def of_a_draw():
        if len(made) < 2:
            made.append(tf.Variable(tf.random.normal((3,)) + rid()))
        return made[1].read_value()

    first, second = (local(strategy, strategy.run(of_a_draw)) for _ in range(2))
    assert len(made) == 2
    assert all(part == first[0] for part in first + second)


@pytest.mark.parity("variables: a checkpoint of ON_READ SUM 4|3 holds 7, 7 on 4 replicas")
@pytest.mark.parametrize(
    ("aggregation", "expected"), [(Aggregation.SUM, 7.0), (Aggregation.MEAN, 3.5)]
)
def test_the_whole_is_stored_and_restored_on_any_replicas(tmp_path, aggregation, expected) -> None:
    strategy = mirrored()
    v = on_read(strategy, 0.0, aggregation)
    strategy.run(lambda: v.assign(4.0 - rid()))
    path = tf.train.Checkpoint(v=v).save(tmp_path / "ckpt")
    for replicas in (1, 4):
        other = on_read(mirrored(replicas), 0.0, aggregation)
        tf.train.Checkpoint(v=other).restore(path)
        assert float(other) == expected


@pytest.mark.parity("variables: mirrored 5.0 restores with and without a strategy")
def test_a_mirrored_variable_restores_anywhere(tmp_path) -> None:
    path = tf.train.Checkpoint(v=created(mirrored(), 5.0)).save(tmp_path / "ckpt")
    for v in (created(mirrored(4), 0.0), tf.Variable(0.0)):
        tf.train.Checkpoint(v=v).restore(path)
        assert float(v) == 5.0


@pytest.mark.parity("variables: per-replica arguments in assignments")
def test_assigning_what_each_replica_has() -> None:
    strategy = mirrored()
    v = created(strategy, np.zeros(2), aggregation=Aggregation.SUM)
    strategy.run(v.assign_add, args=(per_replica(strategy, [1.0, 2.0], [10.0, 20.0]),))
    assert v.numpy().tolist() == [11.0, 22.0]
