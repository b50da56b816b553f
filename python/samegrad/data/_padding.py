"""Elements of different sizes as one batch, padded at the ends of their axes."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, string
from samegrad._base.shown import shown
from samegrad._base.tree import elements, is_element
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import leaf_of, text_of
from samegrad.data._function_nodes import sizes_are_known
from samegrad.data._nodes import Node
from samegrad.data._structure import Structure, as_examples, fill, leaves_of, view_of

Sizes = list["int | None"]


class Padding:
    """Shapes to pad elements to, and the padding values.

    Args:
        child: Where the elements come from.
        shapes: Per component the sizes, None or -1 for the largest one. None: those of the
            elements, where they are known.
        values: Per component what to pad with, or one for all. None: zeros.
        who: The caller, for errors.

    Raises:
        ValueError: They do not fit the elements, as far as these are known.
    """

    def __init__(self, child: Node, shapes: Structure, values: Structure, who: str) -> None:
        self._child, self._shapes, self._values, self._who = child, shapes, values, who
        self._certain = sizes_are_known(child)
        self._plan: tuple[list[Sizes], list[Any]] | None = None
        if self._certain:
            self._plan = self._planned(child.spec)

    @property
    def spec(self) -> Structure:
        """The TensorSpecs of padded elements, without the axis of the batch."""
        spec = self._child.spec
        sizes = (self._plan or self._planned(spec))[0]
        pairs = zip(leaves_of(spec), sizes, strict=True)
        return fill(spec, [TensorSpec(each, leaf.dtype) for leaf, each in pairs])

    def batch(self, members: list[Structure], unknown: int | None = None) -> Structure:
        """Elements of one structure as a batch.

        Args:
            members: At least one.
            unknown: What to pad sizes to that are not given. None: the largest one.

        Raises:
            ValueError: An element is larger than what it is padded to, or ranks differ.
        """
        plan = self._plan
        if plan is None:
            plan = self._plan = self._planned(members[0])
        columns = zip(*map(leaves_of, members), strict=True)
        padded = [
            self._column([view_of(leaf) for leaf in column], sizes, value, unknown)
            for column, sizes, value in zip(columns, *plan, strict=True)
        ]
        return fill(members[0], padded)

    def _planned(self, template: Structure) -> tuple[list[Sizes], list[Any]]:
        """Sizes and values per leaf of the template: TensorSpecs or tensors."""
        leaves = leaves_of(template)
        ranks = [len(leaf.shape) for leaf in leaves]
        if self._shapes is not None:
            given = self._per_leaf(self._shapes, template, "padded_shapes")
            sizes = [self._sizes(each, rank) for each, rank in zip(given, ranks, strict=True)]
            self._check_room(sizes, leaves)
        elif self._certain:
            sizes = [list(leaf.shape) for leaf in leaves]
        else:
            sizes = [[None] * rank for rank in ranks]
        if self._values is not None and is_element(self._values):
            values = self._per_leaf(self._values, template, "padding_values")
        else:
            values = [self._values] * len(leaves)
        pairs = zip(values, leaves, strict=True)
        return sizes, [self._value(value, leaf.dtype) for value, leaf in pairs]

    def _per_leaf(self, given: Any, template: Structure, what: str) -> list[Any]:
        if template is None:
            return []
        if not is_element(template):
            return [given]
        parts = elements.parts(template)
        own: list[Any] | None = None
        if isinstance(template, Mapping):
            if isinstance(given, Mapping) and set(given) == set(template):
                own = [given[key] for key in elements.keys(template)]
        elif isinstance(given, tuple | list) and len(given) == len(parts):
            own = list(given)
        if own is None:
            raise ValueError(
                f"[{self._who}] {what} must have the structure of an element: got {shown(given)} "
                f"for {len(parts)} components; give one for each of them."
            )
        pairs = zip(own, parts, strict=True)
        return [leaf for each, part in pairs for leaf in self._per_leaf(each, part, what)]

    def _sizes(self, given: Any, rank: int) -> Sizes:
        """-1 stands for None, as in TensorFlow."""
        if given is None:
            return [None] * rank
        try:
            sizes = [None if n is None else operator.index(n) for n in _entries(given)]
        except TypeError:
            sizes = [-2]
        if any(size is not None and size < -1 for size in sizes) or len(sizes) != rank:
            raise ValueError(
                f"[{self._who}] padded_shapes must be {rank} sizes here, each 0 or more, or None "
                f"for the largest of the batch: got {shown(given)}."
            )
        return [None if size == -1 else size for size in sizes]

    def _check_room(self, sizes: list[Sizes], leaves: list[Any]) -> None:
        for wanted, leaf in zip(sizes, leaves, strict=True):
            pairs = zip(wanted, leaf.shape, strict=True)
            if any(a is not None and b is not None and a < b for a, b in pairs):
                raise ValueError(self._too_small(wanted, tuple(leaf.shape)))

    def _value(self, given: Any, dtype: DType) -> Any:
        if dtype is string:
            rule = "strings are padded with strings"
            return text_of(b"" if given is None else given, self._who, rule).numpy()
        wanted = dtype.as_numpy_dtype
        try:
            value = np.asarray(0 if given is None else given)
        except ValueError:  # lists of several lengths, or without an end
            value = np.asarray(None)
        if value.ndim or value.dtype.kind not in "biufc":
            raise ValueError(
                f"[{self._who}] padding_values must be one number for each component: got "
                f"{shown(given)}."
            )
        with np.errstate(all="ignore"):
            exact = np.dtype(wanted).kind not in "biu" or value.astype(wanted) == value
        if not exact:
            raise ValueError(
                f"[{self._who}] padding_values must be values of the component's dtype: got "
                f"{shown(given)} for {dtype.name}."
            )
        return value.astype(wanted)

    def _column(
        self, views: list[np.ndarray[Any, Any]], wanted: Sizes, value: Any, unknown: int | None
    ) -> Any:
        if any(view.ndim != len(wanted) for view in views):
            raise ValueError(
                f"[{self._who}] all elements must have {len(wanted)} axes: got shapes "
                f"{sorted({view.shape for view in views})}."
            )
        largest = [max(sizes) for sizes in zip(*(view.shape for view in views), strict=True)]
        given = [unknown if size is None else size for size in wanted]
        shape = [n if size is None else size for n, size in zip(largest, given, strict=True)]
        for view in views:
            if any(a > b for a, b in zip(view.shape, shape, strict=True)):
                raise ValueError(self._too_small(given, view.shape))
        batch = np.full((len(views), *shape), value, dtype=views[0].dtype)
        for row, view in enumerate(views):
            place: tuple[Any, ...] = (row, *map(slice, view.shape))
            batch[place] = view
        return as_examples(leaf_of(batch, copy=False))

    def _too_small(self, sizes: Sizes, shape: tuple[int | None, ...]) -> str:
        return (
            f"[{self._who}] what elements are padded to must not be less than they are: got "
            f"{tuple(sizes)} and an element of shape {shape}; pad to more, or filter or cut longer "
            "ones."
        )


def _entries(shape: Any) -> Any:
    return shape.numpy() if isinstance(shape, Tensor) else shape
