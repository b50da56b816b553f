# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.xception import Xception as Xception
from keras.src.applications.xception import decode_predictions as decode_predictions
from keras.src.applications.xception import preprocess_input as preprocess_input
