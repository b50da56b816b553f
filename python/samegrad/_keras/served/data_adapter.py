"""keras.src.trainers.data_adapters.tf_dataset_adapter: datasets of samegrad in Keras's loops."""

from __future__ import annotations

from typing import Any

from keras.src import tree
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

import samegrad as tf
from samegrad.data import Dataset
from samegrad.distribute._input import DistributedDataset


class TFDatasetAdapter(DataAdapter):  # type: ignore[misc]
    """A samegrad.data.Dataset, or a distributed one, as Keras's loops take data.

    Args:
        dataset: Its elements are batches: inputs, or (inputs, targets[, weights]).
        class_weight: A weight per class, or None.
        distribution: Not there on one machine, or what gives the dataset of this process.

    Raises:
        ValueError: No dataset; class weights for elements that have weights or several targets, or
            for batches that are distributed already.
    """

    def __init__(self, dataset: Any, class_weight: Any = None, distribution: Any = None) -> None:
        if not isinstance(dataset, Dataset | DistributedDataset):
            raise ValueError(
                f"Expected argument `dataset` to be a tf.data.Dataset. Received: {dataset}"
            )
        if class_weight is not None:
            if isinstance(dataset, DistributedDataset):
                raise ValueError(
                    "[fit] class_weight needs whole batches: got a distributed dataset; give the "
                    "dataset itself, or weights as the third part of its elements."
                )
            _check_weighable(dataset.element_spec)
            dataset = dataset.map(make_class_weight_map_fn(class_weight))
        if distribution is not None:
            dataset = distribution.distribute_dataset(dataset)
        self._dataset = dataset

    def get_batches(self) -> Any:
        """The batches of an epoch, as the dataset gives them."""
        return iter(self._dataset)

    def get_numpy_iterator(self) -> Any:
        """The batches of an epoch, as arrays of NumPy."""
        for batch in self._dataset:
            yield tree.map_structure(
                lambda x: x.numpy() if tf.is_tensor(x) else x, batch, none_is_leaf=False
            )

    def get_tf_dataset(self) -> Any:
        """The dataset."""
        return self._dataset

    @property
    def num_batches(self) -> int | None:
        """Return the number of batches; None if unknown or infinite."""
        try:
            return len(self._dataset)
        except TypeError:
            return None

    @property
    def batch_size(self) -> int | None:
        """Not known."""
        return None

    @property
    def has_partial_batch(self) -> bool | None:
        """Not known."""
        return None

    @property
    def partial_batch_size(self) -> int | None:
        """Not known."""
        return None


def _check_weighable(element: Any) -> None:
    _, y, given = data_adapter_utils.unpack_x_y_sample_weight(element)
    if given is not None:
        raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
    if tree.is_nested(y):
        raise ValueError("`class_weight` is only supported for Models with a single output.")


def make_class_weight_map_fn(class_weight: dict[int, float]) -> Any:
    """A function for Dataset.map that weighs examples by their classes.

    Args:
        class_weight: The weight of each class; those that are not there weigh 1.
    """
    classes = range(max(class_weight) + 1)
    weights = tf.constant([float(class_weight.get(c, 1.0)) for c in classes], "float32")

    def weighed(*data: Any) -> Any:
        _check_weighable(data)
        x, y = data[:2]
        y = tf.convert_to_tensor(y)
        if len(y.shape) >= 2 and y.shape[-1] != 1:
            y = tf.argmax(y, axis=-1)
        elif len(y.shape) >= 2:
            y = tf.squeeze(y, axis=-1)
        y = y if y.dtype.is_integer else tf.round(y)
        return x, data[1], tf.gather(weights, tf.cast(y, "int32"))

    return weighed
