# Made by samegrad._keras.stubs. Do not edit.
from samegrad._keras.datasets.mnist import load_data as load_data
