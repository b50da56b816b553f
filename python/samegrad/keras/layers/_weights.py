"""What every layer knows of its weights, inner layers and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from samegrad._variable import Variable
from samegrad.keras.layers._tracking import leaves, trackable_parts, unique

if TYPE_CHECKING:
    from samegrad.keras.layers._layer import Layer


class HasWeights:
    """The part of `Layer` that finds weights and inner layers."""

    _trainable: bool
    _internal: frozenset[str]
    _weights: list[Variable]
    _added_losses: list[Any]

    @property
    def trainable(self) -> bool:
        """Whether the weights are among `trainable_weights`; setting it sets inner layers' too."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for layer in self._flatten_layers():
            layer._trainable = bool(value)

    @property
    def trainable_weights(self) -> list[Variable]:
        """The weights that training changes, inner layers' too."""
        if not self._trainable:
            return []
        own = [variable for variable in self._own_variables() if variable.trainable]
        return unique(own + [w for layer in self._sublayers() for w in layer.trainable_weights])

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The weights that training does not change, inner layers' too."""
        own, inner = self._own_variables(), self._sublayers()
        if not self._trainable:
            return unique(own + [w for layer in inner for w in layer.weights])
        own = [variable for variable in own if not variable.trainable]
        return unique(own + [w for layer in inner for w in layer.non_trainable_weights])

    @property
    def weights(self) -> list[Variable]:
        """All weights: the trainable ones, then the others."""
        return unique(self.trainable_weights + self.non_trainable_weights)

    @property
    def variables(self) -> list[Variable]:
        """All weights."""
        return self.weights

    @property
    def trainable_variables(self) -> list[Variable]:
        """The weights that training changes."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The weights that training does not change."""
        return self.non_trainable_weights

    @property
    def submodules(self) -> tuple[Layer, ...]:
        """All inner layers, at any depth."""
        return tuple(self._flatten_layers())[1:]

    def _attributes(self) -> dict[str, Any]:
        """The attributes that the user set."""
        return {name: value for name, value in vars(self).items() if name not in self._internal}

    def _own_variables(self) -> list[Variable]:
        return unique([*self._weights, *leaves(self._attributes(), Variable)])

    def _sublayers(self) -> list[Layer]:
        """The layers one level below."""
        from samegrad.keras.layers._layer import Layer

        return unique(leaves(self._attributes(), Layer))

    def _flatten_layers(self) -> Iterator[Layer]:
        """This layer and all inner ones, each once."""
        seen: set[int] = set()

        def walk(layer: Any) -> Iterator[Layer]:
            if id(layer) not in seen:
                seen.add(id(layer))
                yield layer
                for inner in layer._sublayers():
                    yield from walk(inner)

        return walk(self)

    def _forget_added_losses(self) -> None:
        for layer in self._flatten_layers():
            layer._added_losses.clear()

    def _checkpoint_state(self) -> Mapping[str, Any]:
        """The attributes that hold variables or layers, and weights that no attribute holds."""
        from samegrad.keras.layers._layer import Layer

        attributes = self._attributes()
        parts = {
            name: trackable_parts(value, (Variable, Layer)) for name, value in attributes.items()
        }
        state = {name: part for name, part in parts.items() if part is not None}
        held = {id(variable) for variable in leaves(attributes, Variable)}
        for variable in self._weights:
            if id(variable) not in held:
                state[variable.name.rpartition("/")[2].partition(":")[0]] = variable
        return state

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        raise AssertionError("a layer has no values beside its variables")
