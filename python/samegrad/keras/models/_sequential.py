"""One layer after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from samegrad import _core
from samegrad._shown import shown
from samegrad._variable import Variable
from samegrad.keras.layers._calls import shape_of, traced_on
from samegrad.keras.layers._input import InputLayer
from samegrad.keras.layers._layer import Layer
from samegrad.keras.models._model import Model
from samegrad.train._trackable import restore_pending


class Sequential(Model):
    """A model whose layers are applied one after the other.

    Weights are created at the first call, or at once if the shape of the input is given: by
    `build`, by `Input(shape=...)` as the first element, or by `input_shape=` of the first layer.

    Args:
        layers: The layers, or functions of a tensor.
        name: None: "sequential", with a number if it is not the first.

    Raises:
        TypeError: An element is no layer.

    Example:
        >>> import samegrad as tf
        >>> model = tf.keras.Sequential(
        ...     [tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(2)]
        ... )
        >>> model([[1.0, 2.0, 3.0]]).shape
        (1, 2)
    """

    def __init__(self, layers: Iterable[Any] | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._layers: list[Layer] = []
        self._known_shape: Any = None  # of the last layer's output, while it is known
        self._internal = self._internal | {"_layers", "_known_shape"}
        for layer in layers or ():
            self.add(layer)

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, without that of the input."""
        return [layer for layer in self._layers if not isinstance(layer, InputLayer)]

    def add(self, layer: Any) -> None:
        """Puts a layer at the end.

        Raises:
            TypeError: It is no layer.
        """
        if not isinstance(layer, Layer):
            raise TypeError(
                f"[{self.name}] elements must be layers: got {type(layer).__name__} {shown(layer)}"
                "; wrap a function in samegrad.keras.layers.Lambda."
            )
        first = not self._layers
        if first and layer._batch_input_shape is not None:
            self._known_shape = layer._batch_input_shape
        shape = None
        if self._known_shape is not None:
            dtype = layer.dtype if first else self.dtype
            known = self._known_shape
            shape = traced_on(self.name, known, dtype, lambda x: shape_of(layer(x)))
        with _core.all_or_nothing(self):
            self._layers = [*self._layers, layer]
            self._known_shape = shape
            self.built = shape is not None
            restore_pending(self)

    def pop(self) -> None:
        """Takes the last layer away.

        Raises:
            TypeError: There is none.
        """
        if not self.layers:
            raise TypeError(f"[{self.name}] there are no layers to pop.")
        with _core.all_or_nothing(self):
            self._layers = self._layers[:-1]
            last = self._layers[-1] if self._layers else None
            self._known_shape = last._output_shape if last is not None and self.built else None
            self.built = self._known_shape is not None

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights, by a call on an input of that shape which computes nothing.

        Args:
            input_shape: (None, sizes of one example...).

        Raises:
            ValueError: A size other than the first is unknown.
        """
        if input_shape is not None:
            super().build(input_shape)

    def _ensure_built(self, inputs: Any) -> None:
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Applies the layers; those that take `training` find it in the call around them."""
        x = inputs
        for layer in self._layers:
            x = layer(x)
        return x

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outputs = super().__call__(*args, **kwargs)
        self._known_shape = self._output_shape
        return outputs

    @property
    def trainable_weights(self) -> list[Variable]:
        """The weights that training changes.

        Raises:
            ValueError: They do not exist yet.
        """
        self._check_built()
        return super().trainable_weights

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The weights that training does not change.

        Raises:
            ValueError: They do not exist yet.
        """
        self._check_built()
        return super().non_trainable_weights

    def _check_built(self) -> None:
        if self._layers and not self.built:
            raise ValueError(
                f"[{self.name}] the weights do not exist yet: call the model on data, or "
                "build(input_shape), or begin with samegrad.keras.Input(shape=...)."
            )

    def _sublayers(self) -> list[Layer]:
        return list({id(layer): layer for layer in self._layers}.values())

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {**super()._checkpoint_state(), "layers": self.layers}

    def get_config(self) -> dict[str, Any]:
        """Name, and class and configuration of each layer."""
        layers = [
            {"class_name": type(layer).__name__, "config": layer.get_config()}
            for layer in self._layers
        ]
        return {"name": self.name, "layers": layers}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Sequential:
        """A model with layers of the same classes and arguments, and weights of its own."""
        from samegrad.keras import layers

        if "layers" not in config:
            raise ValueError(
                "[Sequential.from_config] the config must have 'layers': got "
                f"{shown(config)}; pass what get_config returned."
            )
        model = cls(name=config.get("name"))
        for entry in config["layers"]:
            model.add(getattr(layers, entry["class_name"])(**entry["config"]))
        return model
