"""Nested tuples and dicts of values, and what is known of the values before they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from samegrad._base.dtypes import element_type
from samegrad._base.shown import shown
from samegrad._base.tree import Walk, elements, is_element, is_one_value
from samegrad._tensor.complex_tensor import ComplexTensor, is_complex, to_complex
from samegrad._tensor.per_replica import strings_per_replica
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text, of_bytes

Structure: TypeAlias = Any  # leaves, or tuples and dicts of structures
# Makes an element of its leaves: None for a single leaf, `tuple` itself for a flat tuple.
Packer: TypeAlias = "Callable[[Iterable[Any]], Structure] | None"


# Lists are leaves: they stand for tensors.
leaves_of, map_leaves, fill = elements.flatten, elements.map_structure, elements.fill
# The same of what users see: a complex tensor is one leaf, not its two parts.
_whole = Walk(lambda value: is_element(value) and not is_one_value(value), any_keys=True)
map_values, _whole_leaves = _whole.map_structure, _whole.flatten


def with_complex_parts(tensors: Structure, who: str) -> Structure:
    """The structure with a complex tensor for each array, number or list of complex numbers."""
    return map_values(lambda value: to_complex(value, who) if is_complex(value) else value, tensors)


def as_complex_where(signature: Structure, value: Any, who: str) -> Any:
    """The value with complex tensors where the signature has complex specs."""
    if not any(isinstance(leaf, ComplexTensor) for leaf in _whole_leaves(signature)):
        return value

    def leaf(spec: Any, given: Any) -> Any:
        return to_complex(given, who) if isinstance(spec, ComplexTensor) else given

    try:
        return map_values(leaf, signature, value)
    except (KeyError, IndexError, ValueError):
        return value  # of another structure, which is said where components are counted


def packer_of(template: Structure) -> Packer:
    """Return a function that packs leaves into the template's structure.

    Where the template has text, the engine gives the numbers of its rows.
    """
    flat = type(template) is tuple and not any(map(is_element, template))
    if any(isinstance(leaf, Text) for leaf in leaves_of(template)):
        rows_of: list[Any] = leaves_of(template)
        if flat:
            return lambda leaves: tuple(map(_text_rows, rows_of, leaves))
        return lambda leaves: fill(template, map(_text_rows, rows_of, leaves))
    if not is_element(template):
        return None
    return tuple if flat else lambda leaves: fill(template, leaves)


def _text_rows(source: Any, leaf: Any) -> Any:
    """The leaf, or the rows of text with its numbers."""
    if not isinstance(source, Text):
        return leaf
    if isinstance(leaf, Tensor):
        return of_bytes(source.encoded[leaf._view()])
    return strings_per_replica(of_bytes(source.encoded[part._view()]) for part in leaf.values)


def view_of(leaf: Any) -> Any:
    """The numbers or the bytes of a leaf, not copied.

    Raises:
        TypeError: It is ragged or sparse, or a dataset.
    """
    if not isinstance(leaf, Tensor | Text):
        raise TypeError(
            f"[Dataset] this stage takes tensors and strings: got {type(leaf).__name__}; use "
            "to_tensor() or tf.sparse.to_dense in map before it."
        )
    return leaf.encoded if isinstance(leaf, Text) else leaf._view()


def as_examples(leaf: Any) -> Any:
    """A leaf of a batch: the rows of a tensor are its examples."""
    return leaf._as_examples(0, 1) if isinstance(leaf, Tensor) and leaf._rank else leaf


def spec_of(leaf: Any, sizes: Any = None) -> Any:
    """The spec of a leaf.

    Args:
        leaf: A tensor, text, or a dataset.
        sizes: Other sizes than those of the leaf.
    """
    if hasattr(leaf, "_node"):
        return DatasetSpec(leaf.element_spec)
    return TensorSpec(leaf._shape if sizes is None else sizes, leaf._dtype)


def common_spec(a: Any, b: Any) -> Any:
    """Return the most specific spec that fits both leaves."""
    if a.shape == b.shape:
        return a
    sizes = [m if m == n else None for m, n in zip(a.shape, b.shape, strict=True)]
    return TensorSpec(sizes, a.dtype)


class DatasetSpec:
    """Spec of a dataset, such as one that is an element of another one.

    Args:
        element_spec: The TensorSpecs of its elements.
        dataset_shape: (): one dataset.

    Example:
        >>> import samegrad as tf
        >>> tf.data.Dataset.range(5).window(2).element_spec
        DatasetSpec(TensorSpec(shape=(), dtype=samegrad.int64))
    """

    def __init__(self, element_spec: Structure, dataset_shape: Any = ()) -> None:
        if len(dataset_shape):
            raise ValueError(
                f"[DatasetSpec] dataset_shape must be (), a single dataset: got {dataset_shape}."
            )
        self.element_spec = element_spec
        self.shape: tuple[int, ...] = ()

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """Return the spec of a dataset.

        Args:
            value: The dataset.

        Returns:
            The spec.

        Example:
            >>> import samegrad as tf
            >>> tf.data.DatasetSpec.from_value(tf.data.Dataset.range(3))
            DatasetSpec(TensorSpec(shape=(), dtype=samegrad.int64))
        """
        if not hasattr(value, "element_spec"):
            raise TypeError(f"[DatasetSpec.from_value] a Dataset is needed: got {shown(value)}.")
        return cls(value.element_spec)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Return True if a dataset, or every one of another spec, fits this spec.

        Args:
            spec_or_value: A dataset or a spec.

        Returns:
            A bool.
        """
        found = getattr(spec_or_value, "element_spec", None)
        if found is None:
            return False
        mine, theirs = leaves_of(self.element_spec), leaves_of(found)
        return len(mine) == len(theirs) and all(
            one.is_compatible_with(other) for one, other in zip(mine, theirs, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(leaves_of(self.element_spec)))

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r})"


def is_made(leaf: Any) -> bool:
    """Tell if a leaf needs no conversion: string, ragged, sparse or dataset."""
    return isinstance(leaf, Text | RaggedTensor | SparseTensor) or hasattr(leaf, "_node")


def with_rows(spec: TensorSpec, rows: int | None) -> TensorSpec:
    """The spec of a batch of such tensors."""
    return TensorSpec((rows, *spec.shape), spec.dtype)


def signature_of(types: Structure, shapes: Structure, signature: Structure) -> Structure:
    """Return the signature of a generator's elements, in either spelling.

    Args:
        types: None, or dtypes in the structure of an element.
        shapes: None, or a shape for each of the types.
        signature: None, or TensorSpecs in the structure of an element.

    Returns:
        TensorSpecs, dtypes where shapes are not given, None if it is neither of the two.
    """
    if types is None and shapes is None:
        given = leaves_of(signature)
        return signature if all(isinstance(leaf, TensorSpec) for leaf in given) else None
    if types is None or signature is not None:
        return None
    return map_leaves(element_type, types) if shapes is None else _with_shapes(types, shapes)


def _with_shapes(types: Structure, shapes: Structure) -> Structure:
    """The specs of dtypes and shapes, which may be tuples themselves."""
    if not is_element(types):
        try:
            return TensorSpec(shapes, types)
        except (TypeError, ValueError) as error:
            raise TypeError(
                "[Dataset.from_generator] output_types must be dtypes, and output_shapes a shape "
                f"for each: got {types!r} and {shapes!r}; pass tf.int32 and (None, 3)."
            ) from error
    names = list(types) if isinstance(types, dict) else range(len(types))
    if not is_element(shapes) or len(shapes) != len(types):
        raise TypeError(
            f"[Dataset.from_generator] output_shapes must have the structure of output_types "
            f"{types!r}: got {shapes!r}."
        )
    parts = [_with_shapes(types[name], shapes[name]) for name in names]
    return dict(zip(names, parts, strict=True)) if isinstance(types, dict) else tuple(parts)
