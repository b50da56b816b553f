# Made by samegrad._keras.stubs. Do not edit.
from keras.src.datasets.california_housing import load_data as load_data
