"""Convolutions and pooling as ONNX nodes, which have their channels first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad.export._table import Call, row
from samegrad.export._values import Dim, Missing, RefusedError, Value


def window_attributes(attributes: Any) -> dict[str, Any]:
    """Return strides, pads (all before, then all after) and dilations as ONNX has them."""
    padding = list(attributes["padding"])
    return {
        "strides": list(attributes["strides"]),
        "pads": [*padding[0::2], *padding[1::2]],
        "dilations": list(attributes["dilations"]),
    }


def spatial_sizes(x: Value, window: Sequence[Any], attributes: dict[str, Any]) -> list[Dim]:
    """Return the sizes of the axes between examples and channels of a result."""
    rank = x.rank - 2
    sizes: list[Dim] = []
    for axis in range(rank):
        size, taps = x.shape[axis + 1], window[axis]
        if not isinstance(size, int) or not isinstance(taps, int):
            sizes.append(None)
            continue
        padded = size + attributes["pads"][axis] + attributes["pads"][axis + rank]
        extent = (taps - 1) * attributes["dilations"][axis] + 1
        sizes.append((padded - extent) // attributes["strides"][axis] + 1)
    return sizes


@row("conv2d", "conv2d_bias", "conv3d", "conv3d_bias")
def convolution(call: Call) -> Value:
    b, x, weights = call.builder, call.value(0), call.value(1)
    channels, own = x.shape[-1], weights.shape[-2]
    if not isinstance(channels, int) or not isinstance(own, int) or own == 0:
        raise RefusedError("ONNX asks for a number of channels that is known")
    attributes = window_attributes(call.attributes)
    rank = x.rank
    operands = [b.first(x), b.permuted(weights, [rank - 1, rank - 2, *range(rank - 2)])]
    if len(call.inputs) > 2:
        operands.append(call.ref(2))
    window = weights.shape[: rank - 2]
    if all(isinstance(size, int) for size in window):
        attributes["kernel_shape"] = list(window)
    found = b.op("Conv", *operands, group=channels // own, **attributes)
    if call.attributes.get("activation") == "relu":
        found = b.op("Relu", found)
    shape = [x.shape[0], *spatial_sizes(x, window, attributes), weights.shape[-1]]
    return b.value(found, shape, first=True)


@row("conv2d_transpose", "conv3d_transpose")
def transposed_convolution(call: Call) -> Value:
    b, x, weights = call.builder, call.value(0), call.value(1)
    rank, sizes = x.rank, list(call.attributes["size"])
    attributes = window_attributes(call.attributes)
    # As many rows as the stride allows; those that no window made are cut off.
    attributes["output_padding"] = [stride - 1 for stride in attributes["strides"]]
    operands = [b.first(x), b.permuted(weights, [rank - 1, rank - 2, *range(rank - 2)])]
    groups, filters = call.attributes["groups"], weights.shape[-2]
    found = b.op("ConvTranspose", *operands, group=groups, **attributes)
    if any(attributes["output_padding"]):
        axes = list(range(2, rank))
        starts, ends = b.integers([0] * len(axes)), call.sizes.vector(sizes)
        found = b.op("Slice", found, starts, ends, b.integers(axes))
    channels = filters * groups if isinstance(filters, int) else None
    return b.value(found, [x.shape[0], *sizes, channels], first=True)


@row("max_pool2d")
def max_pool(call: Call) -> list[Any]:
    b, x, window = call.builder, call.value(0), list(call.attributes["window"])
    attributes = window_attributes(call.attributes)
    found = b.op("MaxPool", b.first(x), kernel_shape=window, **attributes)
    shape = [x.shape[0], *spatial_sizes(x, window, attributes), x.shape[-1]]
    place = Missing("ONNX has another place of the largest element of a window")
    return [b.value(found, shape, first=True), place]


@row("avg_pool2d")
def average_pool(call: Call) -> Value:
    b, x, window = call.builder, call.value(0), list(call.attributes["window"])
    attributes = window_attributes(call.attributes)
    shape = [x.shape[0], *spatial_sizes(x, window, attributes), x.shape[-1]]
    rates = attributes.pop("dilations")
    if any(rate != 1 for rate in rates):
        if b.opset < 19:
            raise RefusedError("ONNX has mean windows with dilations from opset 19 on")
        attributes["dilations"] = rates
    found = b.op("AveragePool", b.first(x), kernel_shape=window, count_include_pad=0, **attributes)
    return b.value(found, shape, first=True)
