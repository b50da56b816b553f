"""The updates of Adam, AdamW and SGD, of all variables in one go.

Keras's `update_step` is called for each variable: it makes the factors that all variables share
anew, and each operation looks at its operands three times. Here is the same arithmetic in the same
order, so that the bits are the same, in the engine's operations; Keras's backend for PyTorch has
updates of whole lists for the same reason. `speed_patches` holds Keras to the text that is repeated
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import get_autocast_scope

from samegrad import _core
from samegrad._base.dtypes import is_plain_number
from samegrad._keras.conversion import cast, convert_to_tensor
from samegrad._keras.numpy.binary import divide, maximum, multiply, power, subtract
from samegrad._keras.numpy.elementwise import sqrt
from samegrad._keras.variable import Variable
from samegrad._tensor.conversion import Tensor

_Update = Callable[[Tensor, Any], None]
_ops = _core.ops
_FLOATS = ("float32", "float64")
_WITH_DENORMALS = (*_FLOATS, "bfloat16")


def flushed(value: Any, dtype: str) -> Tensor:
    """Convert to a dtype, with zeros of their signs in place of denormal numbers.

    An average that decays would stay denormal for ever, where processors are several times slower.
    float16 is computed in float32, where its numbers are normal.
    """
    tensor = convert_to_tensor(value, dtype)
    return _ops.flush_denormals(tensor) if dtype in _WITH_DENORMALS else tensor


def flushed_sum(a: Tensor, b: Any) -> Tensor:
    """Return `flushed(a + b)` in the dtype of `a`, computed in one loop."""
    b = convert_to_tensor(b, a._dtype)
    return _ops.flushed_sum(a, b) if a._dtype in _WITH_DENORMALS else a + b


def update_all(
    optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any], learning_rate: Any
) -> bool:
    """Update variables by the rule of the optimizer's class.

    Args:
        optimizer: Built for the variables.
        gradients: One per variable.
        variables: Of Keras.
        learning_rate: A number or scalar.

    Returns:
        Whether that is done. It is not where the rule is none of Keras's own that are known here,
        or something is not float32 or float64 of known sizes.
    """
    method = type(optimizer).update_step
    rule = _RULES.get((method.__module__, method.__qualname__))
    if rule is None or in_stateless_scope() or get_autocast_scope() is not None:
        return False
    if not all(map(_is_plain, gradients, variables)) or not _plain_factors(optimizer):
        return False
    updates: dict[str, _Update] = {}
    for gradient, variable in zip(gradients, variables, strict=True):
        dtype = variable._dtype
        if dtype not in updates:
            updates[dtype] = rule(optimizer, cast(learning_rate, dtype), dtype)
        updates[dtype](gradient, variable)
    return True


def _is_plain(gradient: Any, variable: Any) -> bool:
    return (
        type(gradient) is Tensor
        and not gradient._varying  # what is stored is then what is read
        and isinstance(variable, Variable)
        and type(variable).assign is Variable.assign
        and variable._value is not None
        and gradient._dtype == variable._dtype
        and variable._dtype in _FLOATS
        and gradient._shape == variable._shape
    )


def _plain_factors(optimizer: Any) -> bool:
    names = ("beta_1", "beta_2", "epsilon", "momentum")
    return all(is_plain_number(getattr(optimizer, name, 0.0)) for name in names)


def _adam(optimizer: Any, rate: Tensor, dtype: str) -> _Update:
    """Kingma and Ba (2014), algorithm 1, its corrections in the rate.

    m = flush(m + (g - m) (1 - β₁)), v = flush(v + (g² - v) (1 - β₂)),
    w = w - flush(rate m / (√v + ε)).
    """
    step = cast(optimizer.iterations + 1, dtype)
    powers = [power(cast(beta, dtype), step) for beta in (optimizer.beta_1, optimizer.beta_2)]
    factor = divide(multiply(rate, sqrt(subtract(1, powers[1]))), subtract(1, powers[0]))
    first = convert_to_tensor(1 - optimizer.beta_1, dtype)
    second = convert_to_tensor(1 - optimizer.beta_2, dtype)
    epsilon = convert_to_tensor(optimizer.epsilon, dtype)

    def update(gradient: Tensor, variable: Any) -> None:
        place = optimizer._get_variable_index(variable)
        old = optimizer._momentums[place].value
        mean = _ops.flushed_sum(old, _ops.mul(_ops.sub(gradient, old), first))
        old = optimizer._velocities[place].value
        square = _ops.flushed_sum(old, _ops.mul(_ops.sub(_ops.square(gradient), old), second))
        optimizer._momentums[place]._direct_assign(mean)
        optimizer._velocities[place]._direct_assign(square)
        if optimizer.amsgrad:
            largest = optimizer._velocity_hats[place]
            square = _ops.flush_denormals(maximum(largest.value, square))
            largest._direct_assign(square)
        change = _ops.div(_ops.mul(mean, factor), _ops.add(_ops.sqrt(square), epsilon))
        variable._direct_assign(_ops.sub_flushed(variable.value, change))

    return update


def _sgd(optimizer: Any, rate: Tensor, dtype: str) -> _Update:
    """Gradient descent, with momentum of Polyak (1964) or Nesterov (1983).

    w = w - flush(rate g); with momentum, s = flush(μ s - rate g) and w = w + s, or, of Nesterov,
    w = w + flush(μ s - rate g).
    """
    if optimizer.momentum == 0:
        return lambda gradient, variable: variable._direct_assign(
            _ops.sub_flushed(variable.value, _ops.mul(gradient, rate))
        )
    momentum, downhill = cast(optimizer.momentum, dtype), _ops.neg(rate)

    def update(gradient: Tensor, variable: Any) -> None:
        step = _ops.mul(gradient, downhill)
        speed = optimizer.momentums[optimizer._get_variable_index(variable)]
        change = _ops.flushed_sum(_ops.mul(speed.value, momentum), step)
        speed._direct_assign(change)
        if optimizer.nesterov:
            change = _ops.flushed_sum(_ops.mul(change, momentum), step)
        variable._direct_assign(_ops.add(variable.value, change))

    return update


# By the module and the name of the `update_step` that they repeat.
_RULES: dict[tuple[str, str], Callable[[Any, Tensor, str], _Update]] = {
    ("keras.src.optimizers.adam", "Adam.update_step"): _adam,
    ("keras.src.optimizers.sgd", "SGD.update_step"): _sgd,
}
