"""Models: layers made of layers."""

from samegrad.keras.models._model import Model
from samegrad.keras.models._sequential import Sequential

__all__ = ["Model", "Sequential"]
