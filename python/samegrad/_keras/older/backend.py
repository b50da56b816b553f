"""Functions of `tf.keras.backend` that Keras has not, or that would need more of TensorFlow."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from keras.src import backend, ops
from keras.src.backend.config import epsilon, floatx, image_data_format

import samegrad as tf
from samegrad._keras.older.layers import (
    current_phase,
    learning_phase,
    learning_phase_scope,
    set_learning_phase,
)
from samegrad._tensor.tensor import convert_to_tensor

__all__ = [
    "batch_dot",
    "batch_flatten",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "constant",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "ctc_batch_cost",
    "ctc_decode",
    "ctc_label_dense_to_sparse",
    "dot",
    "dtype",
    "function",
    "get_session",
    "gradients",
    "in_test_phase",
    "in_train_phase",
    "learning_phase",
    "learning_phase_scope",
    "local_conv1d",
    "local_conv2d",
    "logsumexp",
    "manual_variable_initialization",
    "map_fn",
    "mean",
    "placeholder",
    "pool2d",
    "pool3d",
    "print_tensor",
    "random_binomial",
    "repeat_elements",
    "reset_uids",
    "resize_images",
    "rnn",
    "set_learning_phase",
    "softsign",
    "sparse_categorical_crossentropy",
    "std",
    "switch",
    "var",
]


def _refused(name: str, instead: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"[keras.backend.{name}] it is not there: {instead}.")

    refuse.__name__ = name
    refuse.__doc__ = f"""Raise NotImplementedError: {instead}.

    Args:
        *args: Not used.
        **kwargs: Not used.

    Returns:
        Never.
    """
    return refuse


ctc_label_dense_to_sparse = _refused(
    "ctc_label_dense_to_sparse", "tensors are dense; give labels and their lengths to keras.ops.ctc"
    "_loss"
)  # fmt: skip
function = _refused("function", "write a samegrad.function")
get_session = _refused("get_session", "there are no sessions; tensors have values")
gradients = _refused("gradients", "record the computation with a samegrad.GradientTape")
local_conv1d = _refused("local_conv1d", "write it with slices and keras.ops.einsum")
local_conv2d = _refused("local_conv2d", "write it with slices and keras.ops.einsum")
placeholder = _refused("placeholder", "use keras.Input, or the arguments of a samegrad.function")


def _inside(probabilities: Any) -> Any:
    return tf.clip_by_value(probabilities, epsilon(), 1.0 - epsilon())


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """Compute -sum(target * log(output)) along an axis.

    Args:
        target: Probabilities of the classes, in the shape of output.
        output: Predicted probabilities, or logits, shape [..., classes].
        from_logits: If True, output holds logits.
        axis: Axis of the classes.

    Returns:
        Tensor of output's shape without the axis.

    Example:
        >>> import samegrad as tf
        >>> losses = tf.keras.backend.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]])
        >>> [round(float(loss), 3) for loss in losses]
        [0.693]
    """
    return backend.nn.categorical_crossentropy(target, output, from_logits, axis)


def categorical_focal_crossentropy(
    target: Any,
    output: Any,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    axis: int = -1,
) -> Any:
    """Compute the cross entropy with lower weights for well-predicted examples.

    Args:
        target: Probabilities of the classes, in the shape of output.
        output: Predicted probabilities, or logits, shape [..., classes].
        alpha: Factor of all terms.
        gamma: Exponent of 1 - probability.
        from_logits: If True, output holds logits.
        axis: Axis of the classes.

    Returns:
        Tensor of output's shape without the axis.
    """
    t, y = convert_to_tensor(target), convert_to_tensor(output)
    y = tf.nn.softmax(y, axis=axis) if from_logits else y
    y = _inside(y / tf.reduce_sum(y, axis, keepdims=True))
    return tf.reduce_sum(-alpha * (1.0 - y) ** gamma * t * tf.math.log(y), axis)


def sparse_categorical_crossentropy(
    target: Any,
    output: Any,
    from_logits: bool = False,
    axis: int = -1,
    ignore_class: int | None = None,
) -> Any:
    """Compute -log(output[class]); 0 where the class is `ignore_class`.

    Args:
        target: Integer classes, in output's shape without the axis of the classes.
        output: Predicted probabilities, or logits, shape [..., classes].
        from_logits: If True, output holds logits.
        axis: Axis of the classes.
        ignore_class: Class that is ignored, or None.

    Returns:
        Tensor of target's shape.

    Example:
        >>> import samegrad as tf
        >>> losses = tf.keras.backend.sparse_categorical_crossentropy([1], [[0.5, 0.5]])
        >>> [round(float(loss), 3) for loss in losses]
        [0.693]
    """
    t, y = tf.cast(convert_to_tensor(target), "int64"), convert_to_tensor(output)
    if axis % y._rank != y._rank - 1:
        y = backend.numpy.moveaxis(y, axis, -1)
    if t._rank == y._rank:
        t = tf.squeeze(t, axis=-1)
    logits = y if from_logits else tf.math.log(_inside(y))
    if ignore_class is None:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits)
    valid = t != ignore_class
    known = tf.where(valid, t, tf.zeros_like(t))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=known, logits=logits)
    losses = tf.where(valid, losses, tf.zeros_like(losses))
    losses._keras_mask = valid  # type: ignore[attr-defined]
    return losses


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """Multiply corresponding examples: sum over an axis of each.

    Args:
        x: Tensor of rank 2 or more, with the examples along axis 0.
        y: Tensor with as many examples.
        axes: Axis of each to sum over, or one for both. None: the last, and the last but one.

    Returns:
        Tensor of shape [n, ...], of rank 2 at least.

    Raises:
        ValueError: An axis is that of the examples, or the rank is below 2.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.batch_dot([[1.0, 2.0]], [[3.0, 4.0]]).numpy().tolist()
        [[11.0]]
    """
    a, b = convert_to_tensor(x), convert_to_tensor(y)
    if a._rank < 2 or b._rank < 2:
        raise ValueError(f"Cannot do batch_dot on inputs with rank < 2: got {a.shape}, {b.shape}")
    if axes is None:
        axes = (a._rank - 1, max(1, b._rank - 2))
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % a._rank, second % b._rank
    if 0 in (first, second):
        raise ValueError("Cannot perform batch_dot over axis 0, that of the examples.")
    names = "".join(chr(ord("b") + i) for i in range(a._rank + b._rank))
    left, right = "a" + names[: a._rank - 1], "a" + names[a._rank : a._rank + b._rank - 1]
    right = right.replace(right[second], left[first])
    kept = [letter for letter in left[1:] + right[1:] if letter != left[first]]
    result = ops.einsum(f"{left},{right}->a{''.join(kept)}", a, b)
    return result if kept else tf.expand_dims(result, -1)


def batch_flatten(x: Any) -> Any:
    """Flatten all axes except that of the examples.

    Args:
        x: Tensor of shape [n, ...].

    Returns:
        Tensor of shape [n, size of an example].

    Example:
        >>> import samegrad as tf
        >>> tuple(tf.keras.backend.batch_flatten(tf.zeros([2, 3, 4])).shape)
        (2, 12)
    """
    value = convert_to_tensor(x)
    return tf.reshape(value, (-1, prod(value.shape[1:])))


def dot(x: Any, y: Any) -> Any:
    """Sum products over the last axis of x and the last but one of y.

    Args:
        x: Tensor.
        y: Tensor.

    Returns:
        Tensor.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.dot(tf.ones([2, 3]), tf.ones([3, 1])).numpy().tolist()
        [[3.0], [3.0]]
    """
    return ops.dot(x, y)


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Repeat each element along an axis.

    Args:
        x: Tensor.
        rep: Number of repetitions.
        axis: Axis of the repetitions.

    Returns:
        Tensor whose size along the axis is `rep` times x's.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.repeat_elements(tf.constant([1, 2]), 2, axis=0).numpy().tolist()
        [1, 1, 2, 2]
    """
    return ops.repeat(x, rep, axis)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """Create a constant tensor.

    Args:
        value: Number, array or list.
        dtype: Dtype of the result. None: floatx.
        shape: Shape of the result. None: that of value.
        name: Ignored.

    Returns:
        Tensor.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.constant([1, 2]).numpy().tolist()
        [1.0, 2.0]
    """
    return tf.constant(value, dtype=dtype or floatx(), shape=shape)


def _format(data_format: str | None) -> str:
    chosen = data_format or image_data_format()
    if chosen not in {"channels_first", "channels_last"}:
        raise ValueError(f"Unknown data_format: {chosen}")
    return str(chosen)


def _convolved(
    x: Any, kernel: Any, strides: Any, padding: str, data_format: Any, dilation_rate: Any
) -> Any:
    return ops.conv(x, kernel, strides, padding, _format(data_format), dilation_rate)


def conv1d(
    x: Any,
    kernel: Any,
    strides: int = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int = 1,
) -> Any:
    """Convolve along one axis.

    Args:
        x: Tensor of shape [n, steps, channels], or [n, channels, steps].
        kernel: Tensor of shape [window, channels, filters].
        strides: Stride of the windows.
        padding: "valid", "same" or "causal": the window ends at the present step.
        data_format: "channels_last" or "channels_first". None: `image_data_format()`.
        dilation_rate: Distance of neighbours in a window.

    Returns:
        Tensor of shape [n, windows, filters], or [n, filters, windows].

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.conv1d(tf.ones([1, 3, 1]), tf.ones([2, 1, 1])).numpy().ravel().tolist()
        [2.0, 2.0]
    """
    if padding == "causal":
        behind = [dilation_rate * (kernel.shape[0] - 1), 0]
        last = _format(data_format) == "channels_last"
        x = tf.pad(x, [[0, 0], behind, [0, 0]] if last else [[0, 0], [0, 0], behind])
        padding = "valid"
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Any:
    """Convolve images.

    Args:
        x: Tensor of shape [n, rows, columns, channels], or [n, channels, rows, columns].
        kernel: Tensor of shape [height, width, channels, filters].
        strides: Strides of the windows.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first". None: `image_data_format()`.
        dilation_rate: Distances of neighbours in a window.

    Returns:
        Tensor of images with as many channels as filters.

    Example:
        >>> import samegrad as tf
        >>> tuple(tf.keras.backend.conv2d(tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 5])).shape)
        (1, 2, 2, 5)
    """
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1, 1),
) -> Any:
    """Convolve volumes.

    Args:
        x: Tensor of shape [n, depth, rows, columns, channels], or with the channels at axis 1.
        kernel: Tensor of shape [depth, height, width, channels, filters].
        strides: Strides of the windows.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first". None: `image_data_format()`.
        dilation_rate: Distances of neighbours in a window.

    Returns:
        Tensor of volumes with as many channels as filters.

    Example:
        >>> import samegrad as tf
        >>> tuple(tf.keras.backend.conv3d(tf.ones([1, 4, 4, 4, 2]), tf.ones([3, 3, 3, 2, 5])).shape)
        (1, 2, 2, 2, 5)
    """
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate)


def conv2d_transpose(
    x: Any,
    kernel: Any,
    output_shape: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Any:
    """Compute the transposed convolution, the gradient of `conv2d`, in a given shape.

    Args:
        x: Tensor of shape [n, rows, columns, filters], or [n, filters, rows, columns].
        kernel: Tensor of shape [height, width, channels, filters].
        output_shape: Shape of the result; None for n: that of x.
        strides: Strides of the windows.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first". None: `image_data_format()`.
        dilation_rate: Distances of neighbours in a window.

    Returns:
        Tensor of output_shape.

    Example:
        >>> import samegrad as tf
        >>> y = tf.keras.backend.conv2d_transpose(
        ...     tf.ones([1, 2, 2, 5]), tf.ones([3, 3, 2, 5]), (1, 4, 4, 2))
        >>> tuple(y.shape)
        (1, 4, 4, 2)
    """
    first = _format(data_format) == "channels_first"
    sizes = list(output_shape)
    if first:
        x, sizes = tf.transpose(x, (0, 2, 3, 1)), [sizes[0], *sizes[2:], sizes[1]]
    sizes[0] = convert_to_tensor(x).shape[0] if sizes[0] is None else sizes[0]
    y = tf.nn.conv2d_transpose(
        x, kernel, sizes, strides, padding.upper(), dilations=tuple(dilation_rate)
    )
    return tf.transpose(y, (0, 3, 1, 2)) if first else y


def _pooled(
    x: Any, pool_size: Any, strides: Any, padding: str, data_format: Any, mode: str, axes: int
) -> Any:
    for name, given in (("pool_size", pool_size), ("strides", strides)):
        if len(given) != axes:
            raise ValueError(f"`{name}` must be a tuple of {axes} integers.")
    pools = {"max": ops.max_pool, "avg": ops.average_pool}
    if mode not in pools:
        raise ValueError(f"Invalid pooling mode: {mode}")
    return pools[mode](x, pool_size, strides, padding, _format(data_format))


def pool2d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Any:
    """Pool windows of images: their maximum, or their mean.

    Args:
        x: Tensor of shape [n, rows, columns, channels], or [n, channels, rows, columns].
        pool_size: Sizes of the windows.
        strides: Strides of the windows.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first". None: `image_data_format()`.
        pool_mode: "max" or "avg".

    Returns:
        Tensor of pooled images.

    Example:
        >>> import samegrad as tf
        >>> image = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
        >>> tf.keras.backend.pool2d(image, (2, 2)).numpy().tolist()
        [[[[3.0]]]]
    """
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode, 2)


def pool3d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Any:
    """Pool windows of volumes: their maximum, or their mean.

    Args:
        x: Tensor of shape [n, depth, rows, columns, channels], or with the channels at axis 1.
        pool_size: Sizes of the windows.
        strides: Strides of the windows.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first". None: `image_data_format()`.
        pool_mode: "max" or "avg".

    Returns:
        Tensor of pooled volumes.
    """
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode, 3)


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
) -> Any:
    """Resize images by integer factors.

    Args:
        x: Tensor of shape [n, rows, columns, channels], or [n, channels, rows, columns].
        height_factor: Factor of the rows.
        width_factor: Factor of the columns.
        data_format: "channels_last" or "channels_first".
        interpolation: "nearest", "bilinear" or another method of `tf.image.resize`.

    Returns:
        Tensor of larger images.

    Example:
        >>> import samegrad as tf
        >>> images = tf.ones([1, 2, 2, 1])
        >>> tuple(tf.keras.backend.resize_images(images, 2, 3, "channels_last").shape)
        (1, 4, 6, 1)
    """
    first = _format(data_format) == "channels_first"
    rows = 2 if first else 1
    size = (x.shape[rows] * height_factor, x.shape[rows + 1] * width_factor)
    x = tf.transpose(x, (0, 2, 3, 1)) if first else x
    y = tf.image.resize(x, size, method=interpolation)
    return tf.transpose(y, (0, 3, 1, 2)) if first else y


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """Compute -log of the probability of the labels; the last class is the blank.

    Args:
        y_true: Labels, integers of shape [n, longest].
        y_pred: Probabilities, shape [n, steps, classes].
        input_length: Steps of each example, shape [n, 1].
        label_length: Labels of each example, shape [n, 1].

    Returns:
        Tensor of shape [n, 1].
    """
    y = convert_to_tensor(y_pred)
    lengths = (
        tf.squeeze(convert_to_tensor(part), axis=-1) for part in (label_length, input_length)
    )
    logits = tf.math.log(y + epsilon())
    costs = backend.nn.ctc_loss(y_true, logits, *lengths, mask_index=y.shape[-1] - 1)
    return tf.expand_dims(costs, 1)


def ctc_decode(
    y_pred: Any,
    input_length: Any,
    greedy: bool = True,
    beam_width: int = 100,
    top_paths: int = 1,
) -> tuple[list[Any], Any]:
    """Decode the likeliest labels; the last class is the blank.

    Args:
        y_pred: Probabilities, shape [n, steps, classes].
        input_length: Steps of each example, shape [n].
        greedy: If True, take the likeliest class of each step; otherwise a beam search.
        beam_width: Beams of the search.
        top_paths: Number of results of the search.

    Returns:
        List of label tensors, padded with -1, and their log probabilities.
    """
    y = convert_to_tensor(y_pred)
    paths, scores = backend.nn.ctc_decode(
        tf.math.log(y + epsilon()),
        input_length,
        strategy="greedy" if greedy else "beam_search",
        beam_width=beam_width,
        top_paths=1 if greedy else top_paths,
        mask_index=y.shape[-1] - 1,
    )
    return tf.unstack(convert_to_tensor(paths)), scores


def dtype(x: Any) -> str:
    """Return the name of a tensor's dtype.

    Args:
        x: Tensor or variable.

    Returns:
        Name, such as "float32".

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.dtype(tf.constant([1.0]))
        'float32'
    """
    return str(backend.standardize_dtype(x.dtype))


def _numbers(x: Any) -> Any:
    value = convert_to_tensor(x)
    return tf.cast(value, floatx()) if value._dtype == "bool" else value


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute the mean along axes.

    Args:
        x: Tensor; bools count as floatx.
        axis: Axis or axes. None: all.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Tensor without the axes.

    Example:
        >>> import samegrad as tf
        >>> float(tf.keras.backend.mean(tf.constant([1.0, 2.0])))
        1.5
    """
    return tf.reduce_mean(_numbers(x), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute the standard deviation along axes.

    Args:
        x: Tensor; bools count as floatx.
        axis: Axis or axes. None: all.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Tensor without the axes.

    Example:
        >>> import samegrad as tf
        >>> float(tf.keras.backend.std(tf.constant([1.0, 3.0])))
        1.0
    """
    return tf.math.reduce_std(_numbers(x), axis, keepdims)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute the variance along axes.

    Args:
        x: Tensor; bools count as floatx.
        axis: Axis or axes. None: all.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Tensor without the axes.

    Example:
        >>> import samegrad as tf
        >>> float(tf.keras.backend.var(tf.constant([1.0, 3.0])))
        1.0
    """
    return tf.math.reduce_variance(_numbers(x), axis, keepdims)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute log(sum(exp(x))) along axes.

    Args:
        x: Tensor of floats.
        axis: Axis or axes. None: all.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Tensor without the axes.

    Example:
        >>> import samegrad as tf
        >>> round(float(tf.keras.backend.logsumexp([0.0, 0.0])), 3)
        0.693
    """
    return tf.reduce_logsumexp(x, axis, keepdims)


def softsign(x: Any) -> Any:
    """Compute x / (1 + |x|).

    Args:
        x: Tensor of floats.

    Returns:
        Tensor of x's shape and dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.softsign([1.0, -3.0]).numpy().tolist()
        [0.5, -0.75]
    """
    return tf.nn.softsign(x)


def map_fn(fn: Any, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """Map a function over the slices along axis 0.

    Args:
        fn: Function of a slice.
        elems: Tensor, or a structure of them, of shape [n, ...].
        name: Ignored.
        dtype: Ignored.

    Returns:
        Stacked results.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.map_fn(lambda x: 2 * x, tf.constant([1, 2])).numpy().tolist()
        [2, 4]
    """
    return ops.map(fn, elems)


def rnn(
    step_function: Any,
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
) -> Any:
    """Iterate a step function over the time axis.

    Args:
        step_function: Maps (inputs of a step, states) to (output, states).
        inputs: Tensor of shape [n, steps, ...], or a structure of them.
        initial_states: States before the first step.
        go_backwards: If True, iterate in reverse.
        mask: bool, shape [n, steps]: False keeps the states. None: all True.
        constants: Values that are passed to each step.
        unroll: If True, unroll the loop.
        input_length: Number of steps. None: that of inputs.
        time_major: If True, inputs and outputs have shape [steps, n, ...].
        zero_output_for_mask: If True, masked steps have output 0.
        return_all_outputs: If True, return the outputs of all steps.

    Returns:
        The last output, all outputs, and the last states.
    """
    return backend.rnn(
        step_function,
        inputs,
        initial_states,
        go_backwards=go_backwards,
        mask=mask,
        constants=constants,
        unroll=unroll,
        input_length=input_length,
        time_major=time_major,
        zero_output_for_mask=zero_output_for_mask,
        return_all_outputs=return_all_outputs,
    )


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """Choose between two values, or functions that compute them, by a condition.

    Args:
        condition: bool tensor of shape [], or one that selects elements.
        then_expression: Value or function for True.
        else_expression: Value or function for False.

    Returns:
        The chosen value.

    Example:
        >>> import samegrad as tf
        >>> int(tf.keras.backend.switch(True, tf.constant(1), tf.constant(2)))
        1
    """
    held = tf.cast(convert_to_tensor(condition), "bool")
    then, otherwise = (
        part if callable(part) else (lambda part=part: part)
        for part in (then_expression, else_expression)
    )
    if not held._rank:
        return tf.cond(held, then, otherwise)
    yes, no = convert_to_tensor(then()), convert_to_tensor(otherwise())
    if held._rank > yes._rank:
        raise ValueError(
            f"Rank of `condition` should be at most that of the expressions: got {held._rank} and "
            f"{yes._rank}"
        )
    for _ in range(yes._rank - held._rank):
        held = tf.expand_dims(held, -1)
    return tf.where(held, yes, no)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """Choose x in training, and alt otherwise.

    Args:
        x: Value, or a function that computes it.
        alt: Value, or a function that computes it.
        training: Whether this is training. None: the learning phase.

    Returns:
        The chosen value.

    Example:
        >>> import samegrad as tf
        >>> int(tf.keras.backend.in_train_phase(tf.constant(1), tf.constant(2), training=False))
        2
    """
    chosen = (current_phase() or False) if training is None else training
    if isinstance(chosen, int | bool | np.bool_):
        part = x if chosen else alt
        return part() if callable(part) else part
    return switch(chosen, x, alt)


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """Choose x outside of training, and alt otherwise.

    Args:
        x: Value, or a function that computes it.
        alt: Value, or a function that computes it.
        training: Whether this is training. None: the learning phase.

    Returns:
        The chosen value.

    Example:
        >>> import samegrad as tf
        >>> int(tf.keras.backend.in_test_phase(tf.constant(1), tf.constant(2), training=False))
        1
    """
    return in_train_phase(alt, x, training)


def print_tensor(x: Any, message: str = "", summarize: int = 3) -> Any:
    """Print a value, and return it.

    Args:
        x: Tensor.
        message: Text before the value.
        summarize: Ignored.

    Returns:
        The value.
    """
    tf.print(message, x)
    return x


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None) -> Any:
    """Draw ones with a probability, otherwise zeros.

    Args:
        shape: Shape of the result.
        p: Probability of a one.
        dtype: Dtype of the result. None: floatx.
        seed: Any integer. None: derived from `tf.random.set_seed`.

    Returns:
        Tensor of the shape and dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.keras.backend.random_binomial([3], p=1.0).numpy().tolist()
        [1.0, 1.0, 1.0]
    """
    drawn = tf.random.uniform(shape, dtype=dtype or floatx(), seed=seed)
    return tf.cast(drawn <= p, dtype or floatx())


def reset_uids() -> None:
    """Reset the counters in names of layers."""
    backend.common.global_state.clear_session(free_memory=False)


def manual_variable_initialization(value: bool) -> None:
    """Ignore the setting: variables are initialized when they are created.

    Args:
        value: Ignored.
    """
