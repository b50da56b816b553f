"""Layers: functions with weights."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras.layers._activations import ELU, Activation, LeakyReLU, ReLU, Softmax
from samegrad.keras.layers._convolution import Conv2D
from samegrad.keras.layers._dense import Dense
from samegrad.keras.layers._input import Input, InputLayer
from samegrad.keras.layers._lambda import Lambda
from samegrad.keras.layers._layer import Layer
from samegrad.keras.layers._merging import Add, Concatenate
from samegrad.keras.layers._pooling import (
    AveragePooling2D,
    AvgPool2D,
    GlobalAveragePooling2D,
    GlobalAvgPool2D,
    GlobalMaxPool2D,
    GlobalMaxPooling2D,
    MaxPool2D,
    MaxPooling2D,
)
from samegrad.keras.layers._regularization import Dropout
from samegrad.keras.layers._reshaping import Flatten, Reshape

__all__ = [
    "Activation",
    "Add",
    "AveragePooling2D",
    "AvgPool2D",
    "Concatenate",
    "Conv2D",
    "Dense",
    "Dropout",
    "ELU",
    "Flatten",
    "GlobalAveragePooling2D",
    "GlobalAvgPool2D",
    "GlobalMaxPool2D",
    "GlobalMaxPooling2D",
    "Input",
    "InputLayer",
    "Lambda",
    "Layer",
    "LeakyReLU",
    "MaxPool2D",
    "MaxPooling2D",
    "ReLU",
    "Reshape",
    "Softmax",
]

__getattr__ = getattr_of(__name__)
guard(__name__)
