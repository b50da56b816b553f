"""Blocks of space as batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._ops.padding import pad
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def space_to_batch(
    input: TensorLike, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Pad the axes of space, and move the positions within blocks into the batch axis.

    Args:
        input: A tensor [n, *space, ...].
        block_shape: The size of a block along each axis of space: integers [axes], or one for all.
        paddings: The zeros before and after each axis of space: integers [axes, 2].
        name: Ignored.

    Returns:
        A tensor [n * prod(block_shape), *(padded space / block_shape), ...].

    Raises:
        ValueError: The shapes do not fit, or a padded size is not divisible by its block.

    Example:
        >>> space_to_batch([[[1.0], [2.0], [3.0]]], [2], [[0, 1]]).numpy()[..., 0]
        array([[1., 3.],
               [2., 0.]], dtype=float32)
    """
    who = "space_to_batch"
    x, blocks, pairs = _checked(who, input, block_shape, "paddings", paddings)
    count = len(blocks)
    x = pad(x, [[0, 0], *pairs, *[[0, 0]] * (x._rank - count - 1)])
    n, sizes = x.shape[0], [int(size) for size in x.shape[1:]]
    if any(size % block for size, block in zip(sizes, blocks, strict=False)):
        raise ValueError(
            f"[{who}] padded sizes must be divisible by block_shape: got {sizes[:count]} and "
            f"{blocks}; see required_space_to_batch_paddings."
        )
    parts = [[size // block, block] for size, block in zip(sizes, blocks, strict=False)]
    split = _sizes.reshape(x, [n, *chain(*parts), *sizes[count:]])
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    rest = range(2 * count + 1, 2 * count + 1 + len(sizes) - count)
    moved = _ops.transpose(split, perm=[*inner, 0, *outer, *rest])
    return _sizes.reshape(moved, [n * prod(blocks), *(a for a, _ in parts), *sizes[count:]])


def batch_to_space(
    input: TensorLike, block_shape: Any, crops: Any, name: str | None = None
) -> Tensor:
    """Move the batch axis into blocks of space, and crop them: the inverse of `space_to_batch`.

    Args:
        input: A tensor [n * prod(block_shape), *space, ...].
        block_shape: The size of a block along each axis of space: integers [axes], or one for all.
        crops: The elements that are cut off before and after each axis: integers [axes, 2].
        name: Ignored.

    Returns:
        A tensor [n, *(space * block_shape - crops), ...].

    Raises:
        ValueError: The shapes do not fit, or the batch is not divisible by the blocks.

    Example:
        >>> batch_to_space([[[1.0], [3.0]], [[2.0], [0.0]]], [2], [[0, 1]]).numpy()[..., 0]
        array([[1., 2., 3.]], dtype=float32)
    """
    who = "batch_to_space"
    x, blocks, pairs = _checked(who, input, block_shape, "crops", crops)
    count, total = len(blocks), prod(blocks)
    sizes = [int(size) for size in x.shape[1:]]
    wide = [size * block for size, block in zip(sizes, blocks, strict=False)]
    if any(size < sum(pair) for size, pair in zip(wide, pairs, strict=True)):
        raise ValueError(f"[{who}] crops must fit into the sizes: got {pairs} for {wide}.")
    n = x.shape[0]
    if isinstance(n, int) and n % total:
        raise ValueError(
            f"[{who}] the batch must be divisible by the product of block_shape: got {n} and "
            f"{blocks}."
        )
    split = _sizes.reshape(x, [*blocks, n // total, *sizes])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += range(2 * count + 1, count + 1 + len(sizes))
    joined = _sizes.reshape(_ops.transpose(split, perm=order), [n // total, *wide, *sizes[count:]])
    inside = (slice(a, size - b) for (a, b), size in zip(pairs, wide, strict=True))
    return joined[(slice(None), *inside)]


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the padding that makes sizes divisible by blocks, and the crops that remove it.

    Args:
        input_shape: The sizes of the axes of space: integers [axes].
        block_shape: The size of a block along each axis: integers [axes].
        base_paddings: The least padding: integers [axes, 2]; default zeros.
        name: Ignored.

    Returns:
        A pair: the paddings and the crops, int32 [axes, 2].

    Raises:
        ValueError: The arguments differ in their lengths.

    Example:
        >>> paddings, crops = required_space_to_batch_paddings([5], [2])
        >>> paddings.numpy(), crops.numpy()
        (array([[0, 1]], dtype=int32), array([[0, 1]], dtype=int32))
    """
    sizes, blocks = _integers(input_shape), _integers(block_shape)
    base = [[0, 0]] * len(blocks) if base_paddings is None else _pairs(base_paddings)
    if not len(sizes) == len(blocks) == len(base):
        raise ValueError(
            "[required_space_to_batch_paddings] sizes, blocks and base_paddings must be as many: "
            f"got {sizes}, {blocks} and {base}."
        )
    extra = [-(size + sum(pair)) % block
             for size, block, pair in zip(sizes, blocks, base, strict=True)]  # fmt: skip
    paddings = [[a, b + more] for (a, b), more in zip(base, extra, strict=True)]
    crops = [[0, more] for more in extra]
    return tuple(convert_to_tensor(pairs, "int32") for pairs in (paddings, crops))  # type: ignore[return-value]


def _integers(value: Any) -> list[int]:
    return [_sizes.whole(size, "sizes are integers") for size in _sizes.sizes_of(value)]


def _pairs(value: Any) -> list[list[int]]:
    rows = value.numpy().tolist() if isinstance(value, Tensor) else value
    return [_integers(pair) for pair in rows]


def _checked(
    who: str, input: TensorLike, block_shape: Any, what: str, given: Any
) -> tuple[Tensor, list[int], Sequence[Sequence[int]]]:
    x, blocks, pairs = convert_to_tensor(input), _integers(block_shape), _pairs(given)
    blocks = blocks * len(pairs) if len(blocks) == 1 else blocks
    fits = len(pairs) == len(blocks) < x._rank and all(len(pair) == 2 for pair in pairs)
    if not fits or min(blocks, default=1) < 1 or min(map(min, pairs), default=0) < 0:
        raise ValueError(
            f"[{who}] block_shape must have a size of at least 1, and {what} two numbers, for each "
            f"axis of space: got {blocks} and {shown(pairs)} for shape {x._shape}."
        )
    return x, blocks, pairs


__all__ = ["batch_to_space", "required_space_to_batch_paddings", "space_to_batch"]
