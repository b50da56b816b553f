"""Gradients are summed over the replicas once, at the top of `apply`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from keras.src import backend
from keras.src.optimizers import base_optimizer
from keras.src.utils import tracking

import samegrad as tf
from samegrad import _core
from samegrad._autodiff.loss_normalization_check import note_use
from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._autodiff.variable import unwrapped
from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._context import state as _context
from samegrad._keras.compiled_updates import update_compiled
from samegrad._keras.micro_batches import weight_of_step
from samegrad._keras.older.optimizers import OlderOptimizer, check_some
from samegrad._keras.scopes import keeping_scopes
from samegrad._keras.updates import flushed, flushed_sum, update_all
from samegrad._keras.variable import Variable as KerasVariable
from samegrad._keras.variable import tracked_wrapper
from samegrad._keras.whole import building, changing
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.nn._loss_normalization import all_reduce_sum
from samegrad.train._trackable import restore_pending


def _gradients_of_all(optimizer: Any) -> _core.Guard:
    """Inside, `apply` is given the sums of the replicas' gradients."""
    weight = weight_of_step(optimizer)
    return _context.changed(gradients_are_sums=True, weight_of_step=weight)


class ReducingOptimizer(OlderOptimizer, base_optimizer.BaseOptimizer):  # type: ignore[misc]
    """Base of Keras's optimizers: all that `apply` does is done with the sums over the replicas.

    So clipping, loss scales, accumulation and averages see what one device would see. Variables may
    be Keras's or samegrad's, and others in a later call than in the first.

    With flush(x) = x, but zero where abs(x) is below the smallest normal number, a slot becomes
    flush(formula), and a weight becomes weight - flush(update).
    """

    _trainable_variables_indices: dict[int, int]
    built: bool
    _further_arguments = ("lr", "decay")  # for the port check

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "apply" in cls.__dict__:
            cls.apply = _with_sums(cls.__dict__["apply"])  # type: ignore[method-assign]

    @keeping_scopes
    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Update variables by the gradients of all replicas.

        Args:
            grads: Gradients of one replica, one per variable, or None for a variable without one.
            trainable_variables: Variables. None: those that the optimizer was built with.

        Raises:
            RuntimeError: The call is in cross-replica context.
        """
        _apply_sums(self, super().apply, grads, trainable_variables)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """Update variables by the gradients of all replicas.

        Args:
            grads_and_vars: Pairs of a replica's gradient, or None, and a variable of Keras or
                samegrad.
            name: Not used.
            skip_gradients_aggregation: If True, the gradients are sums over the replicas already.
            experimental_aggregate_gradients: False: as `skip_gradients_aggregation`.

        Returns:
            Variable: the number of updates.

        Raises:
            TypeError: grads_and_vars does not consist of pairs.
            ValueError: There are no pairs, no variable has a gradient, or one has another shape
                than its variable.
            RuntimeError: The call is in cross-replica context.
        """
        try:
            pairs = _pairs(self.name, grads_and_vars)
            check_some(self.name, pairs)
            summed = skip_gradients_aggregation or not experimental_aggregate_gradients
            with _gradients_of_all(self) if summed else contextlib.nullcontext():
                self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
            return self.iterations
        except Exception as error:
            keep_user_frames(error)
            raise

    @keeping_scopes
    @tracking.no_automatic_dependency_tracking  # type: ignore[untyped-decorator]
    def build(self, variables: Any) -> None:
        """Create the slots of variables, and the total weight of accumulated micro-batches.

        Args:
            variables: List of variables.
        """
        super().build(variables)
        if self.gradient_accumulation_steps and not hasattr(self, "_accumulated_weight"):
            zero = np.float64(0.0)
            self._accumulated_weight = EngineVariable(zero, trainable=False, name="weight")
            restore_pending(self)

    def _filter_empty_gradients(self, grads: Any, vars: Any) -> Any:
        if all(gradient is None for gradient in grads):
            paths = ", ".join(variable.path for variable in vars)
            raise ValueError(
                f"No gradients provided for any variable. [{self.name}] the loss must depend on "
                f"one of them: got None for {paths}; compute it from them inside the tape, "
                "in the branch or loop that trains them."
            )
        return super()._filter_empty_gradients(grads, vars)

    def _weighed(self, grads: list[Any]) -> list[Any]:
        """The gradients of a micro-batch, times what it counts of those that are accumulated."""
        weight = _context.current().weight_of_step
        if weight is None:
            self._accumulated_weight.assign_add(np.float64(1.0))
            return grads
        self._accumulated_weight.assign_add(tf.cast(weight, "float64"))
        return [g * tf.cast(weight, g.dtype) for g in grads]

    def _weight_of_all(self) -> Any:
        return self._accumulated_weight._as_tensor()

    def add_variable_from_reference(
        self, reference_variable: Any, name: str | None = None, initializer: Any = "zeros"
    ) -> Any:
        """Create a variable of the shape and dtype of another one; see Keras.

        Args:
            reference_variable: Variable whose shape and dtype are used.
            name: Ignored.
            initializer: Initializer of the values.

        Returns:
            Variable.
        """
        if initializer == "zeros":  # looking it up takes as long as making the variable
            initializer = _zeros
        return super().add_variable_from_reference(reference_variable, name, initializer)

    def assign(self, variable: Any, value: Any) -> None:
        """Store a value; zeros replace the denormal numbers of a slot.

        Args:
            variable: Slot of this optimizer, or a model's variable.
            value: Tensor of the variable's shape.
        """
        held = _of_keras(variable)
        held.assign(flushed(value, held.dtype) if self._is_slot(held) else value)

    def assign_add(self, variable: Any, value: Any) -> None:
        """Add an update; zeros replace the denormal numbers of the sum if the variable is a slot.

        Args:
            variable: Slot of this optimizer, or a model's variable, whose update is flushed.
            value: Tensor to add.
        """
        held = _of_keras(variable)
        if self._is_slot(held):
            held.assign(flushed_sum(held.value, value))
        else:
            held.assign_add(flushed(value, held.dtype))

    def assign_sub(self, variable: Any, value: Any) -> None:
        """Subtract an update, as `assign_add` adds one.

        Args:
            variable: Slot of this optimizer, or a model's variable, whose update is flushed.
            value: Tensor to subtract.
        """
        held = _of_keras(variable)
        if self._is_slot(held):
            self.assign(held, held - convert_to_tensor(value, held.dtype))
        else:
            held.assign_sub(flushed(value, held.dtype))

    def _is_slot(self, variable: Any) -> bool:
        return self._var_key(variable) not in self._trainable_variables_indices

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        update_compiled(self, _update, grads, trainable_variables, learning_rate)

    def _backend_reset_gradient_accumulators(self) -> None:
        super()._backend_reset_gradient_accumulators()
        self._accumulated_weight.assign(np.float64(0.0))

    def _track_variable(self, variable: Any) -> None:
        super()._track_variable(variable)
        restore_pending(self)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, list):  # of slots, which checkpoints of TensorFlow name by their list
            restore_pending(self)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        state: dict[str, Any] = {"variables": list(self._variables)}
        parts = {
            "inner": "inner_optimizer",
            "optimizers": "_inner_optimizers",
            "weight": "_accumulated_weight",
        }
        found = {name: getattr(self, attribute, None) for name, attribute in parts.items()}
        return state | {name: part for name, part in found.items() if part is not None}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("an optimizer has no values beside its variables")

    def _var_key(self, variable: Any) -> int:
        inner = variable._value if isinstance(variable, KerasVariable) else unwrapped(variable)
        return id(inner._cell) if isinstance(inner, EngineVariable) else id(variable)

    def _prepared(self, variables: Any) -> Any:
        """The variables as Keras's own, with slots where the optimizer has some already."""
        if variables is None:
            return None
        own = [_of_keras(variable) for variable in variables]
        if own and not self.built:
            # Not a part of the step that is traced: what it assigns is assigned once.
            scope = backend.name_scope(self.name, caller=self)
            with _context.init_scope(), scope:
                building(self, lambda: self.build(own))
            self.built = True
            restore_pending(self)  # an optimizer of others has got some
        for optimizer in (self, getattr(self, "inner_optimizer", None)):
            if optimizer is not None and optimizer.built:
                optimizer._build_new(own)
        return own

    def _build_new(self, variables: list[Any]) -> None:
        """Make slots of variables that the optimizer was not built with; all others stay.

        The optimizer builds itself for the new ones alone; then what it holds per variable is
        joined with what it held before, and what it holds once is what it was.
        """
        places = self._trainable_variables_indices
        new = [variable for variable in variables if self._var_key(variable) not in places]
        if new:
            building(self, lambda: self._build_beside(new))

    def _build_beside(self, new: list[Any]) -> None:
        places = self._trainable_variables_indices
        old, before = len(places), dict(vars(self))
        self._trainable_variables_indices = {}
        self._variables[:], tracked = [], self._variables[:]
        self.built = False
        with _context.init_scope(), backend.name_scope(self.name, caller=self):
            self.build(new)
        made = self._variables[:]
        for name, value in vars(self).copy().items():
            earlier = before.get(name)
            if isinstance(value, KerasVariable) and isinstance(earlier, KerasVariable):
                setattr(self, name, earlier)
                made = [variable for variable in made if variable is not value]
            elif isinstance(value, list) and isinstance(earlier, list) and value is not earlier:
                setattr(self, name, earlier + value)
        self._variables[:] = tracked + made
        added = {key: old + i for key, i in self._trainable_variables_indices.items()}
        self._trainable_variables_indices = {**places, **added}


def _zeros(shape: Any, dtype: str) -> Tensor:
    return _core.ops.zeros(shape=list(shape), dtype=dtype)


# What update_step stores with; a program may have its own.
_ASSIGNING = {
    name: getattr(ReducingOptimizer, name) for name in ("assign", "assign_add", "assign_sub")
}


def _update(optimizer: Any, grads: Any, variables: Any, learning_rate: Any) -> None:
    known = all(getattr(type(optimizer), name) is _ASSIGNING[name] for name in _ASSIGNING)
    if not known or not update_all(optimizer, grads, variables, learning_rate):
        for gradient, variable in zip(grads, variables, strict=True):
            optimizer.update_step(gradient, variable, learning_rate)


def _of_keras(variable: Any) -> Any:
    wrapper = tracked_wrapper(variable)
    return variable if wrapper is None else wrapper


_PAIR = (tuple, list)


def _pairs(name: str, grads_and_vars: Any) -> list[tuple[Any, Any]]:
    pairs = []
    for pair in grads_and_vars:
        if not isinstance(pair, _PAIR) or len(pair) != 2:
            raise TypeError(
                f"[{name}] apply_gradients needs pairs of a gradient and a variable: got "
                f"{shown(pair)}; pass zip(gradients, variables)."
            )
        gradient, variable = pair
        if isinstance(gradient, IndexedSlices):
            gradient = convert_to_tensor(
                IndexedSlices(gradient.values, gradient.indices, variable.shape)
            )
        if type(gradient) is Tensor and gradient._shape == getattr(variable, "shape", None):
            pairs.append((gradient, variable))
            continue
        sizes = [tuple(getattr(part, "shape", ())) for part in (gradient, variable)]
        if gradient is not None and sizes[0] != sizes[1]:
            raise ValueError(
                f"[{name}] a gradient has the shape of its variable: got {sizes[0]} for "
                f"{variable.name} of shape {sizes[1]}."
            )
        pairs.append((gradient, variable))
    return pairs


def _sums(optimizer: Any, grads: list[Any]) -> list[Any]:
    context = _context.current()
    if context.strategy is not None and context.replica_context is None:
        raise RuntimeError(
            f"[{optimizer.name}] apply_gradients needs a replica's gradients: got called in "
            "cross-replica context; call it in the function given to strategy.run."
        )
    present = [g for g in grads if g is not None]
    sums = all_reduce_sum(present) if present else []
    for gradient in sums:
        note_use("gradient", convert_to_tensor(gradient))
    summed = iter(sums)
    return [None if g is None else next(summed) for g in grads]


def _apply_sums(optimizer: Any, apply: Any, grads: Any, trainable_variables: Any) -> Any:
    variables, total = optimizer._prepared(trainable_variables), list(grads)
    if _context.current().gradients_are_sums:
        scope: Any = contextlib.nullcontext()
    else:
        total, scope = _sums(optimizer, total), _gradients_of_all(optimizer)
    with scope, changing([*(variables or ()), *optimizer._variables]):
        return apply(total, variables)


def _with_sums(apply: Any) -> Any:
    @keeping_scopes
    def summed(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        return _apply_sums(self, functools.partial(apply, self), grads, trainable_variables)

    summed.__doc__ = apply.__doc__
    return summed
