"""keras.backend: loops over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from keras.src import tree

import samegrad as tf
from samegrad import _core
from samegrad._control.row_loop import RowLoop
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.axes import counts_examples
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor


def rnn(
    step_function: Callable[..., Any],
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Any = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]:
    """Carries states over the steps of time.

    In traced functions the steps are one loop of the engine, whose program does not grow with their
    number, unless they are unrolled.

    Args:
        step_function: Takes what the inputs are at a step and a tuple of the states and the
            constants; returns an output and the new states.
        inputs: [n, steps, ...], tensors in any structure.
        initial_states: The states before the first step.
        go_backwards: Whether the last step comes first; outputs are in the order of computation.
        mask: Booleans [n, steps] or [n, steps, 1]: where false, the states and the output stay
            those of the step before.
        constants: Given to each step after the states.
        unroll: Whether each step is a part of the program of its own.
        input_length: Numbers of steps [n], a missing mask.
        time_major: Whether inputs, mask and outputs are [steps, n, ...].
        zero_output_for_mask: Whether outputs are zeros where the mask is false.
        return_all_outputs: Whether the outputs of all steps are wanted, not the last one's alone.

    Returns:
        The last output, the outputs [n, steps (or 1), ...], and the last states.

    Raises:
        ValueError: There is no step, or a result has not the form of the step before.
    """
    rows = tree.map_structure(convert_to_tensor, inputs)
    axis = 0 if time_major else 1
    steps = tree.flatten(rows)[0].shape[axis]
    kept = _mask(mask, input_length, steps, time_major, go_backwards)
    states = tree.map_structure(convert_to_tensor, initial_states)
    if any(counts_examples(x, 1 - axis) for x in tree.flatten(rows)):
        # Made of a number of examples, they have lost what it counts.
        states = tree.map_structure(as_examples, states)
    rounds = _Rounds(
        step_function, states, tuple(constants or ()), zero_output_for_mask, return_all_outputs
    )
    leaves = [*tree.flatten(rows), *tree.flatten(states)]
    if unroll or not (_core.tracing() or any(x._symbolic for x in leaves)):
        return rounds.one_by_one(rows, kept, int(steps), go_backwards, axis)
    if time_major:
        return rounds.as_loop(rows, kept, go_backwards)
    rows = tree.map_structure(_swapped, rows)
    kept = None if kept is None else _swapped(kept)
    last, outputs, states = rounds.as_loop(rows, kept, go_backwards)
    return last, tree.map_structure(_swapped, outputs), states


def _at(x: Tensor, step: int, axis: int) -> Tensor:
    return x[:, step] if axis else x[step]


def _swapped(x: Tensor) -> Tensor:
    return tf.transpose(x, [1, 0, *range(2, x._rank)])


def _mask(
    mask: Any, input_length: Any, steps: Any, time_major: bool, go_backwards: bool
) -> Tensor | None:
    """Booleans [n, steps, 1], or [steps, n, 1] where time comes first; or None."""
    if mask is not None:
        kept = convert_to_tensor(mask, "bool")
        return tf.expand_dims(kept, -1) if kept._rank == 2 else kept
    if isinstance(input_length, Tensor) and input_length._rank:
        times = tf.range(steps)
        if go_backwards:  # the examples end where the longest one does
            times = times - steps + tf.reduce_max(input_length)
        lengths = tf.cast(input_length, times._dtype)
        if time_major:
            return (tf.reshape(times, (-1, 1)) < lengths)[:, :, None]
        return (times < tf.expand_dims(lengths, -1))[:, :, None]
    return None


class _Rounds:
    """Body of a loop over time steps."""

    def __init__(
        self,
        step: Callable[..., Any],
        states: Any,
        constants: tuple[Any, ...],
        zero: bool,
        return_all: bool,
    ) -> None:
        self.step, self.states, self.constants = step, states, constants
        self.zero, self.return_all = zero, return_all

    def _called(self, row: Any, states: Any) -> tuple[Any, Any]:
        output, new = self.step(row, (*states, *self.constants))
        flat = [convert_to_tensor(x) for x in tree.flatten(new)]
        return (
            tree.map_structure(convert_to_tensor, output),
            tree.pack_sequence_as(self.states, flat),
        )

    def _masked(self, row: Any, kept: Tensor | None, states: Any, before: Any) -> tuple[Any, Any]:
        """The output and the states after a step; `before` is the output before it."""
        output, new = self._called(row, states)
        if kept is None:
            return output, new
        if self.zero or before is None:
            before = tree.map_structure(tf.zeros_like, output)
        output = tree.map_structure(lambda a, b: _chosen(kept, a, b), output, before)
        return output, tree.map_structure(lambda a, b: _chosen(kept, a, b), new, states)

    def one_by_one(
        self, rows: Any, kept: Tensor | None, steps: int, reverse: bool, axis: int
    ) -> tuple[Any, Any, Any]:
        """The steps one after the other; time is on an axis.

        Axes stay where they are: gradients are summed over examples on axis 0.
        """
        if not steps:
            raise ValueError("[rnn] there must be a step of time: got none.")
        output, outputs, states = None, [], self.states
        for i in range(steps - 1, -1, -1) if reverse else range(steps):
            row = tree.map_structure(lambda x, i=i: _at(x, i, axis), rows)
            now = None if kept is None else _at(kept, i, axis)
            output, states = self._masked(row, now, states, output)
            outputs.append(output)
        chosen = outputs if self.return_all else outputs[-1:]
        stacked = tree.map_structure(lambda *xs: tf.stack(list(xs), axis), *chosen)
        return output, stacked, states

    def as_loop(self, rows: Any, kept: Tensor | None, reverse: bool) -> tuple[Any, Any, Any]:
        """The steps as one loop of the engine."""
        carries = not self.return_all or (kept is not None and not self.zero)
        first = self._no_output(rows) if carries else ()
        has_mask = kept is not None
        loop = RowLoop("rnn", self.step, [rows, kept] if has_mask else [rows], reverse)

        def body(carried: Any, row: Any) -> Any:
            states, before = carried
            output, states = self._masked(
                row[0], row[1] if has_mask else None, states, before if carries else None
            )
            return (states, output if carries else ()), output if self.return_all else ()

        (states, output), outputs = loop.run(body, (self.states, first))
        if reverse and self.return_all:
            outputs = tree.map_structure(lambda x: tf.reverse(x, [0]), outputs)
        if not carries:
            output = tree.map_structure(lambda x: x[-1], outputs)
        if not self.return_all:
            outputs = tree.map_structure(lambda x: tf.expand_dims(x, 0), output)
        return output, outputs, states

    def _no_output(self, rows: Any) -> Any:
        """Zeros in the form of an output."""
        row = tree.map_structure(lambda x: x[0], rows)
        return tree.map_structure(tf.zeros_like, self._called(row, self.states)[0])


def _chosen(kept: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """New values where the mask [n, 1] says so, with as many axes as they have."""
    shape = (*kept.shape[:1], *[1] * (new._rank - 1))
    if kept._rank > new._rank:
        return tf.where(tf.reshape(kept, shape), new, old)
    wide = tf.reshape(kept, (*kept.shape, *[1] * (new._rank - kept._rank)))
    return tf.where(wide, new, old)


def lstm(*args: Any, **kwargs: Any) -> NoReturn:
    """No fused form: Keras's layers then take `rnn`."""
    raise NotImplementedError


gru = bidirectional_lstm = bidirectional_gru = lstm


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Return False: there is no fused implementation."""
    return False
