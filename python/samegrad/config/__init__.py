"""Settings of the process."""

from samegrad._function import functions_run_eagerly, run_functions_eagerly
from samegrad._unknown import getattr_of
from samegrad.config import threading

__all__ = ["functions_run_eagerly", "run_functions_eagerly", "threading"]

__getattr__ = getattr_of(__name__)
