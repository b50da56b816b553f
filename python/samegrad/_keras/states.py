"""States that recurrent layers keep between batches, where replicas split a batch.

A layer keeps one row for each example of the global batch. A replica computes with the rows of its
own examples, and all rows are kept after it.
"""

from __future__ import annotations

from typing import Any

from keras.src import tree

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.losses import in_replica_of_several
from samegrad._tensor.dim import Dim
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor

_ops = _core.ops


def known_batch_size(sequences: Any) -> Any:
    """The number of examples that is compared with the one that a layer keeps states for.

    Args:
        sequences: [n, steps, ...].

    Returns:
        None on several replicas, of which each has a part of them, and where only shapes are asked
        for.
    """
    if in_replica_of_several() or convert_to_tensor(sequences)._symbolic:
        return None
    return sequences.shape[0]


def own_rows(states: Any, sequences: Any) -> Any:
    """The states of a replica's examples.

    Args:
        states: Variables [examples of all replicas, ...] in any structure.
        sequences: [n, steps, ...] of the replica.

    Returns:
        The variables where the number of examples is fixed, else tensors [n, ...].
    """
    if not isinstance(convert_to_tensor(sequences).shape[0], Dim):
        return states
    numbers = _ops.row_numbers(as_examples(sequences))
    return tree.map_structure(lambda state: tf.gather(convert_to_tensor(state), numbers), states)


def keep(variable: Any, rows: Any) -> None:
    """Make the last states of all replicas what the next batch begins with.

    Args:
        variable: [examples of all replicas, ...].
        rows: [n, ...] of the replica.
    """
    new = convert_to_tensor(rows)
    if isinstance(new.shape[0], Dim):
        new = tf.gather(_of_all(new), tf.range(variable.shape[0]))
    variable.assign(new)


def _of_all(rows: Tensor) -> Tensor:
    if not in_replica_of_several():
        return _context.note_one_replica("states of the batch", rows)
    context = _context.get_replica_context()
    assert context is not None
    joined: Tensor = context.all_gather(as_examples(rows), axis=0)
    return joined
