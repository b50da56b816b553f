"""Functions of `tf.compat.v1` that version 2 lacks."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from samegrad._autodiff.variable import Variable, unwrapped
from samegrad._base.dtypes import as_dtype
from samegrad._base.logger import get_logger
from samegrad._base.tree import map_structure
from samegrad._context.scopes import inside_function
from samegrad._control.control_flow import while_loop as _while_loop
from samegrad._ops.arrays import cast, reshape, stop_gradient
from samegrad._ops.complex_arrays import identity
from samegrad._ops.text_arrays import where as _where
from samegrad._surface.missing_names import missing_attribute
from samegrad._tensor.complex_tensor import is_complex
from samegrad._tensor.dimension import Dimension
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.compat._namespace import add_own
from samegrad.math import floordiv, truediv
from samegrad.nn._cross_entropy import (
    softmax_cross_entropy_with_logits as _softmax_cross_entropy,
)
from samegrad.nn._regularization import dropout as _dropout


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """Do nothing: programs are eager.

    Args:
        config: Ignored.
        device_policy: Ignored.
        execution_mode: Ignored.
    """


def enable_v2_behavior() -> None:
    """Do nothing: samegrad behaves as version 2."""


def enable_resource_variables() -> None:
    """Do nothing: variables are resources."""


def resource_variables_enabled() -> bool:
    """Return True: variables are resources."""
    return True


def enable_v2_tensorshape() -> None:
    """Do nothing: sizes of shapes are numbers."""


def enable_tensor_equality() -> None:
    """Do nothing: == compares the elements of tensors."""


def enable_control_flow_v2() -> None:
    """Do nothing: loops are those of version 2."""


def executing_eagerly_outside_functions() -> bool:
    """Return True: programs are eager."""
    return True


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """Convert numbers to float32.

    Args:
        x: A tensor of numbers.
        name: Ignored.

    Returns:
        A float32 tensor of its shape.

    Example:
        >>> to_float([1, 2]).numpy()
        array([1., 2.], dtype=float32)
    """
    return cast(x, "float32")


def to_double(x: Any, name: str = "ToDouble") -> Tensor:
    """Convert numbers to float64.

    Args:
        x: A tensor of numbers.
        name: Ignored.

    Returns:
        A float64 tensor of its shape.
    """
    return cast(x, "float64")


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Tensor:
    """Convert numbers to bfloat16.

    Args:
        x: A tensor of numbers.
        name: Ignored.

    Returns:
        A bfloat16 tensor of its shape.
    """
    return cast(x, "bfloat16")


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """Convert numbers to int32.

    Args:
        x: A tensor of numbers.
        name: Ignored.

    Returns:
        An int32 tensor of its shape.
    """
    return cast(x, "int32")


def to_int64(x: Any, name: str = "ToInt64") -> Tensor:
    """Convert numbers to int64.

    Args:
        x: A tensor of numbers.
        name: Ignored.

    Returns:
        An int64 tensor of its shape.
    """
    return cast(x, "int64")


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Divide as Python 2: integers are rounded down.

    Args:
        x: A tensor of numbers.
        y: A tensor of the same dtype.
        name: Ignored.

    Returns:
        The quotient, in that dtype.

    Example:
        >>> div([7, -7], 2).numpy(), div([7.0], 2.0).numpy()
        (array([ 3, -4], dtype=int32), array([3.5], dtype=float32))
    """
    if is_complex(x) or is_complex(y):
        return truediv(x, y)
    dividend = convert_to_tensor(x)
    divide = floordiv if as_dtype(dividend._dtype).is_integer else truediv
    return divide(dividend, y)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Choose elements; a vector of conditions chooses rows.

    Args:
        condition: A bool tensor: of the shape of `x`, or a vector with one for each row.
        x: The values where it is true; None, with y: return the indices of true elements.
        y: The values where it is false, in the shape of `x`.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`, or int64 indices [true elements, axes].

    Example:
        >>> where([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]]).numpy()
        array([[1, 2],
               [7, 8]], dtype=int32)
    """
    if x is not None and y is not None:
        chosen, rank = convert_to_tensor(condition), len(x.shape if hasattr(x, "shape") else
                                                         convert_to_tensor(x)._shape)  # fmt: skip
        if chosen._rank == 1 and rank > 1:
            condition = reshape(chosen, [-1, *[1] * (rank - 1)])
    return _where(condition, x, y)


def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Set the value of a variable.

    Args:
        ref: The variable.
        value: The value.
        validate_shape: Ignored.
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.

    Example:
        >>> import samegrad as tf
        >>> float(assign(tf.Variable(1.0), 2.0))
        2.0
    """
    return unwrapped(ref).assign(value)


def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Add to a variable.

    Args:
        ref: The variable.
        value: The addend.
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.
    """
    return unwrapped(ref).assign_add(value)


def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Subtract from a variable.

    Args:
        ref: The variable.
        value: The subtrahend.
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.
    """
    return unwrapped(ref).assign_sub(value)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """Return the default: no graph is fed with another value.

    Args:
        input: The default: a tensor, or what one is made of.
        shape: Ignored.
        name: Ignored.

    Returns:
        The default as a tensor.

    Example:
        >>> float(placeholder_with_default(1.0, []))
        1.0
    """
    return identity(input)


def while_loop(
    cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None,
    parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
    name: str | None = None, maximum_iterations: Any = None, return_same_structure: bool = False,
) -> Any:  # fmt: skip
    """Repeat `body` while `cond` is true; see `samegrad.while_loop`.

    Args:
        cond: A function of the loop variables that returns a scalar.
        body: A function of the loop variables that returns the new ones.
        loop_vars: A list or tuple of tensors, or of structures of them.
        shape_invariants: The shapes of the loop variables.
        parallel_iterations: Ignored.
        back_prop: False stops gradients at the results.
        swap_memory: Ignored.
        name: Ignored.
        maximum_iterations: The largest number of iterations; None: no limit.
        return_same_structure: True: return a list of one loop variable as a list in functions.

    Returns:
        The loop variables after the last iteration. One loop variable is returned without its list
        in functions, and outside of them where `body` returns it so.

    Example:
        >>> int(while_loop(lambda i: i < 3, lambda i: i + 1, [0]))
        3
    """
    in_function = inside_function()
    bare = maximum_iterations is not None if not in_function else not return_same_structure
    step = body

    def eager_step(*variables: Any) -> Any:
        nonlocal bare
        made = body(*variables)
        bare = not isinstance(made, list | tuple)
        return made

    if not in_function:
        step = eager_step
    found = _while_loop(
        cond, step, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory,
        maximum_iterations,
    )  # fmt: skip
    is_one = isinstance(found, list | tuple) and len(found) == 1
    return found[0] if bare and is_one else found


class _Settings:
    """Settings of devices, all of which are ignored; any name may be read and set."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def __getattr__(self, name: str) -> _Settings:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _Settings()
        return made


class ConfigProto(_Settings):
    """Settings of sessions: any of them may be set, and all are ignored, see `samegrad.config`.

    Args:
        **settings: Ignored.

    Example:
        >>> config = ConfigProto(allow_soft_placement=True)
        >>> config.gpu_options.allow_growth = True
    """


class GPUOptions(_Settings):
    """Settings of GPUs: any of them may be set, and all are ignored.

    Args:
        **settings: Ignored.
    """


class Session:
    """A session that programs make to set options; it runs nothing, as there are no graphs.

    Args:
        target: Ignored.
        graph: Ignored.
        config: Ignored.
    """

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        self.graph = graph

    __getattr__ = missing_attribute

    def close(self) -> None:
        """Do nothing."""


class InteractiveSession(Session):
    """A `Session`."""


def make_one_shot_iterator(dataset: Any) -> Any:
    """Return an iterator of a dataset, with `get_next()`.

    Args:
        dataset: The dataset.

    Returns:
        The iterator.

    Example:
        >>> import samegrad as tf
        >>> int(make_one_shot_iterator(tf.data.Dataset.range(3)).get_next())
        0
    """
    return iter(dataset)


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Return the shapes of the elements of a dataset or iterator.

    Args:
        dataset_or_iterator: The dataset or iterator.

    Returns:
        A `TensorShape`, or a structure of them.
    """
    return map_structure(lambda spec: spec.shape, dataset_or_iterator.element_spec)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Return the dtypes of the elements of a dataset or iterator.

    Args:
        dataset_or_iterator: The dataset or iterator.

    Returns:
        A `DType`, or a structure of them.
    """
    return map_structure(lambda spec: spec.dtype, dataset_or_iterator.element_spec)


def dropout(
    x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: int | None = None,
    name: str | None = None, rate: Any = None,
) -> Tensor:  # fmt: skip
    """Set random elements to 0 and scale the others.

    Args:
        x: A tensor of floats.
        keep_prob: The probability that an element is kept.
        noise_shape: As in `samegrad.nn.dropout`.
        seed: The seed of this op.
        name: Ignored.
        rate: The probability that an element is dropped; give this or `keep_prob`.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ValueError: None or both of `keep_prob` and `rate` are given.

    Example:
        >>> dropout([1.0, 2.0], keep_prob=1.0).numpy()
        array([1., 2.], dtype=float32)
    """
    if (keep_prob is None) == (rate is None):
        raise ValueError(
            f"[compat.v1.nn.dropout] one of keep_prob and rate must be given: got "
            f"keep_prob={keep_prob} and rate={rate}."
        )
    return _dropout(x, 1.0 - keep_prob if rate is None else rate, noise_shape, seed)


def softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, dim: int = -1, name: str | None = None,
    axis: int | None = None,
) -> Tensor:  # fmt: skip
    """Compute the softmax cross-entropy; no gradients flow to the labels.

    Args:
        labels: Distributions over the classes, in the shape of the logits.
        logits: Floats of shape [..., classes].
        dim: The axis of the classes.
        name: Ignored.
        axis: The newer name of `dim`.

    Returns:
        The losses: the shape of the logits without the axis of the classes.

    Example:
        >>> softmax_cross_entropy_with_logits([[0.5, 0.5]], [[0.0, 0.0]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    fixed = stop_gradient(labels)
    return _softmax_cross_entropy(fixed, logits, dim if axis is None else axis)


def set_verbosity(v: int) -> None:
    """Set the level of the logger: messages below it are left out.

    Args:
        v: `logging.DEBUG`, `INFO`, `WARN`, `ERROR` or `FATAL`.
    """
    get_logger().setLevel(v)


def get_verbosity() -> int:
    """Return the level of the logger."""
    return get_logger().getEffectiveLevel()


_steps: list[Variable] = []


def get_or_create_global_step(graph: Any = None) -> Variable:
    """Return the variable that counts the steps of the program, int64.

    Args:
        graph: Ignored.

    Returns:
        The variable.
    """
    if not _steps:
        zero = np.zeros((), np.int64)
        _steps.append(Variable(lambda: zero, trainable=False, name="global_step"))
    return _steps[0]


def get_global_step(graph: Any = None) -> Variable | None:
    """Return the variable of `get_or_create_global_step`, or None.

    Args:
        graph: Ignored.
    """
    return _steps[0] if _steps else None


__all__ = [
    "ConfigProto", "GPUOptions", "InteractiveSession", "Session", "assign", "assign_add",
    "assign_sub", "div", "enable_control_flow_v2", "enable_eager_execution",
    "enable_resource_variables", "enable_tensor_equality", "enable_v2_behavior",
    "enable_v2_tensorshape", "executing_eagerly_outside_functions",
    "placeholder_with_default", "resource_variables_enabled", "while_loop",
    "to_bfloat16", "to_double", "to_float", "to_int32", "to_int64", "where",
]  # fmt: skip
add_own("", {"Dimension": Dimension, **{name: globals()[name] for name in __all__}})
add_own("data", {
    "get_output_shapes": get_output_shapes, "get_output_types": get_output_types,
    "make_one_shot_iterator": make_one_shot_iterator,
})  # fmt: skip
add_own("nn", {
    "dropout": dropout, "softmax_cross_entropy_with_logits": softmax_cross_entropy_with_logits,
})  # fmt: skip
add_own("train", {
    "create_global_step": get_or_create_global_step, "get_global_step": get_global_step,
    "get_or_create_global_step": get_or_create_global_step,
})  # fmt: skip
add_own("logging", {
    "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
    "ERROR": logging.ERROR, "FATAL": logging.FATAL, "get_verbosity": get_verbosity,
    "set_verbosity": set_verbosity, "warn": get_logger().warning, "log": get_logger().log,
    **{name: getattr(get_logger(), name)
       for name in ("debug", "error", "fatal", "info", "warning")},
})  # fmt: skip
