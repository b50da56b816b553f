"""keras.Variable: a name and Keras's metadata around a `samegrad.Variable`."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common import global_state
from keras.src.backend.common.stateless_scope import get_stateless_scope, in_stateless_scope
from keras.src.backend.common.variables import Variable as KerasVariable

import samegrad as tf
from samegrad import _core
from samegrad._autodiff.aggregation import VariableAggregation, check_dtype
from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor

_ops = _core.ops


def global_values() -> _core.Guard:
    """Inside, what is added to variables is that of all replicas already.

    Example:
        >>> with global_values():
        ...     pass
    """
    return _context.changed(values_are_global=True)


def values_are_global() -> bool:
    """Tell if user code is inside `global_values`.

    Example:
        >>> values_are_global()
        False
    """
    return _context.current().values_are_global


class Variable(KerasVariable):  # type: ignore[misc]
    """A variable of Keras that holds one of samegrad.

    Inside `Strategy.run` there is one value for all replicas. `aggregation` says how what the
    replicas assign becomes one: "sum" adds the changes of `assign_add` up, "mean" averages the
    values, "only_first_replica" takes the first one; with "none" all replicas assign the same.
    """

    def _initialize(self, value: Any) -> None:
        if isinstance(value, EngineVariable):
            self._value = value
            return
        self._value = EngineVariable(
            value if callable(value) else convert_to_tensor(value, self._dtype),
            trainable=self._trainable,
            name=self._name,
        )
        self._value.__dict__["_path"] = self._path  # messages tell it from others of its name

    def _initialize_with_initializer(self, initializer: Any) -> None:
        with _context.init_scope():
            value = initializer(self._shape, dtype=self._dtype)
            if not isinstance(value, EngineVariable):
                value = convert_to_tensor(value, self._dtype)
        self._initialize(value)

    @property
    def shape(self) -> tf.TensorShape:
        """The sizes of the axes, as Keras on TensorFlow has them."""
        return tf.TensorShape(super().shape)

    @property
    def trainable(self) -> bool:
        """Tell if tapes watch it and optimizers receive it."""
        return bool(self._trainable)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        if self._value is not None:
            self._value.trainable = self._trainable

    def _convert_to_tensor(self, value: Any, dtype: Any = None) -> Tensor:
        return convert_to_tensor(value, dtype)

    @property
    def value(self) -> Any:
        """The present value, a tensor, in the dtype of the layer that computes."""
        scopes = global_state.GLOBAL_STATE_TRACKER.__dict__  # of this thread
        if self._value is not None and scopes.get("stateless_scope") is None:
            now = self._value._as_tensor()
            if self._autocast and scopes.get("autocast_scope") is not None:
                return super()._maybe_autocast(now)
            return now
        if self._value is None and not self._in_scope():
            # Only shapes are asked for: an initializer may need values.
            return self._maybe_autocast(tf.zeros(self._shape, self._dtype))
        value = super().value
        return value._as_tensor() if isinstance(value, EngineVariable) else value

    def _in_scope(self) -> bool:
        scope = get_stateless_scope() if in_stateless_scope() else None
        return scope is not None and scope.get_current_value(self) is not None

    def _maybe_autocast(self, value: Any) -> Any:
        if isinstance(value, EngineVariable):
            value = value._as_tensor()
        return super()._maybe_autocast(value) if self._autocast else value

    def _as_tensor(self) -> Tensor:
        value = self.value
        return value if isinstance(value, Tensor) else convert_to_tensor(value)

    def _as_variable(self) -> EngineVariable:
        """The engine's variable: what tapes know."""
        if self._value is None:
            raise ValueError(
                f"[keras.Variable] {self.path} has no value yet: build its layer before it is used."
            )
        variable: EngineVariable = self._value
        return variable

    def _checkpoint_state(self) -> Any:
        return self._as_variable()._checkpoint_state()

    def _restore_state(self, values: Any) -> None:
        self._as_variable()._restore_state(values)

    def __getitem__(self, key: Any) -> Any:
        """A part, whose `assign` changes the variable."""
        part: Any = self._as_tensor()[key]
        part._part_of = (self, key)
        return part

    def numpy(self) -> Any:
        """The present value as a new NumPy array."""
        return convert_to_tensor(self.value).numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.value.__array__(dtype)

    def _direct_assign(self, value: Tensor) -> None:
        context = _context.reducing_context()
        if context is not None and value._varying and not values_are_global():
            value = self._one_value(context, value)
        self._value.assign(value)

    def _one_value(self, context: Any, value: Tensor) -> Tensor:
        """Return the value that all replicas store, of those that each assigns."""
        self._check_dtype(value)
        if self._aggregation == "sum":
            return self._collected(context, value)
        if self._aggregation == "mean":
            mean: Tensor = context.all_reduce("mean", value)
            return mean
        if self._aggregation == "only_first_replica":
            return _ops.collective_broadcast(value)
        return value

    def _check_dtype(self, value: Tensor) -> None:
        check_dtype(self.path, VariableAggregation[self._aggregation.upper()], value.dtype)

    def _collected(self, context: Any, value: Tensor) -> Tensor:
        """Return a metric's variable after each replica changed the present value.

        Raises:
            ValueError: It is neither a sum with it, nor the larger or the smaller of both.
        """
        now = self._value._as_tensor()
        name, other = _core.current_trace().made_of(value, now) or ("", value)
        if name == "add":
            total: Tensor = context.all_reduce("sum", other)
            return now + total
        extreme = {"maximum": tf.reduce_max, "minimum": tf.reduce_min}.get(name)
        if extreme is not None:
            parts = context.all_gather(tf.expand_dims(other, 0), axis=0)
            furthest: Tensor = getattr(tf, name)(now, extreme(parts, 0))
            return furthest
        raise ValueError(
            f"[{self.path}] replicas assign different values, and it is not known what they are "
            "together: use assign_add(change), assign(variable + change), or assign the larger or "
            "smaller of variable and value."
        )

    def assign_add(self, value: Any) -> Any:
        """Add to the value; with aggregation "sum", what all replicas add together."""
        return self._change(value, 1)

    def assign_sub(self, value: Any) -> Any:
        """Subtract from the value; see `assign_add`."""
        return self._change(value, -1)

    def _change(self, value: Any, sign: int) -> Any:
        context = _context.reducing_context()
        summed = self._aggregation == "sum" and not values_are_global()
        if context is not None and summed and not in_stateless_scope():
            # In the value's dtype, as one device adds the examples up.
            of_replica = value if isinstance(value, Tensor) else self._convert_to_tensor(value)
            self._check_dtype(of_replica)
            value = context.all_reduce("sum", of_replica)
        change, now = self._convert_to_tensor(value, self._dtype), self.value
        if type(now) is Tensor and now._dtype == change._dtype and now._shape == change._shape:
            changed = _ops.add(now, change) if sign > 0 else _ops.sub(now, change)
            if type(self).assign is Variable.assign and not in_stateless_scope():
                self._direct_assign(changed)
                return changed
        else:
            changed = now + change if sign > 0 else now - change
        return self.assign(changed)


def tracked_wrapper(attribute: Any, default: str = "Variable") -> Any:
    """Return the object that layers track for a `samegrad.Variable`; None for others.

    The attribute stays what it is; `trainable_variables`, optimizers and files of weights get a
    variable of Keras that holds it, always the same one.

    Args:
        attribute: Of any kind.
        default: The name of a variable that was given none.

    Example:
        >>> tracked_wrapper(1.0) is None
        True
    """
    if not isinstance(attribute, EngineVariable):
        return None
    made = attribute.__dict__.get("_of_keras")
    if made is None:
        made = attribute.__dict__["_of_keras"] = wrapper_of(attribute, default)
    return made


def wrapper_of(variable: EngineVariable, default: str = "Variable") -> Any:
    """A variable of Keras that holds this one of samegrad.

    Args:
        variable: Of samegrad.
        default: Its name if it was given none.

    Example:
        >>> import samegrad as tf
        >>> v = tf.Variable([1.0, 2.0])
        >>> _ = wrapper_of(v).assign([3.0, 4.0])
        >>> v.numpy()
        array([3., 4.], dtype=float32)
    """
    from keras.src import backend

    name = variable.name.partition(":")[0].replace("/", "_")
    return backend.Variable(
        lambda shape, dtype: variable,
        shape=tuple(variable.shape),
        dtype=variable.dtype.name,
        trainable=variable.trainable,
        name=default if name == "Variable" else name,
    )
