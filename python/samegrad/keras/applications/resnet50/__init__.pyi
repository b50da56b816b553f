# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.resnet import ResNet50 as ResNet50
from keras.src.applications.resnet import decode_predictions as decode_predictions
from keras.src.applications.resnet import preprocess_input as preprocess_input
