"""Reports statistics of one replica's examples that reach a variable of all replicas.

The engine finds them in the traced program (cpp/analysis/replica_dependence.cpp).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from samegrad import _core
from samegrad._autodiff.loss_normalization_check import weights_of_examples
from samegrad._autodiff.program_check import ProgramCheck
from samegrad.errors import ReplicaDependenceError, ReplicaDependenceWarning

_check = ProgramCheck("replica_dependence_check", ReplicaDependenceWarning, ReplicaDependenceError)
_STATISTICS = {
    "count": "the number of one replica's examples",
    "mean": "a mean over one replica's examples",
    "other": "{op} of one replica's examples",
}
_FIX = (
    "Fix: all_reduce sums and counts, or all_gather the examples, and compute it from those; or "
    "compute it for each example. Where it is meant to be local, call the step inside `with "
    'config.replica_dependence_check("off"):`.'
)


def set_replica_dependence_check(mode: str) -> None:
    """Set the reaction to a statistic of one replica's examples that reaches a variable.

    Examples are a maximum over the batch, a softmax or a sort along it, an n by n matrix of its
    examples, and a layer that subtracts its batch's mean. Each replica computes them from its own
    examples, so the result is not that of one device. Functions and `Strategy.run` are checked
    while they are traced, before anything runs. The check reports what reaches a variable that all
    replicas share: weights, a metric's state and so the loss of `fit`, moving averages. It does not
    report what is only printed or returned.

    User code may choose the following, which are never reported: sums over the examples, which the
    replicas all-reduce; random numbers; values that depend on `replica_id_in_sync_group`; values
    that were given per replica; variables with `synchronization=ON_READ`, which keep a value per
    replica; a statistic that `all_gather` collects from all replicas.
    `set_loss_normalization_check` reports a local mean as a loss. A local mean that is averaged
    over the replicas into another variable is right for equal per-replica batches, and gives a
    warning at most.

    Args:
        mode: "warn" (the default) warns with `samegrad.errors.ReplicaDependenceWarning` at the
            statistic's line; "error" raises `samegrad.errors.ReplicaDependenceError` before
            anything runs; "off" checks nothing.

    Raises:
        ValueError: The mode is another one.

    Example:
        >>> import samegrad as tf
        >>> tf.config.set_replica_dependence_check("error")
        >>> tf.config.get_replica_dependence_check()
        'error'
        >>> tf.config.set_replica_dependence_check("warn")
    """
    _check.set(mode)


def get_replica_dependence_check() -> str:
    """Return the mode: "warn", "error" or "off"."""
    return _check.mode


def replica_dependence_check(mode: str) -> _core.Guard:
    """Return a context manager, inside which the replica dependence check has another mode.

    It holds for what this thread traces inside: put the first call of a step into it.

    Args:
        mode: See `set_replica_dependence_check`.

    Returns:
        A context manager.

    Raises:
        ValueError: Another mode.

    Example:
        >>> import samegrad as tf
        >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
        >>> largest = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        >>> data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(4)
        >>> (batch,) = strategy.experimental_distribute_dataset(data)
        >>> with tf.config.replica_dependence_check("off"):
        ...     _ = strategy.run(lambda x: largest.assign(tf.reduce_max(x)), args=(batch,))
        >>> float(largest)
        3.0
    """
    return _check.changed(mode)


def check_replica_dependence(
    trace: _core.Trace, shares: Sequence[tuple[int, ...]], reported: Collection[str]
) -> None:
    """Report the statistics of a traced program.

    Args:
        trace: It is still open.
        shares: Of its arguments that count examples, how many each replica has.
        reported: Lines that the loss normalization check named.

    Raises:
        ReplicaDependenceError: There is one, and they are errors.
    """
    if _check.mode == "off" or trace.replicas == 1:
        return
    for statistic, op, line, averaged in trace.replica_dependences():
        if line in reported:
            continue
        what = _STATISTICS[statistic].format(op=op)
        rule = f"[replica dependence] {what} reaches a variable that all replicas share"
        if averaged:
            weights, equal = weights_of_examples(shares, trace.replicas)
            _check.report(line, f"{rule}: {weights}. {_FIX}", rule, harmless=equal)
        else:
            _check.report(line, f"{rule}: one device computes it from all examples. {_FIX}")
