# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.imagenet_utils import decode_predictions as decode_predictions
from keras.src.applications.imagenet_utils import preprocess_input as preprocess_input
