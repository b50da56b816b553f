# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.mobilenet_v3 import decode_predictions as decode_predictions
from keras.src.applications.mobilenet_v3 import preprocess_input as preprocess_input
