"""Functions of `keras.models` before version 3."""

from __future__ import annotations

from typing import Any

__all__ = ["model_from_config"]


def model_from_config(config: Any, custom_objects: Any = None) -> Any:
    """Create a model from the result of `keras.saving.serialize_keras_object(model)`.

    Args:
        config: Class and arguments of the model, by name.
        custom_objects: User-defined classes, by name.

    Returns:
        The model.

    Raises:
        ValueError: config is not such a description.

    Example:
        >>> from samegrad import keras
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
        >>> model_from_config(keras.saving.serialize_keras_object(model)).output_shape
        (None, 3)
    """
    if not isinstance(config, dict) or "class_name" not in config:
        raise ValueError(
            "[model_from_config] a description has a class_name and a config: got "
            f"{str(config)[:60]!r}; make it with keras.saving.serialize_keras_object(model)."
        )
    from keras.src.saving import deserialize_keras_object

    return deserialize_keras_object(config, custom_objects=custom_objects)
