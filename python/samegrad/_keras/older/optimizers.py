"""Optimizers as older programs spell them: methods of all, and the names of two modules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from keras.src.optimizers.schedules.learning_rate_schedule import InverseTimeDecay

import samegrad as tf
from samegrad._autodiff.variable import Variable as EngineVariable
from samegrad._autodiff.variable import trainable_paths
from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._base.tracebacks import user_frames_only
from samegrad._base.tree import flatten
from samegrad._context import state as _context
from samegrad._keras.loss_scale import make_scale
from samegrad._keras.whole import changing
from samegrad._tensor.tensor import convert_to_tensor

# Slots of TensorFlow and where Keras's optimizers keep them, the first that an optimizer has.
_SLOTS = {
    "accumulator": ("_accumulators",),
    "accum_grad": ("_accumulated_grads",),
    "accum_var": ("_accumulated_delta_vars",),
    "average": ("_model_variables_moving_average",),
    "linear": ("_linears",),
    "m": ("_momentums", "_m"),
    "mg": ("_average_gradients",),
    "momentum": ("_momentums", "momentums"),
    "rms": ("_velocities",),
    "v": ("_velocities", "_u"),
    "vhat": ("_velocity_hats",),
}


_MOST_PATHS = 20  # in a message


class CallableList(list[Any]):
    """A list that may be called, as where `optimizer.variables` was a method.

    Example:
        >>> CallableList([1, 2])()
        [1, 2]
    """

    def __call__(self) -> CallableList:
        """The list itself."""
        return self


class OlderOptimizer:
    """The mix-in of Keras's optimizers."""

    learning_rate: Any
    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        variables = cls.__dict__.get("variables")
        if isinstance(variables, property):
            setattr(cls, "variables", _callable(variables))  # noqa: B010

    def __init__(self, learning_rate: Any = 0.001, *args: Any, **kwargs: Any) -> None:
        rate = _rate(type(self).__name__, learning_rate, kwargs)
        super().__init__(rate, *args, **kwargs)  # type: ignore[call-arg]

    @property
    def variables(self) -> CallableList:
        """All variables of the optimizer."""
        return CallableList(super().variables)  # type: ignore[misc]

    @property
    def lr(self) -> Any:
        """The learning rate."""
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @user_frames_only
    def minimize(
        self,
        loss: Any,
        var_list: Any,
        grad_loss: Any = None,
        name: str | None = None,
        tape: Any = None,
    ) -> Any:
        """Computes the gradients of a loss, and applies them.

        Args:
            loss: A function without arguments that computes it; or the loss itself, with `tape`,
                or inside a function that is traced (`strategy.run`, `tf.function`), which knows
                what the loss was computed from.
            var_list: The variables, those that are not trainable included; or a function that
                returns variables, of which the trainable ones are trained.
            grad_loss: Gradients of the loss; None stands for ones.
            name: Not used.
            tape: What recorded the loss.

        Returns:
            How many updates were made, a variable.

        Raises:
            ValueError: The loss is a tensor, but there is no tape and nothing is traced; or there
                are no variables, or the loss was computed from none of them.
            TypeError: `tape` is none, or `var_list` no list of variables.

        Example:
            >>> v = tf.Variable(3.0)
            >>> optimizer = tf.keras.optimizers.SGD(0.5)
            >>> step = tf.function(lambda: optimizer.minimize(v * v, var_list=[v]))
            >>> int(step()), float(v)
            (1, 0.0)
        """
        gradients, variables = self._differentiated(loss, var_list, grad_loss, tape)
        return self.apply_gradients(zip(gradients, variables, strict=True))  # type: ignore[attr-defined]

    @user_frames_only
    def compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> list[tuple[Any, Any]]:
        """The pairs of gradients and variables that `apply_gradients` takes.

        Args: see `minimize`.
        """
        gradients, variables = self._differentiated(loss, var_list, grad_loss, tape)
        return list(zip(self._for_users(gradients), variables, strict=True))

    def get_weights(self) -> list[Any]:
        """The values of the optimizer's variables, NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights: Any) -> None:
        """Assigns what `get_weights` gave, all of it or nothing."""
        with changing(self.variables):
            super().set_weights(weights)  # type: ignore[misc]

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """What is kept beside a variable: "m" and "v" of Adam, "momentum" of SGD.

        Raises:
            ValueError: There is none; the names of those that there are.
        """
        owner: Any = getattr(self, "inner_optimizer", self)
        places = {**owner._trainable_variables_indices}
        place = places.get(owner._var_key(var))
        found = {
            name: getattr(owner, attribute)
            for name, attributes in _SLOTS.items()
            for attribute in attributes
            if getattr(owner, attribute, None)
        }
        if place is None or slot_name not in found:
            known = ", ".join(found) if place is not None and found else "none"
            raise ValueError(
                f"[{self.name}] there is no slot {slot_name!r} of {shown(var)}: there is {known}; "
                "build the optimizer before, and see optimizer.variables."
            )
        return found[slot_name][place]

    def get_slot_names(self) -> list[str]:
        """The names that `get_slot` knows."""
        owner: Any = getattr(self, "inner_optimizer", self)
        return [
            name for name, held in _SLOTS.items() if any(getattr(owner, key, None) for key in held)
        ]

    def _for_users(self, gradients: list[Any]) -> list[Any]:
        return gradients

    def _differentiated(
        self, loss: Any, var_list: Any, grad_loss: Any, tape: Any
    ) -> tuple[list[Any], list[Any]]:
        if tape is not None and not isinstance(tape, tf.GradientTape):
            raise TypeError(
                f"[{self.name}] minimize needs the tape as a GradientTape: got {shown(tape)}; "
                "pass tape=, or the loss as a function."
            )
        if callable(loss):
            with tf.GradientTape() if tape is None else tape as tape:
                watched = not callable(var_list)
                if watched:
                    variables = self._to_train(var_list)
                    tape.watch(variables)
                loss = loss()
                if not watched:
                    variables = self._to_train(var_list())
        else:
            variables = self._to_train(var_list() if callable(var_list) else var_list)
            tape = self._program_tape(loss, variables) if tape is None else tape
        targets = [convert_to_tensor(part) for part in flatten(loss)]
        if grad_loss is None:
            seeds = [tf.ones_like(target) for target in targets]
        else:
            seeds = [convert_to_tensor(part) for part in flatten(grad_loss)]
        scaled = [self.scale_loss(seed) for seed in seeds]  # type: ignore[attr-defined]
        gradients: list[Any] = tape.gradient(targets, variables, scaled)
        return gradients, variables

    def _to_train(self, variables: Any) -> list[Any]:
        if isinstance(variables, str) or not isinstance(variables, Iterable):
            raise TypeError(
                f"[{self.name}] minimize needs a list of variables: got {shown(variables)}; pass "
                "model.trainable_variables."
            )
        found: list[Any] = list(variables)
        check_some(self.name, found)
        return found

    def _program_tape(self, loss: Any, variables: list[Any]) -> Any:
        """What recorded the loss, if that is of a program that is being traced."""
        tape = _context.current().program_tape
        if tape is None:
            raise ValueError(
                f"[{self.name}] minimize needs the tape that recorded the loss, or the loss as a "
                f"function: got {shown(loss)} outside of what is traced; write minimize(lambda: "
                "..., var_list) or pass tape=, or do both inside strategy.run or a tf.function."
            )
        tape.watch(variables)
        return tape


def check_some(name: str, variables: list[Any]) -> None:
    """Whether there is something to train: a selection by name that found nothing is an error.

    Raises:
        ValueError: There is nothing; the paths of what there is.
    """
    if variables:
        return
    paths = trainable_paths()
    listed = ("..., " if len(paths) > _MOST_PATHS else "") + ", ".join(paths[-_MOST_PATHS:])
    raise ValueError(
        f"[{name}] there must be variables to train: got none of the trainable ones "
        f"({listed or 'there are none yet'}). The name of a layer's variable is that of its role, "
        "as 'kernel': select by path, as v.path.startswith('generator/')."
    )


class OlderLossScaleOptimizer:
    """The mix-in of Keras's LossScaleOptimizer.

    Keras 3 divides the gradients by the scale itself. Older programs do it by hand: then it does
    not, until a loss is scaled again.
    """

    _by_hand = False

    @property
    def dynamic(self) -> bool:
        """Whether the scale changes: always."""
        return True

    @property
    def loss_scale(self) -> Any:
        """The scale as it is now, a float32 scalar."""
        return convert_to_tensor(_scale(self))

    @property
    def dynamic_counter(self) -> Any:
        """How many good steps there were since the scale changed."""
        _scale(self)
        return self.step_counter  # type: ignore[attr-defined]

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss times the scale; of a function, a function."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return self.scale_loss(convert_to_tensor(loss))  # type: ignore[attr-defined]

    def get_unscaled_gradients(self, grads: Any) -> list[Any]:
        """The gradients of a scaled loss divided by the scale, for `apply_gradients`."""
        if isinstance(grads, np.ndarray):
            raise TypeError(
                f"[LossScaleOptimizer.get_unscaled_gradients] a list of gradients is needed: got "
                f"{shown(grads)}; pass what tape.gradient gave."
            )
        scale = self.loss_scale
        divided = [None if g is None else _divided(convert_to_tensor(g), scale) for g in grads]
        _set(self, by_hand=True)
        return divided

    def set_weights(self, weights: Any) -> None:
        """Assigns what `get_weights` gave."""
        own = len(self._variables)  # type: ignore[attr-defined]
        super().set_weights(weights[:own])  # type: ignore[misc]
        self.inner_optimizer.set_weights(weights[own:])  # type: ignore[attr-defined]

    def _for_users(self, gradients: list[Any]) -> list[Any]:
        return self.get_unscaled_gradients(gradients)


def divisor(optimizer: Any) -> Any:
    """What a LossScaleOptimizer divides the gradients by that it is given."""
    return 1.0 if optimizer._by_hand else optimizer.dynamic_scale


def scaling(optimizer: Any) -> None:
    """Before a loss is scaled: `apply` divides the gradients, unless they are divided by hand."""
    _scale(optimizer)
    _set(optimizer, by_hand=False)


def _set(optimizer: Any, *, by_hand: bool) -> None:
    object.__setattr__(optimizer, "_by_hand", by_hand)


def _scale(optimizer: Any) -> Any:
    make_scale(optimizer)
    return optimizer.dynamic_scale


def _divided(gradient: Any, scale: Any) -> Any:
    return gradient / tf.cast(scale, gradient.dtype)


def _callable(variables: property) -> property:
    def listed(self: Any) -> CallableList:
        assert variables.fget is not None
        return CallableList(variables.fget(self))

    return property(listed, doc=variables.__doc__)


def _rate(who: str, rate: Any, arguments: dict[str, Any]) -> Any:
    """The learning rate as Keras 3 takes it, of `lr` and `decay`, too."""
    if "lr" in arguments:
        warn(f"[{who}] lr is the older name of learning_rate: write learning_rate=.")
        rate = arguments.pop("lr")
    decay = arguments.pop("decay", None)
    if isinstance(rate, EngineVariable):
        held = rate
        rate = lambda: held._as_tensor()  # noqa: E731
    elif isinstance(rate, int | np.number) and not isinstance(rate, bool):
        rate = float(rate)
    if not decay:
        return rate
    if not isinstance(rate, float):
        raise ValueError(
            f"[{who}] decay needs a learning rate that is a number: got {shown(rate)}; give a "
            "schedule that decays."
        )
    warn(
        f"[{who}] decay is an older argument: write learning_rate=schedules.InverseTimeDecay(...)."
    )
    return InverseTimeDecay(rate, decay_steps=1, decay_rate=decay)
