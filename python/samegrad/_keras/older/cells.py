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
        """Compute the output of one time step, and the new states.

        Args:
            inputs: Tensor of shape [n, ...]: the inputs of the step.
            states: States before the step.

        Returns:
            The output and the new states.

        Raises:
            NotImplementedError: The subclass does not define it.
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
        """Return zeros for each state.

        Args:
            inputs: Inputs of the layer, shape [n, ...].
            batch_size: Number of examples. None: that of inputs.
            dtype: Dtype of the states. None: the compute dtype.

        Returns:
            Tensor of shape [batch_size, ...], or a structure of them.
        """
        count = ops.shape(inputs)[0] if batch_size is None else batch_size
        kind = dtype or self.compute_dtype

        def zeros(size: Any) -> Any:
            return ops.zeros((count, *((size,) if isinstance(size, int) else size)), kind)

        sizes = self.state_size
        return zeros(sizes) if isinstance(sizes, int) else tree.map_structure(zeros, list(sizes))
