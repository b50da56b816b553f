"""Models: layers made of layers."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras.models._model import Model
from samegrad.keras.models._sequential import Sequential

__all__ = ["Model", "Sequential"]

__getattr__ = getattr_of(__name__)
guard(__name__)
