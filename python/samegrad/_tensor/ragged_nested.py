"""Constructors of ragged tensors of uniform rows and of lists of divisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._tensor.composite import Composite
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.text import Text, is_text


class OfDivisions(Composite):
    """Constructors of `RaggedTensor` for one or several ragged axes.

    Attributes:
        ragged_rank: The number of ragged axes.
    """

    _uniform: int | None = None  # the length of all rows
    _ends: Any
    flat_values: Any
    to_tensor: Callable[..., Any]
    from_row_splits: Callable[..., Any]
    from_row_lengths: Callable[..., Any]
    from_value_rowids: Callable[..., Any]
    _like: Callable[..., Any]

    def _as_stacked(self) -> Tensor:
        """Return the values: branches and loops carry them, and the row lengths are constants."""
        tensor: Tensor = self.flat_values
        return tensor

    def _learns(self, form: object) -> bool:
        return False

    def _holding(self, tensor: Tensor) -> Any:
        return self._like(tensor)

    def _fits(self, other: object) -> bool:
        """Return whether another ragged tensor has the same row lengths."""
        return isinstance(other, OfDivisions) and np.array_equal(self._ends, other._ends)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Create a ragged tensor whose rows have one length.

        Args:
            values: Values of all rows: a tensor or strings with at least one axis.
            uniform_row_length: The length of each row.
            nrows: The number of rows; None: as many as the values fill, and 0 for length 0.
            validate: Ignored: the divisions are always checked.
            name: Ignored.

        Returns:
            A `RaggedTensor`.

        Raises:
            ValueError: The length is negative, or the rows do not hold the number of values.

        Example:
            >>> import samegrad as tf
            >>> tf.RaggedTensor.from_uniform_row_length([3, 1, 4, 1], 2).to_list()
            [[3, 1], [4, 1]]
        """
        length = whole(uniform_row_length, "uniform_row_length is an integer")
        found = Text(values) if is_text(values) else convert_to_tensor(values)
        if not found._rank:
            raise ValueError(
                f"[RaggedTensor] values must be a list: got one value {shown(values)}."
            )
        count = int(found._shape[0])
        rows = count // length if length > 0 else 0
        rows = rows if nrows is None else whole(nrows, "nrows is an integer")
        if length < 0 or rows < 0 or rows * length != count:
            raise ValueError(
                "[RaggedTensor.from_uniform_row_length] uniform_row_length times the number of "
                f"rows must be the number of values: got {length}, {rows} and {count}."
            )
        made = cls.from_row_lengths(found, np.full(rows, length))
        made._uniform = length
        return made

    @property
    def uniform_row_length(self) -> Any:
        """The length of all rows (int64), of what `from_uniform_row_length` made; else None."""
        return None if self._uniform is None else convert_to_tensor(np.int64(self._uniform))

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None,
        validate: bool = True,
    ) -> Any:  # fmt: skip
        """Create a ragged tensor from nested row splits, the outermost first: one list at most.

        Args:
            flat_values: Values of all rows: a tensor or strings with at least one axis.
            nested_row_splits: A list of row splits, as `from_row_splits` takes them.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`; without splits the values.

        Raises:
            NotImplementedError: There are several lists: only one axis can be ragged.
            TypeError: The splits are not a list of lists.

        Example:
            >>> import samegrad as tf
            >>> tf.RaggedTensor.from_nested_row_splits([3, 1, 4], [[0, 2, 3]]).to_list()
            [[3, 1], [4]]
        """
        splits = _only(nested_row_splits, "from_nested_row_splits", "nested_row_splits")
        return flat_values if splits is None else cls.from_row_splits(flat_values, splits)

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None,
        validate: bool = True,
    ) -> Any:  # fmt: skip
        """Create a ragged tensor from nested row lengths, the outermost first: one list at most.

        Args:
            flat_values: Values of all rows: a tensor or strings with at least one axis.
            nested_row_lengths: A list of row lengths, as `from_row_lengths` takes them.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`; without lengths the values.

        Raises:
            NotImplementedError: There are several lists: only one axis can be ragged.
            TypeError: The lengths are not a list of lists.

        Example:
            >>> import samegrad as tf
            >>> tf.RaggedTensor.from_nested_row_lengths([3, 1, 4], [[2, 1]]).to_list()
            [[3, 1], [4]]
        """
        lengths = _only(nested_row_lengths, "from_nested_row_lengths", "nested_row_lengths")
        return flat_values if lengths is None else cls.from_row_lengths(flat_values, lengths)

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: Any, nested_value_rowids: Any, nested_nrows: Any = None,
        name: str | None = None, validate: bool = True,
    ) -> Any:  # fmt: skip
        """Create a ragged tensor from nested row ids, the outermost first: one list at most.

        Args:
            flat_values: Values of all rows: a tensor or strings with at least one axis.
            nested_value_rowids: A list of row ids, as `from_value_rowids` takes them.
            nested_nrows: A list of the numbers of rows; None: the largest row id + 1.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`; without row ids the values.

        Raises:
            ValueError: `nested_nrows` has another length.
            NotImplementedError: There are several lists: only one axis can be ragged.

        Example:
            >>> import samegrad as tf
            >>> tf.RaggedTensor.from_nested_value_rowids([3, 1, 4], [[0, 0, 2]]).to_list()
            [[3, 1], [], [4]]
        """
        who = "from_nested_value_rowids"
        rows = _only(nested_value_rowids, who, "nested_value_rowids")
        if nested_nrows is not None and not np.iterable(nested_nrows):
            raise TypeError(
                f"[RaggedTensor.{who}] nested_nrows must be a list: got {shown(nested_nrows)}."
            )
        counts = None if nested_nrows is None else list(nested_nrows)
        if counts is not None and len(counts) != (rows is not None):
            raise ValueError(
                f"[RaggedTensor.{who}] nested_nrows must be as many as nested_value_rowids: got "
                f"{len(counts)} for {int(rows is not None)}."
            )
        if rows is None:
            return flat_values
        return cls.from_value_rowids(flat_values, rows, counts[0] if counts else None)


def _only(given: Any, who: str, what: str) -> Any:
    """Return the single list of divisions, or None without one."""
    if isinstance(given, int | float | str) or not hasattr(given, "__iter__"):
        raise TypeError(f"[RaggedTensor.{who}] {what} must be a list of lists: got {shown(given)}.")
    lists = list(given)
    if len(lists) > 1:
        raise NotImplementedError(
            f"[RaggedTensor.{who}] one axis has different sizes: got {len(lists)} lists in {what}; "
            "fill the inner rows up with to_tensor()."
        )
    return lists[0] if lists else None
