"""The batch axis of values that are created outside of any step."""

from __future__ import annotations

from samegrad import _core
from samegrad._base.dtypes import DTypeLike
from samegrad._base.shown import shown
from samegrad._tensor.composite import Composite
from samegrad._tensor.conversion import Tensor, TensorLike, convert_to_tensor

# The attribute of a softmax that holds the logits behind it.
LOGITS = "_keras_logits"


def as_examples(value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return the value as a tensor whose axis 0 counts examples, if nothing else is known.

    Reductions over examples go down a fixed tree. Values of a dataset say where their examples
    are; arrays of the user do not, so models and losses assume axis 0, and training with plain
    arrays then gives the bits of training with a dataset, in a traced function as outside.

    Args:
        value: Number, list, array, variable or tensor of any shape; a ragged one stays as it is.
        dtype: What `convert_to_tensor` is to make of it.

    Returns:
        The tensor.

    Example:
        >>> as_examples([[1.0], [2.0]])._example_axis
        (0, 1)
    """
    if isinstance(value, Composite):
        return value  # type: ignore[return-value]
    tensor = convert_to_tensor(value, dtype)
    if not tensor._rank or tensor._example_axis is not None:
        return tensor
    known = tensor._symbolic or tensor._recorded or _core.tracing()
    marked = _core.ops.as_examples(tensor) if known else tensor._as_examples(0, 1)
    logits = getattr(tensor, LOGITS, None)
    if logits is not None:
        setattr(marked, LOGITS, as_examples(logits))
    return marked


def static_shape(tensor: Tensor) -> tuple[int | None, ...]:
    """Return the sizes of the axes, None for the axis of the examples.

    Example:
        >>> static_shape(as_examples([[1.0, 2.0]]))
        (None, 2)
    """
    axis = examples_axis(tensor)
    return tuple(None if i == axis else size for i, size in enumerate(tensor._shape))


def examples_axis(tensor: Tensor | Composite) -> int | None:
    """Return the batch axis, or None; a ragged tensor has none.

    Example:
        >>> examples_axis(as_examples([1.0])), examples_axis(convert_to_tensor([1.0]))
        (0, None)
    """
    if isinstance(tensor, Composite):
        return None
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"[tensor] one tensor is needed: got {type(tensor).__name__} {shown(tensor)}; give the "
            "parts of a structure one by one."
        )
    place = tensor._example_axis
    return None if place is None else int(place[0])
