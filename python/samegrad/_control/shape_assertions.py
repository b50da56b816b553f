"""`tf.debugging.assert_*` about ranks, shapes, dtypes and nearness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from samegrad import math
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._control.assertions import check_numerics, prefixed, require_all
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor


def _rank_of(x: Any) -> int:
    return int(x.ndim if hasattr(x, "encoded") else convert_to_tensor(x)._rank)


def _check_rank(who: str, x: Any, holds: Callable[[int], bool], rule: str, message: Any) -> None:
    found = _rank_of(x)
    if not holds(found):
        raise ValueError(
            f"[{who}] {prefixed(message)}the tensor must have {rule} axes: got {found}; use "
            "reshape or expand_dims."
        )


def assert_rank(x: TensorLike, rank: Any, message: str | None = None,
                name: str | None = None) -> None:  # fmt: skip
    """Raise unless the tensor has `rank` axes.

    Args:
        x: A tensor.
        rank: The number of axes, an integer.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        ValueError: The tensor has another number of axes.

    Example:
        >>> assert_rank([1.0], 1)
    """
    wanted = whole(rank, "a rank is an integer")
    _check_rank("assert_rank", x, lambda n: n == wanted, str(wanted), message)


def assert_rank_at_least(x: TensorLike, rank: Any, message: str | None = None,
                         name: str | None = None) -> None:  # fmt: skip
    """Raise unless the tensor has at least `rank` axes.

    Args:
        x: A tensor.
        rank: The least number of axes, an integer.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        ValueError: The tensor has fewer axes.

    Example:
        >>> assert_rank_at_least([1.0], 0)
    """
    wanted = whole(rank, "a rank is an integer")
    _check_rank("assert_rank_at_least", x, lambda n: n >= wanted, f"at least {wanted}", message)


def assert_rank_in(x: TensorLike, ranks: Iterable[Any], message: str | None = None,
                   name: str | None = None) -> None:  # fmt: skip
    """Raise unless the number of the tensor's axes is in a list.

    Args:
        x: A tensor.
        ranks: The allowed numbers of axes.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        ValueError: The tensor has another number of axes.

    Example:
        >>> assert_rank_in([1.0], (1, 2))
    """
    wanted = [whole(rank, "a rank is an integer") for rank in ranks]
    _check_rank("assert_rank_in", x, lambda n: n in wanted, f"one of {wanted}", message)


def assert_scalar(tensor: TensorLike, message: str | None = None,
                  name: str | None = None) -> Any:  # fmt: skip
    """Check that a tensor has no axes, and return it.

    Args:
        tensor: A tensor, or a value that converts to one.
        message: The beginning of the error's message.
        name: Ignored.

    Returns:
        The tensor.

    Raises:
        ValueError: The tensor has axes.

    Example:
        >>> float(assert_scalar(1.0))
        1.0
    """
    _check_rank("assert_scalar", tensor, lambda n: n == 0, "no", message)
    return tensor if hasattr(tensor, "encoded") else convert_to_tensor(tensor)


def assert_type(tensor: Any, tf_type: DTypeLike, message: str | None = None,
                name: str | None = None) -> None:  # fmt: skip
    """Raise unless the tensor has a dtype.

    Args:
        tensor: A tensor, or a value that converts to one.
        tf_type: The dtype.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        TypeError: The tensor has another dtype.

    Example:
        >>> assert_type([1.0], "float32")
    """
    wanted = as_dtype(tf_type).name
    found = tensor if hasattr(tensor, "encoded") else convert_to_tensor(tensor)
    if found._dtype != wanted:
        raise TypeError(
            f"[assert_type] {prefixed(message)}the dtype must be {wanted}: got {found._dtype}; "
            "use cast."
        )


def assert_integer(x: TensorLike, message: str | None = None,
                   name: str | None = None) -> None:  # fmt: skip
    """Raise unless the tensor holds integers.

    Args:
        x: A tensor, or a value that converts to one.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        TypeError: The tensor does not hold integers.

    Example:
        >>> assert_integer([1])
    """
    found = convert_to_tensor(x)._dtype
    if not as_dtype(found).is_integer:
        raise TypeError(
            f"[assert_integer] {prefixed(message)}the tensor must hold integers: got "
            f"{found}; use cast."
        )


def assert_same_float_dtype(tensors: Iterable[Any] | None = None,
                            dtype: DTypeLike | None = None) -> Any:  # fmt: skip
    """Check that all tensors have one dtype of floats, and return it.

    Args:
        tensors: A list of tensors, with None for those to skip.
        dtype: The dtype that they must have; None: any of floats.

    Returns:
        The `DType`; float32 without tensors.

    Raises:
        ValueError: The dtypes differ, or are not of floats.

    Example:
        >>> assert_same_float_dtype([[1.0], [2.0]]).name
        'float32'
    """
    given = [] if tensors is None else list(tensors)
    found = [convert_to_tensor(x)._dtype for x in given if x is not None]
    kinds = dict.fromkeys([*found, *([as_dtype(dtype).name] if dtype is not None else [])])
    if len(kinds) > 1 or not all(as_dtype(kind).is_floating for kind in kinds):
        raise ValueError(
            f"[assert_same_float_dtype] the dtypes must be one of floats: got {list(kinds)}; use "
            "cast."
        )
    return as_dtype(next(iter(kinds), "float32"))


def assert_proper_iterable(values: Any) -> None:
    """Raise unless the value is an iterable of tensors.

    Args:
        values: Any object.

    Raises:
        TypeError: The value is a tensor, an array or a string, or not iterable.

    Example:
        >>> assert_proper_iterable([1.0])
    """
    if isinstance(values, Tensor | np.ndarray | str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"[assert_proper_iterable] a list of tensors is needed: got {shown(values)}; put it "
            "into a list."
        )


def is_numeric_tensor(tensor: Any) -> bool:
    """Return True for a tensor of numbers.

    Args:
        tensor: Any object.

    Returns:
        A bool.

    Example:
        >>> import samegrad as tf
        >>> is_numeric_tensor(tf.constant(1.0)), is_numeric_tensor(1.0)
        (True, False)
    """
    return isinstance(tensor, Tensor) and tensor._dtype != "bool"


def assert_shapes(shapes: Any, data: Any = None, summarize: int | None = None,
                  message: str | None = None, name: str | None = None) -> None:  # fmt: skip
    """Raise unless tensors have the given sizes; equal letters stand for equal sizes.

    Args:
        shapes: Pairs of a tensor and its shape: a tuple (or a string) of sizes; of letters, each of
            which means one size; and of None or ".", which mean any size. `...` or "*" at the first
            position means any axes. `()` is the shape of a scalar.
        data: Ignored.
        summarize: Ignored.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        ValueError: A tensor has another shape, or sizes of one letter differ.

    Example:
        >>> import samegrad as tf
        >>> x, y = tf.constant([[1.0, 2.0]]), tf.constant([1.0])
        >>> assert_shapes([(x, ("n", 2)), (y, ("n",))])
    """
    sizes: dict[Any, int] = {}
    given = list(shapes.items()) if isinstance(shapes, Mapping) else shapes
    pairs = given if isinstance(given, list | tuple) else [given]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(
            f"[assert_shapes] shapes are pairs of a tensor and its shape: got {shown(shapes)}; "
            "pass [(x, ('n', 2))]."
        )
    for tensor, wanted in pairs:
        if not isinstance(wanted, Iterable):
            raise ValueError(
                f"[assert_shapes] a shape is a tuple of sizes and names: got {shown(wanted)}; "
                "put it into a tuple."
            )
        _agree(tensor, list(wanted), sizes, prefixed(message))


def _agree(value: Any, wanted: list[Any], sizes: dict[Any, int], message: str) -> None:
    tensor = value if hasattr(value, "encoded") else convert_to_tensor(value)
    found: list[Any] = list(tensor.shape)
    if wanted and wanted[0] in (..., "*"):
        wanted = wanted[1:]
        found = found[max(len(found) - len(wanted), 0) :]
    if any(want in (..., "*") for want in wanted):
        raise ValueError(
            f"[assert_shapes] ... stands for the first axes only: got {tuple(wanted)}; name the "
            "others."
        )
    fits = len(found) == len(wanted) or (not wanted and found == [1])
    for have, want in zip(found, wanted, strict=False):
        if want is None or want == ".":
            continue
        number = int(want) if _is_number(want) else sizes.setdefault(want, have)
        fits = fits and have == number
    if not fits:
        known = ", ".join(f"{k}={v}" for k, v in sizes.items())
        raise ValueError(
            f"[assert_shapes] {message}the shape must be {tuple(wanted)}"
            f"{f' with {known}' if known else ''}: got {tuple(tensor.shape)}; see there."
        )


def _is_number(want: Any) -> bool:
    return isinstance(want, int | np.integer) or (isinstance(want, str) and want.isdigit())


def assert_near(x: TensorLike, y: TensorLike, rtol: Any = None, atol: Any = None,
                message: str | None = None, summarize: int | None = None,
                name: str | None = None) -> None:  # fmt: skip
    """Raise unless |x - y| <= atol + rtol |y| for every element.

    Args:
        x: A tensor of floats.
        y: A tensor of the same dtype that broadcasts with `x`.
        rtol: The relative tolerance; default 10 units in the last place of the dtype.
        atol: The absolute tolerance; default 10 units in the last place of the dtype.
        message: The beginning of the error's message.
        summarize: Ignored.
        name: Ignored.

    Raises:
        InvalidArgumentError: An element differs more; in a traced function, after the step.
        TypeError: The tensors do not hold floats.

    Example:
        >>> assert_near(1.0, 1.0 + 1e-7)
    """
    a = convert_to_tensor(x)
    b = convert_to_tensor(y, dtype_hint=a.dtype)
    if not as_dtype(a._dtype).is_floating:
        raise TypeError(f"[assert_near] floats are needed: got {a._dtype}; use assert_equal.")
    eps = 10 * float(np.finfo(a._dtype if a._dtype != "bfloat16" else "float16").eps)
    limit = (eps if atol is None else atol) + math.abs(b) * (eps if rtol is None else rtol)
    near = math.less_equal(math.abs(a - b), limit)
    rule = "|x - y| must be at most the tolerance, atol + rtol |y|"
    require_all("assert_near", near, rule, {"x": a, "y": b, "tolerance": limit}, message)


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Check that all elements are finite, and return the tensor; see `check_numerics`.

    Args:
        x: A tensor of floats.
        message: The beginning of the error's message.
        name: Ignored.

    Returns:
        The tensor itself.

    Raises:
        InvalidArgumentError: An element is infinite or NaN; in a traced function, after the step.

    Example:
        >>> float(assert_all_finite(1.0, "loss"))
        1.0
    """
    return check_numerics(x, message)


__all__ = [
    "assert_all_finite", "assert_integer", "assert_near", "assert_proper_iterable", "assert_rank",
    "assert_rank_at_least", "assert_rank_in", "assert_same_float_dtype", "assert_scalar",
    "assert_shapes", "assert_type", "is_numeric_tensor",
]  # fmt: skip
