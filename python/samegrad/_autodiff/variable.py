"""Variables: state that steps read and write."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._autodiff.aggregation import (
    VariableAggregation,
    VariableSynchronization,
    aggregated,
    assigning_replicas,
    check_dtype,
    of_copies,
    set_copies,
)
from samegrad._autodiff.loss_normalization_check import note_use
from samegrad._base.dtypes import DType, DTypeLike, as_dtype
from samegrad._base.reference import Reference
from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._tensor.shape import as_shape
from samegrad._tensor.tensor import Tensor, TensorShape, array_text, convert_to_tensor, match
from samegrad._tensor.text import is_text

_ops = _core.ops


def _check_shape(value: Tensor, shape: Any) -> None:
    if shape is not None and not as_shape(shape).is_compatible_with(TensorShape(value._shape)):
        raise ValueError(
            f"[Variable] the initial value must have the shape asked for: got "
            f"{tuple(value._shape)} and shape={as_shape(shape)}."
        )


def _known(name: str | None, given: Any, dtype: DTypeLike | None) -> Tensor:
    """Return an initial value as a tensor with a value, whatever is being traced.

    Raises:
        TypeError: It is text.
        ValueError: It is None, or has no value while the step is traced.
    """
    if given is None:
        raise ValueError(f"[{name or 'Variable'}] initial_value must be given: got None.")
    if is_text(given):
        raise TypeError(
            f"[{name or 'Variable'}] variables hold numbers, which steps compute with: got strings "
            f"{shown(given)}; keep strings in Python, or their numbers by tf.lookup or "
            "keras.layers.StringLookup."
        )
    value = convert_to_tensor(given, dtype)
    if not value._symbolic:
        return value
    arguments = _context.current().arguments
    if arguments is None:
        raise ValueError(
            f"[{name or 'Variable'}] a function that prepares data makes no variables: got an "
            "initial value that it computes; create the variable outside."
        )
    return arguments.initial_value(value)


def step_of(*variables: Variable) -> _core.AllOrNothing:
    """Inside, eager code changes several variables: all of them, or after an exception none.

    Example:
        >>> v = Variable(1.0)
        >>> import contextlib
        >>> with contextlib.suppress(KeyboardInterrupt), step_of(v):
        ...     _ = v.assign(2.0)
        ...     raise KeyboardInterrupt
        >>> float(v)
        1.0
    """
    eager = not _core.tracing()  # what is traced becomes one step of the engine
    return _core.all_or_nothing(variables=[v._cell for v in variables] if eager else [])


class _Owners:
    """Variables by their cells in the engine; a variable keeps its own.

    Plain weak references: the callbacks of a WeakValueDictionary swallow an interrupt that comes
    while they run. Those of variables that are gone are dropped as others are added.
    """

    def __init__(self) -> None:
        self._of_cells: dict[int, weakref.ref[Variable]] = {}
        self._limit = 64

    def add(self, variable: Variable) -> None:
        if len(self._of_cells) >= self._limit:
            self._of_cells = {k: r for k, r in self._of_cells.items() if r() is not None}
            self._limit = 64 + 2 * len(self._of_cells)
        self._of_cells.pop(id(variable._cell), None)  # of one that is gone: a new one is last
        self._of_cells[id(variable._cell)] = weakref.ref(variable)

    def of(self, cell: Any) -> Variable | None:
        known = self._of_cells.get(id(cell))
        variable = known() if known else None
        return variable if variable is not None and variable._cell is cell else None

    def in_order(self, variables: Iterable[Variable]) -> list[Variable]:
        places = {cell: place for place, cell in enumerate(self._of_cells)}
        return sorted(variables, key=lambda variable: places[id(variable._cell)])

    def trainable(self) -> list[Variable]:
        known = [reference() for reference in list(self._of_cells.values())]
        return [variable for variable in known if variable is not None and variable.trainable]


owners = _Owners()


def variable_of(cell: Any) -> Variable | None:
    """Return the variable that a cell of the engine belongs to, if it still exists.

    Example:
        >>> v = Variable(1.0)
        >>> variable_of(v._cell) is v
        True
    """
    return owners.of(cell)


def in_order_of_creation(variables: Iterable[Variable]) -> list[Variable]:
    """Return the variables, the oldest first.

    Example:
        >>> v, w = Variable(1.0), Variable(2.0)
        >>> in_order_of_creation([w, v]) == [v, w]
        True
    """
    return owners.in_order(variables)


def trainable_paths() -> list[str]:
    """Return the paths of the trainable variables (of Keras's layers), the newest last.

    Example:
        >>> v = Variable(1.0, name="slope")
        >>> "slope" in trainable_paths()
        True
    """
    paths = (v.__dict__.get("_path") or v.name.removesuffix(":0") for v in owners.trainable())
    return list(dict.fromkeys(paths))


def unwrapped(value: Any) -> Any:
    """Return the variable behind a wrapper of one, as Keras's are; what is none stays what it is.

    Example:
        >>> unwrapped(1)
        1
    """
    return value._as_variable() if hasattr(value, "_as_variable") else value


# The class of variables whose sizes are open, which derives from Variable.
_open_kind: list[type[Variable]] = []


def set_open_kind(kind: type[Variable]) -> None:
    """Set the class of variables whose sizes are open."""
    _open_kind[:] = [kind]


class Variable:
    """A mutable tensor: one copy per process, shared by all replicas.

    Args:
        initial_value: A value, or a function that returns it. A traced function may compute it in
            its first call. Inside `Strategy.run` it is the first replica's value.
        trainable: Let tapes watch the variable; default True (False with ON_READ).
        name: The name for messages and checkpoints.
        dtype: The dtype of the value; default that of `initial_value`.
        constraint: A function from the value to an allowed one, for the code that updates the
            variable: `variable.assign(variable.constraint(variable))`.
        synchronization: ON_READ gives every replica a copy of its own.
        aggregation: The reduction of the replicas' values in an assignment inside `Strategy.run`.
        shape: The shape of `initial_value`, which is checked. Where it has None, `assign` may
            change the size. Functions that use the variable fall back to Python then.

    Raises:
        ValueError: A function creates it in another call than its first, or in a branch or loop.

    Example:
        >>> v = Variable([1.0, 2.0])
        >>> v.assign_add([1.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
    """

    _is_variable = True

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: None = None,
        dtype: DTypeLike | None = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        if variable_def is not None:
            raise ValueError(f"[Variable] variable_def must be None: got {shown(variable_def)}.")
        on_read = synchronization is VariableSynchronization.ON_READ
        self.trainable = (not on_read) if trainable is None else trainable
        self.aggregation, self.synchronization = aggregation, synchronization
        self.constraint = constraint
        self._strategy = _context.current().strategy
        if _context.current().traced_before and _core.tracing():
            raise ValueError(
                f"[{name or 'Variable'}] a function makes variables in its first call only: got "
                "one while it is traced again; create it once, "
                "`if self.w is None: self.w = tf.Variable(...)`, or outside."
            )
        if callable(initial_value):
            with _context.init_scope():
                initial_value = initial_value()
        value = _known(name, initial_value, dtype)
        with _context.init_scope():
            _check_shape(value, shape)
            if aggregation is VariableAggregation.MEAN:
                check_dtype(name or "Variable", aggregation, as_dtype(value._dtype))
            replicas = self._strategy.num_replicas_in_sync if self._strategy and on_read else 1
            first = [value] * replicas
            if aggregation is VariableAggregation.SUM and replicas > 1:
                first[1:] = [_ops.full_like(value, value=0.0)] * (replicas - 1)
            self._cell = _core.StateVariable(
                _context.current().name_scope + (name or "Variable"),
                first,
                self._strategy.processes if self._strategy else (),
            )
            owners.add(self)
        if shape is not None and not as_shape(shape).is_fully_defined():
            self.__class__ = _open_kind[0]
            self._declared = as_shape(shape)
        arguments = _context.current().arguments
        if arguments is not None and _core.tracing():
            arguments.made.append((self._cell.name, weakref.ref(self)))

    @property
    def name(self) -> str:
        """The name given, with TensorFlow's ``:0``."""
        return f"{self._cell.name}:0"

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return as_dtype(self._cell._dtype)

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        return TensorShape(self._cell._shape)

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the variable was made.

        Raises:
            AttributeError: It was made outside of a scope.
        """
        if self._strategy is None:
            raise AttributeError(
                f"[{self.name}] a distribute_strategy is that of variables made in its scope: got "
                "one made outside of strategy.scope()."
            )
        return self._strategy

    def _as_tensor(self) -> Tensor:
        context = _context.current().replica_context
        if context is not None:
            self._check_strategy(context.strategy)
        if self._cell.component_count > 1 and not _context.inside_run():
            return of_copies(self)
        _core.count_reads()  # GradientTape.watched_variables asks for them
        return _core.read_variable(self._cell)

    def _check_strategy(self, running: Any) -> None:
        """Check that replicas of one strategy do not train the variables of another."""
        if running is None or self._strategy is None or running is self._strategy:
            return
        raise RuntimeError(
            f"[{self._cell.name}] the variable belongs to a strategy of "
            f"{self._strategy.num_replicas_in_sync} replicas: got it inside run of another one, of "
            f"{running.num_replicas_in_sync}; create it in the scope of the strategy that runs, or "
            "restore a checkpoint there."
        )

    def value(self) -> Tensor:
        """Return the present value as a tensor."""
        return self._as_tensor()

    read_value = value

    def numpy(self) -> Any:
        """Return the present value as a new NumPy array."""
        return self._as_tensor().numpy()

    to_numpy = numpy  # Matplotlib asks for it

    def _aggregated(self, value: Any) -> Tensor:
        """Return the value that an assignment inside `run` stores: the aggregated one."""
        tensor = value if type(value) is Tensor else match(value, self._cell)
        now = _context.current()
        if now.replica_context is not None:
            self._check_strategy(now.replica_context.strategy)
        elif now.one_replica is None or type(value) is not Tensor:
            return tensor
        is_sum = self.aggregation is VariableAggregation.SUM
        if is_sum and not isinstance(value, Tensor) and assigning_replicas(self):
            raise ValueError(
                f"[{self._cell.name}] a Python number has no copy per replica to sum: got {value}; "
                "assign a tensor."
            )
        return aggregated(self, tensor)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Variable:  # fmt: skip
        """Set the value.

        Args:
            value: A tensor, or a value that converts to one, of the variable's shape and dtype.
            use_locking: Ignored.
            name: Ignored.
            read_value: Ignored.

        Returns:
            The variable.

        Raises:
            TypeError: The value has another dtype.
            ValueError: The value has another shape.
        """
        return self._store(self._aggregated(value))

    def _store(self, value: Tensor) -> Variable:
        """Set the value, which is one for all replicas that share the copy."""
        self._note(value)
        if self._cell.component_count > 1 and not _context.inside_run():
            set_copies(self, value)
        else:
            _core.write_variable(self._cell, value)
        return self

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable:  # fmt: skip
        """Add to the value.

        In `Strategy.run` the variable's aggregation makes one addend of the replicas' addends. A
        variable that belongs to no strategy is changed by each replica in turn.

        Args:
            delta: The addend, of the variable's shape and dtype.
            use_locking: Ignored.
            name: Ignored.
            read_value: Ignored.

        Returns:
            The variable.

        Raises:
            ValueError: The shape differs, or the variable is ON_READ and the call is outside of
                `Strategy.run`.
        """
        change = self._change(delta, "assign_add")
        self._note(change)
        _core.write_variable(self._cell, _ops.add(self._as_tensor(), change))
        return self

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable:  # fmt: skip
        """Subtract from the value; see `assign_add`.

        Args:
            delta: The subtrahend, of the variable's shape and dtype.
            use_locking: Ignored.
            name: Ignored.
            read_value: Ignored.

        Returns:
            The variable.

        Raises:
            ValueError: The shape differs, or the variable is ON_READ and the call is outside of
                `Strategy.run`.
        """
        change = self._change(delta, "assign_sub")
        self._note(change)
        _core.write_variable(self._cell, _ops.sub(self._as_tensor(), change))
        return self

    def _note(self, value: Tensor) -> None:
        if self.trainable:
            note_use("assignment", value)

    def _change(self, delta: Any, who: str) -> Tensor:
        """Return the sum of the replicas' changes."""
        given = tuple(int(size) for size in match(delta, self._as_tensor()).shape)
        if given != tuple(self._cell._shape):
            raise _core.InvalidArgumentError(
                f"[{self._cell.name}] {who} needs the variable's shape: got {given} and "
                f"{tuple(self._cell._shape)}; use assign with the sum, which broadcasts."
            )
        if self._cell.component_count > 1 and not _context.inside_run():
            raise ValueError(
                f"[{self._cell.name}] an ON_READ variable of {self._cell.component_count} replicas "
                "is changed by its replicas: got a change outside strategy.run; use assign, or "
                "call it inside run."
            )
        context = _context.current().replica_context
        several = context is not None and context.num_replicas_in_sync > 1
        if not several or self._strategy is not None:
            return self._aggregated(delta)
        assert context is not None
        total: Tensor = context.all_reduce("sum", match(delta, self._as_tensor()))
        return total

    def _checkpoint_state(self) -> dict[str, Any]:
        with _context.init_scope():  # asked for while a step is traced, too
            value = np.asarray(of_copies(self).numpy())
        value.flags.writeable = False  # a copy already
        return {"": value}

    def _restore_state(self, values: dict[str, Any]) -> None:
        with _context.init_scope():
            tensor = Tensor(np.ascontiguousarray(values[""]).reshape(self._cell._shape))
            set_copies(self, tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = np.asarray(self.numpy())
        return array if dtype is None else array.astype(getattr(dtype, "as_numpy_dtype", dtype))

    def __repr__(self) -> str:
        value = self._shown()
        kind = f"shape={self.shape} dtype={self.dtype}"
        return f"<samegrad.Variable {self.name!r} {kind}, {value}>"

    def _shown(self) -> str:
        several = self._cell.component_count > 1
        if several and self.aggregation is VariableAggregation.NONE:
            return "one value per replica"
        if not _core.tracing():
            return "numpy=" + array_text(np.asarray(self.numpy()))
        tensor = self._as_tensor() if _context.settings.functions_run_eagerly else None
        return "traced" if tensor is None or not tensor._looks else repr(tensor)

    # NumPy's operators leave mixed expressions to ours, which are recorded.
    __array_priority__ = 100

    def __hash__(self) -> int:
        raise TypeError(
            f"[{self.name}] a variable is unhashable, as == compares its elements; use "
            "variable.ref()."
        )

    def get_shape(self) -> TensorShape:
        """Return the sizes of the axes."""
        return self.shape

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        """Return another variable with this one's name, value and settings."""
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        with _context.init_scope():
            twin.__dict__ |= self.__dict__
            twin._cell = _core.StateVariable(
                self._cell.name, self._cell.components(), self._cell.processes
            )
            owners.add(twin)
        return twin

    def __copy__(self) -> Variable:
        """Return another name for the same state, as in TensorFlow."""
        twin = object.__new__(type(self))
        twin.__dict__ |= self.__dict__
        return twin

    def __reduce__(self) -> Any:
        settings = {
            "trainable": self.trainable, "name": self._cell.name, "aggregation": self.aggregation,
            "synchronization": self.synchronization, "constraint": self.constraint,
            "shape": self.shape,
        }  # fmt: skip
        return _unpickled, (np.asarray(of_copies(self).numpy()), settings)

    def ref(self) -> Reference:
        """Return a hashable key for this variable, equal to no other's, whatever their values.

        Example:
            >>> v, w = Variable(1.0), Variable(1.0)
            >>> v.ref() == v.ref(), v.ref() == w.ref(), v.ref().deref() is v
            (True, False, True)
        """
        return Reference(self)


def _unpickled(value: np.ndarray[Any, Any], settings: dict[str, Any]) -> Variable:
    """Return the variable of a pickle; it belongs to the strategy whose scope is entered."""
    made = Variable(value, **settings)
    if made._cell.component_count > 1:
        made.assign(value)
    return made


def _forward(name: str) -> Any:
    operation = getattr(Tensor, name)

    def unary(self: Any) -> Any:
        return operation(self._as_tensor())

    def binary(self: Any, other: Any) -> Any:
        return operation(self._as_tensor(), other)

    return unary if name in _UNARY else binary


def _getitem(self: Variable, key: Any) -> Tensor:
    """Return a part, whose `assign` changes the variable."""
    part: Any = self._as_tensor()[key]
    part._part_of = (self, key)
    return part  # type: ignore[no-any-return]


_UNARY = ("__neg__", "__abs__", "__float__", "__int__", "__bool__", "__len__")
for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "pow", "rpow", "neg", "abs", "matmul", "rmatmul", "lt", "le", "gt", "ge", "eq",
    "ne", "float", "int", "bool", "len",
):  # fmt: skip
    setattr(Variable, f"__{_name}__", _forward(f"__{_name}__"))
_cls: Any = Variable
_cls.__getitem__ = _getitem
