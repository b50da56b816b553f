"""Weights to and from PyTorch and Hugging Face, in safetensors files."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.convert._files import load, save
from samegrad.convert._torch import from_torch, to_torch

__all__ = ["from_torch", "load", "save", "to_torch"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
