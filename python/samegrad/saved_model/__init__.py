"""Saved models: functions as data, with the variables that they read and write."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.saved_model._folder import CorruptSavedModelError, contains_saved_model
from samegrad.saved_model._load import load
from samegrad.saved_model._options import LoadOptions, SaveOptions
from samegrad.saved_model._save import save

__all__ = [
    "CorruptSavedModelError", "LoadOptions", "SaveOptions", "contains_saved_model", "load", "save",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
