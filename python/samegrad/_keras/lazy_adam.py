"""Adam for tables of which a step names a few rows."""

from __future__ import annotations

from typing import Any

from keras.src.optimizers.adam import Adam
from keras.src.saving import register_keras_serializable

from samegrad import _core
from samegrad._keras.conversion import convert_to_tensor

__all__ = ["LazyAdam"]

_ops = _core.ops


@register_keras_serializable("samegrad")
class LazyAdam(Adam):  # type: ignore[misc]
    """Adam that leaves alone the rows of a variable that have no gradient.

    A row is an element of axis 0 of a variable with two axes or more, as of a table of embeddings.
    Where the gradient of a row, summed over the replicas, is all zeros, the row and its moments
    stay as they are: Adam would let the moments decay and go on moving the row. So a step costs
    what the rows that examples name cost, not what the table costs (as `LazyAdam` of TensorFlow
    Addons and `SparseAdam` of PyTorch; a row that is named but whose gradient is all zeros stays
    here, and moves there). t counts all steps. Variables with fewer axes are updated as by Adam.

    Args: those of Adam. `weight_decay` and `use_ema` need every row: with one, a step costs what
    the table costs. Norms of gradients (`clipnorm`, `global_clipnorm`) do not.

    Example:
        >>> import samegrad as tf
        >>> table, optimizer = tf.Variable([[1.0], [2.0], [3.0]]), LazyAdam(0.5)
        >>> for row in (0, 1):
        ...     with tf.GradientTape() as tape:
        ...         loss = tf.reduce_sum(tf.gather(table, [row]))
        ...     _ = optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        >>> print(table.numpy().ravel().round(2))  # Adam would have moved row 0 again
        [0.5  1.63 3.  ]
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable.

        Args:
            gradient: Sum of its gradients over the replicas: tensor of the variable's shape, or
                `IndexedSlices`.
            variable: Variable to update.
            learning_rate: Learning rate, a scalar.
        """
        place = self._get_variable_index(variable)
        slots = [self._momentums[place], self._velocities[place]]
        if self.amsgrad:
            slots.append(self._velocity_hats[place])
        before = [convert_to_tensor(held) for held in (variable, *slots)]
        super().update_step(gradient, variable, learning_rate)
        if len(variable.shape) < 2:
            return
        moves = _ops.nonzero_rows(convert_to_tensor(gradient))
        for held, old in zip((variable, *slots), before, strict=True):
            held.assign(_ops.select(moves, convert_to_tensor(held), old))
