"""Settings of the process."""

from samegrad._unknown import getattr_of
from samegrad.config import threading

__all__ = ["threading"]

__getattr__ = getattr_of(__name__)
