"""The base of all optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from samegrad import _core
from samegrad._context import get_replica_context, init_scope
from samegrad._location import warn
from samegrad._scaling_check import note_use
from samegrad._shown import shown
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad._variable import Variable, step_of
from samegrad.keras._names import snake_case
from samegrad.keras.initializers import Zeros
from samegrad.keras.optimizers._clipping import Clipping
from samegrad.keras.optimizers._learning_rate import LearningRate
from samegrad.nn._loss_scaling import all_reduce_sum
from samegrad.train._trackable import restore_pending

_ops = _core.ops


class VariableList(list):  # type: ignore[type-arg]
    """Variables, as a list and as a function that returns it: TensorFlow has had both.

    Example:
        >>> VariableList([1])() == [1]
        True
    """

    def __call__(self) -> VariableList:
        return self


def pairs_of(grads_and_vars: Iterable[Any]) -> list[tuple[Any, Variable]]:
    """The gradients with their variables.

    Raises:
        TypeError: There is something else among them.
    """
    pairs = list(grads_and_vars) if isinstance(grads_and_vars, Iterable) else [grads_and_vars]
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(
                "[apply_gradients] pairs of a gradient and a variable are needed: got "
                f"{shown(pair)}; pass zip(gradients, variables)."
            )
    _variables([variable for _, variable in pairs])
    return pairs


def _variables(given: Iterable[Any]) -> list[Variable]:
    variables = list(given) if isinstance(given, Iterable) else [given]
    for variable in variables:
        if not getattr(variable, "_is_variable", False):
            raise TypeError(
                f"[optimizer] variables are needed: got {type(variable).__name__} "
                f"{shown(variable)}; pass model.trainable_variables."
            )
    return variables


def not_among(known: Iterable[Variable], variables: Iterable[Variable]) -> list[Variable]:
    """The variables that are not among those known, by identity.

    Example:
        >>> v = Variable(1.0)
        >>> not_among([v], [v])
        []
    """
    numbers = {id(variable) for variable in known}
    return [variable for variable in variables if id(variable) not in numbers]


def check_on_replica(who: str, needs: str) -> None:
    """RuntimeError in cross-replica context."""
    if get_replica_context() is None:
        raise RuntimeError(
            f"[{who}] {needs}: got called in cross-replica context; call it in the function given "
            "to strategy.run."
        )


def _slot(variable: Variable, name: str) -> Variable:
    zeros = Zeros()(tuple(variable.shape), dtype=variable.dtype)
    label = f"{variable.name.partition(':')[0]}/{name}"
    return Variable(zeros, trainable=False, name=label)


class Optimizer:
    """Base: subclass it, name the slots in `_slot_names`, compute in `_update`.

    `apply_gradients` sums the gradients over the replicas, then limits them, then updates each
    variable once, in this order.

    Args:
        learning_rate: A number, a variable, a schedule, or a function of the number of steps.
        name: None: the class name.
        clipnorm: Each gradient is scaled so that its norm is at most this.
        clipvalue: Each element is cut to [-clipvalue, clipvalue].
        global_clipnorm: All gradients are scaled so that the norm of all together is at most this.

    Raises:
        ValueError: A number is out of range.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable(1.0)
        >>> tf.keras.optimizers.SGD(0.25).apply_gradients([(tf.constant(2.0), w)])
        >>> float(w.numpy())
        0.5
    """

    # Names of the variables that the optimizer keeps beside each one that it trains.
    _slot_names: tuple[str, ...] = ()

    def __init__(
        self,
        learning_rate: Any,
        name: str | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        self.name = name or snake_case(type(self).__name__)
        self._clipping = Clipping(clipnorm, clipvalue, global_clipnorm)
        self._learning_rate = LearningRate(learning_rate)
        self._trained: list[Variable] = []
        self._slots: dict[str, list[Variable]] = {slot: [] for slot in self._slot_names}
        with init_scope():
            zero = convert_to_tensor(0, "int64")
            self.iterations = Variable(zero, trainable=False, name="iterations")

    # For subclasses to define.

    def _prepare(self, step: Tensor) -> Any:
        """Numbers that the updates of all variables share, computed once.

        Args:
            step: The number of this step, from 1, an int64 scalar.
        """
        return None

    def _update(
        self, gradient: Tensor, variable: Tensor, slots: Mapping[str, Tensor], shared: Any
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The new values of a variable and of its slots, all in the variable's dtype."""
        raise NotImplementedError(f"[{type(self).__name__}] define _update.")

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with; the learning rate as it is now."""
        clip = self._clipping
        return {
            "name": self.name,
            "learning_rate": self._learning_rate.config(),
            "clipnorm": clip.clipnorm,
            "clipvalue": clip.clipvalue,
            "global_clipnorm": clip.global_clipnorm,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Optimizer:
        """An optimizer made with these arguments."""
        return cls(**config)

    # What users read and set.

    @property
    def learning_rate(self) -> Any:
        """The learning rate: a variable, which may be assigned to, or a function's value."""
        return self._learning_rate.read(convert_to_tensor(self.iterations))

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._learning_rate = self._learning_rate.set(value)

    @property
    def lr(self) -> Any:
        """The learning rate."""
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @property
    def clipnorm(self) -> float | None:
        """Limit of each gradient's norm."""
        return self._clipping.clipnorm

    @property
    def clipvalue(self) -> float | None:
        """Limit of each element."""
        return self._clipping.clipvalue

    @property
    def global_clipnorm(self) -> float | None:
        """Limit of the norm of all gradients together."""
        return self._clipping.global_clipnorm

    @property
    def variables(self) -> VariableList:
        """All variables of the optimizer: iterations, learning rate, slots."""
        rate = self._learning_rate.variable
        own = [self.iterations] + ([] if rate is None else [rate])
        return VariableList(own + [v for slots in self._slots.values() for v in slots])

    def get_slot(self, variable: Variable, name: str) -> Variable:
        """A variable that the optimizer keeps beside one that it trains.

        Raises:
            ValueError: There is none.
        """
        for trained, slot in zip(self._trained, self._slots.get(name, []), strict=False):
            if trained is variable:
                return slot
        raise ValueError(
            f"[{self.name}] no slot {name!r} of {variable.name}: there are "
            f"{', '.join(self._slots) or 'none'}, for {len(self._trained)} variables; slots are "
            "made by build() or at the first step."
        )

    # Training.

    def build(self, var_list: Iterable[Variable]) -> None:
        """Creates the slots of variables, zeros of their shape and dtype.

        `apply_gradients` does it where it is still to be done.

        Args:
            var_list: The variables.
        """
        new = not_among(self._trained, _variables(var_list))
        if not new:
            return
        with init_scope(), _core.all_or_nothing(self):
            self._slots = {
                name: [*slots, *(_slot(variable, name) for variable in new)]
                for name, slots in self._slots.items()
            }
            self._trained = [*self._trained, *new]
            restore_pending(self)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Tensor | None, Variable]],
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
        experimental_aggregate_gradients: bool = True,
    ) -> None:
        """Updates variables by their gradients, once for all replicas.

        Args:
            grads_and_vars: Pairs of a replica's gradient and a variable. Gradients that are None
                are left out, with a warning.
            name: Not used.
            skip_gradients_aggregation: The gradients are summed over the replicas already.
            experimental_aggregate_gradients: The contrary of `skip_gradients_aggregation`.

        Raises:
            RuntimeError: Called in cross-replica context.
            ValueError: All gradients are None, or one has not its variable's shape.
        """
        aggregate = experimental_aggregate_gradients and not skip_gradients_aggregation
        pairs = self._connected(pairs_of(grads_and_vars))
        gradients, variables = self._reduced(pairs, aggregate)
        with step_of(*variables, *self.variables):
            self._assign_updates(gradients, variables)

    def minimize(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Sequence[Variable] | Callable[[], Sequence[Variable]],
        tape: Any = None,
    ) -> None:
        """Computes the gradients of a loss and applies them.

        Args:
            loss: A function that computes it, or, with `tape`, the loss.
            var_list: The variables, or a function that returns them.
            tape: The tape that recorded the loss.

        Raises:
            ValueError: The loss is a tensor, but there is no tape.

        Example:
            >>> import samegrad as tf
            >>> w = tf.Variable(3.0)
            >>> tf.keras.optimizers.SGD(0.5).minimize(lambda: w * w, [w])
            >>> float(w.numpy())
            0.0
        """
        from samegrad import GradientTape

        if tape is not None and not isinstance(tape, GradientTape):
            raise TypeError(
                f"[{self.name}] minimize needs the tape as a GradientTape: got {shown(tape)}; "
                "pass tape=, or the loss as a function."
            )
        if callable(loss):
            tape = tape or GradientTape()
            with _core.recording(tape):
                loss = loss()
        elif tape is None:
            raise ValueError(
                f"[{self.name}] minimize needs the tape that recorded the loss, or the loss as a "
                "function."
            )
        variables = var_list() if callable(var_list) else var_list
        if not isinstance(variables, Iterable):
            raise TypeError(
                f"[{self.name}] minimize needs a list of variables: got {shown(variables)}; pass "
                "model.trainable_variables."
            )
        gradients = self._differentiate(tape, loss, list(variables))
        self.apply_gradients(zip(gradients, variables, strict=True))

    def _differentiate(self, tape: Any, loss: Any, variables: list[Variable]) -> Any:
        """The gradients that `minimize` applies."""
        return tape.gradient(loss, variables)

    def _reduced(
        self, pairs: Sequence[tuple[Tensor, Variable]], aggregate: bool
    ) -> tuple[list[Tensor], list[Variable]]:
        """The gradients, summed over the replicas, and their variables, whose slots exist."""
        check_on_replica(self.name, "apply_gradients needs a replica's gradients")
        variables = [variable for _, variable in pairs]
        self.build(variables)
        gradients = [self._checked(gradient, variable) for gradient, variable in pairs]
        return (all_reduce_sum(gradients) if aggregate else gradients), variables

    def _connected(
        self, pairs: Sequence[tuple[Tensor | None, Variable]]
    ) -> list[tuple[Tensor, Variable]]:
        """The pairs that have a gradient."""
        found = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        missing = [variable.name for gradient, variable in pairs if gradient is None]
        if not found:
            raise ValueError(
                f"[{self.name}] no variable has a gradient: got {', '.join(missing) or 'no pairs'};"
                " is the loss computed from the variables, inside the tape?"
            )
        if missing:
            warn(
                f"[{self.name}] the loss does not depend on {', '.join(missing)}: left as they are."
            )
        return found

    def _checked(self, gradient: Tensor, variable: Variable) -> Tensor:
        tensor = convert_to_tensor(gradient)
        if tensor._shape != variable._cell._shape:
            raise ValueError(
                f"[{self.name}] a gradient must have its variable's shape: got "
                f"{tuple(tensor._shape)} for {variable.name} of shape {tuple(variable.shape)}."
            )
        kind = variable._cell._dtype
        return tensor if tensor._dtype == kind else _ops.cast(tensor, dtype=kind)

    def _assign_updates(
        self,
        gradients: Sequence[Tensor],
        variables: Sequence[Variable],
        accepted: Tensor | None = None,
    ) -> None:
        """Limits the gradients and makes the step.

        Args:
            gradients: Of all replicas together.
            variables: One for each.
            accepted: A bool scalar; where it is False, everything keeps its value.
        """

        def chosen(new: Tensor, old: Tensor) -> Tensor:
            return new if accepted is None else _ops.select(accepted, new, old)

        for gradient in gradients:
            note_use("gradient", gradient)
        done = convert_to_tensor(self.iterations)
        shared = self._prepare(done + 1)
        places = {id(variable): place for place, variable in enumerate(self._trained)}
        for gradient, variable in zip(self._clipping(gradients), variables, strict=True):
            place = places[id(variable)]
            slots = {name: held[place] for name, held in self._slots.items()}
            values = {name: convert_to_tensor(slot) for name, slot in slots.items()}
            old = convert_to_tensor(variable)
            new, new_slots = self._update(gradient, old, values, shared)
            for name, value in new_slots.items():
                slots[name].assign(chosen(value, values[name]))
            variable.assign(chosen(new, old))
        self.iterations.assign(chosen(done + 1, done))

    def _rate(self) -> Tensor:
        """The learning rate of this step, a float64 scalar."""
        rate = self._learning_rate.at(convert_to_tensor(self.iterations))
        return _ops.cast(rate, dtype="float64")

    # Checkpoints.

    def _checkpoint_state(self) -> Mapping[str, Any]:
        rate = self._learning_rate.variable
        state: dict[str, Any] = {"iterations": self.iterations}
        if rate is not None:
            state["learning_rate"] = rate
        return {**state, **{f"slots_{name}": slots for name, slots in self._slots.items()}}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("an optimizer has no values beside its variables")
