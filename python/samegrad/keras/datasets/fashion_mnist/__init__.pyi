# Made by samegrad._keras.stubs. Do not edit.
from typing import Any
from samegrad._keras.datasets.fashion_mnist import load_data as load_data
CLASS_NAMES: Any
