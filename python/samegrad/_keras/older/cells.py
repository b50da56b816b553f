"""The base of recurrent cells that older programs inherit from."""

from __future__ import annotations

from typing import Any

from keras.src import ops, tree
from keras.src.layers.layer import Layer

__all__ = ["AbstractRNNCell"]


class AbstractRNNCell(Layer):  # type: ignore[misc]
    """A cell: a program's own has `call(inputs, states)`, `state_size` and `output_size`.

    Example:
        >>> import numpy as np
        >>> from samegrad.keras import layers
        >>> class Sum(AbstractRNNCell):
        ...     state_size = output_size = 3
        ...     def call(self, inputs, states):
        ...         total = states[0] + inputs
        ...         return total, [total]
        >>> float(layers.RNN(Sum())(np.ones((1, 4, 3), "float32"))[0, 0])
        4.0
    """

    def call(self, inputs: Any, states: Any) -> Any:
        """The output of one time step, and the new states.

        Raises:
            NotImplementedError: The program's class has none.
        """
        raise NotImplementedError("[AbstractRNNCell] a cell has call(inputs, states): got none.")

    @property
    def state_size(self) -> Any:
        """The sizes of the states, without examples.

        Raises:
            NotImplementedError: The program's class has none.
        """
        raise NotImplementedError("[AbstractRNNCell] a cell has a state_size: got none.")

    @property
    def output_size(self) -> Any:
        """The size of the output, without examples.

        Raises:
            NotImplementedError: The program's class has none.
        """
        raise NotImplementedError("[AbstractRNNCell] a cell has an output_size: got none.")

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Zeros for each state.

        Args:
            inputs: Those of the layer, which may say how many examples there are.
            batch_size: How many examples there are.
            dtype: Of the states; nothing: that the cell computes in.
        """
        count = ops.shape(inputs)[0] if batch_size is None else batch_size
        kind = dtype or self.compute_dtype

        def zeros(size: Any) -> Any:
            return ops.zeros((count, *((size,) if isinstance(size, int) else size)), kind)

        sizes = self.state_size
        return zeros(sizes) if isinstance(sizes, int) else tree.map_structure(zeros, list(sizes))
