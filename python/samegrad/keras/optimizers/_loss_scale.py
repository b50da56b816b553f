"""Loss scaling: small gradients are lifted out of the range where floats lose them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._context import get_replica_context, init_scope
from samegrad._nest import flatten
from samegrad._shown import shown
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad._variable import Variable
from samegrad.keras._registry import find
from samegrad.keras.optimizers._clipping import tree_sum
from samegrad.keras.optimizers._optimizer import Optimizer, VariableList

_ops = _core.ops


class LossScaleOptimizer(Optimizer):
    """Another optimizer, for a loss that is multiplied by a scale.

    The loss is multiplied before it is differentiated, the gradients are divided after it, so that
    small gradients do not vanish in between. With `dynamic`, a step whose gradients are not all
    finite, on whichever replica, is skipped on all of them: variables, slots and `iterations` stay
    as they are, and the scale is halved, to 1 at the least. After `dynamic_growth_steps` good steps
    in a row it is doubled, unless that were infinite. A scale that is a power of two changes no bit
    of the steps that are made.

    `apply_gradients` takes gradients from `get_unscaled_gradients`, as tf.keras has it. After
    `scale_loss` it divides by the scale itself, as Keras 3 has it. `minimize` does everything.

    Args:
        inner_optimizer: The optimizer that makes the steps.
        dynamic: Whether the scale changes. If not, gradients are not looked at: those that are not
            finite reach the variables.
        initial_scale: The first scale, or the fixed one, at least 1.
        dynamic_growth_steps: After so many good steps the scale is doubled. Not used without
            `dynamic`.

    Raises:
        TypeError: `inner_optimizer` is none, or scales losses itself; `dynamic` is no bool.
        ValueError: A number is out of range.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable(1.0)
        >>> optimizer = LossScaleOptimizer(tf.keras.optimizers.SGD(0.25), initial_scale=1024)
        >>> with tf.GradientTape() as tape:
        ...     scaled = optimizer.get_scaled_loss(w * w)
        >>> gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, [w]))
        >>> optimizer.apply_gradients(zip(gradients, [w]))
        >>> float(scaled), float(w.numpy())
        (1024.0, 0.5)
    """

    def __init__(
        self,
        inner_optimizer: Optimizer,
        dynamic: bool = True,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int | None = 2000,
    ) -> None:
        # Not super().__init__(): steps, learning rate and slots are the inner optimizer's.
        self._inner = _checked_inner(inner_optimizer)
        self.name = inner_optimizer.name
        self.iterations = inner_optimizer.iterations
        self._clipping = inner_optimizer._clipping
        self._initial_scale = _checked_scale(initial_scale)
        self._growth_steps = _checked_steps(dynamic_growth_steps) if _is_true(dynamic) else None
        self._scale: Variable | None = None
        self._counter: Variable | None = None
        self._unscales = False  # whether scale_loss was used, and not what comes with it
        if dynamic:
            with init_scope():
                scale = convert_to_tensor(self._initial_scale, "float32")
                self._scale = Variable(scale, trainable=False, name="loss_scale")
                zero = convert_to_tensor(0, "int64")
                self._counter = Variable(zero, trainable=False, name="dynamic_counter")

    # What users read and set.

    @property
    def inner_optimizer(self) -> Optimizer:
        """The optimizer that makes the steps."""
        return self._inner

    @property
    def dynamic(self) -> bool:
        """Whether the scale changes."""
        return self._scale is not None

    @property
    def loss_scale(self) -> Tensor:
        """The scale as it is now, a float32 scalar."""
        now = self._initial_scale if self._scale is None else self._scale
        return convert_to_tensor(now, "float32")

    @property
    def initial_scale(self) -> float:
        """The first scale, or the fixed one."""
        return self._initial_scale

    @property
    def dynamic_growth_steps(self) -> int | None:
        """After so many good steps the scale is doubled; None if it is fixed."""
        return self._growth_steps

    @property
    def dynamic_counter(self) -> Variable | None:
        """How many good steps there were since the scale changed; None if it is fixed."""
        return self._counter

    @property
    def learning_rate(self) -> Any:
        """The inner optimizer's learning rate."""
        return self._inner.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._inner.learning_rate = value

    @property
    def variables(self) -> VariableList:
        """Scale and counter, then the inner optimizer's variables."""
        own = [v for v in (self._scale, self._counter) if v is not None]
        return VariableList(own + self._inner.variables)

    def get_slot(self, variable: Variable, name: str) -> Variable:
        """A variable that the inner optimizer keeps beside one that it trains.

        Raises:
            ValueError: There is none.
        """
        return self._inner.get_slot(variable, name)

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with; the inner optimizer's as they are now."""
        inner = {"class_name": type(self._inner).__name__, "config": self._inner.get_config()}
        return {
            "inner_optimizer": inner,
            "dynamic": self.dynamic,
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        custom_objects: Mapping[str, type[Optimizer]] | None = None,
    ) -> LossScaleOptimizer:
        """An optimizer made with these arguments.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes of optimizers that are not samegrad's, by name.

        Raises:
            ValueError: The inner optimizer's class is not known.
        """
        from samegrad.keras import optimizers

        if "inner_optimizer" not in config:
            raise ValueError(
                "[LossScaleOptimizer.from_config] the config must have 'inner_optimizer': got "
                f"{shown(config)}; pass what get_config returned."
            )
        names: dict[str, Any] = {name: getattr(optimizers, name) for name in optimizers.__all__}
        inner = find("Optimizer", {**names, **(custom_objects or {})}, config["inner_optimizer"])
        return cls(**{**config, "inner_optimizer": inner})

    # Training.

    def get_scaled_loss(self, loss: TensorLike | Callable[[], TensorLike]) -> Any:
        """The loss times the scale; of a function, a function.

        Args:
            loss: A loss, or a function without arguments that computes it.
        """
        self._unscales = False
        return self._scaled(loss)

    def scale_loss(self, loss: TensorLike | Callable[[], TensorLike]) -> Any:
        """The loss times the scale, for gradients that `apply_gradients` divides by it.

        Args:
            loss: A loss, or a function without arguments that computes it.

        Example:
            >>> import samegrad as tf
            >>> w, optimizer = tf.Variable(1.0), LossScaleOptimizer(tf.keras.optimizers.SGD(0.25))
            >>> with tf.GradientTape() as tape:
            ...     scaled = optimizer.scale_loss(w * w)
            >>> optimizer.apply_gradients([(tape.gradient(scaled, w), w)])
            >>> float(w.numpy())
            0.5
        """
        self._unscales = True
        return self._scaled(loss)

    def get_unscaled_gradients(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients divided by the scale; None stays None.

        Args:
            grads: Gradients of a scaled loss.
        """
        if isinstance(grads, np.ndarray):
            raise TypeError(
                "[LossScaleOptimizer.get_unscaled_gradients] a list of gradients is needed: got "
                f"{shown(grads)}; pass what tape.gradient gave."
            )
        self._unscales = False
        return [None if gradient is None else self._unscaled(gradient) for gradient in grads]

    def build(self, var_list: Iterable[Variable]) -> None:
        """Creates the inner optimizer's slots."""
        self._inner.build(var_list)

    def _assign_updates(
        self,
        gradients: Sequence[Tensor],
        variables: Sequence[Variable],
        accepted: Tensor | None = None,
    ) -> None:
        """The inner optimizer's step, if the gradients of all replicas are finite."""
        if self._unscales:
            gradients = [self._unscaled(gradient) for gradient in gradients]
        if self._scale is not None:
            accepted = _all_finite(gradients)
        self._inner._assign_updates(gradients, variables, accepted)
        if accepted is not None:
            self._adapt(accepted)

    def _differentiate(self, tape: Any, loss: Any, variables: list[Variable]) -> Any:
        targets = [convert_to_tensor(target) for target in flatten(loss)]
        ones = [_ops.full_like(target, value=1.0) for target in targets]
        gradients = tape.gradient(targets, variables, [self._scaled(one) for one in ones])
        return self.get_unscaled_gradients(gradients)

    def _scaled(self, loss: Any) -> Any:
        if callable(loss):
            return lambda: self._scaled(loss())
        tensor = convert_to_tensor(loss)
        return tensor * _ops.cast(self.loss_scale, dtype=tensor._dtype)

    def _unscaled(self, gradient: Tensor) -> Tensor:
        # Divided: the reciprocal of a large scale may be too small for a float.
        tensor = convert_to_tensor(gradient)
        return tensor / _ops.cast(self.loss_scale, dtype=tensor._dtype)

    def _adapt(self, accepted: Tensor) -> None:
        """The scale and the counter after a step that was made, or skipped."""
        assert self._scale is not None and self._counter is not None
        scale, count = self.loss_scale, convert_to_tensor(self._counter) + 1
        enough = count >= self._growth_steps
        double = scale * 2.0
        grown = _ops.select(_ops.logical_and(enough, _ops.is_finite(double)), double, scale)
        halved = _ops.maximum(scale * 0.5, convert_to_tensor(1.0, "float32"))
        self._scale.assign(_ops.select(accepted, grown, halved))
        goes_on = _ops.logical_and(accepted, _ops.logical_not(enough))
        self._counter.assign(_ops.select(goes_on, count, convert_to_tensor(0, "int64")))

    # Checkpoints.

    def _checkpoint_state(self) -> Mapping[str, Any]:
        state: dict[str, Any] = {"inner_optimizer": self._inner}
        if self._scale is not None:
            state |= {"loss_scale": self._scale, "dynamic_counter": self._counter}
        return state


def _all_finite(gradients: Sequence[Tensor]) -> Tensor:
    """Whether all elements of all gradients are finite, on all replicas: a bool scalar."""
    each = [_ops.reduce_all(_ops.is_finite(g), axes=tuple(range(g._rank))) for g in gradients]
    finite: Tensor = tree_sum(each, _ops.logical_and)
    context = get_replica_context()
    if context is None or not finite._varying:
        return finite
    # Of variables with a copy per replica: still no replica may skip a step alone.
    bad = context.all_reduce("sum", _ops.cast(_ops.logical_not(finite), dtype="float32"))
    return _ops.equal(bad, convert_to_tensor(0.0, "float32"))


def _checked_inner(inner: object) -> Optimizer:
    if not isinstance(inner, Optimizer) or isinstance(inner, LossScaleOptimizer):
        raise TypeError(
            "[LossScaleOptimizer] inner_optimizer must be an optimizer that does not scale losses "
            f"itself: got {shown(inner)}; give e.g. samegrad.keras.optimizers.Adam()."
        )
    return inner


def _is_true(dynamic: object) -> bool:
    if not isinstance(dynamic, bool | np.bool_):
        raise TypeError(
            f"[LossScaleOptimizer] dynamic must be True or False: got {shown(dynamic)}; for a "
            "fixed scale give dynamic=False, initial_scale=1024."
        )
    return bool(dynamic)


def _checked_scale(scale: Any) -> float:
    try:
        number = float(scale)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 1.0 <= number <= float(np.finfo(np.float32).max):
        raise ValueError(
            f"[LossScaleOptimizer] initial_scale must be a float32 of at least 1: got "
            f"{shown(scale)}; powers of two change no bits, e.g. 2**15."
        )
    return number


def _checked_steps(steps: Any) -> int:
    try:
        number = 0 if isinstance(steps, bool) else operator.index(steps)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(
            "[LossScaleOptimizer] dynamic_growth_steps must be a whole number of at least 1: got "
            f"{steps!r}."
        )
    return number
