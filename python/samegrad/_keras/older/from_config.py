"""What `keras.models` had before version 3."""

from __future__ import annotations

from typing import Any

__all__ = ["model_from_config"]


def model_from_config(config: Any, custom_objects: Any = None) -> Any:
    """The model that `keras.saving.serialize_keras_object(model)` describes.

    Args:
        config: Its class and arguments by name.
        custom_objects: The program's own classes by name.

    Raises:
        ValueError: It is no such description.

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
