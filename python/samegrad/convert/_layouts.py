"""Layouts: names and orders of axes that PyTorch gives to the variables of Keras's layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from samegrad import keras
from samegrad._base.shown import shown

Array = npt.NDArray[Any]
Given: TypeAlias = "Mapping[str, str | tuple[str, Sequence[int]]]"


@dataclass(frozen=True)
class Layout:
    """Conversion of one variable to arrays of PyTorch and back.

    Attributes:
        names: Names of the arrays in the layer.
        out: Function from the variable's value to the arrays.
        back: Function from the arrays, and the shape of the variable, to its value.
    """

    names: tuple[str, ...]
    out: Callable[[Array], tuple[Array, ...]]
    back: Callable[[tuple[Array, ...], tuple[int, ...]], Array]


def axes(
    name: str,
    order: Callable[[int], Sequence[int]] = range,
    merged: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda shape: shape,
) -> Layout:
    """Return the layout of an array with its axes in another order.

    Args:
        name: Name of the array.
        order: Function from the number of axes to the variable's axes in PyTorch's order.
        merged: Function from the shape in this order to PyTorch's.
    """

    def out(value: Array) -> tuple[Array, ...]:
        moved = value.transpose(order(value.ndim))
        return (moved.reshape(merged(moved.shape)),)

    def back(arrays: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        forward = [*order(len(shape))]
        moved = arrays[0].reshape([shape[axis] for axis in forward])
        return moved.transpose(np.argsort(np.array(forward, int)))

    return Layout((name,), out, back)


def _channels_first(rank: int) -> list[int]:
    """Return the order of a kernel (..., in, out) with the channels first: (out, in, ...)."""
    return [rank - 1, rank - 2, *range(rank - 2)]


def _per_channel(rank: int) -> list[int]:
    """Return the order of a depthwise kernel (..., in, multiplier): (in, multiplier, ...)."""
    return [rank - 2, rank - 1, *range(rank - 2)]


def _one_group_each(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0] * shape[1], 1, *shape[2:])


def _flat(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (math.prod(shape),)


def _einsum(layer: Any) -> dict[str, Layout]:
    """Return the layout of an EinsumDense that computes a Linear over merged axes.

    Raises:
        NotImplementedError: The kernel has axes that are neither summed nor new.
    """
    inputs, rest = layer.equation.replace("...", "").split(",")
    kernel, outputs = rest.split("->")
    new = [axis for axis, label in enumerate(kernel) if label not in inputs]
    summed = [axis for axis, label in enumerate(kernel) if label not in outputs]
    if sorted(new + summed) != [*range(len(kernel))]:
        raise NotImplementedError(
            f"[convert] the axes of an EinsumDense must be summed or new: got {layer.equation!r} "
            f"of {layer.name}; give its class a layout of your own in layouts=."
        )
    # The new axes are in the order of the outputs, and so are those of the bias.
    new.sort(key=lambda axis: outputs.index(kernel[axis]))
    summed.sort(key=lambda axis: inputs.index(kernel[axis]))

    def merged(shape: tuple[int, ...]) -> tuple[int, ...]:
        return math.prod(shape[: len(new)]), math.prod(shape[len(new) :])

    return {
        "kernel": axes("weight", lambda _: [*new, *summed], merged),
        "bias": axes("bias", merged=_flat),
    }


def _swapped(value: Array) -> Array:
    """Return the gates of a GRU on the first axis in the other framework's order.

    Keras has update, reset, candidate. PyTorch has reset, update, candidate.
    """
    update, reset, candidate = np.split(value, 3)
    return np.concatenate([reset, update, candidate])


def _sum_of_biases(arrays: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """Return the bias of a layer that has one, where PyTorch adds two."""
    first, second = arrays
    return np.where(second == 0, first, first + second)  # keeps -0.0


_ONE_BIAS = Layout(
    ("bias_ih", "bias_hh"), lambda value: (value, np.zeros_like(value)), _sum_of_biases
)
_LSTM = {
    "kernel": axes("weight_ih", _channels_first),
    "recurrent_kernel": axes("weight_hh", _channels_first),
    "bias": _ONE_BIAS,
}


def _gru(layer: Any) -> dict[str, Layout]:
    """Return the layout of a GRU cell.

    Raises:
        NotImplementedError: It resets before the product, which PyTorch does after it.
    """
    if not layer.reset_after:
        raise NotImplementedError(
            f"[convert] a GRU must reset after the product, as PyTorch's does: got "
            f"reset_after=False of {layer.name}; make it with reset_after=True."
        )

    def gates(name: str) -> Layout:
        return Layout((name,), lambda v: (_swapped(v.T),), lambda a, _: _swapped(a[0]).T)

    return {
        "kernel": gates("weight_ih"),
        "recurrent_kernel": gates("weight_hh"),
        "bias": Layout(
            ("bias_ih", "bias_hh"),
            lambda value: (_swapped(value[0]), _swapped(value[1])),
            lambda arrays, _: np.stack([_swapped(array) for array in arrays]),
        ),
    }


_SCALE = {"gamma": axes("weight"), "beta": axes("bias")}
_KERNEL = {"kernel": axes("weight", _channels_first), "bias": axes("bias")}
_DEPTHWISE = {"kernel": axes("weight", _per_channel, _one_group_each), "bias": axes("bias")}
_SEPARABLE = {
    "depthwise_kernel": axes("depthwise.weight", _per_channel, _one_group_each),
    "pointwise_kernel": axes("pointwise.weight", _channels_first),
    "bias": axes("pointwise.bias"),
}
_MOMENTS = {"moving_mean": axes("running_mean"), "moving_variance": axes("running_var")}
_layers = keras.layers
LAYOUTS: dict[type, Mapping[str, Layout] | Callable[[Any], Mapping[str, Layout]]] = {
    **dict.fromkeys(
        (_layers.Dense, _layers.Conv1D, _layers.Conv2D, _layers.Conv3D, _layers.Conv1DTranspose,
         _layers.Conv2DTranspose, _layers.Conv3DTranspose),
        _KERNEL,
    ),
    **dict.fromkeys(
        (_layers.DepthwiseConv1D, _layers.DepthwiseConv2D),
        _DEPTHWISE,
    ),
    **dict.fromkeys((_layers.SeparableConv1D, _layers.SeparableConv2D), _SEPARABLE),
    **dict.fromkeys((_layers.LayerNormalization, _layers.GroupNormalization), _SCALE),
    _layers.BatchNormalization: _SCALE | _MOMENTS,
    _layers.RMSNormalization: {"scale": axes("weight")},
    _layers.Embedding: {"embeddings": axes("weight")},
    _layers.PReLU: {"alpha": axes("weight", merged=_flat)},
    _layers.EinsumDense: _einsum,
    _layers.LSTMCell: _LSTM,
    _layers.SimpleRNNCell: _LSTM,
    _layers.GRUCell: _gru,
}  # fmt: skip


def layouts_of(owner: Any, given: Mapping[type, Given]) -> Mapping[str, Layout]:
    """Return the layouts of a layer's variables by name: those given, or Keras's.

    Args:
        owner: A layer or module.
        given: Names, or names and orders of axes, by variable for each class.
    """
    for kind in type(owner).__mro__:
        if kind in given:
            return {name: _from_given(one) for name, one in given[kind].items()}
        if kind in LAYOUTS:
            found = LAYOUTS[kind]
            return found(owner) if callable(found) else found
    return {}


def _from_given(layout: Any) -> Layout:
    if isinstance(layout, str):
        return axes(layout)
    if isinstance(layout, tuple) and len(layout) == 2 and isinstance(layout[0], str):
        name, order = layout
        if sorted(order) == [*range(len(order))]:
            return axes(name, lambda rank: _checked(name, order, rank))
    raise ValueError(
        "[convert] a layout must be a name, or a name and the order of the axes: got "
        f"{shown(layout)}; write ('weight', (1, 0)) for a transposed matrix."
    )


def _checked(name: str, order: Sequence[int], rank: int) -> Sequence[int]:
    if len(order) != rank:
        raise ValueError(
            f"[convert] the layout of a variable with {rank} axes must order all of them: got "
            f"{tuple(order)} for {name!r}; list each axis once."
        )
    return order


__all__ = ["Given", "Layout", "axes", "layouts_of"]
